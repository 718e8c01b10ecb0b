"""The google wire, whole values: answers are read and written again to the last field (decisions 2, 14, 22; D-120…D-128), and
what other wires' messages become is compared whole, with every loss."""

from __future__ import annotations

import json

import pytest

from dragoman import errors
from dragoman.errors import InvalidRequestError
from dragoman.event import MessageFinished, MessageStarted, OpenText, PartDelta, PartFinished, PartStarted, RunError
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import EmbeddingsRequest, ModelRequest, ServerTool, ToolSpec
from dragoman.wires import google as wire
from dragoman.wires.google import embeddings
from dragoman.wires.google.quirks import Quirks
from dragoman.wires.google.schema import lift, lower

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
 [(2, 9, 'application/pdf c.pdf', 'another provider holds the file'),
  (3, 5, "a part of the provider's, x", "it is another provider's"),
  (3, 6, 'web_search, which the provider ran', "it is another provider's"),
  (3, 7, 'web_search, which the provider ran', "it is another provider's"),
  (5, None, 'system message', 'the API takes none within the conversation; sent as a marked user text'),
  (7, None, 'message', 'nothing of it can be sent, and the API takes no empty content')])  # fmt: skip
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
 [(2, 9, 'application/pdf c.pdf', 'another provider holds the file'),
  (2, 10, 'tool_call', 'the API takes calls from the model and results from the user alone'),
  (3, 0, 'thinking', 'its origin is not known'),
  (3, 5, "a part of the provider's, x", 'its origin is not known'),
  (3, 6, 'web_search, which the provider ran', 'its origin is not known'),
  (3, 7, 'web_search, which the provider ran', 'its origin is not known'),
  (3, 8, 'tool_result', 'the API takes calls from the model and results from the user alone'),
  (5, None, 'system message', 'the API takes none within the conversation; sent as a marked user text'),
  (7, None, 'message', 'nothing of it can be sent, and the API takes no empty content')])  # fmt: skip
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
 [(2, 9, 'application/pdf c.pdf', 'another provider holds the file'),
  (2, 10, 'tool_call', 'the API takes calls from the model and results from the user alone'),
  (3, 0, 'thinking', 'its origin is not known'),
  (3, 5, "a part of the provider's, x", 'its origin is not known'),
  (3, 6, 'web_search, which the provider ran', 'its origin is not known'),
  (3, 7, 'web_search, which the provider ran', 'its origin is not known'),
  (3, 8, 'tool_result', 'the API takes calls from the model and results from the user alone'),
  (4, 0, 'media', "the model takes none inside a function's response; they follow it"),
  (5, None, 'system message', 'the API takes none within the conversation; sent as a marked user text'),
  (7, None, 'message', 'nothing of it can be sent, and the API takes no empty content')])  # fmt: skip


@pytest.mark.parametrize(
    ("target", "written"),
    [(None, ANYWHERE), (Origin("p", model="gemini-3-pro"), NEW), (Origin("p", model="gemini-2.5-pro"), OLD)],
)
def test_a_conversation_of_any_kind_of_part_to_the_last_field(target, written):
    losses = []
    payload = wire.dump_messages(CONVERSATION, target=target, losses=losses)
    assert (payload, [(loss.message, loss.part, loss.what, loss.why) for loss in losses]) == written


# --- answers

