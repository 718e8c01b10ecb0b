"""What a conversation waits for, read off its messages and the tools.

A call of the last round without a result waits where the client runs it, where its tool needs approval, and where a mark in the
round says so. A mark holds what messages and tools do not tell: questions, addresses, verdicts, expiry, what was answered so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dragoman.codec.digest import neutral
from dragoman.codec.marks import INTERRUPT, interrupt_of
from dragoman.errors import HistoryError
from dragoman.interrupt import Interrupt, Reason
from dragoman.message import OURS, MarkPart, Message, Role, ToolCallPart, ToolResultPart
from dragoman.orchestration.seal import Seal
from dragoman.repair import OpenCall, open_calls
from dragoman.tools import Tool
from dragoman.tools.record import InnerRun

__all__ = [
    "Waiting",
    "expiry",
    "ids_of",
    "interrupt_for",
    "needs_mark",
    "reason_of",
    "since_model",
    "speaks",
    "waiting_calls",
]


_ENCODER = msgspec.json.Encoder(order="deterministic")


class Waiting(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that waits, and what for."""

    call: OpenCall
    """The call, and where it stands."""
    interrupts: tuple[Interrupt, ...]
    """One; or those of an agent that runs in its tool."""
    answers: tuple[Any, ...] = ()
    """To what its tool has asked so far."""
    arguments: Mapping[str, Any] | None = None
    """Those with which it was approved, where they are not the model's."""
    approved: bool = False
    """Somebody allowed it, before it asked something."""
    runs: tuple[InnerRun, ...] = ()
    """Runs of agents in its tool."""

    def state(self) -> bytes:
        """What the call has been through, as JSON; empty: nothing."""
        if not (self.answers or self.arguments is not None or self.approved or self.runs):
            return b""
        runs = [
            (
                [msgspec.Raw(one.to_json()) for one in run.messages],
                run.output,
                run.done,
                *([run.after] if run.after else []),
            )
            for run in self.runs
        ]
        return _ENCODER.encode((self.answers, self.arguments, self.approved, runs))

    def mark(self) -> MarkPart:
        """What stands in the history of it."""
        mark = _Mark(
            self.call.call.id,
            self.call.turn,
            tuple(
                [
                    msgspec.structs.replace(one, call=None) if one.call == self.call.call else one
                    for one in self.interrupts
                ]
            ),
            self.answers,
            self.arguments,
            self.approved,
            tuple(
                [
                    _Run(
                        [msgspec.Raw(one.to_json()) for one in run.messages],
                        run.output,
                        run.done,
                        run.after,
                    )
                    for run in self.runs
                ]
            ),
        )
        return MarkPart(INTERRUPT, {OURS: msgspec.json.decode(msgspec.json.encode(mark))})


class _Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run of an agent within a tool, as a mark has it."""

    messages: list[Any]
    output: Any = None
    done: bool = False
    after: str | None = None


class _Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a mark; see `Waiting`."""

    call: str
    turn: int
    waits: tuple[Interrupt, ...]
    answers: tuple[Any, ...] = ()
    arguments: Mapping[str, Any] | None = None
    approved: bool = False
    runs: tuple[_Run, ...] = ()


def waiting_calls(
    messages: Sequence[Message],
    tools: Mapping[str, Tool],
    seal: Seal,
    *,
    has_toolsets: bool = False,
) -> list[Waiting]:
    """The calls of a conversation that wait for somebody, in order. `seal`: signs those that have no mark; one without a key, where the
    history is a client's, who could have made them up. `has_toolsets`: `tools` need not be all that there were, so a tool that is not
    known is not the client's for that."""
    opened = open_calls(messages)
    if not opened:
        return []
    marks = _marks(messages, opened[0].position)
    found: list[Waiting] = []
    for one in opened:
        if (mark := marks.get((one.call.id, one.turn))) is not None:
            found.append(_marked(one, mark))
        elif has_toolsets and one.call.run_by == "agent" and one.call.name not in tools:
            continue
        elif (reason := reason_of(one.call, tools)) is not None:
            found.append(Waiting(one, (interrupt_for(messages, one, reason, tools, seal),)))
    return found


def since_model(messages: Sequence[Message]) -> int:
    """How many messages stand up to and with the model's last one: what follows is new to it."""
    return next(
        (at for at in range(len(messages), 0, -1) if messages[at - 1].role is Role.MODEL), 0
    )


def speaks(messages: Sequence[Message]) -> bool:
    """Whether somebody has said something after the model's last message: more than results."""
    return any(
        not isinstance(piece, ToolResultPart | MarkPart)
        for message in messages[since_model(messages) :]
        if message.role is Role.USER
        for piece in message.content
    )


def reason_of(call: ToolCallPart, tools: Mapping[str, Tool]) -> Reason | None:
    """What a call waits for, as far as it and the tools tell; `None`: for nothing."""
    tool = tools.get(call.name)
    if call.state != "complete":  # it cannot be run, whoever runs it
        return None
    if (interrupt := interrupt_of(call)) is not None and interrupt.reason != "tool":
        return interrupt.reason
    if call.run_by == "client" or tool is None or tool.handler is None:
        return "tool"
    return "approval" if tool.requires_approval else None


