"""How the arguments of tool calls grow piece by piece, and that the whole call is what its pieces
say.

DRAGOMAN_MODEL=openai:gpt-4o (and its key) looks at another model. Some providers send arguments
whole: docs/capabilities.md.
"""

import asyncio
import json

from dragoman import Agent, MessageStarted, PartDelta, PartFinished, PartStarted, ToolCallPart, tool
from dragoman.orchestration import MessageAccumulator


@tool
async def book_table(restaurant: str, people: int, wishes: list[str]) -> str:
    """Books a table in a restaurant."""
    return f"A table for {people} at {restaurant}"


async def main() -> None:
    accumulator = MessageAccumulator()
    pieces: dict[tuple[str, int], str] = {}
    calls = 0
    async with Agent(tools=[book_table]) as agent:
        async for event in agent.send_events(
            "Book a table for two at Chez Ada, by the window, with a high chair."
        ):
            if isinstance(event, MessageStarted):
                accumulator = MessageAccumulator()
            accumulator.add(event)
            if isinstance(event, PartStarted) and isinstance(event.part, ToolCallPart):
                pieces[event.message_id, event.index] = ""
                print(f"{event.part.name} begins, with the id {event.part.id}")
            elif isinstance(event, PartDelta) and (event.message_id, event.index) in pieces:
                pieces[event.message_id, event.index] += str(event.delta)
                print(f"  + {event.delta!r}")
            elif isinstance(event, PartFinished) and isinstance(event.part, ToolCallPart):
                calls += 1
                text = pieces[event.message_id, event.index]
                print(f"  = {event.part.arguments} ({event.part.state})")
                assert (
                    not text
                    or event.part.state != "complete"
                    or json.loads(text) == event.part.arguments
                )
                assert event.part in accumulator.message().tool_calls
    print(f"{calls} calls, each as its pieces say")


asyncio.run(main())