USAGE = {
    "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 21, "cachedContentTokenCount": 4, "thoughtsTokenCount": 3,
    "toolUsePromptTokenCount": 2, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}], "trafficType": "ON_DEMAND",
}  # fmt: skip
CALL = {"functionCall": {"name": "f", "args": {"a": 1}, "id": "c"}}
PARTS = {
    "text": [{"text": "Hi"}],
    "thinking": [{"text": "hm", "thought": True}, {"text": "Hi"}],
    "signed": [{"text": "hm", "thought": True, "thoughtSignature": "AA=="}, {"text": "Hi", "thoughtSignature": "AQ=="}],
    "signed nothing": [{"text": "Hi"}, {"text": "", "thoughtSignature": "AQ=="}],
    "call": [{**CALL, "thoughtSignature": "AQ=="}],
    "call without an id": [{"functionCall": {"name": "f", "args": {}}}],
    "call of no arguments": [{"functionCall": {"name": "f", "id": "c"}}, {"functionCall": {"name": "f", "args": None, "id": "d"}}],
    "code": [{"executableCode": {"language": "PYTHON", "code": "1", "id": "x"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1", "id": "x"}}],
    "code without ids": [{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}}],
    "server tool": [{"toolCall": {"toolType": "X", "args": {"q": 1}, "id": "1"}}, {"toolResponse": {"toolType": "X", "response": {"r": 1}, "id": "1"}}],
    "server tool of few words": [{"toolCall": {"toolType": "X", "more": 1}}, {"toolResponse": {"toolType": "X", "more": 2}}],
    "bytes": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw==", "displayName": "n", "x": 1}, "y": 2}],
    "urlsafe bytes": [{"inlineData": {"mimeType": "image/png", "data": "-_8="}}],
    "files": [{"fileData": {"fileUri": "gs://a/b", "mimeType": "image/png"}}, {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x"}}],
    "new": [{"brandNew": {"a": [1]}, "thought": True}],
    "all": [{"text": "hm", "thought": True}, {"text": "a"}, CALL, {"text": "b"}, {"functionCall": {"name": "g", "args": {}, "id": "d"}}],
}  # fmt: skip
ENDS = [
    {"finishReason": "STOP"},
    {"finishReason": "MAX_TOKENS"},
    {"finishReason": "SAFETY", "safetyRatings": [{"category": "C", "probability": "HIGH"}]},
    {"finishReason": "SPII"},
    {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "no"},
    {"finishReason": 1},
    {
        "finishReason": "STOP",
        "citationMetadata": {"citationSources": [{"uri": "u"}]},
        "groundingMetadata": {"a": [1]},
        "avgLogprobs": 0.5,
    },
]


def body(parts, end=ENDS[0], **fields):
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **end}
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "m", "responseId": "r", **fields}


@pytest.mark.parametrize("name", PARTS)
def test_a_whole_answer_is_written_as_it_was_read(name):
    answer = body(PARTS[name])
    events = wire.load_response(answer)
    assert wire.dump_response(events) == answer
    (message,) = fold(events)
    assert wire.dump_response(unfold([Message.from_json(message.to_json())])) == answer
    assert wire.dump_messages([message])["contents"] == [answer["candidates"][0]["content"]]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "around",
    [{}, {"createTime": "t", "modelStatus": {"a": 1}, "turnToken": "k"}, {"promptFeedback": {"safetyRatings": []}}],
)
def test_d126_d128_how_an_answer_ended_is_written_as_it_was_read(end, around):
    answer = body(PARTS["text"], end, **around)
    assert wire.dump_response(wire.load_response(answer)) == answer


def test_d128_a_blocked_prompt_is_written_as_it_was_read():
    answer = {
        "candidates": [],
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [{"a": 1}]},
        "modelVersion": "m",
    }
    assert wire.dump_response(wire.load_response(answer)) == answer


