"""A circuit breaker: what opens it, what it lets through, and that it needs no task and no clock of
its own."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dragoman import MessageStarted, ModelRequest, Role, RunError
from dragoman.errors import (
    CircuitOpenError,
    DragomanError,
    InvalidRequestError,
    OverloadedError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    SettingsError,
    StreamCutError,
)
from dragoman.event import Event
from dragoman.message import Origin
from dragoman.model import Breaker
from dragoman.model.breaker import endpoint_failed
from support.net import CUT, Net, agent, target

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest("p:m")
BROKEN = OverloadedError("no capacity")


class Bench:
    """A breaker, the time, and requests through it."""

    def __init__(self, **how: Any) -> None:
        self.now = 0.0
        self.sent: list[str] = []
        self.breaker = Breaker(
            **{"failures": 2, "window": 10.0, "open_seconds": 5.0, "clock": lambda: self.now, **how}
        )

    async def ask(self, error: DragomanError | None = None, model: str = "p:m") -> list[Event]:
        return [
            event
            for batch in [batch async for batch in self.begin(error, model)]
            for event in batch
        ]

    def begin(
        self, error: DragomanError | None = None, model: str = "p:m"
    ) -> AsyncGenerator[list[Event], None]:
        async def following(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
            self.sent.append(request.model)
            yield [MessageStarted("m", Role.MODEL)]
            if error is not None:
                yield [RunError(error)]

        return self.breaker.batches(ModelRequest(model), following, target)

    async def is_open(self, model: str = "p:m") -> bool:
        """Whether a sound request is not let through."""
        before = len(self.sent)
        await self.ask(None, model)
        return len(self.sent) == before


async def test_failures_within_the_window_open_it_and_a_trial_closes_it() -> None:
    bench = Bench()
    await bench.ask(BROKEN)
    bench.now = 10.0  # the first is out of the window
    await bench.ask(BROKEN)
    assert not await bench.is_open()
    bench.now = 19.0
    await bench.ask(BROKEN)
    bench.now = 20.0
    [refused] = await bench.ask()
    assert isinstance(refused, RunError)
    assert isinstance(refused.error, CircuitOpenError)
    assert (refused.error.provider, refused.error.retry_after) == ("p", 4.0)
    assert "Try again in 4.0 s" in refused.error.message
    assert len(bench.sent) == 4
    bench.now = 24.0
    await bench.ask()
    await bench.ask(BROKEN)
    await bench.ask()
    assert len(bench.sent) == 7


async def test_a_trial_that_fails_opens_it_again() -> None:
    bench = Bench(failures=1)
    await bench.ask(BROKEN)
    bench.now = 5.0
    await bench.ask(BROKEN)
    bench.now = 9.9
    await bench.ask()
    assert len(bench.sent) == 2
    bench.now = 10.0
    await bench.ask()
    assert len(bench.sent) == 3


async def test_one_trial_at_a_time_and_one_that_is_left_decides_nothing() -> None:
    bench = Bench(failures=1)
    await bench.ask(BROKEN)
    bench.now = 5.0
    trial = bench.begin()
    await anext(trial)
    [refused] = await bench.ask()
    assert isinstance(refused, RunError)
    await trial.aclose()  # it had begun to answer: the endpoint works
    await bench.ask()
    assert len(bench.sent) == 3

    async def never(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        raise KeyboardInterrupt
        yield []

    await bench.ask(BROKEN)
    bench.now = 10.0
    with pytest.raises(KeyboardInterrupt):
        await anext(bench.breaker.batches(REQUEST, never, target))
    await bench.ask()  # the next trial
    assert len(bench.sent) == 5


async def test_a_trial_whose_end_is_never_told_holds_nobody_up() -> None:
    bench = Bench(failures=1)
    await bench.ask(BROKEN)
    bench.now = 5.0
    lost = bench.begin(BROKEN)
    await anext(lost)
    bench.now = 10.0
    await bench.ask()
    assert len(bench.sent) == 3
    async for _ in lost:  # what it says now comes too late
        pass
    await bench.ask()
    assert len(bench.sent) == 4


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (OverloadedError("x"), True),
        (ProviderError("x"), True),
        (ProviderTimeoutError("x"), True),
        (ProviderConnectionError("x"), True),
        (StreamCutError("x"), True),
        (RateLimitError("x"), False),
        (InvalidRequestError("x"), False),
        (CircuitOpenError("x"), False),
    ],
)
async def test_what_counts(error: DragomanError, counts: bool) -> None:
    assert endpoint_failed(error) is counts
    bench = Bench(failures=1)
    await bench.ask(error)
    assert await bench.is_open() is counts
    own = Bench(failures=1, on=lambda error: isinstance(error, RateLimitError))
    await own.ask(error)
    assert await own.is_open() is isinstance(error, RateLimitError)


async def test_each_endpoint_has_its_own_or_each_model() -> None:
    for per, others in (("endpoint", [False, True]), ("model", [False, False])):
        bench = Bench(failures=1, per=per)
        await bench.ask(BROKEN)
        assert [await bench.is_open(model) for model in ("q:m", "p:n")] == others
        assert await bench.is_open()
    bench = Bench(failures=1)
    await bench.ask(BROKEN, "")
    await bench.ask(BROKEN, "")
    assert bench.sent == ["", ""]


async def test_it_serves_agents_and_the_sum_counts() -> None:
    breaker = Breaker(failures=2)
    nets = [Net(openai_chat=CUT) for _ in range(3)]
    for net in nets:
        async with agent(net, "openai", middleware=[breaker]) as one:
            with pytest.raises((StreamCutError, CircuitOpenError)) as failed:
                await one.send("Hi")
    assert [net.asked for net in nets] == [["openai_chat"], ["openai_chat"], []]
    assert isinstance(failed.value, CircuitOpenError)


def test_wrong_settings() -> None:
    for wrong in ({"failures": 0}, {"window": 0}, {"open_seconds": -1.0}, {"per": "key"}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            Breaker(**wrong)
    with pytest.raises(TypeError, match="failures"):
        Breaker(failures="3")  # pyright: ignore


def test_threads_agree() -> None:
    import asyncio

    bench = Bench(failures=8, clock=lambda: 0.0)
    gate = threading.Barrier(8)

    def work() -> None:
        async def main() -> None:
            gate.wait()
            await bench.ask(BROKEN)

        asyncio.run(main())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asyncio.run(bench.is_open())


class Circuits(RuleBasedStateMachine):
    """Any order of calls, answers and time, against the three states as the page has them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = Breaker(failures=3, window=10.0, open_seconds=5.0, clock=lambda: self.now)
        self.key = Origin("p", "e")
        self.running: list[Any] = []
        self.failed: list[float] = []
        self.opened_at: float | None = None
        self.trial: Any = None
        self.trial_at = 0.0

    def lets(self) -> bool:
        if self.opened_at is None:
            return True
        if self.trial is not None:
            return self.now >= self.trial_at + 5.0
        return self.now >= self.opened_at + 5.0

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 5.0]))
    def passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def begins(self) -> None:
        expected = self.lets()
        began = self.breaker._admit(self.key)
        assert (not isinstance(began, float)) is expected
        if isinstance(began, float):
            assert 0 < began <= 5.0
            return
        self.running.append(began)
        if self.opened_at is not None:
            self.trial, self.trial_at = began, self.now

    @precondition(lambda self: self.running)
    @rule(works=st.sampled_from([True, False, None]), which=st.integers(0, 9))
    def ends(self, works: bool | None, which: int) -> None:
        attempt = self.running.pop(which % len(self.running))
        self.breaker._end(self.key, attempt, works)
        if attempt is self.trial:
            self.trial = None
            if works:
                self.opened_at = None
            elif works is False:
                self.opened_at = self.now
        elif attempt.is_trial:
            pass  # another one was let through in its place
        elif works is False and self.opened_at is None:
            self.failed = [at for at in [*self.failed, self.now] if at > self.now - 10.0]
            if len(self.failed) >= 3:
                self.failed, self.opened_at = [], self.now

    @invariant()
    def one_trial_at_most(self) -> None:
        circuit = self.breaker._circuits.get(self.key)
        assert circuit is None or (
            circuit.trial is self.trial and circuit.opened_at == self.opened_at
        )


TestCircuits: Callable[..., Any] = Circuits.TestCase
TestCircuits.settings = settings(max_examples=60, stateful_step_count=40)
