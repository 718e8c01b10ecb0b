"""Tools and calls of the openai_responses wire (D-144r; decisions 22 and 27)."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from dragoman.errors import HistoryError
from dragoman.fold import fold
from dragoman.loss import Loss
from dragoman.message import DataPart, Message, ToolCallPart
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import openai_responses as wire
from support.responses import (
    CALL_ITEM,
    HI,
    OPENAI,
    SCHEMA,
    WHOLE,
    XAI,
    answered,
    dump,
    items,
    load,
    reads_back,
    there_and_back,
)


def test_a_call_of_a_tool_with_a_name_of_its_own_has_it_as_it_came():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    there_and_back(search)
    there_and_back({**search, "name": "web_search"})


def test_a_call_without_an_id_is_none_that_could_be_answered():
    (message,) = there_and_back({**CALL_ITEM, "call_id": ""})
    assert not message.tool_calls


def test_cut_and_invalid_calls_are_not_sent_again_as_they_were():
    cut = ToolCallPart("1", "f", raw='{"a', state="cut")
    invalid = ToolCallPart("2", "f", raw="nonsense", state="invalid")
    assert [item["arguments"] for item in items(Message.model(cut, invalid))] == ["{}", "{}"]


def test_an_edited_call_is_sent_as_edited():
    (message,) = load(
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{ "a": 1 }'}
    )
    edited = msgspec.structs.replace(message.content[0], arguments={"a": 2})
    assert items(Message.model(edited))[0]["arguments"] == '{"a":2}'


def test_d144r_made_images_are_data_and_go_back_into_their_call():
    call = {
        "type": "image_generation_call",
        "id": "ig_1",
        "status": "completed",
        "result": "iVBORw0K",
        "output_format": "webp",
    }
    message = answered(call, {**call, "id": "ig_2", "result": "/9j/", "output_format": None})
    images = [piece for piece in message.content if isinstance(piece, DataPart)]
    assert [(image.name, image.mime_type) for image in images] == [
        ("image_0.webp", "image/webp"),
        ("image_1.jpeg", "image/jpeg"),
    ]
    assert items(message, target=OPENAI)[0] == call
    losses = []
    dumped = items(message, target=XAI, losses=losses)
    assert [item["content"] for item in dumped] == [
        "[media: image/webp] image_0.webp",
        "[media: image/jpeg] image_1.jpeg",
    ]
    assert len(losses) == 4


def test_tools_are_flat_and_not_strict_unless_they_say_so():
    strict = ToolSpec("g", "does", SCHEMA, {"openai_responses": {"strict": True}})
    assert dump(tools=[ToolSpec("f"), strict])["tools"] == [
        {
            "type": "function",
            "name": "f",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        },
        {
            "type": "function",
            "name": "g",
            "description": "does",
            "parameters": SCHEMA,
            "strict": True,
        },
    ]


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "name": "f", "parameters": SCHEMA},
        {"type": "function", "name": "f", "parameters": SCHEMA, "strict": None},
        {
            "type": "function",
            "name": "f g",
            "description": "",
            "parameters": {},
            "strict": True,
            "defer_loading": True,
        },
        {"type": "function", "name": "f", "parameters": None},
        {"type": "function", "name": "f"},
        {"type": "web_search", "search_context_size": "low"},
        {"type": "custom", "name": "sh", "format": {"type": "text"}},
        {"type": "namespace", "name": "n", "tools": []},
        {"type": "file_search", "vector_store_ids": ["v"]},
    ],
)
def test_tools_survive(tool):
    reads_back(tools=[tool])


def test_what_is_no_tool_is_an_error():
    with pytest.raises(HistoryError):
        wire.load_request({"input": "x", "tools": ["f"]})


def test_tool_names_that_the_api_does_not_take_are_mapped_wherever_they_stand():
    call = Message.model(ToolCallPart("1", "my tool"))
    dumped = dump(HI, call, tools=[ToolSpec("my tool")], settings=Settings(tool_choice="my tool"))
    name = dumped["tools"][0]["name"]
    assert name != "my tool" and dumped["input"][1]["name"] == name
    assert dumped["tool_choice"] == {"type": "function", "name": name}


def test_server_tools_have_the_names_of_here():
    tools = [ServerTool("web_search", {"filters": {}}), ServerTool("code_execution")]
    assert dump(tools=tools)["tools"] == [
        {"type": "web_search", "filters": {}},
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ]


def test_d144r_file_search_without_stores_is_left_out():
    losses = []
    assert "tools" not in dump(tools=[ServerTool("file_search")], losses=losses)
    assert [(loss.what, loss.which) for loss in losses] == [("tool", "file_search")]


@pytest.mark.parametrize(
    ("head", "kind"), [(b"\x89PNG\r\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"RIFFxxxx", "webp"), (b"GIF89a", "gif"), (b"zzz", "png")]
)  # fmt: skip
def test_d144r_the_type_of_a_made_image_is_told_or_seen(head, kind):
    made = {"type": "image_generation_call", "id": "i", "result": b64encode(head).decode()}
    (read,) = fold(
        wire.load_response(
            {**WHOLE, "output": [made, {**made, "id": "j", "output_format": "avif"}]}
        )
    )
    assert [(one.name, one.mime_type, one.data) for one in read.content if isinstance(one, DataPart)] == [
        (f"image_0.{kind}", f"image/{kind}", head), ("image_1.avif", "image/avif", head),
    ]  # fmt: skip


OURS = {"openai_responses": {}}


def test_tools_as_they_are_kept():
    tools = [
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": False, "x": 1},
        {"type": "function", "name": "g h", "description": "", "parameters": {}},
        {"type": "function", "name": "h", "parameters": None, "strict": True},
        {"type": "function", "name": "i", "strict": False},
        {"type": "custom", "name": "c"}, {"type": "function"}, {"type": "web_search", "x": 1},
    ]  # fmt: skip
    request = wire.load_request({"input": [], "tools": tools})
    notes = {"openai_responses:notes": {"spelling": {"name": "as is", "strict": "absent"}}}
    assert list(request.tools) == [
        ToolSpec("f", "d", {"type": "object"}, {"openai_responses": {"x": 1}}),
        ToolSpec("g h", "", {}, {"openai_responses": {"description": "", "parameters": {}}, **notes}),
        ToolSpec("h", "", {}, {"openai_responses": {"parameters": None, "strict": True}}),
        ToolSpec("i", "", {}, {"openai_responses:notes": {"spelling": {"parameters": "absent"}}}),
        ServerTool("custom", {"name": "c"}, OURS), ServerTool("function", native=OURS), ServerTool("web_search", {"x": 1}, OURS),
    ]  # fmt: skip
    assert wire.dump_request(request) == {"input": [], "tools": tools}
    made = (
        ToolSpec("f"), ToolSpec("g", "d", {"type": "object"}), ServerTool("code_execution"), ServerTool("code_interpreter", {"container": "x"}),
        ServerTool("file_search"), ServerTool("web_search", {"a": 1}),
    )  # fmt: skip
    losses = []
    assert wire.dump_request(ModelRequest("m", tools=made), losses=losses)["tools"] == [
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False},
        {"type": "function", "name": "g", "description": "d", "parameters": {"type": "object"}, "strict": False},
        {"type": "code_interpreter", "container": {"type": "auto"}}, {"type": "code_interpreter", "container": "x"}, {"type": "web_search", "a": 1},
    ]  # fmt: skip
    assert losses == [
        Loss(
            None, None, "tool", "it needs vector_store_ids, the stores to search in", "file_search"
        )
    ]


@pytest.mark.parametrize(
    ("item", "run_by"),
    [
        ({"environment": {"type": "container_auto"}}, "provider"), ({"environment": {"type": "container_reference"}}, "provider"),
        ({"environment": {"type": "local"}}, None), ({"environment": "container"}, None), ({}, None), ({"execution": "server"}, "provider"),
        ({"execution": "client"}, None),
    ],
)  # fmt: skip
def test_decision_22_who_runs_a_shell(item, run_by):
    call = {"type": "shell_call", "call_id": "c", "id": "s", "action": {"commands": ["ls"]}, **item}
    (read,) = wire.load_messages({"input": [call]})
    assert (read.content[0].run_by, read.content[0].id) == (
        run_by or "agent",
        "s" if run_by else "c",
    )
    assert wire.dump_messages([read])["input"] == [call]


@pytest.mark.parametrize(
    "odd", [{"arguments": "absent"}, {"arguments": None}, {"arguments": ""}, {}]
)
def test_decision_27_no_text_in_the_place_of_arguments_is_taken_for_their_absence(
    odd: dict[str, Any],
) -> None:
    payload = {"input": [{"type": "function_call", "call_id": "c", "name": "f", **odd}]}
    assert wire.dump_messages(wire.load_messages(payload)) == payload


def test_an_older_note_of_absent_arguments_is_still_read() -> None:
    call = ToolCallPart(
        "c", "f", native={"openai_responses:notes": {"spelling": {"arguments": "absent"}}}
    )
    item = {"type": "function_call", "call_id": "c", "name": "f"}
    assert wire.dump_messages([Message.model(call)]) == {"input": [item]}
