"""Reads and writes content blocks and reasoning items: text and refusals, images, audio and files
by data, by URL or by id, and thinking.

A block without a neutral shape, and one that its neutral part would not give back exactly, becomes
a `ProviderPart` that holds the block. A reasoning item is one `ThinkingPart`, whose native fields
are the item's id and its encrypted content. An item holds its thinking in pieces, as `summary` or
as `content`. The part's text joins them with blank lines, and its wire form holds their lengths, so
that `split_joined` can cut them again.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.codec.media import (
    ELSEWHERE,
    IMAGES,
    Media,
    decode_base64,
    describe_as_text,
    dump_data_url,
    guess_media_type,
    media_label,
    read_media_text,
)
from dragoman.codec.signature_check import name_part_type
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
)
from dragoman.wires.openai_responses.citations import load_annotations
from dragoman.wires.openai_responses.quirks import OWN

__all__ = [
    "BETWEEN",
    "REASONING",
    "Block",
    "dump_block",
    "dump_content",
    "dump_reasoning",
    "is_block",
    "is_plain",
    "load_block",
    "load_content",
    "load_reasoning",
    "is_self_contained",
    "split_sendable",
    "find_loss",
    "split_joined",
]

Block = TextPart | Media | ProviderPart

_UNSENT = {"reasoning": ("status",), "custom_tool_call": ("status",), "output_text": ("logprobs",)}
"""Type of an item or block → its fields that a response has and a request may not have."""
_NEVER_SENT = ("created_by", "async", "item_id", "output_index", "obfuscation")
"""Fields of any item or block that a response has and a request may not have."""
BETWEEN = "\n\n"
"""Stands between two pieces of thinking in a part's text."""
REASONING = {"summary": "summary_text", "content": "reasoning_text"}
"""Field of a reasoning item → the type of its pieces."""
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_TEXT_FIELDS = {"input_text": "text", "output_text": "text", "refusal": "refusal", "text": "text"}
_MEDIA = ("input_image", "input_file", "input_audio")
_PDF = "application/pdf"


def load_block(block: JsonMap, usual: str = "input_text") -> Block:
    """Reads one Responses content block. `usual`: the type of text blocks in this item."""
    block_type = str(block.get("type"))
    loader = _LOADERS.get(block_type)
    part = loader(block) if loader else None
    if part is None:
        return ProviderPart(block_type, OWN.note(block, form={"block": True}))
    if _choose_block_type(part, usual) == block_type:
        return part
    return msgspec.structs.replace(part, native=OWN.with_form(part.native, type=block_type))


def dump_block(part: Block, usual: str = "input_text") -> Json:
    """Writes the content block of a part. A part without a Responses block of its own becomes a
    text."""
    fields = OWN.fields(part.native)
    if isinstance(part, ProviderPart):
        return fields
    block_type = _choose_block_type(part, usual)
    if isinstance(part, TextPart):
        return {"type": block_type, _TEXT_FIELDS[block_type]: part.text, **fields}
    if block_type in _DUMPERS:
        return {"type": block_type, **_DUMPERS[block_type](part, fields)}
    if isinstance(part, LinkPart) and not part.url.startswith("data:"):
        return {"type": block_type, "text": part.url}
    return {"type": block_type, "text": describe_as_text(part)}


def _choose_block_type(part: TextPart | Media, usual: str) -> str:
    """Returns the type of Responses block for a part. `usual`: the type of a text."""
    noted_type = if_text(OWN.form(part.native).get("type"))
    if isinstance(part, TextPart):
        if noted_type in _TEXT_FIELDS:
            return noted_type
        return usual
    if noted_type in _MEDIA:
        return noted_type
    if isinstance(part, FilePart) and is_elsewhere(part):
        return usual
    return _choose_type_by_mime(part, usual)


def _choose_type_by_mime(part: Media, usual: str) -> str:
    """Returns the type of Responses block for the MIME type of a part. `usual`: the type of a
    text."""
    mime_type = part.mime_type
    if not mime_type and isinstance(part, LinkPart):
        mime_type = guess_media_type(part.url)
    mime_type = mime_type or ""
    # By its URL or id any image may be sent, by its data only the known types.
    may_be_any = not isinstance(part, DataPart)
    if mime_type in IMAGES or (may_be_any and mime_type.startswith("image/")):
        return "input_image"
    if mime_type == _PDF or isinstance(part, FilePart):
        return "input_file"
    return usual


