"""Agents within tools: a run that is a part of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.interrupt import Interrupt
from dragoman.tools.ask import AskUser
from dragoman.tools.record import InnerRun

if TYPE_CHECKING:
    from dragoman.result import ChatResult
    from dragoman.tools.context import ToolContext

__all__ = ["AgentWaits", "Sender", "send"]


class Sender(Protocol):
    """What an `Agent` is to a tool."""

    def run(self, prompt: Any, **how: Any) -> Any:
        """As `Agent.run`."""
        ...


class AgentWaits(AskUser):
    """An agent within a tool waits, so the tool does."""

    def __init__(self, pending: tuple[Interrupt, ...], runs: tuple[InnerRun, ...]) -> None:
        super().__init__("an agent in the tool waits")
        self.pending = pending
        self.runs = runs


async def send(context: ToolContext[Any], agent: Sender, prompt: Any, **how: Any) -> ChatResult[str]:
    """See `ToolContext.send`."""
    record = context.record
    place, record.sent = record.sent, record.sent + 1
    before = record.runs[place] if place < len(record.runs) else None
    if before is not None and before.done:
        return _result(before)
    options: Mapping[str, Any] = {"deps": context.deps, **how}
    if before is not None:
        prompt, options = None, {**options, "history": before.messages, "resume": record.resume}
    async with agent.run(prompt, **options) as run:
        run.parent_id = context.run_id or None
        result: ChatResult[str] = await run.result()
    messages = (*options.get("history", ()), *result.messages)
    record.runs[place:] = [InnerRun(messages, result.output, not result.pending)]
    if result.pending:
        raise AgentWaits(result.pending, tuple(record.runs))
    return result


def _result(run: InnerRun) -> ChatResult[str]:
    from dragoman.result import ChatResult

    return ChatResult(run.output, run.messages)
