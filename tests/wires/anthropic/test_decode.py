"""The anthropic wire: a response, streamed or whole, becomes events (D-110, D-111, D-146, decisions
2, 13, 14 and 22)."""

from __future__ import annotations

import json

import pytest

from dragoman.errors import DecodeError
from dragoman.event import PartDelta
from dragoman.fold import fold, unfold
from dragoman.message import (
    FinishReason,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import anthropic as wire
from dragoman.wires.anthropic import decode as decoding
from support.anthropic import (
    END,
    START,
    STOP,
    block,
    call,
    decode,
    decode_events,
    encode_events,
    end,
    message,
    sse,
    start_of,
    text,
)


def test_a_stream_of_text():
    folded = message(*text(0, "Hel", "lo"), end(), STOP)
    assert folded.content == (TextPart("Hello"),)
    assert folded.finish_reason is FinishReason.stop
    assert folded.origin == Origin("", served_model="claude", response_id="msg_1")


def test_the_given_origin_and_minted_ids():
    events = decode(
        sse(START, end(), STOP), origin=Origin("anthropic", model="m"), new_id=lambda: "minted"
    )
    assert events[0].message_id == "minted"
    assert events[0].origin == Origin(
        "anthropic", model="m", served_model="claude", response_id="msg_1"
    )


def test_decision_2_separate_blocks_stay_separate():
    folded = message(*text(0, "a"), *call(1, "{}"), *text(2, "b"), *text(3, "c"), end(), STOP)
    assert [type(piece) for piece in folded.content] == [TextPart, ToolCallPart, TextPart, TextPart]


def test_decision_14_an_empty_block_is_no_part():
    assert message(*text(0), end(), STOP).content == ()


def test_d110_input_is_gathered_from_deltas():
    folded = message(
        *call(0, "", '{"ci', 'ty": "Oslo"}'), *call(1), *call(2, "", ""), end("tool_use"), STOP
    )
    assert [(c.arguments, c.state) for c in folded.tool_calls] == [
        ({"city": "Oslo"}, "complete"),
        ({}, "complete"),
        ({}, "complete"),
    ]
    assert folded.finish_reason is FinishReason.tool_calls


def test_d110_input_may_come_whole_and_callers_are_kept():
    folded = message(*call(0, input={"a": 1}, caller={"type": "direct"}), end("tool_use"), STOP)
    assert folded.tool_calls[0] == ToolCallPart(
        "toolu_0", "f", {"a": 1}, native={"anthropic": {"caller": {"type": "direct"}}}
    )


def test_a_call_without_an_id_gets_one_and_says_so():
    events = decode(sse(START, *call(0, id=None), *call(1, id=""), end("tool_use"), STOP))
    first, second = fold(events)[0].tool_calls
    assert (first.id, second.id) == ("call-0", "call-1")
    assert first.native == {"anthropic": {"id": None}}
    minted = fold(
        decode(sse(START, *call(0, id=None), end("tool_use"), STOP), new_id=lambda: "minted")
    )[0].tool_calls
    assert minted[0].id == "minted"
    sent = wire.dump_messages([Message.user("x"), Message.model(*minted)])["messages"][1][
        "content"
    ][0]
    assert sent["id"] == "minted"


def test_decision_13_blocks_told_side_by_side_do_not_mix():
    a, b = call(0, '{"x":', "1}"), call(1, '{"y":', "2}")
    folded = message(a[0], b[0], a[1], b[1], b[2], a[2], a[3], b[3], end("tool_use"), STOP)
    assert [c.arguments for c in folded.tool_calls] == [{"x": 1}, {"y": 2}]


@pytest.mark.parametrize(
    "delta",
    [
        {"type": "text_delta", "text": "x"},
        {"type": "signature_delta", "signature": "x"},
    ],
)
def test_decision_13_a_delta_that_names_nothing_known_is_an_error(delta):
    events = decode(
        sse(START, {"type": "content_block_delta", "index": 5, "delta": delta}, end(), STOP)
    )
    assert isinstance(events[-1].error, DecodeError)
    assert "block 5" in events[-1].error.message


def test_a_delta_of_the_wrong_kind_is_an_error():
    events = decode(
        sse(
            START,
            *block(
                0, {"type": "text", "text": ""}, {"type": "input_json_delta", "partial_json": "{}"}
            ),
        )
    )
    assert "input_json_delta" in events[-1].error.message


def test_a_call_cut_by_the_token_limit_is_never_complete():
    folded = message(*call(0, '{"a": 1}'), *call(1, '{"a": '), end("max_tokens"), STOP)
    assert [(c.state, c.arguments) for c in folded.tool_calls] == [
        ("complete", {"a": 1}),
        ("cut", {}),
    ]
    assert folded.tool_calls[1].raw == '{"a": '
    assert folded.finish_reason is FinishReason.length
    assert message(*call(0), end("max_tokens"), STOP).tool_calls[0].state == "cut"
    first, _ = message(
        *call(0), *call(1, '{"a'), end("model_context_window_exceeded"), STOP
    ).tool_calls
    assert first.state == "complete"


def test_arguments_that_are_no_object_are_invalid():
    folded = message(*call(0, "[1]"), *call(1, '{"a" 1}'), end("tool_use"), STOP)
    assert [(c.state, c.arguments, c.raw) for c in folded.tool_calls] == [
        ("invalid", {}, "[1]"),
        ("invalid", {}, '{"a" 1}'),
    ]


def thinking(index, *texts, signature=None):
    deltas = [{"type": "thinking_delta", "thinking": t} for t in texts]
    deltas += [{"type": "signature_delta", "signature": signature}] if signature else []
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def test_d111_d146_thinking_is_told_once_and_is_no_part():
    events = decode(
        sse(START, *thinking(0, "h", "m", signature="c2ln"), *text(1, "Yes"), end(), STOP)
    )
    assert [e.delta for e in events if isinstance(e, PartDelta)] == ["h", "m", "Yes"]
    (folded,) = fold(events)
    assert folded.thinking == "hm"
    assert folded.text == "Yes"
    assert folded.parts == (TextPart("Yes"),)
    assert folded.content[0] == ThinkingPart("hm", {"anthropic": {"signature": "c2ln"}})


def test_d146_what_was_thought_goes_back_byte_exact():
    redacted = {"type": "redacted_thinking", "data": "ZW5j"}
    folded = message(
        *thinking(0, signature="c2ln"), *block(1, redacted), *text(2, "Yes"), end(), STOP
    )
    sent = wire.dump_messages([Message.user("x"), folded])["messages"][1]["content"]
    assert sent == [
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        redacted,
        {"type": "text", "text": "Yes"},
    ]


def test_thinking_that_nobody_signs_is_kept():
    folded = message(
        *block(
            0, {"type": "thinking", "thinking": "a"}, {"type": "thinking_delta", "thinking": "b"}
        ),
        end(),
        STOP,
    )
    assert wire.dump_messages([folded])["messages"][0]["content"] == [
        {"type": "thinking", "thinking": "ab"}
    ]


def test_further_fields_of_the_response_are_kept_around_the_message():
    last = {
        **end("stop_sequence", server_tool_use={"web_search_requests": 1}),
        "context_management": {"applied_edits": []},
    }
    last["delta"] = {
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "container": {"id": "c"},
        "stop_details": None,
    }
    folded = message(last, STOP)
    assert folded.native["anthropic:notes"]["response"] == {
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "container": {"id": "c"},
        "context_management": {"applied_edits": []},
        "usage": {"server_tool_use": {"web_search_requests": 1}},
    }
    assert "response" not in json.dumps(wire.dump_messages([folded]))


def test_citations_are_gathered():
    deltas = [{"type": "citations_delta", "citation": {"n": n}} for n in (1, 2)]
    start = {"type": "text", "text": "", "citations": []}
    folded = message(
        *block(0, start, {"type": "text_delta", "text": "x"}, *deltas),
        *block(1, {**start, "text": "y"}),
        end(),
        STOP,
    )
    assert folded.content == (
        TextPart("x", {"anthropic": {"citations": [{"n": 1}, {"n": 2}]}}),
        TextPart("y"),
    )


def test_unknown_deltas_and_blocks_are_kept():
    compaction = block(
        0, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "a"}
    )
    grown = block(
        1,
        {"type": "new", "a": "x", "b": [1]},
        {"type": "new_delta", "a": "y", "b": [2], "c": 3},
        {"type": "text_delta", "text": "t"},
    )
    odd = block(
        2,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "x"},
        {"type": "odd_delta", "odd": 1},
    )
    folded = message(*compaction, *grown, *odd, end(), STOP)
    assert folded.content == (
        ProviderPart("compaction", {"anthropic": {"type": "compaction", "content": "a"}}),
        ProviderPart(
            "new", {"anthropic": {"type": "new", "a": "xy", "b": [1, 2], "c": 3, "text": "t"}}
        ),
        TextPart("x", {"anthropic": {"odd": 1}}),
    )


