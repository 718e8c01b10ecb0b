"""The rules of the seed's functions, T-01 to T-55, each by its number."""

from __future__ import annotations

import copy
import json
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.formats import seed_a2a
from dragoman.wires import a2a, ag_ui

Json = dict[str, Any]
KIND = seed_a2a.get_agui_event_type_from_a2a_message
EVENT = seed_a2a.convert_a2a_message_to_agui_event
COMPACT = seed_a2a.compact_events
CHAT = seed_a2a.convert_agui_event_to_openai_chat
RESPONSES = seed_a2a.convert_agui_event_to_responses_api


def message(role: str | None, *parts: Json, kind: str | None = None) -> Json:
    return {
        "role": role,
        "parts": [*parts],
        **({"metadata": {"canonical_type": kind}} if kind else {}),
    }


def said(text: str) -> Json:
    return {"kind": "text", "text": text}


def calls(*listed: Any) -> Json:
    return {"kind": "data", "data": {"tool_calls": [*listed]}}


def results(*listed: Any) -> Json:
    return {"kind": "data", "data": {"tool_results": [*listed]}}


def call(id_: str, **arguments: Any) -> Json:
    return {"call_id": id_, "name": "f", "arguments": arguments}


def start(*ids: str, **arguments: Any) -> Json:
    return EVENT(message("agent", calls(*(call(each, **arguments) for each in ids))))


def args(id_: str, **arguments: Any) -> Json:
    return EVENT(message("agent", calls(call(id_, **arguments)), kind="ToolCallArgsEvent"))


def chunk(text: str) -> Json:
    return EVENT(message("agent", said(text), kind="TextMessageChunkEvent"))


def end(text: str) -> Json:
    return EVENT(message("agent", said(text)))


CONTENT = EVENT(message("user", said("Hi.")))
RESULT = EVENT(message("user", results({"call_id": "a", "name": "f", "output": "x"})))


@pytest.mark.parametrize("name", [name for name in seed_a2a.__all__ if name != "STATE_TYPES"])
def test_a_conversion_is_imported_from_the_wire_of_a2a_as_its_document_says(name: str) -> None:
    assert getattr(a2a, name) is getattr(seed_a2a, name)


@pytest.mark.parametrize(
    "name",
    ["compact_events", "convert_agui_event_to_openai_chat", "convert_agui_event_to_responses_api"],
)
def test_a_conversion_of_events_is_imported_from_the_wire_of_ag_ui_too(name: str) -> None:
    assert getattr(ag_ui, name) is getattr(seed_a2a, name)


def test_t01_the_canonical_type_is_returned_as_it_is() -> None:
    assert KIND(message("user", said("x"), kind="NoSuchEvent")) == "NoSuchEvent"
    assert KIND(message("user", said("x"), kind="ToolCallStartEvent")) == "ToolCallStartEvent"


def test_t02_else_the_role_and_the_parts_say_it() -> None:
    assert KIND(message("user", said("x"), results())) == "ToolCallResultEvent"
    assert KIND(message("user", said("x"))) == "TextMessageContentEvent"
    assert KIND(message("agent", said("x"), calls())) == "ToolCallStartEvent"
    assert KIND(message("agent", said("x"))) == "TextMessageEndEvent"


@pytest.mark.parametrize(
    "odd",
    [
        message("user"),
        message(None, said("x")),
        message("agent", results()),
        message("user", calls()),
    ],
)
def test_t03_anything_else_is_content(odd: Json) -> None:
    assert KIND(odd) == "TextMessageContentEvent"


def test_t04_pieces_are_never_inferred() -> None:
    assert {
        KIND(message(role, said("x"), *more))
        for role in ("user", "agent")
        for more in ([], [calls()])
    } == {
        "TextMessageContentEvent",
        "TextMessageEndEvent",
        "ToolCallStartEvent",
    }


