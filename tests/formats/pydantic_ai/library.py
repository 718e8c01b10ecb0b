"""Runs in an environment that has pydantic-ai, without dragoman. `write`: histories of its own
runs, as JSON. `read`: histories on standard input → what it makes of them, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from pydantic_ai import (
    Agent,
    BinaryContent,
    CachePoint,
    DeferredToolRequests,
    DeferredToolResults,
    DocumentUrl,
    ImageUrl,
    ModelRetry,
    ToolDenied,
)
from pydantic_ai.messages import (
    FilePart,
    ModelMessagesTypeAdapter,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

PICTURE = BinaryContent(bytes(range(200, 256)), media_type="image/png")
CALLS = [
    ThinkingPart("Hm.", signature="S", provider_name="anthropic"),
    ThinkingPart("", id="redacted_thinking", signature="R", provider_name="anthropic"),
    TextPart("I look."),
    ToolCallPart("look", {"at": "it"}, "c1"),
    ToolCallPart("look", '{"at": "all"}', "c2"),
    ToolCallPart("fail", {}, "c3"),
    ToolCallPart("picture", None, "c4"),
    ToolCallPart("nowhere", {"x": [1, None]}, "c5"),
    ToolCallPart("look", '{"at"', "c6"),
]
RAN = [
    NativeToolCallPart("web_search", {"query": "x"}, "n1", provider_name="openai"),
    NativeToolReturnPart("web_search", {"status": "completed"}, "n1", provider_name="openai"),
    FilePart(PICTURE, id="ig_1", provider_name="openai"),
    TextPart(
        "Seen.", id="msg_1", provider_name="openai", provider_details={"phase": "final_answer"}
    ),
]


def scripted(*answers: list[Any]) -> FunctionModel:
    left = list(answers)
    return FunctionModel(lambda messages, info: ModelResponse(parts=left.pop(0)))


def tooled(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    @agent.tool_plain
    def look(at: str) -> dict[str, Any]:
        return {"at": at, "seen": [1, 2.5, None, True]}

    @agent.tool_plain
    def fail() -> str:
        raise ModelRetry("Not so.")

    @agent.tool_plain
    def picture() -> list[Any]:
        return ["See:", PICTURE, {"n": 1}]

    return agent


async def rounds() -> list[bytes]:
    model = scripted(CALLS, [ToolCallPart("look", {"at": "it"}, "c1")], RAN, [TextPart("Bye.")])
    agent = tooled(Agent(model, system_prompt="Be kind.", instructions="Be short.", retries=3))
    said = [
        "Look.",
        ImageUrl("https://files.invalid/a.png"),
        PICTURE,
        CachePoint(),
        DocumentUrl("https://files.invalid/b.pdf"),
    ]
    first = await agent.run(said, metadata={"mine": 1})
    second = await agent.run("And?", message_history=first.all_messages(), instructions="Be brief.")
    return [first.all_messages_json(), second.all_messages_json()]


async def refused() -> list[bytes]:
    model = scripted(
        [ToolCallPart("drop", {}, "d1"), ToolCallPart("drop", {}, "d2")], [TextPart("As you say.")]
    )
    agent: Agent[Any, Any] = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def drop() -> str:
        return "dropped"

    first = await agent.run("Drop it.")
    approvals = DeferredToolResults(approvals={"d1": True, "d2": ToolDenied("Not that.")})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=approvals)
    return [first.all_messages_json(), second.all_messages_json()]


async def typed() -> list[bytes]:
    model = scripted(
        [TextPart("many")],
        [ToolCallPart("final_result", {"response": "x"}, "f1")],
        [ToolCallPart("final_result", {"response": 3}, "f2")],
    )
    counted = await Agent(model, output_type=int, retries=3).run("How many?")
    tested = await tooled(Agent(TestModel(call_tools=["look", "picture"]))).run("Test.")
    async with Agent(TestModel(custom_output_text="In pieces.")).run_stream("Stream.") as stream:
        await stream.get_output()
    return [counted.all_messages_json(), tested.all_messages_json(), stream.all_messages_json()]


async def written() -> list[Any]:
    return [json.loads(each) for run in (rounds, refused, typed) for each in await run()]


if sys.argv[1] == "write":
    json.dump(asyncio.run(written()), sys.stdout)
else:
    read = [
        ModelMessagesTypeAdapter.validate_json(json.dumps(each)) for each in json.load(sys.stdin)
    ]
    json.dump([json.loads(ModelMessagesTypeAdapter.dump_json(each)) for each in read], sys.stdout)
