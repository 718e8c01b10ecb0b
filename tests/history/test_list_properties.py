"""What holds of a list whatever is added to it, in whatever order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import (
    Message,
    MessageList,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    formats,
    repair,
)
from dragoman.codec.digest import neutral_digest
from dragoman.codec.turns import split_turns
from dragoman.history.sources import Source
from support.conversations import conversations

FEW = settings(max_examples=40)
SOURCES: tuple[Source, ...] = ("input", "response", "memory", "context")
WIRES = ("openai_chat", "anthropic", "google", "openai_responses", "mistral", "ollama", "cohere")


def said(messages: Iterable[Message]) -> Counter[Any]:
    """Texts, calls and results that are in messages, each as often as it is there."""
    found: Counter[Any] = Counter()
    for message in messages:
        for piece in message.content:
            match piece:
                case TextPart():
                    found["text", piece.text] += 1
                case ToolCallPart():
                    found["call", piece.id, piece.name] += 1
                case ToolResultPart():
                    found["result", piece.id, piece.is_error] += 1
                case _:
                    pass
    return found


def all_of(messages: MessageList) -> list[Message]:
    return [*messages, *(message for branch in messages.branches for message in branch.messages)]


def valid(messages: MessageList) -> None:
    ids = [message.id for message in messages.get()]
    assert None not in ids and len(ids) == len(set(ids))
    assert all(message.role is not Role.SYSTEM for message in messages.get())
    starts = [turn.start for turn in split_turns(messages.get())]
    assert starts == [place for place, row in enumerate(messages._rows) if row.starts]
    orders = [row.order for row in messages._rows]
    assert orders == sorted(orders)
    for place, message in enumerate(messages.get()):
        assert message.id is not None and messages._rows.position(message.id) == place


@FEW
@given(conversations(ids=False), st.sampled_from(SOURCES))
def test_what_is_given_is_there_and_nothing_more(talk: list[Message], source: Source) -> None:
    messages = MessageList().add(talk, source)
    valid(messages)
    systems = {neutral_digest(message) for message in talk if message.role is Role.SYSTEM}
    assert said(messages.get()) == said(
        message for message in talk if message.role is not Role.SYSTEM
    )
    assert {neutral_digest(message) for message in messages.all_system_messages()} == systems


@FEW
@given(
    st.lists(
        st.tuples(conversations(exchanges=2, open_calls=True), st.sampled_from(SOURCES)),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_is_added_nothing_is_lost_and_ids_are_unique(
    adds: list[tuple[list[Message], Source]],
) -> None:
    messages = MessageList()
    for talk, source in adds:
        messages.add(talk, source)
        valid(messages)
        held = said(all_of(messages))
        for kind, *what in said(message for message in talk if message.role is not Role.SYSTEM):
            if kind != "result":  # of a result that comes twice the first or the last may count
                assert held[(kind, *what)], (kind, what)
    again = messages.get()
    for source in SOURCES:
        messages.add(list(again), source)
        assert messages.get() == again
        valid(messages)
    loaded = MessageList.load(messages.dump())
    assert list(loaded) == list(messages)
    assert loaded.dump() == messages.dump()
    assert loaded.branches == messages.branches


@FEW
@given(conversations(exchanges=3, ids=False, systems=False))
def test_a_conversation_that_is_sent_again_changes_nothing(talk: list[Message]) -> None:
    messages = MessageList(talk)
    before = messages.get()
    assert messages.add(talk).get() == before
    if any(message.role is Role.MODEL for message in talk):
        longer = messages.add([*talk, Message.user("and now?")]).get()
        assert longer[:-1] == before
        assert longer[-1].text == "and now?"


@FEW
@given(conversations(exchanges=3, ids=False), st.integers(0, 6), st.integers(0, 6))
def test_one_by_one_is_as_all_at_once(talk: list[Message], cut: int, other: int) -> None:
    talk = [message for message in talk if message.role is not Role.SYSTEM]
    whole = MessageList(id_factory=map(str, range(1000)).__next__).add(talk)
    parts = MessageList(id_factory=map(str, range(1000)).__next__)
    for message in talk:
        parts.add(message)
    assert [(one.id, one.content) for one in parts] == [(one.id, one.content) for one in whole]


@FEW
@given(conversations(exchanges=3), st.randoms(use_true_random=False), st.sampled_from(WIRES))
def test_any_cut_reordering_or_duplication_is_paired_and_read_by_each_wire(
    talk: list[Message], random: Any, wire: str
) -> None:
    broken = [message for message in talk for _ in range(random.choice((0, 1, 1, 1, 2)))]
    if random.random() < 0.5:
        random.shuffle(broken)
    messages = MessageList().add([message.replace(id=None, turn=None) for message in broken])
    prompt = messages.prompt()
    assert repair(prompt) == prompt
    format_ = formats.get(wire)
    loaded = format_.load_messages(format_.dump_messages(prompt))
    assert repair(loaded) == loaded


@FEW
@given(conversations(exchanges=4, ids=False), st.integers(0, 12))
def test_a_fork_goes_on_by_itself(talk: list[Message], at: int) -> None:
    messages = MessageList(talk)
    before = messages.get()
    at = min(at, len(before))
    fork = messages.fork(at)
    assert fork.get() == before[:at]
    fork.add(["x", Message.model("y")])
    messages.add(["p", Message.model("q")])
    valid(fork)
    valid(messages)
    assert fork.get()[:at] == before[:at]
    assert messages.get()[: len(before)] == before
    assert [message.text for message in fork.get()[at:]] == ["x", "y"]
    twice = fork.fork().add("z")
    valid(twice)
    assert fork.get() == twice.get()[:-1]


@FEW
@given(conversations(exchanges=3), st.integers(0, 3))
def test_what_is_repaired_as_it_grows_is_what_is_repaired_at_once(
    talk: list[Message], cut: int
) -> None:
    messages = MessageList()
    for message in talk:
        messages.add(message.replace(id=None, turn=None))
        fresh = MessageList.load(messages.dump())
        assert messages.prompt() == fresh.prompt()
