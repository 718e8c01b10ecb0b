"""An answer as it is made, by a model that calls a tool."""

import asyncio

from dragoman import Agent, tool


@tool
async def get_weather(city: str) -> str:
    """The weather in a city right now."""
    return f"{city}: 21 °C, light rain"


async def main() -> None:
    async with Agent(tools=[get_weather]) as agent:
        async for chunk in agent.send_stream("What is the weather in Oslo?"):
            print(chunk.output, end="", flush=True)
    print()


if __name__ == "__main__":
    asyncio.run(main())
