"""The openai_responses decoder, item by item: rules D-139, D-140r, D-144r, decisions 2, 13 and
14."""

from __future__ import annotations

import json

import msgspec
import pytest

from dragoman.errors import DecodeError
from dragoman.event import Custom, OpenText, PartDelta, PartFinished, PartStarted, RunError
from dragoman.fold import fold
from dragoman.message import TextPart, ThinkingPart, ToolCallPart
from dragoman.wires import openai_responses as wire
from support.linear import is_linear
from support.responses import (
    COMPLETED_HEAD,
    CREATED,
    NAME,
    call_item,
    decode,
    end_event,
    everywhere,
    message,
    message_item,
    odd_message,
    of,
    reasoning_item,
    sse,
    text,
    write_all,
)


def test_decision_2_order_is_the_providers():
    folded = message(
        end_event(
            reasoning_item("t"),
            message_item("a"),
            call_item(),
            message_item("b", "msg_2"),
            reasoning_item(id_="rs_2"),
            message_item("c", "msg_3"),
        )
    )
    kinds = [type(piece).__name__ for piece in folded.content]
    assert kinds == [
        "ThinkingPart",
        "TextPart",
        "ToolCallPart",
        "TextPart",
        "ThinkingPart",
        "TextPart",
    ]


def test_decision_14_an_item_without_text_leaves_none_but_goes_back():
    folded = message(end_event(reasoning_item(), message_item("")))
    assert folded.text == "" and not any(isinstance(piece, TextPart) for piece in folded.content)
    assert [item["id"] for item in wire.dump_messages([folded])["input"]] == ["rs_1", "msg_1"]


def test_d139_summaries_are_thinking_and_nothing_is_repeated():
    summary = of("reasoning_summary_text.delta", summary_index=0, delta="one")
    second = of("reasoning_summary_text.delta", summary_index=1, delta="two")
    item = reasoning_item("one", "two")
    events = decode(
        sse(
            CREATED,
            of("output_item.added", item=reasoning_item()),
            of(
                "reasoning_summary_part.added",
                summary_index=0,
                part={"type": "summary_text", "text": ""},
            ),
            summary,
            of("reasoning_summary_text.done", summary_index=0, text="one"),
            second,
            of("output_item.done", item=item),
            end_event(item, message_item("x")),
        )
    )
    assert [e.delta for e in events if isinstance(e, PartDelta)] == ["one", "\n\n", "two", "x"]
    (folded,) = fold(events)
    assert folded.thinking == "one\n\ntwo" and folded.text == "x"
    assert wire.dump_messages([folded])["input"][0] == item


def test_reasoning_text_is_thinking():
    item = {**reasoning_item(), "content": [{"type": "reasoning_text", "text": "hm"}]}
    delta = of("reasoning_text.delta", content_index=0, delta="hm")
    folded = message(
        of("output_item.added", item=reasoning_item()),
        delta,
        of("output_item.done", item=item),
        end_event(item),
    )
    assert folded.thinking == "hm"
    assert wire.dump_messages([folded])["input"] == [item]


def test_pain_37_the_terminal_ciphertext_counts_and_the_part_is_told_at_once():
    """`output_item.done` and `completed` encrypt the same reasoning twice."""
    item = reasoning_item("one", encrypted_content="early")
    events = decode(
        sse(
            CREATED,
            of("output_item.added", item={**item, "summary": [], "encrypted_content": "first"}),
            of("output_item.done", item=item),
            *text(1, "x"),
            end_event({**item, "encrypted_content": "late"}, message_item("x")),
        )
    )
    finished = [
        e.part.native[NAME]["encrypted_content"]
        for e in events
        if isinstance(e, PartFinished) and e.index == 0
    ]
    assert finished == ["early", "late"]
    assert fold(events)[0].content[0].native[NAME]["encrypted_content"] == "late"
    encoder = wire.encoder()
    assert fold(decode(b"".join(map(encoder.feed, events)) + encoder.close())) == fold(events)


