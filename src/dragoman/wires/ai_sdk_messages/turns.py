"""Which messages are written as one: the turns of a conversation, cut where a reader would not put
them together again.

What a user says while the model answers is a message of the user's within the turn. In UI messages
of ai 7 it is the part `steering-message`; a message that was read from one is noted as such, with
the steps that begin before and behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.codec.turns import holds_only_answers
from dragoman.codec.turns import split_turns as turns_of
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.own import OWN, Part, Parts
from dragoman.wires.ai_sdk_messages.reading import STEP

__all__ = [
    "MessageGroup",
    "Segment",
    "dump_steering",
    "group_messages",
    "has_step_behind",
    "is_steering",
    "is_steering_part",
    "load_steering",
    "segments",
]

_STEERING = "steering-message"
"""Type of the part, and the note of its message."""
_STEP = {"type": STEP}
_SAID = (TextPart, DataPart, LinkPart, FilePart, MarkPart, ProviderPart)


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
        """Returns the index of a piece's message in the conversation, and its index there."""
        is_within = index < len(self.positions)
        if is_within:
            position = self.positions[index]
        else:
            position = self.positions[-1] + 1
        return self.moved.get((index, piece_index), (position, piece_index))


def group_messages(messages: Sequence[Message], *, steering: bool = False) -> list[MessageGroup]:
    """Returns a conversation, cut into groups that are written as one message each.

    Args:
        messages: the conversation.
        steering: True to keep what a user said within a turn as a part of it.
    """
    groups: list[MessageGroup] = []
    for turn in turns_of(messages):
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
    """Returns messages as one group, in which adjacent messages of results are one."""
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
    """True for two user messages within a turn that are both results."""
    if before.role is not Role.USER or message.role is not Role.USER:
        return False
    return not is_steering(before) and not is_steering(message)


def _brings_results(group: MessageGroup, before: MessageGroup) -> bool:
    """True if a user's message has words, and results of calls that wait in the group before it."""
    first, last = group.messages[0], before.messages[-1]
    if first.role is not Role.USER or before.messages[0].role is not Role.MODEL:
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
    """Returns two groups, of which the first takes the results of the second."""
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
    """Returns the index behind the group that begins with a model message."""
    for index in range(start + 1, len(messages)):
        message, before = messages[index], messages[index - 1]
        is_model = message.role is Role.MODEL
        if steering and (is_steering(message) or (is_model and is_steering(before))):
            continue
        if not (_is_next_step(messages, index) if is_model else holds_only_answers(message)):
            return index
    return len(messages)


def _is_next_step(messages: Sequence[Message], index: int) -> bool:
    """True if the results before a model message answer calls of the model message before them."""
    if messages[index - 1].role is Role.MODEL or not messages[index].content:
        return False
    answered: set[str] = set()
    while messages[index - 1].role is Role.USER:
        index -= 1
        answered |= {result.id for result in messages[index].tool_results}
    return not answered.isdisjoint({call.id for call in messages[index - 1].tool_calls})


# what a user says while the model answers


class Segment(NamedTuple):
    """Parts of a message up to what the user said among them."""

    start: int
    """Number of the first part."""
    parts: Parts
    """The model's parts."""
    steering: Part
    """The user's part behind them, or empty."""
    form: Part
    """Note of the steps before and behind that part."""


def segments(parts: list[Any]) -> Iterator[Segment]:
    """Yields the parts of a message, cut at what the user said among them.

    A step right before or behind a cut is no mark of the model's messages. The note lets writing
    put it there again.
    """
    cuts = [index for index, part in enumerate(parts) if is_steering_part(part)]
    start = 0
    for index, end in zip(cuts, [*cuts[1:], len(parts)], strict=True):
        # One part of the model's must be left on either side, or the step would be lost with it.
        before = index - start > 1 and parts[index - 1] == _STEP
        behind = end - index > 2 and parts[index + 1] == _STEP
        form = {
            "as": _STEERING,
            **({"before": True} if before else {}),
            **({"behind": True} if behind else {}),
        }
        yield Segment(start, parts[start : index - before], parts[index], form)
        start = index + 1 + behind
    yield Segment(start, parts[start:], {}, {})


def load_steering(segment: Segment, content: Sequence[Content]) -> Message:
    """Returns what the user said behind a segment as a message, without a turn."""
    part = segment.steering
    native = OWN.note(read_extra_fields(part, "type", "id", "parts"), segment.form)
    return Message(Role.USER, tuple(content), part["id"], native=native)


def is_steering(message: Message) -> bool:
    """True if a message was read from such a part, and such a part can hold it."""
    if message.role is not Role.USER or not message.native:
        return False
    is_noted = OWN.form(message.native).get("as") == _STEERING
    return is_noted and all(isinstance(piece, _SAID) for piece in message.content)


def dump_steering(message: Message, write: Callable[[], Parts]) -> Parts:
    """Returns the part of what the user said, and the step before it. `write` writes its pieces."""
    id_, fields = message.id or "", OWN.fields(message.native)
    part: Part = {
        "type": _STEERING,
        "id": id_,
        "parts": write(),
        **fields,
    }
    has_step = OWN.form(message.native).get("before") is True
    return [dict(_STEP), part] if has_step else [part]


def has_step_behind(message: Message) -> bool:
    """True if a step begins behind what the user said."""
    return OWN.form(message.native).get("behind") is True


def is_steering_part(part: Any) -> bool:
    """True for a part that a user said within the turn: it has an id, and only texts and files."""
    if type(part) is not dict or cast("Part", part).get("type") != _STEERING:
        return False
    fields = cast("Part", part)
    pieces = if_list(fields.get("parts"))
    types = {if_text(if_object(piece).get("type")) for piece in pieces}
    return type(fields.get("id")) is str and bool(types) and types <= {"text", "file"}
