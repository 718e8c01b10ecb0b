"""What an MCP server of the provider's may do only once somebody approves it: a call that waits, and
its answer as the API has it (decisions 35-45; R, section 1)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Chat, ServerTool, wires
from dragoman.codec.digest import compute_prefix
from dragoman.codec.marks import attach_resume
from dragoman.fold import fold
from dragoman.history import plan
from dragoman.interrupt import Resume
from dragoman.loss import Lost
from dragoman.message import FinishReason, Message, Origin, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, RunRequest
from dragoman.runs import Runs, open_log
from dragoman.transport import Exchange, Player
from dragoman.wires import openai_responses as wire
from support.responses import (
    CREATED,
    HI,
    OPENAI,
    again,
    answered,
    decode,
    dump,
    end_event,
    items,
    message_item,
    of,
    reasoning_item,
    sse,
)
from support.traffic import FOLDER

pytestmark = pytest.mark.anyio

ASKED = {
    "id": "mcpr_1",
    "type": "mcp_approval_request",
    "server_label": "zip",
    "name": "shorten",
    "arguments": '{"url":"x"}',
}
DONE = {
    "id": "mcp_1",
    "type": "mcp_call",
    "server_label": "zip",
    "name": "shorten",
    "arguments": '{"url":"x"}',
    "approval_request_id": "mcpr_1",
    "output": "zip/1",
}
MCP = ServerTool("mcp", {"server_label": "zip", "server_url": "https://zip", "require_approval": "always"})  # fmt: skip


def body_of(*output: Any, id_: str = "resp_1") -> bytes:
    fields = {"id": id_, "object": "response", "status": "completed", "model": "gpt-5-x"}
    return json.dumps({**fields, "output": list(output)}).encode()


def asking(**options: Any) -> tuple[Player, Agent]:
    player = Player([Exchange(body=body_of(ASKED)), Exchange(body=body_of(DONE, message_item("zip/1"), id_="resp_2")), Exchange(body=body_of(message_item("Bye."), id_="resp_3"))])  # fmt: skip
    return player, Agent("openai-responses:gpt-5", transport=player, api_key="x", server_tools=[MCP], options=options)  # fmt: skip


def answer(piece: ToolCallPart, **payload: Any) -> ToolResultPart:
    """What a run stores of a person's answer."""
    result = ToolResultPart(piece.id, piece.name, payload)
    return attach_resume(result, Resume(piece.id, payload=payload))


def sent(player: Player) -> tuple[Any, list[Any]]:
    body = player.requests[-1].body
    fields = msgspec.json.decode(body if isinstance(body, bytes) else msgspec.json.encode(body))
    return fields.get("previous_response_id"), fields["input"]


SAID = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"}


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("approve", {"approve": True}),
        ("deny", {"approve": False, "reason": "No."}),
        ("cancel", {"approve": False}),
    ],
)
async def test_a_run_waits_for_an_approval_and_tells_the_provider_the_answer(
    stored: bool, how: str, said: dict[str, Any]
) -> None:
    player, agent = asking(**({} if stored else {"store": False}))
    first = await agent.send("Shorten x.")
    [interrupt] = first.pending
    assert (interrupt.id, interrupt.reason) == ("mcpr_1", "approval")
    assert interrupt.call is not None
    assert (interrupt.call.name, interrupt.call.arguments) == ("shorten", {"url": "x"})
    assert interrupt.metadata["server_label"] == "zip"
    assert first.finish_reason is FinishReason.tool_calls
    resume = interrupt.deny("No.") if how == "deny" else getattr(interrupt, how)()
    last = await agent.send(None, history=first.messages, resume=[resume])
    asked = [] if stored else [{"role": "user", "content": "Shorten x."}, ASKED]
    assert sent(player) == ("resp_1" if stored else None, [*asked, {**SAID, **said}])
    assert (last.output, last.pending) == ("zip/1", ())


async def test_a_new_prompt_denies_what_nobody_answered() -> None:
    player, agent = asking()
    chat = Chat(agent)
    await chat.send("Shorten x.")
    await chat.send("Never mind.")
    assert sent(player) == ("resp_1", [{**SAID, "approve": False}, {"role": "user", "content": "Never mind."}])  # fmt: skip


