"""Synchronous calls: in a process that was forked off, from within a tool, at the end of the
interpreter, without asyncio."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from dragoman import Agent, tool
from dragoman.errors import SettingsError
from dragoman.portal import Portal
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport, Exchange, Player
from support.socket_server import answer, serving_elsewhere

HELLO = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}'
CALL = (
    b'{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
    b'"function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}'
)


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of its own, which a hang does not keep for ever."""
    return subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


FORK = """
    import os, signal, sys
    from dragoman import Agent
    agent = Agent("openai", base_url=sys.argv[1], api_key="k")
    print(agent.send_sync("hi").output, flush=True)
    child = os.fork()
    signal.alarm(20)
    if not child:
        {child}
        print("child", flush=True)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(agent.send_sync("hi").output)
    agent.close_sync()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize(
    "child", ["assert agent.send_sync('hi').output == 'Hello.'", "agent.close_sync()", "pass"]
)
@pytest.mark.slow
def test_a_process_that_is_forked_off_has_a_thread_of_its_own(child: str) -> None:
    """And leaves the parent's connections alone."""
    with serving_elsewhere(
        answer(HELLO, length=len(HELLO), headers={"content-type": "application/json"})
    ) as server:
        done = run(FORK.format(child=child), f"{server.url}/v1")
    assert (done.stdout.split(), done.stderr) == (["Hello.", "child", "Hello."], "")
    assert len(server.requests) == (3 if "send" in child else 2)


def looking(look: Any, *answers: bytes) -> Agent[None]:
    return Agent(
        "openai",
        api_key="k",
        tools=[look],
        transport=Player([Exchange(body=body) for body in answers]),
    )


def test_a_synchronous_call_from_an_async_tool_of_the_same_agent_is_refused_at_once() -> None:
    errors: list[Exception] = []

    @tool
    async def look() -> str:
        """Looks."""
        try:
            return agent.send_sync("again").output
        except SettingsError as error:
            errors.append(error)
            raise

    agent = looking(look, CALL, HELLO)
    result = agent.send_sync("hi")
    assert result.output.strip() == "Hello."
    assert "await the asynchronous one" in str(errors)
    assert result.messages[2].tool_results[0].is_error
    agent.close_sync()


def test_a_synchronous_call_that_comes_back_by_way_of_another_agent_is_refused_at_once() -> None:
    """From a thread of the other one's, too."""

    @tool
    async def look() -> str:
        """Looks."""
        return second.send_sync("look").output

    def back() -> str:
        """Comes back."""
        with pytest.raises(SettingsError, match="would wait for itself"):
            first.send_sync("again")
        return "refused"

    second = looking(tool(back, name="look"), CALL, HELLO)
    first = looking(look, CALL, HELLO)
    assert first.send_sync("hi").output.strip() == "Hello."
    first.close_sync()
    second.close_sync()


def test_a_synchronous_call_from_a_tool_in_a_thread_works() -> None:
    def look() -> str:
        """Looks."""
        return agent.send_sync("again").output

    agent = looking(look, CALL, HELLO, HELLO)
    result = agent.send_sync("hi")
    assert result.messages[2].tool_results[0].result == "Hello."
    agent.close_sync()


def test_a_synchronous_call_inside_a_running_loop_works() -> None:
    async def main() -> str:
        return agent.send_sync("hi").output

    agent = Agent("openai", api_key="k", transport=Player([Exchange(body=HELLO)]))
    assert asyncio.run(main()) == "Hello."
    agent.close_sync()


def test_an_open_stream_at_the_end_of_the_interpreter_is_closed_in_silence() -> None:
    done = run("""
        from dragoman import Agent
        from dragoman.transport import Exchange, Player
        chunk = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}' + bytes([10, 10])
        agent = Agent("openai", api_key="k", transport=Player([Exchange(body=chunk * 9, chunks=len(chunk))]))
        stream = agent.send_stream_sync("hi")
        while not (piece := next(stream)).output:
            pass
        print(piece.output)
    """)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("Hel", "", 0)


def test_without_asyncio_the_error_says_so() -> None:
    """As under trio, where the same is done by hand: no loop of asyncio's is running."""
    for work in (AiohttpTransport().send(HttpRequest("http://h.test")), AiohttpTransport().close()):
        with pytest.raises(SettingsError, match="works on asyncio"):
            work.send(None)
        work.close()
    with pytest.raises(SettingsError, match="works on asyncio"):
        Agent("openai", api_key="k", base_url="http://h.test").send("Hi.").send(None)


def test_a_portal_that_was_closed_starts_again() -> None:
    async def work() -> int:
        return 1

    portal = Portal()
    for _ in range(2):
        assert not portal.started
        assert portal.call(work()) == 1
        assert portal.started
        portal.close()


async def _forever() -> None:
    await asyncio.Event().wait()


def test_a_portal_that_ends_waits_for_what_ends_cancels_what_does_not_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.portal._PATIENCE", 0.05)
    seen: list[str] = []
    kept: list[Any] = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            seen.append("generator closed")

    async def quick() -> None:
        await asyncio.sleep(0.01)
        seen.append("quick done")

    async def stuck() -> None:
        try:
            await _forever()
        finally:
            seen.append("stuck cancelled")

    async def begin() -> tuple[Any, threading.Thread, threading.Thread]:
        generator = numbers()
        kept.extend([asyncio.create_task(quick()), asyncio.create_task(stuck()), generator])
        assert await anext(generator) == 1
        worker = await asyncio.to_thread(threading.current_thread)
        assert asyncio.get_event_loop_policy().get_event_loop() is asyncio.get_running_loop()
        return asyncio.get_running_loop(), threading.current_thread(), worker

    portal = Portal()
    loop, thread, worker = portal.call(begin())
    assert (thread.name, thread.daemon) == ("dragoman-portal", True)
    portal.close()
    assert not thread.is_alive()
    assert not worker.is_alive()
    assert loop.is_closed()
    assert seen == ["quick done", "stuck cancelled", "generator closed"]
    portal.close()
    assert not portal.started


def test_an_iteration_that_is_left_early_closes_its_generator_and_one_that_outlives_its_portal_just_ends() -> (
    None
):
    seen: list[str] = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            for number in range(3):
                yield number
        finally:
            seen.append("closed")

    portal = Portal()
    assert list(portal.iterate(numbers())) == [0, 1, 2]
    assert seen == ["closed"]
    iteration = portal.iterate(numbers())
    assert next(iteration) == 0
    iteration.close()
    assert seen == ["closed", "closed"]
    iteration = portal.iterate(numbers())
    assert next(iteration) == 0
    portal.close()
    assert seen == ["closed", "closed", "closed"]
    iteration.close()
    assert not portal.started


def test_what_a_call_raises_comes_out_and_an_interrupt_cancels_it() -> None:
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored in a process of the background
    ended = threading.Event()

    async def fails() -> None:
        raise ZeroDivisionError("mine")

    async def waits() -> None:
        asyncio.get_running_loop().call_later(
            0.05, signal.pthread_kill, threading.main_thread().ident, signal.SIGINT
        )
        try:
            await _forever()
        finally:
            ended.set()

    portal = Portal()
    with pytest.raises(ZeroDivisionError, match="mine"):
        portal.call(fails())
    try:
        with pytest.raises(KeyboardInterrupt):
            portal.call(waits())
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.wait(5)
    portal.close()
