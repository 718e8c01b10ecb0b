"""`docs/formats/a2a-mapping.md`: the rows of the seed's table, each run through the functions of
its time and through today's wires."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dragoman import json_bytes, wires
from dragoman.errors import ProviderError
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepStarted,
)
from dragoman.fold import part_events, unfold
from dragoman.formats import seed_a2a
from dragoman.interrupt import Interrupt
from dragoman.message import FinishReason, Message, Role, TextPart, ToolCallPart, ToolResultPart

__all__ = ["ROWS", "Row", "markdown"]

Json = dict[str, Any]
_CALL = {"call_id": "call_1", "name": "f", "arguments": {"a": 1}}
_RESULT = {"call_id": "call_1", "name": "f", "output": "ok"}
_PART = ToolCallPart("call_1", "f", {"a": 1}, run_by="client")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """A row of the table."""

    name: str
    """The structure of A2A, in the words of the seed."""
    old: Json
    """One, as of the time of the seed."""
    before: Sequence[Event]
    """Of a run of today: what comes before it."""
    events: Sequence[Event]
    """And what it is."""


def _old(role: str, kind: str = "", **part: Any) -> Json:
    metadata = {"metadata": {"canonical_type": kind}} if kind else {}
    return {"role": role, "parts": [{"kind": next(iter(part)), **part}], **metadata}


def _status(state: str) -> Json:
    return {"taskId": "t", "status": {"state": state}}


_RUN = [RunStarted("r", "t")]
_OPEN: list[Event] = [*_RUN, MessageStarted("m", Role.MODEL)]
_TEXT: list[Event] = [*_OPEN, PartStarted("m", 0, OpenText()), PartDelta("m", 0, "Hel")]
_SAID: list[Event] = [
    *_OPEN,
    *part_events("m", 0, TextPart("Hi.")),
    MessageFinished("m", FinishReason.stop),
]
_WAITS = (Interrupt("q", "input", message="Which?"),)
ROWS: tuple[Row, ...] = (
    Row("task (initial)", {"id": "t", **_status("submitted")}, [], _RUN),
    Row("status update: created", _status("created"), [], _RUN),
    Row("status update: working", _status("working"), _RUN, [StepStarted("model call 1")]),
    Row(
        "message: user, text",
        _old("user", text="Hi."),
        _RUN,
        unfold([Message.user("Hi.").replace(id="u")]),
    ),
    Row(
        "message: agent, text, chunk",
        _old("agent", "TextMessageChunkEvent", text="Hel"),
        _OPEN,
        [*_TEXT[2:], PartDelta("m", 0, "lo")],
    ),
    Row(
        "message: agent, text, final",
        _old("agent", text="Hello."),
        [*_TEXT, PartDelta("m", 0, "lo.")],
        [PartFinished("m", 0, TextPart("Hello.")), MessageFinished("m", FinishReason.stop)],
    ),
    Row(
        "message: agent, calls, in pieces",
        _old("agent", "ToolCallArgsEvent", data={"tool_calls": [_CALL]}),
        [*_OPEN, PartStarted("m", 0, ToolCallPart("call_1", "f", run_by="client"))],
        [PartDelta("m", 0, '{"a":')],
    ),
    Row(
        "message: agent, calls, final",
        _old("agent", data={"tool_calls": [_CALL]}),
        _OPEN,
        part_events("m", 0, _PART),
    ),
    Row(
        "message: user, results",
        _old("user", data={"tool_results": [_RESULT]}),
        [*_OPEN, *part_events("m", 0, _PART), MessageFinished("m")],
        unfold([Message.user(ToolResultPart("call_1", "f", "ok")).replace(id="u")]),
    ),
    Row(
        "status update: input-required",
        _status("input-required"),
        _SAID,
        [RunFinished("r", "pending", pending=_WAITS)],
    ),
    Row("status update: completed", _status("completed"), _SAID, [RunFinished("r")]),
    Row(
        "status update: failed",
        _status("failed"),
        _SAID,
        [RunError(ProviderError("It failed."), "r")],
    ),
    Row("status update: canceled", _status("canceled"), _SAID, [RunFinished("r", "cancelled")]),
)
"""The seed's table."""
_HEAD = """\
# A2A, AG-UI and OpenAI: the mapping

Read this page to move an agent from one protocol to another, or from the conversion functions of 2025 to today's wires. Each row is something that happens in a run; its columns
show how each protocol says it.

- **2025**: what the conversion functions of `dragoman.wires.a2a` return, such as `a2a.convert_a2a_message_to_agui_event` (see [A2A](a2a.md#the-conversions-of-2025)).
- **today**: what the encoders of the wires send for the same thing.
- A dash: the protocol sends nothing in its stream. Chat Completions and Responses carry user messages and results of tools in the next request.
- "with the next": the encoder sends it together with the next row's object.
- `CUSTOM` carries what AG-UI has no field for, so that a client with dragoman reads the same events.
- A cancelled run has no word of its own in OpenAI's APIs: its answer ends as usual.

`make pages` generates the table by running the code.

| A2A in 2025 | `canonical_type` | AG-UI event in 2025 | Chat in 2025 | Responses in 2025 | A2A 1.0 | AG-UI 1.0 | Chat today | Responses today |
|---|---|---|---|---|---|---|---|---|
"""


