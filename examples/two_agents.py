"""Two agents that know each other by their URLs alone: an assistant asks an agent for weather, over
A2A, and is asked over A2A itself.

Each could be anybody's, in any language. Run: python examples/two_agents.py
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman import Agent, remote_agent, serve, tool

KEY = "a-key-of-these-two"


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"18 degrees and sun in {city}"


@tool(requires_approval=True)
def note(text: str) -> str:
    """Writes a note into the calendar."""
    return f"noted: {text}"


@asynccontextmanager
async def served(agent: Agent) -> AsyncGenerator[str]:
    """Serves an agent on a free port → its URL."""
    url = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(
        serve.serve_http(serve.app(agent, auth=KEY), port=0, ready=url.set_result)
    )
    try:
        yield await url
    finally:
        server.cancel()
        await asyncio.wait([server])


async def main() -> None:
    forecaster = Agent(tools=[weather], system="You tell the weather. Use your tool.")
    async with served(forecaster) as weather_url:
        forecast = remote_agent(
            f"{weather_url}/a2a", "forecaster", "Knows the weather of any city.", api_key=KEY
        )
        assistant = Agent(
            tools=[forecast, note], system="You are a personal assistant. Use your tools."
        )
        async with (
            served(assistant) as assistant_url,
            Agent(f"a2a:{assistant_url}/a2a", api_key=KEY) as client,
        ):
            result = await client.send("How will the weather be in Oslo? Note it, please.")
            while result.pending:  # what the assistant waits for, a person is asked here
                for each in result.pending:
                    print(f"approved: {each.call.name if each.call else each.message}")
                answers = [
                    each.approve() if each.reason == "approval" else each.cancel()
                    for each in result.pending
                ]
                result = await client.send(None, history=result.messages, resume=answers)
            print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
