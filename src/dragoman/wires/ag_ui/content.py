"""The parts of a user's message and of a tool's result."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.carried import changed, difference
from dragoman.codec.json_values import if_object, if_objects, if_text, merged, rest
from dragoman.codec.media import decoded
from dragoman.errors import HistoryError
from dragoman.message import Content, DataPart, FilePart, LinkPart, TextPart
from dragoman.wires.ag_ui.quirks import OWN, native_of, others, unpacked, with_extras

__all__ = ["dump_block", "dump_content", "load_block", "load_content"]

Block = TextPart | DataPart | LinkPart | FilePart
_KINDS = ("image", "audio", "video")
_MEDIA = frozenset([*_KINDS, "document"])
_DATA, _NAME = "data", "filename"
_UNTYPED = "application/octet-stream"


def load_content(content: Any, form: dict[str, Any]) -> list[Content]:
    """The field `content` → its pieces. `form` takes how it was written.

    Raises:
        HistoryError: it is neither a text nor a list of parts.
    """
    if content is None or isinstance(content, str):
        return [TextPart(content)] if content else []
    if content != [] and not if_objects(content):
        raise HistoryError("the content of an AG-UI message is a text or a list of parts")
    pieces = [load_block(block) for block in if_objects(content)]
    if len(pieces) < 2 and all(
        type(piece) is TextPart and piece.native is None for piece in pieces
    ):
        form["content"] = "list"
    return [piece for piece in pieces if piece is not None]


def dump_content(
    pieces: Sequence[Block], form: Mapping[str, Any] = {}, *, extras: bool = True
) -> Any:
    """The inverse: one plain text is a text, all else a list."""
    listed = form.get("content") == "list"
    if not pieces:
        return [] if listed else ""
    if len(pieces) == 1 and not listed and type(pieces[0]) is TextPart and not pieces[0].native:
        return pieces[0].text
    return [dump_block(piece, extras=extras) for piece in pieces]


def load_block(block: Mapping[str, Any]) -> Block | None:
    """A part → ours; `None`: a text that is empty.

    Raises:
        HistoryError: it is none of the parts that there are.
    """
    read = _read(block)
    return None if read is None else changed(read, unpacked(block.get("metadata")), Block)


def dump_block(piece: Block, *, extras: bool = True) -> dict[str, Any]:
    """A piece → a part, with what the protocol has no field for."""
    block = _written(piece)
    read = _read(block)
    more = difference(piece, read) if extras and read is not None else {}
    return with_extras(block, more)


def _read(block: Mapping[str, Any]) -> Block | None:
    kind = block.get("type")
    if kind == "text":
        text = if_text(block.get("text"))
        return TextPart(text, native_of(block, "type", "text")) if text else None
    if kind == "binary":
        return _binary(block)
    if not isinstance(kind, str) or kind not in _MEDIA:
        raise HistoryError(
            f"AG-UI has no part of type {kind!r:.100}; it has text, image, audio, video and document"
        )
    source = if_object(block.get("source"))
    mime, value = if_text(source.get("mimeType")) or None, if_text(source.get("value"))
    metadata = others(block.get("metadata"))
    name = if_text(metadata.get(_NAME)) or None
    own = _own(block, "source", *([_NAME] if name else []))
    if more := rest(source, "type", "value", "mimeType"):
        own["source"] = more
    if source.get("type") == _DATA and (data := decoded(value)) is not None:
        part: Block = DataPart(data, mime or _UNTYPED, name)
    elif source.get("type") == "file":
        part = FilePart(value, mime, name)
    elif source.get("type") == "url":
        part = LinkPart(value, mime, name)
    else:
        part, own["source"] = LinkPart(f"data:{mime or ''};base64,{value}", mime, name), source
    form = {} if kind == _kind(part) else {"type": kind}
    return replace(part, native=OWN.note(own, form))


def _own(block: Mapping[str, Any], *known: str) -> dict[str, Any]:
    own = rest(block, "type", "metadata", *known)
    metadata = {
        key: value for key, value in others(block.get("metadata")).items() if key not in known
    }
    return {**own, "metadata": metadata} if metadata else own


def _binary(block: Mapping[str, Any]) -> Block:
    """A part of versions before 1.0: bytes, a URL or a file's id."""
    mime, name = if_text(block.get("mimeType")) or None, if_text(block.get("filename")) or None
    if isinstance(held := block.get("data"), str) and (data := decoded(held)) is not None:
        return DataPart(data, mime or _UNTYPED, name)
    if isinstance(url := block.get("url"), str):
        return LinkPart(url, mime, name)
    if isinstance(id_ := block.get("id"), str):
        return FilePart(id_, mime, name)
    raise HistoryError("a binary part of AG-UI has data in base64, a url or an id")


def _written(piece: Block) -> dict[str, Any]:
    own = OWN.fields(piece.native)
    if isinstance(piece, TextPart):
        return merged({"type": "text", "text": piece.text}, own)
    if isinstance(piece, DataPart):
        source: dict[str, Any] = {"type": _DATA, "value": b64encode(piece.data).decode()}
    else:
        link = isinstance(piece, LinkPart)
        source = {
            "type": "url" if link else "file",
            "value": piece.url if isinstance(piece, LinkPart) else piece.id,
        }
    if piece.mime_type is not None:
        source["mimeType"] = piece.mime_type
    metadata = {"metadata": {_NAME: piece.name}} if piece.name else {}
    kind = OWN.form(piece.native).get("type", _kind(piece))
    return merged({"type": kind, "source": source, **metadata}, own)


def _kind(part: DataPart | LinkPart | FilePart) -> str:
    kind = (part.mime_type or "").partition("/")[0]
    return kind if kind in _KINDS else "document"
