"""What a run shares with the runs in its tools: limits (`Account`), and one stream of events
(`Relay`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import msgspec

from dragoman.errors import LimitReachedError
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
    ToolStarted,
)
from dragoman.json_bytes import Json
from dragoman.result import ModelCall

__all__ = [
    "Account",
    "Relay",
]


class _Calls(list[ModelCall]):
    """A list of model calls whose every call is also added to the list of the run around it."""

    outer: _Calls | None = None

    def append(self, call: ModelCall, /) -> None:
        super().append(call)
        if self.outer is not None:
            self.outer.append(call)


class Account:
    """Counts the calls and tokens of a run and the runs in its tools, and checks them against the
    limits of the run and of those around it."""

    def __init__(self) -> None:
        """Starts the account of a run's limits, which runs in its tools share."""
        self.calls = _Calls()
        """The calls of models that have ended."""
        self.model_calls = 0
        """Number of model calls that have begun."""
        self.tool_calls = 0
        """Number of tool calls that have begun."""
        self.reached: Callable[[int, int], str | None] = lambda model_calls, tool_calls: None  # noqa: ARG005
        """Returns the limit of the run that leaves no room for so many more model and tool calls;
        `None` if there is room."""
        self.full: str | None = None
        """The limit of this run, or of one around it, that a run in its tools has reached. This run
        cannot continue then either."""
        self.owners: dict[str, str] = {}
        """Id of a message from a run in a tool → id of the run in whose stream it came."""
        self._outer: Account | None = None

    def join(self, outer: Account) -> None:
        """Makes everything count for the run around, too. Call it before the run begins."""
        self._outer, self.calls.outer = outer, outer.calls

    def begin(self, *, model_calls: int = 0, tool_calls: int = 0) -> None:
        """Counts calls of inner runs that are about to begin.

        Raises:
            LimitReachedError: a limit of this run or of one around it leaves no room for them.
        """
        account: Account | None = self
        while account is not None:
            if (why := account.reached(model_calls, tool_calls)) is not None:
                self._stop_runs(account, why)
                raise LimitReachedError(why)
            account = account._outer
        account = self
        while account is not None:
            account.model_calls += model_calls
            account.tool_calls += tool_calls
            account = account._outer

    def check(self) -> None:
        """Raises `LimitReachedError` if an agent that ran in a tool has reached a limit that it
        shares with this run."""
        if self.full is not None:
            raise LimitReachedError(self.full)

    def _stop_runs(self, last: Account, why: str) -> None:
        """Stops this inner run and those around it, up to and with `last`."""
        account: Account | None = self
        while account is not None:
            account.full = account.full or why
            account = None if account is last else account._outer


_Owned: TypeAlias = (
    MessageStarted | StepStarted | StepFinished | StateSnapshot | StateDelta | ToolStarted | Custom
)
"""Events that say by their `run_id` whose they are."""


class Relay:
    """Has each event say whose it is. A message whose id another one of the stream has gets a new
    one, which no reader can tell apart else."""

    def __init__(self, run_id: str, outer_ids: Collection[str], owners: dict[str, str]) -> None:
        """Creates the relay. `outer_ids`: ids of messages of the outer run. `owners`: id of a
        message to the run whose relay reported it; grows."""
        self._run_id = run_id
        self._others, self._owners = outer_ids, owners
        self._new_ids: dict[str, str] = {}

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Returns an inner run's next events as they stand in the stream of the outer run."""
        if self._new_ids:
            return [self._stamp_event(event) for event in events]
        return [event if type(event) is PartDelta else self._stamp_event(event) for event in events]

    def _stamp_event(self, event: Event) -> Event:
        """Returns an event of an inner run with its run's id, and with a message id that the outer
        run does not use."""
        if isinstance(event, RunStarted | RunFinished | RunError):
            return event
        changes: Json = {}
        if isinstance(event, _Owned) and event.run_id is None:
            changes["run_id"] = self._run_id
        if (message_id := getattr(event, "message_id", None)) is not None:
            if isinstance(event, MessageStarted):
                self._note_owner(message_id)
            if (new_id := self._new_ids.get(message_id)) is not None:
                changes["message_id"] = new_id
        if changes:
            return msgspec.structs.replace(event, **changes)
        return event

    def _note_owner(self, message_id: str) -> None:
        """Notes to which run within a tool a message id belongs."""
        if (
            message_id in self._others
            or self._owners.setdefault(message_id, self._run_id) != self._run_id
        ):
            self._new_ids[message_id] = f"{self._run_id}/{message_id}"
