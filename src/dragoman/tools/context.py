"""What a tool may know of the run that calls it, how it speaks while it works, and how it asks
another agent: `ToolContext`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from inspect import isawaitable
from typing import Any, Generic, Protocol

import anyio
import msgspec
from typing_extensions import TypeVar

from dragoman.errors import ToolError
from dragoman.event import (
    RUN_BEGUN,
    STEP_DONE,
    TOOL_PROGRESS,
    Custom,
    Event,
    StateDelta,
    StateSnapshot,
)
from dragoman.json_bytes import JsonMap
from dragoman.message import Message, ToolCallPart
from dragoman.request import RunInfo
from dragoman.result import ChatResult
from dragoman.tools.call_record import AgentWaits, AskUser, CallRecord, CallRecords, InnerRun
from dragoman.tools.inner_runs import Account, Relay
from dragoman.tools.outbox import Emission, Outbox
from dragoman.tools.shared_state import SharedState
from dragoman.tools.tool_result import to_json_value

__all__ = ["PRELIMINARY", "PROGRESS", "Sender", "ToolContext", "begin_inner_run", "relay_of"]

Deps = TypeVar("Deps", default=Any)

PROGRESS = TOOL_PROGRESS
"""Name of the `Custom` events of `ToolContext.progress`."""
PRELIMINARY = "tool_preliminary"
"""Name of the `Custom` events that hold what a generator gave: `{"call_id": …, "name": …, "result":
…}`."""


class Sender(Protocol):
    """What an `Agent` is to a tool."""

    @property
    def run(self) -> Callable[..., Any]:
        """Returns the method that starts a run, as `Agent.run`."""
        ...


def _nowhere() -> Outbox:
    outbox = Outbox()
    outbox.close()
    return outbox


_NOWHERE = _nowhere()


class ToolContext(msgspec.Struct, Generic[Deps], frozen=True):
    """Given to a handler that has a parameter annotated `ToolContext` or `ToolContext[…]`; never
    shown to the model.

    `emit`, `progress` and `state.patch` are events of the run at once, while the tool works. They
    do so whether they are awaited or not; awaited they wait while too many events wait for the
    run's reader. Plain functions, which run in threads, just call them.
    """

    deps: Deps
    """What the caller of the run passed as `deps`."""
    run_id: str = ""
    """Id of the run."""
    messages: tuple[Message, ...] = ()
    """The conversation so far, up to and with the message that holds the call."""
    call: ToolCallPart = ToolCallPart("", "")
    """The call that is answered; the executor fills it in."""
    thread_id: str = ""
    """Id of the conversation."""
    resource_id: str | None = None
    """Whose conversation it is, such as a user's id."""
    context: tuple[Any, ...] = ()
    """What the client told beside the conversation."""
    metadata: JsonMap = {}
    """What the caller of the run passed as `metadata`."""
    state: SharedState = msgspec.field(default_factory=SharedState)
    """The state that client and agent share: `.value`, and `.patch(operations)`."""
    outbox: Outbox = _NOWHERE
    """Where events go; without a run, nowhere."""
    records: CallRecords | None = None
    """What the run knows of its calls; `None`: there is no run."""
    run: RunInfo | None = None
    """Which run calls; `None`: there is none."""
    account: Account | None = None
    """What the run has taken; `None`: there is no run."""
    stored: Callable[[], Awaitable[None]] | None = None
    """Waits until all events of the run so far are stored; `None`: no log stores them."""
    steps: Mapping[tuple[str, str], Any] = {}
    """Results of `step` that the log of a durable run holds, by call id and name."""
    past: Callable[[str, int], Any] | None = None
    """Returns what the log tells of a run of an agent, by the id of its call and its number in it;
    `None`: the run is not durable."""

    @property
    def call_id(self) -> str:
        """Returns the id of the call that the tool answers."""
        return self.call.id

    def emit(self, event: Event | str, value: object = None) -> Emission:
        """Makes something that a tool emits through its context an event of the run: a `Custom` by
        its name and any JSON value, a `StateSnapshot` or a `StateDelta`, which change `state` too.

        Raises:
            ToolError: the value is not JSON, or the event is one of those that only a run makes.
        """
        if isinstance(event, str):
            return self.outbox.emit(Custom(event, to_json_value(value)))
        if isinstance(event, Custom):
            return self.outbox.emit(
                msgspec.structs.replace(event, value=to_json_value(event.value))
            )
        if isinstance(event, StateSnapshot):
            return self.state.replace(event.state)
        if isinstance(event, StateDelta):
            return self.state.patch(event.operations)
        raise ToolError(
            f"a tool cannot emit {type(event).__name__}: events of runs, steps and messages are the run's own; "
            "emit a name and a value, a Custom, a StateSnapshot or a StateDelta"
        )

    def progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> Emission:
        """Tells from the tool's context how far the call is: a `Custom` named `tool_progress` whose
        value is `{"call_id", "done", "total", "message"}`, the latter two `null` where they are not
        known.

        Raises:
            ToolError: a number is NaN or infinite.
        """
        return self.emit(
            PROGRESS, {"call_id": self.call.id, "done": done, "total": total, "message": message}
        )

    async def step(self, name: str, function: Callable[[], Any]) -> Any:
        """Does a step of the tool through its context and returns its result as JSON. If the run is
        durable and the process dies later, the tool's next run gets the stored result and the
        function is not called again.

        Args:
            name: name of the step, which no other step of the call has.
            function: does the step; plain or async. It may be called again if the process dies before
                its result is stored.

        Raises:
            ToolError: the result is not JSON, or another step of the call has the name.
        """
        key, names = (self.call.id, name), self.record.steps
        if name in names:
            raise ToolError(
                f"the tool has a step named {name!r} already; give each step of a call a name of its own"
            )
        names.add(name)
        if key in self.steps:
            return self.steps[key]
        try:
            result = function()
            value = to_json_value(await result if isawaitable(result) else result)
        except BaseException:
            # It may be tried again.
            names.discard(name)
            raise
        if self.stored is not None:
            done = {"call": self.call.id, "name": name, "value": value}
            self.outbox.put([Custom(STEP_DONE, done)])
            await self.stored()
        return value

    @property
    def answers(self) -> tuple[Any, ...]:
        """Answers to what the tool asked when it was run before, in order: see `AskUser`."""
        return self.record.answers

    @property
    def record(self) -> CallRecord:
        """Returns the record of the call that the tool answers."""
        if self.records is None:
            return CallRecord()
        return self.records.of(self.call)

    def ask(self, message: str, schema: JsonMap | None = None) -> Any:
        """Asks a person from a tool, through its context. Returns the answer once there is one.
        Until then it raises: the run ends, and the tool is run again from its start, where the same
        questions must come in the same order.

        Raises:
            AskUser: nobody has answered it yet. Let it pass.
        """
        record = self.record
        record.questions += 1
        if record.questions > len(record.answers):
            raise AskUser(message, schema)
        return record.answers[record.questions - 1]

    async def send(self, agent: Sender, prompt: object, **options: Any) -> ChatResult[str]:
        """Sends a prompt to another agent, as a part of this run; `options` as with `Agent.send`.
        Its `deps`, `context`, `metadata`, `thread_id` and `resource_id` are this run's unless they
        are given, its events stand in this run's stream, and what it takes counts here too, also
        against this run's limits. With `share_state=True` it has this run's state, too. What that
        agent waits for, this run waits for, and going on goes on there. An agent that came to its
        end is not asked again then. If the process of a durable run dies, the other agent goes on
        from what the log tells of it when the tool is run again.

        Raises:
            AskUser: it waits. Let it pass.
            DragomanError: its run failed.
        """
        record = self.record
        number = record.sent
        record.sent += 1
        if number < len(record.runs):
            before = record.runs[number]
        else:
            before = InnerRun()
        # The tool is run again from its start: an agent that had answered already is not asked a
        # second time.
        if before.messages and before.done:
            return _result_of_run(before, options.get("output_type", str))
        if before.messages:
            prompt, options = None, {**options, "history": before.messages, "resume": record.resume}
        run = begin_inner_run(self, agent, prompt, number=number, **options)
        result = await _drain_run(self, run)
        messages = (*options.get("history", ()), *result.messages)
        if isinstance(result.output, str):
            output = result.output
        else:
            output = to_json_value(result.output)
        record.runs += [InnerRun()] * (number + 1 - len(record.runs))
        record.runs[number] = InnerRun(messages, output, not result.pending)
        if result.pending:
            raise AgentWaits(result.pending, tuple(record.runs))
        return result


