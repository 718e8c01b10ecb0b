"""What a server asks of its client by itself, while it works on calls: `Inputs` finds the call for which it does."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mcp import types
from mcp.client import ClientRequestContext

from dragoman.logs import logger
from dragoman.mcp.calls import ServerCall, nobody, roots
from dragoman.mcp.options import Options
from dragoman.tools import ToolContext

__all__ = ["Inputs"]

_LOG = logger("mcp")
_CALL: ContextVar[ServerCall | None] = ContextVar("dragoman_mcp_call", default=None)
"""Over HTTP, what comes within the answer to a request comes in the request's context."""


class Inputs:
    """Finds the call for which a server asks something: it does not say."""

    def __init__(self, options: Options, name: str) -> None:
        self._options = options
        self._name = name
        self._calls: dict[ServerCall, None] = {}
        self._undecided = 0
        self._changed = asyncio.Event()

    @contextmanager
    def call(self, context: ToolContext[Any]) -> Generator[ServerCall]:
        """A call, as long as it runs."""
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
        """Has a person asked."""
        return await self._respond(types.ElicitRequest(params=params))

    async def sample(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as above
        params: types.CreateMessageRequestParams,
    ) -> Any:
        """Has a model asked."""
        return await self._respond(types.CreateMessageRequest(params=params))

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:  # noqa: ARG002 - as above
        """Tells the roots."""
        return roots(self._options)

    async def _respond(self, request: types.InputRequest) -> Any:
        call = await self._asking()
        if call is None:
            _LOG.warning(
                "%s asks something, and nobody can tell for which of its calls", self._name
            )
            return nobody(request)
        return await call.respond(request)

    async def _asking(self) -> ServerCall | None:
        """The call for which the server asks; `None`: it may be any of several, or there is none."""
        if (own := _CALL.get()) in self._calls:
            return own
        able = list(self._calls)
        self._undecided += 1
        self._wake()
        try:
            while True:
                left = [call for call in able if call in self._calls]
                if len(left) < 2:
                    gone = [call for call in able if call not in self._calls]
                    return left[0] if left and all(call.answered for call in gone) else None
                if self._undecided >= len(left):
                    return None
                await self._changed.wait()
        finally:
            self._undecided -= 1

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
