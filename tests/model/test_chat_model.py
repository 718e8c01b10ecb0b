"""A model by itself: what is sent of a request, and all that is told of its answer, whole."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import dragoman.model
from dragoman import (
    Capability,
    FilePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    ToolSpec,
)
from dragoman.codec.digest import compute_prefix
from dragoman.errors import (
    DragomanError,
    ProviderError,
    RateLimitError,
    SettingsError,
    StreamCutError,
)
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.message import FinishReason, MarkPart, Origin, Role, Usage
from dragoman.model import ChatModel
from dragoman.model.access import Access
from dragoman.model.chat_model import answer_chunks
from dragoman.model.resolve_model import (
    ModelString,
    default_model,
    provider_middleware,
    resolve_model,
)
from dragoman.providers.provider import Provider
from dragoman.request import ModelRequest, Settings
from dragoman.result import ChatResult
from dragoman.runtime import new_id, now
from dragoman.transport import Exchange, Player
from support.model import PROVIDER

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:9/v1"
TIME = datetime(2027, 1, 15, 8, tzinfo=UTC)
ASK = (Message.user("Hi"),)
USED = Usage(input_tokens=3, output_tokens=2, total_tokens=5)


def line(**delta: Any) -> bytes:
    reason = delta.pop("reason", None)
    chunk = {
        "id": "r1",
        "model": "m-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


COST = b'data: {"id":"r1","model":"m-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n'
HELLO = line(content="Hel") + line(content="lo") + line(reason="stop") + COST + b"data: [DONE]\n\n"
STREAM = {"content-type": "text/event-stream", "x-request-id": "q1"}


def model(*answers: Exchange | Exception, **how: Any) -> tuple[ChatModel, Player]:
    player = Player(answers)
    provider = how.pop("provider", PROVIDER)
    return ChatModel(
        provider, transport=player, clock=lambda: TIME, new_id=iter("abcdef").__next__, **how
    ), player


async def events_of(one: ChatModel, request: ModelRequest) -> list[Event]:
    return [event async for event in one.stream(request)]


def origin(messages: tuple[Message, ...], **more: Any) -> Origin:
    return Origin("scripted", URL, "m", prefix=compute_prefix(messages, "openai_chat"), **more)


async def test_all_events_of_an_answer() -> None:
    one, player = model(Exchange(headers=STREAM, body=HELLO))
    events = await events_of(one, ModelRequest("", ASK))
    served = origin(ASK, served_model="m-1", response_id="r1")
    assert events == [
        MessageStarted("a", Role.MODEL, 0, served, created_at=TIME),
        PartStarted("a", 0, OpenText()),
        PartDelta("a", 0, "Hel"),
        PartDelta("a", 0, "lo"),
        PartFinished("a", 0, TextPart("Hello")),
        MessageFinished("a", FinishReason.stop, USED),
    ]
    [sent] = player.requests
    assert (sent.path, sent.method) == (f"{URL}/chat/completions", "POST")
    assert sent.headers == {"content-type": "application/json"}
    assert sent.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
    }


async def test_everything_that_is_given_reaches_the_request() -> None:
    provider = msgspec.structs.replace(
        PROVIDER, key_names=("SCRIPTED_KEY",), base_url_names={"SCRIPTED_URL": ""}
    )
    ways: list[tuple[dict[str, Any], str, str]] = [
        ({"api_key": "k1"}, URL, "k1"),
        (
            {"environment": {"SCRIPTED_KEY": "k2", "SCRIPTED_URL": "http://other"}},
            "http://other",
            "k2",
        ),
        ({"api_key": "k3", "base_url": "http://third/"}, "http://third", "k3"),
    ]
    for how, url, key in ways:
        one, player = model(Exchange(body=HELLO), provider=provider, headers={"X-Team": "a"}, **how)
        await events_of(one, ModelRequest("", ASK))
        [sent] = player.requests
        assert sent.path == f"{url}/chat/completions"
        assert sent.headers == {
            "content-type": "application/json",
            "authorization": f"Bearer {key}",
            "x-team": "a",
        }
    player = Player([Exchange(body=HELLO)])
    shared = Access(provider, player, api_key="k4", base_url="http://shared")
    one = ChatModel(provider, "other", transport=Player([]), access=shared)
    await events_of(one, ModelRequest("", ASK))
    assert player.requests[0].path == "http://shared/chat/completions"
    assert player.requests[0].body is not None
    assert not isinstance(player.requests[0].body, bytes)
    assert player.requests[0].body["model"] == one.name == "other"


def test_a_model_has_a_name_and_can_what_its_record_says() -> None:
    nameless = Provider(name="nameless", display_name="Nameless", wire="openai_chat", base_url=URL)
    with pytest.raises(
        SettingsError, match="Nameless has no default model; name one: nameless:MODEL"
    ):
        ChatModel(nameless, transport=Player([]))
    one = ChatModel(nameless, "n", transport=Player([]))
    assert (one.name, one.provider, one.wire.name) == ("n", nameless, "openai_chat")
    assert model()[0].name == "m"
    assert model()[0].request == ModelRequest("scripted:m")
    assert model()[0].can(Capability.tools)
    assert not one.can(Capability.models)


def test_ids_are_fresh_and_times_have_a_zone() -> None:
    assert len({new_id() for _ in range(50)}) == 50
    assert len(new_id()) == 32
    assert now().tzinfo is UTC


TOO_LATE = Exchange(
    status=429,
    headers={"retry-after": "7", "x-request-id": "q9"},
    body=b'{"error": {"message": "slow"}}',
)


async def test_a_refusal_is_one_event_with_all_that_is_known() -> None:
    one, _ = model(TOO_LATE)
    [event] = await events_of(one, ModelRequest("", ASK))
    assert isinstance(event, RunError)
    error = event.error
    assert isinstance(error, RateLimitError)
    assert (error.provider, error.status, error.request_id, error.retry_after) == (
        "scripted",
        429,
        "q9",
        7.0,
    )
    assert error.body == TOO_LATE.body
    assert error.partial is None


async def test_a_text_that_is_no_unicode_is_shown_where_it_breaks() -> None:
    one, player = model(
        UnicodeEncodeError("utf-8", "x" * 30 + "\ud800" + "y" * 30, 30, 31, "surrogates")
    )
    [event] = await events_of(one, ModelRequest("", ASK))
    assert isinstance(event, RunError)
    assert event.error.provider == "scripted"
    assert f'"{"x" * 20}\\ud800{"y" * 20}"' in event.error.message
    assert len(player.requests) == 1


@pytest.mark.parametrize("cut", [len(line(content="Hel")), len(line(content="Hel")) + 9])
async def test_an_answer_that_is_cut_keeps_what_came_and_the_reason(cut: int) -> None:
    one, _ = model(Exchange(headers=STREAM, body=HELLO, cut_after=cut))
    events = await events_of(one, ModelRequest("", ASK))
    last = events[-1]
    assert isinstance(last, RunError)
    error = last.error
    assert isinstance(error, StreamCutError)
    assert (error.provider, error.request_id) == ("scripted", "q1")
    assert str(error.__cause__) == "the recorded connection was cut here"
    assert error.partial is not None
    assert error.partial.text == "Hel"
    assert [type(event) for event in events[:-1]] == [
        MessageStarted,
        PartStarted,
        PartDelta,
        PartFinished,
        MessageFinished,
    ]


class Broken:
    """A transport whose answer ends with an error that is none of the connection's."""

    def __init__(self, *pieces: bytes) -> None:
        self.status, self.headers, self.closed = 200, STREAM, 0
        self._pieces = list(pieces)

    async def send(self, _: Any) -> Broken:
        return self

    async def read(self) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        raise ProviderError("more came than is taken")

    async def close(self) -> None:
        self.closed += 1


