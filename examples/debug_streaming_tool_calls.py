"""What comes when, while a model streams an answer with several tool calls: each event of the run,
with its time.

DRAGOMAN_MODEL=openai:gpt-4o (and its key) looks at another model.
"""

import asyncio
from time import monotonic

from dragoman import Agent, PartDelta, PartFinished, tool


@tool
async def get_temperature(city: str) -> str:
    """The temperature in a city right now."""
    await asyncio.sleep(0.1)
    return f"21 degrees in {city}"


@tool
async def get_population(country: str) -> str:
    """The population of a country."""
    await asyncio.sleep(0.1)
    return f"40 million in {country}"


async def main() -> None:
    began = monotonic()
    async with Agent(tools=[get_temperature, get_population]) as agent:
        async for event in agent.send_events(
            "What is the temperature in Oslo, and how many people live in Chile?"
        ):
            told = ""
            if isinstance(event, PartDelta):
                told = repr(event.delta)
            elif isinstance(event, PartFinished):
                told = str(event.part)
            print(f"{monotonic() - began:7.3f} s  {type(event).__name__:<16} {told}", flush=True)


asyncio.run(main())
