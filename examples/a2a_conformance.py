"""An agent that does what the official A2A conformance suite asks for, told by the beginning of a
message's id.

python examples/a2a_conformance.py [PORT]      then: run_tck.py --sut-host http://127.0.0.1:PORT
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

from dragoman import Agent, Message, serve, tool, unfold
from dragoman.errors import ContentRefusedError
from dragoman.event import (
    Custom,
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    StateSnapshot,
)
from dragoman.message import DataPart, FinishReason, LinkPart, Role, TextPart, ToolCallPart
from dragoman.model.middleware import Next
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from dragoman.tools import ToolContext
from dragoman.transport import AddressPolicy
from dragoman.wires.a2a import REPLY

LONG_SECONDS = 8.0
"""So long a task works that clients come back to."""
FILE = DataPart(b"Generated file content", "text/plain", "output.txt")
LINK = LinkPart("https://example.com/output.txt", "text/plain", "output.txt")
WORDS = {
    "tck-artifact-text": "Generated text content",
    "tck-stream-001": "Stream hello from TCK",
    "tck-stream-003": "Stream task lifecycle",
    "tck-stream-ordering-001": "Ordered output",
    "tck-stream-artifact-text": "Streamed text content",
}


@tool
async def ask(ctx: ToolContext) -> str:
    """Asks whoever talks to the agent."""
    return str(ctx.ask("What shall I do?"))


def answer(*content: Any) -> list[Event]:
    """A message of the model's."""
    return unfold(
        [Message.model(*content).replace(id=uuid4().hex, finish_reason=FinishReason.stop)]
    )


def chunked(*pieces: str) -> list[Event]:
    """A message whose text comes in these pieces."""
    id_ = uuid4().hex
    return [
        MessageStarted(id_, Role.MODEL),
        PartStarted(id_, 0, OpenText()),
        *[PartDelta(id_, 0, piece) for piece in pieces],
        PartFinished(id_, 0, TextPart("".join(pieces))),
        MessageFinished(id_, FinishReason.stop),
    ]


async def scenario(request: ModelRequest, following: Next) -> AsyncGenerator[Event]:
    """In the place of a model: what the last message's id asks for."""
    last = next_question(request)
    given = [str(result.result) for result in request.messages[-1].tool_results]
    asks_again = any("TCK history message" in text for text in given)
    if last.startswith("tck-input-required") and (asks_again or not given):
        events = answer(ToolCallPart(f"ask-{uuid4().hex[:8]}", "ask", {}))
    elif last.startswith("tck-reject-task"):
        raise ContentRefusedError("rejected")
    elif last.startswith(("tck-artifact-file-url", "tck-stream-artifact-file-url")):
        events = answer(LINK)
    elif last.startswith(("tck-artifact-file", "tck-stream-artifact-file")):
        events = answer(FILE)
    elif last.startswith("tck-artifact-data"):
        yield StateSnapshot({"key": "value", "count": 42})
        events = answer("Here it is.")
    elif last.startswith("tck-message-response"):
        yield Custom(REPLY)
        events = answer("Direct message response")
    elif last.startswith("tck-stream-artifact-chunked"):
        events = chunked("chunk-1 ", "chunk-2")
    elif last.startswith("test-resubscribe-message-id"):
        await asyncio.sleep(LONG_SECONDS)
        events = answer("Done at last.")
    else:
        words = next(
            (text for prefix, text in WORDS.items() if last.startswith(prefix)), "Hello from TCK"
        )
        events = answer(words)
    for event in events:
        yield event


def next_question(request: ModelRequest) -> str:
    """The id of the last message that says something."""
    asked = [
        message.id for message in request.messages if message.role is Role.USER and message.text
    ]
    return (asked[-1] if asked else None) or ""


agent = Agent(ScriptedModel([]), middleware=[scenario], tools=[ask], display_name="Conformance")


async def main(port: int) -> None:
    """Serves the agent over JSON-RPC, REST and gRPC."""
    anywhere = AddressPolicy(
        ["*", "127.0.0.0/8", "localhost"],
        schemes=["http", "https"],
        ports=range(1, 65536),
        private=True,
    )
    app = serve.app(agent, webhooks=anywhere, policy=serve.AgentPolicy(older=False))
    async with serve.serve_grpc(app):
        await serve.serve_http(app, port=port, ready=print)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 9999))