async def test_an_approval_is_answered_in_a_durable_run() -> None:
    player, agent = asking()
    async with open_log("memory:") as log, Runs(log, agents={"a": agent}) as runs:
        worker = asyncio.create_task(runs.work())
        first = await runs.result(await runs.enqueue("a", "Shorten x."), timeout=30)
        request = RunRequest(first.messages, resume=(first.pending[0].approve(),))
        last = await runs.result(await runs.enqueue("a", request), timeout=30)
        worker.cancel()
    assert last.output == "zip/1"
    assert sent(player) == ("resp_1", [{**SAID, "approve": True}])


@pytest.mark.parametrize("name", ["3-00", "3-00-bf5b61"])
async def test_the_recorded_exchange_waits(name: str) -> None:
    folder = FOLDER / "openai_responses" / "vercel-openai-responses-openai-mcp-tool-approval-"
    paths = [folder.parent / f"{folder.name}{each}.json" for each in (name, "2-00-db2a48")]
    if not all(path.exists() for path in paths):
        pytest.skip("the recorded traffic is not here")
    bodies = [json.loads(path.read_text())["response"]["body_text"].encode() for path in paths]
    player = Player([Exchange(body=body) for body in bodies])
    agent = Agent("openai-responses:gpt-5-mini", transport=player, api_key="x", server_tools=[MCP])
    first = await agent.send("Shorten it.")
    [interrupt] = first.pending
    assert interrupt.call is not None
    assert interrupt.call.arguments["url"] == "https://ai-sdk.dev/"
    last = await agent.send(None, history=first.messages, resume=[interrupt.deny()])
    link, [said] = sent(player)
    assert link is not None and link in bodies[0].decode()
    assert said == {**SAID, "approval_request_id": interrupt.id, "approve": False}
    assert "was not approved" in last.output


def test_what_streams_is_what_comes_whole_and_is_written_as_it_came() -> None:
    events = [
        CREATED,
        of("output_item.added", item=ASKED),
        of("output_item.done", item=ASKED),
        end_event(ASKED),
    ]
    streamed = decode(sse(*events))
    [message] = fold(streamed)
    assert message.content == answered(ASKED).content
    assert message.finish_reason is FinishReason.tool_calls
    assert again(events)[-1]["response"]["output"] == [ASKED]
    assert wire.dump_response(streamed)["output"] == [ASKED]


@pytest.mark.parametrize(
    "odd",
    [
        {"arguments": "{"},
        {"arguments": "[1]"},
        {"arguments": None},
        {"arguments": {"url": "x"}},
        {"server_label": None},
        {"server_label": 3},
        {"id": ""},
        {"id": None},
        {"name": None},
        {"name": ""},
    ],
)
def test_an_odd_request_is_kept_and_breaks_nothing(odd: dict[str, Any]) -> None:
    message = answered({**ASKED, **odd})
    assert Message.from_json(message.to_json()) == message
    assert items(message)[0]["type"] == "mcp_approval_request"


ANSWERED = answered(ASKED)
CALL = ANSWERED.tool_calls[0]
YES = Message.user(answer(CALL, approved=True))
WENT_ON = answered(DONE, message_item("zip/1"), id="resp_2")


@pytest.mark.parametrize("wire_name", ["anthropic", "google", "openai_chat", "cohere", "mistral", "openai_responses"])  # fmt: skip
@pytest.mark.parametrize("said", [YES, Message.user("Never mind.")])
def test_another_provider_is_told_a_call_with_its_result(wire_name: str, said: Message) -> None:
    """Whatever was answered, and if nothing was."""
    talk = [HI, ANSWERED, said]
    target = Origin("other", "https://other", "m")
    other = wires.get(wire_name)
    request = ModelRequest("m", tuple(talk))
    dumped = json.dumps(msgspec.to_builtins(other.dump_request(request, target=target)))
    assert "mcp_approval" not in dumped
    assert dumped.count("shorten") >= 1
    assert not [loss for loss in plan(talk, wire_name).losses if loss.what is Lost.tool_result]


