"""Runs where the Agents SDK is installed. `write`: lists of items that its runner, its session and
its converter make, as JSON to stdout. `read`: lists of items from stdin; validates each, stores it
in a session, and gives what the session gives back, with the messages that the SDK would send to
Claude for the list `signed`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    SQLiteSession,
    TResponseInputItem,
    Usage,
    function_tool,
)
from agents.models.chatcmpl_converter import Converter
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary
from pydantic import TypeAdapter

CLAUDE = "anthropic/claude-sonnet-4-5"


@function_tool
def weather(at: str) -> str:
    """Tells the weather."""
    if at == "nowhere":
        raise ValueError("no such place")
    return f"sunny in {at}"


@function_tool
def look(at: str) -> dict[str, Any]:
    """Looks."""
    return {"seen": [at, 1, None]}


def call(number: int, name: str, arguments: str) -> Any:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    return ResponseFunctionToolCall(
        **ids, name=name, arguments=arguments, type="function_call", status="completed"
    )


def text(said: str, number: int = 1) -> Any:
    block = ResponseOutputText(text=said, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=f"msg_{number}", role="assistant", type="message", status="completed", content=[block]
    )


def thought(number: int, said: str, **more: Any) -> Any:
    summary = [Summary(text=said, type="summary_text")] if said else []
    return ResponseReasoningItem(id=f"rs_{number}", type="reasoning", summary=summary, **more)


def answer(model: str, said: str | None, calls: Any = (), **more: Any) -> Any:
    """What the SDK makes of an answer that came by Chat Completions."""
    tool_calls = [
        SimpleNamespace(type="function", id=id_, function=SimpleNamespace(name=name, arguments=arguments), extra_content=extra)
        for id_, name, arguments, extra in calls
    ]  # fmt: skip
    fields = {
        "content": said,
        "refusal": None,
        "audio": None,
        "annotations": None,
        "tool_calls": tool_calls or None,
    }
    message: Any = SimpleNamespace(**fields, **more)
    return Converter.message_to_output_items(message, {"model": model, "response_id": "resp_1"})


def claude(said: str, blocks: list[dict[str, str]], calls: Any = ()) -> Any:
    thinking = "".join(block.get("thinking", "") for block in blocks)
    return answer(CLAUDE, said, calls, thinking_blocks=blocks, reasoning_content=thinking)


SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "S1=="}
HIDDEN = {"type": "redacted_thinking", "data": "D=="}
EMPTY = {"type": "thinking", "thinking": "", "signature": "S2=="}
ROME = '{"at": "Rome"}'
RUNS: dict[str, list[list[Any]]] = {
    "plain": [[text("Hi.")]],
    "rounds": [
        [thought(1, "I look.", encrypted_content="gAAA"), text("I look."), call(1, "weather", ROME), call(2, "look", '{"at":"Oslo"}'), call(3, "weather", '{"at":"nowhere"}')],
        [thought(2, ""), call(4, "look", ROME)],
        [text("Done.", 2)],
    ],
    "claude": [
        claude("I look.", [SIGNED], [("c1", "weather", ROME, None), ("c2", "look", ROME, None)]),
        claude("Done.", [SIGNED, HIDDEN, EMPTY]),
    ],
    "gemini": [
        answer("gemini/gemini-3-pro", None, [("c1", "weather", ROME, {"google": {"thought_signature": "QUJD"}})]),
        answer("gemini/gemini-3-pro", "Done."),
    ],
    "deepseek": [answer("deepseek/deepseek-reasoner", "Done.", reasoning_content="Hm.")],
    "reasoning": [answer("local", "Done.", reasoning="Hm.")],
}  # fmt: skip
SEEN: Any = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "See"},
            {
                "type": "input_image",
                "image_url": "data:image/png;base64,iVBORw0KGgo=",
                "detail": "auto",
            },
            {
                "type": "input_file",
                "file_data": "data:application/pdf;base64,JVBERi0=",
                "filename": "a.pdf",
            },
        ],
    },
]


class Scripted(Model):
    def __init__(self, turns: Any) -> None:
        self._turns = [*turns, [text("Bye.", 9)]]

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return ModelResponse(output=self._turns.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def agent(turns: Any) -> Any:
    return Agent(name="agent", instructions="Help.", tools=[weather, look], model=Scripted(turns))


async def write() -> Any:
    made: dict[str, Any] = {}
    for name, turns in RUNS.items():
        made[name] = (await Runner.run(agent(turns), SEEN)).to_input_list()
        session, again = SQLiteSession(name), agent(turns)
        await Runner.run(again, "Hello.", session=session)
        await Runner.run(again, "And now?", session=session)
        made[f"{name}, session"] = await session.get_items()
    return made


async def read(lists: dict[str, Any]) -> Any:
    found: dict[str, Any] = {}
    adapter = TypeAdapter(list[TResponseInputItem])
    for name, items in lists.items():
        plain = [
            {key: value for key, value in item.items() if key != "provider_data"} for item in items
        ]
        adapter.validate_python(plain)
        session = SQLiteSession(name)
        await session.add_items(items)
        run = await Runner.run(agent([]), items)
        found[name] = {
            "session": await session.get_items(),
            "run": run.to_input_list()[: len(items)],
        }
        if name == "signed":
            found[name]["chat"] = Converter.items_to_messages(
                items, model=CLAUDE, preserve_thinking_blocks=True
            )
    return found


if __name__ == "__main__":
    out = asyncio.run(write() if sys.argv[1] == "write" else read(json.load(sys.stdin)))
    json.dump(out, sys.stdout)
