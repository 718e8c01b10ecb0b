"""Content blocks ↔ parts: text and refusals, images, audio and files by data, by URL, by id.

A block without a neutral shape, and one that its neutral part would not give back exactly, is a `ProviderPart` spelled
as a block.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from dragoman.codec.json_values import if_object, if_text, rest
from dragoman.codec.media import ELSEWHERE, IMAGES, Media, as_text, data_url, decoded, guessed, label, text_of
from dragoman.message import DataPart, FilePart, LinkPart, ProviderPart, TextPart
from dragoman.wires.openai_responses.quirks import OWN

__all__ = ["Block", "dump_block", "load_block", "unsaid"]

Block = TextPart | Media | ProviderPart

_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_TEXT_FIELDS = {"input_text": "text", "output_text": "text", "refusal": "refusal", "text": "text"}
_MEDIA = ("input_image", "input_file", "input_audio")
_PDF = "application/pdf"


def load_block(block: Mapping[str, Any], usual: str = "input_text") -> Block:
    """A content block → the part that it is. `usual`: how text is usually spelled where the block stands."""
    kind = str(block.get("type"))
    part = _LOADERS.get(kind, _nothing)(block)
    if part is None:
        return ProviderPart(kind, OWN.note(block, form={"block": True}))
    return part if _kind(part, usual) == kind else _noted(part, type=kind)


def dump_block(part: Block, usual: str = "input_text") -> dict[str, Any]:
    """A part → its content block. What has no block of its own becomes a text."""
    own = OWN.fields(part.native)
    if isinstance(part, ProviderPart):
        return own
    kind = _kind(part, usual)
    if isinstance(part, TextPart):
        return {"type": kind, _TEXT_FIELDS[kind]: part.text, **own}
    if kind == usual:
        if isinstance(part, LinkPart) and not part.url.startswith("data:"):
            return {"type": kind, "text": part.url}
        return {"type": kind, "text": as_text(part)}
    if kind == "input_audio":
        heard = next((f for f, mime in _AUDIO.items() if mime == part.mime_type), str(part.mime_type)[len("audio/") :])
        data = b64encode(part.data).decode() if isinstance(part, DataPart) else ""
        return {"type": kind, kind: {"data": data, "format": heard, **if_object(own.pop(kind, None))}, **own}
    block: dict[str, Any] = {"type": kind, **_located(kind, part), **own}
    if kind == "input_image" and "detail" not in OWN.form(part.native):
        block.setdefault("detail", "auto")
    return block


def _kind(part: TextPart | Media, usual: str) -> str:
    """The type of the block that says a part; `usual`: it becomes a text."""
    kind = if_text(OWN.form(part.native).get("type"))
    if kind in (_TEXT_FIELDS if isinstance(part, TextPart) else _MEDIA):
        return kind
    if isinstance(part, TextPart):
        return usual
    mime_type = part.mime_type or (guessed(part.url) if isinstance(part, LinkPart) else None) or ""
    if isinstance(part, FilePart) and is_elsewhere(part):
        return usual
    if mime_type in IMAGES or (mime_type.startswith("image/") and not isinstance(part, DataPart)):
        return "input_image"
    return "input_file" if mime_type == _PDF or isinstance(part, FilePart) else usual


def is_elsewhere(part: FilePart) -> bool:
    """Whether another provider holds the file. OpenAI's are the same for both of its APIs."""
    return OWN.is_foreign(part.native) and "openai_chat" not in (part.native or ())


def unsaid(part: Block, block: Mapping[str, Any]) -> tuple[str, str] | None:
    """What of a file its block does not hold, and why."""
    if not isinstance(part, (DataPart, LinkPart, FilePart)):
        return None
    if "text" in block:
        if text_of(part) is not None:
            return None
        elsewhere = isinstance(part, FilePart)
        return label(part), ELSEWHERE if elsewhere else "the API has no block for it; a text tells of it"
    if part.name and block.get("filename") != part.name:
        return "name", f"the API knows no name of such a file, {part.name}"
    return None


def _located(kind: str, part: Media) -> dict[str, Any]:
    """The fields that hold an image or a file."""
    if isinstance(part, FilePart):
        return {"file_id": part.id}
    url = part.url if isinstance(part, LinkPart) else data_url(part)
    if kind == "input_image":
        return {"image_url": url}
    if isinstance(part, LinkPart):
        return {"file_url": url, **({"filename": part.name} if part.name else {})}
    name = part.name or f"file.{part.mime_type.rpartition('/')[2]}"
    return {"filename": name, "file_data": url} if "filename" not in OWN.form(part.native) else {"file_data": url}


_P = TypeVar("_P", bound=TextPart | DataPart | LinkPart | FilePart)


def _noted(part: _P, **how: Any) -> _P:
    return msgspec.structs.replace(part, native=OWN.with_form(part.native, **how))


def _text(block: Mapping[str, Any]) -> TextPart | None:
    field = _TEXT_FIELDS[block["type"]]
    text = block.get(field)
    return TextPart(text, OWN.note(rest(block, "type", field))) if isinstance(text, str) and text else None


def _image(block: Mapping[str, Any]) -> Media | None:
    left = rest(block, "type")
    if left.get("detail") == "auto":
        del left["detail"]
    how = {} if "detail" in block else {"detail": "absent"}
    match block:
        case {"image_url": str(url)}:
            return _from_url(url, None, OWN.note(rest(left, "image_url"), form=how))
        case {"file_id": str(file_id)}:
            return FilePart(file_id, "image/*", None, OWN.note(rest(left, "file_id"), mark=True, form=how))
        case _:
            return None


def _file(block: Mapping[str, Any]) -> Media | None:
    name = block.get("filename")
    name = name if isinstance(name, str) and name else None
    left = rest(block, "type", *(("filename",) if name else ()))
    match block:
        case {"file_data": str(url)}:
            part = _from_url(url, name, OWN.note(rest(left, "file_data"), form={} if name else {"filename": "absent"}))
            return part if isinstance(part, DataPart) else None
        case {"file_url": str(url)}:
            return LinkPart(url, None, name, OWN.note(rest(left, "file_url")))
        case {"file_id": str(file_id)} if name is None:
            return FilePart(file_id, native=OWN.note(rest(left, "file_id"), mark=True))
        case _:
            return None


def _audio(block: Mapping[str, Any]) -> Media | None:
    match block.get("input_audio"):
        case {"data": str(text), "format": str(heard)} if (data := decoded(text)) is not None:
            inner = rest(cast("dict[str, Any]", block["input_audio"]), "data", "format")
            left = {**rest(block, "type", "input_audio"), **({"input_audio": inner} if inner else {})}
            return DataPart(data, _AUDIO.get(heard, f"audio/{heard}"), None, OWN.note(left))
        case _:
            return None


def _from_url(url: str, name: str | None, native: Any) -> DataPart | LinkPart:
    """A URL → the data in it, or a link where it holds none (or in a way that could not be given back)."""
    head, comma, text = url.partition(";base64,")
    if comma and head.startswith("data:") and head != "data:" and (data := decoded(text)) is not None:
        return DataPart(data, head[5:], name, native)
    return LinkPart(url, None, name, native)


def _nothing(_: Mapping[str, Any]) -> None:
    return None


_LOADERS: Mapping[str, Callable[[Mapping[str, Any]], TextPart | Media | None]] = {
    **dict.fromkeys(_TEXT_FIELDS, _text),
    "input_image": _image,
    "input_file": _file,
    "input_audio": _audio,
}
