"""Google's wire, whole values: conversations and answers are read and written again to the last
field (decisions 2, 14, 22; D-120…D-128), and what other wires' messages become is compared whole,
with every loss."""

from __future__ import annotations

import json

import pytest

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
)
from dragoman.wires import google as wire
from support.google import PARTS, USAGE, body
from support.profiles import quirks_of

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


ANYWHERE = ({'systemInstruction': {'parts': [{'text': 'be brief'}, {'text': 'and kind'}, {'text': 'be polite'}]},
  'contents': [{'role': 'user',
                'parts': [{'text': 'look'},
                          {'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                          {'inlineData': {'mimeType': 'application/pdf', 'data': 'JVBERg==', 'displayName': 'a.pdf'}},
                          {'inlineData': {'mimeType': 'application/zip', 'data': 'eA==', 'displayName': 'a.zip'}},
                          {'inlineData': {'mimeType': 'text/plain', 'data': 'aGVsbG8=', 'displayName': 'a.txt'}},
                          {'inlineData': {'mimeType': 'audio/wav', 'data': 'UklGRg=='}},
                          {'fileData': {'fileUri': 'https://a.test/a.png', 'mimeType': 'image/png'}},
                          {'fileData': {'fileUri': 'https://a.test/a.pdf', 'mimeType': 'application/pdf', 'displayName': 'b.pdf'}},
                          {'fileData': {'fileUri': 'https://a.test/x', 'mimeType': 'application/octet-stream'}},
                          {'text': '[media: application/pdf] c.pdf'},
                          {'functionCall': {'name': 'f', 'args': {}, 'id': 'u'}}]},
               {'role': 'model',
                'parts': [{'text': 'hm', 'thought': True},
                          {'text': 'so'},
                          {'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                          {'functionCall': {'name': 'f', 'args': {'x': 1}, 'id': 'a'}},
                          {'functionCall': {'name': 'g_h_382c7e40', 'args': {}, 'id': 'b'}},
                          {'functionResponse': {'name': 'f', 'id': 'n', 'response': {'result': 'lone'}}}]},
               {'role': 'user',
                'parts': [{'functionResponse': {'name': 'f',
                                                'id': 'a',
                                                'response': {'result': 't'},
                                                'parts': [{'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                                                          {'fileData': {'fileUri': 'https://a.test/a.png', 'mimeType': 'image/png'}}]}},
                          {'functionResponse': {'name': 'g_h_382c7e40', 'id': 'b', 'response': {'error': {'no': 1}}}}]},
               {'role': 'user', 'parts': [{'text': '<system>\nlater\n</system>'}]},
               {'role': 'model', 'parts': [{'functionCall': {'name': 'f', 'args': {}, 'id': 'a'}}]}]},
 [(2, 9, 'file', 'application/pdf c.pdf', 'another provider holds the file'),
  (3, 5, 'provider', "a part of the provider's, x", "it is another provider's"),
  (3, 6, 'tool call', 'a call of web_search, which the provider ran', "it is another provider's"),
  (3, 7, 'tool result', 'a result of web_search, which the provider ran', "it is another provider's"),
  (5, None, 'system message', '', 'the API takes none within the conversation; sent as a marked user text'),
  (6, 0, 'arguments', '', 'they are cut off; the call is sent without'),
  (7, None, 'message', '', 'nothing of it can be sent, and the API takes no empty content')])  # fmt: skip


NEW = ({'systemInstruction': {'parts': [{'text': 'be brief'}, {'text': 'and kind'}, {'text': 'be polite'}]},
  'contents': [{'role': 'user',
                'parts': [{'text': 'look'},
                          {'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                          {'inlineData': {'mimeType': 'application/pdf', 'data': 'JVBERg==', 'displayName': 'a.pdf'}},
                          {'text': '[media: application/zip] a.zip\nx'},
                          {'inlineData': {'mimeType': 'text/plain', 'data': 'aGVsbG8=', 'displayName': 'a.txt'}},
                          {'inlineData': {'mimeType': 'audio/wav', 'data': 'UklGRg=='}},
                          {'fileData': {'fileUri': 'https://a.test/a.png', 'mimeType': 'image/png'}},
                          {'fileData': {'fileUri': 'https://a.test/a.pdf', 'mimeType': 'application/pdf', 'displayName': 'b.pdf'}},
                          {'fileData': {'fileUri': 'https://a.test/x', 'mimeType': 'application/octet-stream'}},
                          {'text': '[media: application/pdf] c.pdf'}]},
               {'role': 'model',
                'parts': [{'text': 'so'},
                          {'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                          {'functionCall': {'name': 'f', 'args': {'x': 1}, 'id': 'a'},
                           'thoughtSignature': 'c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I='},
                          {'functionCall': {'name': 'g_h_382c7e40', 'args': {}, 'id': 'b'}}]},
               {'role': 'user',
                'parts': [{'functionResponse': {'name': 'f',
                                                'id': 'a',
                                                'response': {'result': 't'},
                                                'parts': [{'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                                                          {'fileData': {'fileUri': 'https://a.test/a.png', 'mimeType': 'image/png'}}]}},
                          {'functionResponse': {'name': 'g_h_382c7e40', 'id': 'b', 'response': {'error': {'no': 1}}}}]},
               {'role': 'user', 'parts': [{'text': '<system>\nlater\n</system>'}]},
               {'role': 'model',
                'parts': [{'functionCall': {'name': 'f', 'args': {}, 'id': 'a_da82acb3'},
                           'thoughtSignature': 'c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I='}]}]},
 [(2, 9, 'file', 'application/pdf c.pdf', 'another provider holds the file'),
  (2, 10, 'tool call', '', 'the API takes calls from the model and results from the user alone'),
  (3, 0, 'thinking', '', 'its origin is not known'),
  (3, 5, 'provider', "a part of the provider's, x", 'its origin is not known'),
  (3, 6, 'tool call', 'a call of web_search, which the provider ran', 'its origin is not known'),
  (3, 7, 'tool result', 'a result of web_search, which the provider ran', 'its origin is not known'),
  (3, 8, 'tool result', '', 'the API takes calls from the model and results from the user alone'),
  (5, None, 'system message', '', 'the API takes none within the conversation; sent as a marked user text'),
  (6, 0, 'arguments', '', 'they are cut off; the call is sent without'),
  (7, None, 'message', '', 'nothing of it can be sent, and the API takes no empty content')])  # fmt: skip


OLD = ({'systemInstruction': {'parts': [{'text': 'be brief'}, {'text': 'and kind'}, {'text': 'be polite'}]},
  'contents': [{'role': 'user',
                'parts': [{'text': 'look'},
                          {'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                          {'inlineData': {'mimeType': 'application/pdf', 'data': 'JVBERg==', 'displayName': 'a.pdf'}},
                          {'text': '[media: application/zip] a.zip\nx'},
                          {'inlineData': {'mimeType': 'text/plain', 'data': 'aGVsbG8=', 'displayName': 'a.txt'}},
                          {'inlineData': {'mimeType': 'audio/wav', 'data': 'UklGRg=='}},
                          {'fileData': {'fileUri': 'https://a.test/a.png', 'mimeType': 'image/png'}},
                          {'fileData': {'fileUri': 'https://a.test/a.pdf', 'mimeType': 'application/pdf', 'displayName': 'b.pdf'}},
                          {'fileData': {'fileUri': 'https://a.test/x', 'mimeType': 'application/octet-stream'}},
                          {'text': '[media: application/pdf] c.pdf'}]},
               {'role': 'model',
                'parts': [{'text': 'so'},
                          {'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                          {'functionCall': {'name': 'f', 'args': {'x': 1}, 'id': 'a'}},
                          {'functionCall': {'name': 'g_h_382c7e40', 'args': {}, 'id': 'b'}}]},
               {'role': 'user',
                'parts': [{'functionResponse': {'name': 'f', 'id': 'a', 'response': {'result': 't'}}},
                          {'functionResponse': {'name': 'g_h_382c7e40', 'id': 'b', 'response': {'error': {'no': 1}}}},
                          {'text': '[result of f]'},
                          {'inlineData': {'mimeType': 'image/png', 'data': 'iVBORw=='}},
                          {'fileData': {'fileUri': 'https://a.test/a.png', 'mimeType': 'image/png'}}]},
               {'role': 'user', 'parts': [{'text': '<system>\nlater\n</system>'}]},
               {'role': 'model', 'parts': [{'functionCall': {'name': 'f', 'args': {}, 'id': 'a_da82acb3'}}]}]},
 [(2, 9, 'file', 'application/pdf c.pdf', 'another provider holds the file'),
  (2, 10, 'tool call', '', 'the API takes calls from the model and results from the user alone'),
  (3, 0, 'thinking', '', 'its origin is not known'),
  (3, 5, 'provider', "a part of the provider's, x", 'its origin is not known'),
  (3, 6, 'tool call', 'a call of web_search, which the provider ran', 'its origin is not known'),
  (3, 7, 'tool result', 'a result of web_search, which the provider ran', 'its origin is not known'),
  (3, 8, 'tool result', '', 'the API takes calls from the model and results from the user alone'),
  (4, 0, 'media', '', "the model takes none inside a function's response; they follow it"),
  (5, None, 'system message', '', 'the API takes none within the conversation; sent as a marked user text'),
  (6, 0, 'arguments', '', 'they are cut off; the call is sent without'),
  (7, None, 'message', '', 'nothing of it can be sent, and the API takes no empty content')])  # fmt: skip


@pytest.mark.parametrize(
    ("target", "written"),
    [
        (None, ANYWHERE),
        (Origin("p", model="gemini-3-pro"), NEW),
        (Origin("p", model="gemini-2.5-pro"), OLD),
    ],
)
def test_a_conversation_of_any_kind_of_part_to_the_last_field(target, written):
    losses = []
    quirks = None if target is None else quirks_of("google", target.model)
    payload = wire.dump_messages(CONVERSATION, target=target, quirks=quirks, losses=losses)
    assert (
        payload,
        [(loss.message, loss.part, loss.what, loss.which, loss.why) for loss in losses],
    ) == written


@pytest.mark.parametrize("name", PARTS)
def test_a_whole_answer_is_written_as_it_was_read(name):
    answer = body(PARTS[name])
    events = wire.load_response(answer)
    assert wire.dump_response(events) == answer
    (message,) = fold(events)
    assert wire.dump_response(unfold([Message.from_json(message.to_json())])) == answer
    assert wire.dump_messages([message])["contents"] == [answer["candidates"][0]["content"]]


@pytest.mark.parametrize("name", PARTS)
def test_the_chunks_of_a_stream_are_written_as_they_were_read(name):
    identity = {"modelVersion": "m", "responseId": "r"}
    parts = PARTS[name]
    chunks = [
        {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}], **identity}
        for part in parts
    ]
    end = {
        "candidates": [{"content": {"role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": USAGE,
        **identity,
    }
    data = b"".join(
        b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in [*chunks, end]
    )
    encoder = wire.encoder()
    stream = b"".join(map(encoder.feed, wire.load_response(data))) + encoder.close()
    assert [
        json.loads(line[6:]) for line in stream.decode().splitlines() if line.startswith("data: ")
    ] == [
        *chunks,
        end,
    ]


STORED = {'text': [{'type': 'text', 'text': 'Hi'}],
 'thinking': [{'type': 'thinking', 'text': 'hm'}, {'type': 'text', 'text': 'Hi'}],
 'signed': [{'type': 'thinking', 'text': 'hm', 'native': {'google': {'thoughtSignature': 'AA=='}}},
            {'type': 'text', 'text': 'Hi', 'native': {'google': {'thoughtSignature': 'AQ=='}}}],
 'signed nothing': [{'type': 'text', 'text': 'Hi'},
                    {'type': 'thinking', 'native': {'google': {'thoughtSignature': 'AQ=='}, 'google:notes': {'spelling': {'thought': 'absent'}}}}],
 'call': [{'type': 'tool_call', 'id': 'c', 'name': 'f', 'arguments': {'a': 1}, 'native': {'google': {'thoughtSignature': 'AQ=='}}}],
 'call without an id': [{'type': 'tool_call', 'id': 'call-0', 'name': 'f', 'native': {'google': {'id': None}}}],
 'call of no arguments': [{'type': 'tool_call', 'id': 'c', 'name': 'f', 'native': {'google:notes': {'spelling': {'args': 'absent'}}}},
                          {'type': 'tool_call', 'id': 'd', 'name': 'f', 'native': {'google:notes': {'spelling': {'args': None}}}}],
 'code': [{'type': 'tool_call',
           'id': 'x',
           'name': 'codeExecution',
           'arguments': {'language': 'PYTHON', 'code': '1'},
           'run_by': 'provider',
           'native': {'google': {}}},
          {'type': 'tool_result',
           'id': 'x',
           'name': 'codeExecution',
           'result': {'outcome': 'OUTCOME_OK', 'output': '1'},
           'run_by': 'provider',
           'native': {'google': {}}}],
 'code without ids': [{'type': 'tool_call',
                       'id': 'call-0',
                       'name': 'codeExecution',
                       'arguments': {'code': '1'},
                       'run_by': 'provider',
                       'native': {'google': {'id': None}}},
                      {'type': 'tool_result',
                       'id': 'call-0',
                       'name': 'codeExecution',
                       'result': {'outcome': 'OUTCOME_FAILED'},
                       'is_error': True,
                       'run_by': 'provider',
                       'native': {'google': {'id': None}}}],
 'server tool': [{'type': 'tool_call', 'id': '1', 'name': 'X', 'arguments': {'q': 1}, 'run_by': 'provider', 'native': {'google': {}}},
                 {'type': 'tool_result', 'id': '1', 'name': 'X', 'result': {'r': 1}, 'run_by': 'provider', 'native': {'google': {}}}],
 'server tool of few words': [{'type': 'tool_call',
                               'id': 'call-0',
                               'name': 'X',
                               'run_by': 'provider',
                               'native': {'google': {'toolCall': {'more': 1}, 'id': None}, 'google:notes': {'spelling': {'args': 'absent'}}}},
                              {'type': 'tool_result',
                               'id': 'call-0',
                               'name': 'X',
                               'run_by': 'provider',
                               'native': {'google': {'toolResponse': {'more': 2}, 'id': None}, 'google:notes': {'spelling': {'response': 'absent'}}}}],
 'bytes': [{'type': 'data', 'data': 'iVBORw==', 'mime_type': 'image/png', 'name': 'n', 'native': {'google': {'y': 2, 'inlineData': {'x': 1}}}}],
 'urlsafe bytes': [{'type': 'data', 'data': '+/8=', 'mime_type': 'image/png', 'native': {'google:notes': {'spelling': {'data': 'urlsafe'}}}}],
 'files': [{'type': 'link', 'url': 'gs://a/b', 'mime_type': 'image/png'},
           {'type': 'file',
            'id': 'https://generativelanguage.googleapis.com/v1beta/files/x',
            'native': {'google:notes': {'spelling': {'mimeType': 'absent'}}}}],
 'new': [{'type': 'provider', 'kind': 'brandNew', 'native': {'google': {'brandNew': {'a': [1]}, 'thought': True}}}],
 'all': [{'type': 'thinking', 'text': 'hm'}, {'type': 'text', 'text': 'a'}, {'type': 'tool_call', 'id': 'c', 'name': 'f', 'arguments': {'a': 1}},
         {'type': 'text', 'text': 'b'}, {'type': 'tool_call', 'id': 'd', 'name': 'g'}]}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_decisions_14_and_22_what_is_stored_of_an_answer(name):
    """Nothing twice, nothing of another place."""
    (read,) = fold(wire.load_response(body(PARTS[name])))
    assert json.loads(read.to_json())["content"] == STORED[name]


def test_a_conversation_as_it_is_kept():
    origin = Origin("p", model="m")
    payload = {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "q"}]}, {"role": "model", "parts": [{"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "x"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"error": "y"}}}]},
            {"role": "function", "parts": [{"text": "t"}], "x": 1}, {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"parts": [{"functionResponse": {"name": "f", "response": {"a": 1, "b": 2}}}]},
        ],
    }  # fmt: skip

    def note(**how):
        return {"google:notes": {"spelling": how}}

    unnamed = {"google": {"id": None}}
    messages = wire.load_messages(payload, origin=origin)
    assert [message.replace(id="") for message in messages] == [one.replace(id="") for one in (
        Message.system("s"), Message.user("q"),
        Message.model(ToolCallPart("call-0", "f", native={**unnamed, **note(args="absent")}), ToolCallPart("call-1", "f", native=unnamed)).replace(origin=origin),
        Message.user(ToolResultPart("call-0", "f", "x", native=unnamed)),
        Message.user(ToolResultPart("call-1", "f", {"error": "y"}, is_error=True, native=unnamed)).replace(native=note(turn="as is")),
        Message.user("t").replace(native={"google": {"x": 1}, **note(role="function")}),
        Message.model(ToolCallPart("call-2", "f", native=unnamed)).replace(origin=origin),
        Message.user(ToolResultPart("call-2", "f", {"a": 1, "b": 2}, native=unnamed)).replace(native=note(role="absent")),
    )]  # fmt: skip
    assert wire.dump_messages(messages) == payload
