"""Agents within tools: a run that is a part of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from dragoman.interrupt import Interrupt
from dragoman.tools.ask import AskUser
from dragoman.tools.outcome import as_json
from dragoman.tools.record import InnerRun
from dragoman.tools.relay import Relay

if TYPE_CHECKING:
    from dragoman.result import ChatResult
    from dragoman.tools.context import ToolContext

__all__ = ["AgentWaits", "Sender", "begun", "relay_of", "send"]


class Sender(Protocol):
    """What an `Agent` is to a tool."""

    @property
    def run(self) -> Callable[..., Any]:
        """As `Agent.run`."""
        ...


class AgentWaits(AskUser):
    """An agent within a tool waits, so the tool does."""

    def __init__(self, pending: tuple[Interrupt, ...], runs: tuple[InnerRun, ...]) -> None:
        super().__init__("an agent in the tool waits")
        self.pending = pending
        self.runs = runs


async def send(
    context: ToolContext[Any], agent: Sender, prompt: Any, **how: Any
) -> ChatResult[Any]:
    """See `ToolContext.send`."""
    record = context.record
    place, record.sent = record.sent, record.sent + 1
    before = (
        record.runs[place] if place < len(record.runs) and record.runs[place].messages else None
    )
    if before is not None and before.done:
        return _result(before, how.get("output_type", str))
    if before is not None:
        prompt, how = None, {**how, "history": before.messages, "resume": record.resume}
    result: ChatResult[Any] = await _drained(begun(context, agent, prompt, **how), context)
    messages = (*how.get("history", ()), *result.messages)
    output = result.output if isinstance(result.output, str) else as_json(result.output)
    record.runs += [InnerRun()] * (place + 1 - len(record.runs))
    record.runs[place] = InnerRun(messages, output, not result.pending)
    if result.pending:
        raise AgentWaits(result.pending, tuple(record.runs))
    return result


def begun(
    context: ToolContext[Any], agent: Sender, prompt: Any, *, share_state: bool = False, **how: Any
) -> Any:
    """A run of an agent as a part of another."""
    inherited: Mapping[str, Any] = {
        name: getattr(context, name) for name in ("deps", "resource_id", "context", "metadata")
    }
    run = agent.run(prompt, **{**inherited, **how})
    run.within(context, share_state=share_state)
    return run


def relay_of(run: Any, context: ToolContext[Any]) -> Relay:
    """How the events of a run stand in the stream of the one around it."""
    owners = {} if context.account is None else context.account.owners
    return Relay(run.id, {message.id for message in context.messages if message.id}, owners)


async def _drained(run: Any, context: ToolContext[Any]) -> ChatResult[Any]:
    """Reads a run to its end → its result. Whoever reads the run around it sets the pace."""
    outbox, relay = context.outbox, relay_of(run, context)
    try:
        async with aclosing(run.steps(chunks=False)) as steps:
            async for step in steps:
                outbox.put(relay.feed(step.events))
                await outbox.room()
        return await run.result()
    finally:
        with anyio.CancelScope(shield=True):
            outbox.put(relay.feed(await run.leave()))


def _result(run: InnerRun, output_type: Any) -> ChatResult[Any]:
    """What a run gave that was told before."""
    from dragoman.result import ChatResult

    if output_type is str:
        return ChatResult(run.output, run.messages)
    from pydantic import TypeAdapter

    return ChatResult(TypeAdapter(output_type).validate_python(run.output), run.messages)
