"""Reads and writes content blocks and thinking: text, images, audio, video and files, each by data,
by URL or by id.

A block becomes a neutral part if that part can give the block back exactly; `READERS` has one
reader for each type of block. Any other block becomes a `ProviderPart`. What a part does not hold
of its block is kept in the part's `native`.

Thinking comes last. It stands in fields of the message: as plain text, or in "details", which are
signed or encrypted. Each becomes a `ThinkingPart`, whose wire form `fields` names the fields that
it came in. A detail's own fields (type, signature, data, id, index, format) are native ones.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from msgspec.structs import replace

from dragoman.codec import message_list
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.media import (
    ELSEWHERE,
    IMAGES,
    decode_base64,
    describe_as_text,
    dump_data_url,
    guess_media_type,
    load_url,
    media_label,
    read_media_text,
)
from dragoman.codec.message_list import ABSENT, dump_content
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
from dragoman.wires.chat.record import DialectRecord, OutgoingChat, Reader

__all__ = [
    "READERS",
    "block_type",
    "lookup_mime_type",
    "dump_block",
    "dump_content",
    "dump_thinking",
    "list_thinking_fields",
    "load_block",
    "load_content",
    "load_detail",
    "load_thinking",
    "find_loss",
    "make_thinking_part",
    "read_text",
    "dump_noted_block",
    "get_detail_text_field",
    "choose_block_type",
    "note_unread_fields",
    "write_block",
]


_DATA_BLOCKS = {
    **dict.fromkeys((*IMAGES, "image/jpg"), "image_url"),
    "audio": "input_audio",
    "application/pdf": "file",
}
"""Media type, or its first half → the type of block for such data."""
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_AUDIO_FORMAT = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_NONE: dict[str, str] = {}


def load_content(chat: DialectRecord, message: JsonMap, empty: object, form: Json) -> list[Content]:
    """Reads the `content` of a message into pieces; see `message_list.load_content`."""
    return message_list.load_content(message, empty, form, lambda block: load_block(chat, block))


def load_block(chat: DialectRecord, block: JsonMap) -> Content:
    """Reads one content block of a Chat message."""
    type_name = str(block.get("type"))
    reader = chat.readers.get(type_name)
    part = reader(chat, type_name, block) if reader else None
    return part or ProviderPart(type_name, {chat.name: dict(block)})


def dump_block(
    chat: DialectRecord, part: Content, blocks: Mapping[str, str] = _NONE
) -> Json | None:
    """Returns the content block of a part, or None if no block holds it.

    `blocks`: media type, or its first half → the type of block for it, beyond the usual ones. Data
    without a block becomes a text that describes it, never its base64.
    """
    native_of = chat.own
    if isinstance(part, ProviderPart):
        if native_of.is_ours(part.native):
            return native_of.fields(part.native)
        return None
    type_name = block_type(chat, part, blocks)
    if not type_name:
        return None
    if type_name == "text" and isinstance(part, (DataPart, LinkPart, FilePart)):
        return {"type": "text", "text": describe_as_text(part)}
    block = chat.write_block(type_name, part, native_of.form(part.native))
    return merge_wire_fields({"type": type_name, **block}, native_of.fields(part.native))


def dump_noted_block(out: OutgoingChat, position: int, index: int, piece: Content) -> Json | None:
    """Returns the content block that is sent for a piece, or None if no block holds it. Notes what
    the block leaves out."""
    block = dump_block(out.chat, piece, out.blocks)
    if block is not None and (loss := find_loss(piece, block)) is not None:
        out.lose(position, index, *loss)
    return block


def find_loss(part: Content, block: JsonMap) -> tuple[Lost, str, str] | None:
    """Returns what the Chat content block of a file leaves out, why, and of which file. None:
    nothing."""
    if not isinstance(part, (DataPart, LinkPart, FilePart)):
        return None
    if block["type"] == "text":
        if read_media_text(part) is not None:
            return None
        why = "the API has no block for it; a text tells of it"
        if isinstance(part, FilePart):
            why = ELSEWHERE
        return name_part_type(part), why, media_label(part)
    sent_names = (
        block.get("document_name"),
        block.get("file_name"),
        if_object(block.get(block["type"])).get("filename"),
    )
    if part.name and part.name not in sent_names:
        return Lost.file_name, f"the API knows no name of such a file, {part.name}", ""
    return None


def block_type(chat: DialectRecord, part: Content, blocks: Mapping[str, str] = _NONE) -> str:
    """Returns the type of the Chat content block that holds a part, or `""` if none does."""
    type_name = if_text(chat.own.form(part.native).get("type"))
    if type_name in chat.readers:
        return type_name
    return chat.choose_block_type(part, blocks)


def choose_block_type(chat: DialectRecord, part: Content, blocks: Mapping[str, str]) -> str:
    """Returns the type of Chat content block for a part that does not remember its own, or `""` if
    none holds it."""
    if isinstance(part, TextPart):
        return "text"
    if isinstance(part, LinkPart):
        return lookup_mime_type(blocks, part.mime_type or "") or "image_url"
    if isinstance(part, DataPart):
        return _choose_data_type(part.mime_type, blocks)
    if isinstance(part, FilePart):
        foreign = chat.own.is_foreign(part.native) and chat.files_of not in (part.native or ())
        return "text" if foreign else "file"
    return ""


def _choose_data_type(mime_type: str, blocks: Mapping[str, str]) -> str:
    """Returns the type of Chat block for data of that media type; `"text"` if no block takes it."""
    usual = lookup_mime_type(_DATA_BLOCKS, mime_type) or "text"
    type_name = lookup_mime_type(blocks, mime_type) or usual
    # The block for audio names its format, and knows two of them.
    if type_name == "input_audio" and mime_type not in _AUDIO_FORMAT:
        return "text"
    return type_name


def lookup_mime_type(table: Mapping[str, str], mime_type: str) -> str | None:
    """Returns the entry of a table for a media type, or for its first half."""
    return table.get(mime_type) or table.get(mime_type.partition("/")[0])


_P = TypeVar("_P", bound=TextPart | DataPart | LinkPart | FilePart | ThinkingPart)


def note_unread_fields(
    chat: DialectRecord,
    type_name: str,
    part: _P,
    fields: JsonMap,
    form: JsonMap = _NONE,
) -> _P:
    """Returns the part with the unread `fields` of its Chat content block as native fields, and
    with the block's type if the part alone would be written as another one."""
    if chat.choose_block_type(part, _NONE) != type_name:
        form = {"type": type_name, **form}
    return replace(part, native=chat.own.note(fields, form, mark=isinstance(part, FilePart)))


