"""The event loop that connections and runs belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.errors import SettingsError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["running_loop"]


def running_loop() -> AbstractEventLoop:
    """The running event loop of asyncio.

    Raises:
        SettingsError: there is none, or another library's.
    """
    from asyncio import get_running_loop

    try:
        return get_running_loop()
    except RuntimeError:
        raise SettingsError(
            "dragoman works on asyncio, and none of its event loops runs here: start it by asyncio.run(); under trio, call "
            "the synchronous methods in a thread: await trio.to_thread.run_sync(agent.send_sync, prompt)"
        ) from None
