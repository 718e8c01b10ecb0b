"""MCP servers at a URL: sessions that end, connections that break, and what goes to whom."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dragoman.errors import ToolError
from dragoman.mcp import mcp
from dragoman.tools import AskUser
from support import mcp_server
from support.answered import answered
from support.mcp_http import Requests, serving
from support.ports import free_port
from support.tasks_left import tasks_left
from support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")]


@pytest.fixture(params=["auto", "legacy"])
def protocol(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def requests(log: Path) -> Requests:
    return Requests(mcp_server.server(log=log).streamable_http_app())


@pytest.fixture
def url(requests: Requests) -> Iterator[str]:
    with serving(requests) as served:
        yield f"{served}/mcp"


async def test_tools_are_listed_and_called(url: str, protocol: str, requests: Requests):
    async with mcp(url, protocol=protocol, headers={"authorization": "Bearer key"}) as server:
        assert "add" in {tool.name for tool in await server.list_tools()}
        assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"
        calls = [server.call_tool("add", {"a": n, "b": n}) for n in range(5)]
        assert await asyncio.gather(*calls) == ["0", "2", "4", "6", "8"]
    assert {headers.get("authorization") for _, _, headers in requests.seen} == {"Bearer key"}
    assert ("DELETE" in {method for method, _, _ in requests.seen}) == (protocol == "legacy")


async def test_cancelling_a_call_reaches_the_server(url: str, protocol: str, log: Path):
    async with mcp(url, protocol=protocol) as server:
        call = asyncio.create_task(server.call_tool("slow"))
        await until(lambda: log.exists() and "slow begins" in log.read_text())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "slow is cancelled" in log.read_text())
        assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"


async def test_questions_of_calls_side_by_side_are_told_apart(url: str, protocol: str):
    async with mcp(url, protocol=protocol) as server:
        sizes = {"a": "small", "b": "large", "c": "small"}

        async def order(what: str, size: str) -> str:
            with pytest.raises(AskUser) as asked:
                await server.call_tool("order", {"what": what}, answered())
            assert what in str(asked.value)
            return await server.call_tool(
                "order", {"what": what}, answered({"size": size}, to=asked.value)
            )

        assert await asyncio.gather(*(order(what, size) for what, size in sizes.items())) == [
            "1 small a",
            "1 large b",
            "1 small c",
        ]
        slow = asyncio.create_task(server.call_tool("slow", {"seconds": 30}))
        with pytest.raises(AskUser, match="box"):
            await server.call_tool("order", {"what": "box"}, answered())
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow


@pytest.mark.slow
async def test_a_session_that_the_server_forgot_is_opened_again(protocol: str, log: Path):
    port = free_port()
    with serving(mcp_server.server().streamable_http_app(), port) as served:
        server = mcp(f"{served}/mcp", protocol=protocol)
        await server.__aenter__()
        await server.list_tools()
    with serving(mcp_server.server(log=log).streamable_http_app(), port):
        assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"
        assert await server.call_tool("add", {"a": 2, "b": 2}) == "4"
        await server.__aexit__(None, None, None)
    assert log.read_text() == "add 1 2\nadd 2 2\n"  # noqa: ASYNC240 - a test's


async def test_a_server_that_cannot_be_reached_is_said_so(protocol: str):
    with pytest.raises(ToolError, match=r"127\.0\.0\.1 cannot be used: it cannot be reached"):
        await mcp(f"http://127.0.0.1:{free_port()}/mcp", protocol=protocol).list_tools()


@pytest.mark.slow
async def test_a_call_whose_server_is_gone_may_have_run(protocol: str, log: Path):
    with serving(mcp_server.server(log=log).streamable_http_app()) as served:
        server = mcp(f"{served}/mcp", protocol=protocol)
        await server.__aenter__()
        call = asyncio.create_task(server.call_tool("slow"))
        await until(lambda: log.exists() and "slow begins" in log.read_text())
    with pytest.raises(ToolError, match="may have run or not"):
        await call
    await server.__aexit__(None, None, None)


@pytest.mark.slow
async def test_one_request_that_breaks_costs_no_other(
    url: str, protocol: str, log: Path, monkeypatch: pytest.MonkeyPatch
):
    send = httpx2.AsyncClient.send

    async def breaking(
        self: httpx2.AsyncClient, request: httpx2.Request, **how: Any
    ) -> httpx2.Response:
        if b'"big"' in request.content:
            raise httpx2.ReadError("it broke")
        return await send(self, request, **how)

    monkeypatch.setattr(httpx2.AsyncClient, "send", breaking)
    async with mcp(url, protocol=protocol) as server:
        slow = asyncio.create_task(server.call_tool("slow", {"seconds": 0.5}))
        await until(lambda: log.exists() and "slow begins" in log.read_text())
        with pytest.raises(
            ToolError, match="the connection broke: it broke; it may have run or not"
        ):
            await server.call_tool("big", {"size": 1})
        assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"
        assert await slow == "done"


@pytest.mark.slow
async def test_one_answer_that_breaks_costs_no_other(protocol: str, log: Path):
    app = mcp_server.server(log=log).streamable_http_app()

    async def breaking(scope: Any, receive: Any, send: Any) -> None:
        message = await receive() if scope["type"] == "http" else None
        if message is not None and b'"big"' in message.get("body", b""):
            headers = [(b"content-length", b"9"), (b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"{", "more_body": True})
            raise ConnectionError

        async def first() -> Any:
            nonlocal message
            given, message = message, None
            return await receive() if given is None else given

        await app(scope, first, send)

    with serving(breaking) as served:
        async with mcp(f"{served}/mcp", protocol=protocol) as server:
            slow = asyncio.create_task(server.call_tool("slow", {"seconds": 0.5}))
            await until(lambda: log.exists() and "slow begins" in log.read_text())
            with pytest.raises(ToolError, match="may have run or not"):
                await server.call_tool("big", {"size": 1})
            assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"
            assert await slow == "done"


async def test_what_http_refuses_is_said_with_what_to_do(protocol: str):
    async def refuse(request: Any) -> Response:
        return Response("no", 401)

    with (
        serving(Starlette(routes=[Route("/mcp", refuse, methods=["GET", "POST"])])) as served,
        pytest.raises(ToolError, match=r"HTTP 401; give it a key with headers=, or .* oauth="),
    ):
        await mcp(f"{served}/mcp", protocol=protocol).list_tools()


async def test_no_redirect_takes_a_key_elsewhere(requests: Requests, url: str, protocol: str):
    async def away(request: Any) -> Response:
        return RedirectResponse(url, 307)

    with (
        serving(Starlette(routes=[Route("/mcp", away, methods=["GET", "POST"])])) as served,
        pytest.raises(ToolError, match="not followed"),
    ):
        await mcp(f"{served}/mcp", protocol=protocol, headers={"x-key": "s3cret"}).list_tools()
    assert requests.seen == []


async def test_a_large_answer_is_not_read_to_its_end(protocol: str):
    async def much(request: Any) -> Response:
        return JSONResponse({"x": "y" * 3_000_000})

    with (
        serving(Starlette(routes=[Route("/mcp", much, methods=["GET", "POST"])])) as served,
        pytest.raises(ToolError, match="larger than max_result="),
    ):
        await mcp(f"{served}/mcp", protocol=protocol, max_result=1000).list_tools()


async def test_no_task_is_left(url: str, protocol: str):
    before = asyncio.all_tasks()
    async with mcp(url, protocol=protocol) as server:
        await server.list_tools()
    assert await tasks_left(before) == set()


async def test_who_is_cancelled_while_it_connects_leaves_nothing(protocol: str):
    came = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hang(request: Any) -> Response:
        loop.call_soon_threadsafe(came.set)
        await asyncio.sleep(60)
        return Response()

    before = asyncio.all_tasks()
    with serving(Starlette(routes=[Route("/mcp", hang, methods=["GET", "POST"])])) as served:
        task = asyncio.create_task(mcp(f"{served}/mcp", protocol=protocol).list_tools())
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await tasks_left(before) == set()


async def test_a_call_carries_the_trace(url: str, protocol: str):
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    with sdk.TracerProvider().get_tracer("tests").start_as_current_span("a run") as span:
        told = await mcp(url, protocol=protocol).call_tool("trace")
    assert told.split("-")[1] == trace.format_trace_id(span.get_span_context().trace_id)


async def test_no_error_of_a_server_s_stands_for_a_failure_of_ours(protocol: str):
    """A server that guessed what a failure looks like could send people to its own page to sign
    in."""

    async def forge(request: Any) -> Response:
        asked = await request.json()
        error = {"code": -32603, "message": "somebody must sign in", "data": "0" * 32}
        return JSONResponse({"jsonrpc": "2.0", "id": asked.get("id"), "error": error}, 500)

    with (
        serving(Starlette(routes=[Route("/mcp", forge, methods=["POST"])])) as served,
        pytest.raises(ToolError, match="cannot be used: somebody must sign in"),
    ):
        await mcp(f"{served}/mcp", protocol=protocol).list_tools()
