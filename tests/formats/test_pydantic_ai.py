"""Histories of pydantic-ai come back as they were, say what they said, and give what was signed
back to who signed it."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman import (
    DataPart,
    LinkPart,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    formats,
    wires,
)
from dragoman.codec.digest import chain_neutral_digests
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.formats import pydantic_ai
from dragoman.loss import Loss, Lost
from dragoman.message import FilePart, FinishReason, MarkPart, Origin, ProviderPart, Usage
from support import traffic

TIME = "2026-03-01T10:00:00.250000Z"
LATER = "2026-03-01T10:00:01Z"


def text(content: str, **fields: Any) -> dict[str, Any]:
    return {
        "content": content,
        "id": None,
        "provider_name": None,
        "provider_details": None,
        "part_kind": "text",
        **fields,
    }


def call(id_: str, args: Any, **fields: Any) -> dict[str, Any]:
    none = {"tool_kind": None, "id": None, "provider_name": None, "provider_details": None}
    return {
        "tool_name": "look",
        "args": args,
        "tool_call_id": id_,
        **none,
        "part_kind": "tool-call",
        **fields,
    }


def returned(id_: str, content: Any, **fields: Any) -> dict[str, Any]:
    none = {"tool_kind": None, "metadata": None, "outcome": "success", "retry": None}
    return {
        "tool_name": "look",
        "content": content,
        "tool_call_id": id_,
        "timestamp": LATER,
        **none,
        "part_kind": "tool-return",
        **fields,
    }


def asked(*parts: Any, **fields: Any) -> dict[str, Any]:
    none = {
        "instructions": None,
        "run_id": "r",
        "conversation_id": "c",
        "metadata": None,
        "state": "complete",
    }
    return {"parts": list(parts), "timestamp": TIME, **none, "kind": "request", **fields}


def answered(*parts: Any, **fields: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 12,
        "output_tokens": 5,
        "cache_read_tokens": 0,
        "output_reasoning_tokens": 2,
        "details": {},
    }
    none = {
        "provider_url": None,
        "provider_details": None,
        "run_id": "r",
        "metadata": None,
        "state": "complete",
    }
    known = {
        "model_name": "m-2026",
        "model_id": "test:m",
        "timestamp": LATER,
        "provider_name": None,
        "finish_reason": "stop",
    }
    return {
        "parts": list(parts),
        "usage": usage,
        **known,
        "provider_response_id": None,
        **none,
        "kind": "response",
        **fields,
    }


def said(content: Any) -> dict[str, Any]:
    return {"content": content, "timestamp": TIME, "part_kind": "user-prompt"}


IMAGE = {
    "data": "-_8=",
    "media_type": "image/png",
    "vendor_metadata": {"detail": "low"},
    "kind": "binary",
    "identifier": "i",
}
LINK = {
    "url": "https://files.invalid/a",
    "force_download": False,
    "kind": "image-url",
    "media_type": None,
    "identifier": "a",
}
SYSTEM = {
    "content": "Be kind.",
    "timestamp": TIME,
    "dynamic_ref": None,
    "part_kind": "system-prompt",
}
HISTORY: list[dict[str, Any]] = [
    asked(SYSTEM, said(["Look.", LINK, IMAGE, {"kind": "cache-point", "ttl": "5m"}, ""]), instructions="Be short."),
    answered(
        {"content": "Hm.", "id": None, "signature": "S1", "provider_name": "anthropic", "part_kind": "thinking"},
        {"content": "", "id": "redacted_thinking", "signature": "S2", "provider_name": "anthropic", "part_kind": "thinking"},
        text("I look."),
        call("c1", {"at": 1}),
        call("c2", '{"at": 2}'),
        call("c3", None),
        call("c4", '{"at"'),
        provider_name="anthropic",
        provider_url="https://api.anthropic.com",
        finish_reason="tool_call",
    ),
    asked(
        returned("c1", {"seen": [1, None]}),
        returned("c2", ["See:", IMAGE, {"n": 1}]),
        returned("c3", "Try again.", outcome="retried"),
        returned("c4", "No.", outcome="denied"),
        said("And?"),
        instructions="Be short.",
    ),
    answered(text(""), text("Seen.", citations=[{"sources": []}]), metadata={"mine": 1, "thinking": "x"}),
    asked(said([]), said(""), {"content": "Bad.", "retry": {"cause": "no_output"}, "part_kind": "retry-feedback"}),
    asked(
        {"content": [{"loc": ["a"]}], "tool_name": None, "tool_call_id": "p", "timestamp": TIME, "part_kind": "retry-prompt"},
        {"instructions": [], "part_kind": "instruction-baseline"},
        {"content": "All before.", "id": None, "part_kind": "compaction"},
        {"what": "no one knows", "part_kind": "from-tomorrow"},
        instructions="Be long.",
        timestamp=None,
    ),
    answered(
        {"tool_name": "web_search", "args": {"q": "x"}, "tool_call_id": "s1", "provider_name": "openai", "part_kind": "builtin-tool-call"},
        {"tool_name": "web_search", "content": {"status": "done"}, "tool_call_id": "s1", "provider_name": "openai", "part_kind": "builtin-tool-return"},
        {"content": IMAGE, "id": "ig_1", "provider_name": "openai", "part_kind": "file"},
        {"content": None, "id": "cmp_1", "provider_name": "openai", "provider_details": {"encrypted_content": "E"}, "part_kind": "compaction"},
        {"transcript": "Hear.", "speaker": "assistant", "audio": None, "part_kind": "speech"},
        {"transcript": None, "speaker": "assistant", "audio": IMAGE, "part_kind": "speech"},
        provider_name="openai",
    ),
    asked(state="interrupted"),
]  # fmt: skip


def stored(messages: list[Message]) -> list[Message]:
    return [Message.from_json(message.to_json()) for message in messages]


def test_a_history_comes_back_as_it_was() -> None:
    losses: list[Loss] = []
    messages = pydantic_ai.load_messages(HISTORY)
    assert pydantic_ai.dump_messages(messages, losses=losses) == HISTORY
    assert pydantic_ai.dump_messages(stored(messages)) == HISTORY
    assert losses == []


@pytest.mark.parametrize("index", range(len(HISTORY)))
def test_each_message_comes_back_alone_and_is_told_from_all_others(index: int) -> None:
    one = [HISTORY[index]]
    assert pydantic_ai.dump_messages(pydantic_ai.load_messages(one)) == one
    assert formats.detect(one) == formats.detect(HISTORY[index]) == "pydantic_ai"
    votes = {name: formats.get(name).votes(HISTORY[index]) for name in formats.names()}
    assert votes.pop("pydantic_ai") == 3 > max(votes.values())


def test_what_is_read_is_what_was_said() -> None:
    system, instructions, user, model, results, seen = pydantic_ai.load_messages(HISTORY[:4])
    assert (system.role, system.text, instructions.text) == (Role.SYSTEM, "Be kind.", "Be short.")
    told, link, image, *marks = user.content
    assert isinstance(told, TextPart) and told.text == "Look."
    assert isinstance(link, LinkPart) and link.url == LINK["url"]
    assert isinstance(image, DataPart) and image.data == b"\xfb\xff"
    assert all(isinstance(mark, MarkPart) for mark in marks)
    assert (
        model.created_at is not None and model.created_at.isoformat() == "2026-03-01T10:00:01+00:00"
    )
    assert model.finish_reason is FinishReason.tool_calls
    assert model.usage == Usage(input_tokens=12, output_tokens=5, reasoning_tokens=2)
    assert model.origin == Origin("anthropic", None, "m", "m-2026")
    assert model.thinking == "Hm."
    assert [each.arguments for each in model.tool_calls] == [{"at": 1}, {"at": 2}, {}, {}]
    assert [each.state for each in model.tool_calls] == [
        "complete",
        "complete",
        "complete",
        "invalid",
    ]
    assert [each.id for each in results.tool_results] == ["c1", "c2", "c3", "c4"]
    assert [each.is_error for each in results.tool_results] == [False, False, True, True]
    assert [each.denied for each in results.tool_results] == [False, False, False, True]
    assert results.tool_results[0].result == {"seen": [1, None]}
    assert [type(each) for each in results.tool_results[1].result] == [TextPart, DataPart, TextPart]
    assert results.text == "And?"
    assert seen.metadata == {"mine": 1}


def test_instructions_are_said_once_while_they_stay_the_same() -> None:
    history = [
        asked(said("A"), instructions="I"),
        answered(text("B")),
        asked(said("C"), instructions="I"),
        answered(text("D")),
    ]
    history += [asked(said("E"), instructions="J")]
    messages = pydantic_ai.load_messages(history)
    assert [message.text for message in messages] == ["I", "A", "B", "C", "D", "J", "E"]
    without = [message for message in messages if message.text != "D"]
    assert pydantic_ai.dump_messages(without)[2]["instructions"] == "I"


def test_an_edit_is_written_and_nothing_old_in_its_place() -> None:
    messages = pydantic_ai.load_messages([asked(said("A")), answered(text("B"))])
    edited = [
        message.replace(content=(TextPart("Z", message.content[0].native),)) for message in messages
    ]
    entries = pydantic_ai.dump_messages(edited)
    assert [entry["parts"][0]["content"] for entry in entries] == ["Z", "Z"]


def test_a_result_that_was_changed_has_its_outcome_changed() -> None:
    history = [asked(returned("c1", "Bad.", outcome="retried"), returned("c2", "Good."))]
    (message,) = pydantic_ai.load_messages(history)
    bad, good = message.tool_results
    edited = message.replace(
        content=(replace(bad, result="Good.", is_error=False), replace(good, is_error=True))
    )
    parts = pydantic_ai.dump_messages([edited])[0]["parts"]
    assert [(part["content"], part["outcome"]) for part in parts] == [
        ("Good.", "success"),
        ("Good.", "failed"),
    ]


def test_feedback_that_was_changed_is_a_text() -> None:
    feedback = {
        "content": [{"loc": ["a"]}],
        "retry": {"cause": "validation_error"},
        "part_kind": "retry-feedback",
    }
    (message,) = pydantic_ai.load_messages([asked(feedback)])
    edited = message.replace(content=(replace(message.content[0], text="Short."),))
    assert pydantic_ai.dump_messages([edited])[0]["parts"][0]["content"] == "Short."


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "S1"}
REDACTED = {"type": "redacted_thinking", "data": "S2"}


def test_what_anthropic_signed_goes_back_to_it_as_it_came() -> None:
    messages = pydantic_ai.load_messages(HISTORY[:3])
    body = wires.get("anthropic").dump_messages(messages, target=Origin("anthropic"))
    assert body["messages"][1]["content"][:2] == [THOUGHT, REDACTED]
    elsewhere: list[Loss] = []
    wires.get("google").dump_messages(messages, target=Origin("google"), losses=elsewhere)
    assert Lost.thinking in {loss.what for loss in elsewhere}


def test_reasoning_goes_back_to_openai_as_it_came() -> None:
    own = {"provider_name": "openai", "part_kind": "thinking"}
    first = {
        "content": "A",
        "id": "rs_1",
        "signature": "E",
        **own,
        "provider_details": {"raw_content": ["raw"]},
    }
    history = [
        answered(
            first,
            {"content": "B", "id": "rs_1", "signature": None, **own, "provider_details": None},
            {"content": "", "id": "rs_2", "signature": "F", **own},
            text(
                "Hi",
                id="msg_1",
                provider_name="openai",
                provider_details={"phase": "commentary", "logprobs": [1]},
            ),
            text("Ho", id="msg_1", provider_name="openai"),
            call("c1", '{"at": 1}', id="fc_1", provider_name="openai"),
            provider_name="openai",
        )
    ]
    messages = pydantic_ai.load_messages(history)
    assert pydantic_ai.dump_messages(stored(messages)) == history
    items = wires.get("openai_responses").dump_messages(
        messages, target=Origin("openai-responses")
    )["input"]
    summary = [{"type": "summary_text", "text": each} for each in "AB"]
    raw = [{"type": "reasoning_text", "text": "raw"}]
    texts = [{"type": "output_text", "text": each, "annotations": []} for each in ("Hi", "Ho")]
    assert items == [
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "E", "summary": summary, "content": raw},
        {"type": "reasoning", "id": "rs_2", "encrypted_content": "F", "summary": []},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary", "content": texts},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
    ]  # fmt: skip


def test_what_google_signed_goes_back_to_it_as_it_came() -> None:
    signed = {
        "provider_name": "google",
        "provider_details": {"thought_signature": "U0lH", "more": 1},
    }
    history = [
        asked(said("Look.")),
        answered(
            {"content": "Hm.", "id": None, "part_kind": "thinking"},
            text("", **signed),
            text("Hi", **signed),
            call("pyd_ai_1", {"at": 1}, **signed),
            {"content": {**IMAGE, "data": "AAAA"}, **signed, "part_kind": "file"},
            provider_name="google",
        ),
        asked(returned("pyd_ai_1", "ok")),
    ]
    messages = pydantic_ai.load_messages(history)
    assert pydantic_ai.dump_messages(stored(messages)) == history
    contents = wires.get("google").dump_messages(
        messages, target=Origin("google", model="gemini-3-pro")
    )["contents"]
    assert contents[1]["parts"] == [
        {"text": "Hm.", "thought": True},
        {"text": "", "thoughtSignature": "U0lH"},
        {"text": "Hi", "thoughtSignature": "U0lH"},
        {"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "U0lH"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "U0lH"},
    ]


OUTSIDE = [
    Message.system("Be kind."),
    Message.user(
        "Look.", DataPart(b"\xfb\xff", "image/png"), LinkPart("https://files.invalid/a.pdf")
    ),
    Message(
        Role.MODEL,
        (
            ThinkingPart("Hm.", {"anthropic": {"signature": "S1"}}),
            ThinkingPart("", {"anthropic": REDACTED}),
            TextPart("I look."),
            ToolCallPart("c1", "look", {"at": 1}),
            ToolCallPart("c2", "look", {}, '{"at"', "invalid"),
        ),
        origin=Origin("anthropic", served_model="m"),
        usage=Usage(input_tokens=1, output_tokens=2),
        finish_reason=FinishReason.tool_calls,
        metadata={"mine": [1]},
    ),
    Message(
        Role.USER,
        (
            ToolResultPart("c1", "look", (TextPart("See:"), DataPart(b"x", "image/png"))),
            ToolResultPart("c2", "look", "bad", is_error=True),
        ),
    ),
    Message.model("Seen."),
    Message.user("One."),
    Message.user("Two."),
]


def test_a_conversation_of_ours_is_read_as_it_was_said() -> None:
    losses: list[Loss] = []
    entries = pydantic_ai.dump_messages(OUTSIDE, losses=losses)
    assert [entry["kind"] for entry in entries] == [
        "request",
        "response",
        "request",
        "response",
        "request",
        "request",
    ]
    back = pydantic_ai.load_messages(entries)
    assert chain_neutral_digests(back) == chain_neutral_digests(OUTSIDE)
    assert losses == []
    model = back[2]
    assert model.thinking == "Hm."
    assert (model.origin, model.usage, model.metadata["mine"]) == (
        OUTSIDE[2].origin,
        OUTSIDE[2].usage,
        [1],
    )
    body = wires.get("anthropic").dump_messages(back, target=Origin("anthropic"))
    assert body["messages"][1]["content"][:2] == [THOUGHT, REDACTED]


@pytest.mark.parametrize(
    ("message", "place", "what"),
    [
        (Message.model("A", LinkPart("https://files.invalid/a.png")), 1, Lost.link),
        (Message.model("A", ProviderPart("container", {"anthropic": {}})), 1, Lost.provider),
        (Message.model("A", ThinkingPart("", {"mistral": {"x": 1}})), 1, Lost.thinking),
        (Message.model(ToolResultPart("c", "f", 1)), 0, Lost.tool_result),
        (Message.user("A", ToolCallPart("c", "f")), 1, Lost.tool_call),
        (Message.user("A", ThinkingPart("Hm.")), 1, Lost.thinking),
        (Message.user("A", FilePart("f_1")), 1, Lost.file),
        (Message.user("A", DataPart(b"x", "image/png", "a.png")), 1, Lost.file_name),
        (Message.system("A", DataPart(b"\0", "image/png")), 1, Lost.data),
        (Message.user(ToolResultPart("c", "f", (TextPart("A"), TextPart("B")))), 0, Lost.texts),
    ],
)
def test_what_it_cannot_hold_is_a_loss_with_its_place(
    message: Message, place: int, what: Lost
) -> None:
    losses: list[Loss] = []
    entries = pydantic_ai.dump_messages([Message.user("Before."), message], losses=losses)
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(1, place, what)]
    assert pydantic_ai.dump_messages(pydantic_ai.load_messages(entries)) == entries


def test_a_reasoning_item_of_ours_is_read_as_it_was() -> None:
    thinking = ThinkingPart("Hm.", {"openai_responses": {"id": "rs_1", "encrypted_content": "E"}})
    entries = pydantic_ai.dump_messages(
        [Message(Role.MODEL, (thinking,), origin=Origin("openai-responses"))]
    )
    part = {
        "content": "Hm.",
        "id": "rs_1",
        "provider_name": "openai",
        "signature": "E",
        "part_kind": "thinking",
    }
    assert entries[0]["parts"] == [part]
    back = pydantic_ai.load_messages(entries)[0]
    assert (back.content, back.origin) == ((thinking,), Origin("openai-responses"))


def test_whose_a_response_is_may_be_given_where_it_does_not_say_it() -> None:
    mine = Origin("mine")
    silent, told = pydantic_ai.load_messages(
        [answered(text("A")), answered(text("B"), provider_name="groq")], origin=mine
    )
    assert silent.origin == mine
    assert told.origin == Origin("groq", None, "m", "m-2026")
    (unknown,) = pydantic_ai.load_messages([answered(text("A"))])
    assert unknown.origin == Origin("", model="m", served_model="m-2026")
    (nobody,) = pydantic_ai.load_messages([{"kind": "response", "parts": []}])
    assert nobody.origin is None


def test_a_provider_elsewhere_keeps_its_endpoint() -> None:
    one = [answered(text("A"), provider_name="anthropic", provider_url="https://gate.invalid/v1/")]
    (message,) = pydantic_ai.load_messages(one)
    assert message.origin == Origin("anthropic", "https://gate.invalid/v1", "m", "m-2026")
    assert pydantic_ai.dump_messages([message]) == one


def test_marks_of_others_are_no_loss() -> None:
    losses: list[Loss] = []
    entries = pydantic_ai.dump_messages(
        [Message.model("A", MarkPart("step", {"ai_sdk": {}}))], losses=losses
    )
    assert len(entries[0]["parts"]) == 1
    assert losses == []


def test_a_call_that_was_cut_stays_cut() -> None:
    cut = Message.model(ToolCallPart("c", "look", {}, '{"at"', "cut"))
    assert (
        pydantic_ai.load_messages(pydantic_ai.dump_messages([cut]))[0].tool_calls[0].state == "cut"
    )


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ([{"kind": "request", "parts": []}, 7], "kind"),
        ([{"kind": "request", "parts": []}, {"kind": "other", "parts": []}], "kind"),
        ([{"kind": "request", "parts": []}, {"kind": "request"}], "parts"),
        (
            [{"kind": "request", "parts": []}, {"kind": "response", "parts": [{"content": "x"}]}],
            "parts",
        ),
    ],
)
def test_what_is_no_message_is_refused_by_its_place(payload: Any, field: str) -> None:
    with pytest.raises(HistoryError, match="message 1"):
        pydantic_ai.load_messages(payload)
    problems: list[Problem] = []
    assert len(pydantic_ai.load_messages(payload, problems=problems)) == 1
    assert [(problem.index, problem.field) for problem in problems] == [(1, field)]


@pytest.mark.parametrize("payload", [None, "x", 1, {"messages": []}, {}])
def test_what_is_no_list_is_refused(payload: Any) -> None:
    with pytest.raises(HistoryError, match="list"):
        pydantic_ai.load_messages(payload)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
KINDS = (
    "request",
    "response",
    "text",
    "thinking",
    "tool-return",
    "file",
    "speech",
    "system-prompt",
    "retry-prompt",
)
OBJECTS = ({"part_kind": "text"}, {"kind": "binary"}, {"thought_signature": "x"})
ODD = st.sampled_from(
    [None, "", 0, [], {}, [""], "google", "openai", "anthropic", *KINDS, *OBJECTS]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each place of a JSON value: what holds it, and under which key."""
    keys = (
        list(value)
        if isinstance(value, dict)
        else range(len(value))
        if isinstance(value, list)
        else []
    )
    return [each for key in keys for each in ((value, key), *places(value[key]))]


