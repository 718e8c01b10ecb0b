"""`Connection`: a session with an MCP server, in one event loop.

One task opens the transport and the library's client and stays until `close` or until the server
ends. So each cancel scope is left in the task that entered it, whoever uses the session. The
server's log messages go to the logger `dragoman.mcp`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any, cast

import anyio
from mcp import Client, types
from mcp.shared.exceptions import MCPError

from dragoman.errors import ToolError
from dragoman.logs import logger
from dragoman.mcp.calls import Inputs
from dragoman.mcp.http import Failures, http_streams
from dragoman.mcp.options import Command, Options
from dragoman.mcp.stdio import Tail, stdio_streams
from dragoman.mcp.streams import Failure, wait_for_end, watch_streams
from dragoman.tools import SignIn

__all__ = ["Connection", "find_log_level", "log_message"]

_LOG = logger("mcp")
_CLIENT_INFO = types.Implementation(name="dragoman", version="0.1")
_PATIENCE = 10.0
"""Seconds that a connection has to close before its task is cancelled."""

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
}
_LONGEST = 2000
"""Most characters of a logged message."""


class Connection:
    """One session. Call `open` once, use it while it is `alive`, and call `close`, which leaves
    nothing behind."""

    def __init__(self, options: Options, name: str) -> None:
        """Creates a connection to an MCP server, not opened yet."""
        self._options = options
        self._name = name
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._ready = asyncio.Event()
        self._error: Exception | None = None
        self._failures = Failures()
        self._tail = Tail()
        self._lists_changes = True
        self._tools: tuple[types.Tool, ...] | None = None
        self.has_listed = False
        """True once the server has listed its tools."""
        self.inputs = Inputs(options, name)
        """Answers what the server asks during calls."""

    @property
    def alive(self) -> bool:
        """True while the session can be used."""
        return self._client is not None and not self._ended.is_set()

    @property
    def client(self) -> Client:
        """Returns the client of the MCP library."""
        assert self._client is not None
        return self._client

    @property
    def tools(self) -> tuple[types.Tool, ...] | None:
        """Returns the server's tools, or None if they must be listed again."""
        return self._tools

    @tools.setter
    def tools(self, tools: tuple[types.Tool, ...]) -> None:
        self.has_listed = True
        self._tools = tools if self._lists_changes else None

    async def open(self) -> None:
        """Connects to the MCP server, in a task that outlives the caller.

        Raises:
            SignIn: somebody must sign in first.
            ToolError: the server cannot be started or reached, does not answer, or refuses.
        """
        # An empty context: the task outlives the caller, whose variables must not stay in it.
        # One task enters and leaves all scopes of anyio, which it requires.
        self._task = asyncio.create_task(self._hold_session(), context=Context())
        try:
            async with asyncio.timeout(self._options.connect_timeout):
                await self._ready.wait()
        except TimeoutError:
            await self._abandon_session()
            bound = f"{self._options.connect_timeout:g} seconds (connect_timeout=)"
            raise ToolError(
                f"{self._name} did not answer within {bound}{self._quote_stderr()}"
            ) from None
        except asyncio.CancelledError:
            await self._abandon_session()
            raise
        if self._client is None:
            await self.close()
            raise self._make_refusal()

    async def close(self) -> None:
        """Closes the connection: ends the MCP session, and waits until its task has ended."""
        self._ended.set()
        if self._task is not None:
            await wait_for_end([self._task], _PATIENCE)

    def find_failure(self, error: MCPError) -> Failure | None:
        """Returns the failure of the connection behind an error, or None if the error is the
        server's answer."""
        if (failure := self._failures.find(error)) is not None:
            return failure
        if error.code == types.CONNECTION_CLOSED:
            return Failure("lost", f"the connection was closed{self._quote_stderr()}")
        return None

    async def _abandon_session(self) -> None:
        """Cancels a connection whose MCP session is still opening."""
        if self._task is not None:
            self._task.cancel()
        await self.close()

    def _make_refusal(self) -> Exception:
        """Returns the exception for an MCP connection's session that could not be opened."""
        error, name = self._error, self._name
        # anyio wraps the error of each task group.
        while isinstance(error, ExceptionGroup):
            error = cast("ExceptionGroup[Exception]", error).exceptions[0]
        if isinstance(error, MCPError):
            failure = self.find_failure(error)
            if failure is not None and failure.kind == "sign_in":
                return SignIn(failure.url, f"Please sign in to {name}.")
            why = error.message
            if failure is not None:
                why = failure.text
        else:
            why = (str(error) or type(error).__name__) + self._quote_stderr()
        refusal = ToolError(f"{name} cannot be used: {why}")
        refusal.__cause__ = error
        return refusal

    def _quote_stderr(self) -> str:
        """Returns the last lines of the server's standard error, for error messages."""
        return f"; the last lines that it wrote: {self._tail}" if self._tail.lines else ""

    async def _hold_session(self) -> None:
        """Holds the connection: opens the MCP session, waits until it ends, and closes it, all in
        this task."""
        try:
            async with self._new_client() as client, anyio.create_task_group() as group:
                self._client = client
                self._ready.set()
                group.start_soon(self._follow_changes, client)
                # Until `close`, or until the streams end.
                await self._ended.wait()
                group.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - who waits for it is told, else the log
            self._error = error
            if self._client is not None and not self._ended.is_set():
                _LOG.warning("the connection to %s broke: %s", self._name, error)
        finally:
            self._ended.set()
            self._ready.set()

    def _new_client(self) -> Client:
        """Returns the MCP library's client for the connection with the answers that this side
        offers."""
        options = self._options
        return Client(
            self._make_transport(),
            mode=options.protocol,
            # Lists are kept here, until the server says that they changed.
            cache=None,
            client_info=_CLIENT_INFO,
            log_level=find_log_level(),
            logging_callback=self._log,
            message_handler=self._handle_message,
            elicitation_callback=self.inputs.elicit,
            sampling_callback=None if options.sampling is None else self.inputs.sample,
            list_roots_callback=self.inputs.list_roots if options.roots else None,
        )

    def _make_transport(self) -> Any:
        """Returns the transport to the MCP server, watched for its end."""
        options = self._options
        if isinstance(options.server, Command):
            return watch_streams(stdio_streams(options, self._name, self._tail), self._ended.set)
        if isinstance(options.server, str):
            return watch_streams(http_streams(options, self._failures), self._ended.set)
        if isinstance(options.server, AbstractAsyncContextManager):
            # isinstance() leaves the type of what the caller's manager yields unknown.
            return watch_streams(options.server, self._ended.set)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return options.server

    async def _follow_changes(self, client: Client) -> None:
        """Listens on the connection for changes of the tools, which servers with the protocol of
        2026 send only then. Earlier servers send them unasked."""
        offered = client.server_capabilities.tools
        if offered is None or not offered.list_changed or client.session.discover_result is None:
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                # The list may have changed before this stream was open.
                self._tools = None
                async for _ in changes:
                    self._tools = None
        except Exception as error:  # noqa: BLE001 - without it the tools are asked for each time
            _LOG.debug("%s tells of no changes: %s", self._name, error)
        # Without notices a list holds for one request.
        self._lists_changes, self._tools = False, None

    async def _handle_message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._tools = None

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        log_message(self._name, params)


def find_log_level() -> Any:
    """Returns the lowest level that dragoman's log takes, as MCP names it to a connection's server,
    or None."""
    levels = {
        "debug": logging.DEBUG,
        "info": logging.INFO,
        "warning": logging.WARNING,
        "error": logging.ERROR,
    }
    return next((name for name, level in levels.items() if _LOG.isEnabledFor(level)), None)


def log_message(server: str, params: types.LoggingMessageNotificationParams) -> None:
    """Logs a message that an MCP server sends over the connection as one line of bounded length,
    escaped."""
    text = params.data if isinstance(params.data, str) else repr(params.data)
    where = f"{server} ({params.logger})" if params.logger else server
    _LOG.log(
        _LEVELS.get(params.level, logging.ERROR), "%s: %s", where[:200], repr(text[:_LONGEST])[1:-1]
    )
