"""`Exposure`: what an MCP server shows of an agent, and how a client's call becomes a run.

A direct call of a tool is a run without a model: a provider makes the one call in place of a model
(`make_call_provider`), so approvals, questions and answers work as in any other run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from dragoman.agent import Agent
from dragoman.errors import DragomanError
from dragoman.fold import unfold
from dragoman.interrupt import Resume
from dragoman.json_bytes import JsonMap
from dragoman.mcp.server_call import ClientContext, SuspendedRun, join_output, run_call
from dragoman.mcp.server_content import (
    dump_blocks,
    dump_tool_result,
    make_error_result,
    make_json_result,
)
from dragoman.mcp.server_tools import AgentEntry, dump_tool
from dragoman.message import DataPart, FilePart, Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import (
    DefaultStreamingOrchestrator,
    StreamingIterationResult,
    StreamingState,
)
from dragoman.orchestration.orchestrator import Steps
from dragoman.prompt import RunOptions
from dragoman.providers.provider import Provider
from dragoman.result import ChatResult
from dragoman.run import Run
from dragoman.runtime import new_id
from dragoman.tools import Tool, ToolContext
from dragoman.tools.agent_tool import Handoff
from dragoman.tools.tool_result import to_json_value
from dragoman.tools.toolsets import CombinedToolset

__all__ = ["Exposure", "Options", "make_call_provider"]

Options: TypeAlias = RunOptions | Callable[[ClientContext], RunOptions]
"""Options of runs, or a function of the client's request that returns them, for example with the
`resource_id` of a signed-in user."""
_CLAIMS = 10_000
"""Answers that are remembered, so that none counts twice."""


def make_call_provider(call: ToolCallPart | None = None) -> Provider:
    """Returns a provider whose runs make this one call of an exposed tool and ask no model. `None`:
    the conversation already has the call."""
    return Provider(
        name="client",
        display_name="MCP client",
        wire="openai_chat",
        chat_model="call",
        orchestrator=partial(_OneCall, call),
    )


class _OneCall(DefaultStreamingOrchestrator):
    """Makes a call in place of a model."""

    def __init__(self, call: ToolCallPart | None) -> None:
        self._call = call

    async def process_iteration(
        self,
        model: ChatModel,  # noqa: ARG002 - there is none
        state: StreamingState,
        output_schema: JsonMap | None = None,  # noqa: ARG002
    ) -> Steps:
        """Makes the call of an exposed tool, unless the history has it, and runs it."""
        if self._call is not None:
            message = Message.model(self._call).replace(
                id=state.new_id and state.new_id(), created_at=state.clock()
            )
            state.add_to_history(message)
            yield StreamingIterationResult(events=unfold([message]), messages=(message,))
            steps = self.answer_calls(state, message.tool_calls)
            try:
                async for step in steps:
                    yield step
            finally:
                await steps.aclose()
        yield StreamingIterationResult(should_continue=False)


class Exposure:
    """Serves an agent as a tool, the agent's tools, or both."""

    def __init__(
        self, agent: Agent[Any], entry: AgentEntry | None, *, tools: bool, options: Options | None
    ) -> None:
        """Creates the exposure of an agent's tools to MCP clients. `entry`: the agent as a tool, or
        None to hide it. `tools`: show its tools."""
        self._agent = agent
        self._set = CombinedToolset(agent.tools)
        self._entry = entry
        self._shows_tools = tools
        self._options = options
        self._claim = _make_claim()

    @asynccontextmanager
    async def lifespan(self, _: object) -> AsyncGenerator[None]:
        """Keeps the agent's toolsets open while the server runs."""
        async with self._set:
            yield

    async def list_tools(
        self, context: ClientContext, _: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Returns the tools that the MCP client may call."""
        agent_tools = [] if self._entry is None else [self._entry.tool]
        return ListToolsResult(
            tools=[*agent_tools, *map(dump_tool, await self._list_tools(context))]
        )

    async def call_tool(
        self, context: ClientContext, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Runs the exposed tool that the MCP client calls.

        Raises:
            MCPError: there is no such tool.
        """
        if self._entry is not None and params.name == self._entry.tool.name:
            return await self._ask_agent(context, params, self._entry)
        names = [tool.name for tool in await self._list_tools(context)]
        if params.name not in names:
            if self._entry is not None:
                names.insert(0, self._entry.tool.name)
            raise MCPError(
                INVALID_PARAMS,
                f"there is no tool named {params.name[:100]!r}; the tools are: {', '.join(names) or 'none'}",
            )
        call = ToolCallPart(new_id(), params.name, params.arguments or {})

        def begin(waiting: SuspendedRun | None, resume: Sequence[Resume]) -> Run[str]:
            """Begins the run that makes the exposed tool's call."""
            options = self._make_options(context, waiting, resume)
            if waiting is not None:
                # The history of the suspended run has the call.
                options["model"] = make_call_provider()
                return self._agent.run(None, **options)
            options["model"] = make_call_provider(call)
            return self._agent.run(f"An MCP client calls {params.name}.", **options)

        return await run_call(context, params, begin, _make_call_result, call.id)

    async def _ask_agent(
        self, context: ClientContext, params: CallToolRequestParams, entry: AgentEntry
    ) -> CallToolResult | InputRequiredResult:
        """Runs the agent with the MCP client's prompt."""
        prompt = (params.arguments or {}).get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            return make_error_result(
                "invalid arguments: prompt: should be a text that says what to do"
            )

        def begin(waiting: SuspendedRun | None, resume: Sequence[Resume]) -> Run[Any]:
            """Begins the exposed agent's run."""
            options = self._make_options(context, waiting, resume)
            return self._agent.run(
                None if waiting else prompt, output_type=entry.output_type, **options
            )

        async def agent_result(
            result: ChatResult[Any], before: SuspendedRun | None
        ) -> CallToolResult:
            """Returns the exposed agent's result for the MCP client."""
            messages = result.messages
            if before is not None:
                messages = (*before.messages, *messages)
            files = [await self._download_file(part) for part in self._agent.files(messages)]
            if entry.output_type is not str:
                value = to_json_value(result.output)
                if entry.is_wrapped:
                    value = {"result": value}
                return make_json_result(value, more=files)
            content: list[TextPart | DataPart | FilePart] = [*files]
            if text := join_output(before, result.output):
                content.insert(0, TextPart(text))
            return CallToolResult(content=dump_blocks(content))

        return await run_call(
            context, params, begin, agent_result, typed=entry.output_type is not str
        )

    async def _download_file(self, part: DataPart | FilePart) -> DataPart | FilePart:
        """Returns for an MCP client a provider's file with its bytes if it can be downloaded, else
        the file as it is."""
        if isinstance(part, DataPart):
            return part
        try:
            return await self._agent.download(part)
        except DragomanError:
            return part

    def _make_options(
        self, context: ClientContext, waiting: SuspendedRun | None, resume: Sequence[Resume]
    ) -> RunOptions:
        """Returns the options of an exposed agent's run: the user's, and those that continue a
        suspended run."""
        options: RunOptions = {
            "claim": self._claim,
            # Before the user's options, which may name another thread.
            "thread_id": new_id(),
            **self._get_options(context),
        }
        if waiting is not None:
            options |= {
                "history": waiting.messages,
                "thread_id": waiting.thread_id,
                "resume": resume,
            }
        return options

    def _get_options(self, context: ClientContext) -> RunOptions:
        if callable(self._options):
            return self._options(context)
        return self._options or {}

    async def _list_tools(self, context: ClientContext) -> Sequence[Tool]:
        """Returns the exposed tools that MCP clients may call: no handoffs, and no tools that the
        agent's own client runs."""
        if not self._shows_tools:
            return ()
        options = self._get_options(context)
        tool_context = ToolContext(
            options.get("deps"),
            resource_id=options.get("resource_id"),
            metadata=options.get("metadata", {}),
        )
        return [tool for tool in await self._set.list_tools(tool_context) if _is_callable(tool)]


def _is_callable(tool: Tool) -> bool:
    """True if the server can run the tool for its clients."""
    return tool.handler is not None and not isinstance(tool, Handoff)


async def _make_call_result(result: ChatResult[Any], _: SuspendedRun | None) -> CallToolResult:
    """Returns the result of an exposed tool's run, which made one call."""
    parts = [
        part
        for message in result.messages
        for part in message.content
        if isinstance(part, ToolResultPart)
    ]
    return dump_tool_result(parts[-1]) if parts else make_error_result("the call gave no result")


def _make_claim() -> Callable[[str, str, str], bool]:
    """Returns a function that claims each answer of an MCP client once. It remembers the last
    `_CLAIMS` answers."""
    seen: dict[tuple[str, str], None] = {}

    def claim(thread_id: str, answer_id: str, _: str) -> bool:
        """Returns True the first time that an answer is claimed."""
        first = (thread_id, answer_id) not in seen
        seen[thread_id, answer_id] = None
        if len(seen) > _CLAIMS:
            # Dictionaries keep their order: the oldest one goes.
            del seen[next(iter(seen))]
        return first

    return claim
