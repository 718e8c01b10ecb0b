"""Groups the messages of a conversation that are written as one UI message: its turns, cut where a
reader would not put them together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.codec.turns import holds_only_answers
from dragoman.codec.turns import split_turns as turns_of
from dragoman.message import Content, Message, Role, ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.steering import is_steering

__all__ = [
    "MessageGroup",
    "group_messages",
]


class MessageGroup(NamedTuple):
    """Messages that are written as one."""

    messages: Sequence[Message]
    """The messages: one, or the model's with the results between them."""
    positions: Sequence[int]
    """Their indexes in the conversation."""
    behind: Sequence[Message] = ()
    """The next message, if it is a user's with results of these calls and then words."""
    joined: bool = False
    """True if its results were moved to the group before it."""
    moved: Mapping[tuple[int, int], tuple[int, int]] = {}
    """Index of a message and of a piece in the group → the indexes in the conversation, if they
    differ."""

    @property
    def is_orphaned(self) -> bool:
        """True for results alone, without a model message before them."""
        first = self.messages[0]
        return first.role is Role.USER and holds_only_answers(first)

    def locate(self, index: int, piece_index: int) -> tuple[int, int]:
        """Returns the index of a piece's message in the AI SDK conversation, and its index
        there."""
        is_within = index < len(self.positions)
        if is_within:
            position = self.positions[index]
        else:
            position = self.positions[-1] + 1
        return self.moved.get((index, piece_index), (position, piece_index))


def group_messages(messages: Sequence[Message], *, steering: bool = False) -> list[MessageGroup]:
    """Returns an AI SDK conversation, cut into groups that are written as one message each.

    Args:
        messages: the conversation.
        steering: True to keep what a user said within a turn as a part of it.
    """
    groups: list[MessageGroup] = []
    for turn in turns_of(messages):
        if len(turn.messages) == 1:
            groups.append(MessageGroup(turn.messages, (turn.start,)))
            continue
        start = 0
        while start < len(turn.messages):
            end = start + 1
            if turn.messages[start].role is Role.MODEL:
                end = _end_of(turn.messages, start, steering=steering)
            groups.append(_join_results(turn.messages[start:end], turn.start + start))
            start = end
    for number in range(1, len(groups)):
        if _brings_results(groups[number], groups[number - 1]):
            groups[number - 1 : number + 1] = _move_results(groups[number - 1], groups[number])
    return groups


def _join_results(messages: Sequence[Message], start: int) -> MessageGroup:
    """Returns messages as one group for one AI SDK message, in which adjacent messages of results
    are one."""
    if len(messages) == 1:
        return MessageGroup(messages, (start,))
    joined: list[Message] = []
    positions: list[int] = []
    moved: dict[tuple[int, int], tuple[int, int]] = {}
    for position, message in enumerate(messages, start):
        before = joined[-1] if joined else None
        if before is None or not _are_results(before, message):
            joined.append(message)
            positions.append(position)
            continue
        for piece_index in range(len(message.content)):
            moved[len(joined) - 1, len(before.content) + piece_index] = position, piece_index
        joined[-1] = before.replace(content=(*before.content, *message.content))
    return MessageGroup(joined, positions, moved=moved)


def _are_results(before: Message, message: Message) -> bool:
    """True for two user messages within an AI SDK turn that are both results."""
    if before.role is not Role.USER or message.role is not Role.USER:
        return False
    return not is_steering(before) and not is_steering(message)


def _brings_results(group: MessageGroup, before: MessageGroup) -> bool:
    """True if a user's message of an AI SDK group has words, and results of calls that wait in the
    group before it."""
    first, last = group.messages[0], before.messages[-1]
    if first.role is not Role.USER or before.messages[0].role is not Role.MODEL:
        return False
    if len(first.content) == 1:
        return False
    results = first.tool_results
    if not results or holds_only_answers(first) or last.role is not Role.MODEL:
        return False
    if len(results) != sum(isinstance(piece, ToolResultPart) for piece in first.content):
        return False
    # A call in the same message takes the result itself.
    waiting = {call.id for call in last.tool_calls} - {call.id for call in first.tool_calls}
    return waiting.issuperset(result.id for result in results)


def _move_results(before: MessageGroup, group: MessageGroup) -> tuple[MessageGroup, MessageGroup]:
    """Returns two message groups, of which the first takes the results of the second."""
    first, position = group.messages[0], group.positions[0]
    pieces: list[Content] = []
    moved: dict[tuple[int, int], tuple[int, int]] = {}
    for piece_index, piece in enumerate(first.content):
        if not isinstance(piece, ToolResultPart):
            moved[0, len(pieces)] = position, piece_index
            pieces.append(piece)
    without_results = first.replace(content=tuple(pieces))
    return (
        before._replace(behind=(first,)),
        group._replace(messages=(without_results,), joined=True, moved=moved),
    )


def _end_of(messages: Sequence[Message], start: int, *, steering: bool) -> int:
    """Returns the index behind the group that begins with an AI SDK model message."""
    for index in range(start + 1, len(messages)):
        message, before = messages[index], messages[index - 1]
        is_model = message.role is Role.MODEL
        # What a user said within a turn has notes of it.
        noted = steering and (message.native or before.native)
        if noted and (is_steering(message) or (is_model and is_steering(before))):
            continue
        if not (_is_next_step(messages, index) if is_model else holds_only_answers(message)):
            return index
    return len(messages)


def _is_next_step(messages: Sequence[Message], index: int) -> bool:
    """True if the results before an AI SDK model message answer calls of the model message before
    them."""
    if messages[index - 1].role is Role.MODEL or not messages[index].content:
        return False
    answered: set[str] = set()
    while messages[index - 1].role is Role.USER:
        index -= 1
        answered.update(_list_ids(messages[index], ToolResultPart))
    return not answered.isdisjoint(_list_ids(messages[index - 1], ToolCallPart))


def _list_ids(message: Message, of: type[ToolCallPart | ToolResultPart]) -> list[str]:
    """Returns the ids of a message's calls or results but the provider's."""
    pieces = [piece for piece in message.content if isinstance(piece, of)]
    return [piece.id for piece in pieces if piece.run_by != "provider"]


# what a user says while the model answers
