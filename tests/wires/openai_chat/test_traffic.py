"""The openai_chat wire against recorded traffic: every response in every chunking, every request there and back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.event import Event, RunError
from dragoman.fold import compact, fold
from dragoman.message import FinishReason, Message, TextPart, ToolCallPart
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.wires import openai_chat
from support.traffic import Exchange, exchanges

FOLDERS = ("openai_chat", "openai_compatible", "openrouter", "together", "ollama_openai")
VENDORS = ("openai", "groq", "deepseek", "llama.cpp")
"""Those whose streams the official client's accumulator takes."""
ERROR_INSIDE_200 = {"openai_compatible/pydantic-test-groq-test-tool-use-failed-error-streaming-00"}
NEUTRAL = {"messages", "tools", "functions", "stream", *Settings.__struct_fields__}


def chats() -> Iterator[Exchange]:
    return (exchange for exchange in exchanges(*FOLDERS) if exchange.endpoint == "chat")


def answers() -> Iterator[Exchange]:
    return (exchange for exchange in chats() if exchange.status == 200)


def asked() -> Iterator[Exchange]:
    return (exchange for exchange in chats() if isinstance(exchange.request, dict))


def decode(pieces: list[bytes]) -> list[Event]:
    decoder = openai_chat.decoder()
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
        events = openai_chat.load_response(exchange.body)
        errors = [event.error for event in events if isinstance(event, RunError)]
        assert bool(errors) == (exchange.id in ERROR_INSIDE_200), (exchange, errors)
        [message] = fold(events)
        assert message.finish_reason is not None, exchange
        assert message.origin is not None, exchange
        seen += 1
    assert seen > 1000


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
                *(word in body for word in (b"tool_calls", b'"reasoning', b"refusal", b"\r\n", b": ", b"logprobs")),
                any(byte > 127 for byte in body),
            )
            sample.setdefault(features, exchange)
    assert len(sample) > 12
    for exchange in sample.values():
        pieces = [bytes([byte]) for byte in exchange.body]
        assert comparable(decode(pieces)) == comparable(decode([exchange.body])), exchange


def test_an_error_inside_a_good_response_comes_after_the_events_before_it() -> None:
    for exchange in answers():
        if exchange.id in ERROR_INSIDE_200:
            events = openai_chat.load_response(exchange.body)
            assert isinstance(events[-1], RunError)
            error = events[-1].error
            assert isinstance(error, InvalidRequestError)
            assert error.status == 400
            assert "Tool call validation failed" in error.message
            assert error.partial is not None
            assert error.partial.thinking
            assert fold(events)[0].finish_reason is FinishReason.error


def test_every_stream_without_its_end_is_told_as_cut() -> None:
    for exchange in answers():
        if exchange.framing == "sse" and exchange.id not in ERROR_INSIDE_200:
            ending = exchange.body.rfind(b'"finish_reason":"')
            start = exchange.body.rfind(b"data:", 0, exchange.body.find(b'"finish_reason":"'))
            if ending > 0 and start > 0:
                events = openai_chat.load_response(exchange.body[:start])
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
    for number, exchange in enumerate(answers()):
        if number % 4 or len(exchange.body) > 20_000:
            continue
        lines = [exchange.body] if exchange.framing == "json" else exchange.body.split(b"\n\n")
        damaged = [
            prefix + msgspec.json.encode(mutated(msgspec.json.decode(line.removeprefix(prefix)), dice))
            if line.startswith(prefix + b"{") and dice.random() < 0.5
            else line
            for prefix in [b"" if exchange.framing == "json" else b"data: "]
            for line in lines
        ]
        events = openai_chat.load_response(b"\n\n".join(damaged))
        assert events, exchange
        openai_chat.dump_response(events)
        for message in fold(events):
            assert Message.from_json(message.to_json()) == message
            openai_chat.dump_messages([message])


def test_every_damaged_request_is_dumped_as_it_was_or_refused() -> None:
    dice = random.Random(3)
    refused = 0
    for number, exchange in enumerate(asked()):
        body = mutated(exchange.request, dice)
        if number % 4 or not isinstance(body, dict):
            continue
        try:
            request = openai_chat.load_request(body)
        except HistoryError:
            refused += 1
            continue
        assert openai_chat.dump_request(request) == body, exchange
    assert refused < 120


def test_every_request_is_dumped_as_it_was() -> None:
    seen = 0
    for exchange in asked():
        request = openai_chat.load_request(exchange.request)
        assert openai_chat.dump_request(request) == exchange.request, exchange
        assert not NEUTRAL & request.options.keys(), exchange
        seen += 1
    assert seen > 1000


def test_every_conversation_survives_its_stored_form() -> None:
    for exchange in asked():
        request = openai_chat.load_request(exchange.request)
        stored = [Message.from_json(message.to_json()) for message in request.messages]
        assert stored == list(request.messages), exchange
        assert openai_chat.dump_messages(stored) == exchange.request["messages"], exchange
        again = msgspec.json.decode(msgspec.json.encode(request), type=ModelRequest)
        assert openai_chat.dump_request(again) == exchange.request, exchange


