"""A server's process that is killed while it makes an answer in the background: another over the
same database says so."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from support import postgres
from support.background import KEY, app_of, serve_at

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.slow, pytest.mark.timeout(60)]


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    with postgres.postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return postgres.new_database(request.getfixturevalue("postgres_server"))
    return f"sqlite:///{tmp_path}/answers.db"


def at(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)


async def test_what_a_killed_server_made_has_failed_with_what_there_was(url: str) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve_at, args=(url, there), daemon=True)
    process.start()
    one = at(await asyncio.to_thread(here.recv))
    begun = await one.responses.create(model="m", input="Hi.", background=True)
    stream = await one.responses.retrieve(begun.id, stream=True)
    events = [event async for event in _until(stream, "Half ")]
    process.kill()
    process.join()
    app = app_of(url)
    async with app.router.lifespan_context(app):
        http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app))
        other = openai.AsyncOpenAI(
            base_url="http://127.0.0.1/v1", api_key=KEY, http_client=http, max_retries=0
        )
        last = events[-1].sequence_number
        rest = [
            event
            async for event in await other.responses.retrieve(
                begun.id, stream=True, starting_after=last
            )
        ]
        assert rest[0].sequence_number == last + 1
        assert rest[-1].type == "response.failed"
        found = await other.responses.retrieve(begun.id)
        assert (found.status, found.output_text) == ("failed", "Half ")
        assert found.error is not None
        assert "the process that made" in found.error.message


async def _until(stream: Any, text: str) -> AsyncGenerator[Any]:
    async for event in stream:
        yield event
        if getattr(event, "delta", None) == text:
            return
