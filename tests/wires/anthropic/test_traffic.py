"""The anthropic wire on recorded traffic: every response in every chunking, every request there and
back, the SDK as judge."""

from __future__ import annotations

import json
from functools import cache, partial

import httpx2
import pytest
from anthropic import Anthropic

from dragoman.event import RunError
from dragoman.fold import compact, fold
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart
from dragoman.wires import anthropic as wire
from support.traffic import decode as decode_by
from support.traffic import exchanges
from support.traffic_checks import (
    check_appended,
    check_chunkings,
    check_encoder,
    check_renamed,
    check_requests,
)

decode = partial(decode_by, wire)

SAMPLE = (
    "pydantic-test-anthropic-test-pause-turn-web-search-streaming-vcr-00",  # pause, server tools, citations, thinking
    "rig-anthropic-streaming-gateway-message-delta-metadata-00",  # [DONE], extra keys
    "pydantic-test-anthropic-test-anthropic-advisor-tool-stream-00",  # iterations, unknown result
    "pydantic-test-anthropic-test-anthropic-model-thinking-part-redacted-stream-00",
    "rig-anthropic-reasoning-tool-roundtrip-streaming-00",
    "mirascope-input-web-search-tool-anthropic-streams-with-web-search-tool-00",
    "chatlas-test-echo-display-providers-test-anthropic-fetch-panel-00",
    "rig-anthropic-messages-sessions-sequential-tool-calls-streaming-00",
    "rig-anthropic-empty-stop-sequence-matrix-unicode-empty-stop-sequence-00",
    "vercel-anthropic-anthropic-message-delta-input-tokens-00",
)


def bodies():
    return [e for e in exchanges("anthropic") if e.request is not None and "messages" in e.request]


def answers():
    return [e for e in exchanges("anthropic") if e.endpoint == "messages" and e.status == 200]


@cache
def decoded():
    return [(e, decode(e.body)) for e in answers()]


def test_every_good_answer_decodes_without_an_error():
    seen = decoded()
    assert len(seen) > 600
    for exchange, events in seen:
        assert not [event for event in events if isinstance(event, RunError)], exchange
        (message,) = fold(events)
        assert message.finish_reason is not None, exchange
        assert message.usage is not None and message.usage.output_tokens is not None, exchange
        assert message.origin is not None and message.origin.response_id, exchange
        assert Message.from_json(message.to_json()) == message, exchange


def test_every_answer_is_the_same_in_random_chunkings():
    check_chunkings(wire, decoded())


def test_a_sample_is_the_same_byte_by_byte():
    sample = [(e, events) for e, events in decoded() if e.path.stem in SAMPLE]
    assert len(sample) == len(SAMPLE)
    whole = [(e, events) for e, events in decoded() if len(e.body) < 4000][:40:3]
    for exchange, _events in sample + whole:
        body = exchange.body
        once = decode(body)
        if len(body) < 60_000:
            assert decode(body, range(1, len(body))) == once, exchange
        assert decode(body, range(1, len(body), 13)) == once, exchange
        assert fold(compact(once)) == fold(once), exchange


def test_every_stream_cut_early_keeps_what_came_and_says_so():
    for exchange, _ in decoded()[::9]:
        if exchange.framing != "sse":
            continue
        end = exchange.body.rindex(b"event: message_delta")
        events = decode(exchange.body[: end - 5])
        assert isinstance(events[-1], RunError), exchange
        assert type(events[-1].error).__name__ == "StreamCutError", exchange
        assert events[-1].error.partial is not None, exchange


def test_a_whole_answer_is_written_back_as_it_was():
    def told(value):
        return (
            {k: told(v) for k, v in value.items() if v is not None}
            if isinstance(value, dict)
            else value
        )

    for exchange, events in decoded():
        if exchange.framing == "json":
            assert told(wire.dump_response(events)) == told(json.loads(exchange.body)), exchange


def test_every_answer_survives_the_encoder():
    check_encoder(wire, decoded())


def test_every_request_body_survives_exactly_also_through_storage_and_loses_nothing():
    check_requests(wire, bodies(), 590)


def test_an_appended_message_changes_exactly_that():
    check_appended(wire, bodies())


def test_a_renamed_tool_changes_exactly_its_name():
    check_renamed(wire, bodies(), 300)


