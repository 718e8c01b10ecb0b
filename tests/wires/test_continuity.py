"""A conversation that goes on: what a provider signed goes back to it byte-exact and in place, and
to nobody else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Message, Tool, tool
from dragoman.codec.fit_ids import fit_names
from dragoman.transport import Exchange, Player

pytestmark = pytest.mark.anyio

SIGNED = {"type": "thinking", "thinking": "Let me look.", "signature": "EqQBCkYIBxgCKkD+é/=="}
CALLING = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [
        SIGNED,
        {"type": "redacted_thinking", "data": "opaque=="},
        {"type": "text", "text": "I will look."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "here"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "output_tokens": 7},
}
SAYING = {
    **CALLING,
    "id": "msg_2",
    "content": [{"type": "text", "text": "Seen."}],
    "stop_reason": "end_turn",
}
CHAT = {
    "id": "c",
    "model": "gpt-4o",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}
    ],
}


@tool
def look(place: str) -> str:
    """Looks."""
    return f"nothing {place}"


def recorded(*bodies: dict[str, Any]) -> Player:
    return Player([Exchange(body=json.dumps(body).encode()) for body in bodies])


def agent(model: str, player: Player) -> Agent[None]:
    return Agent(model, api_key="k", transport=player, tools=[look], system="Be brief.")


def body(player: Player, number: int) -> dict[str, Any]:
    return json.loads(json.dumps(player.requests[number].body))


async def history() -> tuple[Message, ...]:
    result = await agent("anthropic", recorded(CALLING, SAYING)).send("Look here.")
    return tuple(Message.from_json(message.to_json()) for message in result.messages)


async def test_signed_thinking_goes_back_in_place_within_a_tool_round() -> None:
    player = recorded(CALLING, SAYING)
    result = await agent("anthropic", player).send("Look here.")
    assert result.thinking == "Let me look."
    assert body(player, 1)["messages"][1]["content"] == CALLING["content"]


async def test_the_next_request_begins_with_the_one_before() -> None:
    """Append-only (rule 6): also after the history was stored and read again."""
    player = recorded(CALLING, SAYING, SAYING)
    a = agent("anthropic", player)
    result = await a.send("Look here.")
    stored = [Message.from_json(message.to_json()) for message in result.messages]
    await a.send("And now?", history=stored)
    one, two, three = (body(player, number) for number in range(3))
    assert two["messages"][: len(one["messages"])] == one["messages"]
    assert three["messages"][: len(two["messages"])] == two["messages"]
    assert one["system"] == two["system"] == three["system"]
    assert one["tools"] == three["tools"]


async def test_signed_thinking_goes_to_no_other_provider_and_text_calls_and_results_do() -> None:
    player = recorded(CHAT)
    await agent("openai", player).send("Go on.", history=await history())
    sent = json.dumps(body(player, 0), ensure_ascii=False)
    assert "EqQB" not in sent
    assert "opaque" not in sent
    assert "Let me look." not in sent
    assert [m["role"] for m in body(player, 0)["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert body(player, 0)["messages"][2]["content"] == "I will look."
    assert body(player, 0)["messages"][3]["content"] == "nothing here"


async def test_nor_to_another_endpoint_that_speaks_the_same_wire() -> None:
    player = recorded(SAYING)
    other = Agent(
        "anthropic",
        api_key="k",
        transport=player,
        base_url="http://127.0.0.1:9/v1",
        tools=[look],
        system="Be brief.",
    )
    await other.send("Go on.", history=await history())
    assert "EqQB" not in json.dumps(body(player, 0))


async def test_decision_35_back_when_what_stood_before_has_changed_if_the_block_alone_is_signed() -> (
    None
):
    messages = [Message.user("Look there."), *(await history())[1:]]
    player = recorded(SAYING)
    await agent("anthropic", player).send("Go on.", history=messages)
    assert "EqQB" in json.dumps(body(player, 0))


@pytest.mark.parametrize("binds", ["messages", "prefix"])
async def test_decision_35_not_back_when_what_it_is_bound_to_has_changed(binds: Any) -> None:
    messages = [Message.user("Look there."), *(await history())[1:]]
    bound = [
        message.replace(origin=msgspec.structs.replace(message.origin, binds=binds))
        if message.origin
        else message
        for message in messages
    ]
    player = recorded(SAYING)
    await agent("anthropic", player).send("Go on.", history=bound)
    assert "EqQB" not in json.dumps(body(player, 0))
    assert body(player, 0)["messages"][1]["content"][-1]["type"] == "tool_use"


async def test_decision_29_but_back_under_another_system_prompt() -> None:
    player = recorded(SAYING)
    other = Agent("anthropic", api_key="k", transport=player, tools=[look], system="Be long.")
    await other.send("Go on.", history=await history())
    assert body(player, 0)["messages"][1]["content"] == CALLING["content"]


async def test_a_provider_is_changed_in_the_middle_and_back_and_nothing_is_lost() -> None:
    first = await history()
    second = await agent("openai", recorded(CHAT)).send("Go on.", history=first)
    player = recorded(SAYING)
    await agent("anthropic", player).send("And?", history=[*first, *second.messages])
    sent = body(player, 0)["messages"]
    assert sent[1]["content"] == CALLING["content"]
    assert [m["role"] for m in sent] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]


async def test_an_interrupted_round_is_answered_when_it_is_sent_again() -> None:
    """Decision 15: the history keeps its hole, the request does not."""
    player = recorded(SAYING)
    said = (await history())[:2]
    await agent("anthropic", player).send("Go on.", history=said)
    result = body(player, 0)["messages"][2]["content"][0]
    assert (result["type"], result["tool_use_id"], result["is_error"]) == (
        "tool_result",
        "toolu_1",
        True,
    )
    assert len(said) == 2


async def test_a_tool_whose_name_no_provider_takes_is_called_by_its_own() -> None:
    from dragoman import Tool

    seen: list[str] = []

    async def handler(place: str) -> str:
        seen.append(place)
        return "ok"

    odd = Tool("see.the/place", "Looks.", handler)
    player = recorded(CALLING, SAYING)
    a = Agent("anthropic", api_key="k", transport=player, tools=[odd])
    await a.send("x")  # the model calls `look`, which is unknown: an error result
    sent = body(player, 0)["tools"][0]["name"]
    assert sent != odd.name
    calling = json.loads(json.dumps(CALLING))
    calling["content"][-1]["name"] = sent
    player = recorded(calling, SAYING)
    result = await Agent("anthropic", api_key="k", transport=player, tools=[odd]).send("x")
    assert seen == ["here"]
    assert result.messages[1].tool_calls[0].name == odd.name
    assert body(player, 1)["messages"][1]["content"][-1]["name"] == sent


async def test_a_tool_that_google_takes_under_another_name_only_is_run_by_its_own() -> None:
    """Names are mapped per request, and back again in what the model calls."""
    sent = fit_names(["1st"])["1st"]
    calling = {
        "content": {"role": "model", "parts": [{"functionCall": {"name": sent, "args": {}}}]},
        "finishReason": "STOP",
    }
    saying = {"content": {"role": "model", "parts": [{"text": "Done."}]}, "finishReason": "STOP"}
    player = recorded({"candidates": [calling]}, {"candidates": [saying]})
    first = Tool(
        "1st", "Is first.", handler=lambda: "run", input_schema={"type": "object", "properties": {}}
    )
    result = await Agent("google", api_key="k", transport=player, tools=[first]).send("Go.")
    assert result.output.strip() == "Done."
    assert body(player, 0)["tools"][0]["functionDeclarations"][0]["name"] == sent
    answer = body(player, 1)["contents"][2]["parts"][0]["functionResponse"]
    assert (answer["name"], answer["response"]) == (sent, {"result": "run"})
    assert [call.name for message in result.messages for call in message.tool_calls] == ["1st"]