async def test_another_error_stands_in_the_place_of_the_cut_that_it_makes() -> None:
    broken = Broken(line(content="Hel"))
    events = await events_of(ChatModel(PROVIDER, transport=broken), ModelRequest("", ASK))
    last = events[-1]
    assert isinstance(last, RunError)
    assert type(last.error) is ProviderError
    assert last.error.message == "more came than is taken"
    assert last.error.partial is not None
    assert (last.error.partial.text, last.error.request_id) == ("Hel", "q1")
    assert broken.closed == 1


async def test_an_answer_that_was_whole_before_the_connection_broke_is_whole() -> None:
    events = await events_of(ChatModel(PROVIDER, transport=Broken(HELLO)), ModelRequest("", ASK))
    assert isinstance(events[-1], MessageFinished)
    assert not any(isinstance(event, RunError) for event in events)


TALK = (Message.user("Hi"), Message.model(ToolCallPart("c1", "t")))


async def test_what_a_request_leaves_out_is_on_the_first_event_and_may_be_refused() -> None:
    one, player = model(*[Exchange(body=HELLO)] * 2)
    lost = FilePart("f9", native={"google": {}})
    events = await events_of(one, ModelRequest("", (Message.user("See", lost), *TALK[1:])))
    first = events[0]
    assert isinstance(first, MessageStarted)
    assert [(loss.message, loss.part, loss.what) for loss in first.losses] == [
        (1, 0, "tool result"),
        (0, 1, "file"),
    ]
    [refused] = await events_of(one, ModelRequest("", TALK, on_loss="error"))
    assert isinstance(refused, RunError)
    assert refused.error.provider == "scripted"
    assert "cannot be sent whole" in refused.error.message
    assert len(player.requests) == 1
    whole = await events_of(one, ModelRequest("", ASK, on_loss="error"))
    assert isinstance(whole[0], MessageStarted)
    assert whole[0].losses == ()