def test_t05_the_key_counts_with_an_empty_list_too() -> None:
    assert KIND(message("agent", calls())) == "ToolCallStartEvent"
    assert EVENT(message("agent", calls())) == {"type": "tool-call-start", "toolCalls": []}


class _Role(Enum):
    agent = "agent"


def test_t06_objects_wrapped_parts_and_enums_are_read() -> None:
    part = SimpleNamespace(root=SimpleNamespace(kind="data", data={"tool_calls": [call("a", x=1)]}))
    for role in ("agent", _Role.agent, SimpleNamespace(value="agent"), "ROLE_AGENT"):
        made = SimpleNamespace(role=role, parts=[part], metadata=None)
        assert EVENT(made) == start("a", x=1)


def test_t06_messages_of_protobuf_are_read() -> None:
    types = pytest.importorskip("a2a.types")
    made = types.Message(message_id="m", role=types.Role.ROLE_USER, parts=[types.Part(text="Hi.")])
    assert EVENT(made) == CONTENT


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("rejected", "RunErrorEvent"), ("submitted", "RunStartedEvent"), ("auth-required", "RunStartedEvent"),
        ("nonsense", "RunStartedEvent"), (None, "RunStartedEvent"), ("TASK_STATE_INPUT_REQUIRED", "StepFinishedEvent"),
        (SimpleNamespace(value="working"), "StepStartedEvent"),
    ],
)  # fmt: skip
def test_t07_every_state_has_a_type(state: Any, kind: str) -> None:
    assert (
        seed_a2a.get_agui_event_type_from_task_status_update({"status": {"state": state}}) == kind
    )
    assert (
        seed_a2a.get_agui_event_type_from_task_status_update(
            SimpleNamespace(status=SimpleNamespace(state=state))
        )
        == kind
    )


def test_t07_a_run_without_a_task_has_no_id() -> None:
    assert seed_a2a.convert_task_status_update_to_agui_event(
        {"status": {"state": "working"}}, None
    ) == {
        "type": "step-started",
        "runId": "",
    }


@pytest.mark.mend("3.5")
def test_t07_the_beginning_of_a_run_has_its_context() -> None:
    """Seed 002: `RunStartedEvent` is made of `task.id` and `task.context_id`, and "Task (initial)"
    is one."""
    for name in ("context_id", "contextId"):
        for state, kind in (("submitted", {}), ("working", {"kind": "task"})):
            task = {**kind, "id": "t", name: "c", "status": {"state": state}}
            event = {"type": "run-started", "runId": "t", "threadId": "c"}
            assert seed_a2a.convert_task_status_update_to_agui_event(task) == event
            assert (
                seed_a2a.convert_task_status_update_to_agui_event(SimpleNamespace(**task)) == event
            )
    update = {
        "kind": "status-update",
        "taskId": "t",
        "contextId": "c",
        "status": {"state": "working"},
    }
    assert seed_a2a.convert_task_status_update_to_agui_event(update) == {
        "type": "step-started",
        "runId": "t",
    }


def test_t08_only_messages_are_marked() -> None:
    update = {"status": {"state": "working"}}
    assert seed_a2a.add_canonical_type_to_message(update) == {"status": {"state": "working"}}
    made = SimpleNamespace(role="user", parts=[{"text": "x"}], metadata={"mine": 1})
    assert seed_a2a.add_canonical_type_to_message(made).metadata == {
        "mine": 1,
        "canonical_type": "TextMessageContentEvent",
    }


def test_t10_texts_are_joined_and_roles_are_two() -> None:
    assert EVENT(message("user", said("a"), calls(), said("b")))["message"] == {
        "role": "user",
        "content": "ab",
    }
    assert EVENT(message("agent", said("a")))["message"]["role"] == "assistant"
    assert EVENT(message("other", said("a")))["message"]["role"] == "assistant"


