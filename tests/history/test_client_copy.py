"""What a client's copy changes in a conversation, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import formats
from dragoman.errors import HistoryError, SettingsError
from dragoman.history import Changes, MessageList, put
from dragoman.message import (
    DataPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from support.work import calls

PNG = b"\x89PNG\r\n\x1a\n picture"
SIGNED = ThinkingPart("Hm.", {"anthropic": {"signature": "c2lnbmVk"}})
U1, U2 = (
    Message.user("How warm is it?").replace(id="u1"),
    Message.user("And tomorrow?").replace(id="u2"),
)
CALL = Message.model(SIGNED, ToolCallPart("c1", "weather", {"city": "Rome"})).replace(
    id="a1", origin=Origin("anthropic")
)
RESULT = Message.user(ToolResultPart("c1", "weather", {"t": 21})).replace(id="r1")
A1, A2 = (
    Message.model("21 degrees.").replace(id="a2"),
    Message.model(SIGNED, "22 degrees.").replace(id="a3"),
)
SYSTEM = Message.system("Be brief.").replace(id="s")
STORED = [SYSTEM, U1, CALL, RESULT, A1, U2, A2]


def chat(*texts: str) -> list[dict[str, Any]]:
    """User and assistant in turn."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def ui(message: Message, *parts: dict[str, Any]) -> dict[str, Any]:
    role = "assistant" if message.role is Role.MODEL else "user"
    return {
        "id": message.id,
        "role": role,
        "parts": list(parts) or [{"type": "text", "text": message.text}],
    }


def same(these: Any, those: Any) -> bool:
    return len(these) == len(those) and all(a is b for a, b in zip(these, those, strict=True))


def check(
    changes: Changes, expected: list[Message], *, branched: int | None, removed: list[Message]
) -> None:
    """`expected`: those that are stored are to be the same objects; of others the text counts."""
    assert [message.text for message in changes.messages] == [message.text for message in expected]
    known = {id(message) for message in STORED}
    assert all(a is b for a, b in zip(changes.messages, expected, strict=True) if id(b) in known)
    assert changes.branched == branched
    assert same(changes.removed, removed)


# a client that shows texts alone: no ids, no tools, no thinking, no system message

TEXTS = chat(U1.text, A1.text, U2.text, A2.text)
NEW = Message.user("Why?")


def test_a_client_that_shows_texts_alone_loses_nothing() -> None:
    changes = put(STORED, "openai_chat", [*TEXTS, {"role": "user", "content": "Why?"}])
    check(changes, [*STORED, NEW], branched=None, removed=[])
    assert [message.text for message in changes.added] == ["Why?"]


def test_the_answer_is_made_anew_where_the_copy_ends_in_its_question() -> None:
    check(put(STORED, "openai_chat", TEXTS[:3]), STORED[:6], branched=6, removed=[A2])


def test_an_edited_question_keeps_its_id_and_cuts_what_is_behind_it() -> None:
    changes = put(
        STORED, "openai_chat", [*TEXTS[:2], {"role": "user", "content": "And on Monday?"}]
    )
    check(changes, [*STORED[:5], Message.user("And on Monday?")], branched=5, removed=[A2])
    assert [message.id for message in changes.edited] == ["u2"]


def test_an_edit_in_the_middle_keeps_what_is_behind_it() -> None:
    changes = put(
        STORED, "openai_chat", [{"role": "user", "content": "How cold is it?"}, *TEXTS[1:]]
    )
    check(changes, [SYSTEM, Message.user("How cold is it?"), *STORED[2:]], branched=1, removed=[])


