"""What a provider signed comes back to it by the calls alone, from clients that keep nothing else
of an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman import Message, ToolCallPart, ToolResultPart, serve, wires
from dragoman.codec import digest
from dragoman.codec.json_values import read_extra_fields
from dragoman.errors import SettingsError
from dragoman.event import Event
from dragoman.fold import fold, unfold
from dragoman.message import Role, TextPart, ThinkingPart
from dragoman.request import ModelRequest, ToolSpec
from dragoman.serve.seals.open_messages import open_messages
from dragoman.serve.seals.seal_events import seal_events
from dragoman.serve.seals.token_content import split_id
from dragoman.serve.seals.token_encryption import Sealer
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.gateway import MODEL
from support.gateway_cases import SIGNED, thought
from support.switching import PROVIDERS, TARGETS

KEY = b"k" * 32
SEALER = Sealer([KEY])
CHAT: Any = wires.get("openai_chat")
LONG = 10_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}),)
UPSTREAMS = [wire for wire in PROVIDERS if wire != "openai_chat"]
KEPT_BY_ALL = ("role", "content", "tool_calls", "tool_call_id")
Json = dict[str, Any]


def signed(wire: str, number: int) -> Message:
    """A round of a provider's: thinking, text, two calls, and signatures wherever the wire
    signs."""
    mark = {"google": {"thoughtSignature": f"Q2FsbA{number}=="}} if wire == "google" else None
    calls = [
        ToolCallPart(f"call_{number}_{at}", "look", {"at": at}, native=mark) for at in ("a", "b")
    ]
    return Message.model(thought(wire), TextPart(f"Grüße {number}.", mark), *calls).replace(
        id=f"m{number}"
    )


def message_of(events: Sequence[Event], *, stream: bool) -> Any:
    """The message that a client of Chat Completions has of an answer, with fields of calls that its
    SDK does not know."""
    envelope = CHAT.envelope(ModelRequest("m", (Message.user("Hi."),), TOOLS), id="id1", now=NOW)
    if not stream:
        return json.loads(msgspec.json.encode(CHAT.dump_response(events, **envelope)))["choices"][
            0
        ]["message"]
    encoder = CHAT.encoder(**envelope)
    return joined(b"".join([*(encoder.feed(event) for event in events), encoder.close()]))


def joined(data: bytes) -> Any:
    """The message of a stream. Like the AI SDK, it takes the first piece's fields of a call, and
    adds no more than arguments."""
    content = ""
    calls: list[Json] = []
    for line in data.decode().split("\n\n"):
        choices: list[Json] = json.loads(line[6:])["choices"] if line.startswith("data: {") else []
        for choice in choices:
            content += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls", ()):
                if len(calls) == call["index"]:
                    calls.append(read_extra_fields(call, "index"))
                else:
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def calls_alone(message: Json) -> Json:
    return {name: value for name, value in message.items() if name in KEPT_BY_ALL}


def loaded(talk: Sequence[Json]) -> tuple[Message, ...]:
    return CHAT.load_request(
        {"model": "m", "messages": json.loads(json.dumps(list(talk)))}
    ).messages


@pytest.mark.parametrize("longest_id", [0, LONG], ids=["extra_content", "id"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_two_rounds_come_back_from_the_calls_alone(
    upstream: str, stream: bool, longest_id: int
) -> None:
    target = TARGETS[upstream]
    talk: list[Json] = [{"role": "user", "content": "Look."}]
    direct = [Message.user("Look.")]
    for number in range(2):
        before, losses = open_messages(loaded(talk), CHAT, SEALER, "anna")
        assert not losses
        origin = msgspec.structs.replace(target, prefix=digest.compute_prefix(before, upstream))
        answer = signed(upstream, number).replace(origin=origin)
        events = seal_events(unfold([answer]), CHAT, SEALER, "anna", longest_id=longest_id)
        message = calls_alone(message_of(events, stream=stream))
        assert any(split_id(call["id"]) for call in message["tool_calls"]) is bool(longest_id)
        assert any("extra_content" in call for call in message["tool_calls"]) is not bool(
            longest_id
        )
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "done"}
            for call in message["tool_calls"]
        ]
        talk += [message, *results]
        parts = [ToolResultPart(call.id, "look", "done") for call in answer.tool_calls]
        direct += [answer.replace(origin=target), Message.user(*parts)]
    opened, losses = open_messages(loaded(talk), CHAT, SEALER, "anna")
    assert not losses
    there: Any = wires.get(upstream)
    through, straight = (
        msgspec.json.encode(
            there.dump_request(
                ModelRequest("m", tuple(each), TOOLS),
                target=target,
                quirks=PROVIDERS[upstream].quirks,
            )
        )
        for each in (opened, direct)
    )
    assert through == straight
    assert through.count(b"c2lnbmVk") == (2 if upstream in SIGNED else 0)
    assert b"dragoman" not in through


@pytest.mark.parametrize(
    ("client", "upstream"),
    [each for each in product(PROVIDERS, ["anthropic", "google"]) if each[0] != each[1]],
)
def test_an_id_holds_a_token_in_every_format(client: str, upstream: str) -> None:
    """Also in those that have no field for one."""
    api: Any = wires.get(client)
    answer = signed(upstream, 0).replace(origin=TARGETS[upstream])
    events = seal_events(unfold([answer]), api, SEALER, "anna", longest_id=LONG)
    envelope = api.envelope(ModelRequest("m", (Message.user("Look."),), TOOLS), id="id1", now=NOW)
    body = json.loads(msgspec.json.encode(api.dump_response(events, **envelope)))
    [seen] = fold(api.load_response(body))
    assert split_id(seen.tool_calls[0].id)
    given = {f"call{at}wxyz": call.id for at, call in enumerate(seen.tool_calls)}
    kept = [
        ToolCallPart(short, "look", call.arguments)
        for short, call in zip(given, seen.tool_calls, strict=True)
    ]
    results = [ToolResultPart(call.id, "look", "done") for call in kept]
    talk = (Message.user("Look."), Message.model("Grüße 0.", *kept), Message.user(*results))
    sent = msgspec.json.encode(api.dump_request(ModelRequest("m", talk, TOOLS))).decode()
    sent = json.loads(
        re.sub("call[01]wxyz", lambda found: given[found[0]], sent)
    )  # our own half would shorten it
    (_, model, after), losses = open_messages(api.load_request(sent).messages, api, SEALER, "anna")
    assert not losses
    assert model.content[:2] == answer.content[:2]
    assert [call.id for call in model.tool_calls] == [
        part.id for part in after.content if isinstance(part, ToolResultPart)
    ]
    assert not any(split_id(call.id) for call in model.tool_calls)


def sealed_talk(longest_id: int = 0) -> list[Json]:
    answer = signed("anthropic", 0).replace(origin=TARGETS["anthropic"])
    events = seal_events(unfold([answer]), CHAT, SEALER, "anna", longest_id=longest_id)
    return [{"role": "user", "content": "Look."}, calls_alone(message_of(events, stream=False))]


def other_id(message: Json) -> None:
    message["tool_calls"][0]["id"] = "call_of_another"


def other_tool(message: Json) -> None:
    message["tool_calls"][0]["function"]["name"] = "delete"


def other_words(message: Json) -> None:
    message["content"] = "No."


def other_place(message: Json) -> None:
    message["tool_calls"].reverse()


def other_token(message: Json) -> None:
    google = message["tool_calls"][0]["extra_content"]["google"]
    google["thought_signature"] = google["thought_signature"].replace("A", "B")


@pytest.mark.parametrize("change", [other_id, other_tool, other_words, other_place, other_token])
def test_a_token_opens_nothing_beside_another_call_or_other_words(
    change: Callable[[Json], None],
) -> None:
    talk = sealed_talk()
    change(talk[1])
    (_, model), [loss] = open_messages(loaded(talk), CHAT, SEALER, "anna")
    assert loss.message == 1
    assert model.origin is None
    assert "dragoman" not in repr(model)


@pytest.mark.parametrize("owner", ["bert", ""])
@pytest.mark.parametrize("longest_id", [0, LONG])
def test_a_token_opens_for_nobody_else(owner: str, longest_id: int) -> None:
    (_, model), [_] = open_messages(loaded(sealed_talk(longest_id)), CHAT, SEALER, owner)
    assert "c2lnbmVk" not in repr(model)
    assert "dragoman" not in repr(model)


def test_a_call_that_the_client_left_out_takes_nothing_from_those_before_it() -> None:
    talk = sealed_talk()
    del talk[1]["tool_calls"][1]
    (_, model), losses = open_messages(loaded(talk), CHAT, SEALER, "anna")
    assert not losses
    assert model.content == signed("anthropic", 0).content[:3]


def test_where_the_message_has_a_token_that_does_not_open_its_calls_open_nothing() -> None:
    """A client changed arguments, of which the calls' tokens do not know."""
    answer = signed("anthropic", 0).replace(origin=TARGETS["anthropic"])
    message = message_of(seal_events(unfold([answer]), CHAT, SEALER, "anna"), stream=False)
    assert message["reasoning_details"]
    message["tool_calls"][0]["function"]["arguments"] = '{"at": "x"}'
    (_, model), [_] = open_messages(
        loaded([{"role": "user", "content": "Look."}, message]), CHAT, SEALER, "anna"
    )
    assert "c2lnbmVk" not in repr(model)