def test_t11_text_survives_to_chat_and_an_unknown_type_is_content() -> None:
    for kind in ("TextMessageContentEvent", "TextMessageEndEvent", "NoSuchEvent"):
        [event] = COMPACT([EVENT(message("user", said("x"), kind=kind))])
        assert CHAT(event) == ({"role": "user", "content": "x"}, [])


def test_t12_calls_are_collected_over_parts_and_what_is_missing_is_empty() -> None:
    assert EVENT(message("agent", calls({}), calls(call("b"))))["toolCalls"] == [
        {"id": "", "name": "", "arguments": {}},
        {"id": "b", "name": "f", "arguments": {}},
    ]


def test_t13_results_are_a_list_where_there_are_several() -> None:
    event = EVENT(
        message(
            "user", results({"call_id": "a", "output": 1}), results({"call_id": "b", "output": 2})
        )
    )
    assert event == {
        "type": "tool-call-result",
        "results": [{"toolCallId": "a", "result": 1}, {"toolCallId": "b", "result": 2}],
    }


def test_t14_text_beside_calls_and_results_is_kept() -> None:
    event = EVENT(message("agent", said("I look."), calls(call("a"))))
    told, _ = CHAT(event)
    assert told is not None and told["content"] == "I look." and len(told["tool_calls"]) == 1


@pytest.mark.parametrize("odd", [None, {}, "x", 1])
def test_t15_what_is_no_list_is_ignored(odd: Any) -> None:
    data = {"kind": "data", "data": {"tool_calls": odd, "tool_results": odd}}
    assert EVENT(message("agent", data)) == {"type": "tool-call-start", "toolCalls": []}
    assert EVENT(message("user", data)) == {"type": "tool-call-result", "results": []}


def test_t20_nothing_gives_nothing_and_the_unknown_passes() -> None:
    assert COMPACT([]) == []
    events = [{"type": "run-started"}, CONTENT, {"type": "strange", "x": 1}, RESULT]
    assert COMPACT(events) == events


def test_t21_chunks_before_their_end_go() -> None:
    assert COMPACT([chunk("a"), chunk("ab"), end("abc")]) == [end("abc")]
    assert COMPACT([chunk("a"), RESULT, end("b")]) == [end("a"), RESULT, end("b")]


@pytest.mark.mend("3.5")
def test_t21_a_call_with_the_text_of_its_chunks_says_it_once() -> None:
    whole = EVENT(message("agent", said("Let me look."), calls(call("a"))))
    assert COMPACT([chunk("Let me"), chunk("Let me look."), whole]) == [whole]
    assert COMPACT([chunk("Let me"), args("a", x=1), whole]) == [
        {**whole, "toolCall": start("a", x=1)["toolCall"]}
    ]
    assert COMPACT([chunk("Hmm."), whole]) == [end("Hmm."), whole]
    assert COMPACT([chunk("Let me "), chunk("look."), whole]) == [
        whole
    ]  # chunks that hold only what is new


@pytest.mark.mend("3.5")
def test_t22_an_answer_that_was_cut_survives_the_next() -> None:
    assert COMPACT([chunk("First"), chunk("Sec"), chunk("Second")]) == [end("First"), end("Second")]
    assert COMPACT([chunk("First"), chunk("Sec"), end("Second")]) == [end("First"), end("Second")]


def test_t22_an_answer_that_was_cut_keeps_its_last() -> None:
    compacted = COMPACT([CONTENT, chunk("a"), chunk("ab")])
    assert compacted == [CONTENT, end("ab")]
    assert [CHAT(event)[0] for event in compacted][-1] == {"role": "assistant", "content": "ab"}


def test_t23_content_end_and_result_stay() -> None:
    assert COMPACT([CONTENT, end("x"), RESULT]) == [CONTENT, end("x"), RESULT]