def test_a_deleted_exchange_goes_with_its_tool_calls() -> None:
    stored = [*STORED, Message.user("Thanks."), Message.model("Bye.")]
    changes = put(stored, "openai_chat", chat("How warm is it?", "21 degrees.", "Thanks.", "Bye."))
    assert same(changes.removed, [U2, A2])
    stored = [Message.user("Hello."), Message.model("Hi."), *STORED[1:]]
    changes = put(stored, "openai_chat", chat("Hello.", "Hi.", "And tomorrow?", "22 degrees."))
    assert same(changes.removed, [U1, CALL, RESULT, A1])


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_end_of_a_conversation_is_no_deletion_of_its_beginning(number: int) -> None:
    changes = put(STORED, "openai_chat", [*TEXTS[-number:], {"role": "user", "content": "Why?"}])
    check(changes, [*STORED, NEW], branched=None, removed=[])


def test_a_whole_copy_says_so() -> None:
    changes = put(STORED, "openai_chat", [*TEXTS[2:], *chat("Why?")], whole=True)
    check(changes, [SYSTEM, U2, A2, NEW], branched=1, removed=[U1, CALL, RESULT, A1])


def test_R_05_a_client_that_sends_its_last_message_only_empties_nothing() -> None:
    check(put(STORED, "openai_chat", chat("Why?")), [*STORED, NEW], branched=None, removed=[])
    check(put(STORED, "openai_chat", "Why?"), [*STORED, NEW], branched=None, removed=[])
    check(put(STORED, "openai_chat", chat("Why?")[0]), [*STORED, NEW], branched=None, removed=[])


def test_R_05_a_question_that_was_asked_before_is_a_new_one() -> None:
    changes = put(STORED, "openai_chat", chat("How warm is it?"))
    check(changes, [*STORED, Message.user("How warm is it?")], branched=None, removed=[])
    again = put(changes.messages, "openai_chat", chat("How warm is it?"))
    assert same(again.messages, changes.messages)  # it is sent again, and was not answered


def test_R_05_an_echoed_answer_changes_nothing() -> None:
    for number in (1, 3):
        payload = [{"role": "assistant", "content": A2.text}] if number == 1 else TEXTS[-number:]
        check(put(STORED, "openai_chat", payload), STORED, branched=None, removed=[])


def test_R_05_an_unstored_answer_is_kept() -> None:
    changes = put([U1], "openai_chat", chat("How warm is it?", "Warm.", "Why?"))
    assert [(message.role, message.text) for message in changes.messages] == [
        ("user", "How warm is it?"), ("model", "Warm."), ("user", "Why?")
    ]  # fmt: skip
    assert changes.branched is None


def test_R_05_questions_alone_that_are_sent_again() -> None:
    payload = [
        {"role": "user", "content": text} for text in ("How warm is it?", "And tomorrow?", "Why?")
    ]
    check(put(STORED, "openai_chat", payload), [*STORED, NEW], branched=None, removed=[])


def test_equal_turns_are_aligned_from_the_start() -> None:
    stored = [Message.user("hi"), Message.model("yes"), Message.user("hi"), Message.model("yes")]
    changes = put(stored, "openai_chat", chat("hi", "yes", "new"))
    assert same(changes.messages[:2], stored[:2])
    assert changes.branched == 2
    assert same(put(stored, "openai_chat", chat("hi", "yes", "hi", "yes")).messages, stored)


def test_a_payload_that_shares_nothing_is_an_addition() -> None:
    changes = put(STORED, "openai_chat", chat("Who?", "Me.", "Why?"))
    assert same(changes.messages[:7], STORED)
    assert [message.text for message in changes.added] == ["Who?", "Me.", "Why?"]


def test_nothing_is_no_change() -> None:
    for payload in ([], "", None, {"messages": []}):
        assert same(put(STORED, "openai_chat", payload).messages, STORED)
    assert put([], "openai_chat", chat("Why?")).added == (NEW,)


def test_a_copy_that_begins_as_the_list_and_ends_earlier_has_lost_its_end() -> None:
    check(put(STORED, "openai_chat", TEXTS[:2]), STORED[:5], branched=5, removed=[U2, A2])
    stored = [*STORED, Message.user("Thanks."), Message.model("Bye.")]
    assert same(put(stored, "openai_chat", TEXTS[2:]).messages, stored)
    assert same(put(stored, "openai_chat", TEXTS[2:], whole=True).messages, [SYSTEM, U2, A2])


