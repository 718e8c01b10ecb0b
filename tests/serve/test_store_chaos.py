"""A store of answers that fails and dawdles at random, and clients that leave at random: nothing of
it is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from random import Random
from typing import Any

import msgspec
import pytest

from dragoman import Agent, serve
from dragoman.request import ModelRequest
from dragoman.serve import ServerLimits
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, scope_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CALLS = 200
AT_ONCE = 20
METHODS = ("save", "get", "find", "chain", "delete", "task", "tasks", "push_configs", "prune")
FAILURES = (
    KeyError("row"),
    RuntimeError("the pool is closed"),
    OSError("disk"),
    TimeoutError(),
    ValueError("\ud83d"),
)


class Moody(MemoryAnswers):
    """Each of its methods may take its time, before what it does and after it, and fail in both
    places."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.failures = 0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._moody(found) if name in METHODS else found

    def _moody(self, method: Any) -> Any:
        async def done(*given: Any, **how: Any) -> Any:
            await self._mood()
            result = await method(*given, **how)
            await self._mood()
            return result

        return done

    async def _mood(self) -> None:
        await turns(self.random.choice((0, 0, 1, 5, 30)))
        if self.random.random() < 0.2:
            self.failures += 1
            raise self.random.choice(FAILURES)


async def turns(count: int) -> None:
    """Lets others work so often."""
    for _ in range(count):
        await asyncio.sleep(0)


async def reply(request: ModelRequest) -> AsyncGenerator[str]:
    for word in ("One ", "two ", "three."):
        await asyncio.sleep(0)
        yield word


def asked(random: Random, known: list[str]) -> tuple[str, dict[str, Any], bool]:
    """A path, a body, and whether its answer needs the store."""
    stream = random.random() < 0.5
    copy = [{"role": "user", "content": f"Say {random.randrange(5)}."}]
    if random.random() < 0.5:
        copy += [
            {"role": "assistant", "content": "One two three."},
            {"role": "user", "content": "More."},
        ]
    if random.random() < 0.5:
        return "/v1/chat/completions", {"model": "m", "messages": copy, "stream": stream}, False
    body: dict[str, Any] = {"model": "m", "input": "Hi.", "stream": stream}
    link = random.choice(("", "", "previous_response_id", "conversation", "background"))
    if link == "previous_response_id" and known:
        body[link] = random.choice(known)
    elif link == "conversation":
        body[link] = f"trip{random.randrange(3)}"
    elif link == "background":
        body |= {link: True, "stream": False}
    return "/v1/responses", body, len(body) > 3


async def call(app: Any, random: Random, known: list[str]) -> None:
    path, body, needs = asked(random, known)
    made = Exchange([msgspec.json.encode(body)])
    task = asyncio.create_task(app(scope_of("POST", path), made.receive, made.send))
    if random.random() < 0.4:
        await turns(random.randrange(150))
        made.leave()
        await task
        return
    await task
    assert made.is_complete
    assert made.status == 200 or (needs and made.status in (400, 500, 502)), made.body
    if made.status != 200:
        return
    if not body.get("background"):
        assert b"three." in made.body
    if path == "/v1/responses" and not body["stream"]:
        known.append(made.json["id"])
        await look(app, random, made.json["id"])


async def look(app: Any, random: Random, id: str) -> None:
    """Asks for an answer, or ends or forgets it."""
    method, end = random.choice(
        (("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", ""))
    )
    made = Exchange([b""])
    await app(scope_of(method, f"/v1/responses/{id}{end}"), made.receive, made.send)
    assert made.is_complete
    assert made.status in (200, 400, 404, 500, 502), made.body


@pytest.mark.parametrize("on_disconnect", ["cancel", "detach"])
@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_left_of_a_store_in_a_mood(seed: int, on_disconnect: Any) -> None:
    random = Random(seed)
    store, known = Moody(random), list[str]()
    agent = Agent(ScriptedModel(reply, key_required=False))
    policy = serve.AgentPolicy(on_disconnect=on_disconnect)
    app = serve.app({"m": agent}, store=store, policy=policy, limits=ServerLimits(keep_seconds=1.0))
    service = app.state.service
    before = asyncio.all_tasks()
    async with app.router.lifespan_context(app):
        for _ in range(CALLS // AT_ONCE):
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(call(app, random, known))
        await service.drain()
        assert not service.runs.driven
        assert (service.gate.open, service.gate.bytes) == (0, 0)
    assert asyncio.all_tasks() == before
    assert store.failures > CALLS / 4
    assert len(known) > CALLS / 20
