"""The cohere wire on recorded traffic: every response in every chunking, every request there and
back, the SDK as judge."""

from __future__ import annotations

import json
from functools import cache, partial

import cohere
import httpx
import pytest

from dragoman.event import RunError
from dragoman.fold import compact, fold
from dragoman.message import Message, Role, ThinkingPart
from dragoman.wires import cohere as wire
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

NEUTRAL = {
    "model", "messages", "max_tokens", "temperature", "p", "k", "seed", "stop_sequences", "stream", "tools", "tool_choice",
    "thinking", "response_format", "presence_penalty", "frequency_penalty",
}  # fmt: skip


def bodies():
    return [e for e in exchanges("cohere") if e.request is not None and "messages" in e.request]


@cache
def decoded():
    answers = [e for e in exchanges("cohere") if e.endpoint == "chat" and e.status == 200]
    return [(e, decode(e.body)) for e in answers]


def test_every_good_answer_decodes_without_an_error():
    seen = decoded()
    assert len(seen) > 140
    for exchange, events in seen:
        assert not [event for event in events if isinstance(event, RunError)], exchange
        (message,) = fold(events)
        assert message.usage is not None and message.usage.output_tokens is not None, exchange
        assert message.origin is not None and message.origin.response_id, exchange
        assert all(call.state == "complete" and call.id for call in message.tool_calls), exchange
        assert Message.from_json(message.to_json()) == message, exchange


def test_how_the_recorded_answers_ended():
    reasons = {
        (bool(fold(events)[0].tool_calls), fold(events)[0].finish_reason.name)
        for _, events in decoded()
    }
    assert reasons == {(True, "tool_calls"), (False, "stop"), (False, "length")}


def test_every_answer_is_the_same_in_random_chunkings():
    check_chunkings(wire, decoded())


def test_a_sample_is_the_same_byte_by_byte():
    for exchange, events in decoded()[::6]:
        step = 1 if len(exchange.body) < 30_000 else 7
        assert decode(exchange.body, range(1, len(exchange.body), step)) == events, exchange
        assert fold(compact(events)) == fold(events), exchange


def test_a_stream_cut_early_keeps_what_came_and_says_so():
    cut = 0
    for exchange, events in decoded():
        if exchange.framing == "sse":
            broken = decode(exchange.body[: exchange.body.rindex(b"message-end") + 5])
            assert type(broken[-1].error).__name__ == "StreamCutError", exchange
            assert broken[-1].error.partial.text == fold(events)[0].text, exchange
            cut += 1
    assert cut > 40


def test_a_whole_answer_is_written_back_as_it_was():
    whole = 0
    for exchange, events in decoded():
        if exchange.framing == "json":
            assert wire.dump_response(events) == json.loads(exchange.body), exchange
            whole += 1
    assert whole > 90


def test_every_answer_survives_the_encoder():
    check_encoder(wire, decoded())


def test_citations_stand_with_the_message_streamed_and_whole():
    cited = {
        e.framing: fold(events)[0]
        for e, events in decoded()
        if b'"citations":{' in e.body or b'"sources"' in e.body
    }
    assert set(cited) == {"sse", "json"}
    for message in cited.values():
        citations = message.native["cohere"]["citations"]
        assert all({"start", "end", "text", "sources"} <= set(citation) for citation in citations)


def test_a_plan_is_thinking_in_a_field_of_its_own():
    planned = [m for _, events in decoded() for m in fold(events) if m.tool_calls and m.thinking]
    assert len(planned) > 30
    for message in planned:
        assert isinstance(message.content[0], ThinkingPart)
    assert sum("tool_plan" in wire.dump_messages([message])[0] for message in planned) > 30


def test_every_request_body_survives_exactly_also_through_storage_and_loses_nothing():
    check_requests(wire, bodies(), 140)


def test_an_appended_message_changes_exactly_that():
    check_appended(wire, bodies())


def test_a_renamed_tool_changes_exactly_its_name():
    check_renamed(wire, bodies(), 150, within="function")