def test_what_stands_between_calls_is_held_by_the_next() -> None:
    """A model that thinks between its calls: each token holds what no earlier one does."""
    thoughts = [ThinkingPart(f"{n}", {"anthropic": {"signature": f"sig{n}"}}) for n in range(3)]
    calls = [ToolCallPart(f"call_{n}", "look", {}) for n in range(3)]
    answer = Message(
        Role.MODEL,
        (
            thoughts[0],
            TextPart("A"),
            calls[0],
            thoughts[1],
            calls[1],
            TextPart("B"),
            thoughts[2],
            calls[2],
            TextPart("C"),
        ),
        origin=TARGETS["anthropic"],
        id="m",
    )
    message = calls_alone(
        message_of(seal_events(unfold([answer]), CHAT, SEALER, "anna"), stream=True)
    )
    tokens = [
        call["extra_content"]["google"]["thought_signature"] for call in message["tool_calls"]
    ]
    assert max(map(len, tokens)) < 2 * min(map(len, tokens))
    (_, model), losses = open_messages(
        loaded([{"role": "user", "content": "Look."}, message]), CHAT, SEALER, "anna"
    )
    assert not losses
    assert model.content == answer.content


SIGNED_THINKING = ThinkingPart("x", {"anthropic": {"signature": "sx"}})


