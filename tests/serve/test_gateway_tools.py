"""A gateway: tools that the client's provider would run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dragoman import Message, TextPart
from dragoman.request import ModelRequest, ServerTool, Settings
from support.gateway import MODEL, answered, gated

pytestmark = pytest.mark.anyio

ASK = ModelRequest(MODEL, (Message.user("Hi."),))
TOOLS_THERE: Mapping[tuple[str, str], tuple[Sequence[str], Sequence[str]]] = {
    ("google", "anthropic"): (
        ["web_search_20260318", "code_execution_20260521"],
        ["tool computerUse"],
    ),
    ("google", "openai_responses"): (["web_search", "code_interpreter"], ["tool computerUse"]),
    ("google", "openai_chat"): (
        [],
        ["tool googleSearch", "tool codeExecution", "tool computerUse"],
    ),
    ("anthropic", "google"): (
        ["googleSearch", "urlContext"],
        ["option tools.web_search.max_uses", "tool bash"],
    ),
    ("anthropic", "mistral"): ([], ["tool web_search", "tool web_fetch", "tool bash"]),
    ("openai_responses", "anthropic"): (
        ["web_search_20260318", "code_execution_20260521"],
        ["tool mcp"],
    ),
    ("openai_responses", "ollama"): (
        [],
        ["tool web_search_preview", "tool code_interpreter", "tool mcp"],
    ),
}
OF_CLIENTS: Mapping[str, Sequence[ServerTool]] = {
    "google": [ServerTool("googleSearch"), ServerTool("codeExecution"), ServerTool("computerUse")],
    "anthropic": [
        ServerTool("web_search", {"max_uses": 3}),
        ServerTool("web_fetch"),
        ServerTool("bash"),
    ],
    "openai_responses": [
        ServerTool("web_search_preview"),
        ServerTool("code_interpreter", {"container": {"type": "auto"}}),
        ServerTool("mcp", {"server_label": "x", "server_url": "https://x.example"}),
    ],
}


@pytest.mark.parametrize(("client", "upstream"), TOOLS_THERE)
async def test_a_provider_is_asked_for_no_tool_of_anothers(client: str, upstream: str) -> None:
    """Such as `googleSearch`, which OpenAI refuses."""
    sent, lost = TOOLS_THERE[client, upstream]
    there = gated(client, upstream, "Hello.")
    await answered(
        there.client, ASK.replace(tools=tuple(OF_CLIENTS[client]), settings=Settings(max_tokens=9))
    )
    tools = there.upstream.bodies[0].get("tools", [])
    assert [each.get("type") or next(iter(each)) for each in tools] == sent
    assert not any("max_uses" in str(each) for each in tools)
    header = there.transport.headers[0].get("dragoman-loss", "")
    assert [" ".join(each) for each in re.findall(r'(tool|option);which="([^"]+)"', header)] == lost
    there = gated(client, upstream, "Hello.", on_loss="refuse")
    await answered(
        there.client, ASK.replace(tools=tuple(OF_CLIENTS[client]), settings=Settings(max_tokens=9))
    )
    assert (there.transport.statuses, there.upstream.sent) == ([400], [])


@pytest.mark.parametrize("choice", ["auto", "none"])
async def test_where_there_are_no_tools_no_choice_among_them_is_sent(choice: str) -> None:
    """Anthropic refuses one, and many clients of OpenAI send it always."""
    there = gated("openai_chat", "anthropic", "Hello.")
    await answered(there.client, ASK.replace(settings=Settings(tool_choice=choice)))
    assert "tool_choice" not in there.upstream.bodies[0]
    assert "dragoman-loss" not in there.transport.headers[0]


async def test_a_choice_of_a_tool_that_is_left_out_is_none() -> None:
    there = gated("anthropic", "openai_chat", "Hello.")
    settings = Settings(max_tokens=9, tool_choice="web_search")
    await answered(there.client, ASK.replace(tools=(ServerTool("web_search"),), settings=settings))
    assert not {"tools", "tool_choice"} & there.upstream.bodies[0].keys()
    assert 'setting;which="tool_choice"' in there.transport.headers[0]["dragoman-loss"]


@pytest.mark.parametrize(
    ("client", "cache", "marked", "sent"),
    [
        ("openai_chat", "short", False, {"type": "ephemeral"}),
        ("openai_chat", "long", False, {"type": "ephemeral", "ttl": "1h"}),
        ("openai_chat", None, False, None),
        ("google", "short", False, {"type": "ephemeral"}),
        ("anthropic", "short", False, None),
        ("anthropic", "short", True, None),
    ],
)
async def test_a_gateway_asks_for_the_cache_for_clients_of_other_apis(
    client: str, cache: Any, marked: bool, sent: Any
) -> None:
    there = gated(client, "anthropic", "Hello.", settings=Settings(cache=cache))
    own = {"anthropic": {"cache_control": {"type": "ephemeral"}}} if marked else None
    said = Message.user(TextPart("Hi.", own))
    await answered(there.client, ASK.replace(messages=(said,), settings=Settings(max_tokens=9)))
    [body] = there.upstream.bodies
    assert body.get("cache_control") == sent
    assert ("cache_control" in str(body["messages"])) is marked


async def test_marks_that_a_client_placed_are_not_doubled() -> None:
    there = gated("openai_chat", "anthropic", "Hello.", settings=Settings(cache="short"))
    own = {"openai_chat": {"cache_control": {"type": "ephemeral"}}}
    said = Message.user(TextPart("Hi.", own))
    await answered(there.client, ASK.replace(messages=(said,), settings=Settings(max_tokens=9)))
    [body] = there.upstream.bodies
    assert "cache_control" not in body
