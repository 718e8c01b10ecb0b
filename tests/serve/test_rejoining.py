"""A client that keeps of an answer its texts and calls alone: what the provider signed is there
again, in its own conversation and no other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from dragoman import Message, ToolCallPart, ToolResultPart
from dragoman.fold import fold
from dragoman.message import ThinkingPart
from dragoman.request import ModelRequest, ToolSpec
from dragoman.serve.store.memory_answers import MemoryAnswers
from support.gateway import MODEL, Ends, answered, gated
from support.gateway_cases import SIGNED
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

WIRES = list(PROVIDERS)
TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}),)
QUICK = [(client, list(SIGNED)[place % len(SIGNED)]) for place, client in enumerate(WIRES[::2])]
pairs = pytest.mark.parametrize(
    ("client", "upstream"),
    [
        pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow)
        for pair in product(WIRES, SIGNED)
        if pair[0] != pair[1]  # a request of the provider's own API is forwarded as it was written
    ],
)


def at(
    client: str, upstream: str, *, numbered: bool = False, store: MemoryAnswers | None = None
) -> Ends:
    """A gateway whose provider signs each answer anew, calls a tool twice and then answers with
    words that are always the same. `numbered`: it gives its calls the same ids in each
    conversation, as many do."""
    made = iter(range(1000))

    def reply(asked: ModelRequest) -> Message:
        number = next(made)
        field = list(SIGNED[upstream])[-1]
        seal = ThinkingPart("Hm.", {upstream: {**SIGNED[upstream], field: seal_of(number)}})
        rounds = sum(bool(message.tool_results) for message in asked.messages)
        if asked.messages[-1].text.startswith("Talk"):
            return Message.model(seal, "Yes.")
        id_ = f"call_{rounds}" if numbered else f"call_{number}"
        return Message.model(
            seal, *([ToolCallPart(id_, "look", {"at": "home"})] if rounds < 2 else ["Yes."])
        )

    return gated(client, upstream, reply, store=store or "memory:")


def seal_of(number: int) -> str:
    return f"c2VhbA{number:04d}=="


async def ask(
    there: Ends, talk: Sequence[Message], *, stream: bool = False
) -> tuple[Message, list[str]]:
    """The answer, as a client keeps it that knows texts and calls alone, and the seals that the
    provider got."""
    [message] = fold(
        await answered(there.client, ModelRequest(MODEL, tuple(talk), TOOLS, stream=stream))
    )
    parts = [part if isinstance(part, str) else _bare(part) for part in message.parts]
    body = json.dumps(there.upstream.bodies[-1])
    if linked := there.upstream.bodies[-1].get("previous_response_id"):
        return Message.model(*parts), [linked]
    return Message.model(*parts), [
        seal for number in range(100) if (seal := seal_of(number)) in body
    ]


def _bare(part: Any) -> Any:
    if isinstance(part, ToolCallPart):
        return ToolCallPart(part.id, part.name, part.arguments)
    return part.text


def result(message: Message, text: str = "done") -> Message:
    return Message.user(*[ToolResultPart(call.id, call.name, text) for call in message.tool_calls])


@pairs
@pytest.mark.parametrize("stream", [False, True])
async def test_signatures_are_there_again_after_two_rounds_of_tools(
    client: str, upstream: str, stream: bool
) -> None:
    there = at(client, upstream)
    talk = [Message.user("Look.")]
    for number in range(2):
        message, seals = await ask(there, talk, stream=stream)
        assert len(seals) == (
            number if "previous_response_id" not in there.upstream.bodies[-1] else 1
        )
        talk += [message, result(message)]
    last, seals = await ask(there, talk, stream=stream)
    assert last.text == "Yes."
    assert seals == [seal_of(0), seal_of(1)] or "previous_response_id" in there.upstream.bodies[-1]


@pytest.mark.parametrize("wire", list(SIGNED))
async def test_a_client_of_the_providers_own_api_that_drops_signatures_gets_none_added(
    wire: str,
) -> None:
    there = at(wire, wire)
    talk = [Message.user("Look.")]
    for _ in range(2):
        message, seals = await ask(there, talk)
        assert seals == []
        talk += [message, result(message)]


@pairs
async def test_the_last_answer_is_made_again_and_a_conversation_goes_on_twice(
    client: str, upstream: str
) -> None:
    """The seals are those of the branch, never those of the other answer."""
    there = at(client, upstream)
    talk = [Message.user("Talk.")]
    first, _ = await ask(there, talk)
    second, seals = await ask(there, [*talk, first, Message.user("Talk of a.")])
    assert len(seals) == 1
    a = seals
    _, seals = await ask(there, [*talk, first, Message.user("Talk of a.")])  # again
    assert seals == a
    _, seals = await ask(there, [*talk, first, Message.user("Talk of b.")])  # elsewhere
    assert seals == a
    _, seals = await ask(
        there, [*talk, first, Message.user("Talk of a."), second, Message.user("Talk on.")]
    )
    assert len(seals) == (1 if "previous_response_id" in there.upstream.bodies[-1] else 2)


@pairs
async def test_parallel_conversations_of_equal_words_and_ids_stay_apart(
    client: str, upstream: str
) -> None:
    there = at(client, upstream, numbered=True)
    talks = [[Message.user(f"Look {name}.")] for name in "abc"]
    seen: list[list[str]] = [[], [], []]
    for _ in range(3):
        for talk, seals in zip(talks, seen, strict=True):
            message, seals[:] = await ask(there, talk)
            talk += [
                message,
                result(message),
                *([] if message.tool_calls else [Message.user("Talk?")]),
            ]
            talk[:] = [each for each in talk if each.content]
    if all("previous_response_id" not in body for body in there.upstream.bodies):
        assert seen == [[seal_of(n), seal_of(n + 3)] for n in range(3)]
    assert len({tuple(seals) for seals in seen}) == 3


@pairs
async def test_what_is_edited_loses_its_seal_and_is_sent_as_the_client_has_it(
    client: str, upstream: str
) -> None:
    there = at(client, upstream)
    talk = [Message.user("Talk.")]
    await ask(there, talk)
    _, seals = await ask(there, [*talk, Message.model("No."), Message.user("Talk on.")])
    assert seals == []
    assert '"No."' in json.dumps(there.upstream.bodies[-1])
    assert '"Yes."' not in json.dumps(there.upstream.bodies[-1])


@pairs
async def test_a_client_that_sends_the_end_of_its_conversation(client: str, upstream: str) -> None:
    """What it left out, perhaps since it was too long, is not brought back; what it sends arrives
    once."""
    there = at(client, upstream)
    talk = [Message.user("Talk.")]
    for number in range(2):
        message, _ = await ask(there, talk)
        talk += [message, Message.user(f"Talk {number}.")]
    await ask(there, talk[2:])
    body = json.dumps(there.upstream.bodies[-1])
    assert [body.count(f'"Talk{end}"') for end in (".", " 0.", " 1.")] == [0, 1, 1]
    talk = [*talk[:-1], Message.user("Look.")]
    start = len(talk) - 1
    for _ in range(2):
        message, _ = await ask(there, talk)
        talk += [message, result(message)]
    await ask(there, talk[start:])
    body = json.dumps(there.upstream.bodies[-1])
    assert [body.count(text) for text in ('"Look."', '"Talk."', '"Talk 0."')] == [1, 0, 0]
    assert "previous_response_id" not in body


@pairs
async def test_what_the_store_has_no_more_is_there_as_the_client_sends_it(
    client: str, upstream: str
) -> None:
    """A store that is full, or pruned, has the last answers of a long conversation alone."""
    store = MemoryAnswers(most=2)
    there = at(client, upstream, store=store)
    talk = [Message.user("Talk.")]
    for number in range(4):
        message, _ = await ask(there, talk)
        talk += [message, Message.user(f"Talk {number}.")]
        body = json.dumps(there.upstream.bodies[-1])
        if "previous_response_id" not in body:
            texts = ["Talk.", *[f"Talk {each}." for each in range(number)]]
            assert [body.count(f'"{text}"') for text in texts] == [1] * len(texts)
            assert body.count('"Yes."') == number
