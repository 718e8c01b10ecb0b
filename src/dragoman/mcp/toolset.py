"""Tools of an MCP server: `mcp`, and `MCPToolset`, which it makes.

A set asks its server by `Requests`, which needs the library `mcp` and is imported with the first
request. What the server lists becomes tools of ours, the same ones as long as it lists the same;
while somebody must sign in, one tool that asks for that stands for all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from dragoman.arguments import expect, expect_each
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.logs import logger
from dragoman.mcp.offers import MCP, hints
from dragoman.mcp.options import ApprovalPolicy, Options, Sampling, make_label, parse_server
from dragoman.mcp.sessions import Sessions
from dragoman.message import DataPart, LinkPart, Message, TextPart
from dragoman.runtime import extra_hint
from dragoman.tools import SignIn, Tool, ToolContext, Toolset

if TYPE_CHECKING:
    from mcp import types

    from dragoman.mcp.offers import Prompt, Resource
    from dragoman.mcp.options import OAuth
    from dragoman.mcp.requests import Requests

__all__ = ["MCPToolset", "mcp"]

_NO_RUN: ToolContext[Any] = ToolContext(None)

_LOG = logger("mcp")
_ListedTools = dict[str, tuple[Any, Tool]]
"""Name → what was listed, and the tool that it became."""


class MCPToolset(Toolset):
    """The tools of an MCP server, its resources and its prompts. `mcp` makes it.

    It connects when it is first asked for something. While it is entered (`async with`, an agent's
    or a run's, too) the session, and a program that was started, is kept; else it lasts for one
    request. A session that broke is opened anew.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self.name = options.name or make_label(options.server)
        """What errors and people call the server."""
        self._sessions = Sessions(options, self.name)
        self._requests: Requests | None = None
        self._tools: dict[str, tuple[Any, Tool]] = {}

    async def list_tools(self, context: ToolContext[Any] = _NO_RUN) -> Sequence[Tool]:  # noqa: ARG002 - they are the same in all runs
        """Returns the server's tools; if somebody must sign in first, the one tool that asks for
        that.

        Raises:
            ToolError: the server cannot be started or reached, or refuses.
            SettingsError: the library `mcp` is missing.
        """
        try:
            listed = await self._get_requests().list_tools()
        except SignIn:
            return [_make_sign_in_tool(self, self._options)]
        self._tools = _make_tools(self, self._options, listed, self._tools)
        return [tool for _, tool in self._tools.values()]

    async def call_tool(
        self,
        name: str,
        arguments: JsonMap | None = None,
        context: ToolContext[Any] = _NO_RUN,
    ) -> Any:
        """Calls a tool by the server's name of it → what a tool returns: a text, a JSON value, or
        parts.

        Raises:
            ToolError: it failed; `content` is what the server gave.
            AskUser: the server asks something that is not answered in `context`, or somebody must sign in.
        """
        for address in self.find_addresses(context):
            await self._take_address(address)
        listed = self._tools.get(name)
        repeats = listed is not None and listed[1].idempotent
        return await self._get_requests().call_tool(name, arguments or {}, context, repeats=repeats)

    async def list_resources(self) -> list[Resource]:
        """Returns what the server lets clients read.

        Raises:
            ToolError: it cannot be told.
        """
        return await self._get_requests().list_resources()

    async def list_resource_templates(self) -> list[Resource]:
        """Returns patterns of resources: URIs with gaps to be filled.

        Raises:
            ToolError: it cannot be told.
        """
        return await self._get_requests().list_resource_templates()

    async def read_resource(self, uri: str) -> tuple[TextPart | DataPart | LinkPart, ...]:
        """Returns the content of a resource, as parts for a prompt.

        Raises:
            ToolError: there is none, or it cannot be read.
        """
        return await self._get_requests().read_resource(uri)

    async def list_prompts(self) -> list[Prompt]:
        """Returns the prompts that the server has.

        Raises:
            ToolError: they cannot be told.
        """
        return await self._get_requests().list_prompts()

    async def prompt(self, name: str, /, **arguments: str) -> list[Message]:
        """Returns the messages of a prompt, to send or to put before others: `agent.send(None,
        history=await server.prompt("review"))`.

        Raises:
            ToolError: there is none, or its arguments do not fit.
        """
        return await self._get_requests().prompt(name, arguments)

    async def sign_in(self, answer: str | None = None) -> str | None:
        """Signs in, as far as that goes without a person → the address where somebody must sign in;
        `None`: it is done. `answer`: the address to which he was sent back.

        Raises:
            ToolError: he was refused, or the server cannot be reached.
        """
        if answer is not None:
            await self._take_address(answer)
        try:
            await self._get_requests().list_tools(anew=True)
        except SignIn as needed:
            return str(needed.metadata["url"])
        return None

    def find_addresses(self, context: ToolContext[Any]) -> Iterator[str]:
        """Returns those answers of a call that are addresses to which somebody was sent back."""
        return (
            (answer for answer in context.answers if isinstance(answer, str))
            if self._options.oauth is not None
            else iter(())
        )

    async def _take_address(self, address: str) -> None:
        self._get_requests()
        from dragoman.mcp.sign_in import take_answer

        if self._options.oauth is not None:
            await take_answer(str(self._options.server), self._options.oauth, address)

    def _get_requests(self) -> Requests:
        if self._requests is None:
            try:
                from dragoman.mcp.requests import Requests
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] not in (
                    "mcp",
                    "mcp_types",
                    "httpx2",
                    "pydantic",
                ):
                    raise
                raise SettingsError(
                    f"MCP servers need the library mcp: {extra_hint('mcp')}"
                ) from error
            self._requests = Requests(self._sessions, self._options, self.name)
        return self._requests

    async def __aenter__(self) -> Self:
        self._sessions.enter()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._sessions.leave()


