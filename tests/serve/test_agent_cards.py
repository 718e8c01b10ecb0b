"""Cards and capabilities say what an agent is, and what its owner says of it; who has no key is
told what is meant for him."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard as Signable
from a2a.utils.signing import create_agent_card_signer, create_signature_verifier
from ag_ui.core.capabilities import AgentCapabilities
from google.protobuf import json_format

from dragoman import Agent, Capability, serve
from dragoman.errors import SettingsError
from dragoman.serve import AgentCard, AgentPolicy, Skill
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.protocols import pay, roll

pytestmark = pytest.mark.anyio

CARD = "/.well-known/agent-card.json"
KEY = {"authorization": "Bearer own-secret-key"}


def able(*capabilities: Capability, **fields: Any) -> Agent[Any]:
    model = ScriptedModel([], capabilities=frozenset([Capability.chat, *capabilities]))
    return Agent(model, **fields)


async def read(
    app: Any, path: str = CARD, status: int = 200, *, headers: dict[str, str] = {}
) -> Any:
    answer = await exchange(app, "GET", path, headers={"a2a-version": "1.0", **headers})
    assert answer.status == status, answer.body
    return answer.json


async def test_a_card_says_what_the_models_of_the_agent_read_and_make() -> None:
    plain = await read(serve.app(able()))
    assert (
        plain["defaultInputModes"]
        == plain["defaultOutputModes"]
        == ["text/plain", "application/json"]
    )
    much = await read(
        serve.app(able(Capability.vision, Capability.audio, Capability.files, Capability.media))
    )
    assert much["defaultInputModes"][2:] == ["image/*", "audio/*", "application/pdf"]
    assert much["defaultOutputModes"][2:] == ["image/*"]


async def test_the_owner_says_who_the_agent_is() -> None:
    said = AgentCard(
        name="Trips", description="Books trips.", version="2.1", icon_url="https://example.org/i.png", organization="Trips Ltd",
        organization_url="https://example.org/", documentation_url="https://example.org/docs", input_modes=("text/plain",),
        skills=(Skill(id="book", description="Books a flight.", tags=("travel",), examples=("Book me a flight.",)),),
    )  # fmt: skip
    card = await read(
        serve.app({"trips": able(Capability.vision, tools=[roll])}, cards={"trips": said})
    )
    assert (card["name"], card["version"], card["description"]) == ("Trips", "2.1", "Books trips.")
    assert card["provider"] == {"organization": "Trips Ltd", "url": "https://example.org/"}
    assert (card["iconUrl"], card["documentationUrl"]) == (
        "https://example.org/i.png",
        "https://example.org/docs",
    )
    assert card["defaultInputModes"] == ["text/plain"]
    assert card["skills"] == [
        {"id": "book", "name": "book", "description": "Books a flight.", "tags": ["travel"], "examples": ["Book me a flight."]}
    ]  # fmt: skip
    json_format.ParseDict(card, Signable())


async def test_capabilities_are_those_of_the_agent() -> None:
    helper = able(display_name="Helper")
    agent = able(Capability.vision, Capability.thinking, tools=[roll, pay, helper.as_tool()])
    path = "/ag-ui"
    full = await read(serve.app(agent), path)
    assert not AgentCapabilities.model_validate(full).model_extra
    assert [each["name"] for each in full["tools"]["items"]] == ["roll", "pay"]
    assert [each["name"] for each in full["multiAgent"]["subagents"]] == ["helper"]
    assert (full["humanInTheLoop"]["approvals"], full["humanInTheLoop"]["approveWithEdits"]) == (
        True,
        False,
    )
    assert (full["multimodal"]["input"]["image"], full["multimodal"]["input"]["pdf"]) == (
        True,
        False,
    )
    assert (full["reasoning"]["supported"], full["tools"]["parallelCalls"]) == (True, False)
    assert (
        full["state"]["memory"],
        full["transport"]["resumable"],
        full["tools"]["clientProvided"],
    ) == (
        True,
        True,
        True,
    )
    bare = await read(serve.app(able(), store=None, policy=AgentPolicy(tools="drop")), path)
    assert (bare["tools"]["supported"], bare["tools"]["clientProvided"]) == (False, False)
    assert (bare["humanInTheLoop"]["supported"], bare["humanInTheLoop"]["approvals"]) == (
        False,
        False,
    )
    assert (
        bare["state"]["memory"],
        bare["transport"]["resumable"],
        bare["multiAgent"]["supported"],
    ) == (False,) * 3


async def test_who_has_no_key_reads_what_is_public_and_no_more() -> None:
    agents = {"open": able(tools=[roll]), "closed": able(tools=[pay])}
    app = serve.app(
        agents, auth="own-secret-key", cards={"open": AgentCard(public=True), "closed": AgentCard()}
    )
    stranger = await read(app)
    assert [each["id"] for each in stranger["skills"]] == ["chat"]
    assert stranger["securitySchemes"]["bearer"]
    assert stranger["capabilities"]["extendedAgentCard"] is True
    assert [each["id"] for each in (await read(app, headers=KEY))["skills"]] == ["chat", "roll"]
    closed = await exchange(app, "GET", f"/a2a/agents/closed{CARD}")
    nobody = await exchange(app, "GET", f"/a2a/agents/nobody{CARD}")
    assert (closed.status, closed.body) == (nobody.status, nobody.body) == (401, nobody.body)
    assert [
        each["id"] for each in (await read(app, f"/a2a/agents/closed{CARD}", headers=KEY))["skills"]
    ] == [
        "chat",
        "pay",
    ]
    for path in (CARD, f"/a2a/agents/open{CARD}"):
        await read(app, path, 401, headers={"authorization": "Bearer a-wrong-key"})
    for path in ("/a2a/extendedAgentCard", "/a2a/tasks", "/ag-ui"):
        await read(app, path, 401)
    await read(serve.app(agents, auth="own-secret-key"), CARD, 401)


async def test_who_has_a_key_asks_for_the_whole_card() -> None:
    app = serve.app({"a": able(tools=[roll])}, auth="own-secret-key", cards=AgentCard(public=True))
    whole = await read(app, "/a2a/extendedAgentCard", headers=KEY)
    assert [each["id"] for each in whole["skills"]] == ["chat", "roll"]
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "GetExtendedAgentCard",
        "params": {},
    }
    assert (await exchange(app, "POST", "/a2a", body, headers=KEY)).json["result"] == whole
    old = {**body, "method": "agent/getAuthenticatedExtendedCard"}
    assert (await exchange(app, "POST", "/a2a", old, headers=KEY)).json["result"][
        "protocolVersion"
    ] == "0.3.0"
    refused = (await exchange(serve.app(able()), "POST", "/a2a", body)).json
    assert refused["error"]["code"] == -32007


async def test_clients_of_both_versions_read_which_key_is_needed() -> None:
    """A client of 0.3 took the scheme for mutual TLS."""
    app = serve.app({"a": able()}, auth="own-secret-key")
    card = (await exchange(app, "GET", CARD, headers=KEY)).json
    scheme = card["securitySchemes"]["bearer"]
    assert (scheme["type"], scheme["scheme"], card["security"]) == (
        "http",
        "bearer",
        [{"bearer": []}],
    )
    assert card["supportsAuthenticatedExtendedCard"] is True
    parsed = parse_agent_card(card)
    assert parsed.security_schemes["bearer"].http_auth_security_scheme.scheme == "bearer"
    current = (await exchange(app, "GET", CARD, headers={**KEY, "a2a-version": "1.0"})).json
    assert current["securitySchemes"] == {
        "bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}
    }
    assert "security" not in current


async def test_a_signed_card_is_verified_by_the_official_sdk() -> None:
    secret = "a secret of 32 bytes and more, 42"
    signer = create_agent_card_signer(
        secret, {"kid": "k", "alg": "HS256", "jku": None, "typ": "JOSE"}
    )

    def key(_kid: str | None, _jku: str | None) -> str:
        return secret

    verify = create_signature_verifier(key, ["HS256"])
    app = serve.app(
        {"a": able(tools=[roll])}, cards={"a": AgentCard(description="Für alle.", signer=signer)}
    )
    card = await read(app)
    verify(json_format.ParseDict(card, Signable()))
    verify(parse_agent_card((await exchange(app, "GET", CARD)).json))
    card["skills"].pop()
    with pytest.raises(Exception, match="signature"):
        verify(json_format.ParseDict(card, Signable()))


def test_a_card_of_nobody_is_refused() -> None:
    with pytest.raises(SettingsError, match="'b', and there is no such agent"):
        serve.app({"a": able()}, cards={"b": AgentCard()})
    with pytest.raises(SettingsError, match="one card for 2 agents"):
        serve.app({"a": able(), "b": able()}, cards=AgentCard())
    wrong: Any = {"a": {"name": "x"}}
    with pytest.raises(TypeError, match="cards"):
        serve.app({"a": able()}, cards=wrong)


async def test_a_card_for_a_single_agent_is_its_card_under_every_name() -> None:
    app = serve.app(able(), cards=AgentCard(name="Only"))
    assert {(await read(app, path))["name"] for path in (CARD, f"/a2a/agents/x{CARD}")} == {"Only"}


async def test_an_agent_without_a_name_is_not_known_by_its_models() -> None:
    app = serve.app(Agent("openai:gpt-5", api_key="k"))
    card = (await exchange(app, "GET", "/.well-known/agent-card.json")).json
    assert (card["name"], card["description"]) == ("agent", "agent")
    assert "openai" not in str(card).lower()
    told = (await exchange(app, "GET", "/ag-ui")).json
    assert told["identity"]["name"] == "agent"
