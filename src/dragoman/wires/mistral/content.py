"""Reads and writes content chunks that differ from the family's blocks: thinking, images,
documents, audio and files.

The thinking of a chunk is a list of texts and of references to sources. Usually it is one text.
Otherwise the wire form `items` keeps the list: the length of each text, and every other item as it
is. `_dump_items` cuts the text by these lengths again.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, read_extra_fields
from dragoman.codec.media import (
    IMAGES,
    audio_type,
    decode_base64,
    dump_data_url,
    guess_media_type,
    load_url,
)
from dragoman.codec.message_list import plain_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, DataPart, FilePart, LinkPart, Role, TextPart, ThinkingPart
from dragoman.wires.chat import content
from dragoman.wires.chat.content import note_unread_fields, read_text
from dragoman.wires.chat.record import DialectRecord, OutgoingChat
from dragoman.wires.mistral.quirks import OWN

__all__ = ["BLOCKS", "dump_noted_block", "choose_block_type", "write_block"]

_CHUNK_TYPES = {
    "image": "image_url",
    "audio": "input_audio",
    "application": "document_url",
    "text": "document_url",
}
"""First half of a media type → the chunk for it. Other data is sent as text."""


def choose_block_type(
    chat: DialectRecord,  # noqa: ARG001 as of a method
    part: Content,
    blocks: Mapping[str, str],  # noqa: ARG001 here no vendor has further ones
) -> str:
    """Returns the type of chunk for a part that does not remember its own, or `""` if none holds
    it."""
    if isinstance(part, TextPart):
        return "text"
    if isinstance(part, ThinkingPart):
        return "thinking"
    if isinstance(part, FilePart):
        if OWN.is_foreign(part.native):
            return "text"
        return "file"
    if isinstance(part, LinkPart):
        mime_type = part.mime_type or guess_media_type(part.url) or "image/*"
        return content.lookup_mime_type(_CHUNK_TYPES, mime_type) or "text"
    if isinstance(part, DataPart):
        return _choose_data_type(part.mime_type)
    return ""


def _choose_data_type(mime_type: str) -> str:
    """Returns the type of chunk for data of that media type; `"text"` if none takes it."""
    # Unknown bytes are no document, although their media type begins like that of one.
    if mime_type == "application/octet-stream":
        return "text"
    type_name = content.lookup_mime_type(_CHUNK_TYPES, mime_type) or "text"
    if type_name == "image_url" and mime_type not in IMAGES:
        return "text"
    return type_name


def write_block(type_name: str, part: Content, form: JsonMap) -> Json:
    """Returns the fields of a chunk of that type, beside `type`, for a part."""
    if isinstance(part, ThinkingPart):
        return {"thinking": _dump_items(part.text, form.get("items"))}
    if isinstance(part, FilePart):
        return {"file_id": part.id}
    if not isinstance(part, (LinkPart, DataPart)):
        return content.write_block(type_name, part, form)
    url_form = form.get("url")
    if isinstance(part, LinkPart):
        url = part.url
    elif type_name == "input_audio" and url_form != "data":
        url = b64encode(part.data).decode()
    else:
        url = dump_data_url(part)
    if type_name == "image_url" and url_form != "string":
        return {type_name: {"url": url}}
    if type_name == "document_url" and part.name:
        return {type_name: url, "document_name": part.name}
    return {type_name: url}


def dump_noted_block(out: OutgoingChat, position: int, index: int, piece: Content) -> Json | None:
    """Returns the chunk that is sent for a piece, or None. Thinking goes into the model's messages,
    and into those from which it was loaded, such as a system prompt that shows how to think."""
    of_model = out.messages[position].role is Role.MODEL
    if isinstance(piece, ThinkingPart) and not of_model and "here" not in OWN.form(piece.native):
        return None
    return content.dump_noted_block(out, position, index, piece)


def _read_image(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a chunk `image_url`: a URL, alone or in an object."""
    value, fields = block.get(type_name), read_extra_fields(block, "type", type_name)
    if isinstance(value, str) and value:
        return note_unread_fields(chat, type_name, load_url(value), fields, {"url": "string"})
    image = if_object(value)
    url = if_text(image.get("url"))
    if not url:
        return None
    if inner := read_extra_fields(image, "url"):
        fields[type_name] = inner
    return note_unread_fields(chat, type_name, load_url(url), fields)


def _read_document(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a chunk `document_url`, with its name."""
    url, name = if_text(block.get(type_name)), if_text(block.get("document_name"))
    if not url:
        return None
    read = ("document_name",) if name else ()
    fields = read_extra_fields(block, "type", type_name, *read)
    return note_unread_fields(chat, type_name, load_url(url, name or None), fields)


def _read_audio(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a chunk `input_audio`: a URL or base64."""
    text, fields = if_text(block.get(type_name)), read_extra_fields(block, "type", type_name)
    # A colon is in every URL and in no base64.
    if ":" in text:
        part = load_url(text)
        form = {"url": "data"} if isinstance(part, DataPart) else {}
        return note_unread_fields(chat, type_name, part, fields, form)
    data = decode_base64(text)
    if not data:
        return None
    part = DataPart(data, audio_type(data) or "audio/mpeg")
    return note_unread_fields(chat, type_name, part, fields)


def _read_file(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads Mistral's chunk `file`, which holds an id."""
    file_id = if_text(block.get("file_id"))
    if not file_id:
        return None
    return note_unread_fields(
        chat, type_name, FilePart(file_id), read_extra_fields(block, "type", "file_id")
    )


def _read_thinking(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    """Reads a chunk `thinking`: a text or a list of texts."""
    value, fields = block.get("thinking"), read_extra_fields(block, "type", "thinking")
    if isinstance(value, str):
        part = ThinkingPart(value)
        return note_unread_fields(chat, type_name, part, fields, {"items": "string"})
    entries = if_objects(value)
    if not isinstance(value, list) or (value and not entries):
        return None
    texts = [plain_text(entry) for entry in entries]
    items = [len(text) if text else entry for text, entry in zip(texts, entries, strict=True)]
    usual = len(items) == 1 and texts[0] is not None
    part = ThinkingPart("".join(filter(None, texts)))
    return note_unread_fields(chat, type_name, part, fields, {} if usual else {"items": items})


def _dump_items(text: str, items: Any) -> str | list[Any]:
    """Writes thinking as the list that `items` describes. A text that was edited becomes one
    item."""
    if items == "string":
        return text
    # Lengths that do not add up to the text are those of another one: it was edited.
    if items is None or sum(item for item in if_list(items) if isinstance(item, int)) != len(text):
        if text:
            return [{"type": "text", "text": text}]
        return []
    return _divide(text, if_list(items))


def _divide(text: str, items: Sequence[Any]) -> list[Any]:
    """Cuts a text by the lengths among the items."""
    divided: list[Any] = []
    for item in items:
        if isinstance(item, int):
            divided.append({"type": "text", "text": text[:item]})
            text = text[item:]
        else:
            divided.append(item)
    return divided


BLOCKS = {
    "text": read_text,
    "thinking": _read_thinking,
    "image_url": _read_image,
    "document_url": _read_document,
    "input_audio": _read_audio,
    "file": _read_file,
}
"""Type of a content chunk → its reader."""
