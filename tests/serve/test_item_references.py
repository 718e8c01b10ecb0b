"""Items that a client of the Responses API names by their ids in place of sending them again, as
the AI SDK does unless told otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Message, ThinkingPart, ToolCallPart, serve, tool
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

PATH = "/v1/responses"
KEYS = {"anna": "key-of-anna-1234", "bert": "key-of-bert-1234"}
Json = dict[str, Any]
LOOK: Json = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {}},
}


@tool
def roll() -> int:
    """Rolls a die."""
    return 4


def said(request: Any) -> Message:
    """Thinks, says something and calls, then sums up."""
    if request.messages[-1].tool_results:
        return Message.model("It is sunny.")
    return Message.model(ThinkingPart("Hm."), "I look.", ToolCallPart("c1", "look", {}))


def gateway(
    wire: str, store: Any = "memory:", *, references: bool = False, **how: Any
) -> tuple[ScriptedModel, Any]:
    model = ScriptedModel.like(PROVIDERS[wire], said, key_required=False)
    return model, serve.app(
        gateway=serve.Gateway({"m": model}, references=references), store=store, **how
    )


async def asked(
    app: Any, items: Any, *, stream: bool = False, who: str | None = None, **more: Any
) -> Exchange:
    headers = {"authorization": f"Bearer {KEYS[who]}"} if who else {}
    body: Json = {"model": "m", "input": items, "tools": [LOOK], "stream": stream, **more}
    return await exchange(app, "POST", PATH, body, headers=headers)


def output(answer: Exchange) -> list[Json]:
    """The items of an answer, whole or streamed."""
    assert answer.status == 200, answer.body
    if answer.body.startswith(b"{"):
        return answer.json["output"]
    lines = [line for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
    events = [msgspec.json.decode(line.removeprefix(b"data: ")) for line in lines]
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


def reference(item: Json) -> Json:
    return {"type": "item_reference", "id": item["id"]}


def resent(items: list[Json]) -> list[Json]:
    """As the AI SDK sends a model's items again: calls whole, all others by their ids."""
    return [item if item["type"] == "function_call" else reference(item) for item in items]


def talk(items: list[Json]) -> list[Json]:
    results = [{"type": "function_call_output", "call_id": "c1", "output": "sun"}]
    return [{"role": "user", "content": "Where?"}, *items, *results]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "google", "openai_responses"])
@pytest.mark.parametrize("database", [False, True], ids=["memory", "sqlite"])
async def test_what_is_named_reaches_the_provider(
    wire: str, stream: bool, database: bool, tmp_path: Path
) -> None:
    model, app = gateway(wire, f"sqlite:///{tmp_path / 'answers.db'}" if database else "memory:")
    first = output(await asked(app, "Where?", stream=stream))
    assert [item["type"] for item in first] == ["reasoning", "message", "function_call"]
    second = output(await asked(app, talk(resent(first)), stream=stream))
    last = [*talk(resent(first)), *map(reference, second), {"role": "user", "content": "And then?"}]
    assert output(await asked(app, last, stream=stream))
    told = [message.text for message in model.requests[2].messages if message.text]
    assert told == ["Where?", "I look.", "It is sunny.", "And then?"]
    assert len(model.requests[2].messages[1].tool_calls) == 1


async def test_an_agents_own_rounds_stand_behind_what_is_named() -> None:
    script = ScriptedModel(
        [Message.model(ToolCallPart("r1", "roll", {})), "It is four.", "Still four."]
    )
    app = serve.app({"m": Agent(script, tools=[roll])})
    first = output(await asked(app, "Roll."))
    last = [
        {"role": "user", "content": "Roll."},
        *map(reference, first),
        {"role": "user", "content": "Sure?"},
    ]
    assert output(await asked(app, last))
    assert [message.text for message in script.requests[2].messages if message.text] == [
        "Roll.",
        "It is four.",
        "Sure?",
    ]
    assert len(script.requests[2].messages[1].tool_calls) == 1


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


