"""The state of a thread's runs, which is kept with the thread: `ThreadState`.

A run that is given no state begins with the one that the run before it left. It is written when a
message of the run is stored and when the run ends, if it changed since.
"""

from __future__ import annotations

from datetime import datetime

from dragoman import json_bytes
from dragoman.logs import logger
from dragoman.memory.store import Slot, SlotText, Store
from dragoman.tools import SharedState

__all__ = ["MOST_BYTES", "ThreadState"]

_LOG = logger("memory")
MOST_BYTES = 2**20
"""Most bytes of a state that is kept, as JSON."""


class ThreadState:
    """Reads and writes the state of one run."""

    def __init__(
        self, store: Store, thread_id: str, resource_id: str | None, shared: SharedState
    ) -> None:
        """Binds the shared state of a run to its thread. `shared`: the state of the run."""
        self._store, self._shared = store, shared
        self._slot = Slot(name="state", thread_id=thread_id, resource_id=resource_id)
        self._text: str | None = None
        """What the store has; `None`: it was not read."""
        # Clients that have no state say so by an empty one.
        self._is_given = shared.value not in (None, {})
        self._changes = shared.changes - self._is_given

    @property
    def slot(self) -> Slot | None:
        """Where the state is that the run needs; `None`: it was given one."""
        return None if self._is_given else self._slot

    async def load(self, stored: SlotText | None) -> None:
        """Takes the state that the thread has, unless the run was given a state. `stored`: what was
        read of it already.

        Raises:
            StoreError: it cannot be read.
        """
        if not self._is_given:
            self._text = (stored or await self._store.read_slot(self._slot)).text

    def restore(self) -> bool:
        """Gives the run the thread's state that was read, and tells so. Returns False if there is
        none."""
        if self._is_given or not self._text:
            return False
        self._shared.replace(json_bytes.decode(self._text))
        self._changes = self._shared.changes
        return True

    async def keep(self, time: datetime) -> None:
        """Writes the state into the thread if it changed. One that is too large is not kept, with a
        warning.

        Raises:
            StoreError: it cannot be written.
        """
        if self._changes == self._shared.changes:
            return
        self._changes = self._shared.changes
        text = json_bytes.encode(self._shared.value).decode()
        if len(text) > MOST_BYTES:
            _LOG.warning(
                "the state of a run in the thread %s is not kept: it has %d characters, and %d are the most",
                self._slot.thread_id,
                len(text),
                MOST_BYTES,
            )
            text = ""
        if text != self._text:
            self._text = text
            await self._store.write_slot(self._slot, text, None, time)
