"""Reads the log of a run, piece by piece, into its `Story` (`StoryReader`).

Each run has a reader of its own, also those of agents in tools. A process that died may have left
messages, steps and runs of agents open. Whoever goes on closes these in the log first, so that
every message of a story is whole. Deltas are left out: a finished part says all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dragoman.event import (
    CALLS_BEGUN,
    RUN_BEGUN,
    SET_ASIDE,
    STEP_DONE,
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepStarted,
)
from dragoman.fold import MessageFolder
from dragoman.json_bytes import JsonMap
from dragoman.message import Content, Role, TextPart, ToolResultPart
from dragoman.orchestration.iteration import RETURN_RESULT
from dragoman.orchestration.story import MODEL_STEP, Story
from dragoman.result import ModelCall
from dragoman.tools import SharedState

__all__ = ["StoryReader", "read_story"]


class _RunReader:
    """Reads the events of one run."""

    def __init__(self, run_id: str, around: _RunReader | None, named: str | None) -> None:
        """`around`: reader of the run around it. `named`: the run's id in its events; `None`: they
        name no run."""
        self.run_id, self._around = run_id, around
        self._folder = MessageFolder(named)
        self._calls: list[ModelCall] = []
        self._model_steps = self._model_calls = self._tool_calls = self._corrections = 0
        self._begun: set[str] = set()
        self._results: dict[tuple[int, str], ToolResultPart] = {}
        self._steps: dict[tuple[str, str], Any] = {}
        self.inner: dict[tuple[str, int], _RunReader] = {}
        """Readers of the runs within this one, as in `Story.inner`."""
        self._is_returned = self._has_started = self._has_state = self._has_answer = False
        self._set_aside: JsonMap | None = None
        self._state = SharedState()
        self._began_at: datetime | None = None
        self._step = ""
        self._starts: dict[str, MessageStarted] = {}
        self._parts: dict[str, list[Content]] = {}
        """Finished parts of the run's own messages that are open."""

    def feed(self, event: Event) -> None:
        """Takes the next event."""
        if type(event) in _MESSAGE_EVENTS:
            self._folder.feed((event,))
        if (take := _TAKES.get(type(event))) is not None:
            take(self, event)

    def story(self, owner: int) -> Story:
        """Returns what the run's events tell. `owner`: number of the process that goes on."""
        return Story(
            run_id=self.run_id,
            owner=owner,
            messages=tuple(self._folder.messages()),
            calls=tuple(self._calls),
            model_steps=self._model_steps,
            model_calls=self._model_calls,
            tool_calls=self._tool_calls,
            corrections=self._corrections,
            begun=frozenset(self._begun),
            results=self._results,
            steps=self._steps,
            inner={key: reader.story(owner) for key, reader in self.inner.items()},
            is_returned=self._is_returned,
            set_aside=self._set_aside,
            state=self._state.value,
            has_started=self._has_started,
            has_state=self._has_state,
            began_at=self._began_at,
        )

    def take_run_start(self, _: RunStarted) -> None:
        self._has_started = True

    def take_run_end(self, _: RunFinished | RunError) -> None:
        self._has_started = False

    def take_start(self, event: MessageStarted) -> None:
        self._starts[event.message_id], self._parts[event.message_id] = event, []

    def take_part(self, event: PartFinished) -> None:
        part, start = event.part, self._starts.get(event.message_id)
        if start is None or start.role is not Role.USER:
            return
        self._parts[event.message_id].append(part)
        if isinstance(part, ToolResultPart):
            self._results[event.index, part.id] = part

    def take_end(self, event: MessageFinished) -> None:
        start, parts = (
            self._starts.pop(event.message_id, None),
            self._parts.pop(event.message_id, []),
        )
        if start is None or start.candidate:
            return
        if start.role is Role.MODEL:
            self._take_answer(start, event)
        elif self._has_answer:
            results = [part for part in parts if isinstance(part, ToolResultPart)]
            returned = [part for part in results if part.name == RETURN_RESULT]
            self._is_returned = any(not part.is_error for part in returned)
            is_correction = any(isinstance(part, TextPart) for part in parts) or bool(returned)
            self._corrections += is_correction and not self._is_returned

    def _take_answer(self, start: MessageStarted, end: MessageFinished) -> None:
        """Takes a message of the model."""
        self._began_at = self._began_at or start.created_at
        self._has_answer, self._is_returned = True, False
        # After a hand-off the run repeats what the other agent's model has said.
        if self._step.startswith(MODEL_STEP):
            self._begun, self._results, self._steps, self.inner = set(), {}, {}, {}
            origin, time = end.origin or start.origin, start.created_at
            self._add_call(ModelCall(origin, end.usage, self.run_id, time, end.cached, end.native))

    def _add_call(self, call: ModelCall) -> None:
        """Adds a model call that has ended, also to the runs around."""
        for reader in self._with_runs_around():
            reader._calls.append(call)

    def take_step(self, event: StepStarted) -> None:
        self._step = event.name
        if event.name.startswith(MODEL_STEP):
            self._model_steps += 1
            for reader in self._with_runs_around():
                reader._model_calls += 1

    def take_state(self, event: StateSnapshot | StateDelta) -> None:
        self._state.follow(event)
        self._has_state = True

    def take_custom(self, event: Custom) -> None:
        if (take := _TAKES_MARK.get(event.name)) is not None:
            take(self, event.value)

    def take_begun(self, ids: list[str]) -> None:
        self._begun.update(ids)
        for reader in self._with_runs_around():
            reader._tool_calls += len(ids)

    def take_step_done(self, done: JsonMap) -> None:
        self._steps[done["call"], done["name"]] = done["value"]

    def take_set_aside(self, aside: JsonMap) -> None:
        self._set_aside = aside["metadata"]
        self._add_call(msgspec.convert(aside["call"], ModelCall))

    def _with_runs_around(self) -> Iterable[_RunReader]:
        """Yields this run's reader and those of the runs around it."""
        reader: _RunReader | None = self
        while reader is not None:
            yield reader
            reader = reader._around


