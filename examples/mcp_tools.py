"""An agent with the tools of an MCP server, which it starts itself: here `dragoman mcp`, with the
tools of `mcp_server.py` beside this file."""

import sys
from pathlib import Path

from dragoman import Agent
from dragoman.mcp import mcp

COMMAND = [
    sys.executable,
    "-m",
    "dragoman",
    "mcp",
    "mcp_server:agent",
    "--tools",
    "-C",
    str(Path(__file__).parent),
]


def main() -> None:
    with Agent(tools=[mcp(COMMAND).prefix("text_")]) as agent:
        result = agent.send_sync("How many words has this?")
    for message in result.messages:
        for part in message.parts:
            print(message.role, part)


if __name__ == "__main__":
    main()
