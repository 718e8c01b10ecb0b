"""What `useChat` sends, both ways."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from dragoman import wires
from dragoman.codec.serving import Problem
from dragoman.errors import DragomanError, HistoryError
from dragoman.interrupt import Resume
from dragoman.message import Message
from dragoman.request import RunRequest, ToolSpec

WIRE: Any = wires.protocol("ai_sdk")
ODD: list[Any] = [
    None,
    True,
    0,
    -1.5,
    10**30,
    "",
    "a",
    [],
    {},
    ["x"],
    {"dragoman": {"a": 1}},
    {"a": {"b": [1]}},
]
BODY: dict[str, Any] = {
    "id": "chat",
    "trigger": "submit-message",
    "messageId": "m",
    "messages": [
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Buy tea."}]},
        {
            "id": "m",
            "role": "assistant",
            "metadata": {},
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "Hm.", "providerMetadata": {}},
                {
                    "type": "tool-pay",
                    "toolCallId": "c1",
                    "state": "approval-responded",
                    "input": {"sum": 3},
                    "approval": {"id": "c1", "approved": True, "reason": "fine", "signature": "s"},
                },
                {
                    "type": "dynamic-tool",
                    "toolName": "locate",
                    "toolCallId": "c2",
                    "state": "output-available",
                    "input": {},
                    "output": {"city": "Pera"},
                },
                {"type": "data-chart", "id": "1", "data": {}},
            ],
        },
    ],
    "tools": [{"name": "locate", "inputSchema": {}}],
    "resume": [{"interruptId": "q", "status": "resolved", "payload": {"value": 1}}],
    "state": {"n": 1},
    "context": [{"page": "home"}],
    "locale": "tr",
}


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str | int, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    return [path, *[each for key, below in inner for each in places(below, (*path, key))]]


def with_value(path: tuple[Any, ...], value: Any) -> Any:
    body = json.loads(json.dumps(BODY))
    if not path:
        return value
    at = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return body


def test_a_chat_is_a_thread_and_its_answers_are_resumes_and_results() -> None:
    request = WIRE.load_run(BODY)
    assert (request.thread_id, request.state, request.context) == (
        "chat",
        {"n": 1},
        ({"page": "home"},),
    )
    assert [tool.name for tool in request.tools] == ["locate"]
    assert [(each.interrupt_id, each.signature) for each in request.resume] == [
        ("c1", "s"),
        ("q", None),
    ]
    assert [result.result for message in request.messages for result in message.tool_results] == [
        {"city": "Pera"}
    ]
    assert request.metadata["body"]["locale"] == "tr"


def test_an_answer_that_is_made_anew_is_not_in_the_conversation() -> None:
    again = {name: BODY[name] for name in ("id", "messages")} | {"trigger": "regenerate-message"}
    assert [message.id for message in WIRE.load_run(again).messages] == ["u"]


def test_a_request_comes_back() -> None:
    request = RunRequest(
        (Message.user("Buy tea.").replace(id="u"),),
        thread_id="chat",
        tools=(ToolSpec("locate", "Where.", {"type": "object"}),),
        state={"n": 1},
        context=({"page": "home"},),
        resume=(Resume("q", payload={"value": 1}, signature="s", metadata={"a": 1}),),
    )
    read = WIRE.load_run(WIRE.dump_run(request))
    for field in ("messages", "thread_id", "tools", "state", "context", "resume"):
        assert getattr(read, field) == getattr(request, field), field


@pytest.mark.parametrize(
    "given", [None, 1, "x", [], [1], {}, {"messages": {}}, {"messages": [], "id": 1}]
)
def test_what_is_no_chat_is_refused(given: Any) -> None:
    with pytest.raises(HistoryError):
        WIRE.load_run(given)


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_confused_types_are_read_or_refused(odd: int) -> None:
    """Whatever JSON stands anywhere, it is read or an error of ours."""
    for path in places(BODY):
        noted: list[Problem] = []
        for problems in (None, noted):
            try:
                WIRE.dump_run(WIRE.load_run(with_value(path, ODD[odd]), problems=problems))
            except DragomanError:
                continue


def test_what_assistant_ui_sends_beside_the_messages_is_read() -> None:
    """Its transport sends the tools by their names, `{}` where there are none, and the
    application's instructions."""
    tools: Any = {
        "locate": {"description": "Where.", "parameters": {"type": "object"}},
        "look": {"parameters": {}},
    }
    body: Any = {
        **BODY,
        "tools": tools,
        "system": "Be short.",
        "callSettings": {},
        "context": "home",
    }
    request = WIRE.load_run(body)
    assert request.tools == (
        ToolSpec("locate", "Where.", {"type": "object"}),
        ToolSpec("look", "", {}),
    )
    assert request.messages[0] == Message.system("Be short.")
    assert request.metadata["body"].keys() == {"locale", "callSettings", "trigger", "messageId"}
    assert request.context == ("home",)
    assert WIRE.load_run({**BODY, "tools": {}}).tools == ()
    assert WIRE.load_run({**BODY, "system": {"a": 1}}).metadata["body"]["system"] == {"a": 1}
    with pytest.raises(HistoryError, match="object of them by name"):
        WIRE.load_run({**BODY, "tools": "all"})
