"""Reads and writes steering messages: what a user says while the model answers.

Steering is a message of the user within the turn. In UI messages of ai 7 it is the part
`steering-message`; a message that was read from one is noted as such, with the steps that begin
before and behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
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
)
from dragoman.wires.ai_sdk_messages.notes import OWN, Part, Parts
from dragoman.wires.ai_sdk_messages.read_parts import STEP

__all__ = [
    "Segment",
    "dump_steering",
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
    """Yields the AI SDK parts of a message, cut at what the user said among them.

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
    """Returns what the user said behind a segment of an AI SDK answer (steering) as a message,
    without a turn."""
    part = segment.steering
    native = OWN.note(read_extra_fields(part, "type", "id", "parts"), segment.form)
    return Message(Role.USER, tuple(content), part["id"], native=native)


def is_steering(message: Message) -> bool:
    """True if a message was read from such an AI SDK part, and such a part can hold it."""
    if message.role is not Role.USER or not message.native:
        return False
    is_noted = OWN.form(message.native).get("as") == _STEERING
    return is_noted and all(isinstance(piece, _SAID) for piece in message.content)


def dump_steering(message: Message, write: Callable[[], Parts]) -> Parts:
    """Returns the AI SDK part of what the user said, and the step before it. `write` writes its
    pieces."""
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
    """True for an AI SDK part that a user said within the turn: it has an id, and only texts and
    files."""
    if type(part) is not dict or cast("Part", part).get("type") != _STEERING:
        return False
    fields = cast("Part", part)
    pieces = if_list(fields.get("parts"))
    types = {if_text(if_object(piece).get("type")) for piece in pieces}
    return type(fields.get("id")) is str and bool(types) and types <= {"text", "file"}
