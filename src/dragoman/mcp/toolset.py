"""`mcp` and `MCPToolset`, the tools of an MCP server.

A toolset uses `Requests`, which needs the library `mcp` and is imported with the first request.
Tools that the server lists again unchanged stay the same objects. Until a user has signed in, one
tool that asks for it stands for all.
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
"""Name → the listed tool, and the `Tool` made from it."""


class MCPToolset(Toolset):
    """The tools, resources and prompts of an MCP server. `mcp` makes it.

    It connects when it is first used. While it is entered (with `async with`, by an agent or by a
    run) the session and its program stay; otherwise they last for one request. A broken session is
    opened again.
    """

    def __init__(self, options: Options) -> None:
        """Creates the toolset of an MCP server, not connected yet."""
        self._options = options
        self.name = options.name or make_label(options.server)
        """The server's name in errors."""
        self._sessions = Sessions(options, self.name)
        self._requests: Requests | None = None
        self._tools: dict[str, tuple[Any, Tool]] = {}

    async def list_tools(self, context: ToolContext[Any] = _NO_RUN) -> Sequence[Tool]:  # noqa: ARG002 - they are the same in all runs
        """Returns the tools of the MCP server's toolset, or the one tool that asks for a sign-in.

        Raises:
            ToolError: the server cannot be started or reached, or refuses.
            SettingsError: the library `mcp` is missing.
        """
        try:
            listed = await self._get_requests().list_tools()
        # Listing must not fail: the model decides whether it needs the server.
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
        """Calls a tool of the toolset by the MCP server's own name for it. Returns a text, a JSON
        value, or parts.

        Raises:
            ToolError: the call failed; `content` is what the server returned.
            AskUser: the server asks something that `context` does not answer, or somebody must
                sign in.
        """
        # The user has returned from a sign-in that this call asked for.
        for address in self.find_addresses(context):
            await self._take_redirect(address)
        listed = self._tools.get(name)
        # An unlisted tool may change something, so its call is not repeated.
        repeats = listed is not None and listed[1].idempotent
        return await self._get_requests().call_tool(name, arguments or {}, context, repeats=repeats)

    async def list_resources(self) -> list[Resource]:
        """Returns the resources of the toolset's MCP server that clients may read.

        Raises:
            ToolError: the request failed.
        """
        return await self._get_requests().list_resources()

    async def list_resource_templates(self) -> list[Resource]:
        """Returns templates of the resources of the toolset's MCP server: URIs with parameters.

        Raises:
            ToolError: the request failed.
        """
        return await self._get_requests().list_resource_templates()

    async def read_resource(self, uri: str) -> tuple[TextPart | DataPart | LinkPart, ...]:
        """Returns the content of a resource of the toolset's MCP server, as parts for a prompt.

        Raises:
            ToolError: there is no such resource, or it cannot be read.
        """
        return await self._get_requests().read_resource(uri)

    async def list_prompts(self) -> list[Prompt]:
        """Lists the prompts that the toolset's MCP server offers.

        Raises:
            ToolError: the request failed.
        """
        return await self._get_requests().list_prompts()

    async def prompt(self, name: str, /, **arguments: str) -> list[Message]:
        """Returns the messages of an MCP server's prompt, to send or to use as history:
        `agent.send(None, history=await server.prompt("review"))`.

        Raises:
            ToolError: there is no such prompt, or its arguments are wrong.
        """
        return await self._get_requests().prompt(name, arguments)

    async def sign_in(self, answer: str | None = None) -> str | None:
        """Signs the MCP toolset in as far as possible without a user. Returns the URL where a user
        must sign in, or None if it is done. `answer`: the URL to which the user returned.

        Raises:
            ToolError: the user was refused, or the server cannot be reached.
        """
        if answer is not None:
            await self._take_redirect(answer)
        try:
            await self._get_requests().list_tools(anew=True)
        except SignIn as needed:
            return str(needed.metadata["url"])
        return None

    def find_addresses(self, context: ToolContext[Any]) -> Iterator[str]:
        """Returns the answers of a call of the MCP toolset that are URLs to which a user
        returned."""
        # Without sign-in, texts among the answers are answers to the server's own questions.
        if self._options.oauth is not None:
            for answer in context.answers:
                if isinstance(answer, str):
                    yield answer

    async def _take_redirect(self, address: str) -> None:
        """Stores the OAuth redirect of the toolset's sign-in: the URL to which the user returned
        from a sign-in, with its code. `address`: the URL, or its query alone.

        Raises:
            SettingsError: the library `mcp` is missing.
            ToolError: the user was refused or did not agree.
        """
        # Called for its clear error if the library is missing, which the import below needs.
        self._get_requests()
        from dragoman.mcp.sign_in import take_answer

        if self._options.oauth is not None:
            await take_answer(str(self._options.server), self._options.oauth, address)

    def _get_requests(self) -> Requests:
        """Returns the requests to the toolset's MCP server, and imports what they need the first
        time.

        Raises:
            SettingsError: the library `mcp` is missing.
        """
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
        """Closes the MCP session of this event loop if no other run uses it."""
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
    """Returns the tools of an MCP server: a program by its command line (`mcp("npx -y
    @scope/server")`) or a list of words, a URL (`mcp("https://host/mcp")`), or a server object of
    the library `mcp`. It starts and sends nothing yet.

    Args:
        server: the command line, its words, the URL, or the object.
        name: prefix of the tools' descriptions, so that a model can tell servers apart.
        prefix: prefix of the tools' names.
        headers: HTTP headers, sent only to the URL's own origin.
        env: environment variables of the program. It gets only a few of this process's own
            (PATH, HOME, …).
        cwd: working directory of the program.
        timeout: seconds per call; `None` waits without limit.
        connect_timeout: seconds to connect.
        requires_approval: True for all calls, or a function of each `Tool` (see `hints`).
        sampling: answers when the server asks for a model; by default nothing does. An agent
            brings its own tools.
        roots: directories that the server is told about.
        oauth: how a user signs in.
        max_result: most bytes of a result.
        protocol: `auto`, `legacy` (the handshake before 2026), or a version.

    Raises:
        SettingsError: the command line is empty or malformed, or options do not fit the kind of
            server.
        TypeError: an argument has another type.
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
    """Returns the toolset's tools of an MCP list. `known`: those of the previous list."""
    tools: _ListedTools = {}
    for listed_tool in listed:
        if not listed_tool.name or listed_tool.name in tools:
            _LOG.warning(
                "%s lists a tool %r that is there already or has no name: it is left out",
                toolset.name,
                listed_tool.name,
            )
            continue
        # An unchanged tool stays the same object, so that agents see no change either.
        entry = known.get(listed_tool.name)
        if entry is None or entry[0] != listed_tool:
            entry = (listed_tool, _make_tool(toolset, options, listed_tool))
        tools[listed_tool.name] = entry
    return tools


