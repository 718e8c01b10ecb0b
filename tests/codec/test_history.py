"""A model that remembers sends the same bytes as one that does not, dumps what is new alone, and
keeps nothing alive."""

from __future__ import annotations

import gc
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import wires
from dragoman.codec import digest, dump_with_history
from dragoman.codec import dump_cache as module
from dragoman.codec.digest import compute_prefix
from dragoman.codec.dump_cache import DumpedRequest, History
from dragoman.codec.dump_pieces import prepare_pieces
from dragoman.message import Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.providers.provider import Provider
from dragoman.request import ToolSpec
from support.remembering import TOOLS, answered, chat, dumped, request_of, sent, target_of
from support.strategies import histories, message, some_text, tool_histories
from support.switching import PROVIDERS, TARGETS, VENDORS

__all__ = ["dumped"]

WIRES = list(PROVIDERS)


def read_anew(messages: list[Message]) -> list[Message]:
    """The same messages, read again from JSON."""
    return msgspec.json.decode(msgspec.json.encode(messages), type=list[Message])


@st.composite
def conversations(draw: Any) -> list[list[Message]]:
    """What one agent is asked in turn: chats that grow, are edited somewhere, forked, cut off."""
    wire, texts = draw(st.sampled_from(WIRES)), st.builds(Message.user, some_text)
    origin = draw(st.none() | st.sampled_from(list(TARGETS.values())))
    base = (
        draw(histories | tool_histories)
        if draw(st.booleans())
        else chat(draw(st.integers(1, 4)), origin, wire)
    )
    system = draw(st.lists(st.builds(Message.system, some_text), max_size=2))
    said, head = [[*system, *base, Message.user("Go on.")]], len(system)
    for number in range(draw(st.integers(1, 5))):
        last = list(draw(st.sampled_from(said)))
        kind = draw(st.sampled_from([*["answered"] * 2, "edited", "cut", "odd", "again", "anew"]))
        if kind == "answered":
            last += [
                Message.model(f"Answer {number}."),
                *answered(100 + number, origin, last, wire),
            ][draw(st.integers(0, 1)) :]
            last.append(Message.user("And?"))
        elif kind == "edited":
            at = draw(st.integers(0, len(last) - 1))
            last[at] = draw(texts | message())
        elif kind == "cut":
            last = last[: draw(st.integers(1, len(last)))]
        elif kind == "odd":
            last += draw(tool_histories | histories)
        elif kind == "anew":
            last = [*read_anew(last[:head]), *last[head:]]
        said.append(last)
    return said


@settings(max_examples=150, deadline=None)
@given(conversations(), st.data())
@pytest.mark.slow
def test_the_same_is_sent_with_and_without_memory(
    said: list[list[Message]], data: st.DataObject
) -> None:
    for provider in [*PROVIDERS.values(), data.draw(st.sampled_from(VENDORS))]:
        history = History(least=1, segment=data.draw(st.integers(1, 4)))
        for messages in said:
            target = target_of(provider, data.draw(st.sampled_from(["m", "m", "m", "n"])))
            tools = TOOLS[data.draw(st.sampled_from([0, 0, 0, 1, 2, 3]))]
            options = data.draw(st.sampled_from([{}, {}, {"store": False}]))
            request = request_of(messages, tools, model=target.model, options=options)
            assert sent(provider, request, history, target) == sent(provider, request, None, target)


@pytest.mark.parametrize("wire", WIRES)
def test_a_turn_of_a_long_chat_dumps_its_new_messages_only(wire: str, dumped: list[int]) -> None:
    provider, history = PROVIDERS[wire], History()
    target, messages = target_of(provider), [*chat(250), Message.user("Go on.")]
    first = sent(provider, request_of(messages), history, target)
    assert sum(dumped) == len(messages) and first == sent(
        provider, request_of(messages), None, target
    )
    for number in range(3):
        dumped.clear()
        messages += [Message.model(f"Answer {number}."), Message.user(f"Next {number}.")]
        assert sent(provider, request_of(messages), history, target) == sent(
            provider, request_of(messages), None, target
        )
        assert dumped == [2]


