"""The dialects of the Chat family against recorded traffic: every response in every chunking, every
request there and back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.errors import HistoryError
from dragoman.event import Event, RunError
from dragoman.fold import compact, fold
from dragoman.message import FinishReason, Message
from dragoman.request import ModelRequest, Settings, ToolSpec
from support.traffic import Exchange, exchanges


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded of a dialect."""

    name: str
    folders: tuple[str, ...]
    neutral: set[str]
    """Fields of a body that are no options."""
    errors: frozenset[str] = frozenset()
    """Answers that hold an error, though their status is 200."""
    features: tuple[bytes, ...]
    """What tells answers apart, of which one each is read byte by byte."""
    least: int
    """Answers, and requests."""
    samples: int
    stride: int = 1
    """Of how many exchanges one is damaged."""
    refused: int
    """Requests that damage makes unreadable, at most."""
    cut: int
    """Calls that are not complete."""

    @property
    def wire(self) -> wires.Wire:
        return wires.get(self.name)

    def answers(self) -> Iterator[Exchange]:
        return (
            one for one in exchanges(*self.folders) if one.endpoint == "chat" and one.status == 200
        )

    def asked(self) -> Iterator[Exchange]:
        return (
            one
            for one in exchanges(*self.folders)
            if one.endpoint == "chat" and isinstance(one.request, dict)
        )

    def decode(self, pieces: list[bytes]) -> list[Event]:
        decoder = self.wire.decoder()
        events = [event for piece in pieces for event in decoder.feed(piece)]
        return compact(events + decoder.close())


RECORDED = (
    Recorded(
        name="openai_chat",
        folders=("openai_chat", "openai_compatible", "openrouter", "together", "ollama_openai"),
        neutral={"messages", "tools", "functions", "stream", *Settings.__struct_fields__},
        errors=frozenset(
            {"openai_compatible/pydantic-test-groq-test-tool-use-failed-error-streaming-00"}
        ),
        features=(b"tool_calls", b'"reasoning', b"refusal", b"\r\n", b": ", b"logprobs"),
        least=1000,
        samples=12,
        stride=4,
        refused=120,
        cut=20,
    ),
    Recorded(
        name="mistral",
        folders=("mistral",),
        neutral={
            *("messages", "tools", "stream", "random_seed", "reasoning_effort", "response_format"),
            *Settings.__struct_fields__,
        },
        features=(
            b"tool_calls",
            b'"thinking"',
            b"closed",
            b'"index":1',
            b'"p":',
            b"length",
            b"logprobs",
        ),
        least=140,
        samples=5,
        refused=40,
        cut=3,
    ),
)


@pytest.fixture(params=RECORDED, ids=lambda one: one.name)
def of(request: pytest.FixtureRequest) -> Recorded:
    return request.param


def cut(data: bytes, at: list[int]) -> list[bytes]:
    ends = [0, *at, len(data)]
    return [data[a:b] for a, b in pairwise(ends)]


def comparable(events: list[Event]) -> list[Any]:
    return [(str(e.error), e.error.body) if isinstance(e, RunError) else e for e in events]


def test_every_answer_is_read_whole_and_without_an_error(of: Recorded) -> None:
    seen = 0
    for exchange in of.answers():
        events = of.wire.load_response(exchange.body)
        errors = [event.error for event in events if isinstance(event, RunError)]
        assert bool(errors) == (exchange.id in of.errors), (exchange, errors)
        [message] = fold(events)
        assert message.finish_reason is not None, exchange
        assert message.origin is not None, exchange
        seen += 1
    assert seen > of.least


def test_every_answer_is_the_same_in_random_chunkings(of: Recorded) -> None:
    dice = random.Random(1)
    for exchange in of.answers():
        body = exchange.body
        whole = of.decode([body])
        at = sorted(dice.sample(range(len(body)), min(len(body), dice.randint(1, 12))))
        assert comparable(of.decode(cut(body, at))) == comparable(whole), (exchange, at)


def test_a_sample_is_the_same_byte_by_byte(of: Recorded) -> None:
    sample: dict[Any, Exchange] = {}
    for exchange in of.answers():
        if exchange.framing == "sse" and len(exchange.body) < 30_000:
            body = exchange.body
            features = (
                *(word in body for word in of.features),
                any(byte > 127 for byte in body),
            )
            sample.setdefault(features, exchange)
    assert len(sample) > of.samples
    for exchange in sample.values():
        pieces = [bytes([byte]) for byte in exchange.body]
        assert comparable(of.decode(pieces)) == comparable(of.decode([exchange.body])), exchange