def is_elsewhere(part: FilePart) -> bool:
    """True if another provider holds the file. OpenAI's files are the same for both of its APIs."""
    return OWN.is_foreign(part.native) and "openai_chat" not in (part.native or ())


def is_block(piece: Content) -> bool:
    """True if a piece is a content block that only the provider understands."""
    return isinstance(piece, ProviderPart) and bool(OWN.form(piece.native).get("block"))


def find_loss(part: Block, block: JsonMap) -> tuple[Lost, str, str] | None:
    """Returns what the Responses block of a file leaves out, why, and of which file. None:
    nothing."""
    if not isinstance(part, (DataPart, LinkPart, FilePart)):
        return None
    if "text" in block:
        if read_media_text(part) is not None:
            return None
        why = "the API has no block for it; a text tells of it"
        if isinstance(part, FilePart):
            why = ELSEWHERE
        return name_part_type(part), why, media_label(part)
    if part.name and block.get("filename") != part.name:
        return Lost.file_name, f"the API knows no name of such a file, {part.name}", ""
    return None


def _dump_image(part: Media, own_fields: Json) -> Json:
    """Returns an image as a Responses block `input_image`."""
    fields = {"file_id": part.id} if isinstance(part, FilePart) else {"image_url": _url(part)}
    if "detail" not in OWN.form(part.native):
        own_fields.setdefault("detail", "auto")
    return fields | own_fields


def _dump_file(part: Media, fields: Json) -> Json:
    """Returns a file as a Responses block `input_file`."""
    if isinstance(part, FilePart):
        return {"file_id": part.id, **fields}
    if isinstance(part, LinkPart):
        name = {"filename": part.name} if part.name else {}
        return {"file_url": part.url, **name, **fields}
    location = {"file_data": dump_data_url(part)}
    # Data gets a made-up name, unless it was loaded without one.
    if "filename" not in OWN.form(part.native):
        name = part.name or f"file.{part.mime_type.rpartition('/')[2]}"
        location = {"filename": name, **location}
    return {**location, **fields}


def _dump_audio(part: Media, fields: Json) -> Json:
    """Returns audio as a Responses block `input_audio`."""
    mime_type = str(part.mime_type)
    audio_format = mime_type.removeprefix("audio/")
    for known_format, known_type in _AUDIO.items():
        if known_type == mime_type:
            audio_format = known_format
    data = b64encode(part.data).decode() if isinstance(part, DataPart) else ""
    own_audio = if_object(fields.pop("input_audio", None))
    return {"input_audio": {"data": data, "format": audio_format, **own_audio}, **fields}


def _url(part: DataPart | LinkPart) -> str:
    if isinstance(part, LinkPart):
        return part.url
    return dump_data_url(part)


_DUMPERS: Mapping[str, Callable[[Media, Json], Json]] = {
    "input_image": _dump_image,
    "input_file": _dump_file,
    "input_audio": _dump_audio,
}


def _load_text(block: JsonMap) -> TextPart | None:
    """Returns a Responses text block as a part, or None if it is empty."""
    field = _TEXT_FIELDS[block["type"]]
    text = if_text(block.get(field))
    if not text:
        return None
    native = OWN.note(read_extra_fields(block, "type", field))
    return TextPart(text, native, load_annotations(block.get("annotations")))


def _load_image(block: JsonMap) -> Media | None:
    """Returns a Responses block `input_image` as a part, or None if it has neither URL nor id."""
    fields = read_extra_fields(block, "type")
    # `auto` is what is written where nothing else is known.
    if fields.get("detail") == "auto":
        del fields["detail"]
    form = {} if "detail" in block else {"detail": "absent"}
    match block:
        case {"image_url": str(url)}:
            return _from_url(url, None, OWN.note(read_extra_fields(fields, "image_url"), form=form))
        case {"file_id": str(file_id)}:
            native = OWN.note(read_extra_fields(fields, "file_id"), mark=True, form=form)
            return FilePart(file_id, "image/*", None, native)
        case _:
            return None


