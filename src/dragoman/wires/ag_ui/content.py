"""The parts of a user's message and of a tool's result. What a part of theirs has no field for is
in its metadata."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.json_difference import apply_difference, find_difference
from dragoman.codec.json_values import (
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.media import decode_base64
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, DataPart, FilePart, LinkPart, TextPart
from dragoman.wires.ag_ui.quirks import OWN, add_extras, app_metadata, load_extras, load_native

__all__ = ["dump_block", "dump_content", "load_block", "load_content"]

Block = TextPart | DataPart | LinkPart | FilePart
Media = DataPart | LinkPart | FilePart
_MEDIA_TYPES = ("image", "audio", "video")
_MEDIA = frozenset([*_MEDIA_TYPES, "document"])
_NAME = "filename"
_UNTYPED = "application/octet-stream"


def load_content(content: Any, form: Json) -> list[Content]:
    """Returns the pieces in the field `content`.

    Args:
        content: a text, a list of parts, or None.
        form: takes a note if a single text was written as a list.

    Raises:
        HistoryError: the content is neither a text nor a list of parts.
    """
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    blocks = if_objects(content)
    if content != [] and not blocks:
        raise HistoryError("the content of an AG-UI message is a text or a list of parts")
    pieces = [load_block(block) for block in blocks]
    # one plain text in a list is usually no list: remember that it was
    if len(pieces) < 2 and all(_is_plain(piece) for piece in pieces):
        form["content"] = "list"
    return [piece for piece in pieces if piece is not None]


def _is_plain(piece: Block | None) -> bool:
    """True for a text without fields of its own."""
    return type(piece) is TextPart and piece.native is None and not piece.citations


def dump_content(pieces: Sequence[Block], form: JsonMap = {}, *, extras: bool = True) -> Any:
    """Returns the field `content` of an AG-UI message: a text for one plain text, a list for
    anything else.

    Args:
        pieces: the content.
        form: note of how it was read.
        extras: False to leave out what the protocol has no field for.
    """
    is_list = form.get("content") == "list"
    if not pieces:
        return [] if is_list else ""
    first = pieces[0]
    # older peers read texts alone, so one plain text is sent as such
    if len(pieces) == 1 and not is_list and type(first) is TextPart and not first.native:
        return first.text
    return [dump_block(piece, extras=extras) for piece in pieces]


def load_block(block: JsonMap) -> Block | None:
    """Returns the piece in an AG-UI part, or None for an empty text.

    Raises:
        HistoryError: the part has an unknown type or no source.
    """
    piece = _read(block)
    if piece is None:
        return None
    return apply_difference(piece, load_extras(block.get("metadata")), Block)


def dump_block(piece: Block, *, extras: bool = True) -> Json:
    """Returns a part for a piece. `extras=False` leaves out what AG-UI has no field for."""
    block = _write(piece)
    read = _read(block)
    if extras and read is not None:
        difference = find_difference(piece, read)
    else:
        difference = {}
    return add_extras(block, difference)


def _read(block: JsonMap) -> Block | None:
    """Returns the piece in a part as the protocol defines it, or None for an empty text."""
    block_type = block.get("type")
    if block_type == "text":
        text = if_text(block.get("text"))
        if text:
            return TextPart(text, load_native(block, "type", "text"))
        return None
    if block_type == "binary":
        return _read_binary(block)
    if not isinstance(block_type, str) or block_type not in _MEDIA:
        raise HistoryError(
            f"AG-UI has no part of type {block_type!r:.100}; it has text, image, audio, video and document"
        )
    return _read_media(block_type, block)


def _read_media(block_type: str, block: JsonMap) -> Media:
    """Returns an AG-UI media part: bytes, a URL or a file's id."""
    source = if_object(block.get("source"))
    name = if_text(app_metadata(block.get("metadata")).get(_NAME)) or None
    unread: JsonMap | None = read_extra_fields(source, "type", "value", "mimeType") or None
    part = _read_source(source, name)
    if part is None:
        # no base64 after all, or a source of another kind: keep the whole of it
        mime_type, value = if_text(source.get("mimeType")), if_text(source.get("value"))
        part = LinkPart(f"data:{mime_type};base64,{value}", mime_type or None, name)
        unread = source
    native = _media_native(block, name, unread)
    form: Json = {}
    if block_type != _media_type(part):
        form["type"] = block_type
    return replace(part, native=OWN.note(native, form))


def _read_source(source: JsonMap, name: str | None) -> Media | None:
    """Returns the media in a source of AG-UI content, or None if it is no valid source."""
    mime_type, value = if_text(source.get("mimeType")) or None, if_text(source.get("value"))
    source_type = source.get("type")
    if source_type == "file":
        return FilePart(value, mime_type, name)
    if source_type == "url":
        return LinkPart(value, mime_type, name)
    if source_type == "data" and (data := decode_base64(value)) is not None:
        return DataPart(data, mime_type or _UNTYPED, name)
    return None


def _media_native(block: JsonMap, name: str | None, source: JsonMap | None) -> Json:
    """Returns the fields of an AG-UI media part that are not neutral.

    Args:
        block: the part.
        name: the file's name, if the part has one.
        source: fields of its source that are not neutral, if it has some.
    """
    native = read_extra_fields(block, "type", "metadata", "source", *([_NAME] if name else []))
    metadata = app_metadata(block.get("metadata"))
    if name:
        metadata.pop(_NAME)
    if metadata:
        native["metadata"] = metadata
    if source is not None:
        native["source"] = dict(source)
    return native


def _read_binary(block: JsonMap) -> Block:
    """Returns a media part of versions before 1.0: bytes, a URL or a file's id.

    Raises:
        HistoryError: it has none of them.
    """
    mime_type, name = if_text(block.get("mimeType")) or None, if_text(block.get("filename")) or None
    text = block.get("data")
    if isinstance(text, str) and (data := decode_base64(text)) is not None:
        return DataPart(data, mime_type or _UNTYPED, name)
    if isinstance(url := block.get("url"), str):
        return LinkPart(url, mime_type, name)
    if isinstance(id_ := block.get("id"), str):
        return FilePart(id_, mime_type, name)
    raise HistoryError("a binary part of AG-UI has data in base64, a url or an id")


def _write(piece: Block) -> Json:
    """Returns a part as AG-UI defines it."""
    native_fields = OWN.fields(piece.native)
    if isinstance(piece, TextPart):
        return merge_wire_fields({"type": "text", "text": piece.text}, native_fields)
    source = _write_source(piece)
    if piece.mime_type is not None:
        source["mimeType"] = piece.mime_type
    # The type was noted if the peer chose another than the media type suggests.
    block_type = OWN.form(piece.native).get("type", _media_type(piece))
    block = {"type": block_type, "source": source}
    if piece.name:
        block["metadata"] = {_NAME: piece.name}
    return merge_wire_fields(block, native_fields)


def _write_source(piece: Media) -> Json:
    """Returns the source of an AG-UI media part."""
    if isinstance(piece, DataPart):
        return {"type": "data", "value": b64encode(piece.data).decode()}
    if isinstance(piece, LinkPart):
        return {"type": "url", "value": piece.url}
    return {"type": "file", "value": piece.id}


def _media_type(part: Media) -> str:
    """Returns the type of an AG-UI media part: image, audio, video or document."""
    block_type = (part.mime_type or "").partition("/")[0]
    if block_type in _MEDIA_TYPES:
        return block_type
    return "document"
