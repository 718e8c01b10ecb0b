"""What is told of an agent to whoever looks for one: what its owner says (`AgentCard`), and what it
can do (`Abilities`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.request import ToolSpec

__all__ = ["Abilities", "AgentCard", "Skill"]


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an agent can be asked for."""

    id: str
    """By which clients name it."""
    name: str = ""
    """For people; empty: the id."""
    description: str = ""
    """What it does, and when to ask for it; empty: the name."""
    tags: tuple[str, ...] = ()
    """Words under which it is looked for."""
    examples: tuple[str, ...] = ()
    """Prompts that ask for it."""


class AgentCard(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner of an agent says of it. What is left out the server finds out itself."""

    name: str = ""
    """For people; empty: the name that clients ask for."""
    description: str = ""
    """What the agent is for; empty: its `display_name`."""
    version: str = "1.0.0"
    """The agent's."""
    skills: tuple[Skill, ...] | None = None
    """What it can be asked for; `None`: to talk, and each of its tools."""
    icon_url: str = ""
    """Address of a picture."""
    documentation_url: str = ""
    """Address of what is to be read about it."""
    organization: str = ""
    """Who is behind it; empty: nothing is said."""
    organization_url: str = ""
    """Address of whoever that is."""
    input_modes: tuple[str, ...] | None = None
    """Media types that it reads; `None`: what the models of its provider do."""
    output_modes: tuple[str, ...] | None = None
    """Media types that it answers with; `None`: what the models of its provider do."""
    public: bool = False
    """True if who has no key may read the card. He is told of no tools."""
    signer: Callable[[Any], Any] | None = None
    """Signs the card of A2A: a function that takes and gives a2a-sdk's `AgentCard`, such as
    `a2a.utils.signing.create_agent_card_signer` makes. `None`: it is not signed."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent can do, as it is."""

    tools: tuple[ToolSpec, ...] = ()
    """Those of its own that are known before it runs."""
    images: bool = False
    """True if it reads them."""
    audio: bool = False
    """True if it hears it."""
    files: bool = False
    """True if it reads documents such as PDF."""
    makes_media: bool = False
    """True if its answers may hold pictures or sound."""
    thinking: bool = False
    """True if it shows that it thinks."""
    parallel_tools: bool = False
    """True if it may call several tools at once."""
    client_tools: bool = True
    """True if it calls tools that its client brings and runs."""
    approvals: bool = False
    """True if it asks before it runs some of its tools."""
    edits: bool = False
    """True if who allows that may change the arguments."""
    agents: tuple[ToolSpec, ...] = ()
    """Agents that it has do something, as tools."""
    successors: tuple[ToolSpec, ...] = ()
    """Agents that it hands a conversation over to, as tools."""
    memory: bool = False
    """True if conversations are kept, so that a client need not send them again."""
    resumable: bool = False
    """True if a stream that broke off is read again."""
    push: bool = False
    """True if notifications are sent."""
