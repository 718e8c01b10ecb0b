"""An agent as an MCP server. `dragoman mcp examples.mcp_server:agent` serves it to editors and
assistants; here a client in the same process asks it."""

import asyncio

from mcp import Client
from mcp_types import TextContent

from dragoman import Agent, tool
from dragoman.mcp import server


@tool
def count_words(text: str) -> dict[str, int]:
    """Counts the words of a text."""
    return {"words": len(text.split())}


agent = Agent(tools=[count_words], display_name="counter")


async def told(progress: float, total: float | None, message: str | None) -> None:
    print(f"{progress:g}: {message}")


async def main() -> None:
    served = server(agent, expose="both", description="Counts what there is to be counted.")
    async with agent, Client(served) as client:
        for listed in (await client.list_tools()).tools:
            print(f"{listed.name}: {listed.description}")
        print((await client.call_tool("count_words", {"text": "one two three"})).structured_content)
        result = await client.call_tool(
            "counter", {"prompt": "Count to three."}, progress_callback=told
        )
        print(*(block.text for block in result.content if isinstance(block, TextContent)))


if __name__ == "__main__":
    asyncio.run(main())
