"""The mistral wire against recorded traffic: what its answers say beyond what all dialects do
(`chat/test_traffic.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dragoman.fold import fold
from dragoman.message import FinishReason, ToolCallPart
from dragoman.wires import mistral
from support.traffic import Exchange, exchanges

FOLDERS = ("mistral",)


def chats() -> Iterator[Exchange]:
    return (exchange for exchange in exchanges(*FOLDERS) if exchange.endpoint == "chat")


def answers() -> Iterator[Exchange]:
    return (exchange for exchange in chats() if exchange.status == 200)


def test_every_answer_says_what_its_json_says() -> None:
    """Text, thinking and calls against the raw JSON, read in the plainest way."""
    for exchange in answers():
        said = [message for message, _ in plain(exchange)]
        chunks = [chunk for one in said for chunk in blocks(one.get("content"))]
        [message] = fold(mistral.load_response(exchange.body))
        assert message.text == "".join(
            chunk["text"] for chunk in chunks if chunk["type"] == "text"
        ), exchange
        thoughts = [
            item["text"]
            for chunk in chunks
            if chunk["type"] == "thinking"
            for item in chunk["thinking"]
        ]
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
    """Text, thinking, calls, usage and reason, as mistralai reads the same bytes from a mock
    transport. It has no accumulator of its own, so deltas are joined in the plainest way."""
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
            said = [
                choice.delta for chunk in chunks for choice in chunk.choices if choice.index == 0
            ]
            reasons = [
                c.finish_reason
                for chunk in chunks
                for c in chunk.choices
                if c.index == 0 and c.finish_reason
            ]
            usage = [chunk.usage for chunk in chunks if chunk.usage][-1]
        else:
            whole = sdk.chat.complete(**asked)
            said, usage, reasons = (
                [whole.choices[0].message],
                whole.usage,
                [whole.choices[0].finish_reason],
            )
        [message] = fold(mistral.load_response(exchange.body))
        theirs = [
            chunk
            for one in said
            for chunk in ([one.content] if isinstance(one.content, str) else one.content or ())
        ]
        assert message.text == "".join(
            c if isinstance(c, str) else getattr(c, "text", "") for c in theirs
        ), exchange
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
