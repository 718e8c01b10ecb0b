"""Memory: conversations stored as threads of messages, in process memory, SQLite or Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.runtime import lazy

if TYPE_CHECKING:
    from dragoman.memory.memory import Memory
    from dragoman.memory.memory_store import open_store
    from dragoman.memory.store import (
        Batch,
        MessageQuery,
        Neighbours,
        Store,
        ThreadChange,
        ThreadQuery,
    )
    from dragoman.memory.thread import Branch, Page, StoredMessage, Thread

__all__ = [
    "Batch",
    "Branch",
    "Memory",
    "MessageQuery",
    "Neighbours",
    "Page",
    "Store",
    "StoredMessage",
    "Thread",
    "ThreadChange",
    "ThreadQuery",
    "open_store",
]

_MODULES = {
    "Batch": "store",
    "Branch": "thread",
    "Memory": "memory",
    "MessageQuery": "store",
    "Neighbours": "store",
    "Page": "thread",
    "Store": "store",
    "StoredMessage": "thread",
    "Thread": "thread",
    "ThreadChange": "store",
    "ThreadQuery": "store",
    "open_store": "memory_store",
}

__getattr__ = lazy("dragoman.memory", _MODULES)
