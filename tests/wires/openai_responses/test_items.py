"""Items of the openai_responses wire ↔ pieces, and what another origin gets of them (pains 24 and
32)."""

from __future__ import annotations

import json

import msgspec
import pytest

from dragoman.fold import fold
from dragoman.message import (
    DataPart,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import openai_responses as wire
from support.responses import (
    CALL,
    CALL_ITEM,
    COMPLETED_HEAD,
    DONE,
    ENCRYPTED,
    MESSAGE_ITEM,
    OPENAI,
    PNG,
    REASONING_ITEM,
    WHOLE,
    XAI,
    answered,
    everywhere,
    items,
    load,
    message_block,
    odd_message,
    there_and_back,
)


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": ""},
        {"role": "user", "content": []},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "message", "role": "user", "content": "x", "status": "completed", "id": "msg_u"},
        {"role": "user", "content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}]},
        {"role": "user", "content": [{"type": "input_text", "text": ""}, {"type": "brand_new", "x": 1}]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "x", "phase": "commentary"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "x"}, {"type": "refusal", "refusal": "no"}]},
        {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": "x"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "reasoning", "summary": [], "encrypted_content": "g"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": None},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "a"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "brand_new", "text": "a"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{ "a": 1 }', "namespace": "n"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":'},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "[1]"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}},
        {"type": "function_call", "call_id": "c", "name": "f"},
        {"type": "function_call", "call_id": "c" * 70, "name": "f g", "arguments": ""},
        {"type": "function_call", "name": "no id", "arguments": ""},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "function_call_output", "call_id": "c", "output": None},
        {"type": "function_call_output", "call_id": "c", "output": []},
        {"type": "function_call_output", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}], "status": "completed"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "brand_new"}]},
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls", "id": "ctc_1"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "x"},
        {"type": "local_shell_call", "id": "l", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}, "status": "completed"},
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "environment": {"type": "container_reference"}, "id": "s"},
        {"type": "apply_patch_call", "id": "a", "call_id": "c", "operation": {"type": "delete_file", "path": "p"}, "status": "completed"},
        {"type": "computer_call", "id": "cu", "call_id": "c", "action": {"type": "wait"}, "pending_safety_checks": [], "status": "completed"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q", "sources": None}},
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None},
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": [{"text": "t"}]},
        {"type": "code_interpreter_call", "id": "ci", "status": "completed", "code": "1", "container_id": "c", "outputs": []},
        {"type": "code_interpreter_call", "id": "fc", "call_id": "", "name": "code_execution", "arguments": '{"code":"1"}', "status": "completed"},
        {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "iVBORw0K"},
        {"type": "image_generation_call", "id": "ig", "status": "failed", "result": None},
        {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "not base64!"},
        {"type": "mcp_call", "id": "mcp", "server_label": "s", "name": "f", "arguments": "{}", "output": "x", "error": None},
        {"type": "mcp_call", "id": "mcp", "server_label": "s", "name": "f", "arguments": "{}", "error": {"type": "e"}},
        {"type": "mcp_list_tools", "id": "mcpl", "server_label": "s", "tools": []},
        {"type": "mcp_approval_request", "id": "mcpr", "server_label": "s", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr", "approve": True},
        {"type": "tool_search_call", "call_id": None, "execution": "server", "id": "t", "arguments": {}, "status": "completed"},
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"q": 1}, "status": "completed"},
        {"type": "tool_search_output", "call_id": None, "execution": "server", "id": "t", "tools": [], "status": "completed"},
        {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [{"type": "function"}], "status": "completed"},
        {"type": "compaction", "id": "cmp", "encrypted_content": "g"},
        {"type": "item_reference", "id": "msg_1"},
        {"type": "brand_new", "x": [1]},
        {"id": "no type and no role"},
        {"role": "critic", "content": "x"},
        {"type": "additional_tools", "role": "developer", "tools": []},
    ],
    ids=lambda item: json.dumps(item)[:60],
)  # fmt: skip
def test_every_item_survives_alone_and_between_others(item):
    there_and_back(item)
    conversation = [
        {"role": "user", "content": "x"},
        MESSAGE_ITEM,
        item,
        item,
        MESSAGE_ITEM,
        {"role": "user", "content": "y"},
    ]
    stored = [Message.from_json(message.to_json()) for message in load(*conversation)]
    assert items(*stored) == conversation