@pytest.mark.parametrize("cut", [3, 11])
def test_an_answer_that_the_client_split_is_the_stored_one(cut: int) -> None:
    halves = [
        {"role": "assistant", "content": text} for text in (A1.text[:cut], A1.text[cut:]) if text
    ]
    check(
        put(STORED, "openai_chat", [TEXTS[0], *halves, *TEXTS[2:]]),
        STORED,
        branched=None,
        removed=[],
    )
    assert put([U1, A1], "openai_chat", [*TEXTS[:1], *halves, *TEXTS[2:3]]).messages[:2] == (U1, A1)


# ids


def test_an_edit_has_the_old_id() -> None:
    body = {"id": "t", "messages": [ui(U1), ui(A1), ui(U2, {"type": "text", "text": "On Monday?"})], "messageId": "u2",
            "trigger": "submit-message"}  # fmt: skip
    changes = put([U1, A1, U2, A2], "ai_sdk_ui", body)
    assert [(message.id, message.text) for message in changes.edited] == [("u2", "On Monday?")]
    assert (changes.branched, [message.id for message in changes.removed]) == (2, ["a3"])


def test_a_single_message_with_a_known_id_is_an_edit() -> None:
    body = {
        "id": "t",
        "message": ui(U2, {"type": "text", "text": "On Monday?"}),
        "trigger": "submit-message",
    }
    changes = put([U1, A1, U2, A2], "ai_sdk_ui", body)
    assert [message.text for message in changes.messages] == [U1.text, A1.text, "On Monday?"]
    body["message"] = ui(U2.replace(id="u9"), {"type": "text", "text": "On Monday?"})
    assert [message.text for message in put([U1, A1, U2, A2], "ai_sdk_ui", body).added] == [
        "On Monday?"
    ]


@pytest.mark.parametrize("sent", [1, 2, 4])
def test_a_regeneration_ends_at_the_user(sent: int) -> None:
    copy = [ui(U1), ui(A1), ui(U2), ui(A2)]
    body = {
        "id": "t",
        "messages": copy[:sent],
        "trigger": "regenerate-message",
        "messageId": "a2" if sent < 4 else "a3",
    }
    changes = put([U1, A1, U2, A2], "ai_sdk_ui", body)
    assert same(changes.messages, [U1] if sent < 4 else [U1, A1, U2])
    assert changes.branched == len(changes.messages)


def test_a_regeneration_that_sends_no_messages() -> None:
    for target, kept in (
        ("a3", STORED[:6]),
        ("u2", STORED[:6]),
        ("a2", STORED[:2]),
        ("r1", STORED[:2]),
        (None, STORED[:6]),
    ):
        body = {"id": "t", "messages": [], "trigger": "regenerate-message", "messageId": target}
        assert same(put(STORED, "ai_sdk_ui", body).messages, kept)
    with pytest.raises(HistoryError):
        put(
            STORED,
            "ai_sdk_ui",
            {"id": "t", "messages": [], "trigger": "regenerate-message", "messageId": "x"},
        )


def test_a_turn_without_its_step_marks_stays_in_order() -> None:
    parts = [{"type": "tool-weather", "toolCallId": "c1", "input": {"city": "Rome"}, "state": "output-available", "output": {"t": 21}},
             {"type": "text", "text": A1.text}]  # fmt: skip
    copy = [ui(U1), ui(CALL, *parts), ui(U2), ui(A2), ui(NEW.replace(id="u9"))]
    check(put(STORED, "ai_sdk_ui", copy), [*STORED, NEW], branched=None, removed=[])
    copy[2]["parts"][0]["text"] = "On Monday?"
    assert same(put(STORED, "ai_sdk_ui", copy[:3]).messages[:5], STORED[:5])