@pytest.mark.parametrize("wire", WIRES)
def test_a_system_text_that_is_read_anew_is_the_same(wire: str, dumped: list[int]) -> None:
    """As a server reads it with each request of a conversation that it has."""
    target, history = target_of(PROVIDERS[wire]), History()
    system = [Message.system("Be kind."), Message.system("Be brief.")]
    messages = [*chat(30), Message.user("Go on.")]
    sent(PROVIDERS[wire], request_of([*system, *messages]), history, target)
    dumped.clear()
    messages += [Message.model("Answer."), Message.user("And?")]
    again = request_of([*read_anew(system), *messages])
    remembered = sent(PROVIDERS[wire], again, history, target)
    assert sum(dumped) == 2
    assert remembered == sent(PROVIDERS[wire], again, None, target)
    # Any other one is not, also of a value that is merely equal.
    for other in (
        Message.system("Be rude."),
        Message.system(TextPart("Be kind.", {"x": {"a": 1}})),
    ):
        dumped.clear()
        changed = request_of([other, *system[1:], *messages])
        sent(PROVIDERS[wire], changed, history, target)
        assert sum(dumped) > 30


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
        assert sent(provider, request_of(edited), history, target) == sent(
            provider, request_of(edited), None, target
        )
        assert len(messages) - at <= sum(dumped) <= len(messages) - at + 40


def test_equal_messages_are_not_the_same() -> None:
    """`1 == True`."""
    provider, history = PROVIDERS["openai_chat"], History(least=1)
    target, messages = target_of(provider), chat(3)
    one, true = (
        [
            *messages,
            Message.model(ToolCallPart("c", "f", {"a": a})),
            Message.user(ToolResultPart("c", "f", "x")),
        ]
        for a in (1, True)
    )
    assert one == true
    for conversation in (one, true, one):
        conversation = [*conversation, Message.model("Yes."), Message.user("Go on.")]
        request = request_of(conversation)
        assert sent(provider, request, history, target) == sent(provider, request, None, target)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.slow
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
        assert history.size <= 3.1 * one
    monkeypatch.setattr(module, "MOST_BYTES", 1.5 * one)
    sent(provider, request_of(kept[0]), history, target)
    assert 0.9 * one <= history.size <= 1.5 * one
    monkeypatch.setattr(module, "MOST_BYTES", one / 2)
    sent(
        provider,
        request_of([*kept[0], Message.model("Yes."), Message.user("Go.")]),
        history,
        target,
    )
    assert history.size == 0


def plain(number: int) -> list[Message]:
    text = "Compare the weather in San Francisco and Amsterdam for the coming weekend"
    return [(Message.user, Message.model)[n % 2](f"{text} ({n}).") for n in range(number)] + [
        Message.user("Go on.")
    ]


def held(provider: Provider, messages: list[Message], turns: int) -> tuple[int, int, int]:
    """What a model that is asked so often holds then: bytes in truth, those that it says, those of
    the last body."""
    target, warm = target_of(provider), History()
    sent(provider, request_of(chat(5)), warm, target)
    history, last = History(), list(messages[: len(messages) - 2 * turns])
    gc.collect()
    tracemalloc.start()
    try:
        for turn in range(turns + 1):
            size = len(
                sent(provider, request_of(messages[: len(last) + 2 * turn]), history, target)[2]
            )
        gc.collect()
        return tracemalloc.get_traced_memory()[0], history.size, size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.slow
