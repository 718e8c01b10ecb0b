"""Every wire as the client of a gateway before every wire as the provider: both ends have the same,
but for the table of losses.

The quick half is one provider for each client; all pairs are marked slow.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from dragoman import Message, ToolCallPart, ToolResultPart
from dragoman.errors import (
    ContextLengthError,
    DragomanError,
    InvalidRequestError,
    OverloadedError,
    RateLimitError,
)
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.message import DataPart, FinishReason, Role
from dragoman.request import ModelRequest, ToolSpec
from support.gateway import MODEL, answered, gated
from support.gateway_cases import ANSWERS, REFUSALS, SIGNED, said, sayable, thought
from support.law import facts
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

WIRES = list(PROVIDERS)
QUICK = [(client, WIRES[(place * 3 + 2) % len(WIRES)]) for place, client in enumerate(WIRES)]
PAIRS = [
    pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow) for pair in product(WIRES, WIRES)
]  # fmt: skip
pairs = pytest.mark.parametrize(("client", "upstream"), PAIRS)
TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}),)
UNSTORED: dict[str, Any] = {
    "openai_responses": {"options": {"store": False}, "wire": "openai_responses"}
}
"""So that the provider holds nothing, and all is sent."""
WITHOUT_ORDER = ("ollama",)
PNG = b"\x89PNG\r\n\x1a\n picture"


def request(*messages: Message, stream: bool = False) -> ModelRequest:
    return ModelRequest(MODEL, messages or (Message.user("Hi."),), TOOLS, stream=stream)


@pairs
async def test_answers_are_the_same_at_both_ends(client: str, upstream: str) -> None:
    for (name, make), stream in product(ANSWERS.items(), (False, True)):
        there = gated(client, upstream, lambda _, make=make: make(upstream))
        seen = await answered(there.client, request(stream=stream))
        was = await answered(there.direct, request(stream=stream).replace(model=""))
        assert said(seen) == said(was), (name, stream)
        [message], [original] = fold(seen), fold(was)
        assert message.finish_reason is sayable(client, original) or client == upstream, (
            name,
            stream,
        )
        if client == upstream:
            assert message.finish_reason is original.finish_reason, (name, stream)
        # Anthropic's clients must name a most, which may be more than the other model answers.
        told = there.transport.headers[0].get("dragoman-loss")
        assert told is None or (client == "anthropic" and told == 'setting;which="max_tokens"'), (
            name
        )


@pairs
async def test_a_request_that_is_refused_is_so_for_the_client(client: str, upstream: str) -> None:
    for error, stream in product(REFUSALS, (False, True)):
        there = gated(client, upstream, lambda _, error=error: error)
        [seen] = await answered(there.client, request(stream=stream))
        [was] = await answered(there.direct, request(stream=stream).replace(model=""))
        assert isinstance(seen, RunError)
        assert isinstance(was, RunError)
        assert kind(seen.error) is kind(was.error), (error, stream)
        assert there.transport.statuses[0] >= 400


def kind(error: DragomanError) -> type:
    """The class, as far as all wires have a word for it: a text that is too long is a wrong request
    for some."""
    kinds = (RateLimitError, OverloadedError, ContextLengthError, InvalidRequestError)
    return next((each for each in kinds if isinstance(error, each)), type(error))


@pairs
async def test_an_error_in_the_middle_comes_after_what_was_said(client: str, upstream: str) -> None:
    def breaks(_: ModelRequest) -> Any:
        yield "Half an ans"
        raise OverloadedError("busy")

    there = gated(client, upstream, breaks)
    *_, last = seen = await answered(there.client, request(stream=True))
    assert isinstance(last, RunError)
    assert fold(seen)[0].text == "Half an ans"
    whole = await answered(there.client, request())
    assert [type(each) for each in whole] == [RunError]


@pairs
async def test_what_a_client_sends_arrives(client: str, upstream: str) -> None:
    """A picture by its bytes and by its URL, a system text, two rounds of tools that the client
    ran."""

    def reply(asked: ModelRequest) -> Message:
        n = sum(message.role is Role.MODEL for message in asked.messages)
        parts = (
            [ToolCallPart(f"call_{n}_{m}", "look", {"at": m}) for m in ("a", "b")] if n < 2 else []
        )
        return Message.model(thought(upstream), f"Answer {n}.", *parts)

    there = gated(client, upstream, reply)
    for stream in (False, True):
        for model, name in ((there.client, MODEL), (there.direct, "")):
            picture = DataPart(PNG, "image/png")
            talk = [Message.system("Be brief."), Message.user("Look.", picture)]
            for _ in range(3):
                asked = request(*talk, stream=stream).replace(model=name)
                [message] = fold(await answered(model, asked))
                results = [
                    ToolResultPart(each.id, each.name, f"done {each.id}")
                    for each in message.tool_calls
                ]
                talk += [message, *([Message.user(*results)] if results else [])]
        asked = there.upstream.requests[-6:]
        for through, direct in zip(asked[:3], asked[3:], strict=True):
            assert conversation(through, client) == conversation(direct, client)


def conversation(request: ModelRequest, client: str) -> list[Any]:
    """What a provider was told, without what it signed and thinking, which only its own wire brings
    back by itself. The table of losses: some clients cannot say whether a picture stands before or
    behind a text."""
    left_out = ("signed", "thinking")
    found = [fact for fact in facts(list(request.messages)) if fact.says[0] not in left_out]
    if client in WITHOUT_ORDER:
        found.sort(key=lambda fact: (fact.message, fact.says[0]))
    return [fact.says for fact in found]


@pytest.mark.parametrize("client", WIRES)
@pytest.mark.parametrize(
    ("state", "raw", "reason"),
    [("cut", '{"to": "Bo', FinishReason.length), ("invalid", '{"to": Bo}', None)],
)
async def test_no_client_runs_a_call_whose_arguments_are_not_whole(
    client: str, state: Any, raw: str, reason: FinishReason | None
) -> None:
    """Where arguments are an object there is no room for half of one: the call is left out, or
    holds what came under a name."""
    whole, half = (
        ToolCallPart("c1", "pay", {"to": "Al"}),
        ToolCallPart("c2", "pay", raw=raw, state=state),
    )
    there = gated(
        client, "openai_chat", lambda _: Message.model(whole, half).replace(finish_reason=reason)
    )
    for stream in (False, True):
        [message] = fold(await answered(there.client, request(stream=stream)))
        assert message.tool_calls[0].arguments == {"to": "Al"}
        runnable = [call for call in message.tool_calls[1:] if call.state == "complete"]
        assert [call.arguments for call in runnable] in ([], [{"INVALID_JSON": raw}])
        if client == "google" and state == "invalid":
            assert b'"MALFORMED_FUNCTION_CALL"' in there.transport.bodies[-1]


@pytest.mark.parametrize("wire", SIGNED)
async def test_what_a_provider_signed_comes_back_byte_exact_over_two_rounds(wire: str) -> None:

    def reply(asked: ModelRequest) -> Message:
        n = len(asked.messages)
        return Message.model(
            thought(wire), f"Answer {n}.", ToolCallPart(f"call_{n}", "look", {"at": "home"})
        )

    for stream in (False, True):
        there = gated(wire, wire, reply)
        talk = [Message.user("Look.")]
        for _ in range(3):
            asked = request(*talk, stream=stream).replace(**UNSTORED.get(wire, {}))
            [message] = fold(await answered(there.client, asked))
            talk += [
                message,
                Message.user(ToolResultPart(message.tool_calls[0].id, "look", "done")),
            ]
        text = json.dumps(there.upstream.bodies[-1])
        if (
            "previous_response_id" in there.upstream.bodies[-1]
        ):  # the provider has it, and is asked to go on from there
            continue
        [seal] = [each for name, each in SIGNED[wire].items() if name != "id"]
        assert text.count(json.dumps(seal)) == 2
