"""A tool by which the model hands the conversation over to another agent: `handoff`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypedDict, Unpack

import msgspec

from dragoman.arguments import expect, wrong
from dragoman.errors import ToolError
from dragoman.interrupt import Resume
from dragoman.limits import Limits
from dragoman.message import Message
from dragoman.tools.agent_tool import name_for_models
from dragoman.tools.definition import Approval, Tool
from dragoman.tools.inner import Sender
from dragoman.tools.record import InnerRun

__all__ = ["Handoff", "HandoffOptions", "Transfer", "handoff"]

_REASON: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {
            "type": "string",
            "description": "Why, and what the other has to know beside all this.",
        }
    },
}


class HandoffOptions(TypedDict, total=False):
    """What `handoff` takes beside what the model is told."""

    limits: Limits | None
    """Of what the other agent does, in place of its own. The run that is handed over keeps its limits in any case."""
    requires_approval: bool | Approval
    """See `Tool.requires_approval`: of handing over."""
    approval_expires: float | timedelta | None
    """See `Tool.approval_expires`."""


class Handoff(Tool, frozen=True, eq=False, dict=True):
    """What `handoff` makes. The run carries it out, once all other calls of the same answer are done."""

    agent: Sender | Callable[[], Sender] | None = None
    """Who goes on, or a function that gives it."""
    to: str = ""
    """Its name."""
    limits: Limits | None = None
    """See `HandoffOptions`."""

    def sender(self) -> Sender:
        """Who goes on.

        Raises:
            ToolError: there is nobody.
        """
        agent = self.agent() if callable(self.agent) else self.agent
        if agent is None:
            raise ToolError(f"{self.name} hands over to nobody; make it with handoff(agent)")
        return agent


class Transfer(msgspec.Struct, frozen=True):
    """A hand-off that is about to happen."""

    tool: Handoff
    """To whom."""
    runs: Sequence[InnerRun] = ()
    """The run of that agent that waited, as far as it came; empty: it begins."""
    resume: tuple[Resume, ...] = ()
    """Answers to what it waits for."""
    new: tuple[Message, ...] = ()
    """What has been said since."""


def handoff(
    agent: Sender | Callable[[], Sender],
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[HandoffOptions],
) -> Handoff:
    """A tool for `Agent(tools=…)` by which its model hands the conversation over to another agent, which gives the answer in its place:
    what that one says is the output of the run. The model calls it `transfer_to_NAME`.

    `agent` may be a function that gives it, for agents that hand over to each other. `name`: left out, the agent's `display_name`.
    The other agent has the conversation so far, with its own system message, tools and model, and the state of the run.

    Raises:
        ToolError: there is no name.
        TypeError: an argument is of another type.
    """
    if not hasattr(agent, "run") and (agent is None or not callable(agent)):
        raise wrong("agent", agent, "an agent, or a function that gives one")
    expect("name", name, str, type(None))
    expect("limits", options.get("limits"), Limits, type(None))
    display_name: str = getattr(agent, "display_name", "")
    to = name or name_for_models(display_name)
    if not to:
        raise ToolError(
            "a hand-off needs the name of the agent that is handed over to; give it one with name=…"
        )
    about = (
        description
        or f"Hands the conversation over to {display_name or to}, who answers in your place."
    )
    fields: dict[str, Any] = {**options, "agent": agent, "to": to}
    return Handoff(f"transfer_to_{to}", about, _by_the_run, _REASON, **fields)


def _by_the_run(**_: Any) -> None:
    raise ToolError(
        "a hand-off is carried out by the run, which an orchestrator of somebody's own has to leave to it"
    )
