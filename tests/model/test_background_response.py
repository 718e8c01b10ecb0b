"""Answers that a provider makes in the background: they are waited for, go on where their stream
broke, and end at the provider if the run does (R, section 1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dragoman import Agent, fold
from dragoman.errors import DragomanError, StreamCutError
from dragoman.event import BACKGROUND_STATUS, Custom, MessageStarted, RunError
from dragoman.message import FinishReason
from dragoman.model import background_response
from dragoman.request import HttpRequest
from support.responses import CREATED, HEAD, end_event, message_item, of, text

pytestmark = pytest.mark.anyio

URL = "https://api.openai.com/v1/responses"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_response, "_FIRST_WAIT", 0.001)


class Answer:
    """A response in pieces; an exception among them breaks it, an event is set and waits for
    ever."""

    status = 200

    def __init__(
        self, *pieces: bytes | Exception | asyncio.Event, kind: str = "application/json"
    ) -> None:
        self.headers: Mapping[str, str] = {"content-type": kind}
        self.pieces, self.closed = list(pieces), False

    async def read(self) -> bytes:
        if not self.pieces:
            return b""
        piece = self.pieces.pop(0)
        if isinstance(piece, asyncio.Event):
            piece.set()
            await asyncio.Future()
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def close(self) -> None:
        self.closed = True


class Provider:
    """A transport with answers in order; the last one again."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers, self.sent = list(answers), list[HttpRequest]()

    async def send(self, request: HttpRequest) -> Any:
        self.sent.append(request)
        if request.path.endswith("/cancel"):
            return Answer(b"{}")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Nothing is open."""

    def asked(self) -> list[tuple[str, str]]:
        return [(request.method, request.path) for request in self.sent]


def whole(status: str, *output: Any, **fields: Any) -> Answer:
    body = {**HEAD, "status": status, "background": True, "output": list(output), **fields}
    return Answer(json.dumps(body, indent=1).encode())


def agent_of(
    provider: Provider, model: str = "openai-responses:gpt-5", **options: Any
) -> Agent[None]:
    options = {"background": True, **options}
    return Agent(model, transport=provider, api_key="x", options=options)


async def events_of(agent: Agent[None]) -> list[Any]:
    events: list[Any] = []
    try:
        async for event in agent.send_events("Hi."):
            events.append(event)
    except DragomanError as error:
        events.append(RunError(error))
    return events


def statuses(events: list[Any]) -> list[str]:
    told = [event for event in events if isinstance(event, Custom)]
    assert all(event.name == BACKGROUND_STATUS for event in told)
    assert all(event.value["id"] == told[0].value["id"] for event in told)
    return [event.value["status"] for event in told]


async def test_a_whole_answer_is_asked_for_until_it_is_finished() -> None:
    provider = Provider(
        whole("queued"),
        whole("queued"),
        whole("in_progress"),
        whole("completed", message_item("Hello.")),
    )
    events = await events_of(agent_of(provider, stream=False))
    assert statuses(events) == ["queued", "in_progress"]
    [_, message] = fold(events)
    assert (message.text, message.finish_reason) == ("Hello.", FinishReason.stop)
    assert message.origin is not None and message.origin.response_id == "resp_1"
    assert sum(isinstance(event, MessageStarted) for event in events) == 2, "the prompt's, and one"
    assert provider.asked() == [("POST", URL), *[("GET", f"{URL}/resp_1")] * 3]
    body: Any = provider.sent[0].body
    assert msgspec.json.decode(msgspec.json.encode(body))["background"] is True


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (whole("incomplete", incomplete_details={"reason": "max_output_tokens"}), FinishReason.length),
        (whole("cancelled"), FinishReason.cancelled),
        (whole("failed", error={"code": "server_error", "message": "Broken."}), FinishReason.error),
    ],
    ids=["incomplete", "cancelled", "failed"],
)  # fmt: skip
async def test_it_may_end_in_any_way(end: Answer, reason: FinishReason) -> None:
    provider = Provider(whole("queued"), Answer(*end.pieces))
    events = await events_of(agent_of(provider, stream=False))
    if reason is FinishReason.error:
        assert "Broken." in str(events[-1].error)
    else:
        assert fold(events)[-1].finish_reason is reason
    assert not provider.sent[-1].path.endswith("/cancel")


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"nonsense", b"{}", b'{"id": 3, "status": "queued"}', b'{"status": ["x"]}', b"[" * 99999],
)  # fmt: skip
@pytest.mark.parametrize("first", [True, False])
async def test_what_is_no_answer_is_an_error_and_nothing_hangs(body: bytes, first: bool) -> None:
    provider = Provider(*([] if first else [whole("queued")]), Answer(body))
    async with asyncio.timeout(10):
        events = await events_of(agent_of(provider, stream=False))
    assert isinstance(events[-1], RunError)


def numbered(*events: Any, line: str = "\n") -> list[bytes]:
    """Each event as the API streams it."""
    return [
        f"event: {event['type']}{line}data: {json.dumps({**event, 'sequence_number': number})}{line}{line}".encode()
        for number, event in enumerate(events)
    ]  # fmt: skip


STARTED = {**CREATED, "response": {**CREATED["response"], "status": "queued", "background": True}}
RUNS = {"type": "response.in_progress", "response": {**HEAD, "status": "in_progress"}}
SAID = [
    STARTED,
    RUNS,
    *text(0, "Hel", "lo "),
    of("output_text.delta", 0, content_index=0, delta='"there\n"', logprobs=[]),
    of("output_item.done", 0, item=message_item('Hello "there\n"')),
    end_event(message_item('Hello "there\n"')),
]


@pytest.mark.parametrize("line", ["\n", "\r\n"])
@pytest.mark.parametrize("broken", [StreamCutError("cut"), None])
async def test_a_stream_that_breaks_anywhere_goes_on_behind_the_last_whole_event(
    broken: Exception | None, line: str
) -> None:
    frames = numbered(*SAID, line=line)
    data = b"".join(frames)
    for at in range(len(frames[0]), len(data), 37):
        known = sum(at >= sum(map(len, frames[: count + 1])) for count in range(len(frames)))
        end = [broken] if broken else []
        provider = Provider(
            Answer(data[: at // 2], data[at // 2 : at], *end, kind="text/event-stream"),
            Answer(*frames[known:], kind="text/event-stream"),
        )
        events = await events_of(agent_of(provider))
        assert fold(events)[-1].text == 'Hello "there\n"', at
        assert statuses(events) == ["queued", "in_progress"]
        resumed = [("GET", f"{URL}/resp_1?stream=true&starting_after={known - 1}")]
        assert provider.asked() == [("POST", URL), *(resumed if known < len(frames) else [])]


async def test_a_stream_that_never_goes_on_is_given_up() -> None:
    frames = numbered(*SAID)
    cut = [Answer(*frames[:3], kind="text/event-stream")]
    empty = [Answer(kind="text/event-stream") for _ in range(20)]
    provider = Provider(*cut, *empty)
    events = await events_of(agent_of(provider))
    assert isinstance(events[-1], RunError)
    assert isinstance(events[-1].error, StreamCutError)
    assert len(provider.sent) == 1 + background_response._MOST_FAILURES
    # It goes on at the provider: whoever has its id may ask for it.
    assert not any(request.path.endswith("/cancel") for request in provider.sent)


async def test_a_connection_that_fails_is_tried_again_a_few_times() -> None:
    lost = [StreamCutError("lost") for _ in range(3)]
    provider = Provider(whole("queued"), *lost, whole("completed", message_item("Hello.")))
    agent = Agent("openai-responses:gpt-5", transport=provider, api_key="x", options={"background": True, "stream": False})  # fmt: skip
    assert (await agent.send("Hi.")).output == "Hello."
    provider = Provider(whole("queued"), *[StreamCutError("lost") for _ in range(30)])
    events = await events_of(agent_of(provider, stream=False))
    assert isinstance(events[-1], RunError)
    assert len(provider.sent) == 2 + background_response._MOST_FAILURES


@pytest.mark.parametrize("stream", [True, False])
async def test_a_run_that_is_cancelled_ends_the_answer_at_the_provider(stream: bool) -> None:
    waits = asyncio.Event()
    if stream:
        provider = Provider(Answer(*numbered(*SAID)[:4], waits, kind="text/event-stream"))
    else:
        provider = Provider(whole("queued"), Answer(waits))
    task = asyncio.create_task(events_of(agent_of(provider, stream=stream)))
    async with asyncio.timeout(10):
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert provider.asked()[-1] == ("POST", f"{URL}/resp_1/cancel")


async def test_an_answer_that_takes_more_than_a_day_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background_response, "_MOST_SECONDS", -1.0)
    provider = Provider(whole("queued"))
    events = await events_of(agent_of(provider, stream=False))
    assert "resp_1" in str(events[-1].error)
    assert provider.asked() == [("POST", URL)]


async def test_an_ordinary_answer_is_not_asked_for_again() -> None:
    provider = Provider(whole("completed", message_item("Hello.")))
    assert (await agent_of(provider, stream=False).send("Hi.")).output == "Hello."
    assert len(provider.sent) == 1
    odd = {**HEAD, "id": "../x?y", "status": "queued", "output": []}
    provider = Provider(
        Answer(json.dumps(odd).encode()), whole("completed", message_item("Hello."))
    )
    assert (await agent_of(provider, stream=False).send("Hi.")).output == "Hello."
    assert provider.sent[1].path == f"{URL}/..%2Fx%3Fy"


async def test_interactions_are_waited_for_by_the_same_code() -> None:
    def state(status: str, **fields: Any) -> Answer:
        body = {"id": "v1_a", "status": status, "model": "gemini-3.5-flash", **fields}
        return Answer(json.dumps(body).encode())

    steps = [{"type": "model_output", "content": [{"type": "text", "text": "Hello."}]}]
    provider = Provider(state("in_progress"), state("in_progress"), state("completed", steps=steps))
    agent = agent_of(provider, "google-interactions:gemini-3.5-flash", stream=False)
    events = await events_of(agent)
    assert fold(events)[-1].text == "Hello."
    assert statuses(events) == ["in_progress"]
    assert [path.rpartition("/v1beta/")[2] for _, path in provider.asked()] == ["interactions", *["interactions/v1_a"] * 2]  # fmt: skip
