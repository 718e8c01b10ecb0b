"""Calls of a server's tools: `ServerCall`, and `Inputs`, which finds the call that a server's
request belongs to.

Servers with the protocol of 2026 ask in the result of a call, and the call is sent again with the
answers. Earlier servers send requests of their own while they work, which do not say to which call
they belong. In both cases a question for a person ends the call (`AskUser`): the run waits, and the
call is made again with the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, MCPError, types
from mcp.client import ClientRequestContext

from dragoman.errors import ToolError
from dragoman.json_bytes import Json
from dragoman.logs import logger
from dragoman.mcp.answers import Answers, ask_model
from dragoman.mcp.options import Options
from dragoman.mcp.streams import wait_for_end
from dragoman.tools import AskUser, ToolContext

__all__ = ["Inputs", "ServerCall", "decline", "list_roots"]

_LOG = logger("mcp")
_MOST_ROUNDS = 10
"""How often a server may ask before it must answer a call."""
_LONGEST_WAIT = 1.0
"""Most seconds between two requests for a call that is still running."""

_CALL: ContextVar[ServerCall | None] = ContextVar("dragoman_mcp_call", default=None)
"""The call whose request is being sent. Over HTTP, requests within a response run in the context of
its request."""


class ServerCall:
    """A call of a tool. What the server asks meanwhile is answered in tasks that the call owns."""

    def __init__(self, options: Options, name: str, context: ToolContext[Any]) -> None:
        """Prepares a call of an MCP tool within a run."""
        self._options = options
        self._context = context
        self._answers = Answers(name, context)
        self._variables = copy_context()
        self._tasks: set[asyncio.Task[types.InputResponse | types.ErrorData]] = set()
        self._ended = asyncio.Event()
        self._question: AskUser | None = None
        self._name = name
        self._scope = anyio.CancelScope()
        self.answered = False
        """The server has answered the call itself."""

    async def run(self, session: ClientSession, name: str, arguments: Json) -> types.CallToolResult:
        """Sends the MCP tool call, and the answers that the server needs first.

        Raises:
            AskUser: a person must answer. The server is told that the call is cancelled.
            MCPError: the server refused the call, or the connection broke.
            ToolError: nobody can answer what the server asks.
        """
        try:
            with self._scope:
                result = await self._call_until_answered(session, name, arguments)
                self.answered = True
                return result
        finally:
            await self._end_tasks()
        # Unreachable: the scope is only cancelled with a question, which `_end_tasks` raises.
        raise AssertionError("a call that is cancelled has a question")

    async def _call_until_answered(
        self, session: ClientSession, name: str, arguments: Json
    ) -> types.CallToolResult:
        """Sends the MCP call until the server gives a result, with the answers to what it asked."""
        result = self._load_waiting_result()
        responses: types.InputResponses | None = None
        for again in range(_MOST_ROUNDS):
            if result is not None:
                responses = await self._answer_inputs(result)
                if responses is None:
                    # The server needs only time: ask again, less and less often.
                    await asyncio.sleep(min(0.05 * 2**again, _LONGEST_WAIT))
            try:
                answer = await session.call_tool(
                    name,
                    arguments,
                    progress_callback=self._report_progress,
                    input_responses=responses,
                    request_state=None if result is None else result.request_state,
                    allow_input_required=True,
                    allow_claimed=False,
                )
            except MCPError as error:
                if again or result is None or error.code != types.INVALID_PARAMS:
                    raise
                # The server has forgotten the call, so it has not gone on with it: begin anew.
                result, responses = (
                    None,
                    None,
                )
                self._answers.start_again()
                continue
            if isinstance(answer, types.CallToolResult):
                return answer
            result = answer
        raise ToolError(f"{self._name} asked for something {_MOST_ROUNDS} times and did not answer")

    def _load_waiting_result(self) -> types.InputRequiredResult | None:
        """Returns what the MCP server asked when the call ran before, or None for a new call."""
        if self._answers.round is None:
            return None
        return types.InputRequiredResult.model_validate(self._answers.round)

    async def _answer_inputs(
        self, result: types.InputRequiredResult
    ) -> types.InputResponses | None:
        """Returns the answers that the MCP server needs for the call to continue, or None if it
        only needs time."""
        self._answers.round = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        responses: types.InputResponses = {}
        for key, question in (result.input_requests or {}).items():
            answer = await self.answer_request(question)
            if isinstance(answer, types.ErrorData):
                raise ToolError(
                    f"{self._name} asks for something that this client does not offer: {answer.message}"
                )
            responses[key] = answer
        return responses or None

    async def _report_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        await self._context.progress(progress, total, None if message is None else message[:1000])

    async def answer_request(
        self, request: types.InputRequest
    ) -> types.InputResponse | types.ErrorData:
        """Returns the MCP answer to a server's request.

        Raises:
            AskUser: a person must answer.
            ToolError: nobody can answer it.
        """
        if isinstance(request, types.ElicitRequest):
            return self._answers.take_answer(request.params)
        if isinstance(request, types.CreateMessageRequest):
            return await ask_model(self._options, request.params, self._context)
        return list_roots(self._options)

    async def respond(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        """Returns the answer to a request that the MCP server sends during a call. A question for a
        person ends the call first."""
        # In the context of the call: an agent that answers is a part of its run.
        work = asyncio.create_task(self.answer_request(request), context=self._variables.copy())
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)
        try:
            # `wait` does not cancel the task with this one: it is cancelled below.
            await asyncio.wait((work,))
        finally:
            work.cancel()
        if work.cancelled():
            return decline(request)
        error = work.exception()
        if isinstance(error, AskUser):
            # The first question counts: the run can wait for one at a time.
            self._question = self._question or error
            self._scope.cancel()
            # The server must not get its answer before it knows that the call is cancelled.
            await self._ended.wait()
            return decline(request)
        if error is not None:
            _LOG.warning("a request of the MCP server %s failed: %s", self._name, error)
            return types.ErrorData(
                code=types.INTERNAL_ERROR, message="the request failed on the client's side"
            )
        return work.result()

    async def _end_tasks(self) -> None:
        """Stops all tasks that still answer the MCP server's requests during a call.

        Raises:
            AskUser: a person must answer.
        """
        self._ended.set()
        await wait_for_end(self._tasks)
        if self._question is not None:
            raise self._question


def list_roots(options: Options) -> types.ListRootsResult:
    """Returns the roots in the protocol's form."""
    return types.ListRootsResult(roots=[types.Root(uri=_to_uri(root)) for root in options.roots])