def test_a_long_chat_takes_little_more_than_its_json(wire: str) -> None:
    for turns in (0, 400):
        in_truth, size, body = held(PROVIDERS[wire], plain(1000), turns)
        assert max(in_truth, size) <= 1.5 * body


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.slow
def test_what_a_model_says_that_it_holds_is_so(wire: str) -> None:
    for messages in (plain(1000), [*chat(250), Message.user("Go on.")]):
        in_truth, size, _ = held(PROVIDERS[wire], messages, 0)
        assert 0.75 * in_truth <= size <= 1.5 * in_truth


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
        ToolSpec(f"tool_{n}", "Does.", {"type": "object", "properties": {"n": {"type": "integer"}}})
        for n in range(40)
    ]
    request = request_of([Message.user("Hi.")], tools)
    first = sent(provider, request, history, target)
    assert first == sent(provider, request, None, target)
    turn = history.turn(request.messages, request.tools, target, provider.wire)
    dump_http = wires.get(provider.wire).dump_http
    body = cast(
        "dict[str, Any]",
        dump_http(request, target=target, quirks=provider.quirks, history=turn).body,
    )
    assert isinstance(body.get("toolConfig", body)["tools"], msgspec.Raw)
    assert sent(provider, request, history, target) == first
    module = import_module(f"dragoman.wires.{wire}.messages")
    if (fit := getattr(module, "fit_names", None)) is not None:  # Ollama's tools have any name
        fitted: list[str] = []
        monkeypatch.setattr(
            module,
            "fit_names",
            lambda names, *rest, **how: fit(fitted.extend(names) or names, *rest, **how),
        )
        assert sent(provider, request, history, target) == first and len(fitted) == 0
    fewer = request_of([Message.user("Hi.")], tools[1:])
    assert sent(provider, fewer, history, target) == sent(provider, fewer, None, target)


def unsegmentable() -> list[Message]:
    """The same ids come again after a while."""
    return [*chat(20), *chat(20)[1:], Message.user("Go on.")]


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", "google", "openai_responses"])
@pytest.mark.slow
def test_what_cannot_be_cut_is_tried_once(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, history, messages = PROVIDERS[wire], History(), unsegmentable()
    target, made = target_of(provider), list[int]()

    def counted(*given: Any) -> Any:
        made.append(1)
        return prepare_pieces(*given)

    monkeypatch.setattr(dump_with_history, "prepare_pieces", counted)
    for number in range(4):
        request = request_of(messages)
        assert sent(provider, request, history, target) == sent(provider, request, None, target)
        assert made == [1]
        messages += [Message.model(f"Answer {number}."), Message.user(f"Next {number}.")]
    mended = [messages[0], *messages[81:]]
    sent(provider, request_of(mended), history, target)
    assert made == [1, 1], "without what came twice it can be cut"
    del messages, mended, request
    gc.collect()
    assert history.size == 0


def test_what_is_not_settled_is_dumped_once(dumped: list[int]) -> None:
    provider, history = PROVIDERS["openai_chat"], History()
    target, messages = (
        target_of(provider),
        [Message.user("A."), Message.model(ToolCallPart("x", "look")), *chat(10)[1:]],
    )
    request = request_of([*messages, Message.user("Go on.")])
    plain = sent(provider, request, None, target)
    for _ in range(2):
        dumped.clear()
        assert sent(provider, request, history, target) == plain
        assert sum(dumped) == len(messages) + 2, "a result stands in"


def test_a_request_without_memory_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[object] = []
    make = digest._bytes  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(digest, "_bytes", lambda value: (hashed.append(value), make(value))[1])
    provider = PROVIDERS["anthropic"]
    target = target_of(provider)
    messages = (*chat(3, target, "anthropic"), Message.user("Go on."))
    hashed.clear()
    turn = DumpedRequest(None, messages, target, "anthropic")
    wires.get("anthropic").dump_http(
        request_of(messages), target=target, quirks=provider.quirks, history=turn
    )
    assert len(hashed) == len(messages) - 1, "the system's is of each request"
    assert turn.prefix == compute_prefix(messages, "anthropic")
