"""What a tool may know of the run that calls it: `ToolContext`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic

import msgspec
from typing_extensions import TypeVar

from dragoman.message import Message, ToolCallPart
from dragoman.tools.ask import AskUser
from dragoman.tools.record import CallRecord, CallRecords

if TYPE_CHECKING:
    from dragoman.result import ChatResult
    from dragoman.tools.inner import Sender

__all__ = ["ToolContext"]

Deps = TypeVar("Deps", default=Any)


class ToolContext(msgspec.Struct, Generic[Deps], frozen=True):
    """Given to a handler that has a parameter annotated `ToolContext` or `ToolContext[…]`; never shown to the model."""

    deps: Deps
    """What the caller of the run passed as `deps`."""
    run_id: str = ""
    """Id of the run."""
    messages: tuple[Message, ...] = ()
    """The conversation so far, up to and with the message that holds the call."""
    call: ToolCallPart = ToolCallPart("", "")
    """The call that is answered; the executor fills it in."""
    records: CallRecords | None = None
    """What the run knows of its calls; `None`: there is no run."""

    @property
    def answers(self) -> tuple[Any, ...]:
        """Answers to what the tool asked when it was run before, in order: see `AskUser`."""
        return self.record.answers

    @property
    def record(self) -> CallRecord:
        """What is known of the call that is answered."""
        return CallRecord() if self.records is None else self.records.of(self.call)

    def ask(self, message: str, schema: Mapping[str, Any] | None = None) -> Any:
        """Asks a person → the answer, once there is one. Until then it raises: the run ends, and the tool is run again from its start,
        where the same questions must come in the same order.

        Raises:
            AskUser: nobody has answered it yet. Let it pass.
        """
        record = self.record
        record.asked += 1
        if record.asked > len(record.answers):
            raise AskUser(message, schema)
        return record.answers[record.asked - 1]

    async def send(self, agent: Sender, prompt: Any, **how: Any) -> ChatResult[str]:
        """Sends a prompt to another agent, as a part of this run; `how` as with `Agent.send`, `deps` being this run's. What that agent waits
        for, this run waits for, and going on goes on there. An agent that came to its end is not asked again then.

        Raises:
            AskUser: it waits. Let it pass.
            DragomanError: its run failed.
        """
        from dragoman.tools.inner import send

        return await send(self, agent, prompt, **how)
