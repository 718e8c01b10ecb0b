"""The openai_responses wire's conversation: rules D-134…D-138, decisions 2, 12, 14, 20b and 22; ids and who may read them."""

from __future__ import annotations

import json

import msgspec
import pytest

from dragoman.errors import HistoryError
from dragoman.fold import fold
from dragoman.loss import Loss
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import openai_responses as wire

OPENAI = Origin("openai-responses", "https://api.openai.com/v1", "gpt-5")
XAI = Origin("xai", "https://api.x.ai/v1", "grok")
PNG = b"\x89PNG"
NAME = "openai_responses"


def items(*messages, **how):
    return wire.dump_messages(messages, **how)["input"]


def load(*given):
    return wire.load_messages({"input": list(given)})


def there_and_back(*given):
    messages = load(*given)
    assert items(*messages) == list(given)
    return messages


def answered(*output, **fields):
    """A model's message as it came in a response."""
    body = {"id": "resp_1", "object": "response", "model": "gpt-5-x", "status": "completed", "output": output, **fields}
    (message,) = fold(wire.load_response(body, origin=OPENAI))
    return message


SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}],
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
ENCRYPTED = {**THOUGHT, "encrypted_content": "gAAA", "status": "completed"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a":1}',
    "status": "completed",
}


def test_plain_messages_are_written_in_the_plainest_form():
    history = [Message.user("Hello"), Message.model("Hi"), Message.user("Bye")]
    assert items(*history) == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Bye"},
    ]


def test_decision_20b_system_messages_at_the_head_are_instructions_and_later_ones_stay_where_they_are():
    """Against D-137, which put them all into the input."""
    history = [Message.system("a"), Message.system("b"), Message.user("x"), Message.system("later")]
    assert wire.dump_messages(history) == {
        "instructions": "a\n\nb",
        "input": [{"role": "user", "content": "x"}, {"role": "system", "content": "later"}],
    }


def test_d137_system_messages_that_stood_in_the_input_stay_there():
    there_and_back({"role": "system", "content": "a"}, {"role": "user", "content": "x"})
    developer = there_and_back({"role": "developer", "content": [{"type": "input_text", "text": "a"}]})
    assert developer[0].role is Role.SYSTEM
    assert items(*developer, quirks=wire.Quirks(developer=False))[0]["role"] == "system"


def test_an_input_that_is_a_string():
    messages = wire.load_messages({"instructions": "be", "input": "Hello"})
    assert [(m.role, m.text) for m in messages] == [(Role.SYSTEM, "be"), (Role.USER, "Hello")]
    assert wire.dump_messages(messages) == {"instructions": "be", "input": "Hello"}
    longer = wire.dump_messages([*messages, Message.user("more")])
    assert longer["input"] == [{"role": "user", "content": "Hello"}, {"role": "user", "content": "more"}]


@pytest.mark.parametrize(
    "payload", [[], {"input": 3}, {"input": ["a"]}, {"input": {"role": "user", "content": "x"}}, "hello"]
)
def test_what_is_no_conversation_is_an_error(payload):
    with pytest.raises(HistoryError):
        wire.load_messages(payload)


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
    around = [{"role": "user", "content": "x"}, SAID, item, item, SAID, {"role": "user", "content": "y"}]
    stored = [Message.from_json(message.to_json()) for message in load(*around)]
    assert items(*stored) == around