def write_block(type_name: str, part: Content, form: JsonMap) -> Json:
    """Returns the fields of a Chat block of that type, beside `type`, for a part."""
    if isinstance(part, TextPart):
        return {type_name: part.text}
    if isinstance(part, FilePart):
        name = {"filename": part.name} if part.name else {}
        return {type_name: {"file_id": part.id, **name}}
    if isinstance(part, LinkPart) and type_name == "file_url":
        return _write_file_url(part.url, part.name)
    if isinstance(part, LinkPart):
        return {type_name: _dump_location(type_name, part.url, part.name)}
    if isinstance(part, DataPart):
        return _write_data(type_name, part, form)
    return {}


def _write_data(type_name: str, part: DataPart, form: JsonMap) -> Json:
    """Returns the fields of a Chat block with inline data, beside `type`."""
    if type_name == "input_audio":
        audio_format = _AUDIO_FORMAT.get(part.mime_type) or part.mime_type.removeprefix("audio/")
        return {type_name: {"data": b64encode(part.data).decode(), "format": audio_format}}
    if type_name == "file_url":
        return _write_file_url(b64encode(part.data).decode(), part.name)
    # Data of a file gets a made-up name, unless it was loaded without one (see `_read_file`).
    made_up_name = "" if "filename" in form else f"file.{part.mime_type.rpartition('/')[2]}"
    return {type_name: _dump_location(type_name, dump_data_url(part), part.name or made_up_name)}


def _write_file_url(url: str, name: str | None) -> Json:
    """Returns the fields of a Chat block `file_url`, beside `type`."""
    return {"file_url": {"url": url}, **({"file_name": name} if name else {})}