def _then(old: Json) -> tuple[str, str, str, str]:
    if "status" in old:
        kind = seed_a2a.get_agui_event_type_from_task_status_update(old)
        event = seed_a2a.convert_task_status_update_to_agui_event(old, {"id": "t"})
    else:
        kind, event = (
            seed_a2a.get_agui_event_type_from_a2a_message(old),
            seed_a2a.convert_a2a_message_to_agui_event(old),
        )
    message, tools = seed_a2a.convert_agui_event_to_openai_chat(event)
    response: Any = seed_a2a.convert_agui_event_to_responses_api(event)
    said = [*tools, *([message] if message else [])]
    chat = ", ".join(
        f"`{each['role']}`" + (" with `tool_calls`" if "tool_calls" in each else "")
        for each in said
    )
    return kind, event["type"], chat or "–", response["event"]


def _now(wire: Any, row: Row) -> list[Mapping[str, Any]]:
    """What a wire of today sends for the events of a row."""
    encoder = wire.encoder(**wire.envelope(None, id="r", now=_NOW))
    for event in row.before:
        encoder.objects(event)
    return [each for event in row.events for each in encoder.objects(event)]


def _a2a(each: Mapping[str, Any]) -> str:
    if "task" in each:
        return f"`task` ({each['task']['status']['state']})"
    if "artifactUpdate" in each:
        update = each["artifactUpdate"]
        [kind] = [
            key for key in update["artifact"]["parts"][0] if key in ("text", "data", "raw", "url")
        ]
        how = "append" if update["append"] else update["artifact"].get("name", "")
        return f"`artifactUpdate` ({how}, `{kind}`{', last' if update['lastChunk'] else ''})"
    return f"`statusUpdate` ({each['statusUpdate']['status']['state']})"


def _chat(each: Mapping[str, Any]) -> str:
    ended = [
        f"`finish_reason: {choice['finish_reason']}`"
        for choice in each.get("choices", [])
        if choice["finish_reason"]
    ]
    if "choices" in each:
        return ended[0] if ended else "`usage`"
    return "`error`" if "error" in each else " ".join([f"`delta.{key}`" for key in each])


def _listed(names: Iterable[str], none: str = "with the next") -> str:
    return ", ".join(dict.fromkeys(names)) or none


def markdown() -> str:
    """The page."""
    rows: list[str] = []
    for row in ROWS:
        kind, type_, chat, response = _then(json_bytes.decode(json_bytes.encode(row.old)))
        today = _listed(map(_a2a, _now(wires.get("a2a"), row)))
        agui = _listed(f"`{each['type']}`" for each in _now(wires.get("ag_ui"), row))
        deltas = _listed(map(_chat, _now(wires.get("openai_chat"), row)), "–")
        responses = _listed(
            (f"`{each['type']}`" for each in _now(wires.get("openai_responses"), row)), "–"
        )
        cells = (
            row.name,
            f"`{kind}`",
            f"`{type_}`",
            chat,
            f"`{response}`",
            today,
            agui,
            deltas,
            responses,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return _HEAD + "\n".join(rows) + "\n"
