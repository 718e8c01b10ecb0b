"""What is a little wrong, confused or huge: an error of ours or a sane list, and work that grows as
what is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from dragoman import Message, MessageList
from dragoman.codec import turns as turns_module
from dragoman.errors import HistoryError
from dragoman.history import add, rows, turn_merge
from dragoman.history import new_messages as fresh_module
from dragoman.testing.mutation import Sample, encode_json, mutate
from support.listed import at, call, fresh, model, result, results, user

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "q"}]},
    {
        "role": "assistant",
        "content": "a",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "21"},
]
UI: list[dict[str, Any]] = [
    {
        "id": "u1",
        "role": "user",
        "parts": [{"type": "text", "text": "q"}],
        "metadata": {"createdAt": "2026-01-01T00:00:00Z"},
    },
    {
        "id": "a1",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "tool-f", "toolCallId": "c1", "state": "input-available", "input": {}},
        ],
    },
    {"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": "a"}]},
]


def _is_storable(message: Message) -> bool:
    """Half a character of a text that was cut in UTF-16 is no JSON."""
    try:
        return bool(message.to_json())
    except HistoryError:
        return False


@pytest.mark.parametrize(
    "payload",
    [CHAT, UI, {"messages": CHAT}, [*UI, *CHAT, "x"]],
    ids=["chat", "ui", "body", "mixed"],
)
def test_what_is_changed_a_little_is_read_or_refused(payload: Any) -> None:
    sample, chance = Sample.from_value(payload), Random(11)
    read = refused = 0
    messages = fresh()
    for _ in range(60):
        given = mutate(chance, sample)
        before = messages.get()
        try:
            messages.add(given, chance.choice(["input", "response", "memory", "context"]))
            read += 1
        except HistoryError:
            refused += 1
            assert messages.get() == before
        messages.add(given, errors="collect")
        messages.prompt()
        ids = [message.id for message in messages.get()]
        assert len(ids) == len(set(ids))
    assert read and refused
    storable = MessageList([message for message in messages if _is_storable(message)])
    assert len(storable) > 20
    assert list(MessageList.load(storable.dump())) == list(storable)


def test_a_dump_that_is_changed_a_little_is_read_or_refused() -> None:
    messages = (
        fresh(thread_id="t")
        .add(["a", model("b", call(), id="m"), results(result()), "c"])
        .add_system("s", "x")
    )
    messages.edit("m", "other")
    stored = json.loads(messages.dump())
    sample, chance = Sample.from_value(stored), Random(5)
    outcomes = set()
    for _ in range(400):
        data = encode_json(mutate(chance, sample))
        try:
            loaded = MessageList.load(data)
            loaded.add("more").prompt()
            assert list(MessageList.load(loaded.dump())) == list(loaded)
            outcomes.add("read")
        except HistoryError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
    for _ in range(200):
        broken = bytearray(messages.dump())
        broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            MessageList.load(bytes(broken))
        except HistoryError:
            outcomes.add("broken")
    assert "broken" in outcomes


class Counted:
    """How often functions are called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        for module, name in (
            (turns_module, "continues_turn"),
            (rows, "continues_turn"),
            (fresh_module, "neutral_digest"),
            (add, "stamp"),
            (add, "decide_outcome"),
            (add, "fill_arguments"),
        ):
            monkeypatch.setattr(module, name, self._counting(getattr(module, name)))

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **how: Any) -> Any:
            self.calls += 1
            return function(*given, **how)

        return counted

    def of(self, work: Callable[[], object]) -> int:
        before = self.calls
        work()
        return self.calls - before


def plain(count: int) -> list[Message]:
    return [
        user(f"q{number}") if number % 2 == 0 else model(f"a{number}") for number in range(count)
    ]


def tools(count: int) -> list[Message]:
    return [
        one
        for number in range(count // 2)
        for one in (model(call(f"c{number}")), results(result(f"c{number}")))
    ]


def stored(count: int) -> list[Message]:
    return [user(f"q{number}", id=f"i{number}", created_at=at(-number)) for number in range(count)]


@pytest.mark.parametrize("make", [plain, tools, stored])
@pytest.mark.parametrize("source", ["input", "response", "memory"])
def test_adding_costs_as_much_a_message_in_a_long_list_as_in_a_short_one(
    make: Callable[[int], list[Message]], source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    costs: list[float] = []
    for size in (100, 1000):
        given = make(size)
        once = counted.of(lambda given=given: fresh().add(given, source))
        given = given[::-1] if make is stored else given  # the newest first is for lists of them
        one_by_one = fresh()
        each = counted.of(
            lambda given=given, one_by_one=one_by_one: [
                one_by_one.add(message, source) for message in given
            ]
        )
        again = counted.of(lambda one_by_one=one_by_one: one_by_one.add(one_by_one.get(), source))
        costs.append((once + each + again) / size)
    assert costs[1] <= costs[0] * 1.1 + 1


def test_a_conversation_that_is_sent_again_is_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Counted(monkeypatch)
    given = plain(1000)
    messages = fresh().add(given)
    for _ in range(3):
        messages.add(given)
    assert counted.of(lambda: messages.add([*given, user("more")])) <= 3 * 1000
    assert (
        counted.of(lambda: messages.add([*given[-10:], user("more"), user("more still")]))
        <= 2 * 1000
    )
    assert len(messages) == 1002


def test_copies_that_differ_everywhere_cost_as_much_a_piece_in_long_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = 0
    key_of = turn_merge.key_of

    def counted(item: Any) -> Any:
        nonlocal looked
        looked += 1
        return key_of(item)

    monkeypatch.setattr(turn_merge, "key_of", counted)
    costs: list[float] = []
    for size in (20, 2000):
        many = [piece for number in range(size) for piece in (f"t{number}", call(f"c{number}"))]
        other = [piece for number in range(size) for piece in (f"u{number}", call(f"c{number}"))]
        messages = fresh().add(model(*many, id="x"))
        looked = 0
        messages.add(model(*other, id="x"), "response")
        assert len(messages.get()[0].content) == 3 * size
        costs.append(looked / size)
    assert costs[1] <= costs[0]