@given(st.data())
def test_any_change_of_a_history_is_read_exactly_or_refused(data: st.DataObject) -> None:
    history = deepcopy(data.draw(st.lists(st.sampled_from(HISTORY), min_size=1, max_size=3)))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(history) or [([], 0)]))
        if holder and data.draw(st.booleans()):
            holder[key] = data.draw(ODD | JSON)
        elif holder:
            del holder[key]
    before = json.dumps(history, sort_keys=True)
    try:
        messages = pydantic_ai.load_messages(history)
    except HistoryError:
        problems: list[Problem] = []
        pydantic_ai.load_messages(history, problems=problems)
        assert problems
        return
    assert json.dumps(pydantic_ai.dump_messages(messages), sort_keys=True) == before
    for name in ("anthropic", "google", "openai_chat", "openai_responses"):
        wires.get(name).dump_messages(messages)


@given(JSON)
def test_votes_and_loading_never_raise_anything_else(value: Any) -> None:
    assert pydantic_ai.votes(value) in (0, 3)
    with suppress(HistoryError):
        pydantic_ai.load_messages(value)


def test_no_recorded_body_is_mistaken_for_it() -> None:
    seen = 0
    for folder in traffic.WIRES:
        for exchange in traffic.exchanges(folder):
            body = exchange.request if isinstance(exchange.request, dict) else {}
            for field in ("messages", "contents", "input"):
                for message in body.get(field) or [] if isinstance(body.get(field), list) else []:
                    seen += 1
                    assert pydantic_ai.votes(message) == 0
    assert seen


