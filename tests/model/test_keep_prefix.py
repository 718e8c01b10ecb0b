"""A request keeps what its conversation began with, and says at its end what has changed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, dump_messages, load_messages, wires
from dragoman.codec.opening import find_opening
from dragoman.errors import InvalidRequestError
from dragoman.loss import Lost
from dragoman.message import Origin, Role, ThinkingPart
from dragoman.model.keep_prefix import drop_mismatches, keep_prefix
from dragoman.model_profile import ModelProfile
from dragoman.request import ModelRequest, ToolSpec

WIRE = wires.get("anthropic")
TARGET = Origin("anthropic", "https://api.anthropic.com/v1", "m")
BOUND = ModelProfile(binds="prefix", midsys=True)
TOOLS = {name: ToolSpec(name, f"Does {name}.") for name in ("dig", "fill", "look")}
REFUSED = InvalidRequestError(
    "messages.1.content.0: The block is bound to a different conversation."
)


def ask(
    history: list[Message], system: str, tools: tuple[str, ...] = (), profile: ModelProfile = BOUND
) -> tuple[ModelRequest, list[Message]]:
    """Asks one more question → the request as it is sent, and the history with its answer."""
    messages = [*history, Message.user(f"Question {len(history)}.")]
    head = [Message.system(system)] if system else []
    request = ModelRequest("m", (*head, *messages), tuple(TOOLS[name] for name in tools))
    kept = keep_prefix(request, TARGET, lambda _: profile, WIRE)
    answer = Message(Role.MODEL, ("Yes.",), origin=kept.target, native=kept.note.add_to(None))
    return kept.request, [*messages, answer]


turns = st.lists(
    st.tuples(
        st.sampled_from(["", "You dig.", "You fill."]),
        st.lists(st.sampled_from(list(TOOLS)), unique=True, max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


@given(turns, st.booleans())
def test_whatever_changes_each_request_begins_with_the_one_before(
    changes: list[tuple[str, tuple[str, ...]]], is_stored: bool
) -> None:
    history: list[Message] = []
    requests = []
    for system, tools in changes:
        request, history = ask(history, system, tools)
        if is_stored:
            history = load_messages(dump_messages(history))
        requests.append(request)
    for before, after in pairwise(requests):
        assert after.tools == before.tools
        said = [message.replace(native=None) for message in before.messages]
        assert [message.replace(native=None) for message in after.messages][: len(said)] == said


def test_a_changed_text_follows_the_newest_user_message_and_stays_there() -> None:
    _, history = ask([], "You dig.")
    request, history = ask(history, "You fill.")
    assert [message.text for message in request.messages] == [
        "You dig.", "Question 0.", "Yes.", "Question 2.", "You fill.",
    ]  # fmt: skip
    request, _ = ask(history, "You fill.")
    assert [message.text for message in request.messages] == [
        "You dig.", "Question 0.", "Yes.", "Question 2.", "You fill.", "Yes.", "Question 4.",
    ]  # fmt: skip


def test_added_and_removed_tools_are_said_by_the_blocks_of_the_api() -> None:
    _, history = ask([], "", ("dig", "fill"))
    request, _ = ask(history, "", ("fill", "look"))
    assert [tool.name for tool in request.tools] == ["dig", "fill"]
    body = WIRE.dump_request(request, target=TARGET)
    assert body["messages"][-1]["role"] == "system"
    removal, addition = body["messages"][-1]["content"]
    assert removal == {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "dig"}}
    assert addition["type"] == "tool_addition"
    assert addition["tool"]["definition"]["name"] == "look"
    beta = WIRE.dump_http(request, target=TARGET).headers["anthropic-beta"].split(",")
    assert {"mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"} <= {*beta}


def test_a_model_that_heeds_no_system_message_there_gets_the_new_text_and_a_loss() -> None:
    profile = ModelProfile(binds="prefix", midsys=False)
    _, history = ask([], "You dig.", profile=profile)
    messages = (Message.system("You fill."), *history, Message.user("And now?"))
    kept = keep_prefix(ModelRequest("m", messages), TARGET, lambda _: profile, WIRE)
    assert kept.request.messages == messages
    [loss] = kept.losses
    assert (loss.what, loss.which) == (Lost.prefix, "system")
    assert "1 messages" in loss.why


def test_break_sends_the_new_text_in_place_of_the_old_one() -> None:
    _, history = ask([], "You dig.")
    messages = (Message.system("You fill."), *history, Message.user("And now?"))
    kept = keep_prefix(ModelRequest("m", messages, prefix="break"), TARGET, lambda _: BOUND, WIRE)
    assert kept.request.messages == messages
    assert [loss.what for loss in kept.losses] == [Lost.prefix]


def test_an_unknown_model_and_other_wires_get_the_request_as_it_is() -> None:
    request = ModelRequest("m", (Message.system("You dig."), Message.user("Go.")))
    kept = keep_prefix(request, TARGET, lambda _: ModelProfile(), WIRE)
    assert kept.request is request
    assert kept.target == TARGET
    kept = keep_prefix(request, TARGET, lambda _: BOUND, wires.get("openai_chat"))
    assert kept.request is request


def test_a_mismatch_is_sent_again_once_and_said_with_every_later_request() -> None:
    request = ModelRequest("m", (Message.user("Go."),))
    again = drop_mismatches(request, REFUSED)
    assert again is not None
    assert drop_mismatches(again, REFUSED) is None
    kept = keep_prefix(again, TARGET, lambda _: BOUND, WIRE)
    assert [loss.what for loss in kept.losses] == [Lost.thinking]
    answer = Message(Role.MODEL, ("Yes.",), origin=kept.target, native=kept.note.add_to(None))
    [answer] = load_messages(dump_messages([answer]))
    later = keep_prefix(
        ModelRequest("m", (*request.messages, answer, Message.user("And now?"))),
        TARGET,
        lambda _: BOUND,
        WIRE,
    )
    assert later.request.prefix == "drop"
    assert later.losses == ()
    body = WIRE.dump_request(later.request, target=TARGET)
    assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


def test_thinking_that_the_model_does_not_read_is_told_beforehand() -> None:
    thought = ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}})
    origins = [Origin("anthropic", model=name) for name in ("m", "other-1", "stranger")]
    messages = [Message(Role.MODEL, (thought, "Yes."), origin=origin) for origin in origins]
    profile = ModelProfile(reads=("other",))
    kept = keep_prefix(
        ModelRequest("m", (Message.user("Go."), *messages, Message.user("And?"))),
        Origin("anthropic", model="m"),
        lambda _: profile,
        WIRE,
    )
    assert [(loss.message, loss.what) for loss in kept.losses] == [(3, Lost.thinking)]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ModelRequest("m", on_loss="error"), REFUSED),
        (ModelRequest("m", as_sent=True), REFUSED),
        (ModelRequest("m"), InvalidRequestError("temperature: too high")),
    ],
    ids=["losses are refused", "a client's own request", "another error"],
)
def test_what_is_not_sent_again(request_: ModelRequest, error: InvalidRequestError) -> None:
    assert drop_mismatches(request_, error) is None


@pytest.mark.parametrize(
    "note", [{}, {"began": 3}, {"change": {"message": "no"}}, "text", [1], {"drops": "yes"}]
)
def test_a_note_that_somebody_else_wrote_is_passed_over(note: object) -> None:
    message = Message(Role.MODEL, ("Yes.",), origin=TARGET, native={"dragoman": {"prefix": note}})
    assert find_opening([message], TARGET).began is None
