"""What a server tells of its agents: what their owner says, what they can do, and the card of A2A,
for everybody and for clients with a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.utils import format_datetime
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.arguments import expect
from dragoman.capability import Capability
from dragoman.codec.agent_card import Abilities, AgentCard, Skill
from dragoman.errors import AuthenticationError, ModelNotFoundError, SettingsError
from dragoman.json_bytes import Json
from dragoman.runtime import extra_hint
from dragoman.serve.apis.a2a_frames import Frame, TaskError
from dragoman.serve.core.agents import ServedAgent, find_agent
from dragoman.serve.core.call import Call
from dragoman.serve.http.callers import STRANGER
from dragoman.serve.store.answer_store import NoAnswers
from dragoman.tools import Tool
from dragoman.tools.agent_tool import AgentTool, Handoff
from dragoman.wires import a2a

__all__ = [
    "AgentCard",
    "Skill",
    "abilities_of",
    "card_of",
    "assign_cards",
    "show_card",
    "show_extended_card",
]

_MOST_SIGNATURES = 64
"""Cards of which the signature is kept."""


_DEFAULT_NAME = "agent"
Cards = AgentCard | Mapping[str, AgentCard] | None
"""One for all agents, or by their names."""


def assign_cards(cards: Cards, names: list[str]) -> Mapping[str, AgentCard]:
    """Maps each agent that has a card to it. `names`: the names of the agents.

    Raises:
        SettingsError: there is no agent of a name, one card has two agents, or a package is missing.
        TypeError: something is no card.
    """
    if cards is None:
        return {}
    if isinstance(cards, Mapping):
        all_cards = list(cards.values())
    else:
        all_cards = [cards]
    for card in all_cards:
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
        # A single agent answers to every name.
        return dict.fromkeys([*names, ""], cards)
    for name in cards:
        if name not in names:
            raise SettingsError(
                f"cards= names {name!r:.100}, and there is no such agent; there are {', '.join(names)}"
            )
    return dict(cards)


def card_of(call: Call, served: ServedAgent) -> AgentCard:
    """Returns the card of an agent: its owner's, with a missing name and description taken from the
    agent. The card of an agent that was served without a name says "agent"."""
    cards, agent = call.service.cards, served.agent
    card = cards.get(served.name) or cards.get("") or AgentCard()
    # An agent that was served without a name has that of its model, without the query of a URL. The
    # card must not tell which model stands behind the agent.
    is_named = served.name != agent.model.partition("?")[0]
    name = card.name or (served.name if is_named else _DEFAULT_NAME)
    return msgspec.structs.replace(
        card,
        name=name,
        description=card.description or (agent.display_name if is_named else name),
    )


def abilities_of(call: Call, served: ServedAgent) -> Abilities:
    """Returns what an agent can do on this server, for its card."""
    agent, capabilities = served.agent, served.agent.capabilities
    tools = [tool for tool in agent.tools if isinstance(tool, Tool)]
    gated = [tool for tool in tools if tool.requires_approval is not False]
    return Abilities(
        tools=tuple([tool.spec for tool in tools if not isinstance(tool, AgentTool | Handoff)]),
        images=Capability.vision in capabilities,
        audio=Capability.audio in capabilities,
        files=Capability.files in capabilities,
        makes_media=Capability.media in capabilities,
        thinking=Capability.thinking in capabilities,
        parallel_tools=Capability.parallel_tools in capabilities,
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
    """Returns an agent's abilities without its tools, for clients that have no key."""
    none: tuple[Any, ...] = ()
    return msgspec.structs.replace(abilities, tools=none, agents=none, successors=none)


async def show_card(call: Call) -> None:
    """Shows what an agent can do, and where.

    Raises:
        AuthenticationError: a key is needed.
    """
    is_stranger = call.caller is STRANGER
    try:
        served = find_agent(call, call.parameters.get("model", ""))
        if is_stranger and not card_of(call, served).public:
            raise AuthenticationError("a key is needed, and none came with the request")
    except ModelNotFoundError as error:
        if is_stranger:
            raise AuthenticationError("a key is needed, and none came with the request") from error
        raise
    card = _make_card(call, served, is_whole=not is_stranger)
    is_current = call.headers.get("a2a-version", "").startswith("1") or call.query.get(
        "version", ""
    ).startswith("1")
    # `older=False`: no client of 0.3 is expected, so all get the card of 1.0.
    is_current |= not served.policy.older
    body = json_bytes.encode(card if is_current else {**card, **a2a.old_card(card)})
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    since = format_datetime(call.service.started_at, usegmt=True)
    if call.service.has_keys and not is_stranger:
        cache_scope = "private"
    else:
        cache_scope = "public"
    headers = {"cache-control": f"{cache_scope}, max-age=300", "etag": tag, "last-modified": since}
    headers["vary"] = "a2a-version, authorization, x-api-key"
    if call.headers.get("if-none-match") == tag:
        await call.connection.respond(304, headers, b"")
        return
    await call.connection.respond(200, {"content-type": "application/json", **headers}, body)


async def show_extended_card(call: Call, params: Json, frame: Frame) -> None:  # noqa: ARG001 a method's
    """Shows all that is told of an agent to clients with a key.

    Raises:
        TaskError: there are no keys.
    """
    if not call.service.has_keys:
        message = "the agent has one card, and no other for those who sign in"
        raise TaskError(message, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
    card = _make_card(call, find_agent(call, call.parameters.get("model", "")), is_whole=True)
    await frame.respond(call, {**card, **a2a.old_card(card)} if frame.old else card)


def _make_card(call: Call, served: ServedAgent, *, is_whole: bool) -> Json:
    """Returns the agent card of A2A as JSON. `is_whole` includes what only clients with a key
    see."""
    service, agent_card, abilities = call.service, card_of(call, served), abilities_of(call, served)
    root = f"{_request_origin(call)}/a2a" + (
        f"/agents/{call.parameters['model']}" if "model" in call.parameters else ""
    )
    urls = {
        "jsonrpc": root,
        "rest": root,
        **({"grpc": service.grpc_address} if service.grpc_address else {}),
    }
    if service.has_keys:
        security = {"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}
    else:
        security = {}
    card: Json = a2a.dump_card(
        agent_card,
        abilities if is_whole else without_tools(abilities),
        urls,
        extended=service.has_keys,
        security=security,
    )
    if agent_card.signer is None:
        return card
    return {**card, "signatures": _sign_card(agent_card.signer, json_bytes.encode(card))}


@lru_cache(_MOST_SIGNATURES)
def _sign_card(signer: Callable[[Any], Any], card: bytes) -> list[Any]:
    """Returns the signatures of a card, which a2a-sdk makes."""
    from a2a.types import AgentCard as Signable
    from google.protobuf import json_format

    signed = signer(json_format.Parse(card, Signable()))
    return json_format.MessageToDict(signed).get("signatures", [])


def _request_origin(call: Call) -> str:
    """Returns for a card the scheme and host under which a client reached the server."""
    if call.headers.get("x-forwarded-proto") == "https":
        scheme = "https"
    else:
        scheme = "http"
    return f"{scheme}://{call.headers.get('host', '127.0.0.1')}"