def test_options_hold_no_conversation_and_nothing_that_has_a_neutral_name():
    neutral = {
        "model", "messages", "system", "max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "stream", "tools",
        "tool_choice", "thinking", "output_format",
    }  # fmt: skip
    for exchange in bodies():
        request = wire.load_request(exchange.request)
        assert not neutral & set(request.options), exchange
        assert not {"format"} & set(request.options.get("output_config", ())), exchange
        assert request.options.get("output_config", {}).get("effort") not in (
            "low",
            "medium",
            "high",
        ), exchange


def test_native_repeats_no_text_that_the_neutral_fields_say():
    for exchange in bodies():
        for message in wire.load_request(exchange.request).messages:
            for piece in message.content:
                own = json.dumps((piece.native or {}).get("anthropic", {}))
                if isinstance(piece, ToolCallPart) and len(json.dumps(piece.arguments)) > 20:
                    assert json.dumps(piece.arguments) not in own, exchange
                text = getattr(piece, "text", "")
                assert len(text) < 10 or text not in own, exchange


def test_every_conversation_loads_as_messages_alone():
    for exchange in bodies():
        payload = {
            key: exchange.request[key] for key in ("system", "messages") if key in exchange.request
        }
        if payload.get("system"):
            assert wire.dump_messages(wire.load_messages(payload)) == payload, exchange


def test_results_know_their_tools_and_roles_are_right():
    named = 0
    for exchange in bodies():
        for message in wire.load_request(exchange.request).messages:
            if any(isinstance(p, ToolResultPart) and p.run_by == "agent" for p in message.content):
                assert message.role is Role.USER
                named += all(result.name for result in message.tool_results)
    assert named > 150


def sdk_message(exchange):
    """The official client's own accumulation of the same bytes."""
    content_type = "text/event-stream" if exchange.framing == "sse" else "application/json"
    response = httpx2.Response(200, headers={"content-type": content_type}, content=exchange.body)
    with httpx2.Client(transport=httpx2.MockTransport(lambda _: response)) as http:
        client = Anthropic(api_key="k", http_client=http, max_retries=0)
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
        if exchange.framing == "json":
            return client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            return stream.get_final_message()


@pytest.mark.parametrize("framing", ["sse", "json"])
@pytest.mark.slow
def test_the_official_client_reads_the_same(framing):
    """The official client cannot read `[DONE]`, which one gateway sends; that recording is left
    out."""
    compared = 0
    seen = [
        (e, events) for e, events in decoded() if e.framing == framing and b"[DONE]" not in e.body
    ]
    for exchange, events in seen if framing == "sse" else seen[::4]:
        theirs = sdk_message(exchange)
        (ours,) = fold(events)
        assert ours.text == "".join(
            block.text for block in theirs.content if block.type == "text"
        ), exchange
        calls = [(p.id, p.name, p.arguments) for p in ours.content if isinstance(p, ToolCallPart)]
        uses = [
            (b.id, b.name, b.input or {})
            for b in theirs.content
            if b.type in ("tool_use", "server_tool_use", "mcp_tool_use")
        ]
        assert calls == uses, exchange
        assert (ours.thinking or "") == "".join(
            b.thinking for b in theirs.content if b.type == "thinking"
        ), exchange
        assert wire.dump_response(events)["stop_reason"] == theirs.stop_reason, exchange
        usage = theirs.usage
        cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        assert ours.usage.input_tokens == usage.input_tokens + cached, exchange
        assert ours.usage.output_tokens == usage.output_tokens, exchange
        compared += 1
    assert compared > 100


def test_recorded_errors_have_their_classes():
    expected = {
        400: "InvalidRequestError",
        401: "AuthenticationError",
        404: "ModelNotFoundError",
        429: "RateLimitError",
    }
    seen = [e for e in exchanges("anthropic") if e.status >= 400]
    assert len(seen) > 20
    for exchange in seen:
        error = wire.load_error(exchange.status, exchange.headers, exchange.body)
        too_long = b"prompt is too long" in exchange.body
        assert type(error).__name__ == (
            "ContextLengthError" if too_long else expected[exchange.status]
        ), exchange
        told = json.loads(exchange.body)
        assert told["error"]["message"].rstrip(".") in error.message, exchange
        assert error.request_id == (exchange.headers.get("request-id") or told["request_id"]), (
            exchange
        )
        assert (error.status, error.body) == (exchange.status, exchange.body), exchange
