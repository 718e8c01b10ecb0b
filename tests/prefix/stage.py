"""An agent's way to the strict provider, and the tools of all scenes."""

from __future__ import annotations

from typing import Any

from dragoman import Agent, Chat, Settings, tool

TURNS = 10


@tool
def look(place: str) -> str:
    """Looks at a place."""
    return f"{place}: nothing but sand"


@tool
def measure(place: str) -> int:
    """Measures the height of a place."""
    return 12


@tool(requires_approval=True)
def dig(place: str) -> str:
    """Digs a hole."""
    return f"a hole in {place}"


@tool(requires_approval=True)
def fill(place: str) -> str:
    """Fills a hole."""
    return f"no hole in {place}"


@tool
def paint(colour: str) -> str:
    """Paints the fence."""
    return f"the fence is {colour}"


SHED = [look, measure]
"""What an MCP server offers."""


class Stage:
    """Makes agents for one provider at one address, and asks them."""

    def __init__(self, url: str, model: str, *, is_streamed: bool) -> None:
        self.url, self.model, self.is_streamed = url, model, is_streamed
        self.losses: list[Any] = []

    def agent(self, *, model: str | None = None, **options: Any) -> Agent[None]:
        """An agent whose requests go to the provider."""
        options.setdefault("settings", Settings(reasoning="high", max_tokens=32_000))
        return Agent(model or self.model, base_url=self.url, api_key="none", **options)

    async def ask(self, target: Any, prompt: Any, **options: Any) -> Any:
        """Sends one prompt to an agent or chat, and returns the result."""
        if not self.is_streamed:
            result = await target.send(prompt, **options)
        elif isinstance(target, Chat):
            chunks = [chunk async for chunk in target.send_stream(prompt, **options)]
            self.losses += [loss for chunk in chunks[:-1] for loss in chunk.losses]
            result = chunks[-1]
        else:
            async with target.run(prompt, **options) as run:
                async for _ in run:
                    pass
                result = await run.result()
        self.losses += result.losses
        return result
