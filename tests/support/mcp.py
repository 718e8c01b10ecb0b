"""MCP in tests: the official client at a server of ours, in memory, in both eras of the
protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    TextContent,
)

ERAS = ("legacy", "auto")
"""As the official client names them: with a handshake, where a server asks the client; and without,
where it answers that it must know more."""

Answer = ElicitResult | Callable[[Any], ElicitResult]


def accepted(**content: Any) -> ElicitResult:
    """A form that was filled in."""
    return ElicitResult(action="accept", content=content)


DECLINED = ElicitResult(action="decline")
CANCELLED = ElicitResult(action="cancel")


class User:
    """Answers what the client asks, with the next of `answers`; the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[ElicitRequestParams] = []

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, ElicitResult) else answer(params)

    @property
    def form(self) -> ElicitRequestFormParams:
        """The last form."""
        last = self.asked[-1]
        assert isinstance(last, ElicitRequestFormParams)
        return last


@asynccontextmanager
async def connected(
    server: Server[Any], era: str = "auto", user: User | None = None
) -> AsyncGenerator[Client]:
    """A client at the server."""
    async with Client(server, mode=era, elicitation_callback=user) as client:
        yield client


def text(result: CallToolResult) -> str:
    """The texts of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


class Told:
    """Takes progress."""

    def __init__(self) -> None:
        self.all: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.all.append((progress, total, message))

    @property
    def words(self) -> Sequence[str | None]:
        """What was said."""
        return [message for _, _, message in self.all]
