"""What a server answers to a call → what a tool returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
from mcp import types

from dragoman.errors import ToolError
from dragoman.mcp.content import bounded, parts_of
from dragoman.message import DataPart, LinkPart, TextPart

__all__ = ["result_of"]


def result_of(result: types.CallToolResult, most: int, server: str) -> Any:
    """Structured content where the texts say the same, or there are none; a single text as it is; else parts, with structured
    content as a last text; `{}` where there is nothing.

    Raises:
        ToolError: the tool failed, with what it gave as content; or it gave what cannot be read, or more than `most` bytes.
    """
    parts = parts_of(result.content)
    beside = (
        b"" if result.structured_content is None else msgspec.json.encode(result.structured_content)
    )
    bounded(parts, most, server, len(beside))
    value = _value(result, parts)
    if not result.is_error:
        return value
    if isinstance(value, str):
        raise ToolError(value)
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    raise ToolError(
        "\n".join(texts) or f"the tool of {server} failed and does not say why",
        content=value or None,
    )


def _value(result: types.CallToolResult, parts: Sequence[TextPart | DataPart | LinkPart]) -> Any:
    texts = [part.text for part in parts if isinstance(part, TextPart) and part.native is None]
    only_texts = len(texts) == len(parts)
    structured = result.structured_content
    if structured is not None:
        if only_texts and not texts:
            return structured
        for value in _spellings(structured):
            if _says(texts, value):
                return value if only_texts else tuple(parts)
        return (*parts, TextPart(msgspec.json.encode(structured).decode()))
    if not parts:
        return {}
    return texts[0] if only_texts and len(texts) == 1 else tuple(parts)


def _spellings(structured: Any) -> list[Any]:
    """The value, and what stands in it alone: servers wrap in `{"result": …}` what is no object."""
    fields = cast("dict[str, Any]", structured) if isinstance(structured, dict) else {}
    return [structured, *([fields["result"]] if fields.keys() == {"result"} else [])]


def _says(texts: Sequence[str], value: Any) -> bool:
    """Whether texts say what a value does: as one, or, of a list, one for each item."""
    if len(texts) == 1 and _is(texts[0], value):
        return True
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(items) and len(items) == len(texts) and all(map(_is, texts, items))


def _is(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    try:
        return msgspec.json.decode(text) == value
    except (msgspec.DecodeError, UnicodeError):
        return False