def _load_file(block: JsonMap) -> Media | None:
    """Returns a Responses block `input_file` as a part, or None if it has no data, URL or id."""
    name = if_text(block.get("filename")) or None
    fields = read_extra_fields(block, "type", *(("filename",) if name else ()))
    match block:
        case {"file_data": str(url)}:
            form = {} if name else {"filename": "absent"}
            native = OWN.note(read_extra_fields(fields, "file_data"), form=form)
            part = _from_url(url, name, native)
            if isinstance(part, DataPart):
                return part
            return None
        case {"file_url": str(url)}:
            return LinkPart(url, None, name, OWN.note(read_extra_fields(fields, "file_url")))
        case {"file_id": str(file_id)} if name is None:
            native = OWN.note(read_extra_fields(fields, "file_id"), mark=True)
            return FilePart(file_id, native=native)
        case _:
            return None


def _load_audio(block: JsonMap) -> Media | None:
    """Returns a Responses block `input_audio` as a part, or None if its data cannot be read."""
    audio = if_object(block.get("input_audio"))
    text, audio_format = audio.get("data"), audio.get("format")
    if not isinstance(text, str) or not isinstance(audio_format, str):
        return None
    data = decode_base64(text)
    if data is None:
        return None
    fields = read_extra_fields(block, "type", "input_audio")
    if inner := read_extra_fields(audio, "data", "format"):
        fields["input_audio"] = inner
    mime_type = _AUDIO.get(audio_format, f"audio/{audio_format}")
    return DataPart(data, mime_type, None, OWN.note(fields))


def _from_url(url: str, name: str | None, native: Any) -> DataPart | LinkPart:
    """Reads a URL in Responses content: the data in it, or a link if it holds none or could not be
    given back exactly."""
    head, comma, text = url.partition(";base64,")
    if comma and head.startswith("data:") and head != "data:":
        data = decode_base64(text)
        if data is not None:
            return DataPart(data, head.removeprefix("data:"), name, native)
    return LinkPart(url, None, name, native)


_LOADERS: Mapping[str, Callable[[JsonMap], TextPart | Media | None]] = {
    **dict.fromkeys(_TEXT_FIELDS, _load_text),
    "input_image": _load_image,
    "input_file": _load_file,
    "input_audio": _load_audio,
}


def load_content(
    content: Any, usual: str, *, full: bool = False, from_response: bool = False
) -> tuple[list[Content], Json]:
    """Reads the content of a Responses message item into its pieces, and its form.

    `usual`: the type of text blocks in this item. `full`: the item is one of a response's, so each
    text has `annotations`.
    """
    if isinstance(content, str) and content:
        return [TextPart(content)], {"content": "string"} if full else {}
    if not _is_list_of_blocks(content):
        return [], {"content": content}
    if not content:
        return [], {"content": []}
    pieces = [
        _load_noted_block(block, usual, full=full, from_response=from_response) for block in content
    ]
    return pieces, {"content": "list"} if not full and is_plain(content) else {}


def _is_list_of_blocks(content: object) -> TypeGuard[list[Json]]:
    """True if the content of a Responses item is a list of blocks. It may be empty."""
    return isinstance(content, list) and all(
        isinstance(block, dict) for block in cast("list[Any]", content)
    )


def dump_content(blocks: list[Json], form: str | None, *, full: bool) -> str | list[Json]:
    """Writes the content of a message item. One plain text becomes a string, unless `form` says
    otherwise or the Responses item is `full`, one of a response's."""
    as_list = form == "list" or (full and form != "string")
    if as_list or not is_plain(blocks):
        return blocks
    return blocks[0]["text"]


def is_plain(blocks: list[Json]) -> bool:
    """True if Responses blocks are a single text without anything beside it."""
    return (
        len(blocks) == 1
        and set(blocks[0]) == {"type", "text"}
        and blocks[0]["type"] in ("input_text", "output_text")
    )


