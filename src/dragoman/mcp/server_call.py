"""Runs one call of an MCP client. The run may wait for the client's user, and continues with the
answers.

A waiting run travels through the client as text (`SuspendedRun`), which the library seals, so the
answers may come to another process. Meanwhile `ProgressReporter` tells the client about the
progress of tools and the agent's text, line by line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, cast

import msgspec
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from dragoman.errors import DragomanError, ResumeError
from dragoman.event import Custom, Event, MessageStarted, PartDelta, PartFinished, PartStarted
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import JsonMap
from dragoman.logs import logger
from dragoman.mcp.server_content import make_error_result
from dragoman.mcp.server_forms import make_question, read_answer, summarize
from dragoman.message import Message, Role, ToolCallPart, dump_messages, load_messages
from dragoman.orchestration.iteration import RETURN_RESULT
from dragoman.orchestration.shown_output import is_text
from dragoman.result import ChatResult
from dragoman.run import Run
from dragoman.tools.context import PROGRESS

__all__ = [
    "Begin",
    "ClientContext",
    "ProgressReporter",
    "Report",
    "Show",
    "SuspendedRun",
    "run_call",
    "join_output",
]

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Reports progress: how much is done, of how much, and words."""

ClientContext: TypeAlias = ServerRequestContext[Any, Any]
_LOG = logger("mcp")
_ROUNDS = 10
"""How often the client's user is asked within one call. The official clients allow the same
number."""


class ProgressReporter:
    """Reports a run's progress to a client."""

    def __init__(self, report: Report, call_id: str | None = None, *, typed: bool = False) -> None:
        """Creates the reporter of a call's progress to the MCP client. `call_id`: the id of the
        run's one call, whose progress is reported unchanged. `None`: an agent runs, and progress is
        a count of its calls, their steps, and lines of text unless its output is `typed`."""
        self._report = report
        self._call_id = call_id
        self._typed = typed
        self._done = 0.0
        self._names: dict[str, str] = {}
        self._speaks: set[str] = set()
        self._texts: set[tuple[str, int]] = set()
        self._line = ""

    async def feed(self, event: Event) -> None:
        """Reports a call's progress to the MCP client for the next event of the run."""
        if isinstance(event, Custom):
            if event.name == PROGRESS:
                await self._report_tool(event.value)
        elif self._call_id is None:
            await self._report_message(event)

    async def _report_tool(self, value: JsonMap) -> None:
        """Reports a tool's progress to the MCP client."""
        done, total, message = value["done"], value["total"], value["message"]
        if self._call_id is not None:
            if value["call_id"] == self._call_id and done > self._done:
                self._done = done
                await self._report(done, total, message)
            return
        line = f"{self._names.get(value['call_id'], 'tool')} {done:g}"
        if total is not None:
            line += f"/{total:g}"
        if message:
            line += f": {message}"
        await self._count(line)

    async def _report_message(self, event: Event) -> None:
        """Reports to the MCP client what an event adds to the agent's message."""
        if isinstance(event, PartDelta):
            await self._add_text(event)
        elif isinstance(event, MessageStarted):
            if event.role is Role.MODEL:
                self._speaks.add(event.message_id)
        elif isinstance(event, PartStarted):
            if event.message_id in self._speaks and is_text(event) and not self._typed:
                self._texts.add((event.message_id, event.index))
        elif isinstance(event, PartFinished):
            await self._finish_part(event)

    async def _add_text(self, event: PartDelta) -> None:
        """Reports to the MCP client each line of a text when it is complete."""
        if (event.message_id, event.index) not in self._texts:
            return
        *lines, self._line = (self._line + cast("str", event.delta)).split("\n")
        for line in filter(str.strip, lines):
            await self._count(line)

    async def _finish_part(self, event: PartFinished) -> None:
        """Reports to the MCP client a call, or the last line of a text."""
        if isinstance(event.part, ToolCallPart) and event.message_id in self._speaks:
            # A typed answer may be given by a call, which is no step of the work.
            if self._typed and event.part.name == RETURN_RESULT:
                return
            self._names[event.part.id] = event.part.name
            await self._count(f"calls {event.part.name}")
        elif (event.message_id, event.index) in self._texts:
            line, self._line = self._line, ""
            if line.strip():
                await self._count(line)

    async def _count(self, message: str) -> None:
        """Reports one step more."""
        self._done += 1
        await self._report(self._done, None, message)


class SuspendedRun(msgspec.Struct, frozen=True):
    """A run that waits for the client's user."""

    thread_id: str
    """The id of the conversation."""
    messages: tuple[Message, ...]
    """The complete conversation."""
    pending: tuple[Interrupt, ...]
    """The interrupts that it waits for."""
    output: str = ""
    """The output so far."""

    def to_json(self) -> str:
        """Returns the suspended call as the text that travels through the MCP client and back to
        `from_json`."""
        stored = _Stored(
            self.thread_id, msgspec.Raw(dump_messages(self.messages)), self.pending, self.output
        )
        return msgspec.json.encode(stored).decode()

    @classmethod
    def from_json(cls, text: str) -> SuspendedRun:
        """Reads the suspended run of a call from the JSON that `to_json` wrote.

        Raises:
            ValueError: the text is something else.
        """
        stored = msgspec.json.decode(text, type=_Stored)
        return cls(
            stored.thread_id,
            tuple(load_messages(bytes(stored.messages))),
            stored.pending,
            stored.output,
        )


class _Stored(msgspec.Struct, frozen=True):
    thread_id: str
    messages: msgspec.Raw
    pending: tuple[Interrupt, ...]
    output: str


