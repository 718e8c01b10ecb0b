"""The format langchain: what LangChain writes comes back as it was; what others said is said in
it."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    DataPart,
    LinkPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    formats,
    wires,
)
from dragoman.codec.json_values import text_or_json
from dragoman.errors import HistoryError
from dragoman.formats import langchain
from dragoman.loss import Loss, Lost
from dragoman.message import FinishReason, MarkPart, Origin, ProviderPart, Role, Usage
from support import strategies, traffic


def of(type_: str, content: Any = "", **fields: Any) -> dict[str, Any]:
    """A message as `messages_to_dict` writes it."""
    usual: dict[str, Any] = {
        "additional_kwargs": {},
        "response_metadata": {},
        "type": type_,
        "name": None,
        "id": None,
    }
    own: dict[str, Any] = {}
    if type_ in ("ai", "AIMessageChunk"):
        own = {"tool_calls": [], "invalid_tool_calls": [], "usage_metadata": None}
    if type_ == "AIMessageChunk":
        own |= {"tool_call_chunks": [], "chunk_position": None}
    if type_ == "tool":
        own = {"tool_call_id": "", "artifact": None, "status": "success"}
    return {"type": type_, "data": {"content": content, **usual, **own, **fields}}


def call(id_: str | None, name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": id_, "type": "tool_call"}


PNG = "iVBORw0KGgo="
SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "it"}}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "So."}],
    "encrypted_content": "e",
}
CLAUDE = {
    "model_provider": "anthropic",
    "model_name": "claude-x",
    "id": "msg_1",
    "stop_reason": "tool_use",
}
GPT = {"model_provider": "openai", "model_name": "gpt-x", "id": "resp_1", "status": "completed"}
TALK = [
    of("system", "Be brief."),
    of("human", "Hi.", id="h1", name="bob"),
    of("ai", "I look.", id="run-1", tool_calls=[call("c1", "look", at="it"), call("c2", "see")]),
    of("tool", "seen", tool_call_id="c1", name="look", id="t1"),
    of("tool", "no", tool_call_id="c2", status="error", artifact={"rows": [1]}),
    of("ai", "Done.", usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "input_token_details": {"cache_read": 1, "audio": 0}}),
]  # fmt: skip
MEDIA = [
    of("human", [
        {"type": "text", "text": "See"},
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
        {"type": "image", "url": "https://a.test/b.png"},
        {"type": "file", "base64": PNG, "mime_type": "application/pdf", "extras": {"filename": "a.pdf", "x": 1}},
        {"type": "file", "file_id": "file-1"},
        {"type": "video", "url": "https://a.test/v", "index": 3},
        {"type": "text-plain", "text": "Plain.", "mime_type": "text/plain"},
        {"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"},
        {"type": "audio", "source_type": "url", "url": "https://a.test/a", "mime_type": "audio/wav"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
        {"type": "image_url", "image_url": "https://a.test/c"},
        {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "text", "text": "Kept.", "cache_control": {"type": "ephemeral"}},
        "A string", "", {"type": "unknown", "of": 1}, {"no": "type"}, {"type": "text", "text": ""},
    ]),
]  # fmt: skip
PROVIDERS = [
    of("ai", [SIGNED, {"type": "text", "text": "I look."}, USE], tool_calls=[call("toolu_1", "look", at="it")], response_metadata=CLAUDE),
    of("tool", [{"type": "text", "text": "a"}, {"type": "image", "base64": PNG, "mime_type": "image/png"}], tool_call_id="toolu_1"),
    of("tool", [{"rows": 1}], tool_call_id="toolu_1"),
    of("tool", [], tool_call_id="toolu_1"),
    of("ai", [REASONING, {"type": "text", "text": "Ah.", "annotations": [], "id": "msg_1"},
              {"type": "function_call", "name": "look", "arguments": "{\"at\": 1}", "call_id": "c9", "id": "fc_1", "status": "completed"}],
       tool_calls=[call("c9", "look", at=1)], response_metadata=GPT),
    of("ai", [{"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "c2ln"}}, call("c1", "look"),
              {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "x"}}, {"type": "text", "text": "Ah."},
              {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {}},
              {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": [1]}],
       tool_calls=[call("c1", "look")], response_metadata={**CLAUDE, "output_version": "v1"}),
    of("ai", [{"type": "reasoning", "id": "rs_1", "reasoning": "So.", "encrypted_content": "e"},
              {"type": "reasoning", "id": "rs_1", "reasoning": "And."}, "Ah."], response_metadata=GPT),
    of("ai", [{"type": "thinking", "thinking": "Hm.", "signature": "Z3M="}, "Ah."], response_metadata={"model_provider": "google_genai"}),
    of("ai", "Ah.", additional_kwargs={"reasoning_content": "Hm.", "refusal": None}, response_metadata={"model_provider": "deepseek"}),
]  # fmt: skip
ODD = [
    of("ai", invalid_tool_calls=[{"name": "look", "args": '{"a', "id": "c1", "error": "no JSON", "type": "invalid_tool_call"}]),
    of("ai", "", tool_calls=[call(None, "look")]),
    of("ai", "", additional_kwargs={"function_call": {"name": "old", "arguments": "{}"}}),
    of("function", "r", name="old"),
    of("chat", "c", role="critic"), of("chat", "c", role="assistant"),
    of("remove", id="h1"),
    of("AIMessageChunk", [{**USE, "input": {}, "partial_json": '{"at":"it"}', "index": 0}], tool_calls=[call("toolu_1", "look", at="it")],
       tool_call_chunks=[{"name": "look", "args": '{"at":"it"}', "id": "toolu_1", "index": 0, "type": "tool_call_chunk"}]),
    of("AIMessageChunk", "", tool_calls=[call("c1", "look", a=1)],
       tool_call_chunks=[{"name": "look", "args": '{"a":1', "id": "c1", "index": 0, "type": "tool_call_chunk"}]),
    of("HumanMessageChunk", "x"), of("human", []), of("human", [{"type": "text", "text": "x"}]), of("ai", ""), of("ai", example=False),
    {"type": "human", "data": {"content": "bare"}}, {"type": "human", "data": {"content": "more", "type": "human"}, "extra": 1},
]  # fmt: skip
DOCUMENTS = {"talk": TALK, "media": MEDIA, "providers": PROVIDERS, "odd": ODD}
CLASSES = {
    "human": "HumanMessage",
    "ai": "AIMessage",
    "system": "SystemMessage",
    "tool": "ToolMessage",
}


def constructor(message: dict[str, Any]) -> dict[str, Any]:
    """As `dumpd` writes it."""
    type_ = message["type"]
    kept = ("content", "type", "tool_calls", "invalid_tool_calls", "status")
    kwargs = {
        key: value
        for key, value in message["data"].items()
        if key in kept or value not in (None, {}, [])
    }
    path = ["langchain", "schema", "messages", CLASSES[type_]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}


VERSIONS: dict[str, list[dict[str, Any]]] = {
    **DOCUMENTS,
    "constructor": [constructor(message) for message in [*TALK, *MEDIA, *PROVIDERS]],
    "plain": [message["data"] for message in [*TALK, *MEDIA, *PROVIDERS, *ODD[:7]]],
}


def stored(messages: list[Message]) -> list[Message]:
    return [Message.from_json(message.to_json()) for message in messages]


@pytest.mark.parametrize("name", VERSIONS)
def test_what_was_written_comes_back_as_it_was(name: str) -> None:
    given = json.loads(json.dumps(VERSIONS[name]))
    assert (
        langchain.dump_messages(stored(langchain.load_messages(given))) == VERSIONS[name] == given
    )
    for message in VERSIONS[name]:
        assert langchain.dump_messages(langchain.load_messages([message])) == [message]


def test_what_is_neutral_is_read_as_such() -> None:
    system, user, model, results, done = langchain.load_messages(TALK)
    assert (system.role, system.text) == (Role.SYSTEM, "Be brief.")
    assert (user.role, user.text, user.id) == (Role.USER, "Hi.", "h1")
    assert model.content == (
        TextPart("I look."), ToolCallPart("c1", "look", {"at": "it"}), ToolCallPart("c2", "see"),
    )  # fmt: skip
    assert results.role is Role.USER, "all results of one round are one message of the user's"
    assert [(each.id, each.name, each.result, each.is_error) for each in results.tool_results] == [
        ("c1", "look", "seen", False), ("c2", "see", "no", True),
    ]  # fmt: skip
    assert done.usage == Usage(input_tokens=3, output_tokens=2, total_tokens=5, cache_read_tokens=1)


def test_nothing_neutral_stands_in_native_too() -> None:
    plain = langchain.load_messages(
        [TALK[0], of("human", "Hi."), of("ai", "Ho.", response_metadata={"model_provider": "xai"})]
    )
    assert [message.native for message in plain] == [None] * 3
    assert plain[2].origin == Origin("xai")


def test_files_are_files_in_every_form() -> None:
    (message,) = langchain.load_messages(MEDIA)
    kinds = [type(piece).__name__ for piece in message.content]
    assert kinds == [
        "TextPart", "DataPart", "LinkPart", "DataPart", "FilePart", "LinkPart", "DataPart", "DataPart", "LinkPart", "DataPart",
        "LinkPart", "DataPart", "DataPart", "DataPart", "TextPart", "TextPart", *["ProviderPart"] * 4,
    ]  # fmt: skip
    pdf = message.content[3]
    assert isinstance(pdf, DataPart)
    assert (pdf.mime_type, pdf.name) == ("application/pdf", "a.pdf")


def test_calls_that_are_not_whole_keep_their_text() -> None:
    loaded = langchain.load_messages([ODD[0], ODD[8]])
    calls = [message.tool_calls[0] for message in loaded]
    assert [(each.state, each.raw, each.arguments) for each in calls] == [
        ("invalid", '{"a', {}),
        ("cut", '{"a":1', {}),
    ]
    again = langchain.load_messages(
        langchain.dump_messages([Message.model(call) for call in calls])
    )
    assert [message.tool_calls[0].state for message in again] == ["invalid", "cut"]


def test_a_stream_put_together_is_read_with_the_arguments_that_its_list_of_calls_has() -> None:
    (message,) = langchain.load_messages([ODD[7]])
    assert message.tool_calls[0].arguments == {"at": "it"}


def test_the_oldest_calls_are_paired_by_name() -> None:
    model, results = langchain.load_messages(ODD[2:4])
    assert model.tool_calls[0].id == results.tool_results[0].id != ""


def test_signed_thinking_goes_back_to_who_signed_it() -> None:
    claude, _, gpt, v1, exploded, gemini, deepseek = langchain.load_messages(PROVIDERS)
    assert claude.origin == Origin("anthropic", served_model="claude-x", response_id="msg_1")
    assert claude.finish_reason is FinishReason.tool_calls
    start = Message.user("Hi.")
    sent = wires.get("anthropic").dump_messages([start, claude], target=Origin("anthropic"))
    assert sent["messages"][1]["content"] == [SIGNED, {"type": "text", "text": "I look."}, USE]
    sent = wires.get("anthropic").dump_messages([start, v1], target=Origin("anthropic"))
    signed = [block for block in sent["messages"][1]["content"] if "thinking" in block["type"]]
    assert signed == [SIGNED, {"type": "redacted_thinking", "data": "x"}]
    sent = wires.get("openai_responses").dump_messages([start, gpt], target=Origin("openai"))
    assert sent["input"][1] == REASONING
    item = {
        **REASONING,
        "summary": [{"type": "summary_text", "text": text} for text in ("So.", "And.")],
    }
    sent = wires.get("openai_responses").dump_messages([start, exploded], target=Origin("openai"))
    assert sent["input"][1] == item
    sent = wires.get("google").dump_messages([start, gemini], target=Origin("google"))
    assert sent["contents"][1]["parts"][0] == {
        "text": "Hm.",
        "thought": True,
        "thoughtSignature": "Z3M=",
    }
    assert deepseek.thinking == "Hm."
    losses: list[Loss] = []
    wires.get("anthropic").dump_messages([start, gpt], target=Origin("anthropic"), losses=losses)
    assert Lost.thinking in [loss.what for loss in losses]


def test_what_langchain_has_no_field_for_is_carried() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    origin = Origin("openai_compatible", "https://a.test", "m", "m-1", "r1", "f" * 32)
    messages = [
        Message(Role.USER, ("Hi.",), id="u", created_at=at, metadata={"a": [1]}, turn="t"),
        Message(Role.MODEL, ("Ho.",), id="m", origin=origin, finish_reason=FinishReason.length, usage=Usage(input_tokens=1, output_tokens=1, total_tokens=2)),
        Message(Role.MODEL, (ToolCallPart("c", "f"), ToolCallPart("d", "f")), turn="t"),
        Message(Role.USER, (ToolResultPart("c", "f", "no", denied=True), ToolResultPart("d", "f", "1")), id="r", created_at=at),
        Message(Role.USER, (ToolResultPart("e", "f", "1"),), id="r2"),
    ]  # fmt: skip
    assert (
        langchain.load_messages(json.loads(json.dumps(langchain.dump_messages(messages))))
        == messages
    )


def test_an_edit_is_what_is_written_and_not_what_was_read() -> None:
    for document in (ODD[7], TALK[2], PROVIDERS[0]):
        (message,) = langchain.load_messages([document])
        edited = message.replace(content=(TextPart("Edited."), ToolCallPart("new", "f", {"b": 2})))
        (written,) = langchain.dump_messages([edited])
        assert written["data"]["content"] == "Edited."
        assert written["data"]["tool_calls"] == [call("new", "f", b=2)]


def test_the_version_can_be_chosen() -> None:
    messages = langchain.load_messages(TALK)
    written = langchain.dump_messages(messages, version="constructor")
    assert written == [constructor(message) for message in TALK]
    assert langchain.dump_messages(messages, version="plain") == [
        message["data"] for message in TALK
    ]
    assert langchain.dump_messages(langchain.load_messages(written), version="dict") == TALK


def test_what_it_cannot_hold_is_a_loss_with_its_place() -> None:
    misplaced = Message.user("Hi.", ToolResultPart("c", "f", "1"), ToolCallPart("d", "f"))
    losses: list[Loss] = []
    written = langchain.dump_messages([Message.user("Hi."), misplaced], losses=losses)
    assert [message["type"] for message in written] == ["human", "tool", "human"]
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [
        (1, 1, Lost.order),
        (1, 2, Lost.tool_call),
    ]


def test_what_was_written_is_nobody_elses() -> None:
    (first,) = langchain.dump_messages([Message.model("Hi.")])
    first["data"]["additional_kwargs"]["a"] = first["data"]["tool_calls"].append(1)
    (second,) = langchain.dump_messages([Message.model("Hi.")])
    assert (second["data"]["additional_kwargs"], second["data"]["tool_calls"]) == ({}, [])


def test_a_message_to_remove_another_reaches_no_model() -> None:
    document = [of("human", "Hi."), of("remove", id="h1"), of("ai", ""), of("remove", id="h2")]
    messages = langchain.load_messages(document)
    assert [type(message.content[-1]) for message in messages] == [MarkPart, MarkPart]
    assert wires.get("openai_chat").dump_messages(messages[:1]) == [
        {"role": "user", "content": "Hi."}
    ]
    for part in (document, document[1:], document[1:2], [document[1]] * 2):
        assert langchain.dump_messages(langchain.load_messages(part)) == part


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (5, None),
        ({}, "type"),
        ({"type": "human"}, None),
        ({"type": "robot", "data": {}}, "type"),
        ({"type": "human", "data": []}, None),
        ({"lc": 1, "type": "constructor", "id": ["x", "Prompt"], "kwargs": {}}, "type"),
        (of("human", 5), "content"),
        (of("human", ["x", 5]), "content"),
        (of("tool", {"a": 1}, tool_call_id="c"), "content"),
        (of("tool", "x", tool_call_id=None), "tool_call_id"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(broken: Any, field: str | None) -> None:
    problems: list[Any] = []
    read = langchain.load_messages([TALK[1], broken, TALK[5]], problems=problems)
    if broken == {"type": "human"}:
        return
    assert [message.text for message in read] == ["Hi.", "Done."]
    assert [(problem.index, problem.field) for problem in problems] == [(1, field)]
    with pytest.raises(HistoryError, match=r"\[1\]"):
        langchain.load_messages([TALK[1], broken])


def test_no_list_and_what_nests_too_deep_is_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for payload in (None, {}, "x", 5, [of("human", "x", additional_kwargs={"a": deep})]):
        with pytest.raises(HistoryError):
            langchain.load_messages(payload)


def test_its_messages_are_told_from_all_others() -> None:
    for document in VERSIONS.values():
        assert formats.detect(document) == "langchain"
        assert all(langchain.votes(message) >= 2 for message in document)
        assert formats.detect({"messages": document}) == "langchain"
    for value in (
        None,
        5,
        "x",
        [],
        {},
        {"role": "user", "content": "x"},
        {"type": "message", "role": "user", "content": "x"},
    ):
        assert langchain.votes(value) == 0


@pytest.mark.parametrize("folder", sorted({*traffic.WIRES} - {"openai_embeddings"}))
def test_no_message_of_a_wire_is_mistaken_for_one(folder: str) -> None:
    for exchange in traffic.exchanges(folder):
        for field in ("contents", "input", "messages", "conversations"):
            messages = (exchange.request or {}).get(field)
            assert not any(map(langchain.votes, messages if isinstance(messages, list) else []))


NOTHING = (None, "", [], {})


def said(messages: list[Message]) -> list[Any]:
    """What was said, and the fields of providers with it that say something."""
    out: list[Any] = []
    for message in messages:
        for piece in message.content:
            if isinstance(piece, MarkPart):
                continue
            changes: dict[str, Any] = {"native": _fields(piece.native)}
            if isinstance(piece, ToolCallPart):
                changes |= {"raw": None} if piece.state == "complete" else {}
            if isinstance(piece, ToolResultPart) and piece.is_content:
                changes["result"] = tuple(
                    msgspec.structs.replace(each, native=_fields(each.native))
                    for each in piece.result
                )
            elif isinstance(piece, ToolResultPart) and piece.run_by == "agent":
                changes["result"] = text_or_json(piece.result)
            if isinstance(piece, ToolResultPart) and piece.run_by == "provider":
                changes["name"] = ""
            out.append((message.role, msgspec.structs.replace(piece, **changes)))
    return out


def _fields(native: Any) -> Any:
    fields = {
        wire: {key: value for key, value in held.items() if value not in NOTHING}
        for wire, held in (native or {}).items()
        if wire != "langchain" and ":" not in wire
    }
    return {wire: held for wire, held in fields.items() if held} or None


@pytest.mark.parametrize("folder", sorted({*traffic.WIRES} - {"openai_embeddings", "cohere_v1"}))
def test_recorded_conversations_say_the_same_in_it(folder: str) -> None:
    wire = wires.get(traffic.WIRES[folder])
    for number, exchange in enumerate(traffic.exchanges(folder)):
        if number % 4:  # all of them were tried, a fourth is quick
            continue
        try:
            messages = list(wire.load_request(exchange.request or {}).messages)
        except HistoryError:
            continue
        losses: list[Loss] = []
        written = json.loads(json.dumps(langchain.dump_messages(messages, losses=losses)))
        again = langchain.load_messages(written)
        assert not losses, exchange
        assert said(again) == said(messages), exchange
        assert langchain.dump_messages(again) == written, exchange


@given(strategies.histories)
def test_any_history_is_written_and_what_is_written_is_read(messages: list[Message]) -> None:
    losses: list[Loss] = []
    written = json.loads(json.dumps(langchain.dump_messages(messages, losses=losses)))
    again = langchain.load_messages(written)
    assert langchain.dump_messages(again) == written
    assert all(langchain.votes(message) == 3 for message in written)
    assert all(loss.message is not None and loss.message < len(messages) for loss in losses)
    texts = sorted(
        piece.text
        for message in messages
        for piece in message.content
        if isinstance(piece, TextPart)
    )
    assert (
        sorted(
            piece.text
            for message in again
            for piece in message.content
            if isinstance(piece, TextPart)
        )
        == texts
    )


talks = st.lists(
    strategies.plain(st.builds(TextPart, strategies.some_text), (Role.USER, Role.SYSTEM))
    | strategies.plain(
        st.builds(TextPart, strategies.some_text)
        | st.builds(ThinkingPart, strategies.some_text)
        | st.builds(
            DataPart, st.binary(max_size=9), strategies.mime, st.none() | strategies.some_text
        )
        | st.builds(LinkPart, st.just("https://a.test/b"), st.none() | strategies.mime)
        | st.builds(ToolCallPart, st.uuids().map(str), strategies.name, strategies.json_object),
        (Role.MODEL,),
    ),
    max_size=4,
)


@given(talks)
def test_what_was_said_comes_back_equal(messages: list[Message]) -> None:
    losses: list[Loss] = []
    again = langchain.load_messages(
        json.loads(json.dumps(langchain.dump_messages(messages, losses=losses)))
    )
    assert said(again) == said(messages)
    assert not losses
    assert [message.role for message in again] == [message.role for message in messages]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *[place for key, child in children for place in _places(child, (*path, key))]]


PLACES = [place for place in _places([*TALK, *PROVIDERS, *MEDIA, *ODD]) if place]
junk = st.sampled_from(
    [
        None,
        True,
        0,
        1.5,
        "",
        "x",
        "constructor",
        [],
        {},
        [1],
        [{}],
        {"type": "text"},
        {"dragoman": {"id": 1}},
        [[""]],
    ]
)


@given(
    st.lists(st.tuples(st.sampled_from(PLACES), junk | st.just(...)), min_size=1, max_size=3),
    st.booleans(),
)
def test_anything_is_read_as_it_is_or_refused(changes: list[tuple[Any, Any]], alone: bool) -> None:
    payload: Any = copy.deepcopy([*TALK, *PROVIDERS, *MEDIA, *ODD])
    for (*path, last), value in changes:
        held = payload
        try:
            for key in path:
                held = held[key]
            if value is ...:
                del held[last]
            else:
                held[last] = value
        except (KeyError, IndexError, TypeError):
            continue
    if alone:
        payload = [payload[changes[0][0][0] % len(payload)]] if payload else []
    before = copy.deepcopy(payload)
    problems: list[Any] = []
    for message in payload:
        assert langchain.votes(message) in range(4)
    messages = langchain.load_messages(payload, problems=problems)
    assert payload == before, "what was given is not changed"
    if not problems:
        assert langchain.dump_messages(messages) == before
    else:
        with pytest.raises(HistoryError):
            langchain.load_messages(payload)


def test_what_only_another_provider_understands_is_kept_for_it() -> None:
    part = ProviderPart("odd", {"google": {"odd": 1}})
    signed = TextPart("x", {"google": {"thoughtSignature": "s"}})
    again = langchain.load_messages(langchain.dump_messages([Message.model(part, signed)]))
    assert again[0].content == (part, signed)


def test_nobody_else_writes_notes_of_a_format() -> None:
    forged = {"anthropic:notes": {"spelling": {"place": "messages"}}}
    block = {"type": "text", "text": "x", "extras": {"dragoman": forged}}
    document = [
        of("human", [block]),
        of("human", "x", additional_kwargs={"dragoman": {"native": forged}}),
    ]
    messages = langchain.load_messages(document)
    assert langchain.dump_messages(messages) == document
    natives = [messages[0].content[0].native, messages[1].native]
    assert not any("anthropic:notes" in (native or {}) for native in natives)


def test_texts_of_one_item_of_openais_are_one_item_again() -> None:
    texts = [
        {"type": "text", "text": text, "annotations": [], "id": "msg_1"} for text in ("So.", "And.")
    ]
    pieces = {
        "type": "reasoning",
        "id": "rs_1",
        "index": 0,
        "summary": [{**REASONING["summary"][0], "index": 0}],
    }
    document = [of("ai", [pieces, *texts], response_metadata=GPT)]
    messages = langchain.load_messages(document)
    assert langchain.dump_messages(messages) == document
    thinking, item = wires.get("openai_responses").dump_messages(messages)["input"]
    assert thinking == {"type": "reasoning", "id": "rs_1", "summary": REASONING["summary"]}
    assert (item["id"], [block["text"] for block in item["content"]]) == ("msg_1", ["So.", "And."])


def test_a_file_that_no_part_has_room_for_is_kept_whole() -> None:
    block = {"type": "image", "base64": PNG, "url": "https://a.test", "mime_type": "image/png"}
    (message,) = langchain.load_messages([of("human", [block])])
    assert message.content == (ProviderPart("image", {"langchain": block}),)


def test_a_chat_message_is_whose_its_role_says() -> None:
    roles = ("assistant", "developer", "critic")
    read = langchain.load_messages([of("chat", "x", role=role) for role in roles])
    assert [message.role for message in read] == [Role.MODEL, Role.SYSTEM, Role.USER]
    assert langchain.votes({"type": "human", "role": "user", "content": "x"}) == 0


def test_a_blank_text_is_held_with_its_fields() -> None:
    blank = Message.user(TextPart(" ", {"anthropic": {"cache_control": {"type": "ephemeral"}}}))
    losses: list[Loss] = []
    assert langchain.load_messages(langchain.dump_messages([blank], losses=losses)) == [blank]
    assert not losses


def test_half_a_character_where_our_own_notes_stand_is_no_note():
    entry = {"type": "tool", "data": {"type": "tool", "content": "21", "tool_call_id": "c1"}}
    entry["data"]["additional_kwargs"] = {"dragoman": {"\ud800": "x"}}
    messages = formats.get("langchain").load_messages([entry])
    assert messages[0].tool_results[0].result == "21"
