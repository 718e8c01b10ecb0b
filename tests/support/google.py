"""What the tests of Google's wire share."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from dragoman import profiles
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.message import Message, Origin, ToolCallPart
from dragoman.profiles import lower
from dragoman.request import ModelRequest, Settings
from dragoman.wires import google as wire
from support.profiles import quirks_of

GOOGLE = Origin("google", "https://g/v1beta", "gemini-2.5-flash")


NEWER_GOOGLE = Origin("google", "https://g/v1beta", "gemini-3.5-flash")


VERTEX = Origin("vertex", "https://v/v1", "gemini-3.5-flash")


def contents(*messages, **how):
    """The contents, without the user's that stands before a conversation which the model began."""
    sent = wire.dump_messages(messages, **how)["contents"]
    return (
        sent[1:]
        if sent and sent[0] == {"role": "user", "parts": [{"text": wire.Quirks().opening}]}
        else sent
    )


def load_parts(*some, role="user"):
    (message,) = wire.load_messages({"contents": [{"role": role, "parts": list(some)}]})
    return message.content


def call(name="f", id_="1", **arguments):
    return ToolCallPart(id_, name, arguments)


def same_parts(*some, role="user"):
    payload = {"contents": [{"role": role, "parts": list(some)}]}
    messages = [Message.from_json(message.to_json()) for message in wire.load_messages(payload)]
    assert wire.dump_messages(messages) == payload
    return messages[0].content


SIGNED = [
    {"text": "hm", "thought": True, "thoughtSignature": "AAAA"},
    {"text": "so", "thoughtSignature": "BBBB"},
    {"executableCode": {"code": "1+1", "language": "PYTHON"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
    {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}, "id": "s1"}},
    {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"hits": 1}, "id": "s1"}},
    {"something_new": 1},
    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "CCCC"},
    {"functionCall": {"name": "g", "args": {}}},
    {"text": "", "thoughtSignature": "DDDD"},
]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=5,
)


HI = Message.user("hi")


OLDER, NEWER = "gemini-2.5-flash", "gemini-3.5-flash"


CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]


TOWN = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def dump(model=NEWER, *, losses=None, **how):
    settings = Settings(**how.pop("settings", {}))
    request, lost = lower(
        ModelRequest(model, (HI,), settings=settings, **how),
        profiles.get(f"google:{model}"),
        wire="google",
    )
    if losses is not None:
        losses += lost
    return wire.dump_request(request, quirks=quirks_of("google", model), losses=losses)


def same_request(body, path=""):
    body = {"contents": CONTENTS, **body}
    request = wire.load_request(body, path=path)
    assert wire.dump_request(request) == body
    return request


def chunk(*parts, finish=None, index=0, **fields):
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": index}
    return {"candidates": [{**candidate, **({"finishReason": finish} if finish else {})}], **fields}


def sse(*chunks, end="\n\n"):
    """Chunks, or what stands in their place as bytes, as a stream."""
    return b"".join(
        b"data: " + (each if isinstance(each, bytes) else json.dumps(each).encode()) + end.encode()
        for each in chunks
    )


def decode(data, cuts=(), **how):
    decoder = wire.decoder(**how)
    events = []
    for start, stop in zip((0, *cuts), (*cuts, len(data)), strict=True):
        events += decoder.feed(data[start:stop])
    return [*events, *decoder.close()]


def message(*chunks):
    (read,) = fold(decode(sse(*chunks)))
    return read


def whole(*parts, **fields):
    (read,) = fold(wire.load_response(chunk(*parts, finish="STOP", **fields)))
    return read


def text(piece, **more):
    return {"text": piece, **more}


def error_of(events):
    assert isinstance(events[-1], RunError)
    return events[-1].error


def piece(path, *, more=False, **value):
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


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
    return {
        "candidates": [candidate],
        "usageMetadata": USAGE,
        "modelVersion": "m",
        "responseId": "r",
        **fields,
    }


def content(words):
    return {"content": {"parts": [{"text": words}]}}


NESTED = json.loads("[" * 200 + "]" * 200)


def answer(*parts, **fields):
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **fields}]}


def decode_chunks(*chunks):
    return decode(sse(*chunks))


STREAMED = {"functionCall": {"name": "f", "willContinue": True}}
