"""The main job, on a language model in this process: answers, tools, streams and a typed value.

DRAGOMAN_MODEL=openai:gpt-4o (and its key) runs the same code on a hosted model.
"""

import asyncio
import random

from pydantic import BaseModel

from dragoman import Agent, Chat, Message, Settings, tool

RETURNED: list[int] = []


@tool
async def get_temperature(city: str) -> str:
    """The temperature in a city right now."""
    RETURNED.append(random.randint(11, 39))
    return f"{RETURNED[-1]} degrees"


@tool
async def get_population(country: str) -> str:
    """The population of a country."""
    RETURNED.append(random.randint(40, 99))
    return f"{RETURNED[-1]} million"


class City(BaseModel):
    name: str
    country: str


def show(message: Message) -> str:
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    results = [f"{result.name} returned {result.result!r}" for result in message.tool_results]
    return f"   {message.role:<6}" + ", ".join(filter(None, [message.text, *calls, *results]))


async def main() -> None:
    plain = Agent(settings=Settings(temperature=0))
    async with plain, Agent(tools=[get_temperature, get_population]) as agent:
        print("The embedded model is loaded on first use.\n\n1. A streamed answer: ", end="")
        async for chunk in plain.send_stream("What is the sea? Answer in one sentence."):
            print(chunk.output, end="", flush=True)

        print("\n\n2. Tools, which return random numbers:", flush=True)
        for question in ("temperature in Oslo and in Rome", "population of Chile"):
            RETURNED.clear()
            chat = Chat(agent)
            answer = (await chat.send(f"What is the {question}?")).output
            print(*map(show, chat.history), sep="\n")
            found = [number for number in RETURNED if str(number) in answer]
            print(f"   returned: {RETURNED}, in the answer: {found}\n", flush=True)
        city = (await plain.send_for("Name a big city and its country.", City)).output
        print(f"3. A typed value: {city!r}")


asyncio.run(main())
