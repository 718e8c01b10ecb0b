"""Content chunks ⇄ parts: text, images, documents, audio, files.

A chunk without a neutral shape (`reference`, `tool_reference`, `resource`, …), and one that its neutral part would not
give back exactly, is a `ProviderPart`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, if_objects, if_text, merged, rest
from dragoman.codec.media import (
    ELSEWHERE,
    IMAGES,
    as_text,
    audio_type,
    data_url,
    decoded,
    from_url,
    guessed,
    label,
    text_of,
)
from dragoman.errors import HistoryError
from dragoman.message import Content, DataPart, FilePart, LinkPart, ProviderPart, TextPart, ThinkingPart
from dragoman.wires.mistral.quirks import NAME, OWN
from dragoman.wires.mistral.thinking import dump_thinking, load_thinking

__all__ = ["dump_chunk", "dump_content", "load_chunk", "load_content", "unsaid"]

_ABSENT = "absent"
_KINDS = {"image": "image_url", "audio": "input_audio", "application": "document_url", "text": "document_url"}
"""First half of a media type → the chunk that carries it. Other data is told as text."""
_UNKNOWN = "application/octet-stream"
_NONE: dict[str, Any] = {}


def load_content(message: Mapping[str, Any], spelled: dict[str, Any]) -> list[Content]:
    """The `content` of a message → its pieces. No content that is not `""` is noted in `spelled`, and so is a list of one text.

    Raises:
        HistoryError: it is neither a text nor a list of chunks.
    """
    content = message.get("content")
    if not content:
        if content != "":
            spelled["content"] = content if "content" in message else _ABSENT
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not (chunks := if_objects(content)):
        raise HistoryError(f"the content of a {message.get('role')} message is neither a text nor a list of chunks")
    if len(chunks) == 1 and _plain(chunks[0]) is not None:
        spelled["content"] = "list"
    return [load_chunk(chunk) for chunk in chunks]


def dump_content(chunks: Sequence[dict[str, Any]], spelled: Mapping[str, Any]) -> dict[str, Any]:
    """Chunks → the field `content`: a string for one plain text, else a list."""
    how = spelled.get("content", "")
    if not chunks:
        return {} if how == _ABSENT else {"content": "" if how == "list" else how}
    text = _plain(chunks[0]) if len(chunks) == 1 and how != "list" else None
    return {"content": list(chunks) if text is None else text}


def load_chunk(chunk: Mapping[str, Any]) -> Content:
    """A content chunk → the part that it is."""
    kind = str(chunk.get("type"))
    reader = _READERS.get(kind)
    return (reader(kind, chunk) if reader else None) or ProviderPart(kind, {NAME: dict(chunk)})


def dump_chunk(part: Content) -> dict[str, Any] | None:
    """A part → the chunk that says it; `None` where there is none. Data of a kind that has no chunk is told as text."""
    spelled = if_text(OWN.form(part.native).get("type"))
    kind = spelled if spelled in _READERS else _kind(part)
    if isinstance(part, ThinkingPart):
        return dump_thinking(part)
    if isinstance(part, TextPart):
        chunk: dict[str, Any] = {"type": "text", "text": part.text}
    elif isinstance(part, FilePart):
        if OWN.is_foreign(part.native):
            return {"type": "text", "text": as_text(part)}
        chunk = {"type": "file", "file_id": part.id}
    elif isinstance(part, (LinkPart, DataPart)):
        if kind == "text":
            return {"type": "text", "text": as_text(part)}
        chunk = {"type": kind, kind: _located(kind, part)}
        if kind == "document_url" and part.name:
            chunk["document_name"] = part.name
    else:
        return OWN.fields(part.native) if isinstance(part, ProviderPart) and OWN.is_ours(part.native) else None
    return merged(chunk, OWN.fields(part.native))


def _located(kind: str, part: LinkPart | DataPart) -> Any:
    """Where a file is, or the file itself, as its chunk says it."""
    how = OWN.form(part.native).get("url")
    if isinstance(part, LinkPart):
        url = part.url
    elif kind == "input_audio" and how != "data":
        url = b64encode(part.data).decode()
    else:
        url = data_url(part)
    return {"url": url} if kind == "image_url" and how != "string" else url


def _kind(part: Content) -> str:
    """The type of the chunk that says a part."""
    if isinstance(part, LinkPart):
        told = part.mime_type or guessed(part.url) or "image/*"
        return _KINDS.get(told.partition("/")[0], "text")
    if not isinstance(part, DataPart) or part.mime_type == _UNKNOWN:
        return "text"
    kind = _KINDS.get(part.mime_type.partition("/")[0], "text")
    return kind if kind != "image_url" or part.mime_type in IMAGES else "text"


def unsaid(part: Content, chunk: Mapping[str, Any]) -> tuple[str, str] | None:
    """What of a file its chunk does not hold, and why."""
    if not isinstance(part, (DataPart, LinkPart, FilePart)):
        return None
    if chunk["type"] == "text":
        if text_of(part) is not None:
            return None
        elsewhere = isinstance(part, FilePart)
        return label(part), ELSEWHERE if elsewhere else "the API has no chunk for it; a text tells of it"
    if part.name and chunk.get("document_name") != part.name:
        return "name", f"the API knows no name of such a file, {part.name}"
    return None


def _plain(chunk: Mapping[str, Any]) -> str | None:
    """The text of a chunk that is text and nothing else."""
    text = chunk.get("text")
    return text if len(chunk) == 2 and chunk.get("type") == "text" and isinstance(text, str) and text else None


_P = TypeVar("_P", bound=TextPart | DataPart | LinkPart | FilePart | ThinkingPart)


def _marked(kind: str, part: _P, fields: Mapping[str, Any], spelled: Mapping[str, Any] = _NONE) -> _P:
    """The part with what is left of its chunk, and with the chunk's type where the part alone would not tell it."""
    told = isinstance(part, (DataPart, LinkPart)) and _kind(part) != kind
    spelled = {"type": kind, **spelled} if told else spelled
    return replace(part, native=OWN.note(fields, spelled, mark=isinstance(part, FilePart)))


