"""What a provider signed goes sealed through a client of another wire, and comes back to the
provider as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from typing import Any

import msgspec
import pytest

from dragoman import Message, ToolCallPart, ToolResultPart, serve, wires
from dragoman.codec import digest
from dragoman.errors import SettingsError
from dragoman.fold import fold, unfold
from dragoman.message import Origin, TextPart, ThinkingPart
from dragoman.request import ModelRequest, ToolSpec
from dragoman.serve.seals.open_messages import open_messages
from dragoman.serve.seals.seal_events import seal_events
from dragoman.serve.seals.token_encryption import MOST_BYTES, MOST_TOKEN, Sealer
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.gateway import MODEL, answered, gated
from support.gateway_cases import SIGNED, thought
from support.switching import PROVIDERS, TARGETS

KEY, OLD = b"k" * 32, b"o" * 32
SEALER = Sealer([KEY])
WIRES = list(PROVIDERS)
SEALING = [wire for wire in WIRES if hasattr(wires.get(wire), "dump_seal")]
TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}),)
TOKEN = re.compile("dragoman[A-Za-z0-9_-]{40,}dragoman")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def signed(wire: str, number: int) -> Message:
    """A round of a provider's: thinking, text, two calls, and signatures wherever the wire
    signs."""
    mark = {"google": {"thoughtSignature": f"Q2FsbA{number}=="}} if wire == "google" else None
    calls = [
        ToolCallPart(f"call_{number}_{at}", "look", {"at": at}, native=mark) for at in ("a", "b")
    ]
    said = TextPart(f"Grüße {number}.", mark)
    return Message.model(thought(wire), said, *calls).replace(id=f"m{number}")


def sent_again(client: str, message: Message, *, stream: bool) -> Message:
    """What a client of a wire makes of an answer."""
    wire: Any = wires.get(client)
    events = seal_events(unfold([message]), wire, SEALER, "anna")
    envelope = wire.envelope(ModelRequest("m", (Message.user("Hi."),), TOOLS), id="id1", now=NOW)
    if stream:
        encoder = wire.encoder(**envelope)
        data = b"".join([*(encoder.feed(event) for event in events), encoder.close()])
        decoder = wire.decoder(new_id=iter(f"c{n}" for n in range(99)).__next__)
        [seen] = fold([*decoder.feed(data), *decoder.close()])
        return seen
    [seen] = fold(
        wire.load_response(json.loads(msgspec.json.encode(wire.dump_response(events, **envelope))))
    )
    return seen


def at_gateway(client: str, talk: list[Message]) -> tuple[Message, ...]:
    """A client's conversation as the gateway loads it."""
    wire: Any = wires.get(client)
    body = json.loads(msgspec.json.encode(wire.dump_request(ModelRequest("m", tuple(talk), TOOLS))))
    return wire.load_request(body).messages


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("client", "upstream"), [pair for pair in product(SEALING, WIRES) if pair[0] != pair[1]]
)
def test_two_rounds_come_back_as_they_were(client: str, upstream: str, stream: bool) -> None:
    at_client, target, api = [Message.user("Look.")], TARGETS[upstream], wires.get(client)
    direct = list(at_client)
    for number in range(2):
        loaded, losses = open_messages(at_gateway(client, at_client), api, SEALER, "anna")
        assert not losses
        origin = msgspec.structs.replace(target, prefix=digest.compute_prefix(loaded, upstream))
        answer = signed(upstream, number).replace(origin=origin)
        results = [ToolResultPart(call.id, "look", "done") for call in answer.tool_calls]
        at_client += [sent_again(client, answer, stream=stream), Message.user(*results)]
        direct += [answer.replace(origin=target), Message.user(*results)]
    loaded, losses = open_messages(at_gateway(client, at_client), api, SEALER, "anna")
    assert not losses
    there: Any = wires.get(upstream)
    quirks = PROVIDERS[upstream].quirks
    through = there.dump_request(ModelRequest("m", loaded, TOOLS), target=target, quirks=quirks)
    straight = there.dump_request(
        ModelRequest("m", tuple(direct), TOOLS), target=target, quirks=quirks
    )
    sent = msgspec.json.encode(through)
    assert sent == msgspec.json.encode(straight)
    assert sent.count(b"c2lnbmVk") == (2 if upstream in SIGNED else 0)
    assert b"dragoman" not in sent


def token_of(client: str, message: Message) -> str:
    load: Any = getattr(wires.get(client), "load_seal")  # noqa: B009
    [token] = [
        found
        for piece in message.content
        if (found := load(piece)) and found.startswith("dragoman")
    ]
    return token


def history(client: str) -> list[Message]:
    upstream = "anthropic" if client == "google" else "google"
    answer = signed(upstream, 0).replace(origin=TARGETS[upstream])
    return [*at_gateway(client, [Message.user("Look."), sent_again(client, answer, stream=False)])]


@pytest.mark.parametrize("client", SEALING)
def test_a_token_opens_nothing_beside_other_words_or_for_another(client: str) -> None:
    user, message = history(client)
    api = wires.get(client)
    token = token_of(client, message)
    changed = [
        piece
        if not isinstance(piece, ToolCallPart)
        else msgspec.structs.replace(piece, arguments={"at": "x"})
        for piece in message.content
    ]
    tries = [
        (message.replace(content=tuple(changed)), SEALER, "anna"),
        (message, SEALER, "bert"),
        (message, Sealer([OLD]), "anna"),
        (message, Sealer([KEY], purpose="other"), "anna"),
    ]
    for tried, sealer, owner in tries:
        opened, [loss] = open_messages([user, tried], api, sealer, owner)
        assert loss.message == 1
        assert token not in repr(opened)
        assert "c2lnbmVk" not in repr(opened)
        assert opened[1].origin is None


