"""Conversations as they are worked with: `MessageList` takes messages in any format, puts them in
order, pairs and merges them, and writes them in any format; `plan` says beforehand what a target
would lose; `put` merges a client's copy into what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.runtime import lazy

if TYPE_CHECKING:
    from dragoman.history.client_copy import Changes, put
    from dragoman.history.list import MessageList
    from dragoman.history.plans import Plan, plan

__all__ = ["Changes", "MessageList", "Plan", "plan", "put"]

_MODULES = {
    "Changes": "client_copy",
    "MessageList": "list",
    "Plan": "plans",
    "plan": "plans",
    "put": "client_copy",
}

__getattr__ = lazy("dragoman.history", _MODULES)
