"""A model that remembers sends the same bytes as one that does not, dumps what is new alone, and keeps nothing alive."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import wires
from dragoman.codec import history as module
from dragoman.codec import history_dump
from dragoman.codec.digest import prefix
from dragoman.codec.history import History
from dragoman.codec.replay import readable
from dragoman.errors import DragomanError
from dragoman.loss import Loss
from dragoman.message import Message, Origin, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.providers.provider import Provider
from dragoman.repair import repaired
from dragoman.request import ModelRequest, ToolSpec
from support.strategies import histories, message, some_text, tool_histories
from support.switching import PROVIDERS, TARGETS, VENDORS

WIRES = list(PROVIDERS)
Sent = tuple[str, dict[str, str], bytes, dict[str, str], list[Loss], str] | str
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"place": {"type": "string"}}})
TOOLS = [(), (LOOK,), (LOOK, ToolSpec("1st")), (ToolSpec("a b"), LOOK)]


def target_of(provider: Provider, model: str = "m") -> Origin:
    return Origin(provider.name, str(provider.base_url), model)


def sent(provider: Provider, request: ModelRequest, history: History | None, target: Origin) -> Sent:
    """What goes out; of a request that is refused the words."""
    wire = wires.get(provider.wire)
    losses: list[Loss] = []
    turn = None if history is None else history.turn(request.messages, request.tools, target, wire.name)
    try:
        if turn is None:
            mended, losses = repaired(request.messages)
            before, request = prefix(mended, wire.name), request.replace(messages=tuple(mended))
            http = wire.dump_http(request, target=target, quirks=provider.quirks, losses=losses)
        else:
            http = wire.dump_http(request, target=target, quirks=provider.quirks, losses=losses, history=turn)
            before = turn.prefix
        body = msgspec.json.encode(http.body)
    except (DragomanError, UnicodeEncodeError) as error:
        return f"{type(error)} {error}"
    return http.path, dict(http.headers), body, dict(http.names), losses, before


def request_of(messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **how: Any) -> ModelRequest:
    return ModelRequest(str(how.pop("model", "m")), tuple(messages), tuple(tools), **how)


def answered(number: int, origin: Origin | None, before: Sequence[Message], wire: str) -> list[Message]:
    """A question, a call and its result, an answer that is signed."""
    asked = [*before, Message.user(f"Question {number}?")]
    call = ToolCallPart(f"call_{number}", "look", {"place": f"p{number}"})
    for content in ([TextPart("Let me look."), call], [ThinkingPart("Hm."), TextPart(f"Answer {number}.")]):
        said = Message.model(*content)
        if origin is not None:
            said = said.replace(origin=msgspec.structs.replace(origin, prefix=prefix(asked, wire)))
        asked.append(said)
        if said.tool_calls:
            asked.append(Message.user(ToolResultPart(call.id, call.name, {"sun": number})))
    return asked[len(before) :]


def chat(exchanges: int, origin: Origin | None = None, wire: str = "openai_chat") -> list[Message]:
    messages = [Message.system("Be brief.")]
    for number in range(exchanges):
        messages += answered(number, origin, messages, wire)
    return messages


@st.composite
def conversations(draw: Any) -> list[list[Message]]:
    """What one agent is asked in turn: chats that grow, are edited somewhere, forked, cut off."""
    wire, texts = draw(st.sampled_from(WIRES)), st.builds(Message.user, some_text)
    origin = draw(st.none() | st.sampled_from(list(TARGETS.values())))
    base = draw(histories | tool_histories) if draw(st.booleans()) else chat(draw(st.integers(1, 4)), origin, wire)
    said = [[*base, Message.user("Go on.")]]
    for number in range(draw(st.integers(1, 5))):
        last = list(draw(st.sampled_from(said)))
        kind = draw(st.sampled_from(["answered", "answered", "edited", "cut", "odd", "again"]))
        if kind == "answered":
            last += [Message.model(f"Answer {number}."), *answered(100 + number, origin, last, wire)][
                draw(st.integers(0, 1)) :
            ]
            last.append(Message.user("And?"))
        elif kind == "edited":
            at = draw(st.integers(0, len(last) - 1))
            last[at] = draw(texts | message())
        elif kind == "cut":
            last = last[: draw(st.integers(1, len(last)))]
        elif kind == "odd":
            last += draw(tool_histories | histories)
        said.append(last)
    return said


@settings(max_examples=150, deadline=None)
@given(conversations(), st.data())
def test_the_same_is_sent_with_and_without_memory(said: list[list[Message]], data: st.DataObject) -> None:
    for provider in [*PROVIDERS.values(), data.draw(st.sampled_from(VENDORS))]:
        history = History(least=1, segment=data.draw(st.integers(1, 4)))
        for messages in said:
            target = target_of(provider, data.draw(st.sampled_from(["m", "m", "m", "n"])))
            tools = TOOLS[data.draw(st.sampled_from([0, 0, 0, 1, 2, 3]))]
            options = data.draw(st.sampled_from([{}, {}, {"store": False}]))
            request = request_of(messages, tools, model=target.model, options=options)
            assert sent(provider, request, history, target) == sent(provider, request, None, target)


@pytest.fixture
def dumped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The messages of each segment that is dumped."""
    counted: list[int] = []

    def counting(messages: Sequence[Message], *rest: Any) -> list[str | None]:
        counted.append(len(messages))
        return readable(messages, *rest)

    monkeypatch.setattr(history_dump, "readable", counting)
    return counted


