"""Results of tools in the openai_responses wire (D-138; decision 22)."""

from __future__ import annotations

from dragoman.loss import Loss
from dragoman.message import DataPart, Message, TextPart, ToolResultPart
from support.responses import OPENAI, PNG, answered, items, load


def test_d138_results():
    results = [
        ToolResultPart("1", "f", "text"),
        ToolResultPart("2", "f", None),
        ToolResultPart("3", "f", {"a": [1]}),
        ToolResultPart("4", "f", [TextPart("x"), DataPart(PNG, "image/png")]),
    ]
    outputs = [item["output"] for item in items(Message.user(*results))]
    assert outputs[:3] == ["text", "null", '{"a":[1]}']
    assert [block["type"] for block in outputs[3]] == ["input_text", "input_image"]


def test_answers_have_the_type_that_their_calls_want():
    calls = load(
        {"type": "custom_tool_call", "call_id": "1", "name": "sh", "input": "ls"},
        {
            "type": "local_shell_call",
            "id": "l",
            "call_id": "2",
            "action": {},
            "status": "completed",
        },
        {"type": "shell_call", "call_id": "3", "action": {}},
        {"type": "apply_patch_call", "call_id": "4", "operation": {}, "status": "completed"},
        {"type": "computer_call", "call_id": "5", "action": {}},
        {"type": "tool_search_call", "call_id": "6", "execution": "client", "arguments": {}},
    )
    assert [call.name for call in calls[0].tool_calls] == [
        "sh", "local_shell", "shell", "apply_patch", "computer", "tool_search",
    ]  # fmt: skip
    assert calls[0].tool_calls[0].arguments == {"input": "ls"}
    results = [ToolResultPart(str(n), "", "out") for n in range(1, 5)]
    results += [
        ToolResultPart("5", "", [DataPart(PNG, "image/png")]),
        ToolResultPart("6", "", [{"type": "function"}]),
    ]
    dumped = items(*calls, Message.user(*results))[6:]
    assert dumped == [
        {"type": "custom_tool_call_output", "call_id": "1", "output": "out"},
        {"type": "local_shell_call_output", "call_id": "2", "output": "out"},
        {
            "type": "shell_call_output",
            "call_id": "3",
            "output": [
                {"stdout": "out", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
            ],
        },
        {"type": "apply_patch_call_output", "call_id": "4", "status": "completed", "output": "out"},
        {
            "type": "computer_call_output",
            "call_id": "5",
            "output": {
                "type": "computer_screenshot",
                "image_url": "data:image/png;base64,iVBORw==",
            },
        },
        {
            "type": "tool_search_output",
            "call_id": "6",
            "execution": "client",
            "status": "completed",
            "tools": [{"type": "function"}],
        },
    ]


def test_a_failed_tool_is_marked_where_the_api_can():
    losses = []
    call = {"type": "apply_patch_call", "call_id": "1", "operation": {}, "status": "completed"}
    failed = Message.user(
        ToolResultPart("1", "", "no", is_error=True), ToolResultPart("2", "", "no", is_error=True)
    )
    dumped = items(*load(call), failed, losses=losses)
    assert dumped[1]["status"] == "failed"
    assert losses == [Loss(1, 1, "is_error", "the API has no mark for a failed tool")]
    losses.clear()
    items(Message.user(ToolResultPart("2", "", {"error": "no"}, is_error=True)), losses=losses)
    assert not losses


def test_decision_22_results_of_the_providers_own_tools():
    call = {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "1",
        "container_id": "c",
        "outputs": [{"type": "logs", "logs": "1"}],
    }
    message = answered(
        call,
        {
            "type": "mcp_call",
            "id": "m",
            "server_label": "s",
            "name": "f",
            "arguments": "{}",
            "output": "x",
        },
    )
    assert [(type(p).__name__, p.name, p.run_by) for p in message.content] == [
        ("ToolCallPart", "code_interpreter", "provider"),
        ("ToolResultPart", "code_interpreter", "provider"),
        ("ToolCallPart", "f", "provider"),
        ("ToolResultPart", "f", "provider"),
    ]
    assert message.content[0].arguments == {"code": "1", "container_id": "c"}
    assert message.content[1].result == [{"type": "logs", "logs": "1"}]
    assert not message.tool_calls
    assert items(message, target=OPENAI)[0] == call
