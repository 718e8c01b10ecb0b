"""What a server tells of its agents: what their owner says, and what they are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import msgspec

from dragoman.arguments import expect
from dragoman.capability import Capability
from dragoman.codec.agent_card import Abilities, AgentCard, Skill
from dragoman.errors import SettingsError
from dragoman.runtime import extra_hint
from dragoman.serve.calls.call import Call
from dragoman.serve.protocols.runs import Served
from dragoman.serve.store.answers import NoAnswers
from dragoman.tools import Tool
from dragoman.tools.agent_tool import AgentTool, Handoff

__all__ = ["AgentCard", "Skill", "abilities_of", "card_of", "cards_of", "without_tools"]

_UNNAMED = "agent"
Cards = AgentCard | Mapping[str, AgentCard] | None
"""One for all agents, or by their names."""


def cards_of(cards: Cards, names: list[str]) -> Mapping[str, AgentCard]:
    """The card of each agent that has one. `names`: of the agents.

    Raises:
        SettingsError: there is no agent of a name, one card has two agents, or a package is missing.
        TypeError: something is no card.
    """
    if cards is None:
        return {}
    given = list(cards.values()) if isinstance(cards, Mapping) else [cards]
    for card in given:
        expect(
            "cards",
            card,
            AgentCard,
            hint="give serve.AgentCard(…), or several by the agents' names",
        )
        if card.signer is not None and find_spec("a2a") is None:
            raise SettingsError(f"a signed card needs a2a-sdk: {extra_hint('a2a')}")
    if isinstance(cards, AgentCard):
        if len(names) > 1:
            raise SettingsError(
                f"cards= is one card for {len(names)} agents; give each its own: {{NAME: AgentCard(…)}}"
            )
        return dict.fromkeys([*names, ""], cards)  # a single agent answers to every name
    for name in cards:
        if name not in names:
            raise SettingsError(
                f"cards= names {name!r:.100}, and there is no such agent; there are {', '.join(names)}"
            )
    return dict(cards)


def card_of(call: Call, served: Served) -> AgentCard:
    """What is said of an agent: by its owner, else its names. One without a name is not known by that of its model."""
    cards, agent = call.service.cards, served.agent
    given = cards.get(served.name) or cards.get("") or AgentCard()
    is_named = served.name != agent.model.partition("?")[0]
    name = given.name or (served.name if is_named else _UNNAMED)
    return msgspec.structs.replace(
        given,
        name=name,
        description=given.description or (agent.display_name if is_named else name),
    )


def abilities_of(call: Call, served: Served) -> Abilities:
    """What an agent can do, as this server has it."""
    agent, can = served.agent, served.agent.capabilities
    tools = [tool for tool in agent.tools if isinstance(tool, Tool)]
    gated = [tool for tool in tools if tool.requires_approval is not False]
    return Abilities(
        tools=tuple([tool.spec for tool in tools if not isinstance(tool, AgentTool | Handoff)]),
        images=Capability.vision in can,
        audio=Capability.audio in can,
        files=Capability.files in can,
        makes_media=Capability.media in can,
        thinking=Capability.thinking in can,
        parallel_tools=Capability.parallel_tools in can,
        client_tools=served.policy.tools == "keep",
        approvals=bool(gated),
        edits=any(tool.editable for tool in gated),
        agents=tuple([tool.spec for tool in tools if isinstance(tool, AgentTool)]),
        successors=tuple([tool.spec for tool in tools if isinstance(tool, Handoff)]),
        memory=agent.memory is not None or not isinstance(call.service.answers, NoAnswers),
        resumable=not isinstance(call.service.answers, NoAnswers),
        push=call.service.webhooks.policy is not None,
    )


def without_tools(abilities: Abilities) -> Abilities:
    """What who has no key is told."""
    none: tuple[Any, ...] = ()
    return msgspec.structs.replace(abilities, tools=none, agents=none, successors=none)