@pytest.mark.parametrize("wire", WIRES)
def test_a_turn_of_a_long_chat_dumps_its_new_messages_only(wire: str, dumped: list[int]) -> None:
    provider, history = PROVIDERS[wire], History()
    target, messages = target_of(provider), [*chat(250), Message.user("Go on.")]
    first = sent(provider, request_of(messages), history, target)
    assert sum(dumped) == len(messages) and first == sent(provider, request_of(messages), None, target)
    for number in range(3):
        dumped.clear()
        messages += [Message.model(f"Answer {number}."), Message.user(f"Next {number}.")]
        assert sent(provider, request_of(messages), history, target) == sent(
            provider, request_of(messages), None, target
        )
        assert dumped == [2]


@pytest.mark.parametrize("wire", WIRES)
def test_an_edit_dumps_what_follows_it(wire: str, dumped: list[int]) -> None:
    provider, history = PROVIDERS[wire], History()
    target, messages = target_of(provider), [*chat(250), Message.user("Go on.")]
    sent(provider, request_of(messages), history, target)
    for at in (len(messages) - 1, 701, 301):
        dumped.clear()
        edited = [
            *messages[:at],
            messages[at].replace(content=(*messages[at].content, TextPart("!"))),
            *messages[at + 1 :],
        ]
        assert sent(provider, request_of(edited), history, target) == sent(provider, request_of(edited), None, target)
        assert len(messages) - at <= sum(dumped) <= len(messages) - at + 40


def test_equal_messages_are_not_the_same() -> None:
    """`1 == True`."""
    provider, history = PROVIDERS["openai_chat"], History(least=1)
    target, messages = target_of(provider), chat(3)
    one, true = (
        [*messages, Message.model(ToolCallPart("c", "f", {"a": a})), Message.user(ToolResultPart("c", "f", "x"))]
        for a in (1, True)
    )
    assert one == true
    for conversation in (one, true, one):
        conversation = [*conversation, Message.model("Yes."), Message.user("Go on.")]
        request = request_of(conversation)
        assert sent(provider, request, history, target) == sent(provider, request, None, target)


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_known_goes_with_its_conversation(wire: str) -> None:
    provider, history, system = PROVIDERS[wire], History(), Message.system("Be brief.")
    messages = [system, *chat(20)[1:], Message.user("Go on.")]
    sent(provider, request_of(messages), history, target_of(provider))
    assert history.size > 1000
    del messages
    gc.collect()
    assert history.size == 0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    provider, history = PROVIDERS["openai_chat"], History()
    target, kept = target_of(provider), [[*chat(10), Message.user("Go on.")] for _ in range(5)]
    sent(provider, request_of(kept[0]), history, target)
    one = history.size
    monkeypatch.setattr(module, "MOST_LINES", 3)
    for messages in kept:
        sent(provider, request_of(messages), history, target)
        assert history.size <= 3 * one
    monkeypatch.setattr(module, "MOST_BYTES", one)
    sent(provider, request_of(kept[0]), history, target)
    assert history.size == one
    monkeypatch.setattr(module, "MOST_BYTES", one - 1)
    sent(provider, request_of([*kept[0], Message.model("Yes."), Message.user("Go.")]), history, target)
    assert history.size == 0


def test_a_long_chat_takes_little_more_than_its_json() -> None:
    provider, history = PROVIDERS["openai_chat"], History()
    messages = [*chat(250), Message.user("Go on.")]
    found = sent(provider, request_of(messages), history, target_of(provider))
    assert history.size <= 1.5 * len(found[2])


def test_runs_at_once_share_what_is_known() -> None:
    provider, history = PROVIDERS["anthropic"], History(least=1, segment=4)
    target, base = target_of(provider), [*chat(12), Message.user("Go on.")]

    def turns(number: int) -> bool:
        messages = list(base)
        for turn in range(12):
            messages += [Message.model(f"{number} {turn}"), Message.user("More.")]
            request = request_of(messages)
            if sent(provider, request, history, target) != sent(provider, request, None, target):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(turns, range(8)))


@pytest.mark.parametrize("wire", WIRES)
def test_tools_are_dumped_once(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, history = PROVIDERS[wire], History()
    target = target_of(provider)
    tools = [
        ToolSpec(f"tool_{n}", "Does.", {"type": "object", "properties": {"n": {"type": "integer"}}}) for n in range(40)
    ]
    request = request_of([Message.user("Hi.")], tools)
    first = sent(provider, request, history, target)
    assert first == sent(provider, request, None, target)
    turn = history.turn(request.messages, request.tools, target, provider.wire)
    dump_http = wires.get(provider.wire).dump_http
    body = cast("dict[str, Any]", dump_http(request, target=target, quirks=provider.quirks, history=turn).body)
    assert isinstance(body["tools"], msgspec.Raw)
    assert sent(provider, request, history, target) == first
    fewer = request_of([Message.user("Hi.")], tools[1:])
    assert sent(provider, fewer, history, target) == sent(provider, fewer, None, target)