@pytest.mark.parametrize("folder", ["anthropic", "google", "openai_chat", "openai_responses"])
def test_recorded_conversations_say_the_same_in_it(folder: str) -> None:
    wire = wires.get(traffic.WIRES[folder])
    seen = 0
    for exchange in list(traffic.exchanges(folder))[::5]:
        if not isinstance(exchange.request, dict):
            continue
        try:
            messages = wire.load_request(exchange.request, path=exchange.url).messages
        except HistoryError:
            continue
        losses: list[Loss] = []
        entries = pydantic_ai.dump_messages(messages, losses=losses)
        back = pydantic_ai.load_messages(entries)
        assert pydantic_ai.dump_messages(back) == entries
        if not losses:
            seen += 1
            assert chain_neutral_digests(back) == chain_neutral_digests(messages), exchange
    assert seen


@pytest.mark.parametrize("provider", ["openai-responses", "openai", "groq", "vendor", None])
def test_raw_reasoning_is_read_again_whoever_answered(provider: str | None) -> None:
    own = {"id": "rs_1", "encrypted_content": "E"}
    pieces = {"spelling": {"pieces": {"summary": [1], "content": [3]}}}
    thinking = ThinkingPart("A\n\nraw", {"openai_responses": own, "openai_responses:notes": pieces})
    message = Message.model(thinking, "So.").replace(origin=Origin(provider) if provider else None)
    [again] = pydantic_ai.load_messages(pydantic_ai.dump_messages([message]))
    assert again.thinking == message.thinking


def test_a_message_that_nests_too_deep_is_left_out_alone() -> None:
    def answer(depth: int) -> dict[str, Any]:
        value: Any = "it"
        for _ in range(depth - 3):  # the message, its parts and the part are the others
            value = [value]
        return {
            "kind": "response",
            "parts": [{"part_kind": "text", "content": "Ho.", "odd": value}],
        }

    problems: list[Any] = []
    history = [answer(128), answer(129), answer(5)]
    assert len(pydantic_ai.load_messages(history, problems=problems)) == 2
    assert [problem.index for problem in problems] == [1]
    assert pydantic_ai.dump_messages(pydantic_ai.load_messages(history[:1])) == history[:1]
    with pytest.raises(HistoryError, match="deeper than 128 levels"):
        pydantic_ai.load_messages(history)
