"""A conversation as the agent had it that is asked like a model: the inverse of `agent_answer`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman.codec.json_values import if_list, if_text
from dragoman.codec.marks import KEY, read_interrupt, read_resume
from dragoman.codec.native import WireNative
from dragoman.interrupt import Resume
from dragoman.message import Content, MarkPart, Message, Origin, Role, ToolCallPart, ToolResultPart

__all__ = ["AgentTurns", "agent_turns"]


class AgentTurns(NamedTuple):
    """A conversation, with what of it concerns one agent."""

    messages: tuple[Message, ...]
    """All, those of the agent's as it told them."""
    known: int
    """How many of them, from the first, the agent has heard or said."""
    resume: tuple[Resume, ...]
    """What is answered to what it waits for."""
    thread_id: str | None
    """Its id of the conversation; `None`: it was not asked before."""
    waits: str | None
    """Its id of the run (of the task) that waits; `None`: none does."""


def agent_turns(messages: Sequence[Message], own: WireNative, target: Origin | None) -> AgentTurns:
    """The conversation for the agent at `target`. `own`: of its wire."""
    made: list[Message] = []
    known, resume, thread_id, waits = 0, list[Resume](), None, None
    open_calls: dict[str, ToolCallPart] = {}
    for message in messages:
        if message.role is Role.MODEL and _is_from(message.origin, target):
            notes = own.notes(message.native)
            thread_id = if_text(notes.get("thread")) or thread_id
            waits, resume = if_text(notes.get("waits")) or None, []
            open_calls = {
                call.id: call for call in message.tool_calls if read_interrupt(call) is not None
            }
            made += _by_turns(message, if_list(notes.get("turns")))
            known = len(made)
        elif message.role is Role.USER and open_calls:
            answered, left = _answers(message, open_calls)
            resume += answered
            made += [] if left is None else [left]
        else:
            made.append(message)
    return AgentTurns(tuple(made), known, tuple(resume), thread_id, waits)


def _is_from(origin: Origin | None, target: Origin | None) -> bool:
    """Whether it is the agent that said it."""
    if origin is None or target is None:
        return False
    return origin.provider == target.provider and origin.model == target.model


def _answers(
    message: Message, open_calls: dict[str, ToolCallPart]
) -> tuple[list[Resume], Message | None]:
    """The answers in a message, and what is left of it; `None`: nothing."""
    resume: list[Resume] = []
    left: list[Content] = []
    for piece in message.content:
        call = open_calls.get(piece.id) if isinstance(piece, ToolResultPart) else None
        interrupt = None if call is None else read_interrupt(call)
        if (
            isinstance(piece, ToolResultPart)
            and interrupt is not None
            and interrupt.reason != "tool"
        ):
            resume.append(read_resume(interrupt, piece))
        elif not isinstance(piece, MarkPart):
            left.append(piece)
    if not left and message.content:
        return resume, None
    return resume, message if len(left) == len(message.content) else message.replace(
        content=tuple(left)
    )


def _by_turns(message: Message, turns: list[Any]) -> Iterator[Message]:
    """A message as those that the agent told."""
    for id_, pieces in _groups(message.content, turns):
        is_result = all(isinstance(piece, ToolResultPart) for piece in pieces)
        yield Message(
            Role.USER if is_result else Role.MODEL,
            tuple(map(_agents, pieces)),
            id=id_,
            created_at=message.created_at,
        )


def _groups(
    content: Sequence[Content], turns: list[Any]
) -> Iterable[tuple[str | None, Sequence[Content]]]:
    """The pieces by the messages that they were told in, without those that stand for what no
    message told; where that is not known, results stand apart."""
    sizes = [(each[0], each[1]) for each in turns if _is_size(each)]
    if sizes and sum(size for _, size in sizes) == len(content):
        start = 0
        for id_, size in sizes:
            if id_:
                yield id_, content[start : start + size]
            start += size
        return
    group: list[Content] = []
    for piece in content:
        if group and isinstance(piece, ToolResultPart) != isinstance(group[-1], ToolResultPart):
            yield None, group
            group = []
        group.append(piece)
    if group:
        yield None, group


def _is_size(value: Any) -> bool:
    listed = if_list(value)
    return (
        len(listed) == 2 and isinstance(listed[0], str) and type(listed[1]) is int and listed[1] > 0
    )


def _agents(piece: Content) -> Content:
    """A call or a result as the agent's own again."""
    if isinstance(piece, ToolCallPart | ToolResultPart) and piece.run_by != "agent":
        piece = msgspec.structs.replace(piece, run_by="agent")
    if isinstance(piece, ToolCallPart) and read_interrupt(piece) is not None:
        native = {key: value for key, value in (piece.native or {}).items() if key != KEY}
        piece = msgspec.structs.replace(piece, native=native or None)
    return piece