@pytest.mark.mend("3.5")
def test_t24_later_arguments_are_merged() -> None:
    assert COMPACT([start("a", z=0), args("a", a=1), args("a", b=2)]) == [start("a", z=0, a=1, b=2)]
    assert COMPACT([start("a", z=0), args("a", z=1)]) == [start("a", z=1)]
    assert COMPACT([args("a", location="Oakland"), start("a")]) == [start("a", location="Oakland")]
    assert COMPACT([args("a", z=0), start("a", z=1), RESULT, args("a", z=2)]) == [
        start("a", z=1),
        RESULT,
    ]
    assert COMPACT([start("a", z=0), args("other", a=1)]) == [start("a", z=0)]
    odd = {"type": "tool-call-args", "toolCall": {"id": "a", "name": "f", "arguments": "text"}}
    assert COMPACT([start("a", z=0), odd]) == [start("a", z=0)]


def test_t25_another_call_does_not_take_the_place_of_the_first() -> None:
    assert COMPACT([start("a"), start("b")]) == [start("a"), start("b")]
    assert COMPACT([start("a"), args("a", x=1), start("a", x=2)]) == [start("a", x=2)]
    assert COMPACT([start("a"), start("a", "b")]) == [start("a", "b")]


@pytest.mark.mend("3.5")
def test_t25_the_text_and_the_arguments_of_a_call_that_came_again_stay() -> None:
    first = EVENT(message("agent", said("I look."), calls(call("a", x=1))))
    assert COMPACT([first, start("a", y=2)]) == [end("I look."), start("a", x=1, y=2)]
    assert COMPACT([start("", z=0), start("", z=1)]) == [start("", z=0), start("", z=1)]
    loaded = a2a.load_messages(
        [message("agent", said("I look."), calls(call("a"))), message("agent", calls(call("a")))]
    )
    assert [(each.text, len(each.tool_calls)) for each in loaded] == [("I look.", 0), ("", 1)]


def test_t26_arguments_without_a_start_go() -> None:
    assert COMPACT([args("a", x=1)]) == []
    assert COMPACT([args("a", x=1), start("a", x=2)]) == [start("a", x=2)]


def test_t27_a_start_without_calls_stays() -> None:
    assert COMPACT([start(), start("a")]) == [start(), start("a")]


def test_t28_what_is_given_is_left_as_it_is() -> None:
    events = [start("a", z=0), args("a", b=2), chunk("x")]
    before = copy.deepcopy(events)
    COMPACT(events)
    assert events == before


def test_t30_only_whole_events_are_messages() -> None:
    assert CHAT(chunk("x")) == CHAT(args("a")) == CHAT({"type": "strange"}) == (None, [])


def test_t31_arguments_are_json_with_the_usual_separators() -> None:
    told, _ = CHAT(start("a", location="Oakland", n=1))
    assert told is not None
    assert told["tool_calls"][0]["function"]["arguments"] == '{"location": "Oakland", "n": 1}'
    text = {"type": "tool-call-start", "toolCall": {"id": "a", "name": "f", "arguments": "{half"}}
    assert (CHAT(text)[0] or {})["tool_calls"][0]["function"]["arguments"] == "{half"


@pytest.mark.parametrize(
    ("output", "content"), [({"a": [1]}, '{"a": [1]}'), (None, "null"), ("x", "x"), (True, "true")]
)
def test_t32_results_are_json(output: Any, content: str) -> None:
    event = EVENT(message("user", results({"call_id": "a", "output": output})))
    assert CHAT(event)[1][0]["content"] == content


def test_t33_text_beside_results_is_a_message_of_its_own() -> None:
    event = EVENT(message("user", said("And?"), results({"call_id": "a", "output": "x"})))
    told, tools = CHAT(event)
    assert told == {"role": "user", "content": "And?"} and len(tools) == 1
    assert (
        CHAT(EVENT(message("user", said(""), results({"call_id": "a", "output": "x"}))))[0] is None
    )


def test_t34_nothing_is_no_message() -> None:
    assert CHAT(None) == CHAT({}) == (None, [])