def _make_tool(toolset: MCPToolset, options: Options, listed: types.Tool) -> Tool:
    """Returns a tool that the MCP server lists as a `Tool` of the toolset."""

    # The parameter's name must not be that of an argument of the tool.
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
        # A tool that changes nothing can be called again.
        "idempotent": hint.read_only_hint or hint.idempotent_hint,
        "requires_approval": policy(tool) if callable(policy) else policy,
    }
    return msgspec.structs.replace(tool, **changed)


def _prefix_description(options: Options, description: str | None) -> str:
    """Returns the description of a toolset's tool, after the name that the user gave the MCP
    server."""
    if options.name and description:
        return f"{options.name}: {description}"
    return description or ""


def _complete_schema(schema: JsonMap) -> JsonMap:
    """Returns the schema of an MCP toolset's tool with its type, which some servers leave out."""
    if schema.get("type") == "object":
        return schema
    return {"type": "object", **schema}


def _make_native(listed: types.Tool) -> Json | None:
    """Returns what an MCP server says about a tool that no model is told: title and annotations."""
    fields = listed.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"title", "annotations"}
    )
    return {MCP: fields} if fields else None


def _make_sign_in_tool(toolset: MCPToolset, options: Options) -> Tool:
    """Returns the tool that stands for all tools of the MCP toolset until a user has signed in."""

    async def sign_in(dragoman_context: ToolContext[Any]) -> str:
        """Asks the run's user to sign in to the MCP server."""
        address = await toolset.sign_in(next(toolset.find_addresses(dragoman_context), None))
        if address is not None:
            raise SignIn(address, f"Please sign in to {toolset.name}.")
        return f"Somebody has signed in to {toolset.name}: its tools are there now."

    name = re.sub(r"\W+", "_", f"{options.prefix}sign_in_to_{toolset.name}")[:64]
    description = f"Asks the user to sign in to {toolset.name}, whose tools are there only afterwards. Call it when you need them."
    return Tool(name, description, sign_in, {"type": "object", "properties": {}}, idempotent=True)
