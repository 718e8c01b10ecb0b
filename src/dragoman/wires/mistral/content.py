"""Content chunks ⇄ parts, where they are other than the family's blocks: thinking, images,
documents, audio, files.

A chunk's thinking is a list of texts and of references to sources. One text is the usual; what else
there is stands in the wire form `items`: for each text its length, and every other item itself.
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

_KINDS = {
    "image": "image_url",
    "audio": "input_audio",
    "application": "document_url",
    "text": "document_url",
}
"""First half of a media type → the chunk that carries it. Other data is sent as text."""


def choose_block_type(
    chat: DialectRecord,  # noqa: ARG001 as of a method
    part: Content,
    blocks: Mapping[str, str],  # noqa: ARG001 here no vendor has further ones
) -> str:
    """The type of the chunk that holds a part; empty where none does."""
    if isinstance(part, LinkPart):
        return (
            content.lookup_mime_type(
                _KINDS, part.mime_type or guess_media_type(part.url) or "image/*"
            )
            or "text"
        )
    if isinstance(part, DataPart):
        type_name = (
            content.lookup_mime_type(_KINDS, part.mime_type)
            if part.mime_type != "application/octet-stream"
            else None
        )
        return (
            type_name
            if type_name and (type_name != "image_url" or part.mime_type in IMAGES)
            else "text"
        )
    if isinstance(part, FilePart):
        return "text" if OWN.is_foreign(part.native) else "file"
    if isinstance(part, ThinkingPart):
        return "thinking"
    return "text" if isinstance(part, TextPart) else ""


def write_block(type_name: str, part: Content, form: JsonMap) -> Json:
    """What the chunk of that type holds of a part."""
    if isinstance(part, ThinkingPart):
        return {"thinking": _dump_items(part.text, form.get("items"))}
    if isinstance(part, FilePart):
        return {"file_id": part.id}
    if not isinstance(part, (LinkPart, DataPart)):
        return content.write_block(type_name, part, form)
    url_form = form.get("url")
    if isinstance(part, LinkPart):
        url = part.url
    else:
        url = (
            b64encode(part.data).decode()
            if type_name == "input_audio" and url_form != "data"
            else dump_data_url(part)
        )
    named = {"document_name": part.name} if type_name == "document_url" and part.name else {}
    return {
        type_name: {"url": url} if type_name == "image_url" and url_form != "string" else url,
        **named,
    }


def dump_noted_block(out: OutgoingChat, position: int, index: int, piece: Content) -> Json | None:
    """A piece → the chunk under which it is sent. Thinking stands in the model's messages, and in
    those from which it was loaded, such as a system prompt that shows how to think."""
    elsewhere = out.messages[position].role is not Role.MODEL and "here" not in OWN.form(
        piece.native
    )
    if isinstance(piece, ThinkingPart) and elsewhere:
        return None
    return content.dump_noted_block(out, position, index, piece)


def _read_image(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    value, fields_left = block.get(type_name), read_extra_fields(block, "type", type_name)
    if isinstance(value, str) and value:
        return note_unread_fields(chat, type_name, load_url(value), fields_left, {"url": "string"})
    if not (url := if_text(if_object(value).get("url"))):
        return None
    inner = read_extra_fields(if_object(value), "url")
    return note_unread_fields(
        chat, type_name, load_url(url), {**fields_left, **({type_name: inner} if inner else {})}
    )


def _read_document(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    url, name = if_text(block.get(type_name)), if_text(block.get("document_name"))
    read = ("document_name",) if name else ()
    return (
        note_unread_fields(
            chat,
            type_name,
            load_url(url, name or None),
            read_extra_fields(block, "type", type_name, *read),
        )
        if url
        else None
    )


def _read_audio(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    text, fields_left = if_text(block.get(type_name)), read_extra_fields(block, "type", type_name)
    if ":" in text:
        part = load_url(text)
        return note_unread_fields(
            chat,
            type_name,
            part,
            fields_left,
            {"url": "data"} if isinstance(part, DataPart) else {},
        )
    data = decode_base64(text)
    return (
        note_unread_fields(
            chat, type_name, DataPart(data, audio_type(data) or "audio/mpeg"), fields_left
        )
        if data
        else None
    )


def _read_file(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    file_id = if_text(block.get("file_id"))
    return (
        note_unread_fields(
            chat, type_name, FilePart(file_id), read_extra_fields(block, "type", "file_id")
        )
        if file_id
        else None
    )


def _read_thinking(chat: DialectRecord, type_name: str, block: JsonMap) -> Content | None:
    value, fields_left = block.get("thinking"), read_extra_fields(block, "type", "thinking")
    if isinstance(value, str):
        return note_unread_fields(
            chat, type_name, ThinkingPart(value), fields_left, {"items": "string"}
        )
    if not isinstance(value, list) or (value and not if_objects(value)):
        return None
    texts = [plain_text(item) for item in if_objects(value)]
    items = [
        len(text) if text else item for text, item in zip(texts, if_objects(value), strict=True)
    ]
    usual = len(items) == 1 and texts[0] is not None
    return note_unread_fields(
        chat,
        type_name,
        ThinkingPart("".join(filter(None, texts))),
        fields_left,
        {} if usual else {"items": items},
    )


def _dump_items(text: str, items: Any) -> str | list[Any]:
    """The inverse. Where the text is another than the one that came, it is one text."""
    if items == "string":
        return text
    # Lengths that do not add up to the text are those of another one: it was edited.
    if items is None or sum(item for item in if_list(items) if isinstance(item, int)) != len(text):
        return [{"type": "text", "text": text}] if text else []
    return _divide(text, if_list(items))


def _divide(text: str, items: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if isinstance(item, int):
            out.append({"type": "text", "text": text[:item]})
            text = text[item:]
        else:
            out.append(item)
    return out


BLOCKS = {
    "text": read_text,
    "thinking": _read_thinking,
    "image_url": _read_image,
    "document_url": _read_document,
    "input_audio": _read_audio,
    "file": _read_file,
}
"""Type of a content chunk → how it is loaded."""