def test_decision_22_tools_that_the_provider_ran():
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "toolu_0",
        "content": [{"type": "web_search_result"}],
    }
    folded = message(
        *call(0, '{"query": "x"}', kind="server_tool_use"),
        *block(1, found),
        *text(2, "x"),
        end(),
        STOP,
    )
    asked, answered, _ = folded.content
    assert (asked.run_by, asked.arguments) == ("provider", {"query": "x"})
    assert answered == ToolResultPart(
        "toolu_0",
        "f",
        found["content"],
        run_by="provider",
        native={"anthropic": {"type": "web_search_tool_result"}},
    )
    assert folded.tool_calls == ()
    sent = wire.dump_messages([folded])["messages"][0]["content"]
    assert sent[:2] == [
        {"type": "server_tool_use", "id": "toolu_0", "name": "f", "input": {"query": "x"}},
        found,
    ]


def test_a_whole_answer_is_told_as_its_stream_would_have_been():
    streamed = decode(
        sse(
            START,
            *thinking(0, "hm", signature="c2ln"),
            *text(1, "a"),
            *call(2, '{"x":1}'),
            end("tool_use"),
            STOP,
        )
    )
    whole = {
        **START["message"],
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "a", "citations": None},
            {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {"x": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {**START["message"]["usage"], "output_tokens": 7},
    }
    events = wire.load_response(whole)
    assert fold(events) == fold(streamed)
    assert [type(e) for e in events] == [type(e) for e in streamed]
    assert wire.load_response(json.dumps(whole, indent=1).encode()) == events
    assert decode(json.dumps(whole).encode()[:50], json.dumps(whole).encode()[50:]) == events


def test_blocks_that_nobody_closed_are_whole_at_the_end():
    open_text = block(
        0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "x"}, stop=False
    )
    open_block = block(1, {"type": "compaction", "content": "c"}, stop=False)
    folded = message(*open_text, *open_block, end(), STOP)
    assert [type(piece) for piece in folded.content] == [TextPart, ProviderPart]


