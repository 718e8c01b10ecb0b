"""A fallback by itself: which errors lead to which model, what is sent, what is told."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Agent,
    FinishReason,
    Message,
    MessageDropped,
    MessageStarted,
    ModelRequest,
    Origin,
    PartDelta,
    RunError,
)
from dragoman.errors import (
    AuthenticationError,
    CircuitOpenError,
    ContentRefusedError,
    ContextLengthError,
    DecodeError,
    DragomanError,
    HistoryError,
    InvalidRequestError,
    LimitReachedError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    SettingsError,
    StreamCutError,
    TypedOutputError,
)
from dragoman.event import Event
from dragoman.fold import fold, unfold
from dragoman.model import Breaker, fallback
from dragoman.model.fallbacks import Fallback, model_string, provider_failed
from dragoman.transport import Retry
from support.model import PROVIDER, says
from support.net import CUT, KEYS, Net, agent

pytestmark = pytest.mark.anyio

ASK = (Message.user("Hi"),)
Answer = Message | DragomanError | list[list[Event]]


def target(request: ModelRequest) -> Origin | None:
    provider, _, model = request.model.partition(":")
    return Origin(provider, None, model or "default") if provider != "nobody" else None


class Models:
    """Models by their strings, and what was asked of them."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.requests: list[ModelRequest] = []
        self.closed = 0

    async def following(self, request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        self.requests.append(request)
        answer = self.answers[request.model.partition(":")[0]]
        try:
            if isinstance(answer, DragomanError):
                yield [RunError(answer)]
            elif isinstance(answer, Message):
                yield [*unfold([answer.replace(id=f"m{len(self.requests)}")])]
            else:
                for batch in answer:
                    yield batch
        finally:
            self.closed += 1

    async def batches(self, layer: Fallback, model: str = "a", **fields: Any) -> list[list[Event]]:
        request = ModelRequest(model, ASK).replace(**fields)
        return [batch async for batch in layer.batches(request, self.following, target)]

    async def events(self, layer: Fallback, model: str = "a", **fields: Any) -> list[Event]:
        return [event for batch in await self.batches(layer, model, **fields) for event in batch]

    @property
    def asked(self) -> list[str]:
        return [request.model for request in self.requests]


BUSY = OverloadedError("no capacity", provider="a")
PASSING = [
    BUSY,
    RateLimitError("x"),
    ProviderTimeoutError("x"),
    ProviderConnectionError("x"),
    StreamCutError("x"),
    ProviderError("x"),
    AuthenticationError("x"),
    PermissionDeniedError("x"),
    ModelNotFoundError("x"),
    DecodeError("x"),
    CircuitOpenError("x"),
]
LASTING = [
    InvalidRequestError("x"),
    ContextLengthError("x"),
    ContentRefusedError("x"),
    SettingsError("x"),
    HistoryError("x"),
    LimitReachedError("x"),
    TypedOutputError("x"),
]


@pytest.mark.parametrize("error", [*PASSING, *LASTING], ids=lambda error: type(error).__name__)
async def test_what_leads_to_the_next_model(error: DragomanError) -> None:
    models = Models(a=error, b=says("Hello."))
    events = await models.events(fallback("b"))
    passes = error in PASSING
    assert provider_failed(error) is passes
    assert models.asked == (["a", "b"] if passes else ["a"])
    if passes:
        assert [message.text for message in fold(events)] == ["Hello."]
    else:
        assert events == [RunError(error)]
    assert models.closed == len(models.asked)


@pytest.mark.parametrize(
    ("on", "error", "asked"),
    [
        (ContextLengthError, ContextLengthError("x"), ["a", "b"]),
        (ContextLengthError, BUSY, ["a"]),
        (InvalidRequestError, ContextLengthError("x"), ["a", "b"]),
        ([provider_failed, ContextLengthError], BUSY, ["a", "b"]),
        ((provider_failed, ContextLengthError), ContextLengthError("x"), ["a", "b"]),
        ((provider_failed, ContextLengthError), InvalidRequestError("x"), ["a"]),
        (lambda error: error.status == 418, InvalidRequestError("x", status=418), ["a", "b"]),
        (lambda error: error.status == 418, BUSY, ["a"]),
        (RateLimitError, CircuitOpenError("x"), ["a", "b"]),
    ],
)
async def test_which_errors_is_the_users_word(
    on: Any, error: DragomanError, asked: list[str]
) -> None:
    models = Models(a=error, b=says("Hello."))
    await models.events(fallback("b", on=on))
    assert models.asked == asked


async def test_what_was_begun_is_taken_back() -> None:
    begun = unfold([says("Once upon").replace(id="m1")])
    second = MessageStarted("m2", begun[0].role, 1)  # type: ignore[union-attr]
    models = Models(
        a=[[begun[0], begun[1], second], [begun[2]], [*begun[3:], RunError(BUSY)]], b=says("Hello.")
    )
    batches = await models.batches(fallback("b"))
    assert [len(batch) for batch in batches] == [3, 1, 2, 2, 5]
    dropped = [event.message_id for event in batches[3] if isinstance(event, MessageDropped)]
    assert dropped == ["m1", "m2"]
    assert [message.text for message in fold([event for batch in batches for event in batch])] == [
        "Hello."
    ]


async def test_what_was_taken_back_already_is_not_taken_back_again() -> None:
    net = Net(openai_chat=CUT, anthropic=CUT, google=says("Hello."))
    async with agent(net, ["openai", "google"], middleware=[fallback("anthropic")]) as one:
        events = [event async for event in one.send_events("Hi")]
    assert net.asked == ["openai_chat", "anthropic", "google"]
    dropped = [event.message_id for event in events if isinstance(event, MessageDropped)]
    assert len(dropped) == len(set(dropped)) == 2


PLANS = st.lists(
    st.sampled_from(["refuses", "cut 1", "cut 2", "cut 3", "cut 4", "answers", "lasting"]),
    min_size=1,
    max_size=4,
)


@given(plans=PLANS)
def test_what_is_left_is_the_first_answer_or_an_error_that_tells_of_all(plans: list[str]) -> None:
    answers: dict[str, Answer] = {}
    for name, plan in zip("abcd", plans, strict=False):
        events = unfold([says(f"I am {name}.").replace(id=name)])
        if plan.startswith("cut"):
            answers[name] = [[event] for event in events[: int(plan[-1])]] + [
                [RunError(StreamCutError(name))]
            ]
        else:
            answers[name] = {
                "refuses": BUSY,
                "lasting": InvalidRequestError(name),
                "answers": [events],
            }[plan]
    models = Models(**answers)
    told = asyncio.run(models.events(fallback(*answers)))
    decided = next(
        (n for n, plan in enumerate(plans) if plan in ("answers", "lasting")), len(plans) - 1
    )
    assert models.asked == list(answers)[: decided + 1]
    assert models.closed == decided + 1
    texts = [message.text for message in fold(told) if message.finish_reason is not None]
    if plans[decided] == "answers":
        assert texts == [f"I am {'abcd'[decided]}."]
        assert not any(isinstance(event, RunError) for event in told)
    else:
        assert isinstance(last := told[-1], RunError)
        assert len(last.error.earlier) == decided
        assert all(name in last.error.message for name in list(answers)[:decided])
        assert texts == []


async def test_reads_are_passed_on_as_they_are() -> None:
    message = says("Hello.").replace(id="m")
    reads: list[list[Event]] = [[event] for event in unfold([message])]
    deltas: list[Event] = [PartDelta("m", 0, "x")] * 50
    reads.insert(3, deltas)
    models = Models(a=reads)
    batches = await models.batches(fallback("b"))
    assert all(given is read for given, read in zip(batches, reads, strict=True))


async def test_all_fail_and_the_last_error_tells_of_the_others() -> None:
    limited = RateLimitError("slow down " + "x" * 500, retry_after=7.0)
    dead = AuthenticationError("no key", provider="c", status=401)
    models = Models(a=BUSY, b=limited, c=dead)
    [event] = await models.events(fallback("b", "c"))
    assert isinstance(event, RunError)
    error = event.error
    assert type(error) is AuthenticationError
    assert (error.provider, error.status) == ("c", 401)
    assert error.earlier == (BUSY, limited)
    assert error.message.startswith(
        "no key Before it failed a: OverloadedError, no capacity; b: RateLimitError, slow down"
    )
    assert len(error.message) < 400
    assert dead.message == "no key"
    assert [type(each) for each in pickle.loads(pickle.dumps(error)).earlier] == [
        OverloadedError,
        RateLimitError,
    ]
    [alone] = await Models(a=BUSY).events(fallback("a"))
    assert isinstance(alone, RunError)
    assert alone.error is BUSY


async def test_an_error_that_another_model_would_have_too_tells_of_those_before() -> None:
    models = Models(a=BUSY, b=InvalidRequestError("bad"), c=says("Hello."))
    [event] = await models.events(fallback("b", "c"))
    assert isinstance(event, RunError)
    assert type(event.error) is InvalidRequestError
    assert event.error.earlier == (BUSY,)
    assert models.asked == ["a", "b"]


async def test_each_model_is_asked_once_and_in_order() -> None:
    models = Models(a=BUSY, b=BUSY, c=BUSY)
    await models.events(fallback("a", "b", "a:default", "c", "b"), "b")
    assert models.asked == ["b", "a", "c"]
    models = Models(a=BUSY, nobody=SettingsError("nobody"))
    await models.events(fallback("nobody"))
    assert models.asked == ["a", "nobody"]


async def test_the_transport_does_not_wait_where_another_model_stands_ready() -> None:
    for ours, own, expected in (
        (0, None, [0, 0, None]),
        (2, None, [2, 2, None]),
        (0, 5, [0, 0, 5]),
    ):
        models = Models(a=BUSY, b=BUSY, c=says("Hello."))
        await models.events(fallback("b", "c", retries=ours), retries=own)
        assert [request.retries for request in models.requests] == expected


async def test_nobody_waits_for_a_model_that_another_can_stand_in_for() -> None:
    """Of the first the transport tries nothing again, of the last all that it always does."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    limited = RateLimitError("slow down", retry_after=40.0)
    net = Net(openai_chat=limited, anthropic=[limited, limited, says("Hello.")])
    one = Agent(
        ["openai", "anthropic"],
        transport=Retry(net, sleep=sleep),
        environment=KEYS,
        environment_only=True,
    )
    assert (await one.send("Hi")).output == "Hello."
    assert net.asked == ["openai_chat", "anthropic", "anthropic", "anthropic"]
    assert waits == [40.0, 40.0]


async def test_an_answer_may_be_refused() -> None:
    seen: list[Message] = []

    async def refused(message: Message) -> bool:
        seen.append(message)
        await asyncio.sleep(0)
        return message.finish_reason is FinishReason.refusal

    no = says("I cannot.", reason=FinishReason.refusal)
    for rule in (refused, lambda message: message.text == "I cannot."):
        models = Models(a=no, b=no, c=no)
        events = await models.events(fallback("b", "c", on_answer=rule))
        assert models.asked == ["a", "b", "c"]
        assert [message.text for message in fold(events)] == ["I cannot."]
        assert [event.message_id for event in events if isinstance(event, MessageDropped)] == [
            "m1",
            "m2",
        ]
    assert [message.finish_reason for message in seen] == [FinishReason.refusal] * 2
    models = Models(a=says("Hello."), b=no)
    await models.events(fallback("b", on_answer=refused))
    assert models.asked == ["a"]
    models = Models(a=[], b=no)
    assert await models.events(fallback("b", on_answer=refused)) == []


async def test_an_endpoint_that_failed_often_is_left_alone() -> None:
    now = 0.0
    breaker = Breaker(failures=2, open_seconds=30.0, clock=lambda: now)
    layer = fallback("b", on=OverloadedError, breaker=breaker)
    models = Models(a=BUSY, b=says("Hello."))
    for _ in range(3):
        await models.events(layer)
    assert models.asked == ["a", "b", "a", "b", "b"]
    [event] = await models.events(fallback("a", breaker=breaker))
    assert isinstance(event, RunError)
    assert isinstance(event.error, CircuitOpenError)
    now, models.answers["a"] = 30.0, says("Again.")
    await models.events(layer)
    assert models.asked[-1] == "a"


async def test_a_turn_that_its_provider_paused_goes_on_there_and_nowhere_else() -> None:
    paused = says("So far", reason=FinishReason.pause)
    for origin, asked in ((Origin("b", None, "default"), ["b"]), (Origin("gone"), ["a"])):
        models = Models(a=BUSY, b=BUSY, c=says("Hello."))
        messages = (*ASK, paused.replace(origin=origin))
        [event] = await models.events(fallback("b", "c"), messages=messages)
        assert isinstance(event, RunError)
        assert models.asked == asked


async def test_cancelling_asks_nobody_else() -> None:
    async def hangs(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        asked.append(request.model)
        await asyncio.sleep(3600)
        yield []

    asked: list[str] = []
    batches = fallback("b").batches(ModelRequest("a", ASK), hangs, target)
    task = asyncio.ensure_future(anext(batches))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asked == ["a"]


async def test_what_code_of_the_users_raises_passes() -> None:
    async def wrong(request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        raise ZeroDivisionError
        yield []

    with pytest.raises(ZeroDivisionError):
        await anext(fallback("b").batches(ModelRequest("a", ASK), wrong, target))


def test_wrong_arguments() -> None:
    with pytest.raises(SettingsError, match="needs a model"):
        fallback()
    with pytest.raises(SettingsError, match="Invalid model string"):
        fallback("a/b/c")
    with pytest.raises(TypeError, match=r"models\[1\]"):
        fallback("a", fallback("b"))  # type: ignore[arg-type]
    for on in (ValueError, [OverloadedError, 3], "a"):
        with pytest.raises(TypeError, match="on must be"):
            fallback("a", on=on)  # type: ignore[arg-type]
    wrong: list[dict[str, Any]] = [{"breaker": 1}, {"retries": "2"}, {"on_answer": "x"}]
    for how in wrong:
        with pytest.raises(TypeError, match=next(iter(how))):
            fallback("a", **how)
    assert model_string(PROVIDER) == "scripted:m"


def test_models_of_an_agent_are_checked_when_it_is_made() -> None:
    other = msgspec.structs.replace(PROVIDER, base_url="http://other.test/v1")
    for models in (["openai", "nobody:x"], [PROVIDER, other], []):
        with pytest.raises(SettingsError):
            Agent(models)
        with pytest.raises(SettingsError):
            Agent("openai", middleware=[fallback(*models)])
    with pytest.raises(SettingsError, match="two models of a fallback are called scripted:m"):
        Agent(PROVIDER, middleware=[fallback(other)])
    with pytest.raises(TypeError, match="model must be"):
        Agent(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"models\[1\]"):
        Agent(["openai", 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"middleware\[0\]"):
        Agent("openai", middleware=[3])  # type: ignore[list-item]
    one = Agent(fallback("openai:gpt-4o", "anthropic"))
    assert (one.model, one.provider_name) == (
        "openai?chat=gpt-4o&embeddings=text-embedding-3-small",
        "openai",
    )


async def test_where_it_may_stand() -> None:
    net = Net(openai_chat=BUSY, anthropic=says("Hello."), google=says("Good day."))
    for model, how, send, asked in [
        (["openai", "anthropic"], {}, {}, ["openai_chat", "anthropic"]),
        (("openai", "anthropic"), {}, {}, ["openai_chat", "anthropic"]),
        (fallback("openai", "anthropic"), {}, {}, ["openai_chat", "anthropic"]),
        ("openai", {"middleware": [fallback("anthropic")]}, {}, ["openai_chat", "anthropic"]),
        ("google", {}, {"model": ["openai", "anthropic"]}, ["openai_chat", "anthropic"]),
        ("google", {}, {"model": fallback("openai", "anthropic")}, ["openai_chat", "anthropic"]),
        (
            "google",
            {"middleware": [fallback("anthropic")]},
            {"model": "openai"},
            ["openai_chat", "anthropic"],
        ),
        (["openai", "anthropic"], {}, {"model": "google"}, ["google"]),
        (
            ["openai", "google"],
            {"middleware": [fallback("anthropic")]},
            {},
            ["openai_chat", "anthropic"],
        ),
    ]:
        net.asked.clear()
        async with agent(net, model, **how) as one:
            await one.send("Hi", **send)
        assert net.asked == asked
    assert net.open == 0


async def test_a_model_whose_key_changes_is_asked_once_too() -> None:
    net = Net(openai_chat=BUSY, anthropic=says("Hello."))
    layer = fallback("openai:m", "anthropic:n", breaker=Breaker(per="model", failures=2))
    async with agent(net, "openai:m", api_key=lambda: "k", middleware=[layer]) as one:
        for _ in range(3):
            await one.send("Hi")
    assert net.asked == ["openai_chat", "anthropic"] * 2 + ["anthropic"]


async def test_records_are_members_too() -> None:
    record = msgspec.structs.replace(
        PROVIDER, name="acme", base_url="https://api.anthropic.com/v1", wire="anthropic"
    )
    net = Net(openai_chat=BUSY, anthropic=says("Hello."))
    async with agent(net, ["openai", record]) as one:
        result = await one.send("Hi")
    assert result.messages[-1].origin is not None
    assert (result.messages[-1].origin.provider, result.messages[-1].origin.model) == ("acme", "m")


async def test_middlewares_stand_around_each_attempt_or_around_all() -> None:
    async def look(request: ModelRequest, following: Any) -> Any:
        seen.append(request.model)
        async for event in following(request):
            yield event

    net = Net(openai_chat=BUSY, anthropic=says("Hello."))
    for model, layers, expected in [
        (["openai:m", "anthropic:n"], [look], ["openai:m", "anthropic:n"]),
        ("openai:m", [look, fallback("anthropic:n")], ["openai:m"]),
        ("openai:m", [fallback("anthropic:n"), look], ["openai:m", "anthropic:n"]),
    ]:
        seen: list[str] = []
        async with agent(net, model, middleware=layers) as one:
            await one.send("Hi")
        assert seen == expected
