"""Parts of which it is known what would be written for their pieces, so that they need not be written to see how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.formats.pydantic_ai.own import NAME, OWN
from dragoman.message import NOTES, Content, TextPart, ToolCallPart, ToolResultPart

__all__ = ["usual_part", "usual_result", "usual_text"]

_OF_CALLS = ("tool_name", "tool_call_id", "part_kind", "args")
_OF_TEXTS = ("content", "part_kind")
_OF_RESULTS = ("tool_name", "tool_call_id", "content", "part_kind")
_FORM = NAME + NOTES


def usual_part(piece: Content, part: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that are written for a text or a call of the model's that nobody signed, as the part has them that it was read from. Empty:
    it is another piece."""
    kind = part["part_kind"]
    if (
        isinstance(piece, ToolCallPart)
        and kind == "tool-call"
        and all(key == _FORM for key in piece.native or ())
    ):
        return _OF_CALLS
    if isinstance(piece, TextPart) and kind == "text" and piece.native is None:
        return _OF_TEXTS
    return ()


def usual_text(piece: Content) -> dict[str, Any] | None:
    """The part of a text of the model's that has nothing but fields of this format; `None`: it is another piece."""
    native = piece.native
    if not isinstance(piece, TextPart) or not (
        native is None or (len(native) == 1 and NAME in native)
    ):
        return None
    return {"content": piece.text, "part_kind": "text", **OWN.fields(native)}


def usual_result(piece: ToolResultPart, part: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same of a value that a tool of the agent's returned."""
    failed = piece.is_error or piece.denied
    if failed or piece.is_content or not piece.name or part["part_kind"] != "tool-return":
        return None
    return {key: part[key] for key in _OF_RESULTS}
