"""The Interactions wire on recorded traffic: every answer in every chunking, every request there
and back, the official library's types as judge."""

from __future__ import annotations

import json
from functools import cache, partial

import pytest
from google.genai._gaos.types.interactions import Interaction, InteractionSSEEvent
from pydantic import TypeAdapter

from dragoman.event import RunError
from dragoman.fold import compact, fold
from dragoman.message import FinishReason, Message, TextPart
from dragoman.wires import google_interactions as wire
from support.traffic import decode as decode_by
from support.traffic import exchanges
from support.traffic_checks import check_chunkings, check_encoder, check_renamed, check_requests

decode = partial(decode_by, wire)


def bodies():
    return [e for e in exchanges("google_interactions") if e.request is not None]


@cache
def decoded():
    return [(e, decode(e.body)) for e in exchanges("google_interactions")]


def test_every_answer_decodes_without_an_error():
    assert len(decoded()) == 22
    for exchange, events in decoded():
        assert not [event for event in events if isinstance(event, RunError)], exchange
        (message,) = fold(events)
        assert message.usage is not None, exchange
        assert (
            message.usage.total_tokens == message.usage.input_tokens + message.usage.output_tokens
        )
        assert message.origin is not None and message.origin.served_model, exchange
        assert all(call.state == "complete" and call.id for call in message.tool_calls), exchange
        assert message.finish_reason in (FinishReason.stop, FinishReason.tool_calls)
        assert bool(message.tool_calls) == (message.finish_reason is FinishReason.tool_calls)
        assert Message.from_json(message.to_json()) == message, exchange


def test_every_answer_is_the_same_wherever_its_bytes_are_cut():
    check_chunkings(wire, decoded())
    for exchange, events in decoded():
        cuts = range(1, len(exchange.body), 7)
        assert decode(exchange.body, cuts) == events, exchange
        assert fold(compact(events)) == fold(events), exchange


def test_a_stream_cut_early_keeps_what_came_and_says_so():
    streams = [(e, events) for e, events in decoded() if e.framing == "sse"]
    assert len(streams) == 9
    for exchange, events in streams:
        broken = decode(exchange.body[: exchange.body.rindex(b"interaction.completed") - 30])
        assert type(broken[-1].error).__name__ == "StreamCutError", exchange
        assert broken[-1].error.partial.text == fold(events)[0].text, exchange


def test_a_whole_answer_is_written_back_as_it_was():
    whole = [(e, events) for e, events in decoded() if e.framing == "json"]
    assert len(whole) == 13
    for exchange, events in whole:
        assert wire.dump_response(events) == json.loads(exchange.body), exchange


def test_every_answer_survives_the_encoder():
    check_encoder(wire, decoded())


def test_every_request_survives_exactly_and_loses_nothing():
    check_requests(wire, bodies(), 10)
    check_renamed(wire, bodies(), 1)


def test_the_library_reads_what_is_written():
    one_event = TypeAdapter(InteractionSSEEvent)
    for exchange, events in decoded():
        whole = wire.dump_response(events)
        read = Interaction.model_validate(whole)
        assert [step.type for step in read.steps or ()] == [each["type"] for each in whole["steps"]]
        encoder = wire.encoder()
        for event in events:
            for data in encoder.objects(event):
                if data.get("step", {}).get("type", "").startswith("google_search"):
                    continue  # what it holds follows in a delta, as recorded
                told = one_event.validate_python(dict(data))
                assert told.event_type == data["event_type"], exchange


def test_sources_stand_in_the_text_that_they_are_for():
    cited = [fold(events)[0] for e, events in decoded() if b"url_citation" in e.body]
    assert len(cited) == 2
    for message in cited:
        (text,) = [part for part in message.content if isinstance(part, TextPart)]
        assert len(text.citations) > 10
        for citation in text.citations:
            assert citation.url and citation.title
            assert 0 <= citation.start < citation.end <= len(text.text)
            # A span begins with a word, and ends with one or where a sentence does.
            before, after = text.text[citation.start - 1], text.text[citation.end :][:1]
            assert not before.isalnum() and not after.isalnum()


@pytest.mark.parametrize("number", range(0, 22, 3))
def test_an_answer_goes_back_as_its_provider_gave_it(number):
    """In a request that is stateless: each step, with its signature."""
    exchange, events = decoded()[number]
    if exchange.framing == "json":
        steps = json.loads(exchange.body)["steps"]
        assert wire.dump_messages(fold(events)) == {"input": steps}
