"""A wire that a test alone registers: its clients are served, its providers are asked, as those of
the wires that dragoman brings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman import Message, ToolResultPart, wires
from dragoman.codec.serving import RequestFields
from dragoman.fold import fold
from dragoman.request import ModelRequest, ToolSpec
from dragoman.testing import call
from dragoman.wires import openai_chat
from support.gateway import MODEL, answered, gated
from support.gateway_cases import said

pytestmark = pytest.mark.anyio

TOOLS = (ToolSpec("look"),)


@pytest.fixture(autouse=True)
def acme(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wire with less than others: the optional functions of a server are lacking."""
    monkeypatch.setattr(wires, "_REGISTERED", {})
    needed = {
        name: getattr(openai_chat, name)
        for name in openai_chat.__all__
        if not name.startswith("dump_model")
    }
    for optional in (
        "keys",
        "links",
        "dump_token_count",
        "dump_version",
        "sealed",
        "request_fields",
        "bodies",
    ):
        needed.pop(optional, None)
    wires.register(cast("Any", SimpleNamespace(**{**needed, "name": "acme"})))


@pytest.mark.parametrize(
    ("client", "upstream"), [("acme", "anthropic"), ("google", "acme"), ("acme", "acme")]
)
@pytest.mark.parametrize("stream", [False, True])
async def test_it_is_served_and_asked_as_the_others(
    client: str, upstream: str, stream: bool
) -> None:
    there = gated(
        client,
        upstream,
        lambda request: ["Hello.", *([] if _answered(request) else [call("look", at="home")])],
    )
    asked = ModelRequest(MODEL, (Message.user("Hi."),), TOOLS, stream=stream)
    seen = await answered(there.client, asked)
    [message] = fold(seen)
    assert message.text == "Hello."
    results = Message.user(
        *[ToolResultPart(each.id, each.name, "done") for each in message.tool_calls]
    )
    [last] = fold(
        await answered(there.client, asked.replace(messages=(*asked.messages, message, results)))
    )
    assert not last.tool_calls
    assert [each.result for each in there.upstream.requests[1].messages[-1].tool_results] == [
        "done"
    ]
    assert there.transport.statuses == [200, 200]
    assert said(seen)


def _answered(request: ModelRequest) -> bool:
    return bool(request.messages[-1].tool_results)


async def test_what_it_says_of_its_fields_counts() -> None:
    fields = RequestFields(
        idle={"shade": ("none",)},
        minor=frozenset(["tag"]),
        candidates="answers",
        references=frozenset(["palette"]),
    )
    wires.register(
        cast("Any", SimpleNamespace(**{**vars(wires.get("acme")), "request_fields": fields})),
        replace=True,
    )
    there = gated("acme", "anthropic", "Hello.")
    asked = ModelRequest(MODEL, (Message.user("Hi."),))
    await answered(there.client, asked.replace(options={"shade": "none", "tag": "x", "answers": 3}))
    assert (
        there.transport.headers[0]["dragoman-loss"]
        == 'candidate;which="answers", field;which="tag"'
    )
    await answered(there.client, asked.replace(options={"palette": "p-1"}))
    assert (there.transport.statuses, len(there.upstream.requests)) == ([200, 400], 1)
    assert b"palette: this server does not pass it on" in there.transport.bodies[1]


async def test_what_its_table_does_not_say_is_a_loss_elsewhere() -> None:
    there = gated("acme", "anthropic", "Hello.")
    asked = ModelRequest(MODEL, (Message.user("Hi."),), options={"color": "red"})
    await answered(there.client, asked)
    assert there.transport.headers[0]["dragoman-loss"] == 'option;which="color"'
