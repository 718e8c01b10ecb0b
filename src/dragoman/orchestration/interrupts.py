"""Finds what a conversation waits for, from its messages and the tools.

A call of the last round without a result waits where the client runs it, where its tool needs
approval, and where a mark in the round says so. A mark holds what messages and tools do not tell:
questions, addresses, verdicts, expiry, what was answered so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dragoman.codec.digest import neutral_digest
from dragoman.codec.marks import INTERRUPT, read_interrupt
from dragoman.errors import HistoryError
from dragoman.interrupt import Interrupt, Reason
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import OURS, MarkPart, Message, Role, ToolCallPart, ToolResultPart
from dragoman.orchestration.seal import Seal
from dragoman.repair import OpenCall, find_open_calls
from dragoman.tools import Tool
from dragoman.tools.call_record import InnerRun

__all__ = [
    "WaitingCall",
    "find_expiry",
    "answer_ids",
    "make_interrupt",
    "needs_mark",
    "find_reason",
    "count_seen_messages",
    "has_new_prompt",
    "find_waiting_calls",
]


_ENCODER = msgspec.json.Encoder(order="deterministic")


class WaitingCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that waits, with its interrupts."""

    call: OpenCall
    """The call and its place."""
    interrupts: tuple[Interrupt, ...]
    """Its interrupt, or those of an agent inside its tool."""
    answers: tuple[Any, ...] = ()
    """Answers to the tool's earlier questions."""
    arguments: JsonMap | None = None
    """The approved arguments, if they are not the model's."""
    approved: bool = False
    """True if it was approved before it asked something."""
    runs: tuple[InnerRun, ...] = ()
    """Runs of agents inside its tool."""

    def state(self) -> bytes:
        """Returns the call's earlier answers and approvals as JSON, which its interrupts are signed
        with; empty if there are none."""
        if not (self.answers or self.arguments is not None or self.approved or self.runs):
            return b""
        # What is signed: fields are added at the end, and left out where they are empty, so that
        # signatures hold.
        runs = [
            (run.messages, run.output, run.done, *([run.after] if run.after else []))
            for run in map(_dump_run, self.runs)
        ]
        return _ENCODER.encode((self.answers, self.arguments, self.approved, runs))

    def mark(self) -> MarkPart:
        """Returns the mark that records the call in the history."""
        call = self.call.call
        # The call itself is in the conversation, and not repeated.
        waits = [
            msgspec.structs.replace(interrupt, call=None) if interrupt.call == call else interrupt
            for interrupt in self.interrupts
        ]
        mark = _StoredMark(
            call.id,
            self.call.turn,
            tuple(waits),
            self.answers,
            self.arguments,
            self.approved,
            tuple(map(_dump_run, self.runs)),
        )
        return MarkPart(INTERRUPT, {OURS: msgspec.json.decode(msgspec.json.encode(mark))})


class _StoredRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run of an agent inside a tool, as a mark stores it."""

    messages: list[Any]
    output: Any = None
    done: bool = False
    after: str | None = None


class _StoredMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a mark; see `WaitingCall`."""

    call: str
    turn: int
    waits: tuple[Interrupt, ...]
    answers: tuple[Any, ...] = ()
    arguments: JsonMap | None = None
    approved: bool = False
    runs: tuple[_StoredRun, ...] = ()


def find_waiting_calls(
    messages: Sequence[Message],
    tools: Mapping[str, Tool],
    seal: Seal,
    *,
    has_toolsets: bool = False,
) -> list[WaitingCall]:
    """Returns the calls of a conversation that wait, with their interrupts, in order. `seal`: signs
    calls without a mark; give one without a key if the history came from a client, who could have
    invented them. `has_toolsets`: tools come and go, so an unknown tool is not taken for the
    client's."""
    # Only the last round can wait: everything before it was answered, or repaired when it was sent.
    opened = find_open_calls(messages)
    if not opened:
        return []
    marks = _load_marks(messages, opened[0].position)
    waiting: list[WaitingCall] = []
    for open_call in opened:
        if (mark := marks.get((open_call.call.id, open_call.turn))) is not None:
            waiting.append(_load_mark(open_call, mark))
        elif has_toolsets and open_call.call.run_by == "agent" and open_call.call.name not in tools:
            continue
        elif (reason := find_reason(open_call.call, tools)) is not None:
            waiting.append(
                WaitingCall(open_call, (make_interrupt(messages, open_call, reason, tools, seal),))
            )
    return waiting


def count_seen_messages(messages: Sequence[Message]) -> int:
    """Returns the number of messages up to the model's last one, whose interrupts are known. The
    messages after it are new to the model."""
    return next(
        (count for count in range(len(messages), 0, -1) if messages[count - 1].role is Role.MODEL),
        0,
    )


def has_new_prompt(messages: Sequence[Message]) -> bool:
    """True if no interrupt waits because a user message after the model's last one contains more
    than results."""
    return any(
        not isinstance(piece, ToolResultPart | MarkPart)
        for message in messages[count_seen_messages(messages) :]
        if message.role is Role.USER
        for piece in message.content
    )


def find_reason(call: ToolCallPart, tools: Mapping[str, Tool]) -> Reason | None:
    """Returns the reason of an interrupt: why a call waits, as far as the call and the tools show,
    or None."""
    tool = tools.get(call.name)
    # It cannot be run, whoever runs it.
    if call.state != "complete":
        return None
    if (interrupt := read_interrupt(call)) is not None and interrupt.reason != "tool":
        return interrupt.reason
    if call.run_by == "client" or tool is None or tool.handler is None:
        return "tool"
    return "approval" if tool.requires_approval else None


