"""What a server of A2A answers beside tasks: the card that says what an agent can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.request import ToolSpec
from dragoman.wires.a2a.quirks import EXTENSION, VERSION

__all__ = ["CARD_PATH", "dump_card"]

CARD_PATH = "/.well-known/agent-card.json"
"""Where clients look for it, at the root of a host."""
_BINDINGS: Mapping[str, str] = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}


def dump_card(
    name: str,
    interfaces: Mapping[str, str],
    *,
    description: str = "",
    version: str = "1.0.0",
    tools: Sequence[ToolSpec] = (),
    push: bool = False,
    extended: bool = False,
    security: Mapping[str, Any] = {},
) -> dict[str, Any]:
    """The card of an agent. `interfaces`: binding (`jsonrpc`, `rest`, `grpc`) → its URL, the preferred one first; `tools`: those that it
    tells of, each a skill; `security`: name of a scheme → the scheme, each of which is required."""
    skills = [{"id": t.name, "name": t.name, "description": t.description or t.name, "tags": ["tool"]} for t in tools]
    chat = {"id": "chat", "name": name, "description": description or f"Talks with {name}", "tags": ["chat"]}
    extension = {"uri": EXTENSION, "description": "Messages and runs, exactly", "required": False}
    card: dict[str, Any] = {
        "name": name,
        "description": description or name,
        "version": version,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": _BINDINGS[binding], "protocolVersion": VERSION}
            for binding, url in interfaces.items()
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": push,
            "extendedAgentCard": extended,
            "extensions": [extension],
        },
        "defaultInputModes": ["text/plain", "application/json", "image/*", "application/pdf"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [chat, *skills],
    }
    if security:
        required: list[Any] = [{"schemes": {scheme: {"list": []}}} for scheme in security]
        card |= {"securitySchemes": dict(security), "securityRequirements": required}
    return card
