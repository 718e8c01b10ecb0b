"""Shows the agents that the caller may use: their models, tools, and what they take."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.capability import Capability
from dragoman.errors import ModelNotFoundError
from dragoman.json_bytes import Json
from dragoman.model.fallbacks import model_string
from dragoman.model.resolve_model import parse_model_string, resolve_model
from dragoman.providers.provider import Provider
from dragoman.serve.apis.cards import card_of
from dragoman.serve.core.agents import AgentBackend, ServedAgent
from dragoman.serve.core.call import Call
from dragoman.serve.gateway.gateway import Gateway
from dragoman.serve.page.door import PageRequest, Reply
from dragoman.tools import Tool

__all__ = ["find_served", "list_agents", "list_served", "models_of"]


def list_served(call: Call) -> Iterator[ServedAgent]:
    """Yields the agents that the caller may use."""
    for backend in call.service.backends:
        if isinstance(backend, AgentBackend):
            for name in backend.agents:
                if call.caller.may_use(name):
                    yield backend.get_served(name)


def find_served(call: Call, name: str) -> ServedAgent:
    """Returns an agent by its name; empty: the first.

    Raises:
        ModelNotFoundError: the caller may use none of that name.
    """
    for served in list_served(call):
        if name in ("", served.name):
            return served
    raise ModelNotFoundError(f"there is no agent {name!r:.200} here").at(field="agent")


def models_of(call: Call, served: ServedAgent) -> dict[str, str | Provider | None]:
    """Returns the models from which the caller may choose for an agent, by their model strings; None
    stands for the agent's own, which comes first."""
    string = parse_model_string(served.agent.model)
    models: dict[str, str | Provider | None] = {f"{string.provider}:{string.chat}": None}
    for model in served.policy.models:
        name = model_string(model)
        if call.caller.may_use(f"{served.name}@{name}"):
            models.setdefault(name, model)
    return models


async def list_agents(request: PageRequest) -> Reply:
    """Answers with the agents and the names of the gateway's models."""
    call = request.call
    gateway = [
        name
        for backend in call.service.backends
        if isinstance(backend, Gateway)
        for name in backend.names
        if call.caller.may_use(name)
    ]
    agents = [_dump_agent(call, served) for served in list_served(call)]
    return Reply({"agents": agents, "gateway": gateway})


def _dump_agent(call: Call, served: ServedAgent) -> Json:
    agent, card = served.agent, card_of(call, served)
    models = models_of(call, served)
    suggestions = [example for skill in card.skills or () for example in skill.examples]
    return {
        "name": served.name,
        "title": card.name,
        "description": card.description,
        "model": next(iter(models)),
        "models": [
            _dump_model(name, agent.capabilities if model is None else _capabilities(model))
            for name, model in models.items()
        ],
        "tools": [_dump_tool(tool) for tool in agent.tools if isinstance(tool, Tool)],
        "suggestions": suggestions,
        "titles": agent.memory is not None and not agent.memory.read_only,
        "attachments": _list_types(agent.capabilities),
    }


def _capabilities(model: str | Provider) -> frozenset[Capability]:
    return resolve_model(model)[1].capabilities


def _dump_model(name: str, capabilities: frozenset[Capability]) -> Json:
    return {
        "name": name,
        "provider": name.partition(":")[0],
        "thinking": Capability.thinking in capabilities,
        "images": Capability.vision in capabilities,
        "audio": Capability.audio in capabilities,
        "files": Capability.files in capabilities,
    }


def _list_types(capabilities: frozenset[Capability]) -> list[str]:
    """Returns the media types of what can be attached to a prompt."""
    types = {
        Capability.vision: ["image/*"],
        Capability.audio: ["audio/*"],
        Capability.files: ["application/pdf", "text/*"],
    }
    return [
        media_type
        for capability, media_types in types.items()
        if capability in capabilities
        for media_type in media_types
    ]


def _dump_tool(tool: Tool) -> Json:
    return {
        "name": tool.name,
        "description": tool.spec.description,
        "approval": tool.requires_approval is not False,
        "editable": tool.editable,
        "input_schema": dict(tool.spec.input_schema),
    }