def needs_mark(waiting: Waiting, tools: Mapping[str, Tool]) -> bool:
    """Whether the messages and the tools do not tell all of what a call waits for. `tools`: those that are always there; of a set's nobody
    knows without asking it."""
    first = waiting.interrupts[0]
    tool = tools.get(waiting.call.call.name)
    flagged = first.reason == "approval" and tool is not None and tool.requires_approval is True
    more = (
        first.parent
        or waiting.answers
        or waiting.runs
        or first.message
        or first.expires_at
        or first.signature
    )
    return bool(more) or not (flagged or first.reason == "tool")


def interrupt_for(
    messages: Sequence[Message],
    one: OpenCall,
    reason: Reason,
    tools: Mapping[str, Tool],
    seal: Seal,
    *,
    answered: int = 0,
    state: bytes = b"",
    **known: Any,
) -> Interrupt:
    """The interrupt of a call. `answered`: how many questions of its tool have their answer; `state`: see `Waiting.state`; `known`: fields that are known beside the call."""
    message = messages[one.position]
    tool = tools.get(one.call.name)
    known = {**_of_call(one.call), **known}
    metadata: dict[str, Any] = {
        **({"message_id": message.id} if message.id else {}),
        "message_digest": neutral(message),
    }
    interrupt = Interrupt(
        ids_of(messages, one)[0] + (f"?{answered + 1}" if answered else ""),
        reason,
        call=one.call,
        editable=reason == "approval" and tool is not None and tool.editable,
        metadata={**metadata, **known.pop("metadata", {})},
    )
    interrupt = msgspec.structs.replace(interrupt, **known)
    return seal.sealed(interrupt, state)


def _of_call(call: ToolCallPart) -> dict[str, Any]:
    """What is known of a call for which an agent waits that was asked like a model. The ids of its messages are nobody's here."""
    interrupt = interrupt_of(call)
    if interrupt is None or interrupt.reason == "tool":
        return {}
    own = {
        key: value
        for key, value in interrupt.metadata.items()
        if key not in ("message_id", "message_digest")
    }
    known = {
        "message": interrupt.message,
        "schema": interrupt.schema,
        "expires_at": interrupt.expires_at,
    }
    return {**known, "editable": interrupt.editable, "metadata": own}


def ids_of(messages: Sequence[Message], one: OpenCall) -> tuple[str, ...]:
    """The ids under which a call may be answered; the first is its own, the others those that it had, or would have, in a longer or
    shorter history."""
    message = messages[one.position]
    places = [place for place, piece in enumerate(message.content) if _is_call(piece, one.call.id)]
    everywhere = sum(
        _is_call(piece, one.call.id)
        for each in messages
        if each.role is Role.MODEL
        for piece in each.content
    )
    keys = [key for key in (message.id, neutral(message)) if key]
    with_message = [f"{one.call.id}@{key}" for key in keys]
    with_place = [f"{each}#{one.place}" for each in with_message]
    if len(places) > 1:
        return (*with_place, *with_message, one.call.id)
    longer = (*with_message, *with_place)
    return (one.call.id, *longer) if everywhere == 1 else (*longer, one.call.id)


def _is_call(piece: object, call_id: str) -> bool:
    return isinstance(piece, ToolCallPart) and piece.id == call_id and piece.run_by != "provider"


def _marks(messages: Sequence[Message], position: int) -> dict[tuple[str, int], _Mark]:
    """What the marks of a round say, by id and turn of their call; the latest counts."""
    marks: dict[tuple[str, int], _Mark] = {}
    for message in messages[position:]:
        for piece in message.content if message.role is Role.USER else ():
            if (
                isinstance(piece, MarkPart)
                and piece.kind == INTERRUPT
                and piece.native
                and OURS in piece.native
            ):
                try:
                    mark = msgspec.convert(piece.native[OURS], _Mark)
                except msgspec.ValidationError as error:
                    raise HistoryError(
                        f"the history has a mark of what it waits for that cannot be read: {error}"
                    ) from error
                marks[mark.call, mark.turn] = mark
    return marks


def _marked(one: OpenCall, mark: _Mark) -> Waiting:
    """A call as its mark tells of it."""
    own = one.call
    return Waiting(
        one,
        tuple(
            [
                each if each.call is not None else msgspec.structs.replace(each, call=own)
                for each in mark.waits
            ]
        ),
        mark.answers,
        mark.arguments,
        mark.approved,
        tuple(
            [
                InnerRun(
                    tuple([Message.from_json(msgspec.json.encode(each)) for each in run.messages]),
                    run.output,
                    run.done,
                    run.after,
                )
                for run in mark.runs
            ]
        ),
    )


def expiry(tool: Tool | None, now: datetime) -> datetime | None:
    """When an approval of the tool's call that is made now comes too late."""
    given = tool.approval_expires if tool is not None else None
    if given is None:
        return None
    return now + (given if isinstance(given, timedelta) else timedelta(seconds=given))