def test_options_hold_no_conversation_and_nothing_that_has_a_neutral_name():
    for exchange in bodies():
        assert not NEUTRAL & set(wire.load_request(exchange.request).options), exchange


def test_results_know_their_tools_and_documents_are_their_data():
    named, data = 0, 0
    for exchange in bodies():
        for message in wire.load_request(exchange.request).messages:
            for result in message.tool_results:
                assert message.role is Role.USER
                named += bool(result.name)
                data += isinstance(result.result, dict)
    assert named > 120 and data > 40


def sdk(exchange):
    """The official client's own reading of the same bytes: text, thinking, plan, calls, finish
    reason, usage."""
    kind = "text/event-stream" if exchange.framing == "sse" else "application/json"
    answer = httpx.Response(200, headers={"content-type": kind}, content=exchange.body)
    with httpx.Client(transport=httpx.MockTransport(lambda _: answer)) as http:
        client = cohere.ClientV2(api_key="k", httpx_client=http)
        asked = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        if exchange.framing == "json":
            said = client.chat(**asked)
            blocks = said.message.content or ()
            return (
                "".join(block.text for block in blocks if block.type == "text"),
                (said.message.tool_plan or "")
                + "".join(b.thinking for b in blocks if b.type == "thinking"),
                [
                    (c.id, c.function.name, c.function.arguments)
                    for c in said.message.tool_calls or ()
                ],
                (
                    said.finish_reason,
                    said.usage.tokens.input_tokens,
                    said.usage.tokens.output_tokens,
                ),
            )
        text, thinking, calls, end = "", "", {}, None
        for event in client.chat_stream(**asked):
            if event.type in ("content-start", "content-delta"):
                text += event.delta.message.content.text or ""
                thinking += event.delta.message.content.thinking or ""
            elif event.type == "tool-plan-delta":
                thinking += event.delta.message.tool_plan
            elif event.type == "tool-call-start":
                call = event.delta.message.tool_calls
                calls[event.index] = [call.id, call.function.name, call.function.arguments]
            elif event.type == "tool-call-delta":
                calls[event.index][2] += event.delta.message.tool_calls.function.arguments
            elif event.type == "message-end":
                tokens = event.delta.usage.tokens
                end = (event.delta.finish_reason, tokens.input_tokens, tokens.output_tokens)
        return text, thinking, [tuple(call) for call in calls.values()], end


@pytest.mark.parametrize("framing", ["sse", "json"])
@pytest.mark.slow
def test_the_official_client_reads_the_same(framing):
    compared = 0
    for exchange, events in [pair for pair in decoded() if pair[0].framing == framing]:
        (ours,) = fold(events)
        text, thinking, calls, end = sdk(exchange)
        assert (ours.text, ours.thinking or "") == (text, thinking), exchange
        assert [(c.id, c.name, c.arguments) for c in ours.tool_calls] == [
            (call_id, name, json.loads(arguments or "{}") or {})
            for call_id, name, arguments in calls
        ], exchange
        told = wire.dump_response(events)
        tokens = told["usage"]["tokens"]
        assert (told["finish_reason"], tokens["input_tokens"], tokens["output_tokens"]) == end, (
            exchange
        )
        compared += 1
    assert compared > 40


def test_recorded_errors_have_their_classes():
    kinds = {
        400: "InvalidRequestError",
        401: "AuthenticationError",
        404: "ModelNotFoundError",
        422: "InvalidRequestError",
    }
    seen = [e for e in exchanges("cohere") if e.status >= 400]
    assert len(seen) > 10
    for exchange in seen:
        error = wire.load_error(exchange.status, exchange.headers, exchange.body)
        told = json.loads(exchange.body)
        too_long = "too many tokens" in told["message"]
        assert type(error).__name__ == (
            "ContextLengthError" if too_long else kinds[exchange.status]
        ), exchange
        assert told["message"].rstrip(".") in error.message, exchange
        assert (error.status, error.body) == (exchange.status, exchange.body), exchange
        assert "id" not in told or error.request_id == told["id"], exchange