def test_every_stream_without_its_end_is_told_as_cut(of: Recorded) -> None:
    for exchange in of.answers():
        if exchange.framing == "sse" and exchange.id not in of.errors:
            ending = exchange.body.rfind(b'"finish_reason":"')
            start = exchange.body.rfind(b"data:", 0, exchange.body.find(b'"finish_reason":"'))
            if ending > 0 and start > 0:
                events = of.wire.load_response(exchange.body[:start])
                assert type(events[-1]).__name__ == "RunError", exchange
                assert type(events[-1].error).__name__ == "StreamCutError", exchange


def mutated(value: Any, dice: random.Random) -> Any:
    """The same JSON with some of it missing or of another kind."""
    if dice.random() < 0.04:
        return dice.choice([None, 0, True, "", "x", [], {}, [None], [[]], [{}], {"a": 1}])
    if isinstance(value, dict):
        return {key: mutated(inner, dice) for key, inner in value.items() if dice.random() > 0.01}
    return [mutated(inner, dice) for inner in value] if isinstance(value, list) else value


def test_no_damaged_answer_raises_and_what_is_read_can_be_written(of: Recorded) -> None:
    dice = random.Random(2)
    for number, exchange in enumerate(of.answers()):
        if number % of.stride or len(exchange.body) > 20_000:
            continue
        lines = [exchange.body] if exchange.framing == "json" else exchange.body.split(b"\n\n")
        damaged = [
            prefix
            + msgspec.json.encode(mutated(msgspec.json.decode(line.removeprefix(prefix)), dice))
            if line.startswith(prefix + b"{") and dice.random() < 0.5
            else line
            for prefix in [b"" if exchange.framing == "json" else b"data: "]
            for line in lines
        ]
        events = of.wire.load_response(b"\n\n".join(damaged))
        assert events, exchange
        of.wire.dump_response(events)
        for message in fold(events):
            assert Message.from_json(message.to_json()) == message
            of.wire.dump_messages([message])


def test_every_damaged_request_is_dumped_as_it_was_or_refused(of: Recorded) -> None:
    dice = random.Random(3)
    refused = 0
    for number, exchange in enumerate(of.asked()):
        body = mutated(exchange.request, dice)
        if number % of.stride or not isinstance(body, dict):
            continue
        try:
            request = of.wire.load_request(body)
        except HistoryError:
            refused += 1
            continue
        assert of.wire.dump_request(request) == body, exchange
    assert refused < of.refused


def test_every_request_is_dumped_as_it_was(of: Recorded) -> None:
    seen = 0
    for exchange in of.asked():
        request = of.wire.load_request(exchange.request)
        assert of.wire.dump_request(request) == exchange.request, exchange
        assert not of.neutral & request.options.keys(), exchange
        seen += 1
    assert seen > of.least


def test_every_conversation_survives_its_stored_form(of: Recorded) -> None:
    for exchange in of.asked():
        request = of.wire.load_request(exchange.request)
        stored = [Message.from_json(message.to_json()) for message in request.messages]
        assert stored == list(request.messages), exchange
        assert of.wire.dump_messages(stored) == exchange.request["messages"], exchange
        again = msgspec.json.decode(msgspec.json.encode(request), type=ModelRequest)
        assert of.wire.dump_request(again) == exchange.request, exchange


def test_one_more_message_changes_the_body_by_that_message(of: Recorded) -> None:
    for exchange in of.asked():
        request = of.wire.load_request(exchange.request)
        longer = request.replace(messages=(*request.messages, Message.user("And now?")))
        expected = {**exchange.request}
        expected["messages"] = [*expected["messages"], {"role": "user", "content": "And now?"}]
        assert of.wire.dump_request(longer) == expected, exchange


def test_a_tool_by_another_name_changes_the_body_by_that_name(of: Recorded) -> None:
    for exchange in of.asked():
        request = of.wire.load_request(exchange.request)
        if not request.tools or not isinstance(request.tools[0], ToolSpec):
            continue
        renamed = msgspec.structs.replace(request.tools[0], name="another")
        dumped = of.wire.dump_request(request.replace(tools=(renamed, *request.tools[1:])))
        field = "tools" if "tools" in exchange.request else "functions"
        tool = dumped[field][0].get("function", dumped[field][0])
        assert tool["name"] == "another"
        tool["name"] = request.tools[0].name
        assert dumped == exchange.request, exchange


def test_no_call_that_was_cut_or_invalid_looks_complete(of: Recorded) -> None:
    seen = 0
    for exchange in of.answers():
        for message in fold(of.wire.load_response(exchange.body)):
            for call in message.tool_calls:
                if call.state != "complete":
                    seen += 1
                    assert call.arguments == {}, exchange
                elif message.finish_reason is FinishReason.length:
                    assert call.raw is None or msgspec.json.decode(call.raw) == call.arguments, (
                        exchange
                    )
    assert seen > of.cut