def test_calls_stream_their_arguments():
    added = of("output_item.added", item=call_item("", status="in_progress"))
    deltas = [of("function_call_arguments.delta", delta=delta) for delta in ('{"a"', ":1}")]
    done = of("function_call_arguments.done", arguments='{"a":1}')
    events = decode(
        sse(
            CREATED,
            added,
            *deltas,
            done,
            of("output_item.done", item=call_item('{"a":1}')),
            end_event(call_item('{"a":1}')),
        )
    )
    started = next(event for event in events if isinstance(event, PartStarted))
    assert (started.part.id, started.part.name, started.part.arguments) == ("call_1", "f", {})
    (folded,) = fold(events)
    assert folded.tool_calls[0].arguments == {"a": 1}
    assert [e.delta for e in events if isinstance(e, PartDelta)] == ['{"a"', ":1}"]


def test_a_whole_call_is_told_as_the_text_of_its_arguments():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    events = decode(
        sse(
            CREATED,
            end_event(call_item("{}"), call_item('{ "a": 1 }', "fc_2", call_id="2"), search),
        )
    )
    assert [(e.index, e.delta) for e in events if isinstance(e, PartDelta)] == [
        (0, "{}"),
        (1, '{ "a": 1 }'),
    ]


def test_decision_13_parallel_calls_by_their_index():
    one, two = call_item('{"a":1}', call_id="1"), call_item('{"b":2}', "fc_2", call_id="2")
    folded = message(
        of("output_item.added", 0, item=call_item("", call_id="1")),
        of("output_item.added", 1, item=call_item("", "fc_2", call_id="2")),
        of("function_call_arguments.delta", 1, delta='{"b"'),
        of("function_call_arguments.delta", 0, delta='{"a":1}'),
        of("function_call_arguments.delta", 1, delta=":2}"),
        of("output_item.done", 1, item=two),
        of("output_item.done", 0, item=one),
        end_event(one, two),
    )
    assert [(call.id, call.arguments) for call in folded.tool_calls] == [
        ("1", {"a": 1}),
        ("2", {"b": 2}),
    ]


@pytest.mark.parametrize(
    "delta",
    [
        of("function_call_arguments.delta", 5, delta="{}"),
        of("reasoning_summary_text.delta", 0, summary_index=0, delta="x"),
        {"type": "response.function_call_arguments.delta", "delta": "x", "item_id": "nobody"},
    ],
)
def test_decision_13_a_delta_that_names_nothing_known_is_an_error_not_a_guess(delta):
    events = decode(sse(CREATED, *text(0, "x"), delta, *text(1, "y")))
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)
    assert events[-1].error.partial.text == "x"


def test_d140r_arguments_that_are_no_object():
    (call,) = message(end_event(call_item("[1]"))).tool_calls
    assert (call.arguments, call.state) == ({"value": [1]}, "complete")
    (call,) = message(end_event(call_item("null"))).tool_calls
    assert (call.arguments, call.state) == ({}, "complete")


