"""One thread that writes for all: what came in while it wrote before is written together, in one
transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

from dragoman.runtime import running_loop

__all__ = ["Writer"]

_Waiting = tuple[Any, asyncio.Future[Any], asyncio.AbstractEventLoop]


class Writer:
    """Takes work from any event loop. `commit` makes some pieces of work durable → of each its
    result, or why it was refused; where it raises, all of them have failed.

    The thread begins with the first piece of work.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Any]], Sequence[Any]],
        *,
        name: str,
        closed: Callable[[], Exception],
        pause: float = 0.0,
    ) -> None:
        """`name`: the thread's. `closed`: makes the error of who comes when it is closed. `pause`:
        seconds from one commit to the next at least."""
        self._commit = commit
        self._name, self._closed_error, self._pause = name, closed, pause
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    async def do(self, work: Any) -> Any:
        """Waits until the work is done and durable → its result. Who stops waiting does not stop
        the work.

        Raises:
            Exception: it was refused or failed, or the writer is closed.
        """
        loop = running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._closed:
                raise self._closed_error()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            self._queue.put((work, done, loop))
        return await done

    def close(self) -> None:
        """Does what was given, and ends the thread. Blocks until then."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()

    def _work(self) -> None:
        written_at = -self._pause
        going = True
        while going:
            first = self._queue.get()
            if (early := written_at + self._pause - monotonic()) > 0 and first is not None:
                sleep(early)
            waiting, going = self._rest(first)
            if waiting:
                written_at = monotonic()
                self._write(waiting)

    def _rest(self, first: _Waiting | None) -> tuple[list[_Waiting], bool]:
        """What is in the queue, and whether more may come."""
        waiting: list[_Waiting] = []
        entry = first
        try:
            while entry is not None:
                waiting.append(entry)
                entry = self._queue.get_nowait()
        except Empty:
            return waiting, True
        return waiting, False

    def _write(self, waiting: list[_Waiting]) -> None:
        try:
            results = self._commit([work for work, _, _ in waiting])
        except Exception as error:  # noqa: BLE001 - whatever the driver raises, those who wait must be told
            results = [error] * len(waiting)
        loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for (_, done, loop), result in zip(waiting, results, strict=True):
            loops.setdefault(loop, []).append((done, result))
        for loop, settled in loops.items():
            try:
                loop.call_soon_threadsafe(_settle, settled)
            except RuntimeError:
                # It is closed, and nobody waits.
                continue


def _settle(settled: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for done, result in settled:
        if done.done():
            continue
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)
