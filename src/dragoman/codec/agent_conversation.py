"""A conversation as the agent had it that is asked like a model: the inverse of `agent_answer`.

`agent_answer` turns what an agent said into one model message and keeps notes in its `native`
field: the thread, the run that waits, and the size of each of the agent's own messages.

`agent_turns` walks through the conversation. It splits each message of the target agent by those
sizes, or between results and other pieces if a client has changed the parts since. Results in the
user messages that follow become `Resume` answers if the agent's newest message waits for them.
"""

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
    known_messages: int
    """How many of them, from the first, the agent has heard or said."""
    resume: tuple[Resume, ...]
    """What is answered to what it waits for."""
    thread_id: str | None
    """Its id of the conversation; `None`: it was not asked before."""
    waits: str | None
    """Its id of the run (of the task) that waits; `None`: none does."""


def agent_turns(
    messages: Sequence[Message], wire_native: WireNative, target: Origin | None
) -> AgentTurns:
    """Returns the conversation as the remote agent at `target` is sent it. `wire_native`: of its
    wire."""
    agent_messages: list[Message] = []
    known_messages, resume, thread_id, waits = 0, list[Resume](), None, None
    open_calls: dict[str, ToolCallPart] = {}
    for message in messages:
        if message.role is Role.MODEL and _is_from(message.origin, target):
            notes = wire_native.notes(message.native)
            thread_id = if_text(notes.get("thread")) or thread_id
            waits, resume = if_text(notes.get("waits")) or None, []
            # Only what the agent's newest answer waits for can still be answered.
            open_calls = _find_open_calls(message)
            agent_messages += _by_turns(message, if_list(notes.get("turns")))
            known_messages = len(agent_messages)
        elif message.role is Role.USER and open_calls:
            answered, remaining = _split_answers(message, open_calls)
            resume += answered
            if remaining is not None:
                agent_messages.append(remaining)
        else:
            agent_messages.append(message)
    return AgentTurns(tuple(agent_messages), known_messages, tuple(resume), thread_id, waits)


def _find_open_calls(message: Message) -> dict[str, ToolCallPart]:
    """Returns the calls of a message that wait for the client, by their ids."""
    return {call.id: call for call in message.tool_calls if read_interrupt(call) is not None}


def _is_from(origin: Origin | None, target: Origin | None) -> bool:
    """True if the agent that the conversation is sent to said this message."""
    if origin is None or target is None:
        return False
    return origin.provider == target.provider and origin.model == target.model


def _split_answers(
    message: Message, open_calls: dict[str, ToolCallPart]
) -> tuple[list[Resume], Message | None]:
    """Returns the answers to the agent's interrupts in a message of the conversation, and what is
    left of it; `None`: nothing."""
    resume: list[Resume] = []
    remaining: list[Content] = []
    for piece in message.content:
        answer = _read_answer(piece, open_calls)
        if answer is not None:
            resume.append(answer)
        elif not isinstance(piece, MarkPart):
            remaining.append(piece)
    if len(remaining) == len(message.content):
        return resume, message
    if not remaining:
        return resume, None
    return resume, message.replace(content=tuple(remaining))


def _read_answer(piece: Content, open_calls: dict[str, ToolCallPart]) -> Resume | None:
    """Returns the answer for the agent in the result of a call that waits for the client; None in
    any other piece."""
    if not isinstance(piece, ToolResultPart) or piece.id not in open_calls:
        return None
    interrupt = read_interrupt(open_calls[piece.id])
    # The result of a tool that the client ran goes to the agent as a result.
    if interrupt is None or interrupt.reason == "tool":
        return None
    return read_resume(interrupt, piece)


def _by_turns(message: Message, turns: list[Any]) -> Iterator[Message]:
    """Yields a message of the conversation as the messages that the agent told."""
    for id_, pieces in _group_by_message(message.content, turns):
        is_result = all(isinstance(piece, ToolResultPart) for piece in pieces)
        role = Role.USER if is_result else Role.MODEL
        yield Message(
            role,
            tuple(map(_return_to_agent, pieces)),
            id=id_,
            created_at=message.created_at,
        )


def _group_by_message(
    content: Sequence[Content], turns: list[Any]
) -> Iterable[tuple[str | None, Sequence[Content]]]:
    """Returns the pieces by the messages that the agent told them in, without those that stand for
    what no message told; where that is not known, results stand apart."""
    sizes = [(turn[0], turn[1]) for turn in turns if _is_size(turn)]
    # A client may have dropped or merged parts since; then the sizes no longer tell anything.
    if sizes and sum(size for _, size in sizes) == len(content):
        return _split_by_sizes(content, sizes)
    return _split_by_results(content)


def _split_by_sizes(
    content: Sequence[Content], sizes: Sequence[tuple[str, int]]
) -> Iterator[tuple[str | None, Sequence[Content]]]:
    """Cuts a message back into those that the agent told: yields the id and the pieces of each.
    Pieces with an empty id belong to no message of the agent's and are left out."""
    start = 0
    for id_, size in sizes:
        if id_:
            yield id_, content[start : start + size]
        start += size


def _split_by_results(
    content: Sequence[Content],
) -> Iterator[tuple[str | None, Sequence[Content]]]:
    """Yields runs of results and of other pieces of an agent's message, since a result is the
    user's to an agent."""
    group: list[Content] = []
    for piece in content:
        if group and isinstance(piece, ToolResultPart) != isinstance(group[-1], ToolResultPart):
            yield None, group
            group = []
        group.append(piece)
    if group:
        yield None, group


def _is_size(value: Any) -> bool:
    """True if a value is a message id with the number of parts, at least 1, that the agent told of
    that message."""
    listed = if_list(value)
    return (
        len(listed) == 2 and isinstance(listed[0], str) and type(listed[1]) is int and listed[1] > 0
    )


def _return_to_agent(piece: Content) -> Content:
    """Returns a call or a result as the agent's own again."""
    if isinstance(piece, ToolCallPart | ToolResultPart) and piece.run_by != "agent":
        piece = msgspec.structs.replace(piece, run_by="agent")
    if isinstance(piece, ToolCallPart) and read_interrupt(piece) is not None:
        native = {key: value for key, value in (piece.native or {}).items() if key != KEY}
        piece = msgspec.structs.replace(piece, native=native or None)
    return piece