Begin: TypeAlias = Callable[[SuspendedRun | None, Sequence[Resume]], Run[Any]]
"""Makes the run: a new one, or one that continues a suspended run with the answers."""
Show: TypeAlias = Callable[[ChatResult[Any], SuspendedRun | None], Awaitable[CallToolResult]]
"""Makes the call's result from a run's result, and from the suspended run before it."""


async def run_call(
    context: ClientContext,
    params: CallToolRequestParams,
    begin: Begin,
    show: Show,
    call_id: str | None = None,
    *,
    typed: bool = False,
) -> CallToolResult | InputRequiredResult:
    """Runs an MCP client's call until it has a result, or until the client must ask its user.

    `call_id`: the id of the one call that the run makes; `None` for an agent. `typed`: the agent's
    output has a type.
    """
    waiting: SuspendedRun | None = None
    if params.request_state is not None:
        waiting = SuspendedRun.from_json(params.request_state)
    responses: JsonMap = params.input_responses or {}
    problem: str | None = None
    if waiting is not None and call_id is not None:
        # A suspended run continues its own call: the id of this request is a new one.
        call_id = next(call.id for message in waiting.messages for call in message.tool_calls)
    progress = ProgressReporter(context.session.report_progress, call_id, typed=typed)
    for _ in range(_ROUNDS):
        try:
            resume = [] if waiting is None else _read_answers(waiting, responses)
            if waiting is None or resume:
                before, (run, result) = waiting, await _run_to_end(begin(waiting, resume), progress)
                if not result.pending:
                    return await show(result, before)
                waiting = _suspend_run(run, result, before)
        except ResumeError as error:
            if waiting is None:
                return make_error_result(str(error))
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - code of the user's, which may raise anything
            return _make_failure_result(params.name, error)
        assert waiting is not None
        questions = _make_questions(waiting, context, problem)
        if questions is None:
            return _make_pending_result(waiting)
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            # The client keeps what waits, and calls again with the answers: perhaps another
            # process.
            requests = {key: ElicitRequest(params=wanted) for key, wanted in questions.items()}
            return InputRequiredResult(input_requests={**requests}, request_state=waiting.to_json())
        try:
            responses = {
                key: await _ask_client(context, wanted) for key, wanted in questions.items()
            }
        except MCPError as error:
            _LOG.info("%s: the client cannot ask its user: %s", params.name, error)
            return _make_pending_result(waiting)
        problem = None
    if waiting is None:
        return make_error_result(f"{params.name} gave no result")
    return _make_pending_result(waiting)


def _make_failure_result(name: str, error: Exception) -> CallToolResult:
    """Returns the MCP result of a failed call. Clients see only dragoman's own errors, not those of
    the user's code."""
    if isinstance(error, DragomanError):
        return make_error_result(str(error))
    _LOG.error("%s failed", name, exc_info=error)
    return make_error_result(
        f"{name} failed: {type(error).__name__} in the server's own code; its log says more"
    )


def _make_questions(
    waiting: SuspendedRun, context: ClientContext, problem: str | None
) -> dict[str, ElicitRequestFormParams | ElicitRequestURLParams] | None:
    """Returns what, for a call, the MCP client must ask its user, by interrupt id, or None if it
    cannot ask all of it."""
    capabilities = context.session.client_capabilities
    questions: dict[str, ElicitRequestFormParams | ElicitRequestURLParams] = {}
    for interrupt in waiting.pending:
        wanted = make_question(interrupt, capabilities, problem)
        if wanted is None:
            return None
        questions[interrupt.id] = wanted
    return questions


async def _run_to_end(
    run: Run[Any], progress: ProgressReporter
) -> tuple[Run[Any], ChatResult[Any]]:
    """Runs the run of an MCP client's call to its end and reports its progress. Returns the run and
    its result."""
    async with run:
        async for event in run:
            await progress.feed(event)
        return run, await run.result()


def _suspend_run(
    run: Run[Any], result: ChatResult[Any], before: SuspendedRun | None
) -> SuspendedRun:
    """Suspends the run of an MCP client's call: returns it with all messages and output so far."""
    messages = result.messages
    if before is not None:
        messages = (*before.messages, *messages)
    return SuspendedRun(run.thread_id, messages, result.pending, join_output(before, result.output))


def join_output(before: SuspendedRun | None, output: str) -> str:
    """Returns the output of a call's run before and after it waited for the MCP client."""
    if before is None or not before.output:
        return output
    return f"{before.output}\n{output}" if output else before.output


def _read_answers(waiting: SuspendedRun, responses: JsonMap) -> list[Resume]:
    """Returns the MCP client's answers to what the call's run waits for, as far as there are any.

    Raises:
        ResumeError: an answer cannot be read.
    """
    return [
        read_answer(interrupt, result)
        for interrupt in waiting.pending
        if isinstance(result := responses.get(interrupt.id), ElicitResult)
    ]


async def _ask_client(
    context: ClientContext, wanted: ElicitRequestFormParams | ElicitRequestURLParams
) -> ElicitResult:
    """Asks the MCP client's user, for a call, and returns the answer."""
    session, request_id = context.session, context.request_id
    if isinstance(wanted, ElicitRequestURLParams):
        return await session.elicit_url(
            wanted.message, wanted.url, wanted.elicitation_id or "", request_id
        )
    return await session.elicit_form(wanted.message, wanted.requested_schema, request_id)


def _make_pending_result(waiting: SuspendedRun) -> CallToolResult:
    """Returns the error for an MCP client's call whose questions the client did not answer."""
    lines = "\n".join(summarize(interrupt) for interrupt in waiting.pending)
    return make_error_result(
        f"not done: it needs this, which the client did not get from its user (MCP elicitation):\n{lines}"
    )
