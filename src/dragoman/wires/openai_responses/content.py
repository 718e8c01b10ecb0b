"""Content blocks and reasoning items ↔ parts: text and refusals, images, audio and files by data,
by URL, by id; thinking.

A block without a neutral shape, and one that its neutral part would not give back exactly, is a
`ProviderPart` that holds the block. A reasoning item is one `ThinkingPart`, whose native fields are
the item's id and its encrypted content. An item holds its thinking in pieces, as `summary` or as
`content`; a part's text joins them with blank lines, and its form holds their lengths.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

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
from dragoman.codec.replay import name_part_type
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
"""The same, of any type."""
BETWEEN = "\n\n"
"""Stands between two pieces of thinking."""
REASONING = {"summary": "summary_text", "content": "reasoning_text"}
"""Field of a reasoning item → the type of its pieces."""
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_TEXT_FIELDS = {"input_text": "text", "output_text": "text", "refusal": "refusal", "text": "text"}
_MEDIA = ("input_image", "input_file", "input_audio")
_PDF = "application/pdf"


def load_block(block: JsonMap, usual: str = "input_text") -> Block:
    """A content block → the part that it is. `usual`: the type of text blocks where it stands."""
    kind = str(block.get("type"))
    part = _LOADERS[kind](block) if kind in _LOADERS else None
    if part is None:
        return ProviderPart(kind, OWN.note(block, form={"block": True}))
    if _kind(part, usual) == kind:
        return part
    return msgspec.structs.replace(part, native=OWN.with_form(part.native, type=kind))


def dump_block(part: Block, usual: str = "input_text") -> Json:
    """A part → its content block. What has no block of its own becomes a text."""
    fields = OWN.fields(part.native)
    if isinstance(part, ProviderPart):
        return fields
    kind = _kind(part, usual)
    if isinstance(part, TextPart):
        return {"type": kind, _TEXT_FIELDS[kind]: part.text, **fields}
    if kind in _DUMPERS:
        return {"type": kind, **_DUMPERS[kind](part, fields)}
    if isinstance(part, LinkPart) and not part.url.startswith("data:"):
        return {"type": kind, "text": part.url}
    return {"type": kind, "text": describe_as_text(part)}


def _kind(part: TextPart | Media, usual: str) -> str:
    """The type of the block that says a part; `usual`: it becomes a text."""
    kind = if_text(OWN.form(part.native).get("type"))
    if kind in (_TEXT_FIELDS if isinstance(part, TextPart) else _MEDIA):
        return kind
    if isinstance(part, TextPart):
        return usual
    mime_type = (
        part.mime_type or (guess_media_type(part.url) if isinstance(part, LinkPart) else None) or ""
    )
    if isinstance(part, FilePart) and is_elsewhere(part):
        return usual
    if mime_type in IMAGES or (mime_type.startswith("image/") and not isinstance(part, DataPart)):
        return "input_image"
    return "input_file" if mime_type == _PDF or isinstance(part, FilePart) else usual


def is_elsewhere(part: FilePart) -> bool:
    """Whether another provider holds the file. OpenAI's are the same for both of its APIs."""
    return OWN.is_foreign(part.native) and "openai_chat" not in (part.native or ())


def is_block(piece: Content) -> bool:
    """Whether a piece is a content block that only the provider understands."""
    return isinstance(piece, ProviderPart) and bool(OWN.form(piece.native).get("block"))


def find_loss(part: Block, block: JsonMap) -> tuple[Lost, str, str] | None:
    """What of a file its block does not hold, why, and which file."""
    if not isinstance(part, (DataPart, LinkPart, FilePart)):
        return None
    if "text" in block:
        if read_media_text(part) is not None:
            return None
        why = (
            ELSEWHERE
            if isinstance(part, FilePart)
            else "the API has no block for it; a text tells of it"
        )
        return name_part_type(part), why, media_label(part)
    if part.name and block.get("filename") != part.name:
        return Lost.file_name, f"the API knows no name of such a file, {part.name}", ""
    return None


def _dump_image(part: Media, own_fields: Json) -> Json:
    fields = {"file_id": part.id} if isinstance(part, FilePart) else {"image_url": _url(part)}
    if "detail" not in OWN.form(part.native):
        own_fields.setdefault("detail", "auto")
    return fields | own_fields


