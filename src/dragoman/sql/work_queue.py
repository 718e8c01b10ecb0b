"""Does the blocking work of many callers in threads of its own.

A future of an event loop and a queue are all that stands between them: a `ThreadPoolExecutor`
costs more per call than reading a row.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from dragoman.runtime import running_loop

__all__ = ["WorkQueue"]

_QueuedWork = tuple[Any, asyncio.Future[Any], asyncio.AbstractEventLoop]


class WorkQueue:
    """Takes work from any event loop and passes it to `carry_out` in a thread.

    `carry_out` does pieces of work and returns, for each, its result or the exception that refuses
    it. If it raises, all of them have failed. The threads start with the first piece.
    """

    def __init__(
        self,
        carry_out: Callable[[Sequence[Any]], Sequence[Any]],
        *,
        name: str,
        closed: Callable[[], Exception],
        threads: int = 1,
        shares: bool = False,
        pause: float = 0.0,
    ) -> None:
        """Creates a queue of work.

        Args:
            carry_out: does pieces of work.
            name: name of the threads.
            closed: makes the error for work that comes after `close`.
            threads: number of threads.
            shares: True to pass on together all work that came during a call of `carry_out`.
            pause: least seconds from the beginning of one call to that of the next.
        """
        self._carry_out, self._shares = carry_out, shares
        self._name, self._closed_error, self._pause = name, closed, pause
        self._queue: SimpleQueue[_QueuedWork | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._hurried = threading.Event()
        self._count = threads
        self._threads: list[threading.Thread] = []
        self._closed = False

    async def do(self, work: Any) -> Any:
        """Queues a piece of work and waits until it is done. Returns its result. A caller that
        stops waiting does not stop the work.

        Raises:
            Exception: the work was refused or failed, or the queue is closed.
        """
        return await self.post(work)

    def post(self, work: Any) -> asyncio.Future[Any]:
        """Queues a piece of work. Returns a future of its result. See `do`."""
        loop = running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._closed:
                raise self._closed_error()
            if not self._threads:
                self._start_threads()
            self._queue.put((work, future, loop))
        return future

    def hurry(self) -> None:
        """Ends the present pause, or leaves out the next one."""
        self._hurried.set()

    def close(self) -> None:
        """Finishes the work that was submitted and ends the threads of the queue. Blocks until
        then."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, []
        for _ in threads:
            # None ends a thread once everything before it is done.
            self._queue.put(None)
        for thread in threads:
            thread.join()

    def _start_threads(self) -> None:
        """Starts the threads of the queue."""
        for _ in range(self._count):
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        """Does queued work until the queue is closed, with a pause between calls."""
        began_at = -self._pause
        is_open = True
        while is_open:
            first = self._queue.get()
            if (seconds_left := began_at + self._pause - monotonic()) > 0 and first is not None:
                # Waiting collects more work, so that it shares one call.
                self._hurried.wait(seconds_left)
            # Cleared before the queue is emptied: work that is hurried from now on may come too late
            # for this call.
            self._hurried.clear()
            queued, is_open = self._drain(first)
            if queued:
                began_at = monotonic()
                self._do_together(queued)

    def _drain(self, first: _QueuedWork | None) -> tuple[list[_QueuedWork], bool]:
        """Returns the work of the queue that is done together, and False if the queue was
        closed."""
        queued: list[_QueuedWork] = []
        entry = first
        try:
            while entry is not None:
                queued.append(entry)
                if not self._shares:
                    return queued, True
                entry = self._queue.get_nowait()
        except Empty:
            return queued, True
        return queued, False

    def _do_together(self, queued: list[_QueuedWork]) -> None:
        """Does pieces of the queue's work, and gives each waiting caller its result."""
        try:
            results = self._carry_out([work for work, _, _ in queued])
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
    """Settles futures of the queue's callers with their results or exceptions, in their own event
    loop."""
    for future, result in outcomes:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
