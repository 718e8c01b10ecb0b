"""Ctrl-C on the command line (`cli/ctrl_c.py`): none is lost, and none does more than it
should."""

from __future__ import annotations

import asyncio
import signal
from threading import Thread, get_ident

import pytest

from dragoman.cli.ctrl_c import Interrupts

pytestmark = pytest.mark.anyio


async def test_one_that_another_thread_takes_wakes_the_event_loop() -> None:
    """The system may hand a signal to any thread, and it may come just before the loop goes to
    sleep."""
    came = asyncio.Event()
    with Interrupts() as interrupts, interrupts.to(came.set):
        other = Thread(target=lambda: signal.pthread_kill(get_ident(), signal.SIGINT))
        other.start()
        await asyncio.wait_for(came.wait(), 20)
        other.join()


async def test_the_innermost_action_is_taken_then_the_next_of_its_own() -> None:
    before, done = signal.getsignal(signal.SIGINT), []

    async def ctrl_c() -> list[str]:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0.01)
        said, done[:] = list(done), []
        return said

    with Interrupts() as interrupts:
        assert await ctrl_c() == []
        with interrupts.to(lambda: done.append("outer")):
            with interrupts.to(lambda: done.append("first"), lambda: done.append("next")):
                assert [await ctrl_c() for _ in range(3)] == [["first"], ["next"], ["next"]]
            assert await ctrl_c() == ["outer"]
        assert await ctrl_c() == []
    assert signal.getsignal(signal.SIGINT) == before
