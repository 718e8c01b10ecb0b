"""Where and how an agent of A2A is asked, as its card says (T-60), and how agents of others are
spoken to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Interrupt, Message, ModelRequest, Origin, Role, Settings, ToolSpec, fold
from dragoman.errors import SettingsError
from dragoman.history import plan
from dragoman.loss import Loss, Lost
from dragoman.message import DataPart, FinishReason, TextPart, ToolCallPart, ToolResultPart
from dragoman.model.resolve_model import parse_model_string
from dragoman.providers.a2a import discover
from dragoman.providers.auth import AuthResponse
from dragoman.providers.provider import ModelEndpoint
from dragoman.request import HttpRequest
from dragoman.transport import Exchange, Player
from dragoman.wires.a2a import EXTENSION, Quirks, client

CARD: dict[str, Any] = {
    "name": "Clerk",
    "capabilities": {"streaming": True, "extensions": [{"uri": EXTENSION}]},
    "supportedInterfaces": [
        {"url": "https://there.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ],
}
OLD: dict[str, Any] = {
    "name": "Clerk",
    "protocolVersion": "0.3.0",
    "url": "https://there.example/old",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": True},
}


def found(url: str, answers: dict[str, Any]) -> tuple[ModelEndpoint, list[str]]:
    """What discovery makes of a host, and what it asked for."""
    flow, asked = discover(url), list[str]()
    request = next(flow)
    while True:
        asked.append(request.path)
        body = answers.get(request.path)
        given = (
            AuthResponse(404)
            if body is None
            else AuthResponse(200, body if isinstance(body, bytes) else msgspec.json.encode(body))
        )
        try:
            request = flow.send(given)
        except StopIteration as ended:
            return ended.value, asked


def listed(*interfaces: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    names = ("url", "protocolBinding", "protocolVersion")
    return {
        **CARD,
        "supportedInterfaces": [dict(zip(names, each, strict=True)) for each in interfaces],
        **more,
    }


WELL_KNOWN = "https://there.example/.well-known/agent-card.json"


def test_the_card_says_where_and_how() -> None:
    place, asked = found("https://there.example", {WELL_KNOWN: CARD})
    assert asked == [WELL_KNOWN]
    assert place == ModelEndpoint("https://there.example/rpc", Quirks())


@pytest.mark.parametrize(
    ("card", "url", "quirks"),
    [
        (OLD, "https://there.example/old", Quirks(extras=False, version="0.3")),
        (
            {**CARD, "capabilities": {}},
            "https://there.example/rpc",
            Quirks(extras=False, streams=False),
        ),
        (
            listed(
                ("https://there.example/g", "GRPC", "1.0"),
                ("https://there.example/r", "HTTP+JSON", "1.0"),
            ),
            "https://there.example/r",
            Quirks(binding="rest"),
        ),
        (
            listed(
                ("https://there.example/a", "JSONRPC", "0.3"),
                ("https://there.example/b", "JSONRPC", "1.0.1"),
            ),
            "https://there.example/b",
            Quirks(),
        ),
        (
            listed(("https://there.example:443/a", "JSONRPC", "1.0")),
            "https://there.example:443/a",
            Quirks(),
        ),
    ],
    ids=["0.3", "bare", "rest", "newest", "port"],
)
def test_the_best_that_is_spoken_here_is_taken(card: Any, url: str, quirks: Quirks) -> None:
    assert found("https://there.example", {WELL_KNOWN: card})[0] == ModelEndpoint(url, quirks)


def test_a_url_may_be_that_of_the_card_or_of_the_endpoint_itself() -> None:
    at = "https://there.example/cards/clerk.json"
    assert found(at, {at: CARD}) == (ModelEndpoint("https://there.example/rpc", Quirks()), [at])
    place, asked = found("https://there.example/rpc?tenant=7", {})
    assert place == ModelEndpoint("https://there.example/rpc?tenant=7", Quirks())
    assert asked == [
        "https://there.example/rpc/.well-known/agent-card.json?tenant=7",
        "https://there.example/rpc/.well-known/agent.json?tenant=7",
    ]


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1]", b"[" * 10_000, b'{"name": 3}', b"{}", b'"x"', b"\xff"]
)
def test_what_is_no_card_is_none(body: bytes) -> None:
    place, _ = found("https://there.example", {WELL_KNOWN: body})
    assert place == ModelEndpoint("https://there.example", Quirks())


@pytest.mark.parametrize(
    "url",
    [
        "https://elsewhere.example/rpc",
        "http://there.example/rpc",
        "https://there.example:8443/rpc",
        "http://169.254.169.254/rpc",
        "https://there.example@elsewhere.example/",
        "file:///etc/passwd",
        "https://[bad/",
    ],
)
def test_a_card_does_not_lead_keys_to_somebody_else(url: str) -> None:
    with pytest.raises(SettingsError, match="another host"):
        found("https://there.example", {WELL_KNOWN: listed((url, "JSONRPC", "1.0"))})


def test_names_of_this_machine_are_one_host() -> None:
    card = listed(("http://localhost:9999/rpc", "JSONRPC", "1.0"))
    place, _ = found(
        "http://127.0.0.1:9999", {"http://127.0.0.1:9999/.well-known/agent-card.json": card}
    )
    assert place.base_url == "http://localhost:9999/rpc"


def test_a_card_of_bindings_that_are_not_spoken_says_so() -> None:
    with pytest.raises(SettingsError, match="its card names neither"):
        found(
            "https://there.example",
            {WELL_KNOWN: listed(("https://there.example/g", "GRPC", "1.0"))},
        )


@pytest.mark.parametrize(
    "string", ["a2a:https://host/agent?tenant=7&x=a/b:c", "ag-ui:http://127.0.0.1:8000/ag-ui"]
)
def test_a_model_string_keeps_the_whole_url(string: str) -> None:
    parsed = parse_model_string(string)
    assert parsed.chat == string.partition(":")[2]
    assert str(parsed) == string
    assert Agent(string).model == string


@pytest.mark.anyio
@pytest.mark.parametrize("string", ["a2a", "ag-ui", "ag-ui:"])
async def test_an_agent_needs_a_url(string: str) -> None:
    with pytest.raises(SettingsError, match=f"{string.strip(':')}:https://HOST/PATH"):
        await Agent(string).send("Hi")
    with pytest.raises(SettingsError, match="must begin with http"):
        await Agent(f"{string.strip(':')}:host/agent").send("Hi")


# what is sent

TARGET = Origin("a2a", "https://there.example", "https://there.example")
TOOL = ToolSpec("weather", "The weather.", {"type": "object"})


def sent(quirks: Quirks, *messages: Message, **how: Any) -> HttpRequest:
    return client.dump_http(ModelRequest("m", messages, **how), target=TARGET, quirks=quirks)


def test_each_binding_and_version_is_asked_in_its_own_way() -> None:
    hi = Message.user("Hi")
    new, old = sent(Quirks(), hi), sent(Quirks(version="0.3"), hi)
    assert (new.path, new.body["method"], new.headers["a2a-version"]) == (
        "",
        "SendStreamingMessage",
        "1.0",
    )
    assert (old.path, old.body["method"]) == ("", "message/stream")
    assert old.body["params"]["message"]["role"] == "user"
    assert old.body["params"]["message"]["parts"] == [{"kind": "text", "text": "Hi"}]
    assert "a2a-version" not in old.headers
    whole = sent(Quirks(streams=False, binding="rest"), hi)
    assert whole.path == "/message:send"
    assert whole.body["message"]["parts"] == [{"text": "Hi"}]
    assert client.dump_cancel("t1", Quirks(binding="rest")).path == "/tasks/t1:cancel"
    assert client.dump_cancel("t1", Quirks(version="0.3")).body["method"] == "tasks/cancel"


def test_who_does_not_know_our_extension_is_sent_none_of_it() -> None:
    losses: list[Loss] = []
    request = ModelRequest(
        "m", (Message.user("Hi"),), tools=(TOOL,), settings=Settings(max_tokens=9)
    )
    body = client.dump_request(request, target=TARGET, quirks=Quirks(extras=False), losses=losses)
    assert EXTENSION not in msgspec.json.encode(body).decode()
    assert [loss.which for loss in losses] == ["weather"]


WAITS = Interrupt("q1", "input", message="Which?")
HeardOf = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        (WAITS.answer("Rome"), [{"text": "Rome"}]),
        (WAITS.answer({"city": "Rome"}), [{"data": {"city": "Rome"}}]),
        (WAITS.cancel(), [{"text": "cancelled"}]),
        (Interrupt("q1", "approval").approve(), [{"text": "yes"}]),
        (Interrupt("q1", "approval").deny("too dear"), [{"text": "no: too dear"}]),
    ],
)
def test_agents_of_others_are_answered_in_words(answer: Any, parts: list[Any]) -> None:
    """T-65, and what such an agent asks beside tools: its task goes on."""
    from dragoman.codec.marks import attach_interrupt, attach_resume

    call = attach_interrupt(
        ToolCallPart("q1", "ask_user", {}), msgspec.structs.replace(WAITS, id="q1")
    )
    result = attach_resume(ToolResultPart("q1", "ask_user", "x"), answer)
    before = Message.model(call).replace(
        origin=TARGET, native={"a2a:notes": {"thread": "c1", "waits": "t1"}}
    )
    message = sent(Quirks(extras=False), Message.user("Go"), before, Message.user(result)).body[
        "params"
    ]["message"]
    assert message["parts"] == parts
    assert (message["contextId"], message["taskId"]) == ("c1", "t1")


# what such agents answer: the seed's own server

SEED: list[dict[str, Any]] = [
    {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "submitted"}},
    *[
        {
            "kind": "status-update",
            "taskId": "t1",
            "contextId": "c1",
            "final": False,
            "status": {
                "state": "working",
                "message": {
                    "kind": "message",
                    "messageId": "m1",
                    "role": "agent",
                    "parts": [{"kind": "text", "text": text}],
                    "metadata": {"canonical_type": "TextMessageChunkEvent"},
                },
            },
        }
        for text in ("Let", "Let me", "Let me look.")
    ],
    {
        "kind": "status-update",
        "taskId": "t1",
        "contextId": "c1",
        "final": False,
        "status": {
            "state": "input-required",
            "message": {
                "kind": "message",
                "messageId": "m2",
                "role": "agent",
                "parts": [
                    {
                        "kind": "data",
                        "data": {
                            "tool_calls": [
                                {"call_id": "w1", "name": "weather", "arguments": {"city": "Rome"}}
                            ]
                        },
                    }
                ],
            },
        },
    },
]


def stream(objects: list[dict[str, Any]]) -> bytes:
    rpc = [{"jsonrpc": "2.0", "id": 1, "result": each} for each in objects]
    return b"".join(b"data: " + msgspec.json.encode(each) + b"\n\n" for each in rpc)


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_a_seeds_agent_calls_tools_of_this_side(size: int) -> None:
    """T-63: texts are accumulated there and told once here; T-64: its client runs the tools."""
    decoder = client.decoder(origin=TARGET, new_id=lambda: "a1", tools=["weather"])
    data = stream(SEED)
    events = [
        e for at in range(0, len(data), size) for e in decoder.feed(data[at : at + size])
    ] + decoder.close()
    [message] = fold(events)
    [text, call] = message.content
    assert text == TextPart("Let me look.")
    assert isinstance(call, ToolCallPart)
    assert (call.id, call.name, call.arguments, call.run_by) == (
        "w1",
        "weather",
        {"city": "Rome"},
        "agent",
    )
    assert message.finish_reason is FinishReason.tool_calls
    result = Message.user(ToolResultPart("w1", "weather", {"sky": "blue"}))
    body = sent(Quirks(extras=False, version="0.3"), Message.user("How?"), message, result).body[
        "params"
    ]["message"]
    assert (body["taskId"], body["contextId"]) == ("t1", "c1")
    assert body["parts"] == [
        {
            "kind": "data",
            "data": {
                "tool_results": [{"call_id": "w1", "name": "weather", "output": '{"sky":"blue"}'}]
            },
        }
    ]


@pytest.mark.anyio
async def test_the_whole_way_to_an_agent_of_others() -> None:
    """T-62 to T-66, over its own wire."""
    from dragoman import tool

    @tool
    def weather(city: str) -> dict[str, str]:
        """The weather of a city."""
        return {"sky": f"blue over {city}"}

    done = {
        "kind": "status-update",
        "taskId": "t1",
        "contextId": "c1",
        "final": True,
        "status": {
            "state": "completed",
            "message": {
                "kind": "message",
                "messageId": "m3",
                "role": "agent",
                "parts": [{"kind": "text", "text": "Blue."}],
            },
        },
    }
    heads = {"content-type": "text/event-stream"}
    transport = Player(
        [
            Exchange(body=msgspec.json.encode(OLD)),
            Exchange(body=stream(SEED), headers=heads, chunks=9),
            Exchange(body=stream([SEED[0], done]), headers=heads, chunks=9),
        ]
    )
    agent = Agent("a2a:https://there.example", transport=transport, tools=[weather])
    result = await agent.send("The weather in Rome?")
    assert result.output == "Let me look.\nBlue."
    assert [message.role for message in result.messages] == [
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
    ]
    assert [loss.which for loss in result.losses] == ["weather"]


def test_files_that_were_said_to_others_are_a_loss() -> None:
    losses: list[Loss] = []
    messages = (
        Message.user(DataPart(b"x", "image/png"), "What is it?"),
        Message.model("A cat."),
        Message.user("And now?"),
    )
    body = client.dump_request(
        ModelRequest("m", messages), target=TARGET, quirks=Quirks(), losses=losses
    )
    texts = [part.get("text") for part in body["message"]["parts"]]
    assert texts[-1] == "And now?"
    assert "User: [image/png]\nWhat is it?\n\nAssistant: A cat." in texts[0]
    assert [(loss.message, loss.part) for loss in losses] == [(0, 0)]


def test_a_plan_says_what_an_agent_would_not_hear_as_it_was() -> None:
    messages = [
        Message.system("Be kind."),
        Message.user("Hi"),
        Message.model(ToolCallPart("c1", "look", {})),
        Message.user(ToolResultPart("c1", "look", 4)),
        Message.model("Four."),
        Message.user("And now?"),
    ]
    found = plan(messages, "a2a:https://there.example")
    assert [(loss.message, loss.what) for loss in found.losses] == [
        (0, Lost.system_message),
        (2, Lost.tool_call),
        (3, Lost.tool_result),
    ]
    assert plan(messages, "ag-ui:https://there.example").ok
    assert plan(messages[1:2], "a2a:https://there.example").ok
