"""What the log of a run tells of it, so that another process can go on with the run (`Story`).

The events are folded once, in order. A process that died may have left messages, steps and runs of
agents in tools open. Whoever goes on closes these in the log first, so that every message here is
whole. Ids, usage, counts and the shared state are those that the earlier owners of the run reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dragoman.event import (
    STEP_DONE,
    Custom,
    Event,
    MessageFinished,
    MessageStarted,
    PartFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepStarted,
    is_calls_begun,
    without_inner_runs,
)
from dragoman.fold import fold
from dragoman.message import Message, Role, ToolResultPart
from dragoman.result import ModelCall
from dragoman.tools import SharedState

__all__ = ["MODEL_STEP", "Story", "read_story"]

MODEL_STEP = "model call "
"""How the names of steps begin in which a model is called."""


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The past of a run. The empty one is that of a run that has not begun."""

    owner: int = 1
    """Number of the present owner, from 1 on."""
    events: tuple[Event, ...] = ()
    """Events of the run itself, without those of runs in its tools."""
    messages: tuple[Message, ...] = ()
    """Messages that the log holds whole, in order."""
    calls: tuple[ModelCall, ...] = ()
    """Model calls whose answer the log holds, also those of agents in tools."""
    model_steps: int = 0
    """Number of model calls that the run itself has begun."""
    model_calls: int = 0
    """Number of model calls that have begun, also those of agents in tools."""
    tool_calls: int = 0
    """Number of tool calls that have begun, also those of agents in tools."""
    begun: frozenset[str] = frozenset()
    """Ids of the calls that may have begun since the model's last message."""
    has_inner_calls: bool = False
    """True if a call of an agent in a tool, or after a hand-off, may have begun since then."""
    results: Mapping[str, ToolResultPart] = {}
    """Results that were stored since then, by the ids of their calls."""
    steps: Mapping[tuple[str, str], Any] = {}
    """Results of `ToolContext.step` since then, by call id and name."""
    state: Any = None
    """The state that client and agent share."""
    has_started: bool = False
    """True if the start of the run is told."""
    has_state: bool = False
    """True if the shared state is told."""
    began_at: datetime | None = None
    """When the first answer of a model began."""

    @property
    def has_answer(self) -> bool:
        """True if a message of the model is told."""
        return any(message.role is Role.MODEL for message in self.messages)


class _StoryReader:
    """Folds the events of a run."""

    def __init__(self) -> None:
        """Starts to read the story of a durable run from its events."""
        self.calls: list[ModelCall] = []
        self.model_steps = self.model_calls = self.tool_calls = 0
        self.begun: set[str] = set()
        self.has_inner_calls = False
        self.results: dict[str, ToolResultPart] = {}
        self.steps: dict[tuple[str, str], Any] = {}
        self.state, self.has_state = SharedState(), False
        self.began_at: datetime | None = None
        self._starts: dict[str, MessageStarted] = {}
        self._steps: dict[str | None, str] = {}
        """Name of the latest step of each run, by its id; `None`: the run itself."""

    def feed(self, event: Event) -> None:
        """Takes the next event of the run's story."""
        if isinstance(event, MessageStarted):
            self._starts[event.message_id] = event
        elif isinstance(event, PartFinished):
            self._feed_part(event)
        elif isinstance(event, MessageFinished):
            if (start := self._starts.get(event.message_id)) is not None:
                self._feed_end(start, event)
        elif isinstance(event, StepStarted):
            self._feed_step(event)
        elif isinstance(event, StateSnapshot | StateDelta) and event.run_id is None:
            self.state.follow(event)
            self.has_state = True
        elif is_calls_begun(event):
            self._feed_begun(event)
        elif isinstance(event, Custom) and event.name == STEP_DONE and event.run_id is None:
            self.steps[event.value["call"], event.value["name"]] = event.value["value"]

    def _feed_part(self, event: PartFinished) -> None:
        """Notes, for the story of a run, a result that a user message brings."""
        part, start = event.part, self._starts.get(event.message_id)
        if start is None or start.run_id is not None or start.role is not Role.USER:
            return
        if isinstance(part, ToolResultPart):
            self.results[part.id] = part

    def _feed_end(self, start: MessageStarted, end: MessageFinished) -> None:
        """Takes, for the run's story, the end of a message."""
        if start.role is not Role.MODEL or start.candidate:
            return
        self.began_at = self.began_at or start.created_at
        if start.run_id is None:
            self.begun, self.results, self.has_inner_calls = set(), {}, False
            self.steps = {}
        # After a hand-off the run repeats what the other agent's model has said.
        if self._steps.get(start.run_id, "").startswith(MODEL_STEP):
            origin, run_id = end.origin or start.origin, start.run_id or ""
            self.calls.append(
                ModelCall(origin, end.usage, run_id, start.created_at, end.cached, end.native)
            )

    def _feed_step(self, event: StepStarted) -> None:
        """Takes, for the run's story, the start or end of a step."""
        self._steps[event.run_id] = event.name
        if event.name.startswith(MODEL_STEP):
            self.model_calls += 1
            self.model_steps += event.run_id is None

    def _feed_begun(self, event: Any) -> None:
        """Takes, for the run's story, the mark that calls have begun."""
        self.tool_calls += len(event.value)
        if event.run_id is None:
            self.begun.update(event.value)
        else:
            self.has_inner_calls = True


def read_story(events: Iterable[Event], run_id: str, *, owner: int) -> Story:
    """Returns the story of a run whose events are these, in which nothing is open.

    `owner`: number of the process that goes on.
    """
    events = list(events)
    reader = _StoryReader()
    for event in events:
        reader.feed(event)
    outer = without_inner_runs(events)
    return Story(
        owner=owner,
        events=tuple(outer),
        messages=tuple(fold(events)),
        calls=tuple(
            [msgspec.structs.replace(call, run_id=call.run_id or run_id) for call in reader.calls]
        ),
        model_steps=reader.model_steps,
        model_calls=reader.model_calls,
        tool_calls=reader.tool_calls,
        begun=frozenset(reader.begun),
        has_inner_calls=reader.has_inner_calls,
        results=reader.results,
        steps=reader.steps,
        state=reader.state.value,
        has_started=any(isinstance(event, RunStarted) for event in outer),
        has_state=reader.has_state,
        began_at=reader.began_at,
    )
