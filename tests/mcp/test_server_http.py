"""An MCP server over HTTP: the official client, and requests that no client makes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from mcp import Client

from dragoman import Tool, ToolContext, tool
from dragoman.errors import SettingsError
from dragoman.mcp import http_app, serve_http, server
from support.mcp import ERAS, Told, User, accepted, text

pytestmark = pytest.mark.anyio
in_both_eras = pytest.mark.parametrize("era", ERAS)

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


@tool(requires_approval=True)
async def drop(ctx: ToolContext[Any], path: str) -> str:
    """Drops a file."""
    await ctx.progress(1, 1, "gone")
    return f"{path} dropped"


@asynccontextmanager
async def served(*tools: Tool, **how: Any) -> AsyncGenerator[str]:
    """A server on a free port → its URL."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_http(server(tools), port=0, ready=url.set_result, **how))
    await asyncio.wait((task, url), return_when=asyncio.FIRST_COMPLETED)
    try:
        yield url.result() if url.done() else task.result() or ""
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def posted(url: str, data: Any, **headers: str) -> tuple[int, str]:
    """Sends a body → status and body of the answer."""
    async with aiohttp.ClientSession() as session:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        async with session.post(url, headers={**HEADERS, **headers}, data=body) as response:
            return response.status, await response.text()


@in_both_eras
async def test_the_official_client_lists_calls_and_answers(era: str) -> None:
    user, told = User(accepted(approved=True)), Told()
    async with served(drop) as url, Client(url, mode=era, elicitation_callback=user) as client:
        assert [one.name for one in (await client.list_tools()).tools] == ["drop"]
        result = await client.call_tool("drop", {"path": "a"}, progress_callback=told)
    assert text(result) == "a dropped"
    assert told.all == [(1, 1, "gone")]
    assert 'drop {"path":"a"}' in user.form.message


@in_both_eras
@pytest.mark.slow
async def test_a_client_that_leaves_in_the_middle_ends_its_call_and_no_other(era: str) -> None:
    began, ended, go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool
    async def wait(forever: bool) -> str:
        if not forever:
            await go.wait()
            return "done"
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async with served(wait) as url, Client(url, mode=era) as stays:
        other = asyncio.create_task(stays.call_tool("wait", {"forever": False}))
        async with Client(url, mode=era) as client:
            leaving = asyncio.create_task(client.call_tool("wait", {"forever": True}))
            await began.wait()
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
        await ended.wait()
        go.set()
        assert text(await other) == "done"


async def test_the_end_of_the_server_ends_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.mcp.server_http._CLOSING_SECONDS", 0)
    began, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with served(wait) as url:
        client = Client(url)
        await client.__aenter__()
        task = asyncio.create_task(client.call_tool("wait", {}))
        await began.wait()
    assert ended.is_set()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await client.__aexit__(None, None, None)


async def test_without_the_token_nobody_gets_in() -> None:
    async with served(drop, token="sesame") as url:
        for headers in (
            {},
            {"Authorization": "Bearer other"},
            {"Authorization": "sesame"},
            {"Authorization": "Basic x"},
        ):
            status, body = await posted(url, PING, **headers)
            assert (status, "token" in body) == (401, True)
        status, body = await posted(url, PING, Authorization="Bearer sesame")
        assert status == 200
        assert "serverInfo" in body


async def test_a_web_page_of_another_host_cannot_use_a_server_on_this_machine() -> None:
    async with served(drop) as url:
        assert (await posted(url, PING, Origin="https://evil.example"))[0] == 403
        assert (await posted(url, PING, Host="evil.example"))[0] == 421
        assert (await posted(url, PING, Origin="http://localhost:5173"))[0] == 200


async def test_what_is_no_request_is_refused_and_the_server_goes_on() -> None:
    async with served(drop) as url:
        assert (await posted(url, b"{"))[0] == 400
        assert (await posted(url, b"[" * 100_000))[0] == 400
        assert (await posted(url, {"jsonrpc": "2.0"}))[0] == 400
        assert (await posted(url, b"\xff\xfe"))[0] == 400
        assert (await posted(url, b'"' + b"x" * 5_000_000 + b'"'))[0] == 413
        assert (await posted(url.replace("/mcp", "/other"), PING))[0] == 404
        assert (await posted(url, PING))[0] == 200


async def test_where_others_could_reach_it_a_token_is_needed() -> None:
    with pytest.raises(SettingsError, match="token"):
        await serve_http(server([drop]), host="0.0.0.0", port=0)
    with pytest.raises(SettingsError, match="empty"):
        http_app(server([drop]), token=" ")
    with pytest.raises(SettingsError, match="no host"):
        await serve_http(server([drop]), host="no.such.host.invalid", port=0, token="t")


async def test_a_port_that_is_taken_is_told() -> None:
    async with served(drop) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        with pytest.raises(SettingsError, match=f"port {port} of 127.0.0.1 is taken"):
            await serve_http(server([drop]), port=port)
