"""An MCP server of before 2026, written by hand: it starts at once, notes what it gets, and dies
when it is told to.

Run as a program: `python -S mcp_program.py LOG`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

LOG = Path(sys.argv[1]) if len(sys.argv) > 1 else None
TOOLS: dict[str, dict[str, Any]] = {
    "add": {},
    "slow": {},
    "die": {},
    "die_once": {"idempotentHint": True},
    "environment": {},
    "endless": {},
}


def note(text: str) -> None:
    """Writes a line into the log."""
    if LOG is not None:
        with LOG.open("a") as file:
            file.write(text + "\n")


def send(**message: Any) -> None:
    """Writes a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(name: str, arguments: dict[str, Any]) -> str:
    """What a tool gives."""
    note(name)
    if name == "die" or (name == "die_once" and not Path(arguments["mark"]).exists()):
        if name == "die_once":
            Path(arguments["mark"]).touch()
        print("it dies now", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "environment":
        return os.environ.get(arguments["name"], "(not set)")
    return str(arguments.get("a", 0) + arguments.get("b", 0))


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; `None`: there is no such method."""
    if method == "initialize":
        capabilities = {"tools": {}}
        server = {"name": "by hand", "version": "1"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": server,
        }
    if method == "tools/list":
        schema = {"type": "object"}
        place = int(params.get("cursor", 0))
        name = list(TOOLS)[place]
        page: dict[str, Any] = {
            "tools": [{"name": name, "inputSchema": schema, "annotations": TOOLS[name]}]
        }
        return page | ({"nextCursor": str(place + 1)} if place + 1 < len(TOOLS) else {})
    if method == "tools/call":
        return {
            "content": [
                {"type": "text", "text": call(params["name"], params.get("arguments") or {})}
            ]
        }
    return None


def main() -> None:
    """Answers until nobody asks any more."""
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method", ""), message.get("params") or {}
        if method == "notifications/cancelled":
            note(f"cancelled {params['requestId']}")
        if "id" not in message:
            continue
        if method == "tools/call" and params["name"] == "slow":
            note(f"slow {message['id']}")
            seconds = float((params.get("arguments") or {}).get("seconds", 60))
            late = {"content": [{"type": "text", "text": "late"}]}
            timer = threading.Timer(seconds, send, kwargs={"id": message["id"], "result": late})
            timer.daemon = True
            timer.start()
        elif (result := answer(method, params)) is None:
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})
        else:
            send(id=message["id"], result=result)


if __name__ == "__main__":
    main()