def test_what_the_model_did_between_two_others_is_one_message_and_its_answers_another():
    messages = there_and_back(
        {"role": "user", "content": "x"},
        THOUGHT,
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"role": "assistant", "content": "done"},
    )
    assert [m.role for m in messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert [call.name for call in messages[1].tool_calls] == ["f", "g"]
    assert [(result.id, result.name) for result in messages[2].tool_results] == [("b", "g"), ("a", "f")]


def test_messages_of_the_model_that_follow_each_other_stay_apart():
    easy = {"role": "assistant", "content": "a"}
    (message,) = there_and_back(easy, easy, {**SAID, "content": "b"}, easy)
    assert message.text == "aaba"


def test_decision_2_texts_of_one_message_by_hand_stay_apart():
    """As items each: a list of content is of the official types only under an id that the provider gave."""
    told = [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert items(Message.model("a", "b")) == told
    assert [piece.text for piece in load(*told)[0].content] == ["a", "b"]


def test_a_server_that_knows_messages_of_the_model_as_lists_only():
    """llama.cpp."""
    (told,) = items(Message.model("a"), quirks=wire.Quirks(listed=True))
    assert told == {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}


def test_text_on_both_sides_of_a_call_stays_there():
    kinds = [item.get("type", "said") for item in items(Message.model("a", ToolCallPart("c", "f"), "b"))]
    assert kinds == ["said", "function_call", "said"]


def test_d138_images():
    part = DataPart(PNG, "image/png")
    assert items(Message.user("see", part)) == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"},
            ],
        }
    ]
    (message,) = there_and_back({"role": "user", "content": [{"type": "input_image", "image_url": "https://x/y"}]})
    assert isinstance(message.content[0], LinkPart)


def test_d138_pdf_is_a_file_and_other_data_a_text():
    pdf, text = DataPart(b"%PDF", "application/pdf", "a.pdf"), DataPart(b"a", "text/plain", "a.txt")
    (item,) = items(Message.user(pdf, text))
    assert item["content"] == [
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        {"type": "input_text", "text": "[media: text/plain] a.txt\na"},
    ]


def test_a_file_without_a_name_gets_one():
    (item,) = items(Message.user(DataPart(b"%PDF", "application/pdf")))
    assert item["content"][0]["filename"] == "file.pdf"


def test_a_call_without_an_id_is_none_that_could_be_answered():
    (message,) = there_and_back({**CALL, "call_id": ""})
    assert not message.tool_calls


def test_d138_links():
    links = [LinkPart("https://x/a.png"), LinkPart("https://x/a.pdf"), LinkPart("https://x/a")]
    (item,) = items(Message.user(*links))
    assert item["content"] == [
        {"type": "input_image", "image_url": "https://x/a.png", "detail": "auto"},
        {"type": "input_file", "file_url": "https://x/a.pdf"},
        {"type": "input_text", "text": "https://x/a"},
    ]


