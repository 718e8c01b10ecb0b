"""Ordinary chunks and parts of the wires of the Chat family, read and written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import wires
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import fold, unfold
from dragoman.message import (
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import ServerTool

CHAT = wires.get("openai_chat")
NAMES = ("openai_chat", "mistral")
named = pytest.mark.parametrize("name", NAMES)
DETAILS = "reasoning_details"
DONE = b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None, **of_choice: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **of_choice}
    return b"data: " + json.dumps({"id": "r1", "choices": [choice]}).encode() + b"\n\n"


def read(name: str, *pieces: bytes) -> Message:
    decoder = wires.get(name).decoder()
    (message,) = fold(
        [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()
    )
    return message


def deltas(name: str, events: list[Event]) -> list[dict[str, Any]]:
    encoder = wires.get(name).encoder()
    lines = (b"".join(map(encoder.feed, events)) + encoder.close()).decode().split("\n\n")
    chunks = [json.loads(line[6:]) for line in lines if line and line != "data: [DONE]"]
    return [one["choices"][0]["delta"] for one in chunks if one["choices"]][1:-1]


# ------------------------------------------------------------------ streams


@pytest.mark.parametrize(
    ("name", "beside"),
    [("openai_chat", {key: value}) for key, value in {
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "z"}], "refusal": "no", "audio": {"id": "a"},
        "images": [{"type": "image_url", "image_url": {"url": "u:x"}}], "annotations": [{"a": 1}], "extra_content": {"a": 1},
        "executed_tools": [{"index": 0, "type": "python"}], "function_call": {"name": "f", "arguments": "{}"},
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}], "reasoning": "t",
    }.items()]
    + [("mistral", {key: value}) for key, value in {
        "metadata": {"a": 1}, "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}],
    }.items()],
)  # fmt: skip
def test_what_stands_beside_a_text_is_read_wherever_it_comes(
    name: str, beside: dict[str, Any]
) -> None:
    """The first chunk of a candidate is read by one path, ordinary ones by another."""
    late = read(
        name, chunk({"content": "a"}), chunk({"content": "b", **beside}), chunk({}, "stop"), DONE
    )
    alone = read(name, chunk(beside), chunk({}, "stop"), DONE)
    assert {type(part) for part in alone.content} <= {type(part) for part in late.content}
    assert late.native == alone.native and late.text.startswith("a")
    assert [part for part in alone.content if isinstance(part, ToolCallPart)] == [
        part for part in late.content if isinstance(part, ToolCallPart)
    ]


@named
@pytest.mark.parametrize(
    ("around", "said"),
    [
        ({"choices": [{"index": 0, "delta": {"content": "b"}, "logprobs": {"content": [1]}}]}, {"logprobs": {"content": [1]}}),
        ({"choices": [{"index": 0, "delta": {"content": "b"}}], "usage": {"prompt_tokens": 1, "cost": 2}}, {"usage": {"cost": 2}}),
    ],
)  # fmt: skip
def test_what_stands_around_an_ordinary_text_is_read(
    name: str, around: dict[str, Any], said: dict[str, Any]
) -> None:
    piece = b"data: " + json.dumps(around).encode() + b"\n\n"
    message = read(name, chunk({"content": "a"}), piece, chunk({}, "stop"), DONE)
    assert message.text == "ab"
    assert (message.native or {})[f"{name}:notes"]["response"] == said
    error = b'data: {"choices": [{"index": 0, "delta": {"content": "b"}}], "error": {"message": "no"}}\n\n'
    decoder = wires.get(name).decoder()
    events = (
        decoder.feed(chunk({"content": "a"}) + error + chunk({"content": "c"})) + decoder.close()
    )
    assert fold(events)[0].text in ("a", "ab") and type(events[-1]).__name__ == "RunError"


def test_audio_may_begin_with_its_transcript() -> None:
    for first in (
        {"transcript": "Hi"},
        {"id": "a1", "transcript": "Hi"},
        {"data": "YWJj", "transcript": "Hi"},
    ):
        (part,) = read("openai_chat", chunk({"audio": first}), chunk({}, "stop"), DONE).content
        assert (part.native or {})["openai_chat"]["transcript"] == "Hi"


def test_an_empty_piece_of_thinking_leaves_no_trace() -> None:
    def thought(*items: dict[str, Any]) -> bytes:
        return chunk({"content": [{"type": "thinking", "thinking": list(items)}]})

    empty, said = {"type": "text", "text": ""}, {"type": "text", "text": "t"}
    message = read(
        "mistral",
        thought(empty),
        thought(empty, said),
        thought(said, empty),
        chunk({}, "stop"),
        DONE,
    )
    assert message.content == (ThinkingPart("tt"),)
    message = read(
        "mistral",
        chunk({"content": "a"}),
        thought(),
        chunk({"content": "b"}),
        chunk({}, "stop"),
        DONE,
    )
    assert message.content == (TextPart("ab"),)


@named
@pytest.mark.parametrize(("raw", "written"), [('{"a"', '{"a"'), (None, "")])
def test_a_call_that_is_not_complete_is_shown_as_it_came(
    name: str, raw: str | None, written: str
) -> None:
    call = ToolCallPart("abcdefgh1", "f", raw=raw, state="invalid")
    events = unfold([Message.model(call)])
    shown = [one["tool_calls"][0]["function"].get("arguments", "") for one in deltas(name, events)]
    assert "".join(shown) == (written if name == "mistral" or raw else "{}")


@named
def test_a_text_with_fields_of_its_own_is_told_as_text(name: str) -> None:
    text = TextPart("a", {name: {"x": 1}})
    assert deltas(name, unfold([Message.model(text)])) == [{"content": "a"}]


@named
def test_other_messages_of_a_run_go_on_the_same_answer(name: str) -> None:
    ran = [
        Message(
            Role.MODEL, ("a", ToolCallPart("abcdefgh1", "f")), id="m1", usage=Usage(input_tokens=1)
        ),
        Message.user(ToolResultPart("abcdefgh1", "f", 1)),
        Message(
            Role.MODEL,
            ("b", LinkPart("https://a.test/a.png")),
            id="m2",
            usage=Usage(input_tokens=2),
        ),
    ]
    said = deltas(name, unfold(ran))
    assert [one["content"] for one in said if isinstance(one.get("content"), str)] == ["a", "b"]
    body = wires.get(name).dump_response(unfold(ran))
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}


@pytest.mark.parametrize(
    ("name", "field"),
    [("openai_chat", field) for field in ("name", "padding", "token_id")]
    + [("mistral", field) for field in ("name", "index", "prefix")],
)
def test_what_a_delta_says_of_itself_is_not_kept(name: str, field: str) -> None:
    message = read(
        name,
        chunk({"content": "a", field: 1}),
        chunk({"content": "b", field: 1}),
        chunk({}, "stop"),
        DONE,
    )
    assert (message.content, message.native) == ((TextPart("ab"),), None)


@named
def test_pieces_of_a_call_by_its_index_or_by_its_id(name: str) -> None:
    def piece(text: str, **fields: Any) -> dict[str, Any]:
        named = {"name": fields.pop("name")} if "name" in fields else {}
        return {"function": {**named, "arguments": text}, **fields}

    def calls(*pieces: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
        chunks = [chunk({"tool_calls": [one]}) for one in pieces]
        message = read(name, *chunks, chunk({}, "stop"), DONE)
        return [(call.id, call.name, call.arguments) for call in message.tool_calls]

    one, two = ("c1", "f", {"a": 1}), ("c2", "f", {"a": 2})
    start, end = '{"a":', "1}"
    assert calls(piece(start, id="c1", name="f"), piece(end, id="c1", name="f")) == [one]
    assert calls(piece(start, id="c1", name="f"), piece(end, id="c1")) == [one]
    assert calls(piece(start, id="c1", name="f", index=0), piece(end, index=0)) == [one]
    assert calls(piece(start, id="c1", name="f", index=0), piece(end, index=0, name="f")) == [one]
    assert calls(piece(start, id="c1", name="f", index=0), piece(end, index=0, id="other")) == [one]
    assert calls(
        piece(start, id="c1", name="f", index=0),
        piece(start, id="c2", name="f", index=1),
        piece(end, index=0),
        piece("2}", index=1),
    ) == [one, two]
    whole = [
        piece('{"a": 1}', id="c1", name="f", index=0),
        piece('{"a": 2}', id="c2", name="f", index=0),
    ]
    assert calls(*whole) == [one, two]
    repeated = calls(piece('{"a":1}', name="f", index=0), piece('{"a":2}', name="f", index=0))
    assert [arguments for _, _, arguments in repeated] == [{"a": 1}, {"a": 2}]
    others = calls(piece(start, name="f", index=0), piece('{"a":2}', name="g", index=0))
    assert [tool for _, tool, _ in others] == ["f", "g"]
    nothing = calls(piece("null", name="f", index=0), piece('{"a":2}', name="f", index=0))
    assert len(nothing) == 2


def test_more_of_a_call_beside_or_after_a_text() -> None:
    def more(text: str, **fields: Any) -> bytes:
        return chunk({"tool_calls": [{"index": 0, "function": {"arguments": text}}], **fields})

    begin = chunk(
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a":'}}]}
    )
    for late in (
        more("1}", content="t"),
        more("1}", reasoning="t"),
        more("1}", reasoning_content="t"),
    ):
        message = read("openai_chat", begin, late, chunk({}, "stop"), DONE)
        assert [part.arguments for part in message.tool_calls] == [{"a": 1}]
        assert (message.text, message.thinking) in (("t", None), ("", "t"))
    texts = chunk({"content": "t"}), more("1}"), chunk({"content": "u"})
    message = read("openai_chat", begin, *texts, chunk({}, "stop"), DONE)
    assert [part for part in message.content if isinstance(part, TextPart)] == [
        TextPart("t"),
        TextPart("u"),
    ]
    for said in ({"content": "a", "reasoning": "b"}, {"content": "a", "reasoning_content": "b"}):
        first = read("openai_chat", chunk(said), chunk({}, "stop"), DONE).content
        again = read("openai_chat", chunk(said), chunk(said), chunk({}, "stop"), DONE).content
        assert again == (*first, *first) and len(first) == 2
    both = read(
        "openai_chat",
        *[chunk({"reasoning": "b", "reasoning_content": "b"})] * 2,
        chunk({}, "stop"),
        DONE,
    )
    assert both.thinking == "bb" and len(both.content) == 1


@named
def test_two_results_of_one_call_have_its_name(name: str) -> None:
    call = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    told = [{"role": "tool", "tool_call_id": "abcdefgh1", "content": text} for text in "ab"]
    said = [{"role": "assistant", "content": "x", "tool_calls": [call]}, *told]
    _, results = wires.get(name).load_messages(said)
    assert results.content == (
        ToolResultPart("abcdefgh1", "f", "a"),
        ToolResultPart("abcdefgh1", "f", "b"),
    )


def test_thinking_with_fields_within_is_not_ordinary() -> None:
    def thought(item: dict[str, Any], **fields: Any) -> bytes:
        return chunk({"content": [{"type": "thinking", "thinking": [item], **fields}]})

    first = thought({"type": "text", "text": "a"})
    odd = {"type": "text", "text": "b", "x": 1}
    for late, kept in (
        (thought(odd), None),
        (thought({"type": "text", "text": "b"}, signature="s"), {"signature": "s"}),
        (thought({"type": "text", "text": "b"}, closed=False), {"closed": False}),
    ):
        (part,) = read("mistral", first, late, chunk({}, "stop"), DONE).content
        assert isinstance(part, ThinkingPart) and part.text == "ab"
        assert (part.native or {}).get("mistral") == kept


@named
def test_a_held_file_is_marked_as_its_wires(name: str) -> None:
    block: dict[str, Any] = {"type": "file", "file_id": "id1"}
    block = {"type": "file", "file": {"file_id": "id1"}} if name == "openai_chat" else block
    (message,) = wires.get(name).load_messages([{"role": "user", "content": [block]}])
    assert message.content == (FilePart("id1", native={name: {}}),)
    assert wires.get("google").dump_messages([message])["contents"][0]["parts"] == [
        {"text": "[media: file]"}
    ]


def test_lists_of_fields_that_no_index_tells_apart_are_written_as_they_are() -> None:
    odd = [1, {"index": 0, "a": 1}, {"index": 0, "b": 2}]
    native = {"openai_chat": {"odd": odd, "annotations": "x"}}
    body = CHAT.dump_response(unfold([Message.model("a").replace(native=native)]))
    message = body["choices"][0]["message"]
    assert (message["annotations"], message["odd"]) == ("x", odd)


# ------------------------------------------------------------------ what ends without deltas, and
# what is alike


@named
def test_a_part_may_be_told_at_its_end_alone(name: str) -> None:
    detail = ThinkingPart("d", {name: {"signature": "s"}})
    parts = [ThinkingPart("t"), detail, TextPart("a"), ToolCallPart("abcdefgh1", "f", {"a": 1})]
    empty = [
        ThinkingPart(),
        ThinkingPart("", {name: {}}),
        OpenText(),
        ToolCallPart("abcdefgh1", "f"),
    ]
    events: list[Event] = [MessageStarted("m", Role.MODEL)]
    for place, (open_part, part) in enumerate(zip(empty, parts, strict=True)):
        events += [PartStarted("m", place, open_part), PartFinished("m", place, part)]
    events.append(MessageFinished("m", FinishReason.tool_calls))
    encoder = wires.get(name).encoder()
    streamed = b"".join(map(encoder.feed, events)) + encoder.close()
    for body in (streamed, wires.get(name).dump_response(events)):
        (message,) = fold(wires.get(name).load_response(body))
        assert (message.thinking, message.text) == ("td", "a")
        assert [call.arguments for call in message.tool_calls] == [{"a": 1}]
        assert "s" in [
            (part.native or {}).get(name, {}).get("signature") for part in message.content
        ]


def test_details_of_one_index_and_of_several_types_are_several() -> None:
    details = [
        {"type": "reasoning.text", "text": "t", "index": 0},
        {"type": "reasoning.encrypted", "data": "z", "index": 0},
        {"type": "reasoning.summary", "summary": "u", "index": 0},
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "a", "reasoning_details": details},
    }
    events = CHAT.load_response({"choices": [{**choice, "finish_reason": "stop"}]})
    assert CHAT.dump_response(events)["choices"][0]["message"]["reasoning_details"] == details
    streamed = [one[DETAILS][0] for one in deltas("openai_chat", events) if DETAILS in one]
    assert [(one["type"], one["index"]) for one in streamed] == [
        (one["type"], one["index"]) for one in details
    ]


def test_a_tool_of_another_type_that_names_a_function_is_the_providers() -> None:
    tool = {"type": "odd", "function": {"name": "f"}}
    for name in NAMES:
        body = {"model": "m", "messages": [], "tools": [tool]}
        request = wires.get(name).load_request(body)
        assert request.tools == (ServerTool("odd", {"function": {"name": "f"}}, {name: {}}),)
        assert wires.get(name).dump_request(request) == body


def test_what_a_detail_says_of_itself_is_told_once() -> None:
    part = ThinkingPart("", {"openai_chat": {"type": "reasoning.text", "id": "i", "format": "x"}})
    events: list[Event] = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, part)]
    events += [PartDelta("m", 0, "a"), PartDelta("m", 0, "b")]
    events += [
        PartFinished("m", 0, ThinkingPart("ab", part.native)),
        MessageFinished("m", FinishReason.stop),
    ]
    named = {"type": "reasoning.text", "id": "i", "index": 0}
    assert deltas("openai_chat", events) == [
        {DETAILS: [{**named, "format": "x", "text": "a"}]},
        {DETAILS: [{**named, "text": "b"}]},
    ]


def test_details_that_say_no_index_are_numbered_one_by_one() -> None:
    thoughts = [ThinkingPart(text, {"openai_chat": {"type": "reasoning.text"}}) for text in "abc"]
    details = CHAT.dump_response(unfold([Message.model(*thoughts)]))["choices"][0]["message"][
        DETAILS
    ]
    assert details == [
        {"type": "reasoning.text", "text": text, "index": index} for index, text in enumerate("abc")
    ]
