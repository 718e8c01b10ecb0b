"""An MCP server on standard input and output, whose tool writes a line into a file.

python notes_server.py FILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_TOOL = {
    "name": "add-note",
    "description": "Writes a note down.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def answer(method: str, given: Any, file: Path) -> Any:
    """Returns the result of a request, and writes the note of a call."""
    if method == "initialize":
        server = {"name": "notes", "version": "1"}
        version = given["protocolVersion"]
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": server,
            "instructions": "Notes of this project.",
        }
    if method == "tools/list":
        return {"tools": [_TOOL]}
    if method == "tools/call":
        with file.open("a") as notes:
            notes.write(f"{given['arguments']['text']}\n")
        return {"content": [{"type": "text", "text": "noted"}]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(request["method"], request.get("params"), Path(sys.argv[1]))
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