def test_an_answer_goes_back_whole_to_its_own_origin():
    """Output items are sanitised to what input accepts; ids, phase and encrypted content are
    kept."""
    message = answered(ENCRYPTED, MESSAGE_ITEM, CALL_ITEM)
    reasoning, answer, call = items(message, target=OPENAI)
    assert reasoning == {key: value for key, value in ENCRYPTED.items() if key != "status"}
    assert answer == {
        **MESSAGE_ITEM,
        "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
    }
    assert call == CALL_ITEM


def test_another_origin_gets_what_was_said_and_called_alone():
    losses = []
    message = answered(
        ENCRYPTED,
        MESSAGE_ITEM,
        CALL_ITEM,
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "g"},
    )
    assert items(message, target=XAI, losses=losses) == [
        {"role": "assistant", "content": "Hi"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'},
    ]
    why = "it comes from openai-responses, which xai does not read"
    assert [(loss.part, loss.why) for loss in losses] == [(0, why), (3, why), (4, why)]
    assert len(items(message, target=XAI, quirks=wire.Quirks(reads=("openai-responses",)))) == 5


def test_another_origin_gets_every_call_as_a_function_with_its_answer():
    message = answered(
        {"type": "custom_tool_call", "id": "ctc", "call_id": "1", "name": "sh", "input": "ls"}
    )
    dumped = items(message, Message.user(ToolResultPart("1", "sh", "x")), target=XAI)
    assert [item["type"] for item in dumped] == ["function_call", "function_call_output"]
    assert dumped[0]["arguments"] == '{"input":"ls"}'
    search = {
        "type": "tool_search_call",
        "call_id": "2",
        "execution": "client",
        "arguments": {},
        "status": "completed",
    }
    found = {
        "type": "tool_search_output",
        "call_id": "2",
        "execution": "client",
        "tools": [{"type": "function"}],
    }
    history = [answered(search), *load(search, found)[1:]]
    assert items(*history, target=XAI)[1] == {
        "type": "function_call_output",
        "call_id": "2",
        "output": '[{"type":"function"}]',
    }


def test_a_changed_prefix_takes_the_signatures_away():
    message = answered(ENCRYPTED, MESSAGE_ITEM).replace(
        origin=msgspec.structs.replace(OPENAI, prefix="other")
    )
    losses = []
    assert items(Message.user("x"), message, target=OPENAI, losses=losses)[1:] == [
        {"role": "assistant", "content": "Hi"}
    ]
    assert losses[0].why == "what stood before it has changed"


def test_phase_is_kept_when_the_id_is_not():
    answer = answered(REASONING_ITEM, MESSAGE_ITEM)
    (dumped,) = items(answer, target=OPENAI, quirks=wire.Quirks(links=False))
    assert dumped == {"role": "assistant", "content": "Hi", "phase": "final_answer"}
    both = answered(
        {
            **MESSAGE_ITEM,
            "content": [*MESSAGE_ITEM["content"], {**MESSAGE_ITEM["content"][0], "text": "there"}],
        }
    )
    dumped = items(both, target=OPENAI, quirks=wire.Quirks(links=False))
    assert [(item["content"], item["phase"]) for item in dumped] == [
        ("Hi", "final_answer"),
        ("there", "final_answer"),
    ]


def test_pain_32_ids_are_sent_only_where_the_provider_holds_the_items():
    """Without a store the provider knows its reasoning by encrypted content alone, and no other
    item by its id."""
    stateless = wire.Quirks(links=False)
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    losses = []
    dumped = items(
        answered(REASONING_ITEM, search, MESSAGE_ITEM),
        answered(CALL_ITEM),
        target=OPENAI,
        quirks=stateless,
        losses=losses,
    )
    assert dumped == [
        {"role": "assistant", "content": "Hi", "phase": "final_answer"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'},
    ]
    assert [(loss.message, loss.part, loss.what, loss.which) for loss in losses] == [
        (0, 0, "thinking", ""),
        (0, 1, "tool call", "a call of web_search, which the provider ran"),
    ]
    ids = [
        item["id"]
        for item in items(
            answered(ENCRYPTED, search, MESSAGE_ITEM), target=OPENAI, quirks=stateless
        )
    ]
    assert ids == ["rs_1", "ws_1", "msg_1"]


def test_pain_24_no_item_id_stands_twice_in_a_request():
    """A history that was forked and joined again: the second time, items go without their ids, or
    not at all."""
    message = answered(
        ENCRYPTED,
        MESSAGE_ITEM,
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
    )
    losses = []
    dumped = items(message, Message.user("x"), message, target=OPENAI, losses=losses)
    ids = [item["id"] for item in dumped if "id" in item]
    assert ids == ["rs_1", "msg_1", "ws_1"]
    assert dumped[4] == {
        key: value for key, value in ENCRYPTED.items() if key not in ("id", "status")
    }
    assert [loss.why for loss in losses] == ["it stands in the request already"]


def test_plain_thinking_goes_to_who_takes_it():
    """DeepSeek and servers of open models want their reasoning back as text."""
    plain = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }
    message = answered({**plain, "status": "completed"}, CALL_ITEM)
    dumped = items(message, target=OPENAI, quirks=wire.Quirks(links=False, plain_thinking=True))
    assert dumped[0] == plain
    assert (
        items(message, target=OPENAI, quirks=wire.Quirks(links=False))[0]["type"] == "function_call"
    )


def test_native_of_another_wire_is_never_read():
    other = {"anthropic": {"signature": "s", "id": "x", "type": "thinking"}}
    history = [
        Message.model(
            ThinkingPart("hm", other), TextPart("a", other), ToolCallPart("1", "f", native=other)
        ),
        Message.user(ToolResultPart("1", "f", "x", native=other)).replace(native=other),
        Message.system("late").replace(native=other),
    ]
    dumped = items(Message.system("head").replace(native=other), *history)
    assert dumped == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"role": "assistant", "content": "a"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"role": "system", "content": "late"},
    ]


