"""A conversation that goes on with another provider: `switch_provider.py
anthropic:claude-sonnet-4-6`, and its key."""

import asyncio
import sys

from dragoman import Agent, Chat


async def main(other: str) -> None:
    async with Agent("local") as agent:
        chat = Chat(agent)
        await chat.send("My name is Ada.")
        result = await chat.send("What is my name?", model=other)
        print(result.output, len(chat.history))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if sys.argv[1:] else "local"))