def test_cut_calls_are_cut_and_others_that_do_not_parse_invalid():
    length = {"kind": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    for item in (
        call_item('{"a', status="incomplete"),
        call_item('{"a', status="completed"),
        call_item('{"a'),
    ):
        (call,) = message(end_event(item, **length)).tool_calls
        assert (call.state, call.raw, call.arguments) == ("cut", '{"a', {})
    (call,) = message(
        of("output_item.added", item=call_item("")),
        of("function_call_arguments.delta", delta='{"a'),
        end_event(**length),
    ).tool_calls
    assert call.state == "cut"
    (call,) = message(end_event(call_item("nonsense"))).tool_calls
    assert call.state == "invalid"


def test_custom_tools_and_code_stream_as_the_arguments_that_they_become():
    custom = {
        "type": "custom_tool_call",
        "id": "ctc",
        "call_id": "1",
        "name": "sh",
        "input": 'echo "ü"\n',
    }
    code = {
        "type": "code_interpreter_call",
        "id": "ci",
        "status": "completed",
        "code": "1+1",
        "container_id": "c",
    }
    events = decode(
        sse(
            CREATED,
            of("output_item.added", 0, item={**custom, "input": ""}),
            of("custom_tool_call_input.delta", 0, delta='echo "ü'),
            of("custom_tool_call_input.delta", 0, delta='"\n'),
            of("output_item.done", 0, item=custom),
            of("output_item.added", 1, item={**code, "code": "", "status": "in_progress"}),
            of("code_interpreter_call_code.delta", 1, delta="1+1"),
            of("output_item.done", 1, item=code),
            end_event(custom, code),
        )
    )
    assert [e.delta for e in events if isinstance(e, PartDelta)] == [
        '{"input":"echo \\"ü',
        '\\"\\n',
        '"}',
        '{"code":"1+1',
        '","container_id":"c"}',
    ]
    (folded,) = fold(events)
    assert [piece.arguments for piece in folded.content] == [
        {"input": 'echo "ü"\n'},
        {"code": "1+1", "container_id": "c"},
    ]
    assert [call.name for call in folded.tool_calls] == ["sh"]


def test_d144r_what_the_provider_runs_is_seen_when_it_begins():
    item = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    done = {**item, "status": "completed", "action": {"type": "search", "query": "q"}}
    decoder = wire.decoder()
    decoder.feed(sse(CREATED))
    (started,) = decoder.feed(sse(of("output_item.added", item=item)))
    assert (started.part.name, started.part.run_by) == ("web_search", "provider")
    assert decoder.feed(sse(of("web_search_call.searching", item_id="ws_1"))) == []
    events_in = decoder.feed(sse(of("output_item.done", item=done)))
    assert events_in[-1].part.arguments == {"action": {"type": "search", "query": "q"}}


def test_texts_whose_deltas_never_came_are_told_from_the_items():
    """And items from the terminal response, where nothing but that came."""
    part = of("output_item.done", item=message_item("Hello"))
    assert message(part, end_event()).text == "Hello"
    assert message(*text(0, "Hel"), part, end_event()).text == "Hello"
    assert message(end_event(message_item("Hello"))).text == "Hello"


def test_the_item_is_the_authority_where_deltas_said_otherwise():
    folded = message(
        *text(0, "Helo"),
        of("output_item.done", item=message_item("Hello")),
        end_event(message_item("Hello")),
    )
    assert folded.text == "Hello"


def test_content_indexes_may_begin_anywhere():
    """A server counts the reasoning before it."""
    assert (
        message(
            *text(0, "Hi", place=1),
            of("output_item.done", item=message_item("Hi")),
            end_event(message_item("Hi")),
        ).text
        == "Hi"
    )


def test_a_server_without_indexes_is_read_by_ids():
    """llama.cpp tells neither output_index nor content_index; some tell no beginning of items
    either."""
    events = [
        {"type": "response.output_item.added", "item": {**message_item(""), "content": []}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "He"},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "y"},
        {"type": "response.output_item.done", "item": message_item("Hey")},
        {"type": "response.output_item.added", "item": call_item("")},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{}"},
        {"type": "response.output_item.done", "item": call_item("{}")},
    ]
    folded = message(*events, end_event(message_item("Hey"), call_item("{}")))
    assert folded.text == "Hey" and folded.tool_calls[0].arguments == {}
    unannounced = of("output_text.delta", content_index=0, delta="Hey")
    assert message(unannounced, end_event(message_item("Hey"))).text == "Hey"


def test_ids_that_change_with_every_event_repeat_nothing():
    """GitHub Copilot encrypts the ids anew each time; here the terminal output does not even hold
    all items."""
    streamed = [
        of("output_item.added", 0, item=reasoning_item(id_="a")),
        of("reasoning_summary_text.delta", 0, summary_index=0, delta="hm", item_id="b"),
        of("output_item.done", 0, item=reasoning_item("hm", id_="c")),
        *text(1, "Hi"),
        of("output_item.done", 1, item=message_item("Hi", "d")),
    ]
    for output in (
        [reasoning_item("hm", id_="e"), message_item("Hi", "f")],
        [message_item("Hi", "f")],
        [],
    ):
        folded = message(*streamed, end_event(*output))
        assert (folded.thinking, folded.text, len(folded.content)) == ("hm", "Hi", 2)