@pytest.mark.parametrize("name", PARTS)
def test_the_chunks_of_a_stream_are_written_as_they_were_read(name):
    identity = {"modelVersion": "m", "responseId": "r"}
    parts = PARTS[name]
    chunks = [
        {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}], **identity} for part in parts
    ]
    end = {
        "candidates": [{"content": {"role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": USAGE,
        **identity,
    }
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in [*chunks, end])
    encoder = wire.encoder()
    told = b"".join(map(encoder.feed, wire.load_response(data))) + encoder.close()
    assert [json.loads(line[6:]) for line in told.decode().splitlines() if line.startswith("data: ")] == [*chunks, end]


def test_what_a_decoder_tells_to_the_last_field():
    """D-125, decisions 14 and 22: no event and no field is more or less than this."""
    told = wire.load_response(body([{"text": "hm", "thought": True}, {"text": "a", "thoughtSignature": "AA=="}, CALL]))
    origin = Origin("", served_model="m", response_id="r")
    assert [event for event in told if isinstance(event, (MessageStarted, MessageFinished))] == [
        MessageStarted("message-0", Role.MODEL, origin=origin),
        MessageFinished(
            "message-0", FinishReason.tool_calls,
            Usage(input_tokens=12, output_tokens=8, total_tokens=21, cache_read_tokens=4, reasoning_tokens=3),
            native={"google:notes": {"response": {"usageMetadata": {key: USAGE[key] for key in ("toolUsePromptTokenCount", "promptTokensDetails", "trafficType")}}}},
        ),
    ]  # fmt: skip
    assert [event.index for event in told if isinstance(event, PartStarted)] == [0, 1, 2]
    assert [event.part for event in told if isinstance(event, PartFinished)] == [
        ThinkingPart("hm"),
        TextPart("a", {"google": {"thoughtSignature": "AA=="}}),
        ToolCallPart("c", "f", {"a": 1}),
    ]


# --- embeddings

VERTEX = Quirks(models="publishers/google/models", vertex_embeddings=True)
ASKED = {"outputDimensionality": 8, "title": "t", "autoTruncate": True}
TASK = {"taskType": "RETRIEVAL_QUERY"}


def content(words):
    return {"content": {"parts": [{"text": words}]}}


@pytest.mark.parametrize(
    ("model", "quirks", "texts", "path", "body"),
    [
        ("gemini-e", Quirks(), ("a",), "/models/gemini-e:batchEmbedContents", {"requests": [{"model": "models/gemini-e", **content("a"), **TASK, **ASKED}]}),
        ("tuned/x", None, ("a", "b"), "/tuned/x:batchEmbedContents", {"requests": [{"model": "tuned/x", **content(each), **TASK, **ASKED} for each in "ab"]}),
        ("maas-e", VERTEX, ("a",), "/publishers/google/models/maas-e:embedContent", {**content("a"), "embedContentConfig": {**TASK, **ASKED}}),
        (
            "gemini-e", VERTEX, ("a", "b"), "/publishers/google/models/gemini-e:batchEmbedContents",
            {"requests": [{**content(each), "embedContentConfig": {**TASK, **ASKED}} for each in "ab"]},
        ),
        (
            "text-e", VERTEX, ("a", "b"), "/publishers/google/models/text-e:predict",
            {
                "instances": [{"content": each, "task_type": "RETRIEVAL_QUERY", "title": "t"} for each in "ab"],
                "parameters": {"outputDimensionality": 8, "autoTruncate": True},
            },
        ),
    ],
)  # fmt: skip
def test_d144_an_embeddings_request_to_the_last_field(model, quirks, texts, path, body):
    options = {"title": "t", "autoTruncate": True}
    http = embeddings.dump_http(EmbeddingsRequest(model, texts, "query", 8, options), quirks=quirks)
    assert (http.path, http.headers, http.body) == (path, {}, body)
    read = embeddings.load_request(body, path=path)
    assert (read.model, read.texts, read.purpose, read.dimensions, read.options) == (model, texts, "query", 8, options)
    assert embeddings.dump_http(read, quirks=quirks) == http
    assert embeddings.dump_request(read) == body


@pytest.mark.parametrize(
    ("body", "model", "purpose", "dimensions", "options"),
    [
        (content("a"), "", None, None, {}),
        ({"model": "models/m", **content("a")}, "m", None, None, {}),
        ({"model": "m", **content("a"), "task_type": "RETRIEVAL_DOCUMENT", "output_dimensionality": 3}, "m", "document", 3, {}),
        ({"content": {"role": "user", "parts": [{"text": "a"}]}, "taskType": "CLUSTERING", "title": 1}, "", None, None, {"taskType": "CLUSTERING", "title": 1}),
        ({**content("a"), "outputDimensionality": True}, "", None, None, {"outputDimensionality": True}),
        ({**content("a"), "embedContentConfig": {"taskType": "RETRIEVAL_QUERY", "x": 1}}, "", "query", None, {"x": 1}),
        ({"requests": [content("a")]}, "", None, None, {}),
        ({"instances": [{"content": "a", "task_type": "RETRIEVAL_DOCUMENT"}], "parameters": {"x": 1}}, "", "document", None, {"x": 1}),
    ],
)  # fmt: skip
def test_d144_an_embeddings_request_goes_back_as_it_came(body, model, purpose, dimensions, options):
    request = embeddings.load_request(body)
    assert (request.model, request.texts) == (model, ("a",))
    assert (request.purpose, request.dimensions, request.options) == (purpose, dimensions, options)
    assert embeddings.dump_request(request) == body


@pytest.mark.parametrize(
    "body",
    [
        {}, {"requests": []}, {"requests": [content("a"), content("")]}, {"content": {"parts": [{"text": "a"}, {"text": "b"}]}},
        {"content": {"parts": [{"text": "a"}], "role": "model"}}, {"instances": [{"content": 1}]}, {"content": "a"},
    ],
)  # fmt: skip
def test_an_embeddings_request_without_its_texts_is_refused(body):
    with pytest.raises(InvalidRequestError, match="needs a content with one text"):
        embeddings.load_request(body)


@pytest.mark.parametrize(
    ("told", "vectors", "tokens", "metadata"),
    [
        ({"embedding": {"values": [0.5, 1]}}, [[0.5, 1.0]], None, {}),
        ({"embeddings": [{"values": [1]}, {"values": [2]}], "x": 1}, [[1.0], [2.0]], None, {"x": 1}),
        (
            {"embedding": {"values": [1], "statistics": {"truncated": True, "token_count": 2.0}}, "usageMetadata": {"promptTokenCount": 3, "y": 1}},
            [[1.0]], 3, {"usage": {"y": 1}, "truncated": True},
        ),
        (
            {"predictions": [{"embeddings": {"values": [1], "statistics": {"token_count": n, "truncated": False}}} for n in (2, 3.0, -1, "x", 2**53)]},
            [[1.0]] * 5, 5, {},
        ),
        ({"predictions": [{"embeddings": {"values": [1], "statistics": {"token_count": 0}}}]}, [[1.0]], 0, {}),
    ],
)  # fmt: skip
def test_an_embeddings_answer_to_the_last_field(told, vectors, tokens, metadata):
    result = embeddings.load_response(told)
    assert (result.embeddings, result.usage and result.usage.input_tokens, result.metadata) == (
        vectors,
        tokens,
        metadata,
    )
    for shape in ({"instances": [{"content": "a"}]}, content("a"), {"requests": [content("a")]}):
        body = embeddings.dump_response(result, request=embeddings.load_request(shape))
        (key,) = body
        assert key == ("predictions" if "instances" in shape else "embedding" if "content" in shape else "embeddings")
        again = embeddings.load_response(body).embeddings
        assert again == (vectors[:1] if key == "embedding" else vectors)
    assert embeddings.dump_response(result) == {"embeddings": [{"values": vector} for vector in vectors]}


# --- what is stored of an answer

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


# --- tables


def test_every_keyword_of_the_older_schema_is_kept():
    kept = {
        "default": 1, "description": "d", "example": 1, "maxItems": 1, "maxLength": 1, "maxProperties": 1, "maximum": 1, "minItems": 1, "minLength": 1,
        "minProperties": 1, "minimum": 1, "pattern": "p", "propertyOrdering": ["a"], "property_ordering": ["a"], "required": ["a"], "title": "t", "format": "f",
    }  # fmt: skip
    assert lower({"type": "integer", **kept}) == {"type": "INTEGER", **kept}
    assert lower({"type": "string", "format": "enum", "enum": ["a"]}) == {
        "type": "STRING",
        "format": "enum",
        "enum": ["a"],
    }
    for kind in ("string", "number", "integer", "boolean", "array", "object"):
        assert lower({"type": kind}) == {"type": kind.upper()}
        assert lower({"type": kind}, types="lower") == {"type": kind}
    assert lower({"type": ["x"], "items": {"type": "object", "title": "t"}}) == {
        "type": "x",
        "items": {"type": "OBJECT", "title": "t"},
    }
    assert [lift({"type": number})["type"] for number in range(1, 8)] == [
        "string", "number", "integer", "boolean", "array", "object", "null",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "lowered"),
    [
        ({"type": ["string", "null"], "enum": ["a"]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"enum": [1, 2], "description": "d"}, {"description": "d One of: 1, 2"}),
        ({"enum": [1, 2], "type": ["integer", "null"]}, {"type": "INTEGER", "nullable": True, "description": "One of: 1, 2"}),
        ({"properties": {"a": True}}, {"type": "OBJECT", "properties": {"a": {}}}),
        ({"type": ["integer", "string", "null"], "title": "t"}, {"title": "t", "anyOf": [{"type": "INTEGER"}, {"type": "STRING"}], "nullable": True}),
        ({"anyOf": [{"type": "string", "title": "inner"}, {"type": "null"}], "title": "outer"}, {"type": "STRING", "title": "outer", "nullable": True}),
        ({"anyOf": [{"type": "null"}], "title": "t"}, {"title": "t"}),
        ({"allOf": [{"required": ["a", "b"], "title": "t"}, {"required": ["b", "c"], "$defs": {}}], "required": ["a"], "title": "own"}, {"required": ["a", "b", "c"], "title": "own"}),
        ({"allOf": [{"properties": {"a": {"type": "string"}}}], "properties": {"b": {"type": "number"}}}, {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "NUMBER"}}}),
        ({"$ref": "#/$defs/A", "nullable": True, "$defs": {"A": {"type": "string"}}}, {"type": "STRING", "nullable": True}),
        ({"items": [1], "type": "array"}, {"type": "ARRAY"}),
    ],
)  # fmt: skip
def test_the_older_schema_to_the_last_keyword(schema, lowered):
    assert lower(schema) == lowered


