"""Writes the work of many callers in one thread. Work that arrives during a write is written together
afterwards, in one transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from dragoman.runtime import running_loop

__all__ = ["Writer"]

_QueuedWork = tuple[Any, asyncio.Future[Any], asyncio.AbstractEventLoop]


class Writer:
    """Takes work from any event loop and passes it to `commit` in one thread.

    `commit` makes several pieces of work durable and returns, for each, its result or the exception
    that refuses it. If it raises, all of them have failed. The thread starts with the first piece.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Any]], Sequence[Any]],
        *,
        name: str,
        closed: Callable[[], Exception],
        pause: float = 0.0,
    ) -> None:
        """Creates a writer of queued work. Args: commit: writes pieces of work. name: name of the
        thread. closed: makes the error for work that comes after `close`. pause: least seconds from
        one commit to the next."""
        self._commit = commit
        self._name, self._closed_error, self._pause = name, closed, pause
        self._queue: SimpleQueue[_QueuedWork | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._hurried = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False

    async def do(self, work: Any) -> Any:
        """Queues a piece of work for the writer and waits until it is durable. Returns its result.
        A caller that stops waiting does not stop the work.

        Raises:
            Exception: the work was refused or failed, or the writer is closed.
        """
        return await self.post(work)

    def post(self, work: Any) -> asyncio.Future[Any]:
        """Queues a piece of work for the writer. Returns a future of its result. See `do`."""
        loop = running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._closed:
                raise self._closed_error()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._write_until_closed, name=self._name, daemon=True
                )
                self._thread.start()
            self._queue.put((work, future, loop))
        return future

    def hurry(self) -> None:
        """Ends the present pause, or leaves out the next one."""
        self._hurried.set()

    def close(self) -> None:
        """Finishes the work that was submitted and ends the writer's thread. Blocks until then."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            # None ends the thread once everything before it is written.
            self._queue.put(None)
            thread.join()

    def _write_until_closed(self) -> None:
        """Writes queued work until the writer is closed, with a pause between commits."""
        written_at = -self._pause
        is_open = True
        while is_open:
            first = self._queue.get()
            if (seconds_left := written_at + self._pause - monotonic()) > 0 and first is not None:
                # Waiting collects more work, so that it shares one commit.
                self._hurried.wait(seconds_left)
            # Cleared before the queue is emptied: work that is hurried from now on may come too late
            # for this commit.
            self._hurried.clear()
            queued, is_open = self._drain_queue(first)
            if queued:
                written_at = monotonic()
                self._write_batch(queued)

    def _drain_queue(self, first: _QueuedWork | None) -> tuple[list[_QueuedWork], bool]:
        """Returns all work in the writer's queue, and False if the queue was closed."""
        queued: list[_QueuedWork] = []
        entry = first
        try:
            while entry is not None:
                queued.append(entry)
                entry = self._queue.get_nowait()
        except Empty:
            return queued, True
        return queued, False

    def _write_batch(self, queued: list[_QueuedWork]) -> None:
        """Commits a batch of the writer's queued work, and gives each waiting caller its result."""
        try:
            results = self._commit([work for work, _, _ in queued])
        except Exception as error:  # noqa: BLE001 - whatever the driver raises, those who wait must be told
            results = [error] * len(queued)
        loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for (_, future, loop), result in zip(queued, results, strict=True):
            loops.setdefault(loop, []).append((future, result))
        for loop, outcomes in loops.items():
            try:
                loop.call_soon_threadsafe(_settle_futures, outcomes)
            except RuntimeError:
                # The event loop is closed, so nobody waits for the result.
                continue


def _settle_futures(outcomes: list[tuple[asyncio.Future[Any], Any]]) -> None:
    """Settles futures of the writer's callers with their results or exceptions, in their own event
    loop."""
    for future, result in outcomes:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