@pytest.mark.mend("3.5")
@pytest.mark.parametrize("odd", [{"message": None}, {"message": {}}, {"message": "x"}, {}])
@pytest.mark.parametrize("type_", ["text-message-content", "text-message-end"])
def test_t34_an_event_without_a_message_gives_none(type_: str, odd: Json) -> None:
    assert CHAT({"type": type_, **odd}) == (None, [])
    assert RESPONSES({"type": type_, **odd}) == {}


def test_t40_texts_for_responses() -> None:
    data = {"role": "assistant", "content": "x"}
    assert RESPONSES(chunk("x")) == {"event": "message.delta", "data": data}
    assert RESPONSES(end("x")) == {"event": "message.done", "data": data}


def test_t41_calls_for_responses() -> None:
    for event in (start("a"), args("a")):
        told = RESPONSES(event)
        assert isinstance(told, dict) and told["event"] == "message.delta"
        assert told["data"].keys() == {"role", "tool_calls"}


def test_t42_every_result_is_an_event() -> None:
    event = EVENT(
        message("user", results({"call_id": "a", "output": 1}, {"call_id": "b", "output": 2}))
    )
    told = RESPONSES(event)
    assert isinstance(told, list) and [each["data"]["tool_call_id"] for each in told] == ["a", "b"]
    assert RESPONSES({"type": "tool-call-result", "results": []}) == []


def test_t43_runs_and_steps_have_events_and_the_unknown_has_none() -> None:
    assert RESPONSES({"type": "run-finished", "runId": "t"}) == {
        "event": "run.done",
        "data": {"runId": "t"},
    }
    assert RESPONSES({"type": "strange"}) == {}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("{half", {}),
        ("[1]", [1]),
        ({"a": 1}, {"a": 1}),
        (None, {}),
    ],
)
def test_t50_arguments_of_a_call_for_mcp(text: Any, read: Any) -> None:
    made = {"id": "a", "function": {"name": "f", "arguments": text}}
    assert seed_a2a.convert_openai_tool_call_to_mcp(made) == {
        "call_id": "a",
        "name": "f",
        "arguments": read,
    }
    as_object = SimpleNamespace(id="a", function=SimpleNamespace(name="f", arguments=text))
    assert seed_a2a.convert_openai_tool_call_to_mcp(as_object) == {
        "call_id": "a",
        "name": "f",
        "arguments": read,
    }


def test_t51_what_an_mcp_tool_lacks_is_empty() -> None:
    assert seed_a2a.convert_mcp_tool_to_openai(
        SimpleNamespace(name="f", description=None, inputSchema=None)
    ) == {
        "type": "function",
        "function": {"name": "f", "description": "", "parameters": {}},
    }
    assert seed_a2a.convert_mcp_tool_to_openai({"name": "f", "inputSchema": {"type": "object"}})[
        "function"
    ]["parameters"] == {"type": "object"}


def test_t52_text_and_results_of_all_parts() -> None:
    one, two = {"call_id": "a", "output": 1}, {"call_id": "b", "output": 2}
    mixed = message("user", said("a"), results(one), said("b"), results(two))
    assert seed_a2a.extract_user_text_and_tool_results(mixed) == ("ab", [one, two])
    assert seed_a2a.extract_user_text_and_tool_results(message("user")) == ("", [])


def test_t53_a_result_that_answers_nothing_or_says_nothing_is_refused() -> None:
    assert (
        seed_a2a.convert_tool_result_to_openai({"call_id": "a", "output": {"x": 1}})["content"]
        == '{"x":1}'
    )
    for odd in (
        {"output": 1},
        {"call_id": "a"},
        {"call_id": "a", "output": None},
        {"call_id": 1, "output": 1},
    ):
        with pytest.raises(ValueError, match="call"):
            seed_a2a.convert_tool_result_to_openai(odd)