def _to_uri(root: str) -> Any:
    return root if "://" in root else Path(root).absolute().as_uri()


def decline(request: types.InputRequest) -> Any:
    """Returns the refusal of an MCP request that nobody can answer now."""
    if isinstance(request, types.ElicitRequest):
        return types.ElicitResult(action="cancel")
    return types.ErrorData(code=types.INVALID_REQUEST, message="no one can answer this now")


class Inputs:
    """Finds the call that a server's request belongs to, and answers the request."""

    def __init__(self, options: Options, name: str) -> None:
        """Creates what answers an MCP server's requests for input."""
        self._options = options
        self._name = name
        self._calls: dict[ServerCall, None] = {}
        self._undecided = 0
        self._changed = asyncio.Event()

    @contextmanager
    def call(self, context: ToolContext[Any]) -> Generator[ServerCall]:
        """Registers a call of an MCP tool while it runs, so that the server's questions find it."""
        call = ServerCall(self._options, self._name, context)
        self._calls[call] = None
        token = _CALL.set(call)
        try:
            yield call
        finally:
            _CALL.reset(token)
            del self._calls[call]
            self._wake()

    async def elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the library's signature
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        """Asks a person for an MCP server (elicitation), in the name of the call. The library calls
        this."""
        return await self._respond_to_request(types.ElicitRequest(params=params))

    async def sample(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as above
        params: types.CreateMessageRequestParams,
    ) -> Any:
        """Asks a model for an MCP server (sampling), in the name of the call. The library calls
        this."""
        return await self._respond_to_request(types.CreateMessageRequest(params=params))

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:  # noqa: ARG002 - as above
        """Returns the roots. The library calls this."""
        return list_roots(self._options)

    async def _respond_to_request(self, request: types.InputRequest) -> Any:
        """Answers an MCP request in the name of its call, or declines it if the call is unknown."""
        call = await self._find_asking_call()
        if call is None:
            _LOG.warning(
                "%s asks something, but several of its calls may be the reason", self._name
            )
            return decline(request)
        return await call.respond(request)

    async def _find_asking_call(self) -> ServerCall | None:
        """Returns the call that an MCP request belongs to, or None if it cannot be determined.

        The context tells it over HTTP. Otherwise it is the only running call; with several, the
        request waits until one is left.
        """
        if (current := _CALL.get()) in self._calls:
            return current
        # A call that begins from now on cannot be the one: the server has asked already.
        able = list(self._calls)
        self._undecided += 1
        self._wake()
        try:
            while True:
                running = [call for call in able if call in self._calls]
                if len(running) < 2:
                    # One that ended without the server's answer may be the one that it asks for.
                    gone = [call for call in able if call not in self._calls]
                    return running[0] if running and all(call.answered for call in gone) else None
                # Each running call may have asked one of the requests that wait here: none can be
                # told.
                if self._undecided >= len(running):
                    return None
                await self._changed.wait()
        finally:
            self._undecided -= 1

    def _wake(self) -> None:
        """Wakes the requests that wait for calls to end."""
        self._changed.set()
        self._changed = asyncio.Event()
