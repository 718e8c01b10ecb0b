"""The mistral wire against recorded traffic: every response in every chunking, every request there and back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from dragoman.errors import HistoryError
from dragoman.event import Event, RunError
from dragoman.fold import compact, fold
from dragoman.message import FinishReason, Message, ToolCallPart
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.wires import mistral
from support.traffic import Exchange, exchanges

FOLDERS = ("mistral",)
NEUTRAL = {
    "messages",
    "tools",
    "stream",
    "random_seed",
    "reasoning_effort",
    "response_format",
    *Settings.__struct_fields__,
}


def chats() -> Iterator[Exchange]:
    return (exchange for exchange in exchanges(*FOLDERS) if exchange.endpoint == "chat")


def answers() -> Iterator[Exchange]:
    return (exchange for exchange in chats() if exchange.status == 200)


def asked() -> Iterator[Exchange]:
    return (exchange for exchange in chats() if isinstance(exchange.request, dict))


def decode(pieces: list[bytes]) -> list[Event]:
    decoder = mistral.decoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return compact(events + decoder.close())


def cut(data: bytes, at: list[int]) -> list[bytes]:
    ends = [0, *at, len(data)]
    return [data[a:b] for a, b in pairwise(ends)]


def comparable(events: list[Event]) -> list[Any]:
    return [(str(e.error), e.error.body) if isinstance(e, RunError) else e for e in events]


def test_every_answer_is_read_whole_and_without_an_error() -> None:
    seen = 0
    for exchange in answers():
        events = mistral.load_response(exchange.body)
        errors = [event.error for event in events if isinstance(event, RunError)]
        assert not errors, (exchange, errors)
        [message] = fold(events)
        assert message.finish_reason is not None, exchange
        assert message.origin is not None, exchange
        seen += 1
    assert seen > 140


def test_every_answer_is_the_same_in_random_chunkings() -> None:
    dice = random.Random(1)
    for exchange in answers():
        body = exchange.body
        whole = decode([body])
        at = sorted(dice.sample(range(len(body)), min(len(body), dice.randint(1, 12))))
        assert comparable(decode(cut(body, at))) == comparable(whole), (exchange, at)


def test_a_sample_is_the_same_byte_by_byte() -> None:
    sample: dict[Any, Exchange] = {}
    for exchange in answers():
        if exchange.framing == "sse" and len(exchange.body) < 30_000:
            body = exchange.body
            features = (
                *(
                    word in body
                    for word in (b"tool_calls", b'"thinking"', b"closed", b'"index":1', b'"p":', b"length", b"logprobs")
                ),
                any(byte > 127 for byte in body),
            )
            sample.setdefault(features, exchange)
    assert len(sample) > 5
    for exchange in sample.values():
        pieces = [bytes([byte]) for byte in exchange.body]
        assert comparable(decode(pieces)) == comparable(decode([exchange.body])), exchange


def test_every_stream_without_its_end_is_told_as_cut() -> None:
    for exchange in answers():
        if exchange.framing == "sse":
            ending = exchange.body.rfind(b'"finish_reason":"')
            start = exchange.body.rfind(b"data:", 0, exchange.body.find(b'"finish_reason":"'))
            if ending > 0 and start > 0:
                events = mistral.load_response(exchange.body[:start])
                assert type(events[-1]).__name__ == "RunError", exchange
                assert type(events[-1].error).__name__ == "StreamCutError", exchange


def mutated(value: Any, dice: random.Random) -> Any:
    """The same JSON with some of it missing or of another kind."""
    if dice.random() < 0.04:
        return dice.choice([None, 0, True, "", "x", [], {}, [None], [[]], [{}], {"a": 1}])
    if isinstance(value, dict):
        return {key: mutated(inner, dice) for key, inner in value.items() if dice.random() > 0.01}
    return [mutated(inner, dice) for inner in value] if isinstance(value, list) else value


def test_no_damaged_answer_raises_and_what_is_read_can_be_written() -> None:
    dice = random.Random(2)
    for exchange in answers():
        if len(exchange.body) > 20_000:
            continue
        lines = [exchange.body] if exchange.framing == "json" else exchange.body.split(b"\n\n")
        damaged = [
            prefix + msgspec.json.encode(mutated(msgspec.json.decode(line.removeprefix(prefix)), dice))
            if line.startswith(prefix + b"{") and dice.random() < 0.5
            else line
            for prefix in [b"" if exchange.framing == "json" else b"data: "]
            for line in lines
        ]
        events = mistral.load_response(b"\n\n".join(damaged))
        assert events, exchange
        mistral.dump_response(events)
        for message in fold(events):
            assert Message.from_json(message.to_json()) == message
            mistral.dump_messages([message])


def test_every_damaged_request_is_dumped_as_it_was_or_refused() -> None:
    dice = random.Random(3)
    refused = 0
    for exchange in asked():
        body = mutated(exchange.request, dice)
        if not isinstance(body, dict):
            continue
        try:
            request = mistral.load_request(body)
        except HistoryError:
            refused += 1
            continue
        assert mistral.dump_request(request) == body, exchange
    assert refused < 40


def test_every_request_is_dumped_as_it_was() -> None:
    seen = 0
    for exchange in asked():
        request = mistral.load_request(exchange.request)
        assert mistral.dump_request(request) == exchange.request, exchange
        assert not NEUTRAL & request.options.keys(), exchange
        seen += 1
    assert seen > 140


def test_every_conversation_survives_its_stored_form() -> None:
    for exchange in asked():
        request = mistral.load_request(exchange.request)
        stored = [Message.from_json(message.to_json()) for message in request.messages]
        assert stored == list(request.messages), exchange
        assert mistral.dump_messages(stored) == exchange.request["messages"], exchange
        again = msgspec.json.decode(msgspec.json.encode(request), type=ModelRequest)
        assert mistral.dump_request(again) == exchange.request, exchange


def test_one_more_message_changes_the_body_by_that_message() -> None:
    for exchange in asked():
        request = mistral.load_request(exchange.request)
        longer = request.replace(messages=(*request.messages, Message.user("And now?")))
        expected = {**exchange.request}
        expected["messages"] = [*expected["messages"], {"role": "user", "content": "And now?"}]
        assert mistral.dump_request(longer) == expected, exchange


def test_a_tool_by_another_name_changes_the_body_by_that_name() -> None:
    for exchange in asked():
        request = mistral.load_request(exchange.request)
        if not request.tools or not isinstance(request.tools[0], ToolSpec):
            continue
        renamed = msgspec.structs.replace(request.tools[0], name="another")
        dumped = mistral.dump_request(request.replace(tools=(renamed, *request.tools[1:])))
        tool = dumped["tools"][0]["function"]
        assert tool["name"] == "another"
        tool["name"] = request.tools[0].name
        assert dumped == exchange.request, exchange


def test_no_call_that_was_cut_or_invalid_looks_complete() -> None:
    seen = 0
    for exchange in answers():
        for message in fold(mistral.load_response(exchange.body)):
            for call in message.tool_calls:
                if call.state != "complete":
                    seen += 1
                    assert call.arguments == {}, exchange
                elif message.finish_reason is FinishReason.length:
                    assert call.raw is None or msgspec.json.decode(call.raw) == call.arguments, exchange
    assert seen > 3


def test_every_answer_says_what_its_json_says() -> None:
    """Text, thinking and calls against the raw JSON, read in the plainest way."""
    for exchange in answers():
        said = [message for message, _ in plain(exchange)]
        chunks = [chunk for one in said for chunk in blocks(one.get("content"))]
        [message] = fold(mistral.load_response(exchange.body))
        assert message.text == "".join(chunk["text"] for chunk in chunks if chunk["type"] == "text"), exchange
        thoughts = [item["text"] for chunk in chunks if chunk["type"] == "thinking" for item in chunk["thinking"]]
        assert (message.thinking or "") == "".join(thoughts), exchange
        ids = [call["id"] for one in said for call in one.get("tool_calls") or () if call.get("id")]
        assert [call.id for call in message.tool_calls] == ids, exchange


def plain(exchange: Exchange) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The messages or deltas of candidate 0, each with its chunk."""
    if exchange.framing == "json":
        body = msgspec.json.decode(exchange.body)
        return [(body["choices"][0]["message"], body)]
    lines = (line[5:].strip() for line in exchange.body.splitlines() if line.startswith(b"data:"))
    found = [msgspec.json.decode(line) for line in lines if line != b"[DONE]"]
    return [(c["delta"], chunk) for chunk in found for c in chunk["choices"] if c["index"] == 0]