def _dump_location(type_name: str, url: str, name: str | None) -> Json:
    """Returns the inner object of a Chat block that refers to something by a URL."""
    if type_name != "file":
        return {"url": url}
    if not name:
        return {"file_data": url}
    return {"filename": name, "file_data": url}


def _read_inner_text(type_name: str, block: JsonMap, field: str) -> tuple[str | None, JsonMap]:
    """Returns a text field of the object inside a block (None if empty), and that object."""
    inner = if_object(block.get(type_name))
    return if_text(inner.get(field)) or None, inner


def _collect_unread_fields(type_name: str, block: JsonMap, inner: JsonMap, *read: str) -> Json:
    """Returns the fields of a Chat block, and of the object inside it, that no reader has used."""
    fields = read_extra_fields(block, "type", type_name)
    if unread_fields := read_extra_fields(inner, *read):
        fields[type_name] = unread_fields
    return fields


def read_text(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a Chat content block that holds a text under the name of its type."""
    text = if_text(block.get(type_name))
    if not text:
        return None
    return note_unread_fields(
        chat, type_name, TextPart(text), read_extra_fields(block, "type", type_name)
    )


def _read_link(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a Chat content block that holds a URL: an image, video or audio."""
    url, inner = _read_inner_text(type_name, block, "url")
    if url is None:
        return None
    fields = _collect_unread_fields(type_name, block, inner, "url")
    return note_unread_fields(chat, type_name, load_url(url), fields)


def _read_file_url(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a Chat content block `file_url`: a link, or without a scheme the base64 of a file, whose
    name tells what it is."""
    url, inner = _read_inner_text(type_name, block, "url")
    if url is None:
        return None
    fields = _collect_unread_fields(type_name, block, inner, "url")
    name = if_text(block.get("file_name")) or None
    if name:
        del fields["file_name"]
    part = LinkPart(url, None, name)
    if ":" not in url and (data := decode_base64(url)) is not None:
        part = DataPart(data, guess_media_type(name or "") or "application/octet-stream", name)
    return note_unread_fields(chat, type_name, part, fields)


def _read_file(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a Chat content block `file`: an id or data, with a name."""
    file_id, inner = _read_inner_text(type_name, block, "file_id")
    url, _ = _read_inner_text(type_name, block, "file_data")
    name, _ = _read_inner_text(type_name, block, "filename")
    read = ["filename"] if name else []
    if file_id is not None:
        fields = _collect_unread_fields(type_name, block, inner, "file_id", *read)
        return note_unread_fields(chat, type_name, FilePart(file_id, name=name), fields)
    if url is None:
        return None
    part = load_url(url, name)
    fields = _collect_unread_fields(type_name, block, inner, "file_data", *read)
    # Without this note, `write_block` would make up a name for the data.
    form: JsonMap = {"filename": ABSENT}
    # Only data gets a made-up name.
    if name or isinstance(part, LinkPart):
        form = {}
    return note_unread_fields(chat, type_name, part, fields, form)


def _read_audio(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a Chat content block `input_audio`: base64 and a format."""
    text, inner = _read_inner_text(type_name, block, "data")
    audio_format, _ = _read_inner_text(type_name, block, "format")
    if audio_format is None or text is None or (data := decode_base64(text)) is None:
        return None
    part = DataPart(data, _AUDIO.get(audio_format, f"audio/{audio_format}"))
    fields = _collect_unread_fields(type_name, block, inner, "data", "format")
    return note_unread_fields(chat, type_name, part, fields)


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "text": read_text,
        "file": _read_file,
        "input_audio": _read_audio,
        "image_url": _read_link,
        "video_url": _read_link,
        "audio_url": _read_link,
        "file_url": _read_file_url,
    }
)
"""Type of block → its reader. These are the types that most vendors know."""


# thinking


def get_detail_text_field(detail_type: object) -> str:
    """Returns the field in which a reasoning detail of that type (Chat Completions content) holds
    its text."""
    if detail_type == "reasoning.summary":
        return "summary"
    return "text"


def _load_details(
    chat: DialectRecord, entries: list[Json], fields_by_text: dict[str, list[str]]
) -> list[ThinkingPart]:
    """Reads the list of thinking details in Chat content. Plain fields that hold the same text as
    all of them are taken out of `fields_by_text` and noted with the details."""
    details = [load_detail(chat, entry) for entry in entries]
    # OpenRouter repeats the text of the details in a plain field.
    detail_text = "".join(part.text for part in details)
    if details and (same_fields := fields_by_text.pop(detail_text, None)):
        return [load_detail(chat, entry, [*same_fields, chat.details]) for entry in entries]
    return details


def load_thinking(
    chat: DialectRecord, message: JsonMap
) -> tuple[list[ThinkingPart], tuple[str, ...]]:
    """Reads the thinking in a Chat message's content. Returns its parts and the fields that hold
    it. Fields that hold the same text become one part."""
    entries = if_objects(message.get(chat.details)) if chat.details else []
    read = [
        field for field in chat.thinking if isinstance(message.get(field), str) and message[field]
    ]
    fields_by_text: dict[str, list[str]] = {}
    for field in read:
        fields_by_text.setdefault(message[field], []).append(field)
    details = _load_details(chat, entries, fields_by_text)
    plain = [make_thinking_part(chat, fields, text) for text, fields in fields_by_text.items()]
    if details:
        read.append(chat.details)
    return plain + details, tuple(read)


def make_thinking_part(chat: DialectRecord, fields: Sequence[str], text: str = "") -> ThinkingPart:
    """Returns thinking that came as plain text in these fields of Chat content."""
    usual = [*fields] == [chat.thinking[0]]
    form = None if usual else {"fields": [*fields]}
    return ThinkingPart(text, chat.own.note(form=form))


def load_detail(chat: DialectRecord, entry: JsonMap, fields: Sequence[str] = ()) -> ThinkingPart:
    """Reads one detail of thinking in Chat content. `fields`: the fields that hold the same
    text."""
    key = get_detail_text_field(entry.get("type"))
    text = if_text(entry.get(key))
    fields_left = read_extra_fields(entry, key) if text else dict(entry)
    if not fields and not fields_left:
        fields = [chat.details]
    form = {"fields": list(fields)} if fields else None
    return ThinkingPart(text, chat.own.note(fields_left, form))


def list_thinking_fields(
    chat: DialectRecord, part: ThinkingPart, note: str = "fields"
) -> list[str]:
    """Returns the fields of a Chat message that a thinking part came in, if it remembers them.

    The note `again` lists the fields in which a response repeated a detail's text. A request does
    not repeat it.
    """
    noted_fields = if_list(chat.own.form(part.native).get(note))
    return [field for field in noted_fields if field in (*chat.thinking, chat.details)]


def _choose_thinking_fields(
    chat: DialectRecord, part: ThinkingPart, default: str | None
) -> Sequence[str | None]:
    """Returns the fields to write thinking in: those that it came in, else one by its content."""
    noted_fields = [*list_thinking_fields(chat, part)]
    if noted_fields:
        return noted_fields
    # Own fields of a part, as a signature, have room only in the list of details.
    if chat.own.fields(part.native) and chat.details:
        return [chat.details]
    return [default]


def _dump_detail(part: ThinkingPart, detail_fields: JsonMap) -> Json:
    """Writes thinking as a Chat entry of the list of details. `detail_fields`: its own fields."""
    text_field = get_detail_text_field(detail_fields.get("type"))
    text = {text_field: part.text} if part.text else {}
    return merge_wire_fields(text, detail_fields)


def dump_thinking(
    chat: DialectRecord,
    parts: Sequence[ThinkingPart],
    default: str | None,
    joined: list[int] | None = None,
) -> Json:
    """Returns the fields of a Chat message that hold the thinking in its content.

    `default`: the field for parts that came in none of this format's; None leaves them out.
    `joined` collects the indexes of the parts whose text was added to that of an earlier part.
    """
    out: Json = {}
    for number, part in enumerate(parts):
        detail_fields = chat.own.fields(part.native)
        for field in _choose_thinking_fields(chat, part, default):
            if field and field == chat.details:
                out.setdefault(field, []).append(_dump_detail(part, detail_fields))
            elif field is not None and part.text:
                if joined is not None and field in out and number not in joined:
                    joined.append(number)
                out[field] = out.get(field, "") + part.text
    return out
