"""Repair: whatever a history went through, every call is answered once, right after it (decision
15; pains B1)."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from dragoman.codec.digest import chain_signature_digests
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    DataPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.repair import INTERRUPTED, find_missing_results, repair, repair_with_losses
from support import strategies as some


def call(call_id: str = "a", name: str = "f", **more: Any) -> ToolCallPart:
    return ToolCallPart(call_id, name, **more)


def result(call_id: str = "a", value: Any = 1, name: str = "f", **more: Any) -> ToolResultPart:
    return ToolResultPart(call_id, name, value, **more)


def interrupted(call_id: str = "a", name: str = "f") -> ToolResultPart:
    return ToolResultPart(call_id, name, {"error": INTERRUPTED}, is_error=True)


model, user = Message.model, Message.user
ASK, ANSWER, NEXT = user("ask"), user(result()), user("next")
CALL = model("let me see", call())

CASES: dict[str, tuple[list[Message], list[Message]]] = {
    "nothing": ([], []),
    "no calls at all": ([ASK, model("hi"), model(), user()], [ASK, model("hi"), model(), user()]),
    "a whole round": ([ASK, CALL, ANSWER, model("done")], [ASK, CALL, ANSWER, model("done")]),
    "a call at the end": ([ASK, CALL], [ASK, CALL, user(interrupted())]),
    "a call, then the user goes on": ([CALL, NEXT], [CALL, user(interrupted()), NEXT]),
    "a call, then the model goes on": ([CALL, model("hm")], [CALL, user(interrupted()), model("hm")]),
    "one of two answered": (
        [model(call("a"), call("b", "g")), user(result("b", 2, "g"))],
        [model(call("a"), call("b", "g")), user(interrupted("a"), result("b", 2, "g"))],
    ),
    "results in another order, in several messages": (
        [model(call("a"), call("b"), call("c")), user(result("c")), user(result("a")), user(result("b"))],
        [model(call("a"), call("b"), call("c")), user(result("a"), result("b"), result("c"))],
    ),
    "two messages of the model call": (
        [model(call("a")), model("hm"), model(call("b")), user(result("b", 2), result("a"), "so")],
        [model(call("a")), user(result("a")), model("hm"), model(call("b")), user(result("b", 2), "so")],
    ),
    "two messages of the model call, one is answered": (
        [model(call("a")), model(call("b")), user(result("b", 2))],
        [model(call("a")), user(interrupted("a")), model(call("b")), user(result("b", 2))],
    ),
    "a result before its call": ([user(result()), CALL], [CALL, user(interrupted())]),
    "a result without a call": ([ASK, user(result("x"))], [ASK]),
    "a result of another round": (
        [CALL, ANSWER, model(call("b")), user(result("a", 2), result("b"))],
        [CALL, ANSWER, model(call("b")), user(result("b"))],
    ),
    "an orphan beside text": ([user("look", result("x"), "there")], [user("look", "there")]),
    "a second result": ([CALL, user(result()), user(result("a", 2), "and")], [CALL, user(result()), user("and")]),
    "an id in two rounds": (
        [CALL, ANSWER, CALL, user(result("a", 2))],
        [CALL, ANSWER, CALL, user(result("a", 2))],
    ),
    "an id in two rounds, the first unanswered": (
        [CALL, CALL, user(result("a", 2))],
        [CALL, user(interrupted()), CALL, user(result("a", 2))],
    ),
    "an id twice in one message": (
        [model(call("", "f"), call("", "g")), user(result("", 1, ""), result("", 2, ""), result("", 3))],
        [model(call("", "f"), call("", "g")), user(result("", 1, "f"), result("", 2, "g"))],
    ),
    "other content of the message with the results": (
        [CALL, user("first", result(), "last")],
        [CALL, user(result(), "first", "last")],
    ),
    "the message with the results is late": (
        [CALL, NEXT, Message.system("s"), ANSWER, model("done")],
        [CALL, ANSWER, NEXT, Message.system("s"), model("done")],
    ),
    "the message with the results is late and says more": (
        [CALL, NEXT, user(result(), "and")],
        [CALL, user(result()), NEXT, user("and")],
    ),
    "a message in between that was only an orphan": (
        [CALL, user(result("x")), user(result(), "and")],
        [CALL, user(result(), "and")],
    ),
    "a merged format": (
        [model("a", call("a"), result("a"), "b", call("b"), result("b", 2), "c"), NEXT],
        [model("a", call("a"), "b", call("b"), "c"), user(result("a"), result("b", 2)), NEXT],
    ),
    "half merged": (
        [model(call("a"), result("a"), call("b")), user(result("b"), "x")],
        [model(call("a"), call("b")), user(result("a"), result("b"), "x")],
    ),
    "a result in a model message of its own": ([CALL, model(result()), model("x")], [CALL, user(result()), model("x")]),
    "a result in a system message": ([CALL, Message.system(result(), "s")], [CALL, user(result()), Message.system("s")]),
    "a name is filled in and never changed": (
        [model(call("a", "f"), call("b", "g")), user(result("a", 1, ""), result("b", 2, "other"))],
        [model(call("a", "f"), call("b", "g")), user(result("a", 1, "f"), result("b", 2, "other"))],
    ),
    "what the provider ran": (
        [model(call(run_by="provider"), result(run_by="provider")), model(call("b", run_by="provider")), NEXT],
        [model(call(run_by="provider"), result(run_by="provider")), model(call("b", run_by="provider")), NEXT],
    ),
    "the provider's result is no answer": (
        [model(call("a"), call("a", run_by="provider"), result("a", 9, run_by="provider"))],
        [model(call("a"), call("a", run_by="provider"), result("a", 9, run_by="provider")), user(interrupted())],
    ),
    "the client's call": ([model(call(run_by="client")), ANSWER], [model(call(run_by="client")), ANSWER]),
    "cut and invalid calls": (
        [model(call("a", raw="{", state="cut"), call("b", raw="[", state="invalid"))],
        [model(call("a", raw="{", state="cut"), call("b", raw="[", state="invalid")), user(interrupted("a"), interrupted("b"))],
    ),
    "a call that the user makes": ([user(call()), ASK], [user(call()), ASK]),
    "empty messages stay": ([CALL, user(), ANSWER, model()], [CALL, ANSWER, user(), model()]),
    "an empty message right after": ([CALL, user()], [CALL, user(interrupted()), user()]),
    "rich results": (
        [CALL, user(result("a", (TextPart("t"), DataPart(b"x", "image/png"))), ProviderPart("p"))],
        [CALL, user(result("a", (TextPart("t"), DataPart(b"x", "image/png"))), ProviderPart("p"))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.replace(" ", "_"))
def test_repair(case: str):
    broken, whole = CASES[case]
    assert repair(broken) == whole
    assert repair(iter(broken)) == whole
    before = {id(message): message for message in broken}
    for message in repair(broken):
        if message in broken:
            assert id(message) in before, "what does not change stays the same object"


def test_the_model_is_told_what_happened():
    assert interrupted().result == {"error": "interrupted: the call was not answered"}


def test_what_a_message_knows_stays_with_it():
    late = user(result(name="")).replace(id="u", metadata={"k": 1})
    assert repair([CALL, NEXT, late])[1] == late.replace(content=(result(),))
    merged = model("a", call(), result()).replace(id="m", metadata={"k": 1})
    assert repair([merged])[0] == merged.replace(content=merged.content[:2])
    assert repair([merged])[1].id is None, "no random ids"


def test_what_was_made_up_or_dropped_is_told():
    mine = [
        user(result("x")),
        model("t", call("p", run_by="provider"), call("a"), call("b"), result("b")),
        user("t", result("b")),
        user(result("a", 1)),
        model(call("c")),
        user(result("a", 2)),
    ]
    messages, losses = repair_with_losses(mine)
    assert messages == repair(mine)
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [
        (0, 0, "tool result"),
        (2, 1, "tool result"),
        (5, 0, "tool result"),
        (4, 0, "tool result"),
    ]
    orphan, second, stray, made_up = (loss.why for loss in losses)
    assert orphan == stray == "no call of its round has its id"
    assert second == "its call is already answered"
    assert "error stands in" in made_up
    assert isinstance(losses[0], Loss)


@given(some.histories | some.tool_histories)
def test_repair_is_total_and_idempotent_and_tells_all_it_does(history: list[Message]):
    given_ids = [id(message) for message in history]
    messages, losses = repair_with_losses(history)
    again, nothing = repair_with_losses(messages)
    assert [id(message) for message in again] == [id(message) for message in messages], (
        "the very same objects"
    )
    assert nothing == []
    assert [id(message) for message in history] == given_ids
    if not losses and all(message in history for message in messages):
        assert len(messages) <= len(history)


@given(some.tool_histories)
def test_pairs_are_always_complete_adjacent_and_in_order(history: list[Message]):
    messages = repair(history)
    for position, message in enumerate(messages):
        calls = message.tool_calls if message.role is Role.MODEL else ()
        if not calls:
            before = messages[position - 1] if position else None
            answers_before = before is not None and before.role is Role.MODEL and before.tool_calls
            assert not message.tool_results or answers_before
            continue
        answer = messages[position + 1]
        assert answer.role is Role.USER
        assert message.tool_results == ()
        assert [item.id for item in answer.tool_results] == [item.id for item in calls]
        assert all(item.name for item in answer.tool_results)
        assert answer.content[: len(calls)] == answer.tool_results, "results come first"


@given(some.tool_histories)
def test_nothing_but_results_is_touched(history: list[Message]):
    def rest(messages: list[Message]) -> list[tuple[Role, Content]]:
        return [
            (message.role, piece)
            for message in messages
            for piece in message.content
            if not isinstance(piece, ToolResultPart) or piece.run_by == "provider"
        ]

    def results(messages: list[Message]) -> Counter[Any]:
        return Counter(
            (r.id, r.result)
            for m in messages
            for r in m.tool_results
            if r.result != {"error": INTERRUPTED}
        )

    messages, losses = repair_with_losses(history)
    assert Counter(map(repr, rest(messages))) == Counter(map(repr, rest(history)))
    texts = [piece for _, piece in rest(history) if isinstance(piece, TextPart)]
    assert [piece for _, piece in rest(messages) if isinstance(piece, TextPart)] == texts, (
        "in the order it was said"
    )
    dropped = [
        loss
        for loss in losses
        if isinstance(history[loss.message].content[loss.part or 0], ToolResultPart)
    ]
    assert results(messages) <= results(history)
    assert results(messages).total() + len(dropped) == results(history).total()
    made_up = sum(r.result == {"error": INTERRUPTED} for m in messages for r in m.tool_results)
    assert made_up == len(losses) - len(dropped)


@given(some.tool_histories, some.tool_histories)
def test_what_was_repaired_stays_as_it_is_when_the_conversation_goes_on(
    history: list[Message], more: list[Message]
):
    """Append-only (rule 6): a repaired prompt, once stored, begins the next one."""
    sent = repair(history)
    late = [
        message.replace(content=[p for p in message.content if not isinstance(p, ToolResultPart)])
        for message in more
    ]
    assert repair([*sent, *late])[: len(sent)] == sent
    assert (
        chain_signature_digests(repair([*sent, *late]), "w")[: len(sent)]
        == chain_signature_digests(sent, "w")[:-1]
    )


def test_repair_is_linear():
    def work(size: int) -> int:
        ids = [str(number) for number in range(size)]
        history = [model(*map(call, ids)), *[user(result(one)) for one in reversed(ids[::2])]] + [
            CALL,
            ANSWER,
        ] * size
        calls = 0

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            messages = repair(history)
        finally:
            sys.setprofile(None)
        assert len(messages) == 2 + 2 * size
        return calls

    assert work(1000) <= 10 * work(100)


@given(some.tool_histories)
def test_what_is_missing_of_the_last_round_is_what_repair_makes_up_there(
    history: list[Message],
) -> None:
    made_up, losses = find_missing_results(history)
    made = Counter(part.id for message in repair(history) for part in message.tool_results)
    assert len(made_up) == len(losses)
    for part in made_up:
        assert (
            part.result == {"error": INTERRUPTED}
            and made[part.id]
            and history[losses[0].message or 0].tool_calls
        )
    if not any(
        part.result == {"error": INTERRUPTED}
        for message in repair(history)
        for part in message.tool_results
    ):
        assert not made_up


def test_a_last_round_that_was_answered_long_ago_is_not_gone_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules[find_missing_results.__module__], "_rounds", None)
    talk = [Message.user("And?"), Message.model("Yes.")] * 100
    assert find_missing_results(
        [Message.user("Hi."), Message.model(call()), Message.user(result()), *talk]
    ) == (
        [],
        [],
    )
