"""What a round waits for is answered one by one, in any order, over any protocol: by the client's
tool, an approval, an answer in words."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, fold, serve, tool
from dragoman.event import Event, MessageStarted, RunFinished
from dragoman.message import Role
from dragoman.testing import ScriptedModel
from dragoman.tools import ToolContext
from support.asgi import exchange
from support.protocols import PAID, events_of, pay

pytestmark = pytest.mark.anyio

LOOK: dict[str, Any] = {"name": "look", "description": "", "parameters": {}, "inputSchema": {}}
ORDERS = list(permutations(["pay", "asks", "look"]))


@tool
def asks(context: ToolContext[Any]) -> str:
    """Asks."""
    return f"to {context.ask('Where?')}"


def script(request: Any) -> Message:
    if request.messages[-1].role is Role.USER and request.messages[-1].text:
        return Message.model(
            *[ToolCallPart(name, name, {"sum": 3} if name == "pay" else {}) for name in ORDERS[0]]
        )
    results = {
        result.id: result.result for message in request.messages for result in message.tool_results
    }
    return Message.model(" ".join([str(results[name]) for name in sorted(results)]))


def resume(name: str) -> list[dict[str, Any]]:
    payload = {"approved": True} if name == "pay" else {"value": "Rome"}
    return [{"interruptId": name, "status": "resolved", "payload": payload}]


def end_of(events: list[Event]) -> RunFinished:
    end = events[-1]
    assert isinstance(end, RunFinished), end
    return end


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
async def test_an_ag_ui_client_answers_in_any_order(
    order: tuple[str, ...], store: str, tmp_path: Any
) -> None:
    PAID.clear()
    kept = store if store == "memory:" else f"sqlite:///{tmp_path}/answers.db"
    app = serve.app(Agent(ScriptedModel(script), tools=[pay, asks]), store=kept)
    async with app.router.lifespan_context(app):
        body: dict[str, Any] = {
            "threadId": "t",
            "runId": "r",
            "protocolVersion": "1.0",
            "tools": [LOOK],
        }
        asked = [{"id": "u1", "role": "user", "content": "Go."}]
        answer = await exchange(app, "POST", "/ag-ui", {**body, "messages": asked})
        for at, name in enumerate(order):
            result = [{"id": "x", "role": "tool", "toolCallId": "look", "content": "seen"}]
            given = (
                {"messages": result} if name == "look" else {"messages": [], "resume": resume(name)}
            )
            answer = await exchange(app, "POST", "/ag-ui", {**body, "runId": f"r{at}", **given})
            end = end_of(events_of("ag_ui", answer))
            assert (end.outcome, end.result) == (
                ("pending", None) if at < 2 else ("success", "to Rome seen paid 3")
            )
        assert PAID == [3]


@pytest.mark.parametrize("first", ["pay", "asks"])
async def test_use_chat_sends_its_whole_copy_each_time(first: str) -> None:
    PAID.clear()
    app = serve.app(Agent(ScriptedModel(script), tools=[pay, asks]))
    async with app.router.lifespan_context(app):
        asked = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Go."}]}
        body: dict[str, Any] = {"id": "t", "tools": [LOOK]}
        start = events_of(
            "ai_sdk", await exchange(app, "POST", "/ai-sdk", {**body, "messages": [asked]})
        )
        turn = next(each.message_id for each in start if isinstance(each, MessageStarted))
        waits: dict[str, Any] = {"state": "input-available"}
        parts: dict[str, dict[str, Any]] = {
            "pay": {**waits, "input": {"sum": 3}},
            "asks": {**waits, "input": {}},
            "look": {"state": "output-available", "input": {}, "output": "seen"},
        }

        def copy() -> list[Any]:
            shown = [
                {"type": f"tool-{name}", "toolCallId": name, **part} for name, part in parts.items()
            ]
            return [asked, {"id": turn, "role": "assistant", "parts": shown}]

        second = "asks" if first == "pay" else "pay"
        waiting = await exchange(
            app, "POST", "/ai-sdk", {**body, "messages": copy(), "resume": resume(first)}
        )
        again = await exchange(app, "GET", "/ai-sdk/t/stream")
        told = [
            message for message in fold(events_of("ai_sdk", again)) if message.role is Role.MODEL
        ]
        assert waiting.status == 200 and [
            call.id for message in told for call in message.tool_calls
        ] == [*parts]
        assert told[0].id == turn  # who reads it again has none of the message
        parts[first] |= {
            "state": "output-available",
            "output": "paid 3" if first == "pay" else "to Rome",
        }
        answer = await exchange(
            app, "POST", "/ai-sdk", {**body, "messages": copy(), "resume": resume(second)}
        )
        assert fold(events_of("ai_sdk", answer))[-1].text == "to Rome seen paid 3" and PAID == [3]