@pytest.mark.parametrize(
    ("schema", "lifted"),
    [
        ({"type": "STRING", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": 1, "nullable": False}, {"type": "string", "nullable": False}),
        ({"nullable": True}, {"nullable": True}),
        ({"anyOf": [{"type": "STRING"}], "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": True}, {"type": True}),
        ({"items": {"type": "number", "x": 1}, "anyOf": [{"type": "NUMBER"}, 1]}, {"items": {"type": "number", "x": 1}, "anyOf": [{"type": "number"}, 1]}),
    ],
)  # fmt: skip
def test_the_older_schema_is_read_to_the_last_keyword(schema, lifted):
    assert lift(schema) == lifted


def test_errors_to_the_last_field():
    def error(code, name, message, **more):
        return code, {"error": {"code": code, "message": message, "status": name, **more}}

    assert [wire.dump_error(kind("x")) for kind in (
        errors.ContextLengthError, errors.ContentRefusedError, errors.InvalidRequestError, errors.HistoryError, errors.AuthenticationError,
        errors.PermissionDeniedError, errors.ModelNotFoundError, errors.RateLimitError, errors.OverloadedError, errors.ProviderTimeoutError,
        errors.ProviderConnectionError, errors.DragomanError,
    )] == [
        error(400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed: x"),
        error(400, "INVALID_ARGUMENT", "Blocked by safety settings: x"), error(400, "INVALID_ARGUMENT", "x"), error(400, "INVALID_ARGUMENT", "x"),
        error(401, "UNAUTHENTICATED", "x"), error(403, "PERMISSION_DENIED", "x"), error(404, "NOT_FOUND", "model: x"),
        error(429, "RESOURCE_EXHAUSTED", "x"), error(503, "UNAVAILABLE", "x"), error(504, "DEADLINE_EXCEEDED", "x"),
        error(502, "UNKNOWN", "x"), error(500, "INTERNAL", "x"),
    ]  # fmt: skip
    rpc = "type.googleapis.com/google.rpc."
    assert wire.dump_error(errors.RateLimitError("no Model", retry_after=1.5, request_id="q")) == error(
        429, "RESOURCE_EXHAUSTED", "no Model",
        details=[{"@type": f"{rpc}RetryInfo", "retryDelay": "1.5s"}, {"@type": f"{rpc}RequestInfo", "requestId": "q"}],
    )  # fmt: skip
    assert wire.dump_error(errors.ModelNotFoundError("no Model"))[1]["error"]["message"] == "no Model"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("INVALID_ARGUMENT", errors.InvalidRequestError), ("OUT_OF_RANGE", errors.InvalidRequestError), ("UNAUTHENTICATED", errors.AuthenticationError),
        ("PERMISSION_DENIED", errors.PermissionDeniedError), ("FAILED_PRECONDITION", errors.PermissionDeniedError), ("NOT_FOUND", errors.ModelNotFoundError),
        ("RESOURCE_EXHAUSTED", errors.RateLimitError), ("UNAVAILABLE", errors.OverloadedError), ("DEADLINE_EXCEEDED", errors.ProviderTimeoutError),
    ],
)  # fmt: skip
def test_an_error_of_a_stream_is_known_by_its_name_alone(name, kind):
    event = wire.load_response({"error": {"status": name, "message": "model x"}})[-1]
    assert isinstance(event, RunError) and type(event.error) is kind


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 8, 11, 99])
def test_d126_reasons_by_their_numbers(number):
    reason = {
        1: "stop",
        2: "length",
        3: "content_filter",
        4: "recitation",
        7: "content_filter",
        8: "content_filter",
        11: "content_filter",
    }
    (read,) = fold(wire.load_response(body(PARTS["text"], {"finishReason": number})))
    assert read.finish_reason == reason.get(number, "unspecified")


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("stop", "STOP"), ("tool_calls", "STOP"), ("length", "MAX_TOKENS"), ("content_filter", "SAFETY"), ("refusal", "SAFETY"), ("recitation", "RECITATION"),
        ("cancelled", "OTHER"), ("unspecified", "OTHER"), (None, "OTHER"),
    ],
)  # fmt: skip
def test_d126_reasons_of_others(reason, name):
    said = Message.model("a").replace(
        finish_reason=reason, usage=Usage(input_tokens=5, output_tokens=3, reasoning_tokens=3)
    )
    assert wire.dump_response(unfold([said])) == {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": name, "index": 0}],
        "usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 3},
    }