@pytest.mark.parametrize("exchanges", [0, 80])
async def test_losses_stand_where_the_user_has_them(exchanges: int) -> None:
    """Neither repair nor messages that only wait shift them, whether a model remembers what it sent
    or not."""
    waits = Message.user(MarkPart("interrupt", {"dragoman": {"id": "i1"}}))
    lost, more = (
        FilePart("f9", native={"google": {}}),
        [Message.user("So?"), Message.model("So.")] * exchanges,
    )
    calls = Message.model(ToolCallPart("c1", "t"), ToolCallPart("c2", "t"))
    result = ToolResultPart("c2", "t", "a")
    before = [Message.user("?"), Message.model("So.")] * exchanges
    talk = [*before, Message.user("Hi", lost), waits, calls, Message.model("Well."), waits, Message.user("And", result, lost), *more, Message.user(lost)]  # fmt: skip
    one, _ = model(*[Exchange(body=HELLO)] * 2)
    for _ in range(2):
        first = (await events_of(one, ModelRequest("", tuple(talk))))[0]
        assert isinstance(first, MessageStarted)
        found = [(loss.message, loss.part, loss.what) for loss in first.losses if not loss.is_minor]
        at = len(before)
        places = [
            (at, 1, "file"),
            (at + 2, 0, "tool result"),
            (at + 5, 2, "file"),
            (len(talk) - 1, 0, "file"),
        ]
        assert sorted(found) == places


async def test_a_tool_is_called_by_its_own_name_again() -> None:
    name = "look up!"
    one, player = model(Exchange(body=b""), Exchange(body=b""))
    await events_of(one, ModelRequest("", ASK, (ToolSpec(name),)))
    assert isinstance(player.requests[0].body, dict)
    sent = player.requests[0].body["tools"][0]["function"]["name"]
    assert sent != name
    calls = [
        {
            "index": n,
            "id": f"c{n}",
            "type": "function",
            "function": {"name": called, "arguments": "{}"},
        }
        for n, called in enumerate((sent, "other"))
    ]
    body = (
        line(content="So")
        + line(tool_calls=calls)
        + line(reason="tool_calls")
        + b"data: [DONE]\n\n"
    )
    one, _ = model(Exchange(body=body))
    events = await events_of(one, ModelRequest("", ASK, (ToolSpec(name),)))
    parts = [(type(event), event.part.name) for event in events if isinstance(event, (PartStarted, PartFinished)) and isinstance(event.part, ToolCallPart)]  # fmt: skip
    assert sorted(parts, key=str) == sorted(
        [(kind, called) for kind in (PartStarted, PartFinished) for called in (name, "other")],
        key=str,
    )
    assert next(event.part for event in events if isinstance(event, PartFinished)) == TextPart("So")