def test_M_40b_the_stored_answer_wins() -> None:
    copy = [ui(U1), ui(A1, {"type": "text", "text": "99 degrees."}), ui(NEW.replace(id="u9"))]
    changes = put([U1, A1], "ai_sdk_ui", copy)
    assert same(changes.messages[:2], [U1, A1])
    changes = put([U1, A1], "ai_sdk_ui", copy, answers=True)
    assert [message.text for message in changes.messages] == [U1.text, "99 degrees.", "Why?"]
    assert [message.id for message in changes.edited] == ["a2"]


def test_M_40b_outcomes_of_pending_calls_are_taken() -> None:
    stored = [U1, CALL]
    part = {"type": "tool-weather", "toolCallId": "c1", "input": {"city": "Oslo"}}
    for more, is_error in (({"state": "output-available", "output": 3}, False), ({"state": "output-error", "errorText": "no"}, True),
                           ({"state": "output-denied", "approval": {"id": "x", "approved": False}}, True)):  # fmt: skip
        changes = put(stored, "ai_sdk_ui", [ui(U1), ui(CALL, {**part, **more})])
        assert same(changes.messages[:2], stored)
        assert [result.is_error for result in changes.added[0].tool_results] == [is_error]
        assert changes.branched is None
    changes = put(
        [*stored, RESULT], "ai_sdk_ui", [ui(U1), ui(CALL, {**part, "state": "input-available"})]
    )
    assert same(changes.messages, [U1, CALL, RESULT])  # never backwards


def test_M_40b_a_result_for_one_of_several_calls() -> None:
    calls = Message.model(ToolCallPart("c1", "weather"), ToolCallPart("c2", "weather"))
    stored = [U1, calls, RESULT]
    payload = formats.get("openai_chat").dump_messages(
        [*stored, Message.user(ToolResultPart("c2", "weather", 5))]
    )
    changes = put(stored, "openai_chat", payload)
    assert same(changes.messages[:3], stored)
    assert [result.id for message in changes.added for result in message.tool_results] == ["c2"]


@pytest.mark.parametrize(("approval", "answer"), [
    ({"id": "x", "approved": True}, {"approved": True}),
    ({"id": "x", "approved": False, "reason": "no"}, {"approved": False, "reason": "no"}),
])  # fmt: skip
def test_approvals_are_answers(approval: dict[str, Any], answer: dict[str, Any]) -> None:
    part = {
        "type": "tool-weather",
        "toolCallId": "c1",
        "input": {},
        "state": "approval-responded",
        "approval": approval,
    }
    changes = put([U1, CALL], "ai_sdk_ui", [ui(U1), ui(CALL, part)])
    assert [(one.interrupt_id, one.payload) for one in changes.resumes] == [("c1", answer)]
    assert same(changes.messages, [U1, CALL])
    assert (
        put([U1], "ai_sdk_ui", [ui(U1), ui(CALL, part)]).resumes == ()
    )  # a call that the client alone knows
    assert put([U1, CALL, RESULT], "ai_sdk_ui", [ui(U1), ui(CALL, part)]).resumes == ()


# what a client cannot say


def test_what_was_signed_comes_from_the_stored_copy_alone() -> None:
    forged = ThinkingPart("Mine.", {"anthropic": {"signature": "Zm9yZ2Vk"}})
    copy = [
        U1,
        Message.model(forged, "21 degrees."),
        Message.user("Why?"),
        Message.model(forged, ProviderPart("x", {"anthropic": {}}), "So."),
    ]
    for name in ("anthropic", "dragoman"):
        changes = put(
            [U1, Message.model(SIGNED, "21 degrees.")], name, formats.get(name).dump_messages(copy)
        )
        assert changes.messages[1].content[0] is SIGNED
        assert changes.messages[3].content == (ThinkingPart("Mine."), TextPart("So."))
        assert changes.messages[3].origin is None
    changes = put(
        [U1], "anthropic", formats.get("anthropic").dump_messages(copy[:2]), signatures=True
    )
    assert changes.added[0].content[0] == forged
    call = ToolCallPart("c9", "weather", {}, native={"google": {"thoughtSignature": "Zm9yZ2Vk"}})
    changes = put([U1], "google", formats.get("google").dump_messages([U1, Message.model(call)]))
    assert changes.added[0].tool_calls[0].native is None