def needs_mark(waiting: WaitingCall, tools: Mapping[str, Tool]) -> bool:
    """True if an interrupt needs a mark: messages and tools do not show everything that a call
    waits for. `tools`: the fixed ones, because a toolset must be asked for its own."""
    first = waiting.interrupts[0]
    tool = tools.get(waiting.call.call.name)
    is_flagged = first.reason == "approval" and tool is not None and tool.requires_approval is True
    details = (
        first.parent
        or waiting.answers
        or waiting.runs
        or first.message
        or first.expires_at
        or first.signature
    )
    return bool(details) or not (is_flagged or first.reason == "tool")


def make_interrupt(
    messages: Sequence[Message],
    open_call: OpenCall,
    reason: Reason,
    tools: Mapping[str, Tool],
    seal: Seal,
    *,
    answered: int = 0,
    state: bytes = b"",
    **details: Any,
) -> Interrupt:
    """Returns the signed interrupt of a call. `answered`: number of the tool's questions that are
    answered; `state`: see `WaitingCall.state`; `details`: fields that the call does not contain."""
    message = messages[open_call.position]
    tool = tools.get(open_call.call.name)
    details = {**_read_details(open_call.call), **details}
    metadata: Json = {"message_digest": neutral_digest(message)}
    if message.id:
        metadata["message_id"] = message.id
    interrupt_id = answer_ids(messages, open_call)[0]
    # A tool's first question shares its id with an approval; later ones are numbered.
    if answered:
        interrupt_id += f"?{answered + 1}"
    interrupt = Interrupt(
        interrupt_id,
        reason,
        call=open_call.call,
        editable=reason == "approval" and tool is not None and tool.editable,
        metadata={**metadata, **details.pop("metadata", {})},
    )
    interrupt = msgspec.structs.replace(interrupt, **details)
    return seal.sign_interrupt(interrupt, state)


def _read_details(call: ToolCallPart) -> Json:
    """Returns the interrupt's fields in a call that a remote agent waits for, without the ids of
    that agent's messages."""
    interrupt = read_interrupt(call)
    if interrupt is None or interrupt.reason == "tool":
        return {}
    metadata = {
        key: value
        for key, value in interrupt.metadata.items()
        if key not in ("message_id", "message_digest")
    }
    details = {
        "message": interrupt.message,
        "schema": interrupt.schema,
        "expires_at": interrupt.expires_at,
    }
    return {**details, "editable": interrupt.editable, "metadata": metadata}


def answer_ids(messages: Sequence[Message], open_call: OpenCall) -> tuple[str, ...]:
    """Returns the ids under which a call's interrupts may be answered. The first one is its present
    id; the others are those that it has in a longer or shorter history."""
    message, call_id = messages[open_call.position], open_call.call.id
    keys = [key for key in (message.id, neutral_digest(message)) if key]
    with_message = [f"{call_id}@{key}" for key in keys]
    with_position = [f"{key_with_message}#{open_call.place}" for key_with_message in with_message]
    if _count_calls(message, call_id) > 1:
        return (*with_position, *with_message, call_id)
    total = sum(_count_calls(other, call_id) for other in messages if other.role is Role.MODEL)
    # The plain id is enough for a client while no other call of the history has it.
    if total == 1:
        return (call_id, *with_message, *with_position)
    return (*with_message, *with_position, call_id)


def _count_calls(message: Message, call_id: str) -> int:
    """Returns how many calls of a message have that id."""
    return sum(_is_call(piece, call_id) for piece in message.content)


def _is_call(piece: object, call_id: str) -> bool:
    """True if a piece of content is the call with that id, unless the provider runs it."""
    return isinstance(piece, ToolCallPart) and piece.id == call_id and piece.run_by != "provider"


def _load_marks(messages: Sequence[Message], position: int) -> dict[tuple[str, int], _StoredMark]:
    """Reads the interrupts' marks of a round by id and turn of their call; the last one counts."""
    marks: dict[tuple[str, int], _StoredMark] = {}
    for message in messages[position:]:
        for piece in message.content if message.role is Role.USER else ():
            if (
                isinstance(piece, MarkPart)
                and piece.kind == INTERRUPT
                and piece.native
                and OURS in piece.native
            ):
                try:
                    mark = msgspec.convert(piece.native[OURS], _StoredMark)
                except msgspec.ValidationError as error:
                    raise HistoryError(
                        f"the history has a mark of what it waits for that cannot be read: {error}"
                    ) from error
                marks[mark.call, mark.turn] = mark
    return marks


def _load_mark(open_call: OpenCall, mark: _StoredMark) -> WaitingCall:
    """Returns the waiting call that the mark of an interrupt describes."""
    waits = [
        msgspec.structs.replace(interrupt, call=interrupt.call or open_call.call)
        for interrupt in mark.waits
    ]
    runs = tuple(map(_load_run, mark.runs))
    return WaitingCall(open_call, tuple(waits), mark.answers, mark.arguments, mark.approved, runs)


def _dump_run(run: InnerRun) -> _StoredRun:
    """Returns a run in its stored form."""
    messages = [msgspec.Raw(message.to_json()) for message in run.messages]
    return _StoredRun(messages, run.output, run.done, run.after)


def _load_run(run: _StoredRun) -> InnerRun:
    """Returns a run from its stored form."""
    messages = [Message.from_json(msgspec.json.encode(message)) for message in run.messages]
    return InnerRun(tuple(messages), run.output, run.done, run.after)


def find_expiry(tool: Tool | None, now: datetime) -> datetime | None:
    """Returns the expiry of an interrupt: the time at which an approval that is requested now
    expires, or None."""
    if tool is None or (limit := tool.approval_expires) is None:
        return None
    if not isinstance(limit, timedelta):
        limit = timedelta(seconds=limit)
    return now + limit