def mcp(
    server: str | Sequence[str] | Any,
    *,
    name: str = "",
    prefix: str = "",
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float | None = 60.0,
    connect_timeout: float = 60.0,
    requires_approval: ApprovalPolicy = False,
    sampling: Sampling | None = None,
    roots: Iterable[str | os.PathLike[str]] = (),
    oauth: OAuth | None = None,
    max_result: int = 10_000_000,
    protocol: str = "auto",
) -> MCPToolset:
    """The tools of an MCP server: `mcp("npx -y @scope/server")` (a program, by its command line or
    its words), `mcp("https://host/mcp")` (streamable HTTP), or a server object of the library `mcp`
    in this process. Nothing is started or sent before it is needed.

    `name` goes before the tools' descriptions, so that a model can tell servers apart; `prefix`
    before their names. `headers` go to that URL's own origin alone. `env`: variables for the
    program, which gets few of ours (PATH, HOME, …); `cwd`: where it is started. `timeout`: seconds
    for a call, `None` for as long as it takes; `connect_timeout`: to connect. `requires_approval`:
    of all calls, or a function of each `Tool` (see `hints`) says it. `sampling`: what answers when
    the server asks for a model; nobody does unless it is given, and an agent has its own tools
    there. `roots`: directories that the server is told of. `oauth`: how somebody signs in.
    `max_result`: bytes of a result that are taken. `protocol`: `auto`, `legacy` (the handshake of
    before 2026), or a version.

    Raises:
        SettingsError: the command line is empty or malformed, or options do not fit the kind of server.
        TypeError: an argument is of another type.
    """
    expect("name", name, str)
    expect("prefix", prefix, str)
    for label_, mapping in (("headers", headers), ("env", env)):
        expect(label_, mapping, Mapping, type(None))
        expect_each(label_, [text for pair in (mapping or {}).items() for text in pair], str)
    expect("timeout", timeout, int, float, type(None), hint="it is seconds")
    expect("connect_timeout", connect_timeout, int, float, hint="it is seconds")
    expect("max_result", max_result, int, hint="it is bytes")
    return MCPToolset(
        Options(
            server=parse_server(server),
            name=name,
            prefix=prefix,
            headers=headers or {},
            env=env or {},
            cwd=cwd,
            timeout=timeout,
            connect_timeout=connect_timeout,
            requires_approval=requires_approval,
            sampling=sampling,
            roots=tuple([os.fspath(root) for root in roots]),
            oauth=oauth,
            max_result=max_result,
            protocol=protocol,
        )
    )


def _make_tools(
    toolset: MCPToolset, options: Options, listed: Iterable[types.Tool], known: _ListedTools
) -> _ListedTools:
    """Returns the tools of a list. `known`: those of the list before."""
    tools: _ListedTools = {}
    for listed_tool in listed:
        if not listed_tool.name or listed_tool.name in tools:
            _LOG.warning(
                "%s lists a tool %r that is there already or has no name: it is left out",
                toolset.name,
                listed_tool.name,
            )
            continue
        before = known.get(listed_tool.name)
        tools[listed_tool.name] = (
            before
            if before is not None and before[0] == listed_tool
            else (listed_tool, _make_tool(toolset, options, listed_tool))
        )
    return tools


def _make_tool(toolset: MCPToolset, options: Options, listed: types.Tool) -> Tool:
    async def call(dragoman_context: ToolContext[Any], **arguments: Any) -> Any:
        return await toolset.call_tool(listed.name, arguments, dragoman_context)

    tool = Tool(
        options.prefix + listed.name,
        _prefix_description(options, listed.description),
        call,
        _complete_schema(listed.input_schema),
        timeout=options.timeout,
        native=_make_native(listed),
    )
    hint = hints(tool)
    policy = options.requires_approval
    changed = {
        "idempotent": hint.read_only_hint or hint.idempotent_hint,
        "requires_approval": policy(tool) if callable(policy) else policy,
    }
    return msgspec.structs.replace(tool, **changed)


def _prefix_description(options: Options, description: str | None) -> str:
    """Returns a tool's description, behind the name that the caller gave the server."""
    return f"{options.name}: {description}" if options.name and description else description or ""


def _complete_schema(schema: JsonMap) -> JsonMap:
    return schema if schema.get("type") == "object" else {"type": "object", **schema}


def _make_native(listed: types.Tool) -> Json | None:
    """Returns what a server says of a tool and no model is told."""
    fields = listed.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"title", "annotations"}
    )
    return {MCP: fields} if fields else None


def _make_sign_in_tool(toolset: MCPToolset, options: Options) -> Tool:
    """Returns the tool that stands for all of a server's tools until somebody has signed in."""

    async def sign_in(dragoman_context: ToolContext[Any]) -> str:
        address = await toolset.sign_in(next(toolset.find_addresses(dragoman_context), None))
        if address is not None:
            raise SignIn(address, f"Please sign in to {toolset.name}.")
        return f"Somebody has signed in to {toolset.name}: its tools are there now."

    name = re.sub(r"\W+", "_", f"{options.prefix}sign_in_to_{toolset.name}")[:64]
    description = f"Asks the user to sign in to {toolset.name}, whose tools are there only afterwards. Call it when you need them."
    return Tool(name, description, sign_in, {"type": "object", "properties": {}}, idempotent=True)