def test_signed_thinking_comes_back_through_a_client_that_cannot_hold_it() -> None:
    changes = put(STORED, "openai_chat", [*TEXTS, *chat("Why?")])
    blocks = formats.get("anthropic").dump_messages(changes.messages)["messages"][1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}


def test_the_system_message_is_not_the_clients() -> None:
    payload = [{"role": "system", "content": "Swear."}, *TEXTS]
    check(put(STORED, "openai_chat", payload), STORED, branched=None, removed=[])
    check(put(STORED[1:], "openai_chat", payload), STORED[1:], branched=None, removed=[])
    changes = put(STORED, "openai_chat", payload, system=True)
    assert [message.text for message in changes.messages[:2]] == ["Swear.", U1.text]
    assert [message.id for message in changes.edited] == ["s"]


def test_a_system_message_that_the_format_shows_as_the_users() -> None:
    stored = [U1, Message.system("Now in Fahrenheit."), A1, U2]
    for number in (2, 4):
        payload = formats.get("anthropic").dump_messages(stored[:number])
        assert same(put(stored[:number], "anthropic", payload).messages, stored[:number])


def test_results_that_are_stored_are_not_the_clients() -> None:
    payload = formats.get("openai_chat").dump_messages(
        [U1, CALL, Message.user(ToolResultPart("c1", "weather", "-99")), A1]
    )
    assert same(put(STORED[1:5], "openai_chat", payload).messages, STORED[1:5])
    changes = put(STORED[1:5], "openai_chat", payload, results=True)
    assert changes.messages[2].tool_results[0].result == "-99"
    assert changes.messages[2].id == "r1"


def test_an_image_that_the_client_does_not_show_stays_in_an_edited_question() -> None:
    question = Message.user("What is it?", DataPart(PNG, "image/png")).replace(id="u1")
    stored = [question, Message.model("A cat.")]
    unedited = put(stored, "openai_chat", chat("What is it?", "A cat.", "Why?"))
    assert unedited.messages[0] is question
    seen = formats.get("openai_chat").dump_messages(stored)
    seen[0]["content"][0]["text"] = "Who is it?"
    changes = put(stored, "openai_chat", seen)
    assert changes.messages[0].content == (TextPart("Who is it?"), question.content[1])


def test_a_copy_whose_pieces_are_in_another_order_is_no_edit() -> None:
    question = Message.user("What is it?", DataPart(PNG, "image/png", "cat.png"))
    payload = formats.get("ollama").dump_messages([question])
    assert put([question], "ollama", payload).messages[0] is question


# request bodies


def test_a_response_that_is_gone_on_with() -> None:
    a1 = A1.replace(origin=Origin("openai", response_id="resp_1"))
    stored = [U1, a1, U2, A2]
    body = {"model": "gpt-5.2", "previous_response_id": "resp_1", "input": "Why?"}
    changes = put(stored, "openai_responses", body)
    assert [message.text for message in changes.messages] == [U1.text, A1.text, "Why?"]
    assert changes.branched == 2
    assert same(put(changes.messages, "openai_responses", body).messages, changes.messages)
    assert same(put(stored[:2], "openai_responses", body).messages[:2], stored[:2])


@pytest.mark.parametrize(
    "name",
    ["openai_chat", "anthropic", "google", "openai_responses", "mistral", "cohere", "ollama"],
)
def test_whole_bodies_of_requests(name: str) -> None:
    payload = formats.get(name).dump_messages([*STORED, NEW])
    body = {
        "model": "m",
        "stream": True,
        **(payload if isinstance(payload, dict) else {"messages": payload}),
    }
    changes = put(STORED, name, body)
    check(changes, [*STORED, NEW], branched=None, removed=[])


