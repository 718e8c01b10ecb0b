"""A value that is shown while the model writes it, and a check that sends a bad one back."""

import asyncio

from pydantic import BaseModel

from dragoman import Agent, ModelRetry, ToolContext


class City(BaseModel):
    name: str
    country: str


def check_name(_: ToolContext[None], city: City) -> City:
    if not city.name.strip():
        raise ModelRetry("Name the city.")
    return city


async def main() -> None:
    async with Agent(output_checks=[check_name]) as agent:
        async for chunk in agent.send_stream_for("Name a city in Norway.", City):
            print("final:" if chunk.final else "so far:", chunk.output.name, chunk.output.country)


if __name__ == "__main__":
    asyncio.run(main())