def test_further_fields_of_a_delta_are_kept_and_never_sent_back():
    thought = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "", "estimated_tokens": 50},
        {"type": "thinking_delta", "thinking": "hm", "estimated_tokens": 80},
        {"type": "signature_delta", "signature": "s1"},
        {"type": "signature_delta", "signature": "s2"},
    )
    events = decode_events(start_of(), *thought, *END)
    (message,) = fold(events)
    assert message.thinking == "hm"
    assert wire.dump_messages([message])["messages"][0]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s1s2"}
    ]
    told = [
        event["delta"]
        for event in encode_events(unfold([message]))
        if event["type"] == "content_block_delta"
    ]
    assert told == [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "thinking_delta", "thinking": "", "estimated_tokens": 80},
        {"type": "signature_delta", "signature": "s1s2"},
    ]
    assert fold(decode_events(*encode_events(unfold([message]))))[0].content == message.content


def test_further_deltas_cost_linear_time():
    """Each is looked at once, and what they grow to is copied once."""

    class Counted(list):
        copied = 0

        def __iter__(self):
            for entry in list.__iter__(self):
                Counted.copied += 1
                yield entry

    def cost(size: int) -> int:
        Counted.copied = 0
        grown = decoding.grown(
            {"citations": Counted()}, [{"citations": Counted([n])} for n in range(size)]
        )
        assert grown == {"citations": list(range(size))}
        return Counted.copied

    assert cost(2000) == 2 * cost(1000) == 2000


def test_half_a_pair_of_surrogates_passes_through_a_whole_answer():
    answer = {
        "type": "message",
        "id": "\ud800",
        "content": [{"type": "text", "text": "a"}],
        "stop_reason": "end_turn",
    }
    (message,) = fold(wire.load_response(answer)) or [None]
    assert message is None or message.text == "a"