def stored(before: list[Message], message: Message) -> Message:
    """A message as `ChatModel` notes its origin."""
    origin = msgspec.structs.replace(OPENAI, prefix=compute_prefix(before, "w"))
    return message.replace(origin=origin)


def test_what_was_approved_is_not_approved_again_where_its_result_is_not_sent() -> None:
    """Else the provider would call the tool once more."""
    talk = [HI, ANSWERED, YES, WENT_ON, Message.user("More.")]
    losses: list[Any] = []
    dumped = dump(*talk, target=OPENAI, losses=losses, options={"store": False}, wire=wire.name)
    assert [item for item in dumped["input"] if str(item.get("type")).startswith("mcp")] == []
    assert [(loss.message, loss.what) for loss in losses][:2] == [(1, Lost.tool_call), (2, Lost.tool_result)]  # fmt: skip
    # Denied, nothing could be called again.
    no = Message.user(answer(CALL, approved=False))
    dumped = dump(HI, ANSWERED, no, WENT_ON, Message.user("More."), target=OPENAI, options={"store": False}, wire=wire.name)  # fmt: skip
    assert [item["type"] for item in dumped["input"] if "type" in item][:2] == ["mcp_approval_request", "mcp_approval_response"]  # fmt: skip
    # With reasoning that says all itself, everything goes along.
    thought = reasoning_item("Hm.", encrypted_content="g")
    told = [answered(thought, ASKED), YES, answered({**thought, "id": "rs_2"}, DONE)]
    dumped = dump(HI, *told, Message.user("More."), target=OPENAI, options={"store": False}, wire=wire.name)  # fmt: skip
    types = [item.get("type") for item in dumped["input"]]
    assert types == [None, "reasoning", "mcp_approval_request", "mcp_approval_response", "reasoning", "mcp_call", None]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"store": False}, {"previous_response_id": None}])
async def test_a_model_that_remembers_sends_what_one_that_does_not_sends(
    options: dict[str, Any],
) -> None:
    exchanges = [[HI, ANSWERED, YES, WENT_ON], [Message.user("Next."), answered(message_item("Ok."), id="resp_9")]]  # fmt: skip
    talk = [*exchanges[0], *exchanges[1] * 12]
    player = Player([Exchange(body=body_of(message_item("Bye."))) for _ in range(len(talk))])
    remembering = Agent("openai-responses:gpt-5", transport=player, api_key="x", options=options)
    for length in range(3, len(talk), 2):
        fresh_player = Player([Exchange(body=body_of(message_item("Bye.")))])
        fresh = Agent("openai-responses:gpt-5", transport=fresh_player, api_key="x", options=options)  # fmt: skip
        for agent in (remembering, fresh):
            await agent.send("And?", history=talk[: length + 1])
        assert sent(player) == sent(fresh_player)


def test_only_a_yes_approves() -> None:
    for result in (
        ToolResultPart("mcpr_1", "shorten", "yes"),
        ToolResultPart("mcpr_1", "shorten", '{"approved": 1}'),
        ToolResultPart("mcpr_1", "shorten", '[{"approved": true}]'),
        ToolResultPart("mcpr_1", "shorten", "[" * 100_000),
        ToolResultPart("mcpr_1", "shorten", {"error": "x"}, is_error=True),
        answer(CALL, approved="true"),
        attach_resume(
            ToolResultPart("mcpr_1", "shorten", 1),
            Resume("mcpr_1", "cancelled", {"approved": True}),
        ),
    ):
        assert items(ANSWERED, Message.user(result))[-1] == {**SAID, "approve": False}
    assert items(ANSWERED, YES)[-1] == {**SAID, "approve": True}
    # A client of another API has no other way to say so.
    for result in ({"approved": True}, '{"approved": true}', (TextPart('{"approved": true}'),)):
        part = ToolResultPart("mcpr_1", "shorten", result)
        assert items(ANSWERED, Message.user(part))[-1] == {**SAID, "approve": True}