def _dump_file(part: Media, fields: Json) -> Json:
    if isinstance(part, FilePart):
        return {"file_id": part.id, **fields}
    if isinstance(part, LinkPart):
        return {"file_url": part.url, **({"filename": part.name} if part.name else {}), **fields}
    name = part.name or f"file.{part.mime_type.rpartition('/')[2]}"
    return {
        **({} if "filename" in OWN.form(part.native) else {"filename": name}),
        "file_data": dump_data_url(part),
        **fields,
    }


def _dump_audio(part: Media, fields: Json) -> Json:
    mime_type = str(part.mime_type)
    format_ = next(
        (form for form, mime in _AUDIO.items() if mime == mime_type), mime_type[len("audio/") :]
    )
    data = b64encode(part.data).decode() if isinstance(part, DataPart) else ""
    return {
        "input_audio": {
            "data": data,
            "format": format_,
            **if_object(fields.pop("input_audio", None)),
        },
        **fields,
    }


def _url(part: DataPart | LinkPart) -> str:
    return part.url if isinstance(part, LinkPart) else dump_data_url(part)


_DUMPERS: Mapping[str, Callable[[Media, Json], Json]] = {
    "input_image": _dump_image,
    "input_file": _dump_file,
    "input_audio": _dump_audio,
}


def _load_text(block: JsonMap) -> TextPart | None:
    field = _TEXT_FIELDS[block["type"]]
    text = block.get(field)
    return (
        TextPart(text, OWN.note(read_extra_fields(block, "type", field)))
        if isinstance(text, str) and text
        else None
    )


def _load_image(block: JsonMap) -> Media | None:
    unread = read_extra_fields(block, "type")
    if unread.get("detail") == "auto":
        del unread["detail"]
    form = {} if "detail" in block else {"detail": "absent"}
    match block:
        case {"image_url": str(url)}:
            return _from_url(url, None, OWN.note(read_extra_fields(unread, "image_url"), form=form))
        case {"file_id": str(file_id)}:
            return FilePart(
                file_id,
                "image/*",
                None,
                OWN.note(read_extra_fields(unread, "file_id"), mark=True, form=form),
            )
        case _:
            return None


def _load_file(block: JsonMap) -> Media | None:
    name = block.get("filename")
    name = name if isinstance(name, str) and name else None
    unread = read_extra_fields(block, "type", *(("filename",) if name else ()))
    match block:
        case {"file_data": str(url)}:
            part = _from_url(
                url,
                name,
                OWN.note(
                    read_extra_fields(unread, "file_data"),
                    form={} if name else {"filename": "absent"},
                ),
            )
            return part if isinstance(part, DataPart) else None
        case {"file_url": str(url)}:
            return LinkPart(url, None, name, OWN.note(read_extra_fields(unread, "file_url")))
        case {"file_id": str(file_id)} if name is None:
            return FilePart(
                file_id, native=OWN.note(read_extra_fields(unread, "file_id"), mark=True)
            )
        case _:
            return None


def _load_audio(block: JsonMap) -> Media | None:
    match block.get("input_audio"):
        case {"data": str(text), "format": str(format_)} if (
            data := decode_base64(text)
        ) is not None:
            inner = read_extra_fields(cast("Json", block["input_audio"]), "data", "format")
            unread = {
                **read_extra_fields(block, "type", "input_audio"),
                **({"input_audio": inner} if inner else {}),
            }
            return DataPart(data, _AUDIO.get(format_, f"audio/{format_}"), None, OWN.note(unread))
        case _:
            return None


