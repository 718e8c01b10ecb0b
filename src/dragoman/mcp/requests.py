"""`Requests`: lists and calls to one server, over a session that is opened when needed.

Every request goes through `_send_to_session`, which repeats it once on a new session if the old one is over
and repeating is safe: the server has not received it, or it changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mcp import types
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from pydantic import ValidationError

from dragoman.errors import ToolError
from dragoman.json_bytes import JsonMap
from dragoman.mcp.answers import VisitPage
from dragoman.mcp.connection import Connection
from dragoman.mcp.content import check_size, load_parts, load_resource, load_result
from dragoman.mcp.offers import Prompt, PromptArgument, Resource
from dragoman.mcp.options import Options
from dragoman.mcp.sessions import Sessions
from dragoman.message import Message
from dragoman.tools import SignIn, ToolContext

__all__ = ["Requests"]

T = TypeVar("T")

_MOST_PAGES = 1000
_MAYBE = "; it may have run or not: find out before you call it again"


class Requests:
    """Requests to one server."""

    def __init__(self, sessions: Sessions, options: Options, name: str) -> None:
        self._sessions = sessions
        self._options = options
        self._name = name

    async def list_tools(self, *, anew: bool = False) -> tuple[types.Tool, ...]:
        """Requests the list of the MCP server's tools, from the last list if it still holds, unless
        `anew`."""

        async def read_tools(connection: Connection) -> tuple[types.Tool, ...]:
            if (tools := connection.tools) is None or anew:
                tools = await _list_all_tools(connection)
            return tools

        return await self._send_query(read_tools)

    async def list_resources(self) -> list[Resource]:
        """Requests the list of resources that an MCP server offers."""
        return [
            Resource(
                str(item.uri), item.name, item.title, item.description, item.mime_type, item.size
            )
            for item in await self._list_items("resources")
        ]

    async def list_resource_templates(self) -> list[Resource]:
        """Requests the list of resource templates that an MCP server offers."""
        return [
            Resource(item.uri_template, item.name, item.title, item.description, item.mime_type)
            for item in await self._list_items("resource_templates")
        ]

    async def list_prompts(self) -> list[Prompt]:
        """Requests the list of prompts that an MCP server offers."""
        return [
            Prompt(
                item.name,
                item.title,
                item.description,
                tuple(
                    [
                        PromptArgument(argument.name, argument.description, bool(argument.required))
                        for argument in item.arguments or ()
                    ]
                ),
            )
            for item in await self._list_items("prompts")
        ]

    async def read_resource(self, uri: str) -> tuple[Any, ...]:
        """Requests the content of an MCP resource, as parts."""

        async def read(connection: Connection) -> tuple[Any, ...]:
            """Reads one MCP resource over a connection. Contents of an unknown kind are left
            out."""
            result = await connection.client.read_resource(uri)
            read_parts = [load_resource(contents) for contents in result.contents]
            parts = tuple([part for part in read_parts if part is not None])
            check_size(parts, self._options.max_result, self._name)
            return parts

        return await self._send_query(read)

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> list[Message]:
        """Requests the messages of a prompt of an MCP server."""

        async def read_prompt(connection: Connection) -> list[Message]:
            """Gets the prompt from the MCP server, as messages."""
            result = await connection.client.get_prompt(name, dict(arguments))
            messages: list[Message] = []
            for message in result.messages:
                parts = load_parts([message.content])
                check_size(parts, self._options.max_result, self._name)
                if parts:
                    messages.append(
                        Message.user(*parts) if message.role == "user" else Message.model(*parts)
                    )
            return messages

        return await self._send_query(read_prompt)

    async def _list_items(self, field: str) -> tuple[Any, ...]:
        """Returns all items of a list. `field`: its name in the protocol, such as `prompts`."""
        return await self._send_query(lambda connection: _read_all_pages(connection, field))

    async def call_tool(
        self, name: str, arguments: JsonMap, context: ToolContext[Any], *, repeats: bool
    ) -> Any:
        """Requests a tool call of the MCP server and returns its result. `repeats`: a second call
        does no harm."""

        async def run_call(connection: Connection) -> Any:
            """Sends the request that calls the MCP tool over one connection."""
            # The library checks results against the tool's output schema, so it must have listed
            # the tool.
            if not connection.has_listed:
                await _list_all_tools(connection)
            with connection.inputs.call(context) as call:
                try:
                    async with self._limit_time(name):
                        result = await call.run(connection.client.session, name, dict(arguments))
                except MCPError as error:
                    # An error of the server is an answer; a broken connection is none.
                    call.answered = connection.find_failure(error) is None
                    raise
            return load_result(result, self._options.max_result, self._name)

        return await self._send_to_session(run_call, repeats=repeats)

    @asynccontextmanager
    async def _limit_time(self, name: str) -> AsyncGenerator[None, None]:
        """Limits the time of an MCP request. A run limits its tools itself, a little earlier, so
        this is for direct calls.

        Raises:
            ToolError: the call took too long. The server is told that it is cancelled.
        """
        seconds = self._options.timeout
        bound = asyncio.timeout(seconds)
        try:
            async with bound:
                yield
        except TimeoutError as error:
            # The timeout of somebody else, such as the run.
            if not bound.expired():
                raise
            raise ToolError(
                f"{self._name}: {name} did not finish within {seconds or 0.0:g} seconds (timeout=)"
            ) from error

    async def _send_query(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Sends an MCP request that changes nothing and that the server answers at once, within the
        connect timeout.

        Raises:
            SignIn, ToolError: see `_send_to_session`.
        """
        seconds = self._options.connect_timeout

        async def in_time(connection: Connection) -> T:
            async with asyncio.timeout(seconds):
                return await work(connection)

        try:
            return await self._send_to_session(in_time, repeats=True)
        except TimeoutError:
            raise ToolError(
                f"{self._name} did not answer within {seconds:g} seconds (connect_timeout=)"
            ) from None

    async def _send_to_session(
        self, work: Callable[[Connection], Awaitable[T]], *, repeats: bool
    ) -> T:
        """Sends requests (`work`) with an MCP session, and once more with a new session if the
        first is over and repeating is safe.

        Raises:
            SignIn: somebody must sign in first.
            AskUser: somebody must answer, or visit a page.
            ToolError: the request failed.
        """
        again = True
        while True:
            async with self._sessions.connection() as connection:
                try:
                    return await work(connection)
                except MCPError as error:
                    failure = connection.find_failure(error)
                    if failure is None:
                        raise self._make_error(error) from error
                    if failure.kind == "sign_in":
                        raise SignIn(failure.url, f"Please sign in to {self._name}.") from error
                    if failure.kind == "status":
                        raise ToolError(f"{self._name}: {failure.text}") from error
                    if failure.kind == "forgotten":
                        # The next attempt opens a new session.
                        await self._sessions.drop(connection)
                    # A lost request may have run; all others have not.
                    safe = repeats or failure.kind != "lost"
                    if not again or not safe:
                        raise ToolError(
                            f"{self._name}: {failure.text}{'' if safe else _MAYBE}"
                        ) from error
                except ValidationError as error:
                    raise ToolError(
                        f"{self._name} gave what is not of the protocol: {str(error)[:500]}"
                    ) from error
                except RuntimeError as error:
                    # The library raises it if a result breaks its tool's output schema.
                    raise ToolError(f"{self._name}: {str(error)[:500]}") from error
            again = False

    def _make_error(self, error: MCPError) -> Exception:
        """Returns the exception for an MCP server's error to a request: a page that somebody must
        visit, or a `ToolError`."""
        if error.code == types.URL_ELICITATION_REQUIRED:
            try:
                wanted = UrlElicitationRequiredError.from_error(error.error).elicitations
            except ValueError:
                wanted = []
            if wanted:
                return VisitPage(wanted[0].url, wanted[0].message, self._name)
        return ToolError(
            f"{self._name}: {error.message[:2000] or 'it refuses, and does not say why'}"
        )


async def _list_all_tools(connection: Connection) -> tuple[types.Tool, ...]:
    """Lists all tools and remembers them in the connection."""
    connection.tools = tools = await _read_all_pages(connection, "tools")
    return tools


async def _read_all_pages(connection: Connection, field: str) -> tuple[Any, ...]:
    """Requests all pages of an MCP list, such as `tools`.

    Raises:
        ToolError: the list does not end.
    """
    read_page: Callable[..., Awaitable[Any]]
    read_page = getattr(connection.client.session, f"list_{field}")
    items: list[Any] = []
    params: types.PaginatedRequestParams | None = None
    for _ in range(_MOST_PAGES):
        page = await read_page(params=params)
        items += getattr(page, field)
        if page.next_cursor is None:
            return tuple(items)
        params = types.PaginatedRequestParams(cursor=page.next_cursor)
    raise ToolError(f"the list of the MCP server's {field} does not end")