def test_a_server_that_gives_all_items_one_index():
    events = [
        *text(0, "a"),
        of("output_item.done", 0, item=message_item("a")),
        *[
            {**event, "item": {**event["item"], "id": "msg_2"}} if "item" in event else event
            for event in text(0, "b")
        ],
        of("output_item.done", 0, item=message_item("b", "msg_2")),
        of("output_item.done", 0, item=message_item("c", "msg_3")),
    ]
    assert (
        message(
            *events,
            end_event(message_item("a"), message_item("b", "msg_2"), message_item("c", "msg_3")),
        ).text
        == "abc"
    )


def test_what_comes_of_an_item_that_is_whole_is_told_already():
    late = [
        of("output_text.delta", 0, content_index=0, delta="x"),
        of("output_item.done", 0, item=message_item("Hi")),
    ]
    assert message(*text(0, "Hi"), late[1], *late, end_event(message_item("Hi"))).text == "Hi"


ENDINGS = {
    "message": {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a", "annotations": []}],
    },
    "reasoning": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    "function_call": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
}
PIECES = {
    "message": TextPart("a"),
    "reasoning": ThinkingPart("hm"),
    "function_call": ToolCallPart("c", "f"),
}


@pytest.mark.parametrize("began", ["message", "reasoning", "function_call"])
@pytest.mark.parametrize("ended", ["message", "reasoning", "function_call"])
@pytest.mark.parametrize("again", [True, False])
def test_a_part_ends_as_what_it_began(began, ended, again):
    """Fuzzing: an item that was begun as reasoning was done as a message, whose text closed the
    thinking."""
    item = {"type": began, **({"call_id": "c", "name": "f"} if began == "function_call" else {})}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *([{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": ""}] * (began == "message")),
        {"type": "response.output_item.done", "output_index": 0, "item": ENDINGS[ended]},
        {"type": "response.completed", "response": {**COMPLETED_HEAD, "output": [ENDINGS[ended]] * again}},
    ]  # fmt: skip
    decoded = wire.load_response(
        b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    )
    kinds = {event.index: type(event.part) for event in decoded if isinstance(event, PartStarted)}
    kinds = {index: TextPart if kind is OpenText else kind for index, kind in kinds.items()}
    finished = [event for event in decoded if isinstance(event, PartFinished)]
    assert [kinds[event.index] for event in finished] == [type(event.part) for event in finished]
    (message,) = fold(decoded)
    pieces = [msgspec.structs.replace(piece, native=None) for piece in message.content]
    empty = {
        "reasoning": [ThinkingPart()],
        "function_call": [ToolCallPart("c", "f")],
        "message": [],
    }[began]
    assert pieces == [*([] if began == ended else empty), PIECES[ended]]
    everywhere([message])
    write_all(decoded)


@pytest.mark.slow
def test_items_and_parts_cost_linear_time():
    def stream(size):
        items = [odd_message("a", id=f"m{n}") for n in range(size)]
        done = [{"type": "response.output_item.done", "item": item} for item in items]
        end = {"type": "response.completed", "response": {**COMPLETED_HEAD, "output": items}}
        return wire.load_response(
            b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in (*done, end))
        )

    assert is_linear(stream, 250)


def shell(*commands, **fields):
    action = {"commands": list(commands), "max_output_length": None}
    return {"type": "shell_call", "id": "sh", "call_id": "c", "action": action, "status": "completed", **fields}  # fmt: skip


def patch(diff):
    operation = {"type": "create_file", "path": "p", "diff": diff}
    return {"type": "apply_patch_call", "id": "ap", "call_id": "c", "operation": operation}


COMMANDS = [
    of("output_item.added", item=shell(status="in_progress")),
    of("shell_call_command.added", command_index=0, command=""),
    of("shell_call_command.delta", command_index=0, delta='ls "x'),
    of("shell_call_command.done", command_index=0, command='ls "x'),
    of("shell_call_command.added", command_index=1, command="p"),
    of("shell_call_command.delta", command_index=1, delta="wd"),
]
DIFFS = [
    of("output_item.added", item=patch("")),
    of("apply_patch_call_operation_diff.delta", delta="+a\n"),
    of("apply_patch_call_operation_diff.delta", delta="+b"),
]


@pytest.mark.parametrize(
    ("events", "item", "known"),
    [
        (COMMANDS, shell('ls "x', "pwd"), '{"action":{"commands":["ls \\"x","pwd'),
        (DIFFS, patch("+a\n+b"), '{"operation":{"type":"create_file","path":"p","diff":"+a\\n+b'),
    ],
    ids=["shell", "patch"],
)
def test_commands_and_patches_are_told_while_they_come_and_kept_if_they_are_cut(
    events, item, known
):
    """R, section 1: they were silent, and a stream that was cut kept none of them."""
    told = decode(sse(CREATED, *events, of("output_item.done", item=item), end_event(item)))
    (folded,) = fold(told)
    text = "".join(event.delta for event in told if isinstance(event, PartDelta))
    assert text.startswith(known)
    assert json.loads(text) == folded.tool_calls[0].arguments
    assert wire.dump_messages([folded])["input"] == [item]
    (cut,) = fold(decode(sse(CREATED, *events)))
    assert (cut.tool_calls[0].state, cut.tool_calls[0].raw) == ("cut", known)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "local_shell_call", "id": "l", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "computer_call", "id": "cu", "call_id": "c", "action": {"type": "wait"}},
        {"type": "mcp_approval_request", "id": "m", "name": "f", "server_label": "s", "arguments": '{"a":1}'},
        patch("+a"),
    ],
    ids=lambda item: item["type"],
)  # fmt: skip
def test_a_cut_stream_keeps_what_an_item_began_with(item):
    (cut,) = fold(decode(sse(CREATED, of("output_item.added", item=item))))
    whole = message(of("output_item.added", item=item), of("output_item.done", item=item), end_event(item))  # fmt: skip
    assert cut.tool_calls[0].state == "cut"
    assert json.loads(cut.tool_calls[0].raw) == whole.tool_calls[0].arguments


