"""Streams of AG-UI, and the official client that applies them. `make service` installs it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import RateLimitError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
)
from dragoman.fold import compact, part_events
from dragoman.interrupt import Interrupt
from dragoman.message import (
    Content,
    DataPart,
    FinishReason,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import RunRequest
from dragoman.wires import ag_ui
from support.aimock import node

__all__ = [
    "REQUEST",
    "SCENARIOS",
    "applied",
    "decoded",
    "encoded",
    "objects",
    "message_events",
    "without_empty",
]

HOME = Path(__file__).parents[2] / ".cache" / "ag_ui"
REQUEST = RunRequest((Message.user("Weather?").replace(id="u"),), thread_id="t", run_id="r")
"""What the scenarios' runs answer."""
_NOW = datetime(2026, 1, 2, tzinfo=UTC)


def encoded(events: Iterable[Event], **envelope: Any) -> bytes:
    """The bytes of a stream."""
    encoder = ag_ui.encoder(**envelope)
    return b"".join([encoder.feed(event) for event in events]) + encoder.close()


def objects(events: Iterable[Event], **envelope: Any) -> list[dict[str, Any]]:
    """The objects of a stream, as a client reads them."""
    frames = encoded(events, **envelope).split(b"\n\n")
    return [json.loads(frame.removeprefix(b"data: ")) for frame in frames if frame]


def decoded(data: bytes, cuts: Sequence[int] = ()) -> list[Event]:
    """The events of a stream that comes cut at these offsets."""
    decoder = ag_ui.decoder()
    pieces = [data[start:end] for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True)]
    return [*(event for piece in pieces for event in decoder.feed(piece)), *decoder.close()]


def message_events(
    id_: str, *content: Content, role: Role = Role.MODEL, **fields: Any
) -> list[Event]:
    """A message as a stream tells it."""
    parts = [
        event for index, piece in enumerate(content) for event in part_events(id_, index, piece)
    ]
    reason = FinishReason.stop if role is Role.MODEL else None
    return [MessageStarted(id_, role, **fields), *parts, MessageFinished(id_, reason)]


def _run(*events: Event | list[Event], end: Event | None = None) -> list[Event]:
    flat = [event for each in events for event in (each if isinstance(each, list) else [each])]
    return [
        RunStarted("r", "t"),
        *flat,
        end or RunFinished("r", usage=Usage(input_tokens=3, output_tokens=4)),
    ]


_CALL = ToolCallPart("c1", "weather", {"city": "Rome"})
_OTHER = ToolCallPart("c2", "time", {})
_ORIGIN = Origin("anthropic", model="claude")
_SIGNED = ThinkingPart("hm", {"anthropic": {"signature": "c2lnbmVk+/=="}})
_APPROVAL = Interrupt(
    "c1",
    "approval",
    call=_CALL,
    message="May I?",
    expires_at=_NOW,
    signature="s",
    metadata={"a": 1},
)


def _interleaved() -> list[Event]:
    """Two calls open side by side, with progress and state in between."""
    start = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, ToolCallPart("c1", "weather")), PartStarted("m", 1, ToolCallPart("c2", "time"))]  # fmt: skip
    deltas = [PartDelta("m", 0, '{"city":'), PartDelta("m", 1, "{}"), StateDelta(({"op": "add", "path": "/n", "value": 1},)), PartDelta("m", 0, '"Rome"}')]  # fmt: skip
    ends = [
        PartFinished("m", 1, _OTHER),
        PartFinished("m", 0, _CALL),
        MessageFinished("m", FinishReason.tool_calls),
    ]
    progress = Custom("tool_progress", {"call_id": "c1", "done": 1})
    second = message_events("r2", ToolResultPart("c2", "time", "noon"), role=Role.USER)
    first = message_events(
        "r1", ToolResultPart("c1", "weather", {"sun": 1.0}, is_error=True), role=Role.USER
    )
    return [*start, *deltas, *ends, progress, *second, *first]


