"""What a server of A2A answers beside tasks: the card that says what an agent can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.agent_card import Abilities, AgentCard, Skill
from dragoman.wires.a2a.quirks import EXTENSION, VERSION

__all__ = ["CARD_PATH", "MEDIA_TYPES", "dump_card"]

CARD_PATH = "/.well-known/agent-card.json"
"""Where clients look for it, at the root of a host."""
MEDIA_TYPES = ("application/json", "application/a2a+json")
"""Of what clients send."""
_BINDINGS: Mapping[str, str] = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}


_READ = ("text/plain", "application/json")


def dump_card(
    card: AgentCard,
    abilities: Abilities,
    interfaces: Mapping[str, str],
    *,
    extended: bool = False,
    security: Mapping[str, Any] = {},
) -> dict[str, Any]:
    """The card of an agent. `interfaces`: binding (`jsonrpc`, `rest`, `grpc`) → its URL, the preferred one first; `extended`: who has a
    key may ask for another; `security`: name of a scheme → the scheme, each of which is required."""
    extension = {"uri": EXTENSION, "description": "Messages and runs, exactly", "required": False}
    made: dict[str, Any] = {
        "name": card.name,
        "description": card.description or card.name,
        "version": card.version,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": _BINDINGS[binding], "protocolVersion": VERSION}
            for binding, url in interfaces.items()
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": abilities.push,
            "extendedAgentCard": extended,
            "extensions": [extension],
        },
        "defaultInputModes": list(
            _inputs(abilities) if card.input_modes is None else card.input_modes
        ),
        "defaultOutputModes": list(
            _outputs(abilities) if card.output_modes is None else card.output_modes
        ),
        "skills": _own_skills(card, abilities)
        if card.skills is None
        else [_skill(each) for each in card.skills],
    }
    if card.organization:
        made["provider"] = {"organization": card.organization, "url": card.organization_url}
    addresses = {"iconUrl": card.icon_url, "documentationUrl": card.documentation_url}
    made |= {name: url for name, url in addresses.items() if url}
    if security:
        required: list[Any] = [{"schemes": {scheme: {"list": []}}} for scheme in security]
        made |= {"securitySchemes": dict(security), "securityRequirements": required}
    return made


def _inputs(abilities: Abilities) -> Sequence[str]:
    found = {
        "image/*": abilities.images,
        "audio/*": abilities.audio,
        "application/pdf": abilities.files,
    }
    return [*_READ, *[mode for mode, is_read in found.items() if is_read]]


def _outputs(abilities: Abilities) -> Sequence[str]:
    return [*_READ, *(["image/*"] if abilities.makes_media else [])]


def _own_skills(card: AgentCard, abilities: Abilities) -> list[dict[str, Any]]:
    kinds = {"tool": abilities.tools, "agent": (*abilities.agents, *abilities.successors)}
    chat = Skill(
        id="chat",
        name=card.name,
        description=card.description or f"Talks with {card.name}",
        tags=("chat",),
    )
    tools = [
        Skill(id=tool.name, description=tool.description, tags=(tag,))
        for tag, specs in kinds.items()
        for tool in specs
    ]
    return [_skill(each) for each in (chat, *tools)]


def _skill(skill: Skill) -> dict[str, Any]:
    name = skill.name or skill.id
    made: dict[str, Any] = {
        "id": skill.id,
        "name": name,
        "description": skill.description or name,
        "tags": list(skill.tags),
    }
    return {**made, "examples": list(skill.examples)} if skill.examples else made