async def test_chunks_hold_what_is_new_and_the_last_one_the_rest() -> None:
    body = line(reasoning_content="Hm") + HELLO
    one, player = model(*[Exchange(body=body)] * 2)
    chunks = [chunk async for chunk in one.send_stream(ASK)]
    assert [(chunk.output.text, chunk.thinking, chunk.id) for chunk in chunks] == [
        ("", "Hm", "a"),
        ("Hel", None, "a"),
        ("lo", None, "a"),
        ("", None, "a"),
    ]
    assert chunks[0].output.content == (ThinkingPart("Hm", chunks[0].output.content[0].native),)
    assert [chunk.output.content for chunk in chunks][1:] == [
        (TextPart("Hel"),),
        (TextPart("lo"),),
        (),
    ]
    assert {chunk.output.created_at for chunk in chunks} == {TIME}
    assert {chunk.output.role for chunk in chunks} == {Role.MODEL}
    assert [chunk.usage for chunk in chunks] == [None, None, None, USED]
    assert [chunk.finish_reason for chunk in chunks] == [FinishReason.unspecified] * 3 + [
        FinishReason.stop
    ]
    assert chunks[-1].output.origin is not None
    assert chunks[-1].output.origin.served_model == "m-1"
    bound = one.bound(ModelRequest("", (), (ToolSpec("t"),), Settings(temperature=0.5)))
    assert bound is not one
    async for _ in bound.send_stream(ASK, {"type": "object"}):
        pass
    sent = player.requests[1].body
    assert isinstance(sent, dict)
    assert (sent["temperature"], sent["tools"][0]["function"]["name"]) == (0.5, "t")
    assert sent["response_format"] == {"type": "json_object"}
    assert "tools" not in (player.requests[0].body or {})


async def test_chunks_of_a_message_without_a_reason_and_of_parts_that_come_whole() -> None:
    """Of other messages, and of other candidates, there are none; what was dropped is told as
    void."""
    call = ToolCallPart("c", "t")
    origin_ = Origin("p")
    events: list[Event] = [
        MessageStarted("x", Role.MODEL, 1),
        PartFinished("x", 0, TextPart("other")),
        MessageStarted("a", Role.MODEL, 0, origin_, {"k": 1}, created_at=TIME),
        PartStarted("a", 0, OpenText()),
        PartDelta("a", 0, "He"),
        PartDelta("a", 0, ""),
        PartDelta("x", 0, "other"),
        PartDelta("a", 7, "other"),
        PartFinished("a", 0, TextPart("He")),
        PartStarted("a", 1, call),
        PartDelta("a", 1, "{}"),
        PartFinished("a", 1, call),
        PartStarted("a", 2, OpenText()),
        PartFinished("a", 2, TextPart("whole")),
        MessageDropped("a"),
        MessageStarted("b", Role.MODEL),
        MessageFinished("b", None, USED, metadata={"m": 2}),  # type: ignore[arg-type] - what a model of others may give
    ]

    async def batches() -> AsyncGenerator[list[Event]]:
        yield events[:5]
        yield events[5:]

    def chunk(part: Any) -> ChatResult[Message]:
        return ChatResult(Message(Role.MODEL, (part,), id="a", created_at=TIME), id="a")

    assert [one async for one in answer_chunks(batches())] == [
        chunk(TextPart("He")),
        chunk(call),
        chunk(TextPart("whole")),
        ChatResult(Message.model(), retracted="He"),
        ChatResult(
            Message(Role.MODEL, (), id="b", usage=USED, metadata={"m": 2}),
            finish_reason=FinishReason.unspecified,
            usage=USED,
            metadata={"m": 2},
            id="b",
        ),
    ]


async def test_chunks_of_a_call_that_fails_end_with_its_error() -> None:
    one, _ = model(TOO_LATE)
    with pytest.raises(RateLimitError, match="slow"):
        async for _ in one.send_stream(ASK):
            pass