def test_what_has_no_place_is_told():
    losses = []
    dumped = items(
        Message.model(ToolResultPart("1", "f", "x"), ProviderPart("compaction", {"anthropic": {}})),
        Message.user(ToolCallPart("1", "f")),
        Message.user(),
        Message.model(DataPart(PNG, "image/png", "a.png")),
        losses=losses,
    )
    assert dumped == [{"role": "assistant", "content": "[media: image/png] a.png"}]
    assert [(loss.message, loss.part) for loss in losses] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (2, None),
        (3, 0),
    ]


def test_an_id_that_a_later_item_repeats_goes_back_as_it_came():
    round_ = [
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "1"},
    ]
    loaded = wire.load_messages(
        {"input": [{"role": "user", "content": "Hi."}, *round_, *round_]}, origin=OPENAI
    )
    assert [item["call_id"] for item in items(*loaded, target=OPENAI)[1:]] == ["call_1"] * 4


@pytest.mark.parametrize("item", [
    {"type": "x", "role": "user", "content": "a"}, {"role": "critic", "content": "a"}, {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
    {"type": "compaction_trigger"}, {"type": "configuration_update", "a": 1}, {"type": "function_call_output", "output": "x"},
])  # fmt: skip
def test_an_item_of_the_clients_that_has_no_neutral_shape(item):
    (read,) = wire.load_messages({"input": [item]})
    assert read == Message.user(
        ProviderPart(item.get("type", "message"), {"openai_responses": item})
    ).replace(id=read.id)
    assert wire.dump_messages([read])["input"] == [item]


PLAIN = {"id": "rs_2", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
SEARCH = {"id": "ws", "type": "web_search_call", "action": {"type": "search", "query": "q"}, **DONE}
COMPACTED = {"id": "cmp", "type": "compaction", "encrypted_content": "g"}
PHASED = message_block({"type": "output_text", "text": "a", "annotations": []}, phase="p")
BARE_CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'}
AGAIN = {**BARE_CALL, "call_id": "c_3cf97c3c"}
BARE = {"phase": "p", "role": "assistant", "content": "a"}
LISTED = {"type": "message", **BARE, "content": [{"type": "output_text", "text": "a"}]}
HELD = [PLAIN, SEARCH, CALL, COMPACTED, PHASED]
FORGOTTEN = "the provider does not hold it any more, or never did"
TWICE = "it stands in the request already"


@pytest.mark.parametrize(
    ("quirks", "first", "second", "lost"),
    [
        ({}, HELD, [AGAIN, BARE], [(2, place, TWICE) for place in (0, 1, 3)]),
        ({"links": False}, [BARE_CALL, BARE], [AGAIN, BARE], [(at, place, FORGOTTEN) for at in (0, 2) for place in (0, 1, 3)]),
        ({"links": False, "listed": True}, [BARE_CALL, LISTED], [AGAIN, LISTED], [(at, place, FORGOTTEN) for at in (0, 2) for place in (0, 1, 3)]),
        (
            {"links": False, "plain_thinking": True}, HELD, [{key: value for key, value in PLAIN.items() if key != "id"}, AGAIN, BARE],
            [(2, place, TWICE) for place in (1, 3)],
        ),
    ],
)  # fmt: skip
def test_pain_24_and_32_an_answer_that_stands_twice_in_a_request_to_the_last_field(
    quirks, first, second, lost
):
    origin, losses = Origin("p", model="m"), []
    (read,) = fold(wire.load_response({**WHOLE, "output": HELD}, origin=origin))
    history = [read, Message.user(ToolResultPart("c", "f", "x")), read]
    written = wire.dump_messages(
        history, target=origin, quirks=wire.Quirks(**quirks), losses=losses
    )
    assert written["input"] == [
        *first,
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        *second,
    ]
    assert [(loss.message, loss.part, loss.why) for loss in losses] == lost
    what = {
        0: ("thinking", ""),
        1: ("tool call", "a call of web_search, which the provider ran"),
        3: ("provider", "an item of the provider's, compaction"),
    }
    assert [(loss.what, loss.which) for loss in losses] == [what[place] for _, place, _ in lost]


@pytest.mark.parametrize(
    "item",
    [
        {"arguments": "{}", "call_id": "c", "name": "f"}, {"type": "reasoning", "id": [1], "summary": []},
        {"type": "web_search_call", "id": {}, "action": 5}, {"type": "message", "role": "assistant", "content": [{}]},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"a": 1}, {"type": "output_text", "text": "a"}]},
        {"type": "image_generation_call", "id": "i", "result": "iVBORw==", "output_format": [1]},
        {"type": "message", "id": [1], "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": True}]},
        {"type": "code_interpreter_call", "id": "c", "code": 5, "outputs": [{"type": "image", "url": "data:image/png;base64,AA=="}]},
        {"type": "message", "role": "assistant", "content": [{"type": ["x"], "text": "a"}], "spelling": "x", "response": "x"},
    ],
)  # fmt: skip
def test_d7_items_of_another_shape_are_written_everywhere(item):
    messages = wire.load_messages({"input": [item]})
    assert wire.dump_messages(messages)["input"] == [item]
    everywhere(messages)
    (answer,) = fold(wire.load_response({**COMPLETED_HEAD, "output": [item]}))
    everywhere([answer])


