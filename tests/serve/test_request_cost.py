"""What the server does for one short request that needs nothing of it but the way to the
provider, counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import anyio
import msgspec
import pytest
from starlette.routing import Route

from dragoman import Message, ToolCallPart, providers, serve
from dragoman.message import ThinkingPart
from dragoman.request import HttpRequest
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.testing import ScriptedModel
from support.gateway import AsgiTransport

pytestmark = pytest.mark.anyio

PLAIN = Message.model("Hello.")
CALLED = Message.model(ToolCallPart("call_1", "look", {}))
THOUGHT = Message.model(ThinkingPart("So.", native={"openai_chat": {}}), "Yes.")
EXTENDED = Message.model(ToolCallPart("call_1", "look", {}, native={"openai_chat": {"more": 1}}))


def vendor(*answers: Message) -> ScriptedModel:
    """A vendor that takes thinking back, as most that speak Chat Completions may."""
    return ScriptedModel.like(providers.get("deepseek"), [*answers], key_required=False)


def gateway(upstream: ScriptedModel) -> AsgiTransport:
    """A gateway to it."""
    return AsgiTransport(serve.app(gateway=serve.Gateway({"m": upstream})))


async def ask(transport: AsgiTransport, *messages: dict[str, Any]) -> dict[str, Any]:
    """Asks in a chat → the answer's message."""
    body = {"model": "m", "messages": messages}
    url, headers = "http://127.0.0.1/v1/chat/completions", {"content-type": "application/json"}
    await transport.send(HttpRequest(url, headers, body))
    assert transport.statuses[-1] == 200
    return msgspec.json.decode(transport.bodies[-1])["choices"][0]["message"]


def question(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what is done."""
    counts: Counter[str] = Counter()

    def count(where: Any, name: str) -> None:
        original = getattr(where, name)

        def counting(*args: Any, **named: Any) -> Any:
            counts[name] += 1
            return original(*args, **named)

        monkeypatch.setattr(where, name, counting)

    count(Route, "matches")
    count(MemoryAnswers, "save")
    count(MemoryAnswers, "find")
    count(anyio, "CancelScope")
    count(asyncio, "timeout")
    return counts


async def test_a_short_request_passes_few_steps(counted: Counter[str]) -> None:
    transport = gateway(vendor(PLAIN, PLAIN))
    await ask(transport, question("Hi."))
    counted.clear()
    await ask(transport, question("Hi."))
    # A scope ends the call if its client leaves, and one inside it if the server or a deadline
    # does; a timeout bounds the body.
    assert counted.pop("matches") < 20
    assert counted == {"CancelScope": 2, "timeout": 1}


@pytest.mark.parametrize(
    ("answer", "is_kept"), [(PLAIN, False), (CALLED, False), (THOUGHT, True), (EXTENDED, True)]
)
async def test_only_what_a_client_cannot_bring_back_is_kept(
    answer: Message, is_kept: bool, counted: Counter[str]
) -> None:
    await ask(gateway(vendor(answer)), question("Hi."))
    assert counted["save"] == is_kept


async def test_once_an_answer_is_kept_those_after_it_are_too(counted: Counter[str]) -> None:
    """The next answer is found by way of the last: without it, thinking would not come back."""
    thought = ThinkingPart("So.", native={"openai_chat": {}})
    calls = [ToolCallPart(f"call_{number}", "look", {}) for number in range(2)]
    upstream = vendor(PLAIN, Message.model(thought, calls[0]), Message.model(calls[1]), PLAIN)
    transport = gateway(upstream)
    messages: list[dict[str, Any]] = []
    for number in range(4):
        asked = question("Go on.")
        if number > 1:
            asked = {"role": "tool", "tool_call_id": f"call_{number - 2}", "content": "done"}
        messages.append(asked)
        answer = await ask(transport, *messages)
        carried = ("role", "content", "tool_calls")
        messages.append({name: value for name, value in answer.items() if name in carried})
    assert counted["save"] == 3
    answers = [each for each in upstream.bodies[-1]["messages"] if each["role"] == "assistant"]
    assert [each.get("reasoning_content") for each in answers] == [None, "So.", None]
