"""The openai_responses wire, whole values: the streams that the API sends are read and written again event by event (decisions
2, 14, 22; D-139…D-144r), and what other wires' messages become is compared to the last field."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from dragoman import errors
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import openai_responses as wire

HEAD = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "error": None, "incomplete_details": None, "model": "m",
    "output": [], "usage": None, "background": False, "instructions": None, "max_output_tokens": None, "metadata": {},
    "parallel_tool_calls": True, "previous_response_id": None, "reasoning": {"effort": None, "summary": None}, "store": True,
    "temperature": None, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": None,
    "truncation": "disabled", "user": None,
}  # fmt: skip
USAGE = {
    "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2, "audio_tokens": 1}, "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3, "accepted_tokens": 5}, "total_tokens": 18, "cost": 3,
}  # fmt: skip


def stream(*events, output, **end):
    """The whole stream, numbered. `events`: `(type, fields)`, of the items at their index."""
    end = {"status": "completed", "usage": USAGE, "output": output, **end}
    ending = "incomplete" if end["status"] == "incomplete" else "completed"
    whole = [
        ("created", {"response": HEAD}),
        ("in_progress", {"response": HEAD}),
        *events,
        (ending, {"response": {**HEAD, **end}}),
    ]
    return [{"type": f"response.{kind}", "sequence_number": number, **fields} for number, (kind, fields) in enumerate(whole)]  # fmt: skip


def again(events):
    """Read, stored, and written again."""
    decoder = wire.decoder()
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    encoder = wire.encoder()
    read = [*decoder.feed(data), *decoder.close()]
    told = b"".join(map(encoder.feed, unfold(fold(read)))) + encoder.close()
    return [json.loads(line[6:]) for line in told.decode().splitlines() if line.startswith("data: ")]


def message(*blocks, **fields):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": list(blocks),
        **fields,
    }


def text(words, **fields):
    return {"type": "output_text", "text": words, "annotations": [], "logprobs": [], **fields}


def said(item, index=0):
    """The events of a message, each block in one delta."""
    at = {"item_id": item["id"], "output_index": index}
    out = [("output_item.added", {"output_index": index, "item": {**item, "status": "in_progress", "content": []}})]
    for place, block in enumerate(item["content"]):
        here = {**at, "content_index": place}
        if block["type"] == "refusal":
            out += [
                ("content_part.added", {**here, "part": {**block, "refusal": ""}}),
                ("refusal.delta", {**here, "delta": block["refusal"]}),
                ("refusal.done", {**here, "refusal": block["refusal"]}),
                ("content_part.done", {**here, "part": block}),
            ]
            continue
        out += [
            ("content_part.added", {**here, "part": text("")}),
            ("output_text.delta", {**here, "delta": block["text"], "logprobs": []}),
            ("output_text.done", {**here, "text": block["text"], "logprobs": []}),
            *[("output_text.annotation.added", {**here, "annotation_index": number, "annotation": each}) for number, each in enumerate(block["annotations"])],
            ("content_part.done", {**here, "part": block}),
        ]  # fmt: skip
    return [*out, ("output_item.done", {"output_index": index, "item": item})]


def worked(item, *stages, index=0):
    """The events of an item that the provider works on."""
    begun = {key: value for key, value in item.items() if key not in ("results", "outputs", "result")}
    begun |= {"status": "in_progress"} if "status" in item else {}
    return [
        ("output_item.added", {"output_index": index, "item": begun}),
        *[(f"{item['type']}.{stage}", {"item_id": item["id"], "output_index": index}) for stage in stages],
        ("output_item.done", {"output_index": index, "item": item}),
    ]


URL = {"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 0, "end_index": 1}
DONE = {"status": "completed"}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "c",
    "name": "f",
    "arguments": '{"a":1}',
    "status": "completed",
}
MCP = {
    "id": "mcp_1",
    "type": "mcp_call",
    "server_label": "s",
    "name": "f",
    "arguments": '{"a":1}',
    "output": "x",
    "error": None,
    "status": "completed",
}
CUSTOM = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls", "status": "completed"}
IMAGE = "data:image/png;base64,iVBORw0K"


def called(item, index=0):
    """The events of a call whose arguments are streamed."""
    at = {"item_id": item["id"], "output_index": index}
    late = {"output": None, "error": None} if item["type"] == "mcp_call" else {}
    return [
        (
            "output_item.added",
            {"output_index": index, "item": {**item, **late, "status": "in_progress", "arguments": ""}},
        ),
        *([("mcp_call.in_progress", at)] if item["type"] == "mcp_call" else []),
        (f"{item['type']}_arguments.delta", {**at, "delta": item["arguments"]}),
        (f"{item['type']}_arguments.done", {**at, "arguments": item["arguments"]}),
        *([("mcp_call.completed", at)] if item["type"] == "mcp_call" else []),
        ("output_item.done", {"output_index": index, "item": item}),
    ]


def typed(item, index=0):
    at = {"item_id": item["id"], "output_index": index}
    begun, *rest = worked(item, index=index)
    return [begun, ("custom_tool_call_input.delta", {**at, "delta": item["input"]}), ("custom_tool_call_input.done", {**at, "input": item["input"]}), *rest]  # fmt: skip


def thought(item, index=0):
    """The events of thinking, in one delta."""
    at = {"item_id": item["id"], "output_index": index}
    empty = {"summary": []} if "status" not in item else {"summary": [], "status": "in_progress"}
    empty |= {"content": [{"type": "reasoning_text", "text": ""}]} if "content" in item else {}
    begun = ("output_item.added", {"output_index": index, "item": {**item, **empty}})
    done = ("output_item.done", {"output_index": index, "item": item})
    if "content" in item:
        here, words = {**at, "content_index": 0}, item["content"][0]["text"]
        return [
            begun,
            ("reasoning_text.delta", {**here, "delta": words}),
            ("reasoning_text.done", {**here, "text": words}),
            done,
        ]
    here, words = {**at, "summary_index": 0}, item["summary"][0]["text"]
    return [
        begun, ("reasoning_summary_part.added", {**here, "part": {"type": "summary_text", "text": ""}}),
        ("reasoning_summary_text.delta", {**here, "delta": words}), ("reasoning_summary_text.done", {**here, "text": words}),
        ("reasoning_summary_part.done", {**here, "part": {"type": "summary_text", "text": words}}), done,
    ]  # fmt: skip


THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "g",
    "status": "completed",
}
ITEMS = {
    "message": said(message(text("Hi"))),
    "phase": said(message(text("Hi"), phase="commentary")),
    "two blocks": said(message(text("a", annotations=[URL, {**URL, "title": "B"}]), text("b", logprobs=[{"token": "b"}]))),
    "refusal": said(message(text("a"), {"type": "refusal", "refusal": "no"})),
    "two messages": [*said(message(text("a"))), *said({**message(text("b")), "id": "msg_2"}, 1)],
    "incomplete": said({**message(text("a")), "status": "incomplete"}),
    "thinking": thought(THOUGHT),
    "raw thinking": thought({"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}),
    "call": called(CALL),
    "two calls": [*called(CALL), *called({**CALL, "id": "fc_2", "call_id": "d", "arguments": '{"b":[1]}'}, 1)],
    "custom": typed(CUSTOM),
    "shell": worked({"id": "s", "type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, **DONE}),
    "local shell": worked({"id": "l", "type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}, **DONE}),
    "patch": worked({"id": "a", "type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "p"}, **DONE}),
    "computer": worked({"id": "cu", "type": "computer_call", "call_id": "c", "action": {"type": "wait"}, "pending_safety_checks": [], **DONE}),
    "actions": worked({"id": "cu", "type": "computer_call", "call_id": "c", "actions": [{"type": "wait"}], **DONE}),
    "search": worked({"id": "ws", "type": "web_search_call", "action": {"type": "search", "query": "q"}, **DONE}, "in_progress", "searching", "completed"),
    "files": worked({"id": "fs", "type": "file_search_call", "queries": ["q"], "results": [{"text": "t"}], **DONE}, "in_progress", "searching", "completed"),
    "code": worked(
        {"id": "ci", "type": "code_interpreter_call", "code": "1", "container_id": "k", "outputs": [{"type": "logs", "logs": "1"}, {"type": "image", "url": IMAGE, "x": 1}, {"type": "logs", "logs": "2"}], **DONE},
        "in_progress", "interpreting", "completed",
    ),
    "image": worked({"id": "ig", "type": "image_generation_call", "revised_prompt": "p", "result": "iVBORw0K", **DONE}, "in_progress", "generating", "completed"),
    "mcp": called(MCP),
    "mcp error": called({**MCP, "output": None, "error": {"type": "e"}}),
    "mcp tools": worked({"id": "mcpl", "type": "mcp_list_tools", "server_label": "s", "tools": []}, "in_progress", "completed"),
    "approval": worked({"id": "mcpr", "type": "mcp_approval_request", "server_label": "s", "name": "f", "arguments": "{}"}),
    "tool search": [
        *worked({"id": "t", "type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"q": 1}, **DONE}),
        *worked({"id": "u", "type": "tool_search_output", "call_id": None, "execution": "server", "tools": [{"type": "function"}], **DONE}, index=1),
    ],
    "compaction": worked({"id": "cmp", "type": "compaction", "encrypted_content": "g"}),
    "new": worked({"id": "n", "type": "brand_new", "x": [1], **DONE}),
    "all kinds": [*thought(THOUGHT), *said(message(text("a")), 1), *called(CALL, 2), *said({**message(text("b")), "id": "msg_2"}, 3), *called({**MCP, "id": "m2"}, 4)],
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_the_streams_of_the_api_are_written_as_they_were_read(name):
    events = ITEMS[name]
    whole = stream(*events, output=[fields["item"] for kind, fields in events if kind == "output_item.done"])
    assert again(whole) == whole


# --- a conversation of other wires'

PDF = DataPart(b"%PDF", "application/pdf", "a.pdf")
PNG = DataPart(b"\x89PNG", "image/png")
CONVERSATION = [
    Message.system("be brief", "and kind"),
    Message.system("be polite"),
    Message.user(
        "look", PNG, PDF, DataPart(b"x", "application/zip", "a.zip"), DataPart(b"hello", "text/plain", "a.txt"), DataPart(b"RIFF", "audio/wav"),
        LinkPart("https://a.test/a.png"), LinkPart("https://a.test/a.pdf", "application/pdf", "b.pdf"), LinkPart("https://a.test/x"),
        FilePart("f1", "application/pdf", "c.pdf"), ToolCallPart("u", "f"),
    ),
    Message.model(
        ThinkingPart("hm"), "so", PNG, ToolCallPart("a", "f", {"x": 1}), ToolCallPart("b", "g h"), ProviderPart("x", {"other": {}}),
        ToolCallPart("s", "web_search", {"q": 1}, run_by="provider"), ToolResultPart("s", "web_search", "r", run_by="provider"),
        ToolResultPart("n", "f", "lone"),
    ),
    Message.user(
        ToolResultPart("a", "f", (TextPart("t"), PNG, LinkPart("https://a.test/a.png"))),
        ToolResultPart("b", "g h", {"no": 1}, is_error=True),
    ),
    Message.system("later"),
    Message.model(ToolCallPart("a", "f", raw="{", state="cut")),
    Message.user(),
]  # fmt: skip
WRITTEN = {'instructions': 'be briefand kind\n\nbe polite',
 'input': [{'role': 'user',
            'content': [{'type': 'input_text', 'text': 'look'},
                        {'type': 'input_image', 'image_url': 'data:image/png;base64,iVBORw==', 'detail': 'auto'},
                        {'type': 'input_file', 'filename': 'a.pdf', 'file_data': 'data:application/pdf;base64,JVBERg=='},
                        {'type': 'input_text', 'text': '[media: application/zip] a.zip\nx'},
                        {'type': 'input_text', 'text': '[media: text/plain] a.txt\nhello'},
                        {'type': 'input_text', 'text': '[media: audio/wav]'},
                        {'type': 'input_image', 'image_url': 'https://a.test/a.png', 'detail': 'auto'},
                        {'type': 'input_file', 'file_url': 'https://a.test/a.pdf', 'filename': 'b.pdf'},
                        {'type': 'input_text', 'text': 'https://a.test/x'},
                        {'type': 'input_file', 'file_id': 'f1'}]},
           {'type': 'reasoning', 'summary': [{'type': 'summary_text', 'text': 'hm'}]},
           {'role': 'assistant', 'content': 'so'},
           {'role': 'assistant', 'content': '[media: image/png]'},
           {'type': 'function_call', 'call_id': 'a', 'name': 'f', 'arguments': '{"x":1}'},
           {'type': 'function_call', 'call_id': 'b', 'name': 'g_h_382c7e40', 'arguments': '{}'},
           {'type': 'function_call_output',
            'call_id': 'a',
            'output': [{'type': 'input_text', 'text': 't'},
                       {'type': 'input_image', 'image_url': 'data:image/png;base64,iVBORw==', 'detail': 'auto'},
                       {'type': 'input_image', 'image_url': 'https://a.test/a.png', 'detail': 'auto'}]},
           {'type': 'function_call_output', 'call_id': 'b', 'output': '{"no":1}'},
           {'role': 'system', 'content': 'later'},
           {'type': 'function_call', 'call_id': 'a_da82acb3', 'name': 'f', 'arguments': '{}'}]}  # fmt: skip
LOSSES = [(0, None, 'texts', 'the instructions are one text; they are joined'),
 (1, None, 'texts', 'the instructions are one text; they are joined'),
 (2, 5, 'audio/wav', 'the API has no block for it; a text tells of it'),
 (2, 8, 'file https://a.test/x', 'the API has no block for it; a text tells of it'),
 (2, 9, 'name', 'the API knows no name of such a file, c.pdf'),
 (2, 10, 'a call', 'the API takes calls from the model alone'),
 (3, 2, 'image/png', 'the API takes no media from the model; a text names it'),
 (3, 5, "an item of the provider's, x", "it is another provider's"),
 (3, 6, 'a call of web_search, which the provider ran', "it is another provider's"),
 (3, 7, 'a result of web_search, which the provider ran', 'its call is not sent'),
 (3, 8, 'a result', 'the API takes results from the user alone'),
 (4, 1, 'is_error', 'the API has no mark for a failed tool'),
 (7, None, 'message', 'it is empty')]  # fmt: skip
THERE = [(3, 0, 'thinking', 'its origin is not known'),
 (3, 5, "an item of the provider's, x", 'its origin is not known'),
 (3, 6, 'a call of web_search, which the provider ran', 'its origin is not known'),
 (3, 7, 'a result of web_search, which the provider ran', 'its origin is not known')]  # fmt: skip


def test_d138_a_conversation_of_any_kind_of_part_to_the_last_field():
    losses = []
    assert wire.dump_messages(CONVERSATION, losses=losses) == WRITTEN
    assert [(loss.message, loss.part, loss.what, loss.why) for loss in losses] == LOSSES
    losses = []
    unsigned = [item for item in WRITTEN["input"] if item.get("type") != "reasoning"]
    assert wire.dump_messages(CONVERSATION, target=Origin("p", model="m"), losses=losses) == {
        **WRITTEN,
        "input": unsigned,
    }
    told = [(loss.message, loss.part, loss.what, loss.why) for loss in losses]
    assert told == sorted(
        [*[loss for loss in LOSSES if loss[1] not in (5, 6, 7) or loss[0] != 3], *THERE],
        key=lambda loss: (loss[0], loss[1] or 0),
    )


# --- what is stored of an answer

STORED = {'message': [{'type': 'text', 'text': 'Hi', 'native': {'openai_responses:notes': {'item': {'id': 'msg_1', 'type': 'message', 'status': 'completed'}}}}],
 'phase': [{'type': 'text',
            'text': 'Hi',
            'native': {'openai_responses:notes': {'item': {'id': 'msg_1', 'type': 'message', 'status': 'completed', 'phase': 'commentary'}}}}],
 'two blocks': [{'type': 'text',
                 'text': 'a',
                 'native': {'openai_responses': {'annotations': [{'type': 'url_citation',
                                                                  'url': 'https://a.test',
                                                                  'title': 'A',
                                                                  'start_index': 0,
                                                                  'end_index': 1},
                                                                 {'type': 'url_citation',
                                                                  'url': 'https://a.test',
                                                                  'title': 'B',
                                                                  'start_index': 0,
                                                                  'end_index': 1}]},
                            'openai_responses:notes': {'item': {'id': 'msg_1', 'type': 'message', 'status': 'completed'}}}},
                {'type': 'text', 'text': 'b', 'native': {'openai_responses:notes': {'response': {'logprobs': [{'token': 'b'}]}}}}],
 'refusal': [{'type': 'text', 'text': 'a', 'native': {'openai_responses:notes': {'item': {'id': 'msg_1', 'type': 'message', 'status': 'completed'}}}},
             {'type': 'text', 'text': 'no', 'native': {'openai_responses:notes': {'spelling': {'type': 'refusal'}}}}],
 'two messages': [{'type': 'text', 'text': 'a', 'native': {'openai_responses:notes': {'item': {'id': 'msg_1', 'type': 'message', 'status': 'completed'}}}},
                  {'type': 'text', 'text': 'b', 'native': {'openai_responses:notes': {'item': {'id': 'msg_2', 'type': 'message', 'status': 'completed'}}}}],
 'incomplete': [{'type': 'text', 'text': 'a', 'native': {'openai_responses:notes': {'item': {'id': 'msg_1', 'type': 'message', 'status': 'incomplete'}}}}],
 'thinking': [{'type': 'thinking',
               'text': 'hm',
               'native': {'openai_responses': {'id': 'rs_1', 'encrypted_content': 'g'}, 'openai_responses:notes': {'response': {'status': 'completed'}}}}],
 'raw thinking': [{'type': 'thinking',
                   'text': 'hm',
                   'native': {'openai_responses': {'id': 'rs_1'}, 'openai_responses:notes': {'spelling': {'pieces': {'summary': [], 'content': [2]}}}}}],
 'call': [{'type': 'tool_call', 'id': 'c', 'name': 'f', 'arguments': {'a': 1}, 'native': {'openai_responses': {'id': 'fc_1', 'status': 'completed'}}}],
 'two calls': [{'type': 'tool_call', 'id': 'c', 'name': 'f', 'arguments': {'a': 1}, 'native': {'openai_responses': {'id': 'fc_1', 'status': 'completed'}}},
               {'type': 'tool_call', 'id': 'd', 'name': 'f', 'arguments': {'b': [1]}, 'native': {'openai_responses': {'id': 'fc_2', 'status': 'completed'}}}],
 'custom': [{'type': 'tool_call',
             'id': 'c',
             'name': 'sh',
             'arguments': {'input': 'ls'},
             'native': {'openai_responses': {'id': 'ctc_1', 'type': 'custom_tool_call'}, 'openai_responses:notes': {'response': {'status': 'completed'}}}}],
 'shell': [{'type': 'tool_call',
            'id': 'c',
            'name': 'shell',
            'arguments': {'action': {'commands': ['ls']}},
            'native': {'openai_responses': {'id': 's', 'type': 'shell_call', 'status': 'completed'}}}],
 'local shell': [{'type': 'tool_call',
                  'id': 'c',
                  'name': 'local_shell',
                  'arguments': {'action': {'type': 'exec', 'command': ['ls']}},
                  'native': {'openai_responses': {'id': 'l', 'type': 'local_shell_call', 'status': 'completed'}}}],
 'patch': [{'type': 'tool_call',
            'id': 'c',
            'name': 'apply_patch',
            'arguments': {'operation': {'type': 'delete_file', 'path': 'p'}},
            'native': {'openai_responses': {'id': 'a', 'type': 'apply_patch_call', 'status': 'completed'}}}],
 'computer': [{'type': 'tool_call',
               'id': 'c',
               'name': 'computer',
               'arguments': {'action': {'type': 'wait'}},
               'native': {'openai_responses': {'id': 'cu', 'type': 'computer_call', 'pending_safety_checks': [], 'status': 'completed'}}}],
 'actions': [{'type': 'tool_call',
              'id': 'c',
              'name': 'computer',
              'arguments': {'actions': [{'type': 'wait'}]},
              'native': {'openai_responses': {'id': 'cu', 'type': 'computer_call', 'status': 'completed'}}}],
 'search': [{'type': 'tool_call',
             'id': 'ws',
             'name': 'web_search',
             'arguments': {'action': {'type': 'search', 'query': 'q'}},
             'run_by': 'provider',
             'native': {'openai_responses': {'type': 'web_search_call', 'status': 'completed'}}}],
 'files': [{'type': 'tool_call',
            'id': 'fs',
            'name': 'file_search',
            'arguments': {'queries': ['q']},
            'run_by': 'provider',
            'native': {'openai_responses': {'type': 'file_search_call', 'status': 'completed'}}},
           {'type': 'tool_result', 'id': 'fs', 'name': 'file_search', 'result': [{'text': 't'}], 'run_by': 'provider'}],
 'code': [{'type': 'tool_call',
           'id': 'ci',
           'name': 'code_interpreter',
           'arguments': {'code': '1', 'container_id': 'k'},
           'run_by': 'provider',
           'native': {'openai_responses': {'type': 'code_interpreter_call', 'status': 'completed'}}},
          {'type': 'tool_result',
           'id': 'ci',
           'name': 'code_interpreter',
           'result': [{'type': 'logs', 'logs': '1'}, {'type': 'logs', 'logs': '2'}],
           'run_by': 'provider'},
          {'type': 'data',
           'data': 'iVBORw0K',
           'mime_type': 'image/png',
           'name': 'image_0.png',
           'native': {'openai_responses:notes': {'spelling': {'call': 'ci', 'output': {'place': 1, 'fields': {'type': 'image', 'x': 1}}}}}}],
 'image': [{'type': 'tool_call',
            'id': 'ig',
            'name': 'image_generation',
            'arguments': {'revised_prompt': 'p'},
            'run_by': 'provider',
            'native': {'openai_responses': {'type': 'image_generation_call', 'status': 'completed'}}},
           {'type': 'data',
            'data': 'iVBORw0K',
            'mime_type': 'image/png',
            'name': 'image_0.png',
            'native': {'openai_responses:notes': {'spelling': {'call': 'ig'}}}}],
 'mcp': [{'type': 'tool_call',
          'id': 'mcp_1',
          'name': 'f',
          'arguments': {'a': 1},
          'run_by': 'provider',
          'native': {'openai_responses': {'type': 'mcp_call', 'server_label': 's', 'error': None, 'status': 'completed'}}},
         {'type': 'tool_result', 'id': 'mcp_1', 'name': 'f', 'result': 'x', 'run_by': 'provider'}],
 'mcp error': [{'type': 'tool_call',
                'id': 'mcp_1',
                'name': 'f',
                'arguments': {'a': 1},
                'run_by': 'provider',
                'native': {'openai_responses': {'type': 'mcp_call', 'server_label': 's', 'output': None, 'status': 'completed'}}},
               {'type': 'tool_result',
                'id': 'mcp_1',
                'name': 'f',
                'result': {'type': 'e'},
                'is_error': True,
                'run_by': 'provider',
                'native': {'openai_responses:notes': {'spelling': {'field': 'error'}}}}],
 'mcp tools': [{'type': 'provider',
                'kind': 'mcp_list_tools',
                'native': {'openai_responses': {'id': 'mcpl', 'type': 'mcp_list_tools', 'server_label': 's', 'tools': []}}}],
 'approval': [{'type': 'provider',
               'kind': 'mcp_approval_request',
               'native': {'openai_responses': {'id': 'mcpr', 'type': 'mcp_approval_request', 'server_label': 's', 'name': 'f', 'arguments': '{}'}}}],
 'tool search': [{'type': 'tool_call',
                  'id': 't',
                  'name': 'tool_search',
                  'arguments': {'arguments': {'q': 1}},
                  'run_by': 'provider',
                  'native': {'openai_responses': {'type': 'tool_search_call', 'call_id': None, 'execution': 'server', 'status': 'completed'}}},
                 {'type': 'tool_result',
                  'id': 't',
                  'name': 'tool_search',
                  'result': [{'type': 'function'}],
                  'run_by': 'provider',
                  'native': {'openai_responses': {'id': 'u', 'type': 'tool_search_output', 'call_id': None, 'execution': 'server', 'status': 'completed'},
                             'openai_responses:notes': {'spelling': {'call_id': 'absent'}}}}],
 'compaction': [{'type': 'provider', 'kind': 'compaction', 'native': {'openai_responses': {'id': 'cmp', 'type': 'compaction', 'encrypted_content': 'g'}}}],
 'new': [{'type': 'provider', 'kind': 'brand_new', 'native': {'openai_responses': {'id': 'n', 'type': 'brand_new', 'x': [1], 'status': 'completed'}}}],
 'all kinds': [{'type': 'thinking',
                'text': 'hm',
                'native': {'openai_responses': {'id': 'rs_1', 'encrypted_content': 'g'}, 'openai_responses:notes': {'response': {'status': 'completed'}}}},
               {'type': 'text', 'text': 'a', 'native': {'openai_responses:notes': {'item': {'id': 'msg_1', 'type': 'message', 'status': 'completed'}}}},
               {'type': 'tool_call', 'id': 'c', 'name': 'f', 'arguments': {'a': 1}, 'native': {'openai_responses': {'id': 'fc_1', 'status': 'completed'}}},
               {'type': 'text', 'text': 'b', 'native': {'openai_responses:notes': {'item': {'id': 'msg_2', 'type': 'message', 'status': 'completed'}}}},
               {'type': 'tool_call',
                'id': 'm2',
                'name': 'f',
                'arguments': {'a': 1},
                'run_by': 'provider',
                'native': {'openai_responses': {'type': 'mcp_call', 'server_label': 's', 'error': None, 'status': 'completed'}}},
               {'type': 'tool_result', 'id': 'm2', 'name': 'f', 'result': 'x', 'run_by': 'provider'}]}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_decisions_14_and_22_what_is_stored_of_an_answer(name):
    """Nothing twice, nothing of another place."""
    output = [fields["item"] for kind, fields in ITEMS[name] if kind == "output_item.done"]
    (read,) = fold(wire.load_response({**HEAD, "status": "completed", "output": output}))
    assert json.loads(read.to_json())["content"] == STORED[name]


# --- tables

KEPT = (
    "background", "conversation", "frequency_penalty", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "presence_penalty",
    "previous_response_id", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "stream",
    "temperature", "text", "tool_choice", "top_logprobs", "top_p", "truncation", "user",
)  # fmt: skip
OBJECTS = ("reasoning", "text")
LARGE = ("include", "instructions", "prompt", "tools")
WHOLE = {
    "id": "r",
    "object": "response",
    "model": "m",
    "status": "completed",
    "output": [message(text("a"))],
    "error": None,
}


@pytest.mark.parametrize("value", [{"x": 1}, "x"])
def test_d142r_what_is_kept_of_what_a_response_says_again(value):
    said_again = dict.fromkeys([*KEPT, *LARGE], value)
    itself = {"metadata": {"a": 1}, "service_tier": "flex", "store": False, "completed_at": 5}
    events = wire.load_response({**WHOLE, **said_again, **itself, "output_text": "a", "empty": [], "none": None})
    (read,) = fold(events)
    notes = read.native["openai_responses:notes"]
    kept = {key: each for key, each in said_again.items() if key in KEPT and (value != "x" or key not in OBJECTS)}
    assert notes["echo"] == kept
    assert notes["response"] == {"status": "completed", **itself}
    assert set(notes) == {"echo", "response", "digest"} and set(read.native) == {"openai_responses:notes"}
    again = wire.dump_response(events)
    assert {key: again[key] for key in [*kept, *itself]} == {**kept, **itself}
    usual = {key: each for key, each in HEAD.items() if key not in ("output", "usage")}
    assert wire.dump_response(wire.load_response({**WHOLE, **usual, "status": "completed", "store": True})) == {
        **HEAD, "status": "completed", "output": [message(text("a"))],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "status", "details"),
    [
        ("stop", "completed", None), ("tool_calls", "completed", None), ("refusal", "completed", None), ("pause", "completed", None),
        ("unspecified", "completed", None), (None, "completed", None), ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}), ("recitation", "incomplete", {"reason": "content_filter"}),
        ("cancelled", "cancelled", None), ("error", "failed", None),
    ],
)  # fmt: skip
def test_d142r_how_an_answer_of_others_ended(reason, status, details):
    body = wire.dump_response(unfold([Message.model("a").replace(id="m1", finish_reason=reason)]))
    assert body == {
        **HEAD, "id": "resp_m1", "created_at": 0, "model": "", "status": status, "incomplete_details": details,
        "output": [{"id": "msg_m1_0", "type": "message", "role": "assistant", "status": "completed", "content": [text("a")]}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "why", "reason"),
    [
        ("completed", "max_output_tokens", "stop"), ("incomplete", "max_output_tokens", "length"), ("incomplete", "content_filter", "content_filter"),
        ("incomplete", "x", "unspecified"), ("incomplete", None, "unspecified"), ("cancelled", None, "cancelled"), ("queued", None, "unspecified"),
    ],
)  # fmt: skip
def test_d142r_how_an_answer_ended(status, why, reason):
    details = {"incomplete_details": {"reason": why}} if why else {}
    for more, ended in (
        ([], reason),
        ([CALL], "tool_calls" if reason == "stop" else reason),
        ([message({"type": "refusal", "refusal": "no"})], "refusal" if reason == "stop" else reason),
    ):
        (read,) = fold(
            wire.load_response({**WHOLE, "status": status, **details, "output": [message(text("a")), *more]})
        )
        assert read.finish_reason == ended


@pytest.mark.parametrize(
    ("told", "usage", "written"),
    [
        ({"input_tokens": 1}, Usage(input_tokens=1), {"input_tokens": 1, "total_tokens": 1}),
        ({"output_tokens": 2}, Usage(output_tokens=2), {"output_tokens": 2, "total_tokens": 2}),
        ({"input_tokens": 1, "output_tokens": 2}, Usage(input_tokens=1, output_tokens=2, total_tokens=3), {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        ({"input_tokens": True, "total_tokens": 9}, Usage(total_tokens=9), {"total_tokens": 9}),
        ({"input_tokens": 1, "output_tokens": 2, "total_tokens": 9}, Usage(input_tokens=1, output_tokens=2, total_tokens=9), {"input_tokens": 1, "output_tokens": 2, "total_tokens": 9}),
        ({"x": 1}, None, None), ({}, None, None), ("x", None, None),
    ],
)  # fmt: skip
def test_usage_to_the_last_count(told, usage, written):
    events = wire.load_response({**WHOLE, "usage": told})
    assert fold(events)[0].usage == usage
    nothing = {
        "input_tokens": 0, "output_tokens": 0, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }  # fmt: skip
    assert wire.dump_response(events)["usage"] == (None if written is None else {**nothing, **written})


def test_errors_to_the_last_field():
    def error(status, kind, code):
        return status, {"error": {"message": "x", "type": kind, "param": None, "code": code}}

    assert [wire.dump_error(kind("x")) for kind in (
        errors.ContextLengthError, errors.ContentRefusedError, errors.InvalidRequestError, errors.HistoryError, errors.AuthenticationError,
        errors.PermissionDeniedError, errors.ModelNotFoundError, errors.RateLimitError, errors.OverloadedError, errors.ProviderTimeoutError,
        errors.ProviderConnectionError, errors.DragomanError,
    )] == [
        error(400, "invalid_request_error", "context_length_exceeded"), error(400, "invalid_request_error", "content_policy_violation"),
        error(400, "invalid_request_error", "invalid_prompt"), error(400, "invalid_request_error", "invalid_prompt"),
        error(401, "invalid_request_error", "invalid_api_key"), error(403, "invalid_request_error", "forbidden"),
        error(404, "invalid_request_error", "model_not_found"), error(429, "rate_limit_error", "rate_limit_exceeded"),
        error(503, "server_error", "overloaded"), error(504, "server_error", "timeout"), error(502, "server_error", "server_error"),
        error(500, "server_error", "server_error"),
    ]  # fmt: skip
    for status, sent in ((None, 400), (200, 400), (399, 400), (400, 400), (422, 422)):
        assert wire.dump_error(errors.InvalidRequestError("x", status=status))[0] == sent


@pytest.mark.parametrize(
    ("head", "kind"), [(b"\x89PNG\r\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"RIFFxxxx", "webp"), (b"GIF89a", "gif"), (b"zzz", "png")]
)  # fmt: skip
def test_d144r_the_type_of_a_made_image_is_told_or_seen(head, kind):
    made = {"type": "image_generation_call", "id": "i", "result": b64encode(head).decode()}
    (read,) = fold(wire.load_response({**WHOLE, "output": [made, {**made, "id": "j", "output_format": "avif"}]}))
    assert [(one.name, one.mime_type, one.data) for one in read.content if isinstance(one, DataPart)] == [
        (f"image_0.{kind}", f"image/{kind}", head), ("image_1.avif", "image/avif", head),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "body", "lost"),
    [
        (
            Settings(temperature=0.5, max_tokens=5, top_p=0.4, parallel_tool_calls=False, cache="long", tool_choice="f"),
            {"temperature": 0.5, "top_p": 0.4, "max_output_tokens": 5, "parallel_tool_calls": False, "tool_choice": {"type": "function", "name": "f"}, "prompt_cache_retention": "24h"},
            [],
        ),
        (Settings(reasoning=2048), {"reasoning": {"effort": "low", "summary": "detailed"}}, []),
        (Settings(reasoning=2049), {"reasoning": {"effort": "medium", "summary": "detailed"}}, []),
        (Settings(reasoning=8192), {"reasoning": {"effort": "medium", "summary": "detailed"}}, []),
        (Settings(reasoning=8193), {"reasoning": {"effort": "high", "summary": "detailed"}}, []),
        (Settings(reasoning="high"), {"reasoning": {"effort": "high", "summary": "detailed"}}, []),
        (Settings(reasoning="off"), {"reasoning": {"effort": "none"}}, []),
        (Settings(cache="short", tool_choice="none"), {"tool_choice": "none"}, []),
        (
            Settings(top_k=1, presence_penalty=0.1, frequency_penalty=0.1, stop=("x",), seed=1, tool_choice="required"), {"tool_choice": "required"},
            ["top_k", "presence_penalty", "frequency_penalty", "stop", "seed"],
        ),
    ],
)  # fmt: skip
def test_settings_to_the_last_field(settings, body, lost):
    losses = []
    assert wire.dump_request(ModelRequest("m", settings=settings), losses=losses) == {"model": "m", "input": [], **body}
    told = [(loss.message, loss.part, loss.what, loss.why) for loss in losses]
    assert told == [(None, None, name, "the API has no such setting") for name in lost]


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
        ServerTool("custom", {"name": "c"}), ServerTool("function"), ServerTool("web_search", {"x": 1}),
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
    assert [(loss.what, loss.why) for loss in losses] == [
        ("file_search", "it needs vector_store_ids, the stores to search in")
    ]


UNSENT = {"created_by": "x", "async": True, "item_id": "y", "output_index": 3, "obfuscation": "z"}


@pytest.mark.parametrize(
    "item", [CALL, THOUGHT, CUSTOM, {"type": "brand_new", "id": "n"}], ids=lambda item: item["type"]
)
def test_fields_that_a_response_has_and_a_request_may_not(item):
    events = wire.load_response({**WHOLE, "output": [{**item, **UNSENT}]})
    (read,) = fold(events)
    never = ("status",) if item["type"] in ("reasoning", "custom_tool_call") else ()
    sent = {key: value for key, value in item.items() if key not in never}
    assert wire.dump_messages([read])["input"] == [sent]
    assert wire.dump_response(events)["output"] == [{**item, **UNSENT}]


def test_fields_of_a_text_that_a_request_may_not_have():
    blocks = [{**text("a", logprobs=[{"token": "a"}]), **UNSENT}, text("b")]
    events = wire.load_response({**WHOLE, "output": [message(*blocks)]})
    (read,) = fold(events)
    assert wire.dump_response(events)["output"] == [message(*blocks)]
    unsent = [{"type": "output_text", "text": each, "annotations": []} for each in "ab"]
    assert wire.dump_messages([read])["input"] == [message(*unsent)]


@pytest.mark.parametrize(
    "annotation",
    [
        {"type": "container_file_citation", "file_id": "f", "container_id": "c", "filename": "n"}, {"type": "file_path", "file_id": "f"},
        {"type": "file_path", "file_id": ""}, {"type": "file_citation", "file_id": "f"},
    ],
)  # fmt: skip
def test_files_that_were_made_and_how_they_are_asked_for(annotation):
    (read,) = fold(wire.load_response({**WHOLE, "output": [message(text("a", annotations=[annotation, annotation]))]}))
    found = wire.load_files(read.content[0])
    if annotation["type"] == "file_citation" or not annotation["file_id"]:
        assert found == []
        return
    container = annotation.get("container_id")
    own = {"container_id": container} if container else {}
    assert found == [FilePart("f", None, annotation.get("filename"), {"openai_responses": own})]
    download = wire.dump_download(found[0])
    paths = [(one.method, one.path) for one in (download.content, download.about) if one is not None]
    assert paths == (
        [("GET", "/containers/c/files/f/content")] if container else [("GET", "/files/f/content"), ("GET", "/files/f")]
    )
