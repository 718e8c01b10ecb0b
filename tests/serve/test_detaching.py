"""What becomes of an agent's run whose client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

from dragoman import Agent, serve
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange, scope_of
from support.serving import ASKS
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio


class Held:
    """A model that says a word, and the rest once it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.began = asyncio.Event()
        self.ended: list[str] = []

    async def __call__(self, request: ModelRequest) -> AsyncGenerator[str]:
        try:
            yield "Half "
            self.began.set()
            await self.may.wait()
            yield "and half."
            self.ended.append("said")
        except BaseException:
            self.ended.append("cut")
            raise


async def respond(app: Any, method: str, path: str) -> Any:
    return (await exchange(app, method, path)).json


def app_of(held: Any, policy: Any) -> Any:
    model = ScriptedModel.like(PROVIDERS["openai_chat"], held, key_required=False)
    return serve.app({"m": Agent(model)}, policy=serve.AgentPolicy(on_disconnect=policy))


async def left(app: Any, wire: str, held: Held, **fields: Any) -> Exchange:
    """An exchange whose client leaves in the middle of the answer."""
    path, body = ASKS[wire]
    made = Exchange([msgspec.json.encode({**body, "model": "m", **fields})])
    task = asyncio.create_task(app(scope_of("POST", path), made.receive, made.send))
    await held.began.wait()
    made.leave()
    await task
    return made


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_goes_on_and_its_answer_can_be_asked_for(stream: bool) -> None:
    held = Held()
    app = app_of(held, "detach")
    async with app.router.lifespan_context(app):
        await left(app, "openai_responses", held, stream=stream)
        [answered] = await kept(app)
        path = f"/v1/responses/resp_{answered.id}"
        assert (await respond(app, "GET", path))["status"] == "in_progress"
        held.may.set()
        while (found := await respond(app, "GET", path))["status"] == "in_progress":  # noqa: ASYNC110 - it is another request that answers
            await asyncio.sleep(0)
        assert found["status"] == "completed"
        assert found["output"][0]["content"][0]["text"] == "Half and half."
        assert held.ended == ["said"]


async def kept(app: Any) -> list[Any]:
    """What the server kept."""
    store = app.state.service.answers
    return [
        await store.get(owner, each)
        for owner, share in store._shares.items()
        for each in share.answers
    ]


async def test_a_run_is_ended_with_its_client() -> None:
    held = Held()
    app = app_of(held, "cancel")
    async with app.router.lifespan_context(app):
        await left(app, "openai_responses", held, stream=True)
        held.may.set()
        while not held.ended:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert held.ended == ["cut"]
        assert await kept(app) == []


@pytest.mark.parametrize("wire", list(ASKS))
async def test_a_client_that_stays_gets_all_and_nothing_is_left(wire: str) -> None:
    held = Held()
    held.may.set()
    app = app_of(held, "detach")
    path, body = ASKS[wire]
    async with app.router.lifespan_context(app):
        made = await exchange(app, "POST", path, {**body, "model": "m", "stream": False})
        assert made.status == 200, made.body
        assert b"Half and half." in made.body
        [answered] = await kept(app)
        assert answered.state == "completed"
        await app.state.service.runs.idle()


async def test_a_failure_before_the_first_word_has_its_status() -> None:
    app = app_of(Held(), "detach")
    async with app.router.lifespan_context(app):
        path, body = ASKS["openai_chat"]
        nothing = {"role": "tool", "tool_call_id": "c1", "content": "to no call"}
        made = await exchange(app, "POST", path, {**body, "model": "m", "messages": [nothing]})
        assert made.status == 400


async def test_the_end_of_the_server_is_the_end_of_the_run() -> None:
    held = Held()
    app = app_of(held, "detach")
    async with app.router.lifespan_context(app):
        await left(app, "openai_responses", held)
    [answered] = await kept(app)
    assert answered.state == "failed"
    assert held.ended == ["cut"]
