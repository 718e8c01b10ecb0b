"""What a user says while the model answers: the part `steering-message` of ai 7's UI messages ↔ a message of the user's within the turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, if_text
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
from dragoman.wires.ai_sdk_messages.dialect import Part, Parts
from dragoman.wires.ai_sdk_messages.own import OWN

__all__ = [
    "STEERING",
    "Segment",
    "dump_steering",
    "has_steering",
    "is_steering",
    "load_steering",
    "segments",
    "step_behind",
]

STEERING = "steering-message"
"""Type of the part, and how its message is noted."""
_AS, _BEFORE, _BEHIND = "as", "before", "behind"
_STEP = {"type": "step-start"}
_READ = ("type", "id", "parts")
_PIECES = (TextPart, DataPart, LinkPart, FilePart, MarkPart, ProviderPart)
Segment = tuple[int, Parts, dict[str, Any], dict[str, Any]]
"""Where parts begin, the parts, the steering behind them (empty: none), and which steps stand before and behind that."""


def segments(parts: list[Any]) -> Iterator[Segment]:
    """The parts of a message, cut at what the user said among them; steps beside a cut belong to it."""
    cuts = [at for at, part in enumerate(parts) if _is_part(part)]
    start = 0
    for at, end in zip(cuts, [*cuts[1:], len(parts)], strict=True):
        before = at - start > 1 and parts[at - 1] == _STEP
        behind = end - at > 2 and parts[at + 1] == _STEP
        form = {
            _AS: STEERING,
            **({_BEFORE: True} if before else {}),
            **({_BEHIND: True} if behind else {}),
        }
        yield start, parts[start : at - before], parts[at], form
        start = at + 1 + behind
    yield start, parts[start:], {}, {}


def load_steering(
    part: dict[str, Any], form: dict[str, Any], content: Sequence[Content]
) -> Message:
    """The part → the message, which names no turn yet. `content`: its pieces, as those of a user's message are read."""
    own = {key: value for key, value in part.items() if key not in _READ}
    return Message(Role.USER, tuple(content), part["id"], native=OWN.note(own, form))


def is_steering(message: Message) -> bool:
    """Whether a message was read from such a part, and says nothing that none can."""
    if (
        message.role is not Role.USER
        or not message.native
        or OWN.form(message.native).get(_AS) != STEERING
    ):
        return False
    return all(isinstance(piece, _PIECES) for piece in message.content)


def dump_steering(message: Message, write: Callable[[], Parts]) -> Parts:
    """The inverse, with the step that stood before it. `write`: its pieces as parts."""
    made: Part = {
        "type": STEERING,
        "id": message.id or "",
        "parts": write(),
        **OWN.fields(message.native),
    }
    return [*([dict(_STEP)] if OWN.form(message.native).get(_BEFORE) is True else []), made]


def step_behind(message: Message) -> bool:
    """Whether a step begins behind it."""
    return OWN.form(message.native).get(_BEHIND) is True


def has_steering(parts: list[Any]) -> bool:
    """Whether such a part is among them."""
    return any(map(_is_part, parts))


def _is_part(part: Any) -> bool:
    if type(part) is not dict or cast("dict[str, Any]", part).get("type") != STEERING:
        return False
    fields = cast("dict[str, Any]", part)
    pieces = if_list(fields.get("parts"))
    return (
        type(fields.get("id")) is str
        and bool(pieces)
        and all(if_text(if_object(piece).get("type")) in ("text", "file") for piece in pieces)
    )