NOTES = [
    "x", {"spelling": 5, "response": [1], "item": 5, "digest": {}, "echo": "x"},
    {"spelling": {"type": [], "pieces": "x", "output": {"place": "x"}, "call": "c", "field": {}, "content": 5, "block": True, "arguments": 5}},
    {"spelling": {"type": "x", "pieces": {"summary": 5, "content": [[1]]}, "output": 5, "call": [], "input": "string"}, "item": {"id": [1], "status": 5}},
    {"response": {"usage": "x", "status": {}, "created_at": "x"}},
]  # fmt: skip


@pytest.mark.parametrize("notes", NOTES)
@pytest.mark.parametrize(
    "fields", ["x", [1], {"id": [1], "type": "x"}, {"type": {}, "annotations": 5, "status": 5}]
)
def test_d8_stored_messages_may_hold_anything(notes, fields):
    native = {"openai_responses": fields, "openai_responses:notes": notes}
    pieces = [
        {"type": "tool_call", "id": "c", "name": "f", "run_by": "provider"}, {"type": "tool_result", "id": "c", "name": "f", "run_by": "provider"},
        {"type": "text", "text": "a"}, {"type": "thinking", "text": "hm"}, {"type": "provider", "kind": "x"}, {"type": "data", "data": "AA==", "mime_type": "image/png"},
        {"type": "tool_call", "id": "c", "name": "f"}, {"type": "file", "id": "f1"}, {"type": "link", "url": "https://a.test"},
    ]  # fmt: skip
    stored = {
        "v": 2,
        "role": "model",
        "native": native,
        "content": [{**piece, "native": native} for piece in pieces],
    }
    model = Message.from_json(json.dumps(stored))
    result = {"type": "tool_result", "id": "c", "name": "f", "native": native}
    user = Message.from_json(
        json.dumps({"v": 2, "role": "user", "native": native, "content": [result]})
    )
    everywhere([model, user])
    everywhere([user])


def test_half_a_pair_of_surrogates_is_written():
    assert b"\\ud800" in everywhere([Message.model("\ud800")])
    assert isinstance(
        wire.load_response({**COMPLETED_HEAD, "output": [odd_message("a")], "x": "\ud800"}), list
    )


def test_an_item_of_the_models_without_a_type_or_a_text_is_a_message_that_only_the_provider_understands():
    (message,) = there_and_back({"role": "assistant", "content": []})
    assert message.content == (
        ProviderPart("message", {"openai_responses": {"role": "assistant", "content": []}}),
    )
