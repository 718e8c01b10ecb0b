"""Memory: conversations stored as threads of messages, in process memory, SQLite or Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.runtime import lazy

if TYPE_CHECKING:
    from dragoman.memory.memory import Memory
    from dragoman.memory.memory_store import open_store
    from dragoman.memory.recall_settings import Embedder, Hit, Recall
    from dragoman.memory.store import (
        Batch,
        MessageQuery,
        Neighbours,
        Quote,
        Slot,
        SlotText,
        Store,
        ThreadChange,
        ThreadQuery,
    )
    from dragoman.memory.thread import Branch, Page, StoredMessage, Thread
    from dragoman.memory.titles import Titles
    from dragoman.memory.vectors import Embedded, Unembedded, VectorMatch, VectorQuery, VectorStore
    from dragoman.memory.working_memory import Working, WorkingMemory

__all__ = [
    "Batch",
    "Branch",
    "Embedded",
    "Embedder",
    "Hit",
    "Memory",
    "MessageQuery",
    "Neighbours",
    "Page",
    "Quote",
    "Recall",
    "Slot",
    "SlotText",
    "Store",
    "StoredMessage",
    "Thread",
    "ThreadChange",
    "ThreadQuery",
    "Unembedded",
    "VectorMatch",
    "VectorQuery",
    "VectorStore",
    "Titles",
    "Working",
    "WorkingMemory",
    "open_store",
]

_MODULES = {
    "Batch": "store",
    "Branch": "thread",
    "Embedded": "vectors",
    "Embedder": "recall_settings",
    "Hit": "recall_settings",
    "Memory": "memory",
    "MessageQuery": "store",
    "Neighbours": "store",
    "Page": "thread",
    "Quote": "store",
    "Recall": "recall_settings",
    "Slot": "store",
    "SlotText": "store",
    "Store": "store",
    "StoredMessage": "thread",
    "Thread": "thread",
    "ThreadChange": "store",
    "ThreadQuery": "store",
    "Unembedded": "vectors",
    "VectorMatch": "vectors",
    "VectorQuery": "vectors",
    "VectorStore": "vectors",
    "Titles": "titles",
    "Working": "working_memory",
    "WorkingMemory": "working_memory",
    "open_store": "memory_store",
}

__getattr__ = lazy("dragoman.memory", _MODULES)
