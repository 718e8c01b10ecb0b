"""Which messages are written as one: the turns of a conversation, cut where a reader would not put them together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.codec.turns import only_answers, turns
from dragoman.message import Message, Role, ToolResultPart
from dragoman.wires.ai_sdk_messages.steering import is_steering

__all__ = ["Group", "groups"]


class Group(NamedTuple):
    """Messages that are written as one."""

    messages: Sequence[Message]
    """All of them: one, or the model's with the results between them."""
    positions: Sequence[int]
    """Of each in the conversation."""
    behind: Sequence[Message] = ()
    """The next message, where it is a user's that brings results of these calls before it says something."""
    joined: bool = False
    """Its results stand with the group before it."""
    places: Mapping[tuple[int, int], tuple[int, int]] = {}
    """Message of the group and place of a piece in it → where in the conversation the piece stands, where that is another place."""

    @property
    def orphans(self) -> bool:
        """Whether it is results alone, without a model's message before them."""
        first = self.messages[0]
        return first.role is Role.USER and only_answers(first)


def groups(messages: Sequence[Message], *, steering: bool = False) -> list[Group]:
    """A conversation, cut into what is written as one message each. `steering`: what a user said within a turn is a part of it."""
    found: list[Group] = []
    for turn in turns(messages):
        at, start = 0, turn.start
        while at < len(turn.messages):
            end = at + 1
            if turn.messages[at].role is Role.MODEL:
                end = _end(turn.messages, at, steering=steering)
            found.append(_group(turn.messages[at:end], start + at))
            at = end
    for at in range(1, len(found)):
        if _has_answers(found[at], found[at - 1]):
            first = found[at].messages[0]
            rest = [
                (place, piece)
                for place, piece in enumerate(first.content)
                if not isinstance(piece, ToolResultPart)
            ]
            places = {
                (0, now): (found[at].positions[0], place) for now, (place, _) in enumerate(rest)
            }
            found[at - 1] = found[at - 1]._replace(behind=(first,))
            left = first.replace(content=tuple([piece for _, piece in rest]))
            found[at] = found[at]._replace(messages=(left,), joined=True, places=places)
    return found


def _group(messages: Sequence[Message], start: int) -> Group:
    """Messages that are written as one; results that follow each other are one message of them."""
    joined: list[Message] = []
    positions: list[int] = []
    places: dict[tuple[int, int], tuple[int, int]] = {}
    for at, message in enumerate(messages):
        if (
            joined
            and message.role is Role.USER
            and joined[-1].role is Role.USER
            and not _is_apart(message, joined[-1])
        ):
            before = len(joined[-1].content)
            for place in range(len(message.content)):
                places[len(joined) - 1, before + place] = start + at, place
            joined[-1] = joined[-1].replace(content=(*joined[-1].content, *message.content))
        else:
            joined.append(message)
            positions.append(start + at)
    return Group(joined, positions, places=places)


def _is_apart(message: Message, before: Message) -> bool:
    return is_steering(message) or is_steering(before)


def _has_answers(group: Group, before: Group) -> bool:
    """Whether a message of the user's has, beside what it says, results of calls before it that wait for them."""
    first = group.messages[0]
    if (
        first.role is not Role.USER
        or before.messages[0].role is not Role.MODEL
        or only_answers(first)
    ):
        return False
    results = first.tool_results
    if not results or len(results) != sum(
        isinstance(piece, ToolResultPart) for piece in first.content
    ):
        return False
    last = before.messages[-1]
    waiting = {call.id for call in last.tool_calls} if last.role is Role.MODEL else set[str]()
    waiting -= {call.id for call in first.tool_calls}
    return all(result.id in waiting for result in results)


def _end(messages: Sequence[Message], start: int, *, steering: bool) -> int:
    """Where what begins with this message of the model's ends."""
    at = start + 1
    while at < len(messages):
        message, before = messages[at], messages[at - 1]
        if steering and (
            is_steering(message) or (message.role is Role.MODEL and is_steering(before))
        ):
            pass
        elif message.role is Role.MODEL:
            if before.role is Role.MODEL or not message.content or not _answered(messages, at):
                return at
        elif not only_answers(message):
            return at
        at += 1
    return at


def _answered(messages: Sequence[Message], at: int) -> bool:
    """Whether the results before a place answer calls of the message before them, so that what follows is another step."""
    found: set[str] = set()
    while messages[at - 1].role is Role.USER:
        at -= 1
        found |= {result.id for result in messages[at].tool_results}
    return not found.isdisjoint({call.id for call in messages[at - 1].tool_calls})