def test_what_is_no_conversation_of_the_format() -> None:
    for payload in (1, {"messages": 1}, [1], [{"role": "x"}], {"contents": [{"parts": 3}]}, [[]]):
        with pytest.raises(HistoryError):
            put(STORED, "openai_chat", payload)
    with pytest.raises(SettingsError):
        put(STORED, "no_format", [])


# in a list


def test_a_list_keeps_what_is_replaced_as_a_branch() -> None:
    made = MessageList(STORED)
    before = list(made)
    assert same(made.put("openai_chat", TEXTS).messages, before)
    assert same(list(made), before)
    assert made.branches == ()
    changes = made.put("openai_chat", [*TEXTS[:2], {"role": "user", "content": "On Monday?"}])
    assert [message.text for message in made.get()][-2:] == ["21 degrees.", "On Monday?"]
    assert same(list(made)[:5], before[:5])
    assert [message.text for message in made.branches[0].messages] == [U2.text, A2.text]
    assert made.get()[-1] is changes.messages[-1] is changes.edited[0]
    assert made.get()[-1].id == "u2"


def test_a_list_gives_new_messages_ids_and_saves_them() -> None:
    made = MessageList()
    made.add(STORED, source="memory")
    changes = made.put("openai_chat", [*TEXTS, *chat("Why?")])
    assert changes.added[0].id
    assert changes.added[0].created_at
    assert same(made.unsaved(), changes.added)
    assert MessageList.load(made.dump()).get() == made.get()


def test_a_list_takes_messages_in_any_place() -> None:
    made = MessageList(STORED[1:])
    made.put("openai_chat", [*TEXTS[:2], *chat("Oh.", "Yes."), *TEXTS[2:]])
    assert [message.text for message in made.get() if message.text][1:] == [
        A1.text,
        "Oh.",
        "Yes.",
        U2.text,
        A2.text,
    ]
    copy = MessageList.load(made.dump())
    assert copy.get() == made.get()
    made.add("Go on.")
    assert made.get()[-1].text == "Go on."


def test_a_list_changes_its_system_messages_where_that_is_allowed() -> None:
    made = MessageList(STORED)
    made.put("openai_chat", [{"role": "system", "content": "Swear."}, *TEXTS])
    assert [message.text for message in made.system] == ["Be brief."]
    made.put("openai_chat", [{"role": "system", "content": "Swear."}, *TEXTS], system=True)
    assert [message.text for message in made.system] == ["Swear."]
    assert len(made) == 7


def test_a_payload_that_cannot_be_read_changes_nothing_in_a_list() -> None:
    made = MessageList(STORED)
    before = list(made)
    with pytest.raises(HistoryError):
        made.put("openai_chat", [*TEXTS, {"role": "user", "content": 1}])
    assert same(list(made), before)


def test_a_question_costs_the_same_after_any_number_of_messages() -> None:
    def list_of(turns: int) -> MessageList:
        talk = [Message.user("And now?"), CALL.replace(id=None), RESULT.replace(id=None)]
        messages = MessageList([*talk, Message.model("As before.")] * turns)
        messages.put("ai_sdk_ui", [question("q0")])  # what is made once
        return messages

    def question(id_: str) -> dict[str, Any]:
        return {"id": id_, "role": "user", "parts": [{"type": "text", "text": f"Why {id_}?"}]}

    few, many = list_of(10), list_of(1000)
    few_calls = calls(lambda: few.put("ai_sdk_ui", [question("q1")]))
    changes: list[Changes] = []
    many_calls = calls(lambda: changes.append(many.put("ai_sdk_ui", [question("q1")])))
    assert many_calls <= few_calls + 20
    assert [message.id for message in changes[0].added] == ["q1"]
    assert changes[0].messages[:-1] == tuple(many)[:-1]
    assert changes[0].branched is None