def begin_inner_run(
    context: ToolContext[Any],
    agent: Sender,
    prompt: object,
    *,
    number: int = 0,
    share_state: bool = False,
    **options: Any,
) -> Any:
    """Returns a run of another agent as a part of the context's run, which gives it what `options`
    leaves out. `number`: how many runs the tool has begun before."""
    names = ("deps", "resource_id", "context", "metadata")
    options = {**{name: getattr(context, name) for name in names}, **options}
    go_on = getattr(agent, "go_on", None)
    if context.past is None or go_on is None:
        run = agent.run(prompt, **options)
    else:
        run = go_on(prompt, context.past(context.call.id, number), **options)
        begun = {"run": run.id, "call": context.call.id, "number": number}
        context.outbox.put([Custom(RUN_BEGUN, begun)])
    run.within(context, share_state=share_state)
    return run


def relay_of(context: ToolContext[Any], run: Any) -> Relay:
    """Returns for a tool's context what turns the events of a run in a tool into those of the
    stream around it."""
    if context.account is None:
        owners = {}
    else:
        owners = context.account.owners
    return Relay(run.id, {message.id for message in context.messages if message.id}, owners)


async def _drain_run(context: ToolContext[Any], run: Any) -> ChatResult[Any]:
    """Reads a tool's inner run to its end, at the pace of whoever reads the run around it."""
    outbox, relay = context.outbox, relay_of(context, run)
    try:
        async with aclosing(run.steps(chunks=False)) as steps:
            async for step in steps:
                outbox.put(relay.feed(step.events))
                await outbox.room()
        return await run.result()
    finally:
        with anyio.CancelScope(shield=True):
            outbox.put(relay.feed(await run.leave()))


def _result_of_run(run: InnerRun, output_type: Any) -> ChatResult[Any]:
    """Returns what an inner run of a tool gave that ended before the tool was run again."""
    if output_type is str:
        return ChatResult(run.output, run.messages)
    from pydantic import TypeAdapter

    return ChatResult(TypeAdapter(output_type).validate_python(run.output), run.messages)