async def test_an_approval_is_given_to_what_is_named() -> None:
    """Ids of requests for approval come from calls, which many providers number: two conversations
    have one of the same id."""

    def paid(request: Any) -> Message:
        if request.messages[-1].tool_results:
            return Message.model("Done.")
        return Message.model(
            "Let me.", ToolCallPart("p1", "pay", {"amount": int(request.messages[0].text)})
        )

    script = ScriptedModel(paid)
    app = serve.app({"m": Agent(script, tools=[pay])})
    asked_for = {amount: output(await asked(app, amount, tools=[])) for amount in ("3", "4")}
    ids = [items[1]["id"] for items in asked_for.values()]
    assert ids[0] == ids[1] and asked_for["3"][1]["type"] == "mcp_approval_request"
    for amount, items in asked_for.items():
        answer = {"type": "mcp_approval_response", "approval_request_id": ids[0], "approve": True}
        talk = [{"role": "user", "content": amount}, *map(reference, items), answer]
        assert output(await asked(app, talk, tools=[]))[-1]["content"][0]["text"] == "Done."
        assert script.requests[-1].messages[-1].tool_results[0].result == f"paid {amount}"


async def test_the_type_of_a_reference_may_be_left_out() -> None:
    model, app = gateway("anthropic")
    first = output(await asked(app, "Where?"))
    plain = [
        {**each, "type": None} if "content" not in each else each
        for each in map(reference, first[:2])
    ]
    assert output(await asked(app, talk([*plain, first[2]])))
    assert model.requests[1].messages[1].text == "I look."


async def test_tokens_of_what_is_named_count() -> None:
    _, app = gateway("anthropic")
    first = output(await asked(app, "Where?"))
    counts = [
        (await exchange(app, "POST", f"{PATH}/input_tokens", {"model": "m", "input": items})).json[
            "input_tokens"
        ]
        for items in (talk(first), talk(resent(first)))
    ]
    assert counts[0] == counts[1]


async def refused(app: Any, items: Any, who: str | None = None) -> Json:
    answer = await asked(app, items, who=who)
    assert answer.status == 400, answer.body
    return answer.json["error"]


async def test_nobody_names_what_is_anothers() -> None:
    model, app = gateway("anthropic", auth=KEYS)
    first = output(await asked(app, "Where?", who="anna"))
    error = await refused(app, talk(resent(first)), "bert")
    assert error["param"] == "input[1]" and "there is no item" in error["message"]
    assert output(await asked(app, talk(resent(first)), who="anna"))
    assert len(model.requests) == 2


@pytest.mark.parametrize("case", ["deleted", "not stored", "no store", "made up", "twice"])
async def test_what_is_not_kept_is_refused_and_not_left_out(case: str) -> None:
    model, app = gateway("openai_responses", None if case == "no store" else "memory:")
    answer = await asked(app, "Where?", store=case != "not stored")
    named = resent(output(answer))
    if case == "deleted":
        assert (await exchange(app, "DELETE", f"{PATH}/{answer.json['id']}")).status == 200
    if case == "made up":
        named[0] = {"type": "item_reference", "id": "msg_of_somebody"}
    if case == "twice":
        named.append(named[0])
    error = await refused(app, talk(named))
    assert error["param"].startswith("input[") and error["type"] == "invalid_request_error"
    assert len(model.requests) == 1


async def test_a_gateway_that_passes_on_references_leaves_them_to_the_provider() -> None:
    model, app = gateway("openai_responses", None, references=True)
    first = output(await asked(app, "Where?"))
    assert output(await asked(app, talk(resent(first))))
    assert model.bodies[1]["input"][1:3] == resent(first)[:2]


async def test_what_is_named_counts_as_what_is_kept() -> None:
    _, app = gateway("anthropic", limits=serve.ServerLimits(conversation_bytes=50))
    first = output(await asked(app, "Where?"))
    assert "more than 50 bytes" in (await refused(app, talk(resent(first))))["message"]
