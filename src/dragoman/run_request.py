"""What an agent is asked with, where it is more than a prompt: `RunRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.interrupt import Resume
from dragoman.message import Message, Native
from dragoman.request import Settings, ToolSpec

__all__ = ["RunRequest"]


class RunRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request to an agent, in full. `Agent.run` and every way of sending take it in place of a prompt; the same fields are their
    keywords, which go before the request's."""

    messages: tuple[Message, ...] = ()
    """The conversation, oldest first. What follows the last message of the model's is new, and of this run; all before it is history."""
    thread_id: str | None = None
    """Id of the conversation; `None`: it is the run's."""
    run_id: str | None = None
    """Id of the run; `None`: one is made."""
    resource_id: str | None = None
    """Whose conversation it is, such as a user's id."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the client runs, beside the agent's own."""
    context: tuple[Any, ...] = ()
    """What the client tells beside the conversation, any JSON. Tools and orchestrators see it, the model does not."""
    state: Any = None
    """The state that client and agent share, any JSON value; `None`: none."""
    resume: tuple[Resume, ...] = ()
    """Answers to what the last run of the conversation waits for."""
    settings: Settings | None = None
    """How the model is to answer; go before the agent's, one by one."""
    options: Mapping[str, Any] | None = None
    """Body fields without a neutral name; go before the agent's, one by one."""
    metadata: Mapping[str, Any] = {}
    """Anything that is to be passed on unread."""
    native: Native = None
    """What a protocol has beside these fields; only its `load_run` fills it."""

    def __post_init__(self) -> None:
        for name in ("messages", "tools", "context", "resume"):
            if type(value := getattr(self, name)) is not tuple:
                msgspec.structs.force_setattr(self, name, tuple(value))

    def replace(self, **changes: Any) -> RunRequest:
        """A copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)