def blocks(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content or ""}]


@pytest.mark.slow
@pytest.mark.parametrize("framing", ["json", "sse"])
def test_the_official_client_reads_the_same(framing: str) -> None:
    """Text, thinking, calls, usage and reason, as mistralai reads the same bytes from a mock transport. It has no
    accumulator of its own, so deltas are joined in the plainest way."""
    client = pytest.importorskip("mistralai.client")
    httpx = pytest.importorskip("httpx2")
    seen = 0
    for exchange in answers():
        if exchange.framing != framing:
            continue
        kind = "text/event-stream" if framing == "sse" else "application/json"
        response = httpx.Response(200, headers={"content-type": kind}, content=exchange.body)
        transport = httpx.MockTransport(lambda request, response=response: response)
        sdk = client.Mistral(api_key="none", client=httpx.Client(transport=transport))
        asked = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        if framing == "sse":
            chunks = [event.data for event in sdk.chat.stream(**asked)]
            said = [choice.delta for chunk in chunks for choice in chunk.choices if choice.index == 0]
            reasons = [c.finish_reason for chunk in chunks for c in chunk.choices if c.index == 0 and c.finish_reason]
            usage = [chunk.usage for chunk in chunks if chunk.usage][-1]
        else:
            whole = sdk.chat.complete(**asked)
            said, usage, reasons = [whole.choices[0].message], whole.usage, [whole.choices[0].finish_reason]
        [message] = fold(mistral.load_response(exchange.body))
        theirs = [
            chunk for one in said for chunk in ([one.content] if isinstance(one.content, str) else one.content or ())
        ]
        assert message.text == "".join(c if isinstance(c, str) else getattr(c, "text", "") for c in theirs), exchange
        thoughts = [item.text for chunk in theirs for item in getattr(chunk, "thinking", ())]
        assert (message.thinking or "") == "".join(thoughts), exchange
        calls: list[list[str]] = []
        for call in [call for one in said for call in one.tool_calls or ()]:
            if call.function.name:
                calls.append([call.id, call.function.name, call.function.arguments])
            else:
                calls[-1][2] += call.function.arguments
        assert [[call.id, call.name, text(call)] for call in message.tool_calls] == calls, exchange
        assert message.usage is not None
        assert message.usage.input_tokens == usage.prompt_tokens, exchange
        assert message.usage.output_tokens == usage.completion_tokens, exchange
        assert message.usage.total_tokens == usage.total_tokens, exchange
        assert message.finish_reason is FinishReason(str(reasons[-1])), exchange
        seen += 1
    assert seen > 50


def text(call: ToolCallPart) -> str:
    return call.raw if call.raw is not None else msgspec.json.encode(call.arguments).decode()
