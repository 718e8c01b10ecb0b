"""Tells the events of runs within tools from those of the run around them."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.event import Event, MessageStarted, RunError, RunFinished, RunStarted

__all__ = ["InnerRuns", "without_inner_runs"]


class InnerRuns:
    """Looks at a stream's events in order. Those of a run within a tool stand between its
    `RunStarted`, whose parent is a run that goes on, and its end."""

    def __init__(self) -> None:
        """Starts to follow a stream's events, without runs within the outer run."""
        self._run_id: str | None = None
        """Id of the run whose stream it is, while it goes on."""
        self._runs: set[str] = set()
        self._messages: set[str] = set()

    def has(self, event: Event) -> bool:
        """True if the next event is of a run within a tool. Deltas may be left out."""
        if isinstance(event, RunStarted):
            return self._begins_inner_run(event)
        if isinstance(event, MessageStarted):
            if not self._is_inner(event.run_id):
                self._messages.discard(event.message_id)
                return False
            self._messages.add(event.message_id)
            return True
        message_id = getattr(event, "message_id", None)
        if message_id is not None:
            return message_id in self._messages
        if isinstance(event, RunFinished | RunError):
            return event.run_id in self._runs or self._ends()
        return self._is_inner(getattr(event, "run_id", None))

    def _begins_inner_run(self, event: RunStarted) -> bool:
        """Takes the event that starts a run. Returns True if it is a run within the outer run."""
        parent = event.parent_run_id
        if (
            self._run_id is not None
            and parent is not None
            and (parent == self._run_id or parent in self._runs)
        ):
            self._runs.add(event.run_id)
            return True
        self._ends()
        self._run_id = event.run_id
        return False

    def _ends(self) -> bool:
        self._run_id = None
        self._runs.clear()
        return False

    def _is_inner(self, run_id: str | None) -> bool:
        return run_id is not None and run_id != self._run_id


def without_inner_runs(events: Iterable[Event]) -> list[Event]:
    """Returns the events of the run whose stream it is. Without a run that has a parent they are
    left as they are."""
    events = list(events)
    if not [
        event for event in events if type(event) is RunStarted and event.parent_run_id is not None
    ]:
        return events
    inner = InnerRuns()
    return [event for event in events if not inner.has(event)]
