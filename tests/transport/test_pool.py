"""How long connections live: pools per loop, nothing leaked, no complaints (pains B9: "event loop
is closed")."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import anyio
import pytest

from dragoman.errors import ProviderConnectionError, ProviderTimeoutError
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport, Response, Timeouts
from support.socket_server import Do, answer, serving, serving_elsewhere

pytestmark = [
    pytest.mark.filterwarnings("error"),
    pytest.mark.skipif(
        not Path("/proc/self/fd").is_dir(), reason="counts sockets by /proc, which only Linux has"
    ),
]


async def fetch(transport: AiohttpTransport, url: str) -> bytes:
    response = await transport.send(HttpRequest(url, body={"n": 1}))
    try:
        pieces: list[bytes] = []
        while data := await response.read():
            pieces.append(data)
        return b"".join(pieces)
    finally:
        await response.close()


FDS = Path("/proc/self/fd")


def sockets() -> int:
    """How many are open in this process."""
    count = 0
    for link in FDS.iterdir():
        with suppress(OSError):
            count += str(link.readlink()).startswith("socket:")
    return count


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture):
    """Nothing is logged, and no object complains when it is collected."""
    caplog.set_level(logging.INFO)
    before = sockets()
    yield
    gc.collect()
    assert caplog.records == []
    assert sockets() == before


@pytest.mark.slow
def test_many_sends_leave_nothing_behind(quiet: None):
    """300 one after the other and 100 at once: no socket, task or thread is left when the transport
    is closed."""
    threads = threading.active_count()

    async def main() -> None:
        async with serving(answer(b"one", b"two")) as server:
            transport = AiohttpTransport()
            tasks, idle = asyncio.all_tasks(), sockets()
            for _ in range(300):
                assert await fetch(transport, server.url) == b"onetwo"
            assert server.connections == 1
            results = await asyncio.gather(*(fetch(transport, server.url) for _ in range(100)))
            assert results == [b"onetwo"] * 100
            assert server.connections <= 101
            await transport.close()
            with anyio.fail_after(10):
                await server.idle.wait()
            await asyncio.sleep(0)
            assert sockets() == idle
            assert {task for task in asyncio.all_tasks() if not task.done()} - tasks == set()

    asyncio.run(main())
    assert threading.active_count() == threads


@pytest.mark.slow
def test_sends_that_are_cut_or_given_up_leave_nothing_behind(quiet: None):
    async def main() -> None:
        async with serving(
            *[answer(b"one", Do.CLOSE), answer(b"one", Do.RESET), [Do.CLOSE]] * 10, [Do.HANG]
        ) as server:
            transport = AiohttpTransport(Timeouts(read=0.05))
            for _ in range(33):
                with pytest.raises((ProviderConnectionError, ProviderTimeoutError)):
                    await fetch(transport, server.url)
            with anyio.fail_after(10):
                await server.idle.wait()
            await transport.close()

    asyncio.run(main())


@pytest.mark.slow
def test_each_loop_has_connections_of_its_own(quiet: None):
    """Two threads, each with a loop, share a transport and never a connection; the end of a loop
    closes its own."""
    transport = AiohttpTransport()
    both = threading.Barrier(2, timeout=10)
    counts: list[int] = []

    def run() -> None:
        async def main() -> None:
            async with serving(answer(b"one")) as server:
                await asyncio.to_thread(both.wait)
                for _ in range(20):
                    assert await fetch(transport, server.url) == b"one"
                counts.append(server.connections)

        asyncio.run(main())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1, 1]


async def _leave_idle(transport: AiohttpTransport, url: str) -> None:
    await fetch(transport, url)


async def _leave_open(transport: AiohttpTransport, url: str) -> Response:
    response = await transport.send(HttpRequest(url))
    await response.read()
    return response


def _run_alone(module: ModuleType) -> Callable[..., None]:
    return lambda function, *args: module.run(function(*args))


def _wait_until(condition: Callable[[], bool]) -> None:
    """For what another thread is about to do."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


LEFT = pytest.mark.parametrize(
    ("leave", "script"),
    [(_leave_idle, answer(b"one")), (_leave_open, answer(b"one", Do.HANG))],
    ids=["idle", "open"],
)
Leave = Callable[[AiohttpTransport, str], Awaitable[object]]


@LEFT
@pytest.mark.parametrize("runner", ["asyncio", "uvloop", "anyio"])
@pytest.mark.slow
def test_end_of_the_loop_closes_connections_that_nobody_closed(
    quiet: None, runner: str, leave: Leave, script: list[object]
):
    run = anyio.run if runner == "anyio" else _run_alone(pytest.importorskip(runner))
    transport = AiohttpTransport()
    with serving_elsewhere(script) as server:
        for _ in range(2):
            run(leave, transport, server.url)
            _wait_until(server.idle.is_set)


@LEFT
@pytest.mark.slow
def test_transport_that_nobody_refers_to_closes_its_connections(
    quiet: None, leave: Leave, script: list[object]
):
    """Also as part of a cycle, where the garbage collector comes upon all its objects at once."""

    async def main() -> None:
        async with serving(script) as server:
            for cyclic in (False, True):
                transport = AiohttpTransport()
                if cyclic:
                    vars(transport)["itself"] = transport
                gone = weakref.ref(transport)
                await leave(transport, server.url)
                del transport
                gc.collect()
                assert gone() is None
                with anyio.fail_after(10):
                    await server.idle.wait()

    asyncio.run(main())


@pytest.mark.slow
def test_answer_keeps_its_transport(quiet: None):
    async def main() -> None:
        gate = asyncio.Event()
        async with serving(answer(b"one", gate, b"two")) as server:
            response = await AiohttpTransport().send(HttpRequest(server.url))
            assert await response.read() == b"one"
            gc.collect()
            gate.set()
            assert await response.read() == b"two"
            assert await response.read() == b""

    asyncio.run(main())


@pytest.mark.slow
def test_answer_that_nobody_refers_to_closes_its_connection(quiet: None):
    async def main() -> None:
        async with serving(answer(b"one", Do.HANG)) as server:
            transport = AiohttpTransport()
            await _leave_open(transport, server.url)
            with anyio.fail_after(10):
                await server.left.wait()
            gc.collect()
            await transport.close()

    asyncio.run(main())


@LEFT
@pytest.mark.slow
def test_loop_that_was_closed_without_notice(
    caplog: pytest.LogCaptureFixture, leave: Leave, script: list[object]
):
    """Its connections are closed at the next use, from another loop, which works; aiohttp does not
    complain.

    asyncio itself warns of its transports, as it does of all over which a loop is closed without
    `shutdown_asyncgens`.
    """
    transport = AiohttpTransport()
    with serving_elsewhere(script) as server, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed (transport|<socket)", ResourceWarning)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave(transport, server.url))
        loop.close()

        async def main() -> None:
            await leave(transport, server.url)
            await transport.close()

        asyncio.run(main())
        del loop
        gc.collect()
        _wait_until(server.idle.is_set)
    assert caplog.records == []


@pytest.mark.slow
def test_transport_that_outlives_its_loop(caplog: pytest.LogCaptureFixture):
    with serving_elsewhere(answer(b"one")) as server:
        transport = AiohttpTransport()
        asyncio.run(_leave_idle(transport, server.url))
        del transport
        gc.collect()
    assert caplog.records == []
