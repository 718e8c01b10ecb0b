"""A conversation whose answers the provider stores: only what follows the newest of them is dumped,
as without memory, and what stands before it is not looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.codec import digest
from dragoman.codec.digest import compute_prefix
from dragoman.codec.dump_cache import History
from dragoman.message import FinishReason, Message, Origin, ToolResultPart
from support.remembering import TOOLS, answered, chat, dumped, request_of, sent, target_of
from support.switching import PROVIDERS, TARGETS

__all__ = ["dumped"]

OPENAI = PROVIDERS["openai_responses"]
TARGET = target_of(OPENAI)
WIRE = "openai_responses"


def answer(number: int, before: Sequence[Message], origin: Origin = TARGET) -> Message:
    """A stored answer to a conversation."""
    origin = msgspec.structs.replace(
        origin, prefix=compute_prefix(before, WIRE), response_id=f"resp_{number}"
    )
    return Message.model(f"Answer {number}.").replace(origin=origin)


def stored(exchanges: int = 250) -> list[Message]:
    return [*chat(exchanges, TARGET, WIRE), Message.user("Go on.")]


def body_of(messages: Sequence[Message], history: History | None, **how: Any) -> dict[str, Any]:
    """The body, which is the same without memory."""
    request = request_of(messages, **how)
    found = sent(OPENAI, request, history, TARGET)
    assert found == sent(OPENAI, request, None, TARGET)
    assert not isinstance(found, str)
    return msgspec.json.decode(found[2])


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is hashed."""
    every: list[object] = []
    make = digest._bytes  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(digest, "_bytes", lambda value: (every.append(value), make(value))[1])
    return every


@pytest.mark.slow
def test_a_turn_that_goes_on_from_a_stored_answer_looks_at_what_is_new_alone(
    dumped: list[int], hashed: list[object]
) -> None:
    history, messages = History(), stored()
    body = body_of(messages, history)
    assert (
        len(body["input"]) == 1 and body["previous_response_id"] == messages[-2].origin.response_id
    )  # pyright: ignore
    for number in range(3):
        messages += [answer(number, messages), Message.user(f"Next {number}.")]
        plain = sent(OPENAI, request_of(messages), None, TARGET)
        dumped.clear()
        hashed.clear()
        assert sent(OPENAI, request_of(messages), history, TARGET) == plain
        assert dumped == [2] and len(hashed) == 2
        assert f"resp_{number}" in str(plain)


@pytest.mark.slow
def test_no_json_is_kept_of_what_the_provider_holds() -> None:
    history, messages = History(), stored()
    request = request_of(messages, options={"store": False})
    whole = sent(OPENAI, request, None, TARGET)
    body_of(messages, history)
    assert history.size < len(whole[2]) / 2


@pytest.mark.slow
def test_an_answer_that_is_not_stored_goes_along_with_what_follows_the_last_stored_one(
    dumped: list[int],
) -> None:
    history, messages = History(), stored()
    body_of(messages, history)
    messages += [answer(1, messages), Message.user("Next.")]
    body_of(messages, history)
    broken = answer(2, messages).replace(finish_reason=FinishReason.error)
    messages += [broken, Message.user("Once more.")]
    dumped.clear()
    body = body_of(messages, history)
    assert body["previous_response_id"] == "resp_1" and len(body["input"]) == 3
    assert sum(dumped) < 10 + len(messages)  # the second one is that without memory


def test_a_fork_goes_on_from_the_answer_before_it() -> None:
    history, messages = History(), stored(20)
    body_of(messages, history)
    for number in range(3):
        fork = [*messages, answer(number, messages), Message.user(f"Fork {number}.")]
        assert body_of(fork, history)["previous_response_id"] == f"resp_{number}"
    cut = messages[:-4]
    assert body_of([*cut[:-1], Message.user("Otherwise.")], history)["input"]


def test_a_conversation_that_comes_from_elsewhere_is_linked_once_it_is_stored() -> None:
    history = History()
    messages = [*chat(20, TARGETS["anthropic"], "anthropic"), Message.user("Go on.")]
    assert "previous_response_id" not in body_of(messages, history)
    messages += [answer(1, messages), Message.user("Next.")]
    assert body_of(messages, history)["previous_response_id"] == "resp_1"
    messages += [answer(2, messages), Message.user("Next.")]
    assert body_of(messages, history)["previous_response_id"] == "resp_2"
    assert "previous_response_id" not in body_of(messages, history, options={"store": False})


def test_what_the_caller_links_himself_is_not_taken_for_what_holds_no_stored_answer() -> None:
    history, messages = History(), stored(20)
    body_of(messages, history, options={"conversation": "conv_1"})
    messages += [Message.model("Local.").replace(origin=None), Message.user("Next.")]
    assert "previous_response_id" in body_of(messages, history)


def test_instructions_and_what_is_lost_of_them_go_along_each_time() -> None:
    history, messages = History(), [Message.system("Also."), *stored(20)]
    for number in range(3):
        losses = sent(OPENAI, request_of(messages), history, TARGET)[4]
        assert [str(loss.what) for loss in losses] == ["texts", "texts"]  # pyright: ignore
        assert body_of(messages, history)["instructions"] == "Also.\n\nBe brief."
        messages += [answer(number, messages), Message.user("Next.")]


@st.composite
def linked_conversations(draw: Any) -> list[tuple[list[Message], dict[str, Any]]]:
    said = [[*chat(draw(st.integers(1, 5)), TARGET, WIRE), Message.user("Go on.")]]
    for number in range(draw(st.integers(1, 7))):
        last = list(draw(st.sampled_from(said)))
        match draw(
            st.sampled_from(
                ["stored", "stored", "calls", "local", "broken", "edited", "cut", "late"]
            )
        ):
            case "stored":
                last += [answer(number, last), Message.user("And?")]
            case "calls":
                last += answered(100 + number, TARGET, [*last, answer(number, last)], WIRE)[:-1]
            case "local":
                last += [Message.model("Local."), Message.user("And?")]
            case "broken":
                last += [
                    answer(number, last).replace(finish_reason=FinishReason.error),
                    Message.user("And?"),
                ]
            case "edited":
                last[draw(st.integers(0, len(last) - 1))] = Message.user("Otherwise.")
            case "cut":
                last = [*last[: draw(st.integers(1, len(last)))], Message.user("And?")]
            case _:
                last += [
                    Message.user(ToolResultPart("call_0", "look", "late")),
                    Message.user("And?"),
                ]
        said.append(last)
    options = st.sampled_from(
        [{}, {}, {}, {"store": False}, {"conversation": "c"}, {"previous_response_id": None}]
    )
    return [(messages, draw(options)) for messages in said]


@settings(max_examples=150, deadline=None)
@given(linked_conversations(), st.integers(1, 4), st.sampled_from(TOOLS))
@pytest.mark.slow
def test_the_same_is_sent_with_and_without_memory(
    said: list[tuple[list[Message], dict[str, Any]]], segment: int, tools: Any
) -> None:
    history = History(least=1, segment=segment)
    for messages, options in said:
        request = request_of(messages, tools, options=options)
        assert sent(OPENAI, request, history, TARGET) == sent(OPENAI, request, None, TARGET)
