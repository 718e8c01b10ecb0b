"""An application with a page, and what asks it."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import Agent, serve, tool
from dragoman.event import Event, event_from_json
from dragoman.memory import Memory
from dragoman.message import Message, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.serve import AgentPolicy
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange

__all__ = ["HEADER", "OTHER", "OWN", "Page", "costs", "frames", "page_agent", "page_app"]

HEADER = {"x-dragoman-page": "1"}
OWN, OTHER = "anthropic:claude-sonnet-4-6", "openai:gpt-4o"


@tool(requires_approval=True, editable=True)
def pay(sum: int) -> int:
    """Pays."""
    return sum


def replies(request: ModelRequest) -> Any:
    last = request.messages[-1]
    if last.tool_results:
        return "Paid."
    if "pay" in last.text:
        call = ToolCallPart(f"c{len(request.messages)}", "pay", {"sum": 1})
        return Message.model("I pay.", call)
    return f"Seen {len(request.messages)}: {last.text}"


def scripted(name: str, reply: Any = None) -> ScriptedModel:
    return ScriptedModel.like(name, reply or replies, key_required=False)


def page_agent(memory: Memory | None = None, reply: Any = None, **options: Any) -> Agent[None]:
    return Agent(scripted(OWN, reply), tools=[pay], memory=memory, **options)


def page_app(*, memory: bool = True, reply: Any = None, **options: Any) -> Any:
    agent = page_agent(Memory("memory:") if memory else None, reply)
    policy = AgentPolicy(models=(scripted(OTHER),))
    return serve.app({"a": agent}, policy=policy, page=True, **options)


class Page:
    """Asks as the page does."""

    def __init__(self, app: Any, headers: dict[str, str] | None = None) -> None:
        self.app = app
        self.headers = {**HEADER, **(headers or {})}

    async def __call__(self, method: str, path: str, body: object = b"") -> Exchange:
        return await exchange(self.app, method, path, body, headers=self.headers)

    async def get(self, path: str) -> Any:
        got = await self("GET", path)
        assert got.status == 200, got.body
        return got.json

    async def start(self, thread: str, **body: Any) -> str:
        """Starts a run and waits for its end."""
        got = await self("POST", f"/page/threads/{thread}/runs", body)
        assert got.status == 202, got.body
        run_id = got.json["run_id"]
        await self.events(run_id)
        return run_id

    async def events(self, run_id: str, start: int = 0) -> list[tuple[int, Event]]:
        got = await self("GET", f"/page/runs/{run_id}/events?from={start}")
        assert got.status == 200, got.body
        return frames(got.body)


def frames(data: bytes) -> list[tuple[int, Event]]:
    """The events of a stream, each with its id."""
    found: list[tuple[int, Event]] = []
    for frame in data.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if ": " in line)
        if "id" in fields:
            found.append((int(fields["id"]), event_from_json(fields["data"])))
    return found


def costs(data: bytes) -> list[Any]:
    """The costs that a stream tells."""
    return [
        msgspec.json.decode(frame.split("data: ", 1)[1])
        for frame in data.decode().split("\n\n")
        if frame.startswith("event: cost")
    ]
