"""What the log of a run tells of it, so that another process can go on with the run (`Story`).

Ids, usage, counts and the shared state are those that the earlier owners of the run reached. A run
of an agent in a tool has a story of its own, which stands in that of the run around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from dragoman.json_bytes import JsonMap
from dragoman.message import Message, Role, ToolResultPart
from dragoman.result import ModelCall

__all__ = ["MODEL_STEP", "Story"]

MODEL_STEP = "model call "
"""How the names of steps begin in which a model is called."""


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The past of a run. The empty one is that of a run that has not begun."""

    run_id: str = ""
    """Id of the run; empty: it has none yet."""
    owner: int = 1
    """Number of the present owner, from 1 on."""
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
    corrections: int = 0
    """Number of corrections that the model was asked for."""
    begun: frozenset[str] = frozenset()
    """Ids of the calls that may have begun since the model's last message."""
    results: Mapping[tuple[int, str], ToolResultPart] = {}
    """Results that were stored since then, by the places of their calls and the ids."""
    steps: Mapping[tuple[str, str], Any] = {}
    """Results of `ToolContext.step` since then, by call id and name."""
    inner: Mapping[tuple[str, int], Story] = {}
    """Runs of agents that have begun since then, by the id of their call and their number in it. The
    id of an agent that goes on in place of this one is empty."""
    is_returned: bool = False
    """True if the output was accepted that the model gave by calling `return_result`."""
    set_aside: JsonMap | None = None
    """Metadata of the message that ended the first of two phases; `None`: it has not ended."""
    state: Any = None
    """The state that client and agent share."""
    has_started: bool = False
    """True if the start of the run is told, and no end after it."""
    has_state: bool = False
    """True if the shared state is told."""
    began_at: datetime | None = None
    """When the first answer of a model began."""

    @property
    def has_answer(self) -> bool:
        """True if a message of the model is told."""
        return any(message.role is Role.MODEL for message in self.messages)
