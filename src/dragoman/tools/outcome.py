"""What came of one call: `ToolExecutionResult`, and how a value or an exception becomes a result for the model."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from dragoman.errors import ToolError
from dragoman.message import DataPart, FilePart, LinkPart, TextPart, ToolCallPart, ToolResultPart

__all__ = ["ToolExecutionResult", "failed", "succeeded"]

_PARTS = (TextPart, DataPart, LinkPart, FilePart)


class ToolExecutionResult(msgspec.Struct, frozen=True):
    """One call and its answer."""

    tool_call: ToolCallPart
    part: ToolResultPart
    """The answer, as it goes into the conversation."""
    exception: Exception | None = None
    """What was raised, with its traceback; `None` on success."""

    @property
    def is_success(self) -> bool:
        """Whether the tool returned a value."""
        return self.exception is None

    @property
    def result(self) -> str:
        """The answer as text: a string as it is, anything else as JSON (D-38)."""
        value = self.part.result
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    @property
    def error(self) -> str | None:
        """What the model is told of the failure; `None` on success."""
        return None if self.exception is None else self.part.result["error"]


def succeeded(call: ToolCallPart, value: Any) -> ToolExecutionResult:
    """The answer that holds a returned value: a string unchanged, parts as parts, anything else as a JSON value.

    Raises:
        Exception: the value is no JSON; of the type that its encoder raises.
    """
    return ToolExecutionResult(call, ToolResultPart(call.id, call.name, _content(value)))


def failed(call: ToolCallPart, error: Exception) -> ToolExecutionResult:
    """The answer that tells the model of an error: `{"error": "…"}` (decision 5, D-40)."""
    text = (str(error) or type(error).__name__).encode(errors="backslashreplace").decode()
    return ToolExecutionResult(call, ToolResultPart(call.id, call.name, {"error": text}, is_error=True), error)


def _content(value: Any) -> Any:
    items = tuple(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else (value,)
    if any(isinstance(item, _PARTS) for item in items):
        return _parts(items)
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_jsonable))  # what fails on the wire fails here


def _parts(items: tuple[Any, ...]) -> tuple[Any, ...]:
    parts = tuple(TextPart(item) if isinstance(item, str) else item for item in items)
    strange = {type(item).__name__ for item in parts if not isinstance(item, _PARTS)}
    if strange:
        raise ToolError(f"the tool returned parts mixed with {', '.join(sorted(strange))}; return either, not both")
    return parts


def _jsonable(value: Any) -> Any:
    from pydantic_core import to_jsonable_python  # lazily: whoever returns pydantic models has it loaded

    return to_jsonable_python(value)
