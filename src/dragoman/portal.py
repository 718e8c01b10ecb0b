"""Synchronous calls: an event loop in a thread of its own, so that they work from any thread, also
inside a running loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextvars import ContextVar
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast
from weakref import WeakSet, finalize

from dragoman.errors import SettingsError

__all__ = ["Portal", "synchronous", "synchronous_stream"]

T = TypeVar("T")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])

_PATIENCE = 1.0
"""Seconds that are left to what still runs when the portal ends."""


class Portal:
    """One background thread with one event loop, started at the first call and ended by `close`, or
    with its owner.

    A process that is forked off starts a thread of its own: threads do not live on in it.
    """

    def __init__(self) -> None:
        """Creates a portal whose event loop is not started yet."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finalizer: finalize[Any, Any] | None = None
        _PORTALS.add(self)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the portal's loop and waits for it. An interrupt here cancels it
        there.

        Raises:
            SettingsError: the portal's own loop waits for this call, and would wait for itself.
        """
        loop, waiting = self._running_loop(), _waiting.get() | _loop_of_thread()
        if loop in waiting:
            work.close()
            raise SettingsError(
                "a synchronous call from within a synchronous call of the same agent, as from a tool that is a coroutine "
                "function, would wait for itself: await the asynchronous one there, such as send() for send_sync()"
            )
        # The work carries it on, also into threads.
        # A call from within a tool of this call would wait for the loop that waits for it.
        before = _waiting.set(waiting)
        try:
            future = asyncio.run_coroutine_threadsafe(work, loop)
        finally:
            _waiting.reset(before)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """Iterates in the portal's loop over an async generator from outside; leaving early closes
        it, and so does the end of the portal."""
        try:
            while (item := self.call(_next(items))) is not _END:
                yield cast(T, item)
        finally:
            if self._finalizer is not None and self._finalizer.alive:
                self.call(_close_items(items))

    @property
    def started(self) -> bool:
        """Returns whether the portal's thread was started."""
        return self._loop is not None

    def close(self) -> None:
        """Ends the portal's thread, if there is one."""
        with self._lock:
            if self._finalizer is not None:
                self._finalizer()
            self._loop = self._finalizer = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """Returns the portal's running event loop, and starts its thread if needed."""
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_run_loop, args=(loop,), name="dragoman-portal", daemon=True
                )
                thread.start()
                self._loop, self._finalizer = loop, finalize(self, _stop_loop, loop, thread)
            return self._loop

    def after_fork(self) -> None:
        """Leaves the portal's loop and thread to the process that they belong to."""
        self._lock = threading.Lock()
        if self._finalizer is not None:
            self._finalizer.detach()
            _INHERITED.append(self._loop)
        self._loop = self._finalizer = None


class _HasPortal(Protocol):
    """Whatever has synchronous twins of its methods."""

    @property
    def portal(self) -> Portal:
        """Returns the portal in which synchronous calls run."""
        ...


S = TypeVar("S", bound=_HasPortal)


def synchronous(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], T]:
    """Returns the synchronous twin of a coroutine method, which runs in the portal. A subclass that
    overrides the method changes both."""

    def twin(self: S, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.portal.call(getattr(self, method.__name__)(*args, **kwargs))

    return _name_twin(method, twin)


def synchronous_stream(
    method: Callable[Concatenate[S, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[S, P], Iterator[T]]:
    """Returns the synchronous twin of an async generator method, as `synchronous` does."""

    def twin(self: S, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self.portal.iterate(getattr(self, method.__name__)(*args, **kwargs))

    return _name_twin(method, twin)


def _name_twin(method: Callable[..., Any], twin: F) -> F:
    """Names a synchronous twin after its method and describes it."""
    update_wrapper(twin, method)
    twin.__name__, twin.__qualname__ = f"{method.__name__}_sync", f"{method.__qualname__}_sync"
    twin.__doc__ = (
        f"`{method.__name__}` from any thread, also inside a running event loop (which it blocks)."
    )
    return twin


_waiting: ContextVar[frozenset[asyncio.AbstractEventLoop]] = ContextVar(
    "_waiting", default=frozenset()
)
"""The loops that stand still until the work at hand is done."""
_PORTALS: WeakSet[Portal] = WeakSet()
_INHERITED: list[Any] = []
"""Loops that run in another process: one that nobody refers to would be closed, with what both
processes share."""


def _after_fork() -> None:
    for portal in list(_PORTALS):
        portal.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _loop_of_thread() -> frozenset[asyncio.AbstractEventLoop]:
    """Returns the loop of this thread, which a synchronous call through the portal blocks."""
    try:
        return frozenset({asyncio.get_running_loop()})
    except RuntimeError:
        return frozenset()


_END = object()


async def _next(items: AsyncGenerator[T, None]) -> T | object:
    return await anext(items, _END)


async def _close_items(items: AsyncGenerator[Any, None]) -> None:
    await items.aclose()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Runs the portal's event loop until it is stopped, then ends its tasks."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(_finish_tasks(loop))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def _finish_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Lets the portal's tasks come to their end, such as connections that are being closed; cancels
    what does not."""
    unfinished = asyncio.all_tasks(loop) - {asyncio.current_task()}
    if unfinished:
        _, stuck = await asyncio.wait(unfinished, timeout=_PATIENCE)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


def _stop_loop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stops the portal's event loop and waits for its thread."""
    if loop.is_running():
        loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join(timeout=5)