def test_tools_as_they_are_kept():
    entries = [
        {
            "functionDeclarations": [
                {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}, "x": 1},
                {"name": "g h", "description": "", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}},
                {"name": "h", "response": {}},
            ],
            "y": 2,
        },
        {"googleSearch": {"z": 1}, "functionDeclarations": [{"name": "i"}]},
        {"functionDeclarations": []},
    ]  # fmt: skip
    request = wire.load_request({"contents": [], "tools": entries})
    older = {"type": "object", "properties": {"a": {"type": "string"}}}

    def note(**how):
        return {"google:notes": {"spelling": how}}

    assert list(request.tools) == [
        ToolSpec("f", "d", {"type": "object"}, {"google": {"x": 1}, **note(entry={"y": 2})}),
        ToolSpec("g h", "", older, {"google": {"description": ""}, **note(name="as is", parameters="upper")}),
        ToolSpec("h", "", {}, {"google": {"response": {}}, **note(parameters="absent")}),
        ToolSpec("i", "", {}, note(parameters="absent", place="apart")),
        ServerTool("googleSearch", {"z": 1}, note(place="together")),
        ServerTool("", {}, {"google": {"functionDeclarations": []}}),
    ]
    assert wire.dump_request(request) == {"contents": [], "tools": entries}
    tools = (
        ToolSpec("f", "d", {"type": "object"}),
        ServerTool("web_search"),
        ServerTool("web_fetch", {"a": 1}),
        ServerTool("code_execution"),
        ToolSpec("g"),
    )
    sent = {
        "functionDeclarations": [
            {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}},
            {"name": "g"},
        ]
    }
    assert wire.dump_request(ModelRequest("gemini-3-pro", tools=tools)) == {
        "contents": [], "tools": [sent, {"googleSearch": {}}, {"urlContext": {"a": 1}}, {"codeExecution": {}}],
        "toolConfig": {"includeServerSideToolInvocations": True},
    }  # fmt: skip


