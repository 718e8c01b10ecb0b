"""An agent of pydantic-ai behind its own AG-UI adapter, whose model is a function. python
pydantic_ai_app.py prints its URL, and serves."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.routing import Route


async def words(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    """Does with its tools what the last prompt wants, and then tells what it was given."""
    parts = [part for message in messages for part in message.parts]
    last = max(at for at, part in enumerate(parts) if isinstance(part, UserPromptPart))
    wanted = str(parts[last].content)
    given = {
        part.tool_name: part.content for part in parts[last:] if isinstance(part, ToolReturnPart)
    }
    names = {tool.name for tool in info.function_tools}
    for name in ("roll", "weather"):
        if name in wanted and name not in given:
            if name not in names:
                yield f"No {name}."
                return
            arguments = '{"city": "Rome"}' if name == "weather" else "{}"
            yield {0: DeltaToolCall(name, arguments, tool_call_id=f"{name}-{len(parts)}")}
            return
    told = sum(isinstance(part, UserPromptPart) for part in parts)
    yield f"Asked {told} times. "
    yield f"{given}"


agent = Agent(FunctionModel(stream_function=words))


@agent.tool_plain
def roll() -> int:
    """Rolls a die."""
    return 4


async def run(request: Any) -> Any:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    app = Starlette(routes=[Route("/", run, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