# fmt: off
SCENARIOS: Mapping[str, Callable[[], list[Event]]] = {
    "nothing": list,
    "a text": lambda: _run(message_events("m", TextPart("Hello."), origin=_ORIGIN)),
    "no run": lambda: message_events("m", TextPart("Hello.")),
    "all kinds": lambda: _run(
        message_events("m", _SIGNED, TextPart("Let me see."), _CALL, TextPart("And:"), _OTHER, turn="m", created_at=_NOW),
        message_events("x", ToolResultPart("c1", "weather", 1), ToolResultPart("c2", "time", (TextPart("a"), DataPart(b"x", "image/png"))), role=Role.USER),
        message_events("n", TextPart("Done."), ProviderPart("block", {"anthropic": {"a": 1}})),
    ),
    "steps and state": lambda: _run(
        StepStarted("model call 1"), StateSnapshot({"a": 1}), *_interleaved(), StepFinished("model call 1"),
        StateDelta(({"op": "replace", "path": "/a", "value": [2]},)), message_events("n", TextPart("Sun.")),
    ),
    "taken back": lambda: _run(
        message_events("m", TextPart("Wrong"), _CALL), MessageDropped("m", "again"), message_events("n", TextPart("Right."))
    ),
    "taken back while another is open": lambda: _run(
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "Ha"),
        MessageStarted("n", Role.MODEL), PartStarted("n", 0, ThinkingPart()), PartDelta("n", 0, "hm"),
        MessageDropped("n"), PartDelta("m", 0, "llo."), PartFinished("m", 0, TextPart("Hallo.")), MessageFinished("m"),
    ),
    "an error in the middle": lambda: _run(
        StepStarted("s"), MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "Ha"),
        end=RunError(RateLimitError("too much"), "r"),
    ),
    "cut": lambda: _run(MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "Ha"))[:-1],
    "cancelled": lambda: _run(message_events("m", TextPart("Ha")), end=RunFinished("r", "cancelled")),
    "an approval": lambda: _run(message_events("m", _CALL), end=RunFinished("r", "pending", pending=(_APPROVAL,))),
    "a tool of the client's": lambda: _run(
        message_events("m", _CALL, _OTHER), end=RunFinished("r", "pending", pending=(Interrupt("c1", call=_CALL), Interrupt("c2", call=_OTHER)))
    ),
    "a question and a sign-in": lambda: _run(
        message_events("m", _CALL, _OTHER),
        end=RunFinished("r", "pending", pending=(
            Interrupt("c1", "input", call=_CALL, message="Which?", schema={"type": "string"}),
            Interrupt("c2", "auth", call=_OTHER, metadata={"url": "https://sign.test"}),
        )),
    ),
    "a run within a tool": lambda: _run(
        message_events("m", _CALL), RunStarted("inner", parent_run_id="r"), StepStarted("model call 1", run_id="inner"),
        message_events("i", _SIGNED, TextPart("Inner."), run_id="inner"), StateSnapshot({"b": 2}, run_id="inner"), Custom("note", 1, run_id="inner"),
        RunStarted("deeper", parent_run_id="inner"), RunError(RateLimitError("no"), "deeper"),
        StepFinished("model call 1", run_id="inner"), RunFinished("inner", result="Inner."),
        message_events("x", ToolResultPart("c1", "weather", "Inner."), role=Role.USER), message_events("n", TextPart("Out.")),
    ),
    "a run within a tool that is left open": lambda: _run(
        message_events("m", _CALL), RunStarted("inner", parent_run_id="r"), StepStarted("s", run_id="inner"),
        MessageStarted("i", Role.MODEL, run_id="inner"), PartStarted("i", 0, _SIGNED), PartDelta("i", 0, "h"),
    ),
    "several answers": lambda: _run(message_events("m", TextPart("One.")), message_events("n", TextPart("Two."), candidate=1)),
    "ids that repeat": lambda: _run(message_events("m", _CALL), message_events("m", _CALL), message_events("x", ToolResultPart("c1", "weather", "a"), role=Role.USER)),
    "other than its deltas": lambda: _run(
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "Hal"),
        PartFinished("m", 0, TextPart("Hello.", {"google": {"a": 1}})), MessageFinished("m"),
    ),
    "calls without arguments": lambda: _run(message_events("m", ToolCallPart("", "f", raw="", state="complete"), ToolCallPart("", "g"))),
    "what the client said": lambda: _run(message_events("u", TextPart("Weather?"), role=Role.USER), message_events("m", TextPart("Sun."))),
    "runs one after the other": lambda: [*_run(message_events("m", TextPart("a"))), RunStarted("r2", "t"), *message_events("n", TextPart("b")), RunFinished("r2")],
}
"""Name → events of a run, in all the ways in which runs go."""
# fmt: on


def without_empty(events: Iterable[Event]) -> list[Event]:
    """Events without deltas of nothing, their deltas joined."""
    return compact([event for event in events if getattr(event, "delta", None) not in ("", b"")])


def applied(
    streams: Iterable[tuple[Sequence[Any], Sequence[Any]]], version: str = "1.0"
) -> list[dict[str, Any]]:
    """What the official client of a version makes of streams, each with the messages that it has
    before."""
    if not (HOME / ".done").is_file():
        pytest.skip("AG-UI's client is not installed: run `make service`")
    command = [
        *node(),
        "--preserve-symlinks",
        "--preserve-symlinks-main",
        str(HOME / "driver" / "apply.mjs"),
        version,
    ]
    lines = [json.dumps({"events": events, "messages": messages}) for events, messages in streams]
    done = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, cwd=HOME, timeout=300, check=True)  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]
