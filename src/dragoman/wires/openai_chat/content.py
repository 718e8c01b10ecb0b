"""Content blocks ⇄ parts: text, images, audio, video, files; by data, by URL, by id.

A block without a neutral shape, and one that its neutral part would not give back exactly, is a `ProviderPart`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, if_objects, if_text, merged, rest
from dragoman.codec.media import ELSEWHERE, IMAGES, as_text, data_url, decoded, from_url, guessed, label, text_of
from dragoman.errors import HistoryError
from dragoman.message import Content, DataPart, FilePart, LinkPart, ProviderPart, TextPart
from dragoman.wires.openai_chat.quirks import NAME, OWN

__all__ = ["ABSENT", "dump_block", "dump_content", "is_picture", "load_block", "load_content", "unsaid"]

ABSENT = "absent"
"""Spelling: the field was not there at all."""

_URL_FIELD = {"image_url": "url", "video_url": "url", "audio_url": "url", "file_url": "url", "file": "file_data"}
_DATA_BLOCKS = {**dict.fromkeys((*IMAGES, "image/jpg"), "image_url"), "audio": "input_audio", "application/pdf": "file"}
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_AUDIO_FORMAT = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_NONE: dict[str, str] = {}


def load_content(message: Mapping[str, Any], empty: object, spelled: dict[str, Any]) -> list[Content]:
    """The `content` of a message → its pieces. `empty`: how no content is usually spelled; another way goes to `spelled`.

    Raises:
        HistoryError: it is neither a text nor a list of blocks.
    """
    content = message.get("content")
    if not content:
        how = content if "content" in message else ABSENT
        if how != empty:
            spelled["content"] = how
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not (loaded := if_objects(content)):
        raise HistoryError(f"the content of a {message.get('role')} message is neither a text nor a list of blocks")
    if len(loaded) == 1 and _plain(loaded[0]) is not None:
        spelled["content"] = "list"
    return [load_block(block) for block in loaded]


def dump_content(
    blocks: Sequence[dict[str, Any]], empty: object, spelled: Mapping[str, Any], *, string_only: bool = False
) -> dict[str, Any]:
    """Blocks → the field `content`: a string for one plain text (and for several where the vendor takes nothing else),
    else a list."""
    how = spelled.get("content", empty)
    if not blocks:
        return {} if how == ABSENT else {"content": empty if how == "list" else how}
    texts = [_plain(block) for block in blocks]
    if None not in texts and (string_only or (len(texts) == 1 and how != "list")):
        return {"content": "".join(map(str, texts))}
    return {"content": list(blocks)}


def load_block(block: Mapping[str, Any]) -> Content:
    """A content block → the part that it is."""
    kind = str(block.get("type"))
    reader = _READERS.get(kind)
    return (reader(kind, block) if reader else None) or ProviderPart(kind, {NAME: dict(block)})


def dump_block(part: Content, blocks: Mapping[str, str] = _NONE) -> dict[str, Any] | None:
    """A part → the content block that says it; `None` where there is none. `blocks`: see `Quirks.blocks`.

    For data of a kind that has no block stands a text, never its base64.
    """
    kind = _kind(part, blocks)
    if isinstance(part, TextPart):
        block = {"type": kind, kind: part.text}
    elif isinstance(part, (DataPart, FilePart)) and kind == "text":
        return {"type": "text", "text": as_text(part)}
    elif isinstance(part, FilePart):
        block = {"type": kind, kind: {"file_id": part.id, **({"filename": part.name} if part.name else {})}}
    elif isinstance(part, LinkPart):
        block = {"type": kind, kind: _located(kind, part.url, part.name)}
    elif isinstance(part, DataPart) and kind == "input_audio":
        heard = _AUDIO_FORMAT.get(part.mime_type) or part.mime_type.removeprefix("audio/")
        block = {"type": kind, kind: {"data": b64encode(part.data).decode(), "format": heard}}
    elif isinstance(part, DataPart):
        url = b64encode(part.data).decode() if kind == "file_url" else data_url(part)
        made_up = "" if "filename" in OWN.form(part.native) else f"file.{part.mime_type.rpartition('/')[2]}"
        block = {"type": kind, kind: _located(kind, url, part.name or made_up)}
    else:
        return OWN.fields(part.native) if NAME in (part.native or ()) else None
    return merged(block, OWN.fields(part.native))


def _kind(part: Content, blocks: Mapping[str, str] = _NONE) -> str:
    """The type of the block that says a part."""
    if (kind := if_text(OWN.form(part.native).get("type"))) in _READERS:
        return kind
    if isinstance(part, LinkPart):
        return _by_type(blocks, part.mime_type or "") or "image_url"
    if isinstance(part, DataPart):
        kind = _by_type(blocks, part.mime_type) or _by_type(_DATA_BLOCKS, part.mime_type) or "text"
        return "text" if kind == "input_audio" and part.mime_type not in _AUDIO_FORMAT else kind
    return "file" if isinstance(part, FilePart) and not _is_elsewhere(part) else "text"


def _is_elsewhere(part: FilePart) -> bool:
    """Whether another provider holds the file. OpenAI's are the same for both of its APIs."""
    return OWN.is_foreign(part.native) and "openai_responses" not in (part.native or ())