@pytest.mark.parametrize(
    ("kind", "fields", "name"),
    [
        ("shell_call_output_content.delta", {"command_index": 0, "delta": {"stdout": "x"}}, "shell_call.output"),
        ("compaction.compacting", {}, "compaction.compacting"),
        ("mcp_list_tools.failed", {}, "mcp_list_tools.failed"),
        ("audio.transcript.delta", {"delta": "Hi"}, "audio.transcript"),
    ],
)  # fmt: skip
def test_what_no_part_holds_is_told_as_an_event(kind, fields, name):
    sent = {**of(kind, **fields), "item_id": "i", "sequence_number": 3}
    told = decode(sse(CREATED, sent, end_event(message_item("x"))))
    assert [event for event in told if isinstance(event, Custom)] == [Custom(name, {**fields, "item_id": "i"})]  # fmt: skip
    assert fold(told)[0].text == "x"


@pytest.mark.parametrize(
    "odd",
    [
        of("shell_call_command.added", command_index="x", command=3),
        of("shell_call_command.added", command_index=-1, command="a"),
        of("shell_call_command.delta", command_index=10**9, delta="b"),
        of("shell_call_command.delta", delta=None),
        of("apply_patch_call_operation_diff.delta", delta="x"),
        {"type": "compaction.compacting"},
    ],
)
def test_odd_deltas_of_calls_break_nothing(odd):
    item = shell("ls")
    folded = message(COMMANDS[0], odd, of("output_item.done", item=item), end_event(item))
    assert wire.dump_messages([folded])["input"] == [item]