def _from_url(url: str, name: str | None, native: Any) -> DataPart | LinkPart:
    """A URL → the data in it, or a link where it holds none (or in a way that could not be given
    back)."""
    head, comma, text = url.partition(";base64,")
    if (
        comma
        and head.startswith("data:")
        and head != "data:"
        and (data := decode_base64(text)) is not None
    ):
        return DataPart(data, head[5:], name, native)
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
    """The content of a message item → its pieces, and its form. `usual`: the type of its text
    blocks.

    `full`: the item is one of a response's, and so has `annotations` with each text.
    """
    if isinstance(content, str) and content:
        return [TextPart(content)], {"content": "string"} if full else {}
    if not isinstance(content, list) or not all(
        isinstance(block, dict) for block in cast("list[Any]", content)
    ):
        return [], {"content": content}
    blocks = cast("list[Json]", content)
    if not blocks:
        return [], {"content": []}
    pieces = [_block(block, usual, full=full, from_response=from_response) for block in blocks]
    return pieces, {"content": "list"} if not full and is_plain(blocks) else {}


def dump_content(blocks: list[Json], how: str | None, *, full: bool) -> str | list[Json]:
    """Blocks → the content of a message item: one plain text is a string, unless `how` it was
    written says otherwise or the item is `full`, one of a response's."""
    as_list = not is_plain(blocks) or how == "list" or (full and how != "string")
    return blocks if as_list else blocks[0]["text"]


def is_plain(blocks: list[Json]) -> bool:
    """Whether blocks are a single text that says nothing but itself."""
    return (
        len(blocks) == 1
        and set(blocks[0]) == {"type", "text"}
        and blocks[0]["type"] in ("input_text", "output_text")
    )


def _block(block: JsonMap, usual: str, *, full: bool, from_response: bool) -> Content:
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
    """The fields of a response's item or block that a request may have, and those of the others
    that are not empty."""
    unsent = (*_NEVER_SENT, *_UNSENT.get(str(block.get("type")), ()))
    return read_extra_fields(block, *unsent), {
        key: block[key] for key in unsent if block.get(key) not in ([], None)
    }


def load_reasoning(item: JsonMap, unsent: JsonMap = {}) -> ThinkingPart:
    """A reasoning item → the part. `unsent`: fields that a response has and no request may have."""
    texts = {
        field: found
        for field, kind in REASONING.items()
        if (found := _texts(item.get(field), kind)) is not None
    }
    text = BETWEEN.join([each for found in texts.values() for each in found])
    pieces = {field: [len(each) for each in found] for field, found in texts.items()}
    usual = pieces == ({"summary": [len(text)]} if text else {"summary": []})
    return ThinkingPart(
        text,
        OWN.note(
            read_extra_fields(item, "type", *texts),
            form={} if usual else {"pieces": pieces},
            response=unsent,
        ),
    )


def dump_reasoning(part: ThinkingPart) -> Json:
    """The part → its reasoning item."""
    own_fields = OWN.fields(part.native)
    pieces: Mapping[str, list[int]] = {
        field: [length if type(length) is int else 0 for length in if_list(lengths)]
        for field, lengths in if_object(OWN.form(part.native).get("pieces")).items()
        if field in REASONING
    }
    if not pieces and "summary" not in own_fields:
        pieces = {"summary": [len(part.text)] if part.text else []}
    lengths = [length for of_field in pieces.values() for length in of_field]
    texts = iter(split_joined(part.text, lengths) or [part.text, *("" for _ in lengths)])
    fields = {
        field: [{"type": REASONING[field], "text": next(texts)} for _ in of_field]
        for field, of_field in pieces.items()
    }
    return {"type": "reasoning", **own_fields, **fields}


def is_self_contained(part: ThinkingPart) -> bool:
    """Whether the item can be understood without the provider having stored it."""
    return bool(OWN.fields(part.native).get("encrypted_content"))


def _texts(pieces: Any, kind: str) -> list[str] | None:
    """The texts of such pieces; `None` where they are of another shape, and kept as they are."""
    if not isinstance(pieces, list):
        return None
    texts: list[str] = []
    for piece in cast("list[Any]", pieces):
        match piece:
            case {"type": str(type_), "text": str(text), **others} if type_ == kind and not others:
                texts.append(text)
            case _:
                return None
    return texts


def split_joined(text: str, lengths: Sequence[int]) -> list[str] | None:
    """The text cut into the pieces that it was joined from; `None` where it is not the same text
    any more."""
    out: list[str] = []
    position = 0
    for length in lengths:
        out.append(text[position : position + length])
        position += length + len(BETWEEN)
    return out if BETWEEN.join(out) == text else None
