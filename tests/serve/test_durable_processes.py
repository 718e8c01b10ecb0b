"""Servers over one database that are killed again and again: another one ends what they began, and
its readers and its addresses learn of all of it."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from support import postgres
from support.durable_serving import KEY, OTHER, serve_process

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.slow, pytest.mark.timeout(240)]

KILLS = 8
WORDS = [f"word{number} " for number in range(30)]
ALL = "".join(WORDS)


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
    return f"sqlite:///{tmp_path}/server.db"


class Process:
    """A server in a process of its own."""

    def __init__(self, url: str, hook_port: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["support.durable_serving", "dragoman.serve.jobs"])
        self._here, there = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=serve_process, args=(url, there, WORDS, hook_port), daemon=True
        )
        self._process.start()
        self.url = ""

    async def ready(self) -> None:
        self.url = await asyncio.to_thread(self._here.recv)
        self.openai = openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=KEY, max_retries=0)
        self.http = httpx2.AsyncClient(
            base_url=self.url, timeout=60, headers={"authorization": f"Bearer {KEY}"}
        )

    async def kill(self, *, gently: bool = False) -> None:
        if gently:
            self._process.terminate()
        else:
            self._process.kill()
        await asyncio.to_thread(self._process.join)
        await self.openai.close()
        await self.http.aclose()


async def started(url: str, hook_port: int) -> Process:
    process = Process(url, hook_port)
    await process.ready()
    return process


@asynccontextmanager
async def hook() -> AsyncGenerator[tuple[int, list[Any]]]:
    """An address that takes notifications, and what it got."""
    got: list[Any] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        [length] = [line for line in head.split("\r\n") if line.startswith("content-length:")]
        got.append(json.loads(await reader.readexactly(int(length.split(":")[1]))))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], got


async def read(process: Process, response: str, after: int = -1) -> list[dict[str, Any]]:
    """Events of an answer until it is over or its server is gone."""
    events: list[dict[str, Any]] = []
    try:
        place: dict[str, Any] = {"starting_after": after} if after >= 0 else {}
        async with await process.openai.responses.retrieve(
            response, stream=True, **place
        ) as stream:
            async for event in stream:
                events.append(event.to_dict())
    except (openai.APIConnectionError, httpx2.HTTPError, RuntimeError):
        pass
    return events


async def begin(process: Process, hook_port: int, number: int) -> tuple[str, str]:
    """Ids of an answer and of a task that a server begins."""
    answer = await process.openai.responses.create(model="m", input="Hi.", background=True)
    assert answer.status == "queued"
    address = {"url": f"http://127.0.0.1:{hook_port}/hook"}
    options = {"returnImmediately": True, "taskPushNotificationConfig": address}
    parts = {"messageId": f"u{number}", "role": "ROLE_USER", "parts": [{"text": "Hi."}]}
    sent = await process.http.post(
        "/a2a/message:send", json={"message": parts, "configuration": options}
    )
    return answer.id, sent.json()["task"]["id"]


async def check(process: Process, response: str, task_id: str, events: list[Any]) -> None:
    """Checks an answer and a task that are over."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed", events[-1]
    final = events[-1]["response"]["output"]
    assert "".join(block["text"] for item in final for block in item["content"]) == ALL
    found = await process.openai.responses.retrieve(response)
    assert (found.status, found.output_text) == ("completed", ALL)
    stream = await process.http.get(f"/a2a/tasks/{task_id}:subscribe")
    if stream.status_code == 200:
        assert "TASK_STATE_COMPLETED" in stream.text
    task = (await process.http.get(f"/a2a/tasks/{task_id}")).json()
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    said = [part["text"] for artifact in task["artifacts"] for part in artifact["parts"]]
    assert ALL in said
    theirs = {"authorization": f"Bearer {OTHER}"}
    for path in (f"/v1/responses/{response}", f"/a2a/tasks/{task_id}"):
        assert (await process.http.get(path, headers=theirs)).status_code == 404


@pytest.mark.parametrize("gently", [False, True], ids=["kill", "term"])
async def test_another_server_ends_what_a_killed_one_began(url: str, gently: bool) -> None:
    chance = random.Random(datetime.now(UTC).toordinal())
    async with hook() as (hook_port, got):
        dying, living = await started(url, hook_port), await started(url, hook_port)
        for number in range(2 if gently else KILLS):
            response, task_id = await begin(dying, hook_port, number)
            reading = asyncio.create_task(read(dying, response))
            await asyncio.sleep(chance.uniform(0.0, 0.9))
            await dying.kill(gently=gently)
            events = await reading
            starting, after = (
                Process(url, hook_port),
                events[-1]["sequence_number"] if events else -1,
            )
            events += await read(living, response, after)
            await check(living, response, task_id, events)
            async with asyncio.timeout(30):
                while not any(_completes(item, task_id) for item in got):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            await starting.ready()
            # The next one dies that has lived till now.
            dying, living = living, starting
        for process in (dying, living):
            await process.kill()


def _completes(item: Any, task_id: str) -> bool:
    update = item.get("statusUpdate", {})
    state = update.get("status", {}).get("state")
    return update.get("taskId") == task_id and state == "TASK_STATE_COMPLETED"