def test_t54_events_of_clients_are_unwrapped() -> None:
    task = {"id": "t", "status": {"state": "working"}}
    assert seed_a2a.extract_event_data((task, "update")) == "update"
    assert seed_a2a.extract_event_data((task,)) is task
    assert seed_a2a.extract_event_data("x") == "x"
    assert seed_a2a.extract_task_from_tuple((task, None)) is task
    assert seed_a2a.extract_task_from_tuple(task) is None
    for event in (
        task,
        (task, None),
        {"task": task},
        {"result": {"task": task}},
        SimpleNamespace(root=task),
    ):
        assert seed_a2a.extract_task_from_event(event) is task
    assert seed_a2a.extract_task_from_event({"message": {}}) is None


def test_t55_a_degree_sign_is_one() -> None:
    event = EVENT(message("user", results({"call_id": "a", "output": {"now": "Sunny, 72°F"}})))
    assert json.loads(CHAT(event)[1][0]["content"]) == {"now": "Sunny, 72°F"}
    assert "72°F" in CHAT(event)[1][0]["content"]


def test_t02_todays_parts_are_read_too() -> None:
    made = {"type": "tool-call", "toolCallId": "a", "toolCallName": "f", "arguments": '{"n": 1}'}
    gave = {"type": "tool-result", "toolCallId": "a", "content": "x"}
    assert EVENT({"role": "ROLE_AGENT", "parts": [{"data": made}]}) == start("a", n=1)
    assert EVENT({"role": "ROLE_USER", "parts": [{"data": gave}]}) == RESULT
    both = EVENT(
        {"role": "ROLE_AGENT", "parts": [{"data": made}, {"data": {**made, "toolCallId": "b"}}]}
    )
    assert [each["id"] for each in both["toolCalls"]] == ["a", "b"]


def test_t01_an_empty_type_and_one_that_is_no_text_are_none() -> None:
    for kind in ("", 1, None, ["x"]):
        assert (
            KIND({**message("agent", said("x")), "metadata": {"canonical_type": kind}})
            == "TextMessageEndEvent"
        )


def test_t10_an_event_without_a_role_is_the_assistants() -> None:
    assert CHAT({"type": "text-message-end", "message": {"content": "x"}})[0] == {
        "role": "assistant",
        "content": "x",
    }


def test_t12_a_start_without_calls_in_its_message_is_an_empty_list() -> None:
    assert EVENT(message("agent", said("x"), kind="ToolCallStartEvent")) == {
        "type": "tool-call-start",
        "toolCalls": [],
        "content": "x",
    }


def test_t24_in_messages_themselves() -> None:
    """The direct way merges arguments too, in parts that are wrapped as well, and leaves other
    calls as they are."""
    whole = {"root": calls(call("a", z=0), call("b", z=1))}
    later = message("agent", calls(call("a", b=2), call("other", c=3)), kind="ToolCallArgsEvent")
    loaded = a2a.load_messages([message("agent", said("I look."), whole), later])
    assert [(each.id, each.arguments) for each in loaded[0].tool_calls] == [
        ("a", {"z": 0, "b": 2}),
        ("b", {"z": 1}),
    ]
    assert loaded[0].text == "I look." and len(loaded) == 1
    cut = a2a.load_messages([message("agent", said("a"), kind="TextMessageChunkEvent")])
    assert [each.text for each in cut] == ["a"]


def test_t43_a_runs_beginning_is_told() -> None:
    assert RESPONSES({"type": "run-started", "runId": "t"}) == {
        "event": "run.started",
        "data": {"runId": "t"},
    }


def test_t07_an_update_knows_its_task() -> None:
    for update in ({"taskId": "t"}, {"task_id": "t"}):
        event = seed_a2a.convert_task_status_update_to_agui_event(
            {**update, "status": {"state": "working"}}
        )
        assert event == {"type": "step-started", "runId": "t"}
