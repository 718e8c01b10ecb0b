"""What a tool returned ↔ the `response` object of a `functionResponse`, and its `parts` (media).

The API wants an object: a string that is a JSON object is that object, any other value is `{"result": value}`, and
what went wrong is `{"error": …}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from dragoman import json_bytes
from dragoman.message import Content, DataPart, FilePart, LinkPart, TextPart

__all__ = ["dump_response_object", "load_response_object", "media_of", "text_of", "with_media"]

_MEDIA = (DataPart, LinkPart, FilePart)


def load_response_object(response: Mapping[str, Any]) -> tuple[Any, bool]:
    """A `response` → the result, and whether it tells of an error."""
    if set(response) == {"result"}:
        value = response["result"]
        if not isinstance(value, dict) and dump_response_object(value) == response:
            return value, False
    return dict(response), set(response) == {"error"}


def dump_response_object(result: Any, *, is_error: bool = False) -> dict[str, Any]:
    """A result that is no media → a `response`."""
    if isinstance(result, str):
        read = _object(result)
        result = result if read is None else read
    key = "error" if is_error else "result"
    if isinstance(result, dict) and (not is_error or key in result):
        return cast("dict[str, Any]", result)
    return {key: result}


def with_media(
    response: Mapping[str, Any], parts: Any, load: Callable[[Mapping[str, Any]], Content]
) -> tuple[TextPart | DataPart | LinkPart | FilePart, ...] | None:
    """A `response` and its media → the result's parts, the text first; `None` where parts cannot say it all."""
    if not isinstance(parts, list) or not parts:
        return None
    loaded = [load(cast("dict[str, Any]", part)) for part in cast("list[Any]", parts) if isinstance(part, dict)]
    media = [piece for piece in loaded if isinstance(piece, _MEDIA)]
    if len(media) < len(cast("list[Any]", parts)):
        return None
    value, _ = load_response_object(response)
    text = value if isinstance(value, str) else json_bytes.encode(value).decode() if value else ""
    if not text:
        return None if response else tuple(media)
    return (TextPart(text), *media) if dump_response_object(text) == response else None


def text_of(parts: Sequence[Content]) -> str:
    """The text of a result's parts."""
    return "\n".join([part.text for part in parts if isinstance(part, TextPart)])


def media_of(parts: Sequence[Content]) -> list[DataPart | LinkPart | FilePart]:
    """The media of a result's parts."""
    return [part for part in parts if isinstance(part, _MEDIA)]


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json_bytes.decode(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