def test_no_changed_token_opens() -> None:
    token = SEALER.seal(b"content", "anna") or ""
    for place in range(len(token.rstrip("="))):
        other = "A" if token[place] != "A" else "B"
        assert SEALER.open(token[:place] + other + token[place + 1 :], "anna") is None, place
        assert SEALER.open(token[:place], "anna") is None
    for odd in (
        "",
        "dragoman",
        "dragoman" * 9,
        "dragomané",
        "dragoman\ud800",
        token + token,
        token + "A",
    ):
        assert SEALER.open(odd, "anna") is None
    assert SEALER.open("dragoman" + "A" * MOST_TOKEN, "anna") is None


def test_both_alphabets_of_base64_open() -> None:
    for number in range(20):
        token = SEALER.seal(b"x" * number, "anna") or ""
        assert (
            SEALER.open(token.rstrip("=").replace("-", "+").replace("_", "/"), "anna")
            == b"x" * number
        )


def test_keys_are_changed_while_clients_hold_tokens() -> None:
    old = Sealer([OLD]).seal(b"content") or ""
    both = Sealer([KEY, OLD])
    assert both.open(old) == b"content"
    assert SEALER.open(both.seal(b"content") or "") == b"content"
    assert SEALER.open(old) is None


def test_a_content_that_is_too_long_is_not_sealed() -> None:
    assert SEALER.seal(b"\0" * (MOST_BYTES + 1)) is None
    long = SEALER.seal(b"\0" * MOST_BYTES) or ""
    assert len(long) < 10_000
    assert SEALER.open(long) == b"\0" * MOST_BYTES


@pytest.mark.parametrize("keys", [[], [b"short"], "a" * 32])
def test_keys_that_are_none(keys: Any) -> None:
    with pytest.raises(SettingsError):
        Sealer(keys)


def test_a_message_of_no_provider_or_with_nothing_signed_has_no_token() -> None:
    plain = Message.model("Hi.").replace(id="m", origin=Origin("google"))
    for message in (plain, plain.replace(content=(ThinkingPart("Hm."),), origin=None)):
        events = unfold([message])
        assert seal_events(events, wires.get("anthropic"), SEALER) == events


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", SEALING)
async def test_a_gateway_seals_and_opens(client: str, stream: bool) -> None:
    upstream = "google" if client == "anthropic" else "anthropic"

    def reply(asked: ModelRequest) -> Message:
        return Message.model(
            thought(upstream), ToolCallPart(f"call_{len(asked.messages)}", "look", {"at": "home"})
        )

    there = gated(client, upstream, reply, seal_key=KEY)
    talk = [Message.user("Look.")]
    for _ in range(3):
        [message] = fold(
            await answered(there.client, ModelRequest(MODEL, tuple(talk), TOOLS, stream=stream))
        )
        talk += [message, Message.user(ToolResultPart(message.tool_calls[0].id, "look", "done"))]
    assert json.dumps(there.upstream.bodies[-1]).count("c2lnbmVk") == 2
    assert "dragomanA" not in json.dumps(there.upstream.bodies)


@pytest.mark.anyio
async def test_a_client_of_the_providers_own_wire_has_no_token() -> None:
    def reply(_: ModelRequest) -> Message:
        return Message.model(thought("anthropic"), "Hi.")

    there = gated("anthropic", "anthropic", reply, seal_key=KEY)
    await answered(there.client, ModelRequest(MODEL, (Message.user("Hi."),)))
    assert b"dragomanA" not in there.transport.bodies[-1]


@pytest.mark.parametrize("client", SEALING)
@pytest.mark.parametrize(
    ("damage", "passes"),
    [
        ("head changed", False),
        ("head cut", False),
        ("whole, no key here", False),
        ("the provider's own", True),
    ],
)
@pytest.mark.anyio
async def test_no_token_goes_to_a_provider_nor_what_is_left_of_one(
    client: str, damage: str, passes: bool
) -> None:
    model = ScriptedModel.like(
        PROVIDERS[client], lambda _: Message.model("Hi."), key_required=False
    )
    keys: dict[str, Any] = {} if "no key" in damage else {"seal_key": KEY}
    app = serve.app(gateway=serve.Gateway({MODEL: model}, **keys))
    user, message = history(client)
    given: dict[str, Callable[[str], str]] = {
        "head changed": lambda token: "X" + token[1:],
        "head cut": lambda token: token[4:],
        "the provider's own": lambda _: "b3duT3BhcXVlVmFsdWU=",
        "whole, no key here": lambda token: token,
    }
    results = [
        ToolResultPart(piece.id, "look", "done")
        for piece in message.content
        if isinstance(piece, ToolCallPart)
    ]
    api: Any = wires.get(client)
    talk = ModelRequest(MODEL, (user, message, Message.user(*results)), TOOLS)
    http = api.dump_http(talk)
    body = TOKEN.sub(
        lambda found: given[damage](found[0]), msgspec.json.encode(api.dump_request(talk)).decode()
    )
    path = next(
        route.path.replace("{model}", MODEL)
        for route in api.routes
        if route.purpose == "chat"
        and route.path.replace("{model}", MODEL).endswith(
            http.path.partition("?")[0].rsplit("/", 1)[-1]
        )
    )
    answer = await exchange(
        app, "POST", path, body.encode(), headers={"content-type": "application/json"}
    )
    assert answer.status == 200, answer.body
    sent = json.dumps(model.bodies[-1])
    assert ("b3duT3BhcXVlVmFsdWU=" in sent) is passes
    assert not re.search("ragoman[A-Za-z0-9_-]{40}|[A-Za-z0-9_-]{40}dragoma", sent)
    assert ("signature" in answer.headers.get("dragoman-loss", "")) is not passes
