"""The openai_chat wire against recorded traffic: what its answers say beyond what all dialects do
(`chat/test_traffic.py`)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from dragoman.errors import InvalidRequestError
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.message import FinishReason, TextPart, ToolCallPart
from dragoman.wires import openai_chat
from support.traffic import Exchange, exchanges

FOLDERS = ("openai_chat", "openai_compatible", "openrouter", "together", "ollama_openai")
VENDORS = ("openai", "groq", "deepseek", "llama.cpp")
"""Those whose streams the official client's accumulator takes."""
ERROR_INSIDE_200 = {"openai_compatible/pydantic-test-groq-test-tool-use-failed-error-streaming-00"}


def chats() -> Iterator[Exchange]:
    return (exchange for exchange in exchanges(*FOLDERS) if exchange.endpoint == "chat")


def answers() -> Iterator[Exchange]:
    return (exchange for exchange in chats() if exchange.status == 200)


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


def test_every_answer_says_what_its_json_says() -> None:
    """Text, thinking and calls against the raw JSON, read in the plainest way."""
    for exchange in answers():
        if exchange.id in ERROR_INSIDE_200:
            continue
        if exchange.framing == "json":
            said = [
                choice["message"] for choice in msgspec.json.decode(exchange.body)["choices"][:1]
            ]
        else:
            lines = (
                line[5:].strip() for line in exchange.body.splitlines() if line.startswith(b"data:")
            )
            found = (msgspec.json.decode(line) for line in lines if line != b"[DONE]")
            said = [
                c.get("delta") or {}
                for chunk in found
                for c in chunk["choices"]
                if c.get("index", 0) == 0
            ]
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
        assert {
            call.id for call in message.tool_calls if "function_call" not in str(call.native)
        } == ids, exchange


@pytest.mark.parametrize("framing", ["json", "sse"])
@pytest.mark.slow
def test_the_official_client_reads_the_same(framing: str) -> None:
    """Text, refusal, calls, usage and reason, as openai's own accumulation of the same bytes has
    them."""
    openai = pytest.importorskip("openai")
    from openai._streaming import SSEDecoder
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    assert openai.__version__
    seen = 0
    for exchange in answers():
        if (
            exchange.framing != framing
            or exchange.vendor not in VENDORS
            or exchange.id in ERROR_INSIDE_200
        ):
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
        assert "".join(part.text for part in ours if part not in refused) == (
            theirs.content or ""
        ), exchange
        assert "".join(part.text for part in refused) == (theirs.refusal or ""), exchange
        calls = [
            (call.id, call.function.name, call.function.arguments)
            for call in theirs.tool_calls or []
        ]
        if theirs.tool_calls:
            assert [(call.id, call.name, text(call)) for call in message.tool_calls] == calls, (
                exchange
            )
        if said.usage is not None:
            assert message.usage is not None
            assert message.usage.input_tokens == said.usage.prompt_tokens, exchange
            assert message.usage.output_tokens == said.usage.completion_tokens, exchange
        seen += 1
    assert seen > 80


def text(call: ToolCallPart) -> str:
    return call.raw if call.raw is not None else msgspec.json.encode(call.arguments).decode()