@example([SIGNED_THINKING, ToolCallPart("f", "f", {}), TextPart(" ")])
@example([TextPart("\x1f"), SIGNED_THINKING, TextPart("a"), ToolCallPart("f", "f", {})])
@example([SIGNED_THINKING, TextPart("a"), TextPart("\u3000"), ToolCallPart("f", "f", {})])
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).map(
                lambda text: TextPart(text)
            ),
            st.sampled_from("xyz").map(
                lambda text: ThinkingPart(text, {"anthropic": {"signature": f"s{text}"}})
            ),
            st.sampled_from("fg").map(lambda name: ToolCallPart(name, name, {"a": name})),
        ),
        max_size=8,
    )
)
def test_any_answer_comes_back_as_far_as_its_last_signed_call(pieces: list[Any]) -> None:
    content = [
        msgspec.structs.replace(piece, id=f"c{at}") if isinstance(piece, ToolCallPart) else piece
        for at, piece in enumerate(pieces)
    ]
    answer = Message(Role.MODEL, tuple(content), origin=TARGETS["anthropic"], id="m")
    message = calls_alone(message_of(seal_events(unfold([answer]), CHAT, SEALER), stream=False))
    opened, losses = open_messages(
        loaded([{"role": "user", "content": "Look."}, message]), CHAT, SEALER
    )
    assert not losses
    last = max(
        (at for at, piece in enumerate(content) if isinstance(piece, ToolCallPart)), default=-1
    )
    signed_calls = [piece for piece in content[: max(last, 0)] if isinstance(piece, ThinkingPart)]
    if not signed_calls:
        return
    seen = [piece for piece in opened[1].content if isinstance(piece, ThinkingPart)]
    assert seen == signed_calls
    assert opened[1].tool_calls == answer.tool_calls
    assert opened[1].text == "".join(
        [piece.text for piece in content if isinstance(piece, TextPart)]
    )


