"""Servers over one database whose runs outlive them, in this process."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from multiprocessing.connection import Connection
from typing import Any

import httpx2
import openai

from dragoman import Agent, serve
from dragoman.testing import ScriptedModel
from dragoman.transport import AddressPolicy

__all__ = ["KEY", "OTHER", "WORDS", "Server", "Servers", "Speaker", "serving", "speaking"]

KEY, OTHER = "one-secret", "two-secret"
WORDS = ["One ", "two ", "three ", "four."]


class Speaker:
    """A model that says a word for each permit."""

    def __init__(self, words: list[str] = WORDS) -> None:
        self.permits = asyncio.Semaphore(0)
        self.words, self.asked = words, 0

    async def __call__(self, request: Any) -> AsyncGenerator[str]:
        self.asked += 1
        for word in self.words:
            await self.permits.acquire()
            yield word

    def permit(self, count: int = len(WORDS)) -> None:
        for _ in range(count):
            self.permits.release()


def speaking(speaker: Any, **how: Any) -> Agent[Any]:
    return Agent(ScriptedModel(speaker, wire="openai_chat"), api_key="k", **how)


class Server:
    """A server that listens, in this process."""

    def __init__(self, app: Any, path: str) -> None:
        self.app, self.service, self.path = app, app.state.service, path
        self.url = ""
        self.clients: dict[str, openai.AsyncOpenAI] = {}
        self.task: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = serve.serve_http(self.app, port=0, drain_seconds=5, ready=ready.set_result)
        self.task = asyncio.create_task(serving)
        self.url = await ready

    def client(self, key: str = KEY) -> openai.AsyncOpenAI:
        if key not in self.clients:
            self.clients[key] = openai.AsyncOpenAI(
                base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=20
            )
        return self.clients[key]

    async def ask(
        self, method: str, path: str, body: Any = None, key: str = KEY, **headers: str
    ) -> httpx2.Response:
        async with httpx2.AsyncClient(base_url=self.url, timeout=20) as http:
            headers = {"authorization": f"Bearer {key}", **headers}
            return await http.request(method, path, json=body, headers=headers)

    async def stop(self) -> None:
        """Ends it as a second SIGTERM does."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])

    async def kill(self) -> None:
        """Leaves what it did as a process does that is killed: its leases have run out."""
        service, run_ids = self.service, list(self.service.runs._keeper.driven)
        for run_id, driven in list(service.runs._keeper.driven.items()):
            # Nothing of it comes into the log any more.
            driven.driver._log = Dead()
            service.runs._keeper.driven.pop(run_id)
            driven.task.cancel()
        tasks = [service._working, service.runs._keeper_task]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        with closing(sqlite3.connect(self.path)) as connection, connection:
            marks = ", ".join("?" * len(run_ids))
            connection.execute(
                f"UPDATE dragoman_runs SET lease_until = 1 WHERE run_id IN ({marks})",
                run_ids,
            )


class Servers:
    """The servers of a test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.all: list[Server] = []

    async def start(self, agents: Any, **how: Any) -> Server:
        """Starts a server over the database."""
        app = serve.app(agents, auth=[KEY, OTHER], store=self.url, durable=True, **how)
        server = Server(app, self.url.removeprefix("sqlite:///"))
        self.all.append(server)
        await server.listen()
        return server


class Dead:
    """A log that cannot be reached."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def refuse(*_: Any, **__: Any) -> Any:
            raise asyncio.CancelledError

        return refuse


@asynccontextmanager
async def serving(url: str) -> AsyncGenerator[Servers]:
    servers = Servers(url)
    try:
        yield servers
    finally:
        for server in servers.all:
            for client in server.clients.values():
                await client.close()
            await server.stop()


def serve_process(url: str, place: Connection, words: list[str], hook_port: int) -> None:
    """A process that serves until it is killed. Its model says a word in 20 ms."""

    async def speak(_: Any) -> AsyncGenerator[str]:
        for word in words:
            await asyncio.sleep(0.02)
            yield word

    app = serve.app(
        {"m": speaking(speak)},
        auth=[KEY, OTHER],
        store=url,
        durable=True,
        webhooks=AddressPolicy(["127.0.0.1"], schemes=["http"], ports=[hook_port]),
    )
    service = app.state.service
    service.lease_seconds = 0.8
    service.runs = service.open_runs()
    serve.run_server(app, port=0, drain_seconds=5, ready=place.send)
