"""Durations and places of calls in answers of the Ollama endpoint: clients do arithmetic with
them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import anyio
import pytest

from dragoman import Agent, serve, unfold
from dragoman.codec.timing import AnswerTimer, Durations
from dragoman.event import Event, MessageStarted, OpenText, PartStarted
from dragoman.message import Message, Role, TextPart, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel, call
from dragoman.wires import ollama
from support.asgi import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.mend("2.5")]
NAMES = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


class _Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def test_an_answer_is_measured_from_the_request_to_its_end() -> None:
    clock = _Clock()
    timer = AnswerTimer(clock)
    clock.now = 10
    timer.ask()
    clock.now = 110
    timer.observe([])
    timer.observe([MessageStarted("m", Role.MODEL)])
    clock.now = 200
    timer.observe(unfold([Message.user("x").replace(id="u")]))
    clock.now = 310
    timer.observe([PartStarted("m", 0, OpenText())])
    clock.now = 400
    timer.observe([PartStarted("m", 1, OpenText())])
    clock.now = 1310
    assert timer.measure() == Durations(10, 300, 1000)
    assert timer.measure().total == 1310


def test_nothing_took_no_time_at_all() -> None:
    """Clients divide by what they are told."""
    timer = AnswerTimer(lambda: 5)
    assert timer.measure() == Durations(1, 1, 1)


SLOW = 0.03


async def _slowly(request: ModelRequest) -> AsyncIterator[str]:
    await anyio.sleep(SLOW)
    yield "It "
    await anyio.sleep(SLOW)
    yield "rains."


@pytest.mark.parametrize("name", ["gateway", "agent"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
async def test_the_endpoint_says_how_long_it_took(path: str, stream: bool, name: str) -> None:
    model = ScriptedModel(_slowly)
    app = serve.app({"agent": Agent(model)}, gateway=serve.Gateway({"gateway": model}))
    said: dict[str, Any] = (
        {"prompt": "x"}
        if path == "/api/generate"
        else {"messages": [{"role": "user", "content": "x"}]}
    )
    answer = await exchange(app, "POST", path, {"model": name, "stream": stream, **said})
    lines = [json.loads(line) for line in answer.body.splitlines()]
    last = lines[-1]
    assert last["done"] is True
    assert all(type(last[key]) is int and last[key] > 0 for key in NAMES)
    assert last["total_duration"] == sum(last[key] for key in NAMES[1:])
    assert last["prompt_eval_duration"] > SLOW / 2 * 1e9
    assert not any(key in line for line in lines[:-1] for key in NAMES)


@pytest.mark.parametrize("stream", [True, False])
async def test_calls_have_their_places(stream: bool) -> None:
    model = ScriptedModel([[call("f", x=1), call("g", x=2)]])
    app = serve.app({"a": Agent(model)}, gateway=serve.Gateway({"m": model}))
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in "fg"
    ]
    body = {
        "model": "m",
        "stream": stream,
        "messages": [{"role": "user", "content": "x"}],
        "tools": tools,
    }
    answer = await exchange(app, "POST", "/api/chat", body)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    calls = [made for line in lines for made in line["message"].get("tool_calls", ())]
    assert [(made["function"]["index"], made["function"]["name"]) for made in calls] == [
        (0, "f"),
        (1, "g"),
    ]


def _calls(native: Any = None) -> list[Event]:
    parts = [TextPart("a"), *[ToolCallPart(f"c{at}", "f", {}, native=native) for at in range(2)]]
    return unfold([Message.model(*parts)])


def test_a_call_of_a_server_without_ids_stays_as_it_was() -> None:
    old = ollama.load_response(
        {"message": {"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}, "done": True}
    )
    assert ollama.dump_response(old)["message"]["tool_calls"] == [
        {"function": {"name": "f", "arguments": {}}}
    ]


def test_places_are_read_back() -> None:
    numbers = count()
    whole = ollama.dump_response(_calls())
    assert [made["function"]["index"] for made in whole["message"]["tool_calls"]] == [0, 1]
    events = ollama.load_response(whole, new_id=lambda: f"id{next(numbers)}")
    assert [part.native for part in events if isinstance(part, ToolCallPart)] == []
    assert ollama.dump_response(events) == whole
    odd: dict[str, Any] = {"id": "x", "function": {"index": 7, "name": "f", "arguments": {}}}
    again = ollama.dump_response(
        ollama.load_response({"message": {"tool_calls": [odd]}, "done": True})
    )
    assert again["message"]["tool_calls"] == [odd]


def test_what_the_provider_measured_stays() -> None:
    done = {
        "message": {"role": "assistant", "content": "a"},
        "done": True,
        "total_duration": 7,
        "eval_duration": 3,
    }
    written = ollama.dump_response(ollama.load_response(done), timing=AnswerTimer())
    assert (written["total_duration"], written["eval_duration"]) == (7, 3)
    assert written["load_duration"] > 0
