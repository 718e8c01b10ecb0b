"""Content blocks ⇄ parts: text, images, audio, video, files; by data, by URL, by id.

A block without a neutral shape, and one that its neutral part would not give back exactly, is a
`ProviderPart`. Last come a model's thoughts in fields of the message ⇄ `ThinkingPart`: plain text,
and details (signed, encrypted). A part knows the fields that it came in (wire form `fields`); a
detail's own fields (type, signature, data, id, index, format) are its native ones.
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
    load_url,
    media_label,
    read_media_text,
)
from dragoman.codec.message_list import ABSENT, dump_content
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
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_AUDIO_FORMAT = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_NONE: dict[str, str] = {}


def load_content(chat: DialectRecord, message: JsonMap, empty: object, form: Json) -> list[Content]:
    """The `content` of a message → its pieces; see `message_list.load_content`."""
    return message_list.load_content(message, empty, form, lambda block: load_block(chat, block))


def load_block(chat: DialectRecord, block: JsonMap) -> Content:
    """A content block → the part that it is."""
    type_name = str(block.get("type"))
    reader = chat.readers.get(type_name)
    return (reader(chat, type_name, block) if reader else None) or ProviderPart(
        type_name, {chat.name: dict(block)}
    )


def dump_block(
    chat: DialectRecord, part: Content, blocks: Mapping[str, str] = _NONE
) -> Json | None:
    """A part → the content block that holds it; `None` where there is none. `blocks`: media type,
    or its first half → the type of block that carries it, beyond the usual ones.

    For data of a kind that has no block stands a text, never its base64.
    """
    native_of = chat.own
    if isinstance(part, ProviderPart):
        return native_of.fields(part.native) if native_of.is_ours(part.native) else None
    type_name = block_type(chat, part, blocks)
    if not type_name:
        return None
    if type_name == "text" and isinstance(part, (DataPart, LinkPart, FilePart)):
        return {"type": "text", "text": describe_as_text(part)}
    return merge_wire_fields(
        {"type": type_name, **chat.write_block(type_name, part, native_of.form(part.native))},
        native_of.fields(part.native),
    )


def dump_noted_block(out: OutgoingChat, position: int, index: int, piece: Content) -> Json | None:
    """A piece → the block under which it is sent; `None` where there is none. What it does not hold
    is noted."""
    block = dump_block(out.chat, piece, out.blocks)
    if block is not None and (what := find_loss(piece, block)) is not None:
        out.lose(position, index, *what)
    return block


def find_loss(part: Content, block: JsonMap) -> tuple[Lost, str, str] | None:
    """What of a file its block does not hold, why, and which one."""
    if not isinstance(part, (DataPart, LinkPart, FilePart)):
        return None
    if block["type"] == "text":
        if read_media_text(part) is not None:
            return None
        elsewhere = isinstance(part, FilePart)
        return (
            name_part_type(part),
            ELSEWHERE if elsewhere else "the API has no block for it; a text tells of it",
            media_label(part),
        )
    if part.name and part.name not in (
        block.get("document_name"),
        if_object(block.get(block["type"])).get("filename"),
    ):
        return Lost.file_name, f"the API knows no name of such a file, {part.name}", ""
    return None


def block_type(chat: DialectRecord, part: Content, blocks: Mapping[str, str] = _NONE) -> str:
    """The type of the block that holds a part; empty where none does."""
    type_name = if_text(chat.own.form(part.native).get("type"))
    return type_name if type_name in chat.readers else chat.choose_block_type(part, blocks)


def choose_block_type(chat: DialectRecord, part: Content, blocks: Mapping[str, str]) -> str:
    """The same, where the part does not tell in which type of block it came."""
    if isinstance(part, LinkPart):
        return lookup_mime_type(blocks, part.mime_type or "") or "image_url"
    if isinstance(part, DataPart):
        type_name = (
            lookup_mime_type(blocks, part.mime_type)
            or lookup_mime_type(_DATA_BLOCKS, part.mime_type)
            or "text"
        )
        return (
            "text"
            if type_name == "input_audio" and part.mime_type not in _AUDIO_FORMAT
            else type_name
        )
    if isinstance(part, FilePart):
        foreign = chat.own.is_foreign(part.native) and chat.files_of not in (part.native or ())
        return "text" if foreign else "file"
    return "text" if isinstance(part, TextPart) else ""


def lookup_mime_type(table: Mapping[str, str], mime_type: str) -> str | None:
    """What a table has for a media type, or for its first half."""
    return table.get(mime_type) or table.get(mime_type.partition("/")[0])


_P = TypeVar("_P", bound=TextPart | DataPart | LinkPart | FilePart | ThinkingPart)


def note_unread_fields(
    chat: DialectRecord,
    type_name: str,
    part: _P,
    fields: JsonMap,
    form: JsonMap = _NONE,
) -> _P:
    """The part with what is left of its block, and with the block's type where the part alone would
    not tell it."""
    form = form if chat.choose_block_type(part, _NONE) == type_name else {"type": type_name, **form}
    return replace(part, native=chat.own.note(fields, form, mark=isinstance(part, FilePart)))


def write_block(type_name: str, part: Content, form: JsonMap) -> Json:
    """What the block of that type holds of a part."""
    if isinstance(part, TextPart):
        return {type_name: part.text}
    if isinstance(part, FilePart):
        return {type_name: {"file_id": part.id, **({"filename": part.name} if part.name else {})}}
    if isinstance(part, LinkPart):
        return {type_name: _dump_location(type_name, part.url, part.name)}
    if not isinstance(part, DataPart):
        return {}
    if type_name == "input_audio":
        audio_format = _AUDIO_FORMAT.get(part.mime_type) or part.mime_type.removeprefix("audio/")
        return {type_name: {"data": b64encode(part.data).decode(), "format": audio_format}}
    url = b64encode(part.data).decode() if type_name == "file_url" else dump_data_url(part)
    made_up = "" if "filename" in form else f"file.{part.mime_type.rpartition('/')[2]}"
    return {type_name: _dump_location(type_name, url, part.name or made_up)}


def _dump_location(type_name: str, url: str, name: str | None) -> Json:
    if type_name != "file":
        return {"url": url}
    return {"filename": name, "file_data": url} if name else {"file_data": url}


def _read_inner_text(type_name: str, block: JsonMap, field: str) -> tuple[str | None, JsonMap]:
    """The object inside a block, and that field of it where it is a text that is not empty."""
    inner = if_object(block.get(type_name))
    return if_text(inner.get(field)) or None, inner


def _collect_unread_fields(type_name: str, block: JsonMap, inner: JsonMap, *read: str) -> Json:
    unread_fields = read_extra_fields(inner, *read)
    return {
        **read_extra_fields(block, "type", type_name),
        **({type_name: unread_fields} if unread_fields else {}),
    }


def read_text(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """A block that holds a text under the name of its type."""
    text = if_text(block.get(type_name))
    return (
        note_unread_fields(
            chat, type_name, TextPart(text), read_extra_fields(block, "type", type_name)
        )
        if text
        else None
    )


def _read_link(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    url, inner = _read_inner_text(type_name, block, "url")
    if url is None:
        return None
    part = LinkPart(url) if type_name == "file_url" else load_url(url)
    # a `file_url` without a scheme is the base64 of a file
    if type_name == "file_url" and ":" not in url and (data := decode_base64(url)) is not None:
        part = DataPart(data, "application/octet-stream")
    return note_unread_fields(
        chat, type_name, part, _collect_unread_fields(type_name, block, inner, "url")
    )


def _read_file(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    file_id, inner = _read_inner_text(type_name, block, "file_id")
    url, _ = _read_inner_text(type_name, block, "file_data")
    name, _ = _read_inner_text(type_name, block, "filename")
    read = ("filename",) if name else ()
    if file_id is not None:
        return note_unread_fields(
            chat,
            type_name,
            FilePart(file_id, name=name),
            _collect_unread_fields(type_name, block, inner, "file_id", *read),
        )
    if url is None:
        return None
    part, fields = (
        load_url(url, name),
        _collect_unread_fields(type_name, block, inner, "file_data", *read),
    )
    return note_unread_fields(
        chat,
        type_name,
        part,
        fields,
        {} if name or isinstance(part, LinkPart) else {"filename": ABSENT},
    )


def _read_audio(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    text, inner = _read_inner_text(type_name, block, "data")
    audio_format, _ = _read_inner_text(type_name, block, "format")
    if audio_format is None or text is None or (data := decode_base64(text)) is None:
        return None
    part = DataPart(data, _AUDIO.get(audio_format, f"audio/{audio_format}"))
    return note_unread_fields(
        chat, type_name, part, _collect_unread_fields(type_name, block, inner, "data", "format")
    )


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "text": read_text,
        "file": _read_file,
        "input_audio": _read_audio,
        "image_url": _read_link,
        "video_url": _read_link,
        "audio_url": _read_link,
        "file_url": _read_link,
    }
)
"""The types of blocks that most vendors know."""


# thinking


def get_detail_text_field(detail_type: object) -> str:
    """The field of a detail that holds its text."""
    return "summary" if detail_type == "reasoning.summary" else "text"


def load_thinking(
    chat: DialectRecord, message: JsonMap
) -> tuple[list[ThinkingPart], tuple[str, ...]]:
    """A message's thinking, and the fields that hold it. Fields that hold the same are one
    thinking."""
    entries = if_objects(message.get(chat.details)) if chat.details else []
    read = [
        field for field in chat.thinking if isinstance(message.get(field), str) and message[field]
    ]
    texts: dict[str, list[str]] = {}
    for field in read:
        texts.setdefault(message[field], []).append(field)
    details = [load_detail(chat, entry) for entry in entries]
    if details and (same := texts.pop("".join(part.text for part in details), None)):
        details = [load_detail(chat, entry, [*same, chat.details]) for entry in entries]
    plain = [make_thinking_part(chat, fields, text) for text, fields in texts.items()]
    return plain + details, (*read, *((chat.details,) if details else ()))


def make_thinking_part(chat: DialectRecord, fields: Sequence[str], text: str = "") -> ThinkingPart:
    """Thinking that came as text in these fields."""
    return ThinkingPart(
        text, chat.own.note(form=None if [*fields] == [chat.thinking[0]] else {"fields": [*fields]})
    )


def load_detail(chat: DialectRecord, entry: JsonMap, fields: Sequence[str] = ()) -> ThinkingPart:
    """One of the details. `fields`: those that hold the same text."""
    key = get_detail_text_field(entry.get("type"))
    text = if_text(entry.get(key))
    fields_left = read_extra_fields(entry, key) if text else dict(entry)
    fields = fields or ([] if fields_left else [chat.details])
    return ThinkingPart(
        text, chat.own.note(fields_left, {"fields": list(fields)} if fields else None)
    )


def list_thinking_fields(
    chat: DialectRecord, part: ThinkingPart, note: str = "fields"
) -> list[str]:
    """The fields that a part came in, where that is noted. Note `again`: those in which a response
    held a detail's text a second time; a request does not."""
    return [
        field
        for field in if_list(chat.own.form(part.native).get(note))
        if field in (*chat.thinking, chat.details)
    ]


def dump_thinking(
    chat: DialectRecord,
    parts: Sequence[ThinkingPart],
    default: str | None,
    joined: list[int] | None = None,
) -> Json:
    """Thinking → the fields that carry it. `default`: the field for what came in none of ours;
    `None`: leave it out. `joined` takes which parts were added to the text of those before them."""
    out: Json = {}
    for number, part in enumerate(parts):
        detail_fields = chat.own.fields(part.native)
        for field in list_thinking_fields(chat, part) or (
            [chat.details] if detail_fields and chat.details else [default]
        ):
            if field and field == chat.details:
                text = (
                    {get_detail_text_field(detail_fields.get("type")): part.text}
                    if part.text
                    else {}
                )
                out.setdefault(field, []).append(merge_wire_fields(text, detail_fields))
            elif field is not None and part.text:
                if joined is not None and field in out and number not in joined:
                    joined.append(number)
                out[field] = out.get(field, "") + part.text
    return out
