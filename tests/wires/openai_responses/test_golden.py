"""The openai_responses wire, whole values: the streams that the API sends are read and written
again event by event (decisions 2, 14, 22; D-138…D-144r), and what other wires' messages become is
compared to the last field."""

from __future__ import annotations

import json

import pytest

from dragoman.fold import fold
from dragoman.loss import Loss
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
)
from dragoman.wires import openai_responses as wire
from support.responses import (
    CALL,
    CUSTOM,
    DONE,
    FULL_HEAD,
    PDF_PART,
    PNG_PART,
    THOUGHT,
    again,
    message_block,
    message_events,
    text_block,
)

USAGE = {
    "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2, "audio_tokens": 1}, "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3, "accepted_tokens": 5}, "total_tokens": 18, "cost": 3,
}  # fmt: skip


def stream(*events, output, **end):
    """The whole stream, numbered. `events`: `(type, fields)`, of the items at their index."""
    end = {"status": "completed", "usage": USAGE, "output": output, **end}
    ending = "incomplete" if end["status"] == "incomplete" else "completed"
    whole = [
        ("created", {"response": FULL_HEAD}),
        ("in_progress", {"response": FULL_HEAD}),
        *events,
        (ending, {"response": {**FULL_HEAD, **end}}),
    ]
    return [{"type": f"response.{kind}", "sequence_number": number, **fields} for number, (kind, fields) in enumerate(whole)]  # fmt: skip


def work_events(item, *stages, index=0):
    """The events of an item that the provider works on."""
    begun = {
        key: value for key, value in item.items() if key not in ("results", "outputs", "result")
    }
    begun |= {"status": "in_progress"} if "status" in item else {}
    return [
        ("output_item.added", {"output_index": index, "item": begun}),
        *[
            (f"{item['type']}.{stage}", {"item_id": item["id"], "output_index": index})
            for stage in stages
        ],
        ("output_item.done", {"output_index": index, "item": item}),
    ]


