"""Which run something belongs to: its ids, and whose it is."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["RunInfo"]


class RunInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run, as those see it who are asked by it: middlewares (`ModelRequest.run`) and hooks."""

    run_id: str
    """Id of the run."""
    thread_id: str | None = None
    """Id of the conversation."""
    resource_id: str | None = None
    """Whose conversation it is, such as a user's id."""
    parent_run_id: str | None = None
    """Id of the run within whose tool it runs; `None`: it runs for itself."""
    agent: str = ""
    """The agent's name for people."""
    context: tuple[Any, ...] = ()
    """What the run's client says beside the conversation, for agents that are asked like models."""
    state: Any = None
    """The state that client and agent share, as it is when the model is asked, for such agents too; `None`: there is none."""
    hooks: tuple[Any, ...] = ()
    """The `Hooks` that watch the run, for `dragoman.hooks.fire`."""