_MESSAGE_EVENTS = frozenset(
    {MessageStarted, PartStarted, PartFinished, MessageFinished, MessageDropped}
)
_TAKES: Mapping[type, Callable[[_RunReader, Any], None]] = {
    RunStarted: _RunReader.take_run_start,
    RunFinished: _RunReader.take_run_end,
    RunError: _RunReader.take_run_end,
    MessageStarted: _RunReader.take_start,
    PartFinished: _RunReader.take_part,
    MessageFinished: _RunReader.take_end,
    StepStarted: _RunReader.take_step,
    StateSnapshot: _RunReader.take_state,
    StateDelta: _RunReader.take_state,
    Custom: _RunReader.take_custom,
}
_TAKES_MARK: Mapping[str, Callable[[_RunReader, Any], None]] = {
    CALLS_BEGUN: _RunReader.take_begun,
    STEP_DONE: _RunReader.take_step_done,
    SET_ASIDE: _RunReader.take_set_aside,
}


class StoryReader:
    """Reads the events of a run, and of the runs of agents in its tools."""

    def __init__(self, run_id: str) -> None:
        self._run = _RunReader(run_id, None, None)
        self._runs = {run_id: self._run}
        """Readers by the ids of their runs."""
        self._owners: dict[str, _RunReader] = {}
        """Readers by the ids of the messages of their runs."""

    def feed(self, events: Iterable[Event]) -> None:
        """Takes the next events."""
        for event in events:
            if type(event) is PartDelta:
                continue
            if (reader := self._find_reader(event)) is not None:
                reader.feed(event)
                if type(event) is Custom and event.name == RUN_BEGUN:
                    inner = self._find_run(event.value["run"], reader)
                    reader.inner[event.value["call"], event.value["number"]] = inner

    def story(self, owner: int = 1) -> Story:
        """Returns the past of the run, in which nothing may be open. `owner`: number of the process
        that goes on."""
        return self._run.story(owner)

    def _find_reader(self, event: Event) -> _RunReader | None:
        """Returns the reader of the run that an event is of, or `None` for a message that has not
        begun."""
        if isinstance(event, RunStarted):
            return self._find_run(event.run_id, self._runs.get(event.parent_run_id or ""))
        if isinstance(event, MessageStarted):
            self._owners[event.message_id] = self._find_run(event.run_id)
        if (message_id := getattr(event, "message_id", None)) is not None:
            return self._owners.get(message_id)
        return self._find_run(getattr(event, "run_id", None))

    def _find_run(self, run_id: str | None, around: _RunReader | None = None) -> _RunReader:
        """Returns the reader of a run. `around`: reader of the run around it, if it is a new one."""
        if run_id is None:
            return self._run
        if run_id not in self._runs:
            self._runs[run_id] = _RunReader(run_id, around or self._run, run_id)
        return self._runs[run_id]


def read_story(events: Iterable[Event], run_id: str, *, owner: int = 1) -> Story:
    """Returns the past of a run whose events are these, in which nothing is open.

    `owner`: number of the process that goes on."""
    reader = StoryReader(run_id)
    reader.feed(events)
    return reader.story(owner)