@pytest.mark.parametrize(
    "model", ["gemini-1.5-pro", "models/gemini-2.5-flash", "gemma-2-9b", "gemma-3-27b", "learnlm-2"]
)
def test_d124_older_models_lose_functions_beside_a_schema_and_nothing_else(model):
    for tools, lost in (
        ((ServerTool("web_search"), ToolSpec("f")), ["tools"]),
        ((ServerTool("web_search"),), []),
        ((), []),
    ):
        losses = []
        sent = wire.dump_request(ModelRequest(model, tools=tools, output_schema={"type": "object"}), losses=losses)
        assert [loss.what for loss in losses] == lost
        assert sent.get("tools") == ([{"googleSearch": {}}] if tools else None)
        assert sent["generationConfig"] == {
            "responseJsonSchema": {"type": "object"},
            "responseMimeType": "application/json",
        }
        assert "toolConfig" not in sent


@pytest.mark.parametrize(
    "part",
    [
        {"toolCall": {"toolType": 5}}, {"toolCall": {"toolType": "X", "args": [1]}}, {"toolCall": {"args": {}}}, {"toolResponse": {"response": {}}},
        {"functionCall": {"args": {}}}, {"functionCall": {"name": "", "args": {}}}, {"functionCall": {"name": "f", "args": [1]}},
        {"inlineData": {"data": "AAAA"}}, {"inlineData": {"mimeType": "a/b"}}, {"inlineData": {"mimeType": "a/b", "data": "?"}},
        {"inlineData": {"mimeType": "a/b", "data": "-+=="}}, {"fileData": {"mimeType": "a/b"}}, {"fileData": {"fileUri": "gs://a", "mimeType": 5}},
        {"text": 5}, {"text": ""}, {"text": "a", "functionCall": {"name": "f"}}, {"thought": True, "executableCode": 5}, {},
    ],
)  # fmt: skip
def test_a_part_of_another_shape_is_the_providers(part):
    payload = {"contents": [{"role": "model", "parts": [part]}]}
    (read,) = wire.load_messages(payload)
    kind = next((key for key in part if key != "thought"), "part")
    assert read.content == (ProviderPart(kind, {"google": part}),)
    assert wire.dump_messages([read]) == payload