URL = {
    "type": "url_citation",
    "url": "https://a.test",
    "title": "A",
    "start_index": 0,
    "end_index": 1,
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
IMAGE = "data:image/png;base64,iVBORw0K"


def call_events(item, index=0):
    """The events of a call whose arguments are streamed."""
    at = {"item_id": item["id"], "output_index": index}
    late = {"output": None, "error": None} if item["type"] == "mcp_call" else {}
    return [
        (
            "output_item.added",
            {
                "output_index": index,
                "item": {**item, **late, "status": "in_progress", "arguments": ""},
            },
        ),
        *([("mcp_call.in_progress", at)] if item["type"] == "mcp_call" else []),
        (f"{item['type']}_arguments.delta", {**at, "delta": item["arguments"]}),
        (f"{item['type']}_arguments.done", {**at, "arguments": item["arguments"]}),
        *([("mcp_call.completed", at)] if item["type"] == "mcp_call" else []),
        ("output_item.done", {"output_index": index, "item": item}),
    ]


def custom_events(item, index=0):
    at = {"item_id": item["id"], "output_index": index}
    begun, *rest = work_events(item, index=index)
    return [begun, ("custom_tool_call_input.delta", {**at, "delta": item["input"]}), ("custom_tool_call_input.done", {**at, "input": item["input"]}), *rest]  # fmt: skip


def reasoning_events(item, index=0):
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


ITEMS = {
    "message": message_events(message_block(text_block("Hi"))),
    "phase": message_events(message_block(text_block("Hi"), phase="commentary")),
    "two blocks": message_events(message_block(text_block("a", annotations=[URL, {**URL, "title": "B"}]), text_block("b", logprobs=[{"token": "b"}]))),
    "refusal": message_events(message_block(text_block("a"), {"type": "refusal", "refusal": "no"})),
    "two messages": [*message_events(message_block(text_block("a"))), *message_events({**message_block(text_block("b")), "id": "msg_2"}, 1)],
    "incomplete": message_events({**message_block(text_block("a")), "status": "incomplete"}),
    "thinking": reasoning_events(THOUGHT),
    "raw thinking": reasoning_events({"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}),
    "call": call_events(CALL),
    "two calls": [*call_events(CALL), *call_events({**CALL, "id": "fc_2", "call_id": "d", "arguments": '{"b":[1]}'}, 1)],
    "custom": custom_events(CUSTOM),
    "shell": work_events({"id": "s", "type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, **DONE}),
    "local shell": work_events({"id": "l", "type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}, **DONE}),
    "patch": work_events({"id": "a", "type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "p"}, **DONE}),
    "computer": work_events({"id": "cu", "type": "computer_call", "call_id": "c", "action": {"type": "wait"}, "pending_safety_checks": [], **DONE}),
    "actions": work_events({"id": "cu", "type": "computer_call", "call_id": "c", "actions": [{"type": "wait"}], **DONE}),
    "search": work_events({"id": "ws", "type": "web_search_call", "action": {"type": "search", "query": "q"}, **DONE}, "in_progress", "searching", "completed"),
    "files": work_events({"id": "fs", "type": "file_search_call", "queries": ["q"], "results": [{"text": "t"}], **DONE}, "in_progress", "searching", "completed"),
    "code": work_events(
        {"id": "ci", "type": "code_interpreter_call", "code": "1", "container_id": "k", "outputs": [{"type": "logs", "logs": "1"}, {"type": "image", "url": IMAGE, "x": 1}, {"type": "logs", "logs": "2"}], **DONE},
        "in_progress", "interpreting", "completed",
    ),
    "image": work_events({"id": "ig", "type": "image_generation_call", "revised_prompt": "p", "result": "iVBORw0K", **DONE}, "in_progress", "generating", "completed"),
    "mcp": call_events(MCP),
    "mcp error": call_events({**MCP, "output": None, "error": {"type": "e"}}),
    "mcp tools": work_events({"id": "mcpl", "type": "mcp_list_tools", "server_label": "s", "tools": []}, "in_progress", "completed"),
    "approval": work_events({"id": "mcpr", "type": "mcp_approval_request", "server_label": "s", "name": "f", "arguments": "{}"}),
    "tool search": [
        *work_events({"id": "t", "type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"q": 1}, **DONE}),
        *work_events({"id": "u", "type": "tool_search_output", "call_id": None, "execution": "server", "tools": [{"type": "function"}], **DONE}, index=1),
    ],
    "compaction": work_events({"id": "cmp", "type": "compaction", "encrypted_content": "g"}),
    "new": work_events({"id": "n", "type": "brand_new", "x": [1], **DONE}),
    "all kinds": [*reasoning_events(THOUGHT), *message_events(message_block(text_block("a")), 1), *call_events(CALL, 2), *message_events({**message_block(text_block("b")), "id": "msg_2"}, 3), *call_events({**MCP, "id": "m2"}, 4)],
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_the_streams_of_the_api_are_written_as_they_were_read(name):
    events = ITEMS[name]
    whole = stream(
        *events, output=[fields["item"] for kind, fields in events if kind == "output_item.done"]
    )
    assert again(whole) == whole


CONVERSATION = [
    Message.system("be brief", "and kind"),
    Message.system("be polite"),
    Message.user(
        "look", PNG_PART, PDF_PART, DataPart(b"x", "application/zip", "a.zip"), DataPart(b"hello", "text/plain", "a.txt"), DataPart(b"RIFF", "audio/wav"),
        LinkPart("https://a.test/a.png"), LinkPart("https://a.test/a.pdf", "application/pdf", "b.pdf"), LinkPart("https://a.test/x"),
        FilePart("f1", "application/pdf", "c.pdf"), ToolCallPart("u", "f"),
    ),
    Message.model(
        ThinkingPart("hm"), "so", PNG_PART, ToolCallPart("a", "f", {"x": 1}), ToolCallPart("b", "g h"), ProviderPart("x", {"other": {}}),
        ToolCallPart("s", "web_search", {"q": 1}, run_by="provider"), ToolResultPart("s", "web_search", "r", run_by="provider"),
        ToolResultPart("n", "f", "lone"),
    ),
    Message.user(
        ToolResultPart("a", "f", (TextPart("t"), PNG_PART, LinkPart("https://a.test/a.png"))),
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
LOSSES = [Loss(0, None, 'texts', 'the instructions are one text; they are joined'),
 Loss(1, None, 'texts', 'the instructions are one text; they are joined'),
 Loss(2, 5, 'data', 'the API has no block for it; a text tells of it', 'audio/wav'),
 Loss(2, 8, 'link', 'the API has no block for it; a text tells of it', 'file https://a.test/x'),
 Loss(2, 9, 'name', 'the API knows no name of such a file, c.pdf'),
 Loss(2, 10, 'tool call', 'the API takes calls from the model alone'),
 Loss(3, 2, 'data', 'the API takes no media from the model; a text names it', 'image/png'),
 Loss(3, 5, 'provider', "it is another provider's", "an item of the provider's, x"),
 Loss(3, 6, 'tool call', "it is another provider's", 'a call of web_search, which the provider ran'),
 Loss(3, 7, 'tool result', 'its call is not sent', 'a result of web_search, which the provider ran'),
 Loss(3, 8, 'tool result', 'the API takes results from the user alone'),
 Loss(4, 1, 'is_error', 'the API has no mark for a failed tool'),
 Loss(6, 0, 'arguments', 'they are cut off; the call is sent without'),
 Loss(7, None, 'message', 'it is empty')]  # fmt: skip
THERE = [Loss(3, 0, 'thinking', 'its origin is not known'),
 Loss(3, 5, 'provider', 'its origin is not known', "an item of the provider's, x"),
 Loss(3, 6, 'tool call', 'its origin is not known', 'a call of web_search, which the provider ran'),
 Loss(3, 7, 'tool result', 'its origin is not known', 'a result of web_search, which the provider ran')]  # fmt: skip


def test_d138_a_conversation_of_any_kind_of_part_to_the_last_field():
    losses = []
    assert wire.dump_messages(CONVERSATION, losses=losses) == WRITTEN
    assert losses == LOSSES
    losses = []
    unsigned = [item for item in WRITTEN["input"] if item.get("type") != "reasoning"]
    assert wire.dump_messages(CONVERSATION, target=Origin("p", model="m"), losses=losses) == {
        **WRITTEN,
        "input": unsigned,
    }
    assert losses == sorted(
        [*[loss for loss in LOSSES if loss.part not in (5, 6, 7) or loss.message != 3], *THERE],
        key=lambda loss: (loss.message, loss.part or 0),
    )


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
                            'openai_responses:notes': {'item': {'id': 'msg_1', 'type': 'message', 'status': 'completed'}}},
                 'citations': [{'url': 'https://a.test', 'title': title, 'start': 0, 'end': 1} for title in 'AB']},
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
 'approval': [{'type': 'tool_call',
               'id': 'mcpr',
               'name': 'f',
               'run_by': 'client',
               'native': {'openai_responses': {'type': 'mcp_approval_request', 'server_label': 's'},
                          'dragoman:notes': {'waits': {'id': 'mcpr', 'reason': 'approval', 'metadata': {'server_label': 's'}}}}}],
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
    (read,) = fold(wire.load_response({**FULL_HEAD, "status": "completed", "output": output}))
    assert json.loads(read.to_json())["content"] == STORED[name]
