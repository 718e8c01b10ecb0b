"""The ollama wire on recorded traffic: every response in every chunking, every request there and
back, the SDK as judge."""

from __future__ import annotations

import json
from functools import cache, partial

import httpx
import ollama
import pytest

from dragoman.event import RunError
from dragoman.fold import compact, fold
from dragoman.message import Message, Role, ThinkingPart
from dragoman.wires import ollama as wire
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

SETTINGS = {
    "temperature",
    "num_predict",
    "top_p",
    "top_k",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
}


def bodies():
    return [
        e for e in exchanges("ollama_native") if e.request is not None and "messages" in e.request
    ]


@cache
def decoded():
    answers = [
        e
        for e in exchanges("ollama_native")
        if e.endpoint in ("chat", "generate") and e.status == 200
    ]
    return [(e, decode(e.body)) for e in answers]


def test_every_good_answer_decodes_without_an_error():
    seen = decoded()
    assert len(seen) > 50
    for exchange, events in seen:
        assert not [event for event in events if isinstance(event, RunError)], exchange
        (message,) = fold(events)
        assert message.usage is not None and message.usage.output_tokens, exchange
        assert message.origin is not None and message.origin.served_model, exchange
        assert message.text or message.tool_calls or message.thinking, exchange
        assert Message.from_json(message.to_json()) == message, exchange


def test_a_stop_with_calls_asks_for_their_results():
    reasons = {
        (bool(fold(events)[0].tool_calls), fold(events)[0].finish_reason.name)
        for _, events in decoded()
    }
    assert reasons == {
        (True, "tool_calls"),
        (False, "stop"),
        (False, "length"),
        (False, "unspecified"),
    }


def test_every_answer_is_the_same_in_random_chunkings():
    check_chunkings(wire, decoded())


def test_a_sample_is_the_same_byte_by_byte():
    for exchange, events in decoded()[::2]:
        if len(exchange.body) < 40_000:
            assert decode(exchange.body, range(1, len(exchange.body))) == events, exchange
        assert fold(compact(events)) == fold(events), exchange


def test_a_stream_cut_early_keeps_what_came_and_says_so():
    cut = 0
    for exchange, events in decoded():
        if exchange.framing == "ndjson":
            broken = decode(exchange.body[: exchange.body.rstrip().rindex(b"\n") + 20])
            assert type(broken[-1].error).__name__ == "StreamCutError", exchange
            assert broken[-1].error.partial.text == fold(events)[0].text, exchange
            cut += 1
    assert cut > 20


def test_a_whole_answer_is_written_back_as_it_was():
    whole = 0
    for exchange, events in decoded():
        if exchange.framing == "json":
            assert wire.dump_response(events) == json.loads(exchange.body), exchange
            whole += 1
    assert whole > 30


def test_every_answer_survives_the_encoder():
    check_encoder(wire, decoded())


def test_every_request_body_survives_exactly_also_through_storage_and_loses_nothing():
    check_requests(wire, bodies(), 40)


def test_an_appended_message_changes_exactly_that():
    check_appended(wire, bodies())


def test_a_renamed_tool_changes_exactly_its_name():
    check_renamed(wire, bodies(), 20, within="function")


def test_options_hold_no_conversation_and_nothing_that_has_a_neutral_name():
    for exchange in bodies():
        options = wire.load_request(exchange.request).options
        assert not {"model", "messages", "tools", "format", "stream", "think"} & set(options), (
            exchange
        )
        assert not SETTINGS & set(options.get("options", ())), exchange


def test_d132_calls_and_results_are_paired_though_the_wire_has_no_ids():
    paired = 0
    for exchange in bodies():
        calls = {}
        for message in wire.load_request(exchange.request).messages:
            calls.update({call.id: call for call in message.tool_calls})
            for result in message.tool_results:
                assert message.role is Role.USER
                assert calls[result.id].name == result.name, exchange
                paired += 1
    assert paired > 10


def test_thinking_stands_in_its_place():
    thinking = [
        part
        for exchange in bodies()
        for message in wire.load_request(exchange.request).messages
        for part in message.content
        if isinstance(part, ThinkingPart)
    ]
    assert len(thinking) >= 5


def test_a_prompt_of_generate_is_a_conversation_and_is_written_as_it_was():
    (generate,) = [e for e in exchanges("ollama_native") if e.endpoint == "generate"]
    request = wire.load_request(generate.request)
    assert request.messages == (Message.user(generate.request["prompt"]),)
    http = wire.dump_http(request)
    assert (http.path, http.body) == ("/api/generate", generate.request)
    lines = [json.loads(line) for line in generate.body.splitlines()]
    encoder = wire.encoder(path="/api/generate")
    written = b"".join(map(encoder.feed, decode(generate.body))) + encoder.close()
    answers = [json.loads(line) for line in written.splitlines()]
    assert "".join(answer["response"] for answer in answers) == "".join(
        line["response"] for line in lines
    )
    assert answers[-1]["context"] == lines[-1]["context"] and answers[-1].keys() == lines[-1].keys()


@pytest.mark.slow
def test_the_official_client_reads_the_same():
    compared = 0
    for exchange, events in decoded():
        if exchange.endpoint != "chat":
            continue
        (ours,) = fold(events)
        client = ollama.Client()
        client._client = httpx.Client(
            base_url="http://x",
            transport=httpx.MockTransport(
                lambda _, body=exchange.body: httpx.Response(200, content=body)
            ),
        )
        request = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        chunks = (
            list(client.chat(**request, stream=True))
            if exchange.framing == "ndjson"
            else [client.chat(**request)]
        )
        assert ours.text == "".join(chunk.message.content or "" for chunk in chunks), exchange
        assert (ours.thinking or "") == "".join(chunk.message.thinking or "" for chunk in chunks), (
            exchange
        )
        calls = [call.function for chunk in chunks for call in chunk.message.tool_calls or ()]
        assert [(c.name, c.arguments) for c in ours.tool_calls] == [
            (c.name, dict(c.arguments)) for c in calls
        ]
        last = chunks[-1]
        assert (ours.usage.input_tokens, ours.usage.output_tokens) == (
            last.prompt_eval_count,
            last.eval_count,
        )
        assert wire.dump_response(events)["done_reason"] == last.done_reason, exchange
        compared += 1
    assert compared > 50
