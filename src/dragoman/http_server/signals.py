"""What the signals do that ask a process to end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["on_signals"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_signals(*actions: Callable[[], object]) -> Generator[None]:
    """Within the block SIGINT and SIGTERM do the first of these; each further one the next, and the last again and again. It needs a
    running event loop. Outside of the main thread, where no signal arrives, they stay as they are."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, left = asyncio.get_running_loop(), list(actions)
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def act() -> None:
        (left.pop(0) if len(left) > 1 else left[0])()

    def signalled(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)

    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:  # Windows
            signal.signal(number, signalled)
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)
