"""Connections: signs of life, clients that leave or read nothing, answers that break off. Nothing
is left behind."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.errors import OverloadedError, RateLimitError
from dragoman.event import Event, MessageStarted, OpenText, PartDelta, PartStarted, RunError
from dragoman.fold import fold
from dragoman.message import Message, Role
from dragoman.serve.http.connection import Connection
from dragoman.serve.http.limits import ServerLimits
from support.asgi import Exchange, exchange
from support.serving import ASKS, asking, served
from support.virtual import run
from support.work import calls

WIRES = sorted(ASKS)
ANSWER = Message.model("Hello there.")
BEGIN: list[Event] = [
    MessageStarted("1", Role.MODEL),
    PartStarted("1", 0, OpenText()),
    PartDelta("1", 0, "Hel"),
]
MORE = PartDelta("1", 0, "lo")
LIMITS = ServerLimits(ping_seconds=10, write_seconds=120, run_seconds=3600)


def streamed(app: Any, wire: str = "openai_chat", **behaviour: Any) -> Exchange:
    path, body = asking(wire, stream=True)
    return run(exchange(app, "POST", path, body, **behaviour))


def decoded(wire: str, seen: Exchange) -> list[Event]:
    decoder = wires.get(wire).decoder()
    return [*decoder.feed(seen.body), *decoder.close()]


def left(app: Any) -> int:
    return app.state.service.gate.open + len(app.state.service.gate._connections)


# signs of life


@pytest.mark.parametrize("wire", WIRES)
def test_every_silence_of_ten_seconds_gets_a_sign_that_is_no_part_of_the_answer(wire: str) -> None:
    app, _ = served(*BEGIN, 35, MORE, 3, MORE, 14, limits=LIMITS)
    quick, _ = served(*BEGIN, MORE, MORE, limits=LIMITS)
    seen, plain = streamed(app, wire), streamed(quick, wire)
    assert (seen.headers["cache-control"], seen.headers["x-accel-buffering"]) == ("no-cache", "no")
    ping = wires.get(wire).ping
    signs = [
        time
        for time, message in zip(seen.times, seen.sent, strict=True)
        if message.get("body") == ping != b""
    ]
    assert signs == ([10, 20, 30, 48] if ping else [])
    assert [message.text for message in fold(decoded(wire, seen))] == ["Hellolo"]
    assert not ping or seen.body.count(ping) == plain.body.count(ping) + 4


def test_the_silence_is_counted_from_the_last_write() -> None:
    app, _ = served(*BEGIN, 4, MORE, 4, MORE, 4, MORE, 12, MORE, limits=LIMITS)
    seen = streamed(app)
    assert [
        time
        for time, each in zip(seen.times, seen.sent, strict=True)
        if each.get("body") == b": ping\n\n"
    ] == [22]


def test_a_stream_begins_where_nothing_comes_for_long_and_an_error_is_told_in_it() -> None:
    app, _ = served(25, RunError(OverloadedError("full")), limits=LIMITS)
    seen = streamed(app)
    assert (seen.status, seen.times[0], seen.is_complete) == (200, 10, True)
    assert b'"error"' in seen.body


def test_no_sign_is_given_to_whole_answers_and_after_the_end() -> None:
    app, _ = served(35, ANSWER, limits=LIMITS)
    path, body = asking("openai_chat", stream=False)
    seen = run(exchange(app, "POST", path, body))
    assert (seen.status, len(seen.sent), seen.times) == (200, 2, [35, 35])


async def _ended_early(seen: Exchange) -> None:
    async with Connection(seen.receive, seen.send, LIMITS) as connection:
        connection.stream({}, b": ping\n\n", lambda _: b"")
        await connection.write(b"x")
        await connection.end()
        await asyncio.sleep(60)  # what is done after the end, such as keeping the answer


def test_a_stream_that_ended_is_left_alone() -> None:
    seen = Exchange()
    run(_ended_early(seen))
    assert seen.is_complete


async def _just_before(seen: Exchange) -> None:
    """A write in the very moment in which a sign is due."""
    async with Connection(seen.receive, seen.send, LIMITS) as connection:
        connection.stream({}, b": ping\n\n", lambda _: b"")
        for _ in range(5):
            await asyncio.sleep(10)
            await connection.write(b"x")
        await connection.end()


def test_a_sign_and_a_write_at_the_same_time_stand_one_after_the_other() -> None:
    seen = Exchange()
    run(_just_before(seen))
    assert (seen.is_complete, seen.body.replace(b": ping\n\n", b"")) == (True, b"xxxxx")


class Alone(Exchange):
    """Takes a while for each message, and no two at a time."""

    busy = False

    async def send(self, message: Any) -> None:
        assert not self.busy
        self.busy = True
        await asyncio.sleep(3)
        self.busy = False
        await super().send(message)


async def _while_a_sign_is_written(seen: Exchange) -> None:
    async with Connection(seen.receive, seen.send, LIMITS) as connection:
        connection.stream({}, b": ping\n\n", lambda _: b"")
        for pause in (11, 11, 9, 14, 12):
            await asyncio.sleep(pause)
            await connection.write(b"x")
        await asyncio.sleep(11)
        await connection.end(b"y")


def test_a_write_waits_for_a_sign_that_is_being_written() -> None:
    seen = Alone()
    run(_while_a_sign_is_written(seen))
    assert (seen.is_complete, seen.body.replace(b": ping\n\n", b"")) == (True, b"xxxxxy")
    assert seen.body.count(b"ping") == 5


async def _interrupted_before() -> Exception | None:
    seen = Exchange()
    async with Connection(seen.receive, seen.send, LIMITS) as connection:
        connection.interrupt(OverloadedError("the server is about to end"))
        return await connection.run(pytest.fail)  # type: ignore[arg-type]


def test_what_is_interrupted_before_it_begins_does_not_begin() -> None:
    assert isinstance(run(_interrupted_before()), OverloadedError)


async def _fails_after_its_end(seen: Exchange) -> None:
    async with Connection(seen.receive, seen.send, LIMITS) as connection:
        connection.stream({}, b"", lambda _: b"error")
        await connection.end(b"x")
        await connection.end_with(OverloadedError("too late"))


def test_what_fails_after_the_end_is_not_told() -> None:
    seen = Exchange()
    run(_fails_after_its_end(seen))
    assert seen.body == b"x"


# clients that leave, or read nothing


@pytest.mark.parametrize("wire", ["openai_chat", "ollama"])
@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("wait", [0, 1, 100])
def test_a_client_that_leaves_ends_its_call_wherever_it_is(
    wire: str, after: int, wait: float
) -> None:
    app, backend = served(
        wait, *BEGIN, wait, MORE, wait, MORE, wait, MORE, 1e6, limits=ServerLimits(run_seconds=None)
    )
    seen = streamed(app, wire, leaves_after=after)
    assert not seen.is_complete
    assert (backend.running, backend.finished, left(app)) == (0, 0, 0)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_before_its_answer_is_begun(stream: bool) -> None:
    app, backend = served(1e6, ANSWER, limits=LIMITS)
    path, body = asking("openai_chat", stream=stream)
    seen = run(exchange(app, "POST", path, body, leaves_after=0))
    assert (seen.sent, backend.running, left(app)) == ([], 0, 0)


@pytest.mark.parametrize("reads", range(6))
@pytest.mark.parametrize("wait", [0, 15])  # with 15 it is a sign of life that is not read
def test_a_client_that_reads_nothing_is_cut(
    reads: int, wait: float, caplog: pytest.LogCaptureFixture
) -> None:
    app, backend = served(
        *BEGIN, wait, *[step for _ in range(9) for step in (MORE, wait)], 3000, limits=LIMITS
    )
    with caplog.at_level(logging.WARNING, "dragoman"):
        seen = streamed(app, reads=reads)
    assert len(seen.sent) == reads
    assert (backend.running, backend.finished, left(app)) == (0, 0, 0)
    assert "120 seconds" in caplog.text


async def _never_reads(seen: Exchange, limits: ServerLimits) -> float:
    loop = asyncio.get_running_loop()
    async with Connection(seen.receive, seen.send, limits) as connection:
        connection.stream({}, b": ping\n\n", lambda _: b"")
        await connection.write(b"x")
        await asyncio.sleep(1000)
    return loop.time()


def test_a_sign_of_life_that_is_not_read_is_no_reason_to_wait_longer() -> None:
    for seconds in (3, 25, 120):
        limits = ServerLimits(ping_seconds=10, write_seconds=seconds)
        assert run(_never_reads(Exchange(reads=2), limits)) == 10 + max(
            seconds, 10
        )  # seen when a sign would be due


def test_a_client_that_reads_slowly_is_not_cut() -> None:
    class Slow(Exchange):
        async def send(self, message: Any) -> None:
            await asyncio.sleep(119)
            await super().send(message)

    app, backend = served(*BEGIN, *[MORE] * 20, limits=LIMITS)
    path, body = asking("openai_chat", stream=True)
    slow = Slow([msgspec.json.encode(body)])

    async def through() -> None:
        from support.asgi import scope_of

        await app(scope_of("POST", path), slow.receive, slow.send)

    run(through())
    assert (slow.is_complete, backend.finished) == (True, 1)


@pytest.mark.parametrize("fails_after", range(6))
def test_a_server_that_raises_for_a_client_that_is_gone(
    fails_after: int, caplog: pytest.LogCaptureFixture
) -> None:
    app, backend = served(*BEGIN, MORE, MORE, MORE, 15, MORE, limits=LIMITS)
    seen = streamed(app, fails_after=fails_after)
    assert (len(seen.sent), backend.running, backend.finished, left(app)) == (fails_after, 0, 0, 0)
    assert not caplog.records


def test_a_refusal_to_a_client_that_is_gone_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    app, _ = served(ANSWER, limits=LIMITS)
    run(exchange(app, "POST", "/v1/chat/completions", b"{", fails_after=0))
    app, _ = served(ANSWER, limits=LIMITS, auth="sk-0123456789")
    run(exchange(app, "POST", "/v1/chat/completions", b"{", fails_after=0))
    assert not caplog.records


def test_half_a_body_ends_the_connection() -> None:
    app, _ = served(ANSWER, limits=LIMITS)
    seen = run(exchange(app, "POST", "/v1/chat/completions", b'{"mod', unfinished=True))
    assert (seen.status, seen.times[0], seen.headers["connection"]) == (400, 60, "close")
    assert left(app) == 0


# what breaks off


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "failure", [ValueError("secret-0815"), OverloadedError("full", retry_after=3.0)]
)
def test_what_fails_after_the_first_byte_is_told_as_the_wire_does(
    wire: str, failure: Exception
) -> None:
    app, _ = served(*BEGIN, MORE, failure, limits=LIMITS)
    seen = streamed(app, wire)
    assert (seen.status, seen.is_complete) == (200, True)
    assert [type(event) for event in decoded(wire, seen)].count(RunError) == 1
    assert b"secret-0815" not in seen.body
    assert b"full" in seen.body or isinstance(failure, ValueError)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("raised", [False, True])
def test_what_fails_before_the_first_byte_has_its_status(wire: str, raised: bool) -> None:
    error = RateLimitError("slower", provider="p", retry_after=3.0)
    app, _ = served(5, error if raised else RunError(error), limits=LIMITS)
    for stream in (False, True):
        path, body = asking(wire, stream=stream)
        seen = run(exchange(app, "POST", path, body))
        assert (seen.status, seen.headers["retry-after"], seen.is_complete) == (429, "3", True)
        assert seen.headers["content-type"].startswith("application/json")
        assert isinstance(wires.get(wire).load_error(429, seen.headers, seen.body), RateLimitError)


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_that_takes_too_long_is_ended(wire: str) -> None:
    app, backend = served(*BEGIN, *[5, MORE] * 1000, limits=LIMITS)
    seen = streamed(app, wire)
    assert (seen.status, seen.is_complete, seen.times[-1], backend.running) == (200, True, 3600, 0)
    assert b"3600 seconds" in seen.body
    app, backend = served(4000, ANSWER, limits=LIMITS)
    path, body = asking(wire, stream=False)
    seen = run(exchange(app, "POST", path, body))
    assert (seen.status // 100, seen.times[0], backend.running, left(app)) == (5, 3600, 0, 0)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [False, True])
def test_what_runs_can_be_ended_with_words_for_its_client(wire: str, stream: bool) -> None:
    app, backend = served(*(BEGIN if stream else []), 1e6, limits=LIMITS)
    path, body = asking(wire, stream=stream)

    async def through() -> Exchange:
        task = asyncio.create_task(exchange(app, "POST", path, body))
        await asyncio.sleep(60)
        app.state.service.gate.interrupt(OverloadedError("the server is about to end"))
        return await task

    seen = run(through())
    assert (seen.status // 100, seen.is_complete) == (2 if stream else 5, True)
    assert b"about to end" in seen.body
    assert (backend.running, left(app)) == (0, 0)


# how many


def test_more_calls_than_may_be_are_refused_before_their_bodies_are_read() -> None:
    limits = ServerLimits(open_calls=3, calls_per_caller=2)
    app, _ = served(100, ANSWER, limits=limits, auth={"a": "key-a-0123", "b": "key-b-0123"})
    path, body = asking("openai_chat", stream=False)

    async def through() -> list[Exchange]:
        who = ["a", "a", "a", "b", "b"]
        return await asyncio.gather(
            *[
                exchange(
                    app, "POST", path, body, headers={"authorization": f"Bearer key-{name}-0123"}
                )
                for name in who
            ]
        )

    seen = run(through())
    assert [each.status for each in seen] == [200, 200, 429, 200, 503]
    assert [each.headers.get("retry-after") for each in seen] == [None, None, "1", None, "1"]
    assert left(app) == 0
    assert not app.state.service.gate._by_caller


def _pieces(count: int) -> Exchange:
    return streamed(served(*BEGIN, *[MORE] * count)[0])


def test_a_piece_of_a_stream_costs_no_task_and_no_timer() -> None:
    def through(pieces: int) -> tuple[int, int]:
        tasks = timers = 0

        class Loop(asyncio.SelectorEventLoop):
            def call_at(self, *arguments: Any, **how: Any) -> Any:
                nonlocal timers
                timers += 1
                return super().call_at(*arguments, **how)

            def create_task(self, *arguments: Any, **how: Any) -> Any:
                nonlocal tasks
                tasks += 1
                return super().create_task(*arguments, **how)

        app, _ = served(*BEGIN, *[MORE] * pieces)
        path, body = asking("openai_chat", stream=True)
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(exchange(app, "POST", path, body))
        return tasks, timers

    assert through(1) == through(300)
    few, many = (calls(partial(_pieces, count)) for count in (10, 110))
    assert (many - few) / 100 < 45