async def test_a_middleware_stands_around_the_call_the_first_one_outermost() -> None:
    order: list[str] = []

    def layer(name: str) -> Any:
        async def middleware(request: ModelRequest, following: Any) -> AsyncIterator[Event]:
            order.append(f"{name} in")
            async for event in following(
                request.replace(settings=Settings(temperature=len(order)))
            ):
                yield event
            order.append(f"{name} out")

        return middleware

    one, player = model(Exchange(body=HELLO), middleware=(layer("a"), layer("b")))
    batches = [batch async for batch in one.batches(ModelRequest("", ASK))]
    assert order == ["a in", "b in", "b out", "a out"]
    assert all(len(batch) == 1 for batch in batches)
    assert isinstance(player.requests[0].body, dict)
    assert player.requests[0].body["temperature"] == 2
    bare, _ = model(Exchange(body=HELLO))
    assert len([batch async for batch in bare.batches(ModelRequest("", ASK))]) < len(batches)


async def test_a_middleware_that_is_no_generator_is_closed_if_it_can_be() -> None:
    closed: list[bool] = []

    class Plain:
        def __aiter__(self) -> Plain:
            return self

        async def __anext__(self) -> Event:
            return RunError(DragomanError("one"))

    class Closable(Plain):
        async def aclose(self) -> None:
            closed.append(True)

    for kind in (Plain, Closable):
        one, _ = model(middleware=[lambda _request, _following, kind=kind: kind()])
        batches: AsyncGenerator[list[Event]] = one.batches(ModelRequest("", ASK))
        assert isinstance((await anext(batches))[0], RunError)
        await batches.aclose()
    assert closed == [True]


def test_the_rooms_names_are_found_where_they_are_and_no_others() -> None:
    from dragoman.model.breaker import Breaker
    from dragoman.model.cache_store import CacheStore
    from dragoman.model.chat_model import ChatModel as Chat
    from dragoman.model.embeddings_model import EmbeddingsModel
    from dragoman.model.fallbacks import fallback
    from dragoman.model.file_fetching import fetch_files
    from dragoman.model.media_endpoint import MediaEndpoint
    from dragoman.model.middleware import Middleware
    from dragoman.model.resolve_model import parse_model_string
    from dragoman.model.response_cache import cache
    from dragoman.model.throttle import Throttle

    found = [getattr(dragoman.model, name) for name in dragoman.model.__all__]
    assert found == [
        Breaker,
        CacheStore,
        Chat,
        EmbeddingsModel,
        MediaEndpoint,
        Middleware,
        Throttle,
        cache,
        fallback,
        fetch_files,
        parse_model_string,
    ]
    with pytest.raises(AttributeError, match=r"'dragoman\.model' has no attribute 'nothing'"):
        dragoman.model.nothing  # noqa: B018


def test_what_stands_in_where_nothing_is_given() -> None:
    assert default_model() == default_model(None, {}, {"DRAGOMAN_MODEL": ""}) == "local"
    assert default_model(None, {"DRAGOMAN_MODEL": "a"}, {"DRAGOMAN_MODEL": "b"}) == "a"
    assert resolve_model(PROVIDER) == (ModelString("scripted"), PROVIDER)
    string, provider = resolve_model("OpenAI:x")
    assert (string, provider.name) == (ModelString("openai", "x"), "openai")
    without = msgspec.structs.replace(
        PROVIDER, capabilities=frozenset({Capability.chat}), repeats_itself=True
    )
    typed = msgspec.structs.replace(PROVIDER, capabilities=frozenset({Capability.typed_output}))
    names = [
        [one.__name__ for one in provider_middleware(each)] for each in (PROVIDER, without, typed)
    ]
    assert names == [[], ["end_repetition"], ["constrained_tools"]]
    both = msgspec.structs.replace(typed, repeats_itself=True)
    assert [one.__name__ for one in provider_middleware(both)] == [
        "constrained_tools",
        "end_repetition",
    ]


async def test_each_candidate_is_told_with_its_time_however_the_answer_is_cut() -> None:
    second = line(content="Hey").replace(b'"index": 0', b'"index": 1')
    data = line(content="Hi") + second + b"data: [DONE]\n\n"
    for chunks in (None, [len(data) // 2], 1):
        one, _ = model(Exchange(body=data, chunks=chunks, headers=STREAM))
        events = await events_of(one, ModelRequest("m", ASK))
        assert [(e.candidate, e.created_at) for e in events if isinstance(e, MessageStarted)] == [
            (0, TIME),
            (1, TIME),
        ]