def test_audio_and_files_by_id():
    audio = {"type": "input_audio", "input_audio": {"data": "YQ==", "format": "mp3"}}
    file = {"type": "input_file", "file_id": "file_1"}
    image = {"type": "input_image", "file_id": "file_2", "detail": "low"}
    (message,) = there_and_back({"role": "user", "content": [audio, file, image]})
    assert [type(piece) for piece in message.content] == [DataPart, FilePart, FilePart]
    assert message.content[0].mime_type == "audio/mpeg"
    by_hand = [DataPart(b"a", "audio/wav"), FilePart("f"), FilePart("g", "image/png")]
    assert [block["type"] for block in items(Message.user(*by_hand))[0]["content"]] == [
        "input_text",  # the API takes no audio, whatever its blocks are named
        "input_file",
        "input_image",
    ]


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
        {"type": "local_shell_call", "id": "l", "call_id": "2", "action": {}, "status": "completed"},
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
    results += [ToolResultPart("5", "", [DataPart(PNG, "image/png")]), ToolResultPart("6", "", [{"type": "function"}])]
    told = items(*calls, Message.user(*results))[6:]
    assert told == [
        {"type": "custom_tool_call_output", "call_id": "1", "output": "out"},
        {"type": "local_shell_call_output", "call_id": "2", "output": "out"},
        {
            "type": "shell_call_output",
            "call_id": "3",
            "output": [{"stdout": "out", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        {"type": "apply_patch_call_output", "call_id": "4", "status": "completed", "output": "out"},
        {
            "type": "computer_call_output",
            "call_id": "5",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw=="},
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
    failed = Message.user(ToolResultPart("1", "", "no", is_error=True), ToolResultPart("2", "", "no", is_error=True))
    told = items(*load(call), failed, losses=losses)
    assert told[1]["status"] == "failed"
    assert losses == [Loss(1, 1, "is_error", "the API has no mark for a failed tool")]
    losses.clear()
    items(Message.user(ToolResultPart("2", "", {"error": "no"}, is_error=True)), losses=losses)
    assert not losses


def test_cut_and_invalid_calls_are_not_sent_again_as_they_were():
    cut = ToolCallPart("1", "f", raw='{"a', state="cut")
    invalid = ToolCallPart("2", "f", raw="nonsense", state="invalid")
    assert [item["arguments"] for item in items(Message.model(cut, invalid))] == ["{}", "{}"]


def test_an_edited_call_is_sent_as_edited():
    (message,) = load({"type": "function_call", "call_id": "c", "name": "f", "arguments": '{ "a": 1 }'})
    edited = msgspec.structs.replace(message.content[0], arguments={"a": 2})
    assert items(Message.model(edited))[0]["arguments"] == '{"a":2}'


def test_decision_12_ids_and_names_that_the_api_does_not_take_are_mapped():
    history = [
        Message.model(ToolCallPart("a:b", "my tool"), ToolCallPart("same", "f")),
        Message.user(ToolResultPart("a:b", "my tool", "1"), ToolResultPart("same", "f", "2")),
        Message.model(ToolCallPart("same", "f")),
        Message.user(ToolResultPart("same", "f", "3")),
    ]
    told = items(*history)
    ids = [item["call_id"] for item in told]
    assert ids[0] == ids[2] != "a:b" and ids[1] == ids[3] == "same" and ids[4] == ids[5] != "same"
    assert " " not in told[0]["name"]


# who may read what


def test_an_answer_goes_back_whole_to_its_own_origin():
    """Output items are sanitised to what input accepts; ids, phase and encrypted content are kept."""
    message = answered(ENCRYPTED, SAID, CALL)
    thought, said, call = items(message, target=OPENAI)
    assert thought == {key: value for key, value in ENCRYPTED.items() if key != "status"}
    assert said == {**SAID, "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}
    assert call == CALL


def test_another_origin_gets_what_was_said_and_called_alone():
    losses = []
    message = answered(
        ENCRYPTED,
        SAID,
        CALL,
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
    message = answered({"type": "custom_tool_call", "id": "ctc", "call_id": "1", "name": "sh", "input": "ls"})
    told = items(message, Message.user(ToolResultPart("1", "sh", "x")), target=XAI)
    assert [item["type"] for item in told] == ["function_call", "function_call_output"]
    assert told[0]["arguments"] == '{"input":"ls"}'
    search = {"type": "tool_search_call", "call_id": "2", "execution": "client", "arguments": {}, "status": "completed"}
    found = {"type": "tool_search_output", "call_id": "2", "execution": "client", "tools": [{"type": "function"}]}
    history = [answered(search), *load(search, found)[1:]]
    assert items(*history, target=XAI)[1] == {
        "type": "function_call_output",
        "call_id": "2",
        "output": '[{"type":"function"}]',
    }


def test_a_changed_prefix_takes_the_signatures_away():
    message = answered(ENCRYPTED, SAID).replace(origin=msgspec.structs.replace(OPENAI, prefix="other"))
    losses = []
    assert items(Message.user("x"), message, target=OPENAI, losses=losses)[1:] == [
        {"role": "assistant", "content": "Hi"}
    ]
    assert losses[0].why == "what stood before it has changed"


def test_phase_is_kept_when_the_id_is_not():
    said = answered(THOUGHT, SAID)
    (told,) = items(said, target=OPENAI, quirks=wire.Quirks(links=False))
    assert told == {"role": "assistant", "content": "Hi", "phase": "final_answer"}
    both = answered({**SAID, "content": [*SAID["content"], {**SAID["content"][0], "text": "there"}]})
    told = items(both, target=OPENAI, quirks=wire.Quirks(links=False))
    assert [(item["content"], item["phase"]) for item in told] == [("Hi", "final_answer"), ("there", "final_answer")]


def test_pain_32_ids_are_sent_only_where_the_provider_holds_the_items():
    """Without a store the provider knows its reasoning by encrypted content alone, and no other item by its id."""
    stateless = wire.Quirks(links=False)
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    losses = []
    told = items(answered(THOUGHT, search, SAID), answered(CALL), target=OPENAI, quirks=stateless, losses=losses)
    assert told == [
        {"role": "assistant", "content": "Hi", "phase": "final_answer"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'},
    ]
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [
        (0, 0, "thinking"),
        (0, 1, "a call of web_search, which the provider ran"),
    ]
    ids = [item["id"] for item in items(answered(ENCRYPTED, search, SAID), target=OPENAI, quirks=stateless)]
    assert ids == ["rs_1", "ws_1", "msg_1"]


def test_pain_24_no_item_id_stands_twice_in_a_request():
    """A history that was forked and joined again: the second time, items go without their ids, or not at all."""
    message = answered(ENCRYPTED, SAID, {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}})
    losses = []
    told = items(message, Message.user("x"), message, target=OPENAI, losses=losses)
    ids = [item["id"] for item in told if "id" in item]
    assert ids == ["rs_1", "msg_1", "ws_1"]
    assert told[4] == {key: value for key, value in ENCRYPTED.items() if key not in ("id", "status")}
    assert [loss.why for loss in losses] == ["it stands in the request already"]


def test_plain_thinking_goes_to_who_takes_it():
    """DeepSeek and servers of open models want their reasoning back as text."""
    plain = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    message = answered({**plain, "status": "completed"}, CALL)
    told = items(message, target=OPENAI, quirks=wire.Quirks(links=False, plain_thinking=True))
    assert told[0] == plain
    assert items(message, target=OPENAI, quirks=wire.Quirks(links=False))[0]["type"] == "function_call"


def test_thinking_of_several_pieces_is_read_as_one_and_written_as_it_was():
    pieces = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    (message,) = load({"type": "reasoning", "id": "rs_1", "summary": pieces})
    assert message.thinking == "one\n\ntwo"
    edited = msgspec.structs.replace(message.content[0], text="three")
    summary = items(Message.model(edited))[0]["summary"]
    assert [piece["text"] for piece in summary] == ["three", ""]


def test_a_refusal_is_text_here_and_a_refusal_there():
    (message,) = there_and_back({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})
    assert message.text == "no"


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
    told = items(message, target=XAI, losses=losses)
    assert [item["content"] for item in told] == [
        "[media: image/webp] image_0.webp",
        "[media: image/jpeg] image_1.jpeg",
    ]
    assert len(losses) == 4


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
        call, {"type": "mcp_call", "id": "m", "server_label": "s", "name": "f", "arguments": "{}", "output": "x"}
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


def test_native_of_another_wire_is_never_read():
    other = {"anthropic": {"signature": "s", "id": "x", "type": "thinking"}}
    history = [
        Message.model(ThinkingPart("hm", other), TextPart("a", other), ToolCallPart("1", "f", native=other)),
        Message.user(ToolResultPart("1", "f", "x", native=other)).replace(native=other),
        Message.system("late").replace(native=other),
    ]
    told = items(Message.system("head").replace(native=other), *history)
    assert told == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"role": "assistant", "content": "a"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"role": "system", "content": "late"},
    ]


def test_what_has_no_place_is_told():
    losses = []
    told = items(
        Message.model(ToolResultPart("1", "f", "x"), ProviderPart("compaction", {"anthropic": {}})),
        Message.user(ToolCallPart("1", "f")),
        Message.user(),
        Message.model(DataPart(PNG, "image/png", "a.png")),
        losses=losses,
    )
    assert told == [{"role": "assistant", "content": "[media: image/png] a.png"}]
    assert [(loss.message, loss.part) for loss in losses] == [(0, 0), (0, 1), (1, 0), (2, None), (3, 0)]


def test_append_only_a_conversation_begins_the_next_one():
    history = [Message.user("x"), answered(ENCRYPTED, SAID, CALL), Message.user(ToolResultPart("call_1", "f", "1"))]
    longer = [*history, answered({**SAID, "id": "msg_2"}), Message.user("more")]
    for target, quirks in ((OPENAI, None), (XAI, None), (OPENAI, wire.Quirks(links=False))):
        short, long = items(*history, target=target, quirks=quirks), items(*longer, target=target, quirks=quirks)
        assert long[: len(short)] == short


def test_an_id_that_a_later_item_repeats_goes_back_as_it_came():
    round_ = [
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "1"},
    ]
    loaded = wire.load_messages({"input": [{"role": "user", "content": "Hi."}, *round_, *round_]}, origin=OPENAI)
    assert [item["call_id"] for item in items(*loaded, target=OPENAI)[1:]] == ["call_1"] * 4
