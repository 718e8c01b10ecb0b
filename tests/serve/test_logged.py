"""Answers that are made without their client, through the official client: streamed again,
cancelled, left by their process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from dragoman import Agent, serve
from dragoman.errors import OverloadedError
from dragoman.runs import open_log
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio
WORDS = ["One ", "two ", "three ", "four."]


class Speaker:
    """A model that says a word for each permit."""

    def __init__(self) -> None:
        self.permits = asyncio.Semaphore(0)
        self.ended = 0

    async def __call__(self, request: Any) -> AsyncGenerator[str]:
        try:
            for word in WORDS:
                await self.permits.acquire()
                yield word
        finally:
            self.ended += 1

    def permit(self, count: int = len(WORDS)) -> None:
        for _ in range(count):
            self.permits.release()


def client(app: Any, key: str = "one-secret") -> openai.AsyncOpenAI:
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app))
    return openai.AsyncOpenAI(
        base_url="http://127.0.0.1/v1", api_key=key, http_client=http, max_retries=0
    )


def app_of(kind: str, speaker: Any, **how: Any) -> Any:
    auth = ["one-secret", "two-secret"]
    if kind == "gateway":
        gateway = serve.Gateway(
            {"m": ScriptedModel.like(PROVIDERS["openai_chat"], speaker, key_required=False)}
        )
        return serve.app(gateway=gateway, auth=auth, **how)
    return serve.app(
        Agent(ScriptedModel(speaker, wire="openai_chat"), api_key="k"), auth=auth, **how
    )


@asynccontextmanager
async def running(kind: str = "agent", **how: Any) -> AsyncGenerator[tuple[Any, Speaker]]:
    speaker = Speaker()
    made = app_of(kind, speaker, **how)
    async with made.router.lifespan_context(made):
        yield made, speaker


async def begun(app: Any) -> str:
    """The id of a response in the background."""
    return (await client(app).responses.create(model="m", input="Hi.", background=True)).id


async def until(app: Any, response: str, *, said: str) -> None:
    """Waits until the log has that."""
    runs = app.state.service.runs
    text = ""
    async for _, event in runs.attach(response.removeprefix("resp_")):
        text += getattr(event, "delta", "")
        if said in text:
            return


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/answers.db"


async def streamed(one: openai.AsyncOpenAI, response: str, **how: Any) -> list[dict[str, Any]]:
    return await shown(await one.responses.retrieve(response, stream=True, **how))


async def shown(stream: Any) -> list[dict[str, Any]]:
    return [event.to_dict() async for event in stream]


@pytest.mark.parametrize("kind", ["agent", "gateway"])
async def test_what_is_streamed_in_the_background_is_streamed_again_from_any_place(
    kind: str, store: str
) -> None:
    async with running(kind, store=store) as (app, speaker):
        speaker.permit()
        one = client(app)
        stream = await one.responses.create(model="m", input="Hi.", background=True, stream=True)
        first = await shown(stream)
        assert [event["sequence_number"] for event in first] == list(range(len(first)))
        assert first[-1]["type"] == "response.completed"
        response = first[0]["response"]["id"]
        assert first[0]["response"]["background"] is True
        assert (await one.responses.retrieve(response)).output_text == "".join(WORDS)
        for after in (0, 4, len(first) - 2, len(first) - 1, 999_999):
            again = await one.responses.retrieve(response, stream=True, starting_after=after)
            assert await shown(again) == first[after + 1 :]
        assert await shown(await one.responses.retrieve(response, stream=True)) == first
        assert speaker.ended == 1


@pytest.mark.parametrize("kind", ["agent", "gateway"])
async def test_a_client_that_leaves_reads_on_while_it_is_made(kind: str) -> None:
    async with running(kind) as (app, speaker):
        one = client(app)
        response = await begun(app)
        speaker.permit(2)
        await until(app, response, said="two ")
        reading = asyncio.create_task(streamed(one, response, starting_after=5))
        speaker.permit(2)
        rest = await reading
        assert rest[0]["sequence_number"] == 6
        assert rest[-1]["response"]["output"][0]["content"][0]["text"] == "".join(WORDS)


async def test_a_failure_in_the_background_is_what_its_streams_end_with() -> None:
    async def reply(request: Any) -> str:
        raise openai.OpenAIError("no")

    made = app_of("agent", reply)
    async with made.router.lifespan_context(made):
        with pytest.raises(openai.APIError):
            await shown(
                await client(made).responses.create(
                    model="m", input="Hi.", background=True, stream=True
                )
            )


@pytest.mark.parametrize("after", ["-1", "x", "9" * 5000, "٣", "1_0", ""], ids=range(6))
async def test_a_place_that_is_none_is_refused(after: str) -> None:
    async with running() as (app, _):
        response = await begun(app)
        path = f"/v1/responses/{response}?stream=true&starting_after={after}"
        refused = await exchange(app, "GET", path, headers={"authorization": "Bearer one-secret"})
        assert (refused.status, "starting_after" in refused.json["error"]["message"]) == (400, True)


async def test_what_was_not_made_in_the_background_has_no_stream() -> None:
    async with running() as (app, speaker):
        speaker.permit()
        one = client(app)
        response = await one.responses.create(model="m", input="Hi.")
        with pytest.raises(openai.BadRequestError, match="not kept"):
            await one.responses.retrieve(response.id, stream=True)


async def test_nobody_reads_or_ends_another_ones_run() -> None:
    async with running() as (app, speaker):
        response = await begun(app)
        two = client(app, "two-secret")
        for call in (
            two.responses.retrieve(response, stream=True),
            two.responses.cancel(response),
            two.responses.delete(response),
        ):
            with pytest.raises(openai.NotFoundError):
                await call
        speaker.permit()
        assert (await shown(await client(app).responses.retrieve(response, stream=True)))[-1][
            "type"
        ].endswith("completed")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["agent", "gateway"])
async def test_another_process_ends_what_one_makes(kind: str, tmp_path: Path) -> None:
    """Two applications over one file, as two processes have it."""
    url = f"sqlite:///{tmp_path}/answers.db"
    async with running(kind, store=url) as (app, speaker), running(kind, store=url) as (other, _):
        response = await begun(app)
        speaker.permit(1)
        await until(app, response, said="One ")
        assert (await client(other).responses.retrieve(response)).status == "in_progress"
        ended = await client(other).responses.cancel(response)
        assert (ended.status, speaker.ended) == ("cancelled", 1)
        assert (await client(app).responses.retrieve(response)).status == "cancelled"
        last = (await shown(await client(app).responses.retrieve(response, stream=True)))[-1]
        assert last["response"]["status"] == "cancelled"


async def test_what_is_deleted_is_ended_and_does_not_come_back() -> None:
    async with running() as (app, speaker):
        response = await begun(app)
        speaker.permit(1)
        await until(app, response, said="One ")
        await client(app).responses.delete(response)
        assert speaker.ended == 1
        with pytest.raises(openai.NotFoundError):
            await client(app).responses.retrieve(response)


async def left(app: Any, response: str) -> None:
    """The log as a process leaves it that ends in the middle: nobody has the run."""
    log, run_id = app.state.service.log, response.removeprefix("resp_")
    await log.post(run_id, "x")
    keeper = app.state.service.runs._keeper
    driven = keeper.driven.pop(run_id)
    driven.task.cancel()
    await asyncio.wait([driven.task])
    lease = driven.lease
    await log.lease(run_id, lease.owner, 0, token=lease.token)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_process_left_has_failed_with_what_there_was(stream: bool, store: str) -> None:
    async with running(store=store) as (app, speaker):
        one = client(app)
        response = await begun(app)
        speaker.permit(2)
        await until(app, response, said="two ")
        await left(app, response)
        if stream:
            last = (await shown(await one.responses.retrieve(response, stream=True)))[-1]
            assert last["type"] == "response.failed"
            assert "the process that made" in last["response"]["error"]["message"]
        for _ in range(2):
            found = await one.responses.retrieve(response)
            assert (found.status, found.output_text) == ("failed", "One two ")
            assert found.error is not None
            assert "the process that made" in found.error.message
            assert "host" not in found.error.message
        with pytest.raises(openai.BadRequestError):
            await one.responses.cancel(response)


async def test_a_server_that_ends_waits_for_what_is_made_in_the_background() -> None:
    async with running() as (app, speaker):
        response = await begun(app)
        drained = asyncio.create_task(app.state.service.drain())
        speaker.permit(1)
        await until(app, response, said="One ")
        assert not drained.done()
        speaker.permit(3)
        await drained
    app.state.service.gate.closed = False
    assert (await client(app).responses.retrieve(response)).status == "completed"


async def test_what_does_not_end_in_time_is_ended_and_says_why() -> None:
    async with running() as (app, speaker):
        response = await begun(app)
        speaker.permit(1)
        await until(app, response, said="One ")
        reading = asyncio.create_task(streamed(client(app), response))
        app.state.service.runs.interrupt(OverloadedError("the server ends"))
        last = (await reading)[-1]
        assert last["type"] == "response.failed"
        assert "the server ends" in last["response"]["error"]["message"]
    found = await client(app).responses.retrieve(response)
    assert (found.status, found.output_text, speaker.ended) == ("failed", "One ", 1)


async def test_so_many_are_made_in_the_background_and_no_more() -> None:
    async with running(limits=serve.ServerLimits(open_calls=2)) as (app, _):
        for _ in range(2):
            await begun(app)
        with pytest.raises(openai.InternalServerError, match="as many"):
            await begun(app)


async def test_an_answer_in_a_log_of_the_users_own(tmp_path: Path) -> None:
    log = open_log("memory:")
    async with running(log=log, store=f"sqlite:///{tmp_path}/answers.db") as (app, speaker):
        speaker.permit()
        response = await begun(app)
        await until(app, response, said="four.")
        assert [status.run_id for status in await log.runs()] == [response.removeprefix("resp_")]
