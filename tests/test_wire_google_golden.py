"""The google wire, whole values: answers are read and written again to the last field (decisions 2, 14, 22; D-120…D-128), and
what other wires' messages become is compared whole, with every loss."""

from __future__ import annotations

import json

import pytest

from dragoman.errors import InvalidRequestError
from dragoman.event import MessageFinished, MessageStarted, PartFinished, PartStarted
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
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
from dragoman.request import EmbeddingsRequest
from dragoman.wires import google as wire
from dragoman.wires.google import embeddings
from dragoman.wires.google.quirks import Quirks

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
        MessageStarted("message-0", "model", origin=origin),
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