@pytest.mark.parametrize("blank", [" ", "\n", "\u3000"])
def test_a_message_with_a_blank_text_beside_another_opens(blank: str) -> None:
    content = (SIGNED_THINKING, TextPart(blank), TextPart("a"), ToolCallPart("f", "f", {}))
    answer = Message(Role.MODEL, content, origin=TARGETS["anthropic"], id="m")
    message = message_of(seal_events(unfold([answer]), CHAT, SEALER), stream=False)
    talk = loaded([{"role": "user", "content": "Look."}, message])
    (_, model), losses = open_messages(talk, CHAT, SEALER)
    assert not losses
    assert model.content == content


@pytest.mark.parametrize("odd", ["dragoman", "call_dragoman_1", "dragoman-dragoman", "x" * 99, ""])
def test_ids_that_hold_no_token_stay_as_they_are(odd: str) -> None:
    talk = [
        Message.user("Hi."),
        Message.model(ToolCallPart(odd, "look", {})),
        Message.user(ToolResultPart(odd, "look", "1")),
    ]
    opened, losses = open_messages(talk, CHAT, SEALER)
    assert not losses
    assert [*opened] == talk


@pytest.mark.parametrize(
    "extra",
    [
        None,
        [],
        "x",
        {},
        {"google": None},
        {"google": []},
        {"google": {"thought_signature": 3}},
        {"other": 1},
    ],
)
def test_fields_of_others_stay_as_they_are(extra: Any) -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
        "extra_content": extra,
    }
    before = loaded(
        [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
    )
    opened, losses = open_messages(before, CHAT, SEALER)
    assert (opened, losses) == (before, [])


def test_of_a_call_that_has_more_fields_only_the_token_is_taken() -> None:
    extra = {"google": {"thought_signature": SEALER.seal(b"x", "anna"), "more": 1}, "other": 2}
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
        "extra_content": extra,
    }
    before = loaded(
        [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
    )
    opened, [_] = open_messages(before, CHAT, SEALER, "anna")
    [written] = CHAT.dump_messages(opened[1:])
    assert written["tool_calls"][0]["extra_content"] == {"google": {"more": 1}, "other": 2}


@pytest.mark.parametrize("options", [{}, {"longest_call_id": LONG}], ids=["extra_content", "id"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["anthropic", "google", "openai_responses"])
@pytest.mark.anyio
async def test_a_gateway_that_keeps_nothing_gives_calls_their_tokens(
    upstream: str, stream: bool, options: Mapping[str, Any]
) -> None:
    """Over the whole way, from a provider's bytes to its next request."""

    def reply(request: ModelRequest) -> Message:
        return signed(upstream, 0) if len(request.messages) == 1 else Message.model("Done.")

    model = ScriptedModel.like(PROVIDERS[upstream], reply, key_required=False)
    app = serve.app(gateway=serve.Gateway({MODEL: model}, seal_key=KEY, **options), store=None)
    talk: list[Json] = [{"role": "user", "content": "Look."}]
    for _ in range(2):
        body: Json = {"model": MODEL, "messages": talk, "tools": [TOOL], "stream": stream}
        headers = {"content-type": "application/json"}
        answer = await exchange(
            app, "POST", "/v1/chat/completions", json.dumps(body).encode(), headers=headers
        )
        assert answer.status == 200, answer.body
        assert "signature" not in answer.headers.get("dragoman-loss", "")
        message = (
            joined(answer.body) if stream else json.loads(answer.body)["choices"][0]["message"]
        )
        talk.append(calls_alone(message))
        talk += [
            {"role": "tool", "tool_call_id": call["id"], "content": "1"}
            for call in message.get("tool_calls") or ()
        ]
    sent = json.dumps(model.bodies[-1])
    assert sent.count("c2lnbmVk") == 1 or '"previous_response_id"' in sent
    assert not re.search("dragoman[A-Za-z0-9_-]{40}", sent)


TOOL: Json = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("wrong", [-1, 0.5, "9"])
def test_a_length_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises((SettingsError, TypeError), match="longest_call_id"):
        serve.Gateway({"m": "openai:gpt-4o"}, seal_key=KEY, longest_call_id=wrong)


def test_ids_without_a_key_are_refused() -> None:
    with pytest.raises(SettingsError, match="seal_key"):
        serve.Gateway({"m": "openai:gpt-4o"}, longest_call_id=LONG)