def test_one_more_message_changes_the_body_by_that_message() -> None:
    for exchange in asked():
        request = openai_chat.load_request(exchange.request)
        longer = request.replace(messages=(*request.messages, Message.user("And now?")))
        expected = {**exchange.request}
        expected["messages"] = [*expected["messages"], {"role": "user", "content": "And now?"}]
        assert openai_chat.dump_request(longer) == expected, exchange


def test_a_tool_by_another_name_changes_the_body_by_that_name() -> None:
    for exchange in asked():
        request = openai_chat.load_request(exchange.request)
        if not request.tools or not isinstance(request.tools[0], ToolSpec):
            continue
        renamed = msgspec.structs.replace(request.tools[0], name="another")
        dumped = openai_chat.dump_request(request.replace(tools=(renamed, *request.tools[1:])))
        field = "tools" if "tools" in exchange.request else "functions"
        tool = dumped[field][0].get("function", dumped[field][0])
        assert tool["name"] == "another"
        tool["name"] = request.tools[0].name
        assert dumped == exchange.request, exchange


def test_no_call_that_was_cut_or_invalid_looks_complete() -> None:
    seen = 0
    for exchange in answers():
        for message in fold(openai_chat.load_response(exchange.body)):
            for call in message.tool_calls:
                if call.state != "complete":
                    seen += 1
                    assert call.arguments == {}, exchange
                elif message.finish_reason is FinishReason.length:
                    assert call.raw is None or msgspec.json.decode(call.raw) == call.arguments, exchange
    assert seen > 20


def test_every_answer_says_what_its_json_says() -> None:
    """Text, thinking and calls against the raw JSON, read in the plainest way."""
    for exchange in answers():
        if exchange.id in ERROR_INSIDE_200:
            continue
        if exchange.framing == "json":
            said = [choice["message"] for choice in msgspec.json.decode(exchange.body)["choices"][:1]]
        else:
            lines = (line[5:].strip() for line in exchange.body.splitlines() if line.startswith(b"data:"))
            found = (msgspec.json.decode(line) for line in lines if line != b"[DONE]")
            said = [c.get("delta") or {} for chunk in found for c in chunk["choices"] if c.get("index", 0) == 0]
        joined = {
            field: "".join([one[field] for one in said if isinstance(one.get(field), str)])
            for field in ("content", "refusal", "reasoning", "reasoning_content")
        }
        [message] = fold(openai_chat.load_response(exchange.body))
        if not any(isinstance(one.get("content"), dict) for one in said):
            assert message.text == joined["content"] + joined["refusal"], exchange
        thinking = joined["reasoning"] or joined["reasoning_content"]
        assert thinking in ("", message.thinking), exchange
        ids = {call["id"] for one in said for call in one.get("tool_calls") or () if call.get("id")}
        assert {call.id for call in message.tool_calls if "function_call" not in str(call.native)} == ids, exchange


@pytest.mark.parametrize("framing", ["json", "sse"])
def test_the_official_client_reads_the_same(framing: str) -> None:
    """Text, refusal, calls, usage and reason, as openai's own accumulation of the same bytes has them."""
    openai = pytest.importorskip("openai")
    from openai._streaming import SSEDecoder
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    assert openai.__version__
    seen = 0
    for exchange in answers():
        if exchange.framing != framing or exchange.vendor not in VENDORS or exchange.id in ERROR_INSIDE_200:
            continue
        if framing == "json":
            said = ChatCompletion.construct(**msgspec.json.decode(exchange.body))
        else:
            state = ChatCompletionStreamState()
            usage = None
            for event in SSEDecoder().iter_bytes(iter([exchange.body])):
                if event.data and not event.data.startswith("[DONE]"):
                    chunk = ChatCompletionChunk.construct(**event.json())
                    state.handle_chunk(chunk)
                    usage = chunk.usage or usage
            said = state.current_completion_snapshot
            said.usage = usage
        [message] = fold(openai_chat.load_response(exchange.body))
        theirs = said.choices[0].message
        ours = [part for part in message.content if isinstance(part, TextPart)]
        refused = [part for part in ours if part.native and "refusal" in str(part.native)]
        assert "".join(part.text for part in ours if part not in refused) == (theirs.content or ""), exchange
        assert "".join(part.text for part in refused) == (theirs.refusal or ""), exchange
        calls = [(call.id, call.function.name, call.function.arguments) for call in theirs.tool_calls or []]
        if theirs.tool_calls:
            assert [(call.id, call.name, text(call)) for call in message.tool_calls] == calls, exchange
        if said.usage is not None:
            assert message.usage is not None
            assert message.usage.input_tokens == said.usage.prompt_tokens, exchange
            assert message.usage.output_tokens == said.usage.completion_tokens, exchange
        seen += 1
    assert seen > 80


def text(call: ToolCallPart) -> str:
    return call.raw if call.raw is not None else msgspec.json.encode(call.arguments).decode()