def _text(kind: str, chunk: Mapping[str, Any]) -> Content | None:
    text = if_text(chunk.get("text"))
    return _marked(kind, TextPart(text), rest(chunk, "type", "text")) if text else None


def _image(kind: str, chunk: Mapping[str, Any]) -> Content | None:
    told = chunk.get(kind)
    if isinstance(told, str) and told:
        return _marked(kind, from_url(told), rest(chunk, "type", kind), {"url": "string"})
    if not (url := if_text(if_object(told).get("url"))):
        return None
    left = rest(if_object(told), "url")
    return _marked(kind, from_url(url), {**rest(chunk, "type", kind), **({kind: left} if left else {})})


def _document(kind: str, chunk: Mapping[str, Any]) -> Content | None:
    url, name = if_text(chunk.get(kind)), if_text(chunk.get("document_name"))
    read = ("document_name",) if name else ()
    return _marked(kind, from_url(url, name or None), rest(chunk, "type", kind, *read)) if url else None


def _audio(kind: str, chunk: Mapping[str, Any]) -> Content | None:
    told, left = if_text(chunk.get(kind)), rest(chunk, "type", kind)
    if ":" in told:
        part = from_url(told)
        return _marked(kind, part, left, {"url": "data"} if isinstance(part, DataPart) else {})
    data = decoded(told)
    return _marked(kind, DataPart(data, audio_type(data) or "audio/mpeg"), left) if data else None


def _file(kind: str, chunk: Mapping[str, Any]) -> Content | None:
    file_id = if_text(chunk.get("file_id"))
    return _marked(kind, FilePart(file_id), rest(chunk, "type", "file_id")) if file_id else None


def _thinking(_: str, chunk: Mapping[str, Any]) -> Content | None:
    return load_thinking(chunk)


_READERS: dict[str, Callable[[str, Mapping[str, Any]], Content | None]] = {
    "text": _text,
    "thinking": _thinking,
    "image_url": _image,
    "document_url": _document,
    "input_audio": _audio,
    "file": _file,
}