def is_picture(part: LinkPart) -> bool:
    """Whether a link may be one to an image."""
    return (part.mime_type or guessed(part.url) or "image/*").startswith("image/")


def unsaid(part: Content, block: Mapping[str, Any]) -> tuple[str, str] | None:
    """What of a file its block does not hold, and why."""
    if not isinstance(part, (DataPart, LinkPart, FilePart)):
        return None
    if block["type"] == "text":
        if text_of(part) is not None:
            return None
        elsewhere = isinstance(part, FilePart)
        return label(part), ELSEWHERE if elsewhere else "the API has no block for it; a text tells of it"
    if part.name and if_object(block.get(block["type"])).get("filename") != part.name:
        return "name", f"the API knows no name of such a file, {part.name}"
    return None


def _plain(block: Mapping[str, Any]) -> str | None:
    """The text of a block that is text and nothing else."""
    text = block.get("text")
    return text if len(block) == 2 and block.get("type") == "text" and isinstance(text, str) and text else None


def _by_type(table: Mapping[str, str], mime_type: str) -> str | None:
    return table.get(mime_type) or table.get(mime_type.partition("/")[0])


def _located(kind: str, url: str, name: str | None) -> dict[str, Any]:
    return {"filename": name, "file_data": url} if kind == "file" and name else {_URL_FIELD.get(kind, "url"): url}


_P = TypeVar("_P", TextPart, DataPart, LinkPart, FilePart, DataPart | LinkPart)


def _marked(kind: str, part: _P, fields: Mapping[str, Any], spelled: Mapping[str, Any] = _NONE) -> _P:
    """The part with what is left of its block, and with the block's type where the part alone would not tell it."""
    spelled = spelled if _kind(part) == kind else {"type": kind, **spelled}
    return replace(part, native=OWN.note(fields, spelled, mark=isinstance(part, FilePart)))


def _inner(kind: str, block: Mapping[str, Any], field: str) -> tuple[str | None, Mapping[str, Any]]:
    """The object inside a block, and that field of it where it is a text that is not empty."""
    inner = if_object(block.get(kind))
    return if_text(inner.get(field)) or None, inner


def _unread(kind: str, block: Mapping[str, Any], inner: Mapping[str, Any], *read: str) -> dict[str, Any]:
    left = rest(inner, *read)
    return {**rest(block, "type", kind), **({kind: left} if left else {})}


def _text(kind: str, block: Mapping[str, Any]) -> Content | None:
    text = if_text(block.get(kind))
    return _marked(kind, TextPart(text), rest(block, "type", kind)) if text else None


def _linked(kind: str, block: Mapping[str, Any]) -> Content | None:
    url, inner = _inner(kind, block, "url")
    if url is None:
        return None
    part = LinkPart(url) if kind == "file_url" else from_url(url)
    if kind == "file_url" and ":" not in url and (data := decoded(url)) is not None:
        part = DataPart(data, "application/octet-stream")
    return _marked(kind, part, _unread(kind, block, inner, "url"))


def _file(kind: str, block: Mapping[str, Any]) -> Content | None:
    file_id, inner = _inner(kind, block, "file_id")
    url, _ = _inner(kind, block, "file_data")
    name, _ = _inner(kind, block, "filename")
    read = ("filename",) if name else ()
    if file_id is not None:
        return _marked(kind, FilePart(file_id, name=name), _unread(kind, block, inner, "file_id", *read))
    if url is None:
        return None
    part, fields = from_url(url, name), _unread(kind, block, inner, "file_data", *read)
    return _marked(kind, part, fields, {} if name or isinstance(part, LinkPart) else {"filename": "absent"})


def _audio(kind: str, block: Mapping[str, Any]) -> Content | None:
    text, inner = _inner(kind, block, "data")
    heard, _ = _inner(kind, block, "format")
    if heard is None or text is None or (data := decoded(text)) is None:
        return None
    part = DataPart(data, _AUDIO.get(heard, f"audio/{heard}"))
    return _marked(kind, part, _unread(kind, block, inner, "data", "format"))


_READERS: dict[str, Callable[[str, Mapping[str, Any]], Content | None]] = {
    "text": _text,
    "refusal": _text,
    "file": _file,
    "input_audio": _audio,
    "image_url": _linked,
    "video_url": _linked,
    "audio_url": _linked,
    "file_url": _linked,
}