def test_a_model_named_by_path_and_body_is_the_paths():
    for named, before in (
        ("models/m", "models/"),
        ("m", ""),
        ("publishers/google/models/m", "publishers/google/models/"),
    ):
        for load, dump, rest in (
            (wire.load_request, wire.dump_request, {"contents": []}),
            (embeddings.load_request, embeddings.dump_request, content("a")),
        ):
            request = load({"model": named, **rest}, path="/models/m:embedContent")
            assert (request.model, request.native["google:notes"]["spelling"]["model"]) == ("m", before)
            assert dump(request) == {"model": named, **rest}
            assert load({"model": named, **rest}).model == named.removeprefix("models/")


def test_a_part_that_waited_is_written_in_one_piece():
    events = [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "a"), PartStarted("m", 1, OpenText()),
        PartDelta("m", 1, "b"), PartDelta("m", 1, "c"), PartFinished("m", 0, TextPart("a")), PartDelta("m", 1, "d"),
        PartFinished("m", 1, TextPart("bcd")), MessageFinished("m", FinishReason.stop),
    ]  # fmt: skip
    encoder = wire.encoder()
    told = b"".join(map(encoder.feed, events)) + encoder.close()
    candidates = [
        json.loads(line[6:])["candidates"][0] for line in told.decode().splitlines() if line.startswith("data: ")
    ]
    parts = [one["content"].get("parts") for one in candidates]
    assert parts == [[{"text": "a"}], [{"text": ""}, {"text": "bc"}], [{"text": "d"}], None]
