"""The parts of a run's messages that a client is shown: which are, under which ids, and what was said of them so far."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.event import MessageStarted, OpenText, PartDelta, PartFinished, PartStarted
from dragoman.fold import close_part
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Native,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.a2a.quirks import text_of

__all__ = ["Key", "OpenPart", "Parts", "finished_field"]

Key = tuple[str, int]
"""Id of a message, and the place of a part in it."""
_SHOWN = (TextPart, DataPart, LinkPart, FilePart, ToolCallPart, ToolResultPart, ThinkingPart)
_NAMES: dict[type, str] = {
    TextPart: "response",
    OpenText: "response",
    ToolCallPart: "tool-call",
    ToolResultPart: "tool-result",
}


class OpenPart:
    """A part that is open."""

    __slots__ = ("artifact_id", "deltas", "frame", "is_begun", "name", "part")

    def __init__(self, artifact_id: str, part: Content) -> None:
        self.artifact_id = artifact_id
        self.part = part
        self.name = _NAMES.get(type(part), "file")
        self.deltas: list[str | bytes] = []
        self.is_begun = False
        """Whether a piece of its artifact went out."""
        self.frame: tuple[bytes, bytes] | None = None
        """What stands before and behind the text of a further piece, as bytes."""


class Parts:
    """Looks at the events of messages."""

    def __init__(self) -> None:
        self._messages: dict[str, MessageStarted] = {}
        self._ids: set[str] = {"", "state", "result"}
        self._repeats: dict[str, int] = {}
        self._of_message: dict[str, list[str]] = {}
        self.open: dict[Key, OpenPart] = {}

    def message_started(self, event: MessageStarted) -> None:
        """A message of the run."""
        self._messages[event.message_id] = event

    def started(self, event: PartStarted) -> OpenPart | None:
        """A part begins; `None`: it is not shown."""
        self.open.pop((event.message_id, event.index), None)
        message = self._messages.get(event.message_id)
        part = event.part
        is_shown = message is None or (message.role is Role.MODEL and message.candidate == 0)
        if not isinstance(part, _SHOWN) or not (is_shown or isinstance(part, ToolResultPart)):
            return None
        base = (part.id if isinstance(part, ToolCallPart) else "") or event.message_id
        known = (
            OpenPart("", part) if isinstance(part, ThinkingPart) else OpenPart(self._id(base), part)
        )
        if known.artifact_id:
            self._of_message.setdefault(event.message_id, []).append(known.artifact_id)
        self.open[event.message_id, event.index] = known
        return known

    def dropped(self, message_id: str) -> list[str]:
        """A message is retracted → the ids of its artifacts."""
        for key in [key for key in self.open if key[0] == message_id]:
            del self.open[key]
        return self._of_message.pop(message_id, [])

    def _id(self, base: str) -> str:
        """An id of an artifact that no other of the task has."""
        id_, number = base, self._repeats.get(base, 0)
        while id_ in self._ids:
            number += 1
            id_ = f"{base}:{number}"
        self._repeats[base] = number
        self._ids.add(id_)
        return id_


def finished_field(event: PartFinished, known: OpenPart) -> str:
    """What tells of a part's end: where it is and, where its beginning and its deltas do not say it, what it is."""
    place: list[Any] = [event.message_id, event.index]
    natural = close_part(known.part, known.deltas)
    if natural is not None and is_same(natural, event.part):
        return text_of(place)
    if natural is not None and type(natural) is type(event.part):
        native: Native = event.part.native
        if is_same(msgspec.structs.replace(natural, native=native), event.part):
            return text_of([*place, None, native])
    return text_of([*place, msgspec.to_builtins(event.part)])


def is_same(one: Content, other: Content) -> bool:
    """Whether two pieces are the same JSON: `1`, `1.0` and `true` are not."""
    return type(one) is type(other) and msgspec.json.encode(one) == msgspec.json.encode(other)


def is_delta_shown(event: PartDelta, known: OpenPart) -> bool:
    """Whether a delta is shown as it comes."""
    return (
        isinstance(event.delta, str)
        and isinstance(known.part, TextPart)
        and bool(known.artifact_id)
    )
