"""Events of a run within a tool, as they stand in the stream of the run around it: `Relay`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import msgspec

from dragoman.event import (
    Custom,
    Event,
    MessageStarted,
    PartDelta,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
)

__all__ = ["Relay"]

_Owned: TypeAlias = (
    MessageStarted | StepStarted | StepFinished | StateSnapshot | StateDelta | Custom
)
"""Events that say by their `run_id` whose they are."""


class Relay:
    """Has each event say whose it is. A message whose id another one of the stream has gets a new one, which no reader can tell apart else."""

    def __init__(self, run_id: str, others: Collection[str], owners: dict[str, str]) -> None:
        """`others`: ids of messages of the run around. `owners`: by the id of a message, the run whose relay has told it; grows."""
        self._run_id = run_id
        self._others, self._owners = others, owners
        self._new_ids: dict[str, str] = {}

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """The run's next events → the same, as they stand in the stream around it."""
        if self._new_ids:
            return [self._stamped(event) for event in events]
        return [event if type(event) is PartDelta else self._stamped(event) for event in events]

    def _stamped(self, event: Event) -> Event:
        if isinstance(event, RunStarted | RunFinished | RunError):
            return event
        changes: dict[str, Any] = {}
        if isinstance(event, _Owned) and event.run_id is None:
            changes["run_id"] = self._run_id
        if (message_id := getattr(event, "message_id", None)) is not None:
            if isinstance(event, MessageStarted):
                self._own(message_id)
            if (new_id := self._new_ids.get(message_id)) is not None:
                changes["message_id"] = new_id
        return msgspec.structs.replace(event, **changes) if changes else event

    def _own(self, message_id: str) -> None:
        """Notes whose a message is."""
        if (
            message_id in self._others
            or self._owners.setdefault(message_id, self._run_id) != self._run_id
        ):
            self._new_ids[message_id] = f"{self._run_id}/{message_id}"