def _load_noted_block(block: JsonMap, usual: str, *, full: bool, from_response: bool) -> Content:
    """Reads a content block. Notes the fields that a Responses request may not have."""
    sent, unsent = split_sendable(block) if from_response else (dict(block), {})
    form: Json = {}
    if full and block.get("type") == "output_text":
        if "annotations" not in sent:
            form["annotations"] = "absent"
        elif sent["annotations"] == []:
            del sent["annotations"]
    piece = load_block(sent, usual)
    if form:
        piece = msgspec.structs.replace(piece, native=OWN.with_form(piece.native, **form))
    if unsent:
        piece = msgspec.structs.replace(piece, native=OWN.with_notes(piece.native, response=unsent))
    return piece


def split_sendable(block: JsonMap) -> tuple[Json, Json]:
    """Splits a Responses item or block of a response: the fields that a request may have, and those
    of the others that are not empty."""
    unsent = (*_NEVER_SENT, *_UNSENT.get(str(block.get("type")), ()))
    return read_extra_fields(block, *unsent), {
        key: block[key] for key in unsent if block.get(key) not in ([], None)
    }


def load_reasoning(item: JsonMap, unsent: JsonMap = {}) -> ThinkingPart:
    """Reads a reasoning item of the Responses API. `unsent`: fields that a response has and no
    request may have."""
    texts_by_field: dict[str, list[str]] = {}
    for field, piece_type in REASONING.items():
        texts = _texts(item.get(field), piece_type)
        if texts is not None:
            texts_by_field[field] = texts
    text = BETWEEN.join([text for texts in texts_by_field.values() for text in texts])
    lengths = {field: [len(text) for text in texts] for field, texts in texts_by_field.items()}
    usual = {"summary": [len(text)] if text else []}
    form = {} if lengths == usual else {"pieces": lengths}
    fields = read_extra_fields(item, "type", *texts_by_field)
    return ThinkingPart(text, OWN.note(fields, form=form, response=unsent))


def _read_lengths(part: ThinkingPart) -> dict[str, list[int]]:
    """Returns the noted lengths, in characters, of the pieces in each field of a Responses
    reasoning item."""
    lengths_by_field: dict[str, list[int]] = {}
    for field, noted_lengths in if_object(OWN.form(part.native).get("pieces")).items():
        if field in REASONING:
            # The note may come from a client, so anything may stand in it.
            lengths = [length if type(length) is int else 0 for length in if_list(noted_lengths)]
            lengths_by_field[field] = lengths
    return lengths_by_field


def dump_reasoning(part: ThinkingPart) -> Json:
    """Writes the Responses reasoning item of a part."""
    own_fields = OWN.fields(part.native)
    lengths_by_field = _read_lengths(part)
    if not lengths_by_field and "summary" not in own_fields:
        lengths_by_field = {"summary": [len(part.text)] if part.text else []}
    all_lengths = [length for lengths in lengths_by_field.values() for length in lengths]
    # A text that was edited goes into the first piece.
    texts = split_joined(part.text, all_lengths) or [part.text, *("" for _ in all_lengths)]
    next_texts = iter(texts)
    fields = {
        field: [{"type": REASONING[field], "text": next(next_texts)} for _ in lengths]
        for field, lengths in lengths_by_field.items()
    }
    return {"type": "reasoning", **own_fields, **fields}


def is_self_contained(part: ThinkingPart) -> bool:
    """True if the item can be understood although the provider has not stored it."""
    return bool(OWN.fields(part.native).get("encrypted_content"))


def _texts(pieces: Any, piece_type: str) -> list[str] | None:
    """Returns the texts of a Responses reasoning item's pieces of this type, or None if a piece has
    another shape."""
    if not isinstance(pieces, list):
        return None
    texts: list[str] = []
    for piece in cast("list[Any]", pieces):
        match piece:
            case {"type": str(found_type), "text": str(text), **others} if (
                found_type == piece_type and not others
            ):
                texts.append(text)
            case _:
                return None
    return texts


def split_joined(text: str, lengths: Sequence[int]) -> list[str] | None:
    """Cuts a text into the Responses blocks that it was joined from. None if it is not that text
    any more."""
    pieces: list[str] = []
    position = 0
    for length in lengths:
        pieces.append(text[position : position + length])
        position += length + len(BETWEEN)
    if BETWEEN.join(pieces) == text:
        return pieces
    return None
