"""`Retry`: rules D-81 to D-86 as decision 9 corrects them; the cases of 7.4 item 1 of the seed
behaviours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from email.utils import formatdate, parsedate_to_datetime
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import (
    InvalidRequestError,
    ProviderConnectionError,
    ProviderTimeoutError,
    StreamCutError,
)
from dragoman.request import HttpRequest
from dragoman.retry_after import parse_retry_after
from dragoman.transport import AiohttpTransport, Exchange, Player, Response, Retry
from dragoman.transport.base import ConnectionLostError
from support.socket_server import Do, answer, serving

pytestmark = pytest.mark.filterwarnings("error")

REQUEST = HttpRequest(
    "https://provider.test/v1/chat", {"authorization": "Bearer k"}, {"model": "m"}
)
DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
THEN = parsedate_to_datetime(DATE).timestamp()
OK = Exchange(body=b"hello")


class Tried:
    """A request through `Retry` to recorded answers: what came, what was waited, what was sent."""

    def __init__(
        self,
        answers: Iterable[Exchange | Exception],
        *,
        request: HttpRequest = REQUEST,
        **settings: Any,
    ) -> None:
        self.waits: list[float] = []
        self.player = Player(answers)
        self.response: Response | None = None
        self.error: Exception | None = None
        self.body = b""

        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        async def main() -> None:
            retry = Retry(self.player, **{"jitter": False, "sleep": sleep, **settings})
            try:
                self.response = await retry.send(request)
                while data := await self.response.read():
                    self.body += data
            except Exception as error:
                self.error = error

        anyio.run(main)

    @property
    def status(self) -> int | None:
        return self.response.status if self.response else None


def limited(**headers: str) -> Exchange:
    return Exchange(
        status=429, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_waits_double_until_it_works_and_each_request_is_the_same():
    """D-81, D-83, D-86; 7.4-1: 429, 429, 200."""
    tried = Tried([limited(), limited(), OK])
    assert (tried.status, tried.body, tried.waits) == (200, b"hello", [1.0, 2.0])
    assert tried.player.requests == [REQUEST] * 3


def test_delays_are_capped():
    """D-83: min(base·2ⁿ, cap)."""
    assert Tried([limited()] * 6 + [OK], attempts=7, base=3.0, cap=20.0).waits == [
        3.0,
        6.0,
        12.0,
        20.0,
        20.0,
        20.0,
    ]


def test_cap_holds_before_jitter_and_for_errors():
    """D-83: the random part is one of the capped delay."""
    down: list[Exchange | Exception] = [ProviderConnectionError("down")] * 6
    tried = Tried([*down, OK], attempts=7, base=3.0, cap=20.0, jitter=True, random=lambda: 0.5)
    assert tried.waits == [1.5, 3.0, 6.0, 10.0, 10.0, 10.0]


@given(st.floats(0, 1))
def test_jitter_is_full(part: float):
    """Decision 9: a random part of the whole delay."""
    assert Tried([limited()] * 2 + [OK], jitter=True, random=lambda: part).waits == [part, 2 * part]


def test_default_is_four_attempts_with_jitter():
    """D-81."""
    tried = Tried([limited()] * 9, jitter=True)
    assert len(tried.player.requests) == 4
    assert all(0 <= wait <= longest for wait, longest in zip(tried.waits, (1, 2, 4), strict=True))


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "999"}, 60.0),
        ({"retry-after": "inf"}, 1.0),
        ({"retry-after": DATE}, 7.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 1.0),
        ({"retry-after": "-3"}, 1.0),
        ({"retry-after": "nan"}, 1.0),
        ({"retry-after": "Wed, …"}, 1.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 1.0),
        ({"retry-after": ""}, 1.0),
        ({}, 1.0),
    ],
)
def test_provider_says_how_long(headers: dict[str, str], wait: float):
    """D-84, decision 9: seconds, a date or milliseconds, capped, without jitter; rubbish, the past
    and 0 are not."""
    answers = [Exchange(status=429, headers=headers), OK]
    assert Tried(answers, now=lambda: THEN - 7).waits == [pytest.approx(wait)]
    if wait != 1.0:
        assert Tried(answers, now=lambda: THEN - 7, jitter=True, random=lambda: 0.5).waits == [
            pytest.approx(wait)
        ]


@given(st.text(), st.text(), st.floats(0, 4e9))
def test_any_header_gives_a_positive_wait_or_none(seconds: str, milliseconds: str, now: float):
    assert parse_retry_after({"retry-after": "0", "retry-after-ms": "-1"}, now) is None
    wait = parse_retry_after({"retry-after": seconds, "retry-after-ms": milliseconds}, now)
    assert wait is None or wait > 0


@given(st.integers(0, 2**32))
def test_any_date_is_read(seconds: int):
    assert parse_retry_after({"retry-after": formatdate(seconds, usegmt=True)}, seconds - 5) == 5


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_statuses_that_may_pass(status: int):
    """Decision 9."""
    assert Tried([Exchange(status=status), OK]).status == 200


@pytest.mark.parametrize("status", [201, 304, 400, 401, 403, 404, 413, 422, 501])
def test_statuses_that_stay(status: int):
    tried = Tried([Exchange(status=status, body=b"no"), OK])
    assert (tried.status, tried.body, len(tried.player.requests)) == (status, b"no", 1)


def test_error_whose_body_breaks_stays_an_error():
    """What a failed request costs is known; only a successful answer is worth asking for again."""
    tried = Tried([Exchange(status=400, body=b"no", cut_after=0), OK])
    assert (tried.status, len(tried.player.requests)) == (400, 1)
    assert isinstance(tried.error, StreamCutError)


def test_provider_says_whether():
    """`x-should-retry` overrules the status of an error, and of nothing else."""
    no, yes = {"x-should-retry": "false"}, {"x-should-retry": "true"}
    assert Tried([Exchange(status=429, headers=no), OK]).status == 429
    assert Tried([Exchange(status=400, headers=yes), OK]).status == 200
    assert Tried([Exchange(status=200, headers=yes), OK]).waits == []


@pytest.mark.parametrize("error", [ProviderConnectionError("down"), ProviderTimeoutError("late")])
def test_errors_of_the_connection(error: Exception):
    """D-82, D-85; 7.4-1: a connection error four times is raised after four attempts, as it is."""
    assert Tried([error, OK]).body == b"hello"
    tried = Tried([error] * 9)
    assert tried.error is error
    assert (len(tried.player.requests), tried.waits) == (4, [1.0, 2.0, 4.0])


def test_a_connection_that_was_closed_while_idle_is_replaced_at_once_the_first_time():
    lost = ConnectionLostError("closed")
    assert Tried([lost, OK]).waits == []
    assert Tried([lost, lost, OK]).waits == [2.0]
    tried = Tried([lost] * 9)
    assert (len(tried.player.requests), tried.waits, tried.error) == (4, [2.0, 4.0], lost)
    assert Tried([limited(), lost, OK]).waits == [1.0]


@pytest.mark.parametrize(("retries", "attempts"), [(None, 4), (9, 4), (3, 4), (1, 2), (0, 1)])
def test_a_request_may_be_tried_less_often_and_never_more(retries: int | None, attempts: int):
    request = msgspec.structs.replace(REQUEST, retries=retries)
    tried = Tried([limited()] * 9, request=request)
    assert (len(tried.player.requests), tried.status) == (attempts, 429)
    lost = ConnectionLostError("closed")
    assert Tried([lost, OK], request=request).waits == []
    assert Tried([lost, OK], request=request).body == b"hello"
    assert Tried([lost, lost, OK], request=request).body == (b"hello" if attempts > 2 else b"")


def test_other_errors_pass():
    error = InvalidRequestError("no")
    tried = Tried([error, OK])
    assert (tried.error, tried.waits) == (error, [])


def test_exhausted_returns_the_last_answer_as_it_is():
    """D-85; 7.4-1: 429 four times."""
    tried = Tried(
        [limited()] * 3 + [Exchange(status=429, headers={"x-request-id": "4"}, body=b"full")]
    )
    assert tried.response is not None
    assert (tried.status, tried.response.headers["x-request-id"], tried.body) == (429, "4", b"full")


@pytest.mark.parametrize("attempts", [0, 1])
def test_one_attempt_is_no_retry(attempts: int):
    tried = Tried([limited(), OK], attempts=attempts)
    assert (tried.status, tried.waits) == (429, [])


def test_connection_that_breaks_before_the_first_byte_of_a_body():
    """Decision 9: nothing has been delivered yet."""
    tried = Tried([Exchange(body=b"lost", cut_after=0), OK])
    assert (tried.body, tried.waits, tried.error) == (b"hello", [1.0], None)


@given(st.binary(min_size=1, max_size=40), st.integers(1, 40), st.integers(1, 9))
def test_never_after_the_first_byte(body: bytes, cut: int, size: int):
    """Decision 9: what was delivered is never delivered twice; the error passes through."""
    tried = Tried([Exchange(body=body, cut_after=cut, chunks=size), OK])
    assert tried.body == body[:cut]
    assert isinstance(tried.error, StreamCutError)
    assert len(tried.player.requests) == 1


@given(st.binary(max_size=40), st.integers(1, 9))
def test_body_passes_unchanged(body: bytes, size: int):
    assert Tried([Exchange(body=body, chunks=size)]).body == body


def _on_the_network(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        anyio.run(test)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def no_wait(_: float) -> None:
    await anyio.lowlevel.checkpoint()


@_on_the_network
async def test_network_body_is_drained_and_the_connection_used_again():
    """D-86."""
    async with serving(
        answer(b"slow", 0.02, b" down", status=429), [Do.CLOSE], answer(b"hello")
    ) as server:
        retry = Retry(AiohttpTransport(), sleep=no_wait)
        response = await retry.send(HttpRequest(server.url, body={"a": 1}))
        assert await response.read() == b"hello"
        assert await response.read() == b""
        await retry.close()
    assert [request.body for request in server.requests] == [b'{"a":1}'] * 3
    assert server.connections == 2


@_on_the_network
@pytest.mark.slow
async def test_network_body_that_does_not_end_is_left():
    async with serving(answer(b"slow", Do.HANG, status=503), answer(b"hello")) as server:
        retry = Retry(AiohttpTransport(), sleep=no_wait)
        with anyio.fail_after(20):
            response = await retry.send(HttpRequest(server.url, body={}))
            assert await response.read() == b"hello"
            await server.left.wait()
        await response.close()
        await retry.close()


@_on_the_network
async def test_network_cancelled_while_waiting_for_the_first_byte():
    async with serving(answer(Do.HANG)) as server:
        retry = Retry(AiohttpTransport())
        async with anyio.create_task_group() as group:
            group.start_soon(retry.send, HttpRequest(server.url, body={}))
            await server.came.wait()
            await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        with anyio.fail_after(10):
            await server.left.wait()
        assert len(server.requests) == 1
        await retry.close()
