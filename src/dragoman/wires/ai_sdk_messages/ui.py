"""UI messages of ai 5 and later: what their parts are read and written by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.codec.json_values import if_object
from dragoman.codec.media import Media
from dragoman.message import (
    MarkPart,
    ProviderPart,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages import marks
from dragoman.wires.ai_sdk_messages.detection import is_v4
from dragoman.wires.ai_sdk_messages.dialect import Dialect, Envelope, Part, Parts
from dragoman.wires.ai_sdk_messages.failures import denial_reason, refused
from dragoman.wires.ai_sdk_messages.media import dump_file, load_file
from dragoman.wires.ai_sdk_messages.own import OURS, OWN, UI
from dragoman.wires.ai_sdk_messages.parts import (
    dump_reasoning,
    dump_text,
    load_reasoning,
    load_text,
)
from dragoman.wires.ai_sdk_messages.reading import STEP
from dragoman.wires.ai_sdk_messages.tools import dump_call, dump_result, load_tool

__all__ = ["UI_DIALECT", "dump_mark", "filler"]

_MISSING: Any = object()


def filler(role: Role) -> Part:
    """A part that says nothing, for a message without any: the library's check refuses those."""
    return {"type": STEP} if role is Role.MODEL else {"type": "text", "text": ""}


def dump_mark(mark: MarkPart | ProviderPart) -> Part:
    """A mark → its part."""
    return marks.dump_mark(mark, UI)


def _thinking(pieces: Sequence[ThinkingPart]) -> Parts:
    return [part for piece in pieces for part in dump_reasoning(piece)]


def _file(piece: Media, is_model: bool) -> Part:  # noqa: ARG001 it is the same for all
    return dump_file(piece)


def _call(call: ToolCallPart, answered: bool, step: int) -> Part:  # noqa: ARG001 the marks tell the step
    return dump_call(call, answered=answered)


def _result(part: Part, result: ToolResultPart, call: ToolCallPart) -> Part:
    both = {**part, **dump_result(result, call)}
    if result.denied and "approval" not in both:
        both["approval"] = refused(call.id, denial_reason(result))
    return both


def _envelope(given: Envelope) -> dict[str, Any]:
    first = given.first
    made: dict[str, Any] = {} if given.id is None else {"id": given.id}
    made |= {"role": given.role, "parts": given.parts}
    metadata = dict(first.own_metadata) if first.metadata and OURS not in first.metadata else {}
    if given.extras:
        metadata[OURS] = given.extras
    if not first.native:
        return {**made, "metadata": metadata} if metadata else made
    own = OWN.fields(first.native) if OWN.form(first.native).get("in", UI) == UI else {}
    if own and is_v4(
        own
    ):  # of a message of ai 4 that went through another format: it would be read as one again
        own = {}
    kept = own.pop("metadata", _MISSING)
    if isinstance(kept, dict):
        made["metadata"] = {**metadata, **kept}
    elif metadata or kept is not _MISSING:
        made["metadata"] = metadata or kept
    return {**made, **own}


UI_DIALECT = Dialect(
    UI,
    {"text": load_text, "reasoning": load_reasoning, "file": load_file, "dynamic-tool": load_tool},
    {"tool-": load_tool},
    lambda piece, is_model: dump_text(piece, is_model=is_model),
    _thinking,
    _file,
    _call,
    _result,
    dump_mark,
    _envelope,
    lambda own, extras: {**own, "metadata": {**if_object(own.get("metadata")), OURS: extras}},
)
