"""What came of one call: `ToolExecutionResult`, and how a value or an exception becomes a result
for the model."""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec

from dragoman.errors import ToolError
from dragoman.json_bytes import replace_halves
from dragoman.message import DataPart, FilePart, LinkPart, TextPart, ToolCallPart, ToolResultPart

__all__ = [
    "ToolExecutionResult",
    "to_json_value",
    "error_result",
    "success_result",
    "describe_error",
]

_PARTS = (TextPart, DataPart, LinkPart, FilePart)


class ToolExecutionResult(msgspec.Struct, frozen=True):
    """One call and its answer."""

    tool_call: ToolCallPart
    """The call that is answered."""
    part: ToolResultPart
    """The answer, as it goes into the conversation."""
    exception: Exception | None = None
    """What was raised, with its traceback; `None` on success."""

    @property
    def is_success(self) -> bool:
        """Returns whether the tool returned a value."""
        return self.exception is None

    @property
    def result(self) -> str:
        """Returns the tool result as text: a string unchanged, anything else as JSON."""
        value = self.part.result
        if isinstance(value, str):
            return value
        return msgspec.json.encode(value).decode()

    @property
    def error(self) -> str | None:
        """Returns what the model is told of the tool's failure, or None on success."""
        if self.exception is None:
            return None
        return _encodable(self.exception)


def success_result(call: ToolCallPart, value: object) -> ToolExecutionResult:
    """Returns the tool result that holds a returned value: a string unchanged, parts as parts,
    anything else as a JSON value.

    Raises:
        Exception: the value is no JSON; of the type that its encoder raises.
    """
    whole = replace_halves(value, f"the result of {call.name}")
    return ToolExecutionResult(call, ToolResultPart(call.id, call.name, _load_value_content(whole)))


def error_result(call: ToolCallPart, error: Exception) -> ToolExecutionResult:
    """Returns the tool result that tells the model of an error: `{"error": "…"}`, or the content of
    a `ToolError`."""
    if isinstance(error, ToolError):
        content = error.content
    else:
        content = None
    if content is None:
        result = {"error": _encodable(error)}
    else:
        result = _load_value_content(content)
    return ToolExecutionResult(
        call, ToolResultPart(call.id, call.name, result, is_error=True), error
    )


def describe_error(error: Exception) -> str:
    """Returns for a tool result what an exception says; its type's name where it says nothing, or
    fails at that."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - code of the user's, which may raise anything
        return type(error).__name__


def _encodable(error: Exception) -> str:
    return describe_error(error).encode(errors="backslashreplace").decode()


def to_json_value(value: Any) -> Any:
    """Returns a tool result's value as JSON has it, and a copy of it.

    Raises:
        ToolError: it holds a number or a key that JSON has not.
        TypeError: it holds something that has no JSON form.
    """
    if value is None:
        return None
    # What fails on the wire fails here.
    text = msgspec.json.encode(value, enc_hook=_make_jsonable)
    if b"null" in text and not _is_finite(msgspec.to_builtins(value, enc_hook=_make_jsonable)):
        raise ToolError(
            "the value holds a number that JSON has not: NaN or an infinity; give None or a text in place of it"
        )
    return msgspec.json.decode(text)


def _load_value_content(value: Any) -> Any:
    """Returns a tool's value as content: parts if it holds parts, otherwise JSON."""
    if isinstance(value, (list, tuple)):
        items = tuple(cast("list[Any]", value))
    else:
        items = (value,)
    if any(isinstance(item, _PARTS) for item in items):
        return _load_value_parts(items)
    return to_json_value(value)


def _is_finite(value: object) -> bool:
    """True if no number in a tool result is NaN or infinite; the encoder writes those as null."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, cast("dict[Any, Any]", value).values()))
    return not isinstance(value, (list, tuple)) or all(map(_is_finite, cast("list[Any]", value)))


def _load_value_parts(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the parts of a tool result's value. Raises `ToolError` if other values are mixed
    in."""
    parts = tuple(TextPart(item) if isinstance(item, str) else item for item in items)
    strange = {type(item).__name__ for item in parts if not isinstance(item, _PARTS)}
    if strange:
        raise ToolError(
            f"the tool returned parts mixed with {', '.join(sorted(strange))}; return either, not both"
        )
    return parts


def _make_jsonable(value: object) -> Any:
    """Returns a tool result that msgspec cannot encode as JSON, such as a pydantic model, as JSON
    values."""
    # Anywhere else it would not have to be asked for.
    if isinstance(value, (list, tuple)):
        raise ToolError(
            f"the value has {value!r:.100} as a key; the keys of a JSON object are texts"
        )
    # Lazily: whoever returns pydantic models has it loaded.
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)
