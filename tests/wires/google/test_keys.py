"""Keys in camelCase and in snake_case."""

from __future__ import annotations

import re

import msgspec
import pytest

from dragoman.wires import google as wire
from support.google import CONTENTS, TOWN, same_request


@pytest.mark.parametrize(
    "body",
    [
        {"generationConfig": {}},
        {
            "generationConfig": None,
            "toolConfig": None,
            "systemInstruction": None,
            "tools": None,
            "safetySettings": None,
        },
        {
            "generationConfig": {
                "temperature": None,
                "topK": None,
                "thinkingConfig": None,
                "responseSchema": None,
            }
        },
        {
            "generation_config": {
                "max_output_tokens": 5,
                "top_p": 0.5,
                "response_mime_type": "text/plain",
            }
        },
        {"tools": []},
        {"tools": {}},
        {"tool_config": {}},
        {
            "system_instruction": {"parts": [{"text": "a"}]},
            "safety_settings": [],
            "cachedContent": "cachedContents/1",
        },
        {"contents": CONTENTS[0]},
        {"generationConfig": {"maxOutputTokens": "5", "stopSequences": "x", "seed": "1"}},
        {"generationConfig": {"responseMimeType": "application/json"}},
        {"generationConfig": {"responseJsonSchema": TOWN}},
        {
            "generationConfig": {
                "response_schema": {"type": "OBJECT", "property_ordering": []},
                "response_mime_type": "application/json",
            }
        },
        {
            "generationConfig": {
                "responseSchema": {"type": "STRING", "enum": ["a"]},
                "responseMimeType": "text/x.enum",
            }
        },
    ],
)
def test_every_spelling_stays_as_it_was(body):
    same_request(body)


WHOLE = {
    "systemInstruction": {"parts": [{"text": "be brief"}]},
    "contents": [
        {"role": "user", "parts": [
            {"inlineData": {"mimeType": "a/b", "data": "AAAA", "displayName": "n"}}, {"fileData": {"fileUri": "gs://a", "mimeType": "a/b"}},
        ]},
        {"role": "model", "parts": [
            {"text": "", "thoughtSignature": "AA=="}, {"executableCode": {"code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
            {"toolCall": {"toolType": "X", "args": {}, "id": "1"}}, {"toolResponse": {"toolType": "X", "response": {"aB": 1}, "id": "1"}},
            {"functionCall": {"name": "f", "args": {"camelCase": 1}}},
        ]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "x"}, "parts": [{"inlineData": {"mimeType": "a/b", "data": "AAAA"}}]}}]},
    ],
    "tools": [
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object", "minProperties": 1}}]},
        {"codeExecution": {}}, {"googleSearch": {}}, {"urlContext": {}}, {"fileSearch": {}}, {"googleMaps": {}}, {"computerUse": {}},
        {"googleSearchRetrieval": {}}, {"enterpriseWebSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}, "includeServerSideToolInvocations": True},
    "generationConfig": {
        "temperature": 1.0, "topP": 0.5, "topK": 3, "maxOutputTokens": 5, "presencePenalty": 0.5, "frequencyPenalty": 0.5, "stopSequences": ["x"],
        "responseJsonSchema": {"type": "object", "minProperties": 1}, "responseMimeType": "application/json",
        "thinkingConfig": {"thinkingBudget": 5, "includeThoughts": True},
    },
}  # fmt: skip


def snake(value, *, deep=True):
    """The same with every key of the API in snake_case."""
    if isinstance(value, list):
        return [snake(each, deep=deep) for each in value]
    if not isinstance(value, dict) or not deep:
        return value
    own = (
        "args",
        "response",
        "parametersJsonSchema",
        "responseJsonSchema",
    )  # keys that the API does not know
    return {
        re.sub("[A-Z]", lambda m: "_" + m[0].lower(), key): snake(each, deep=key not in own)
        for key, each in value.items()
    }


def neutral(request):
    """What a request says, without how it was spelled."""
    pieces = [
        msgspec.structs.replace(p, native=None)
        for message in request.messages
        for p in message.content
    ]
    results = [
        [msgspec.structs.replace(each, native=None) for each in p.result]
        for p in pieces
        if getattr(p, "is_content", False)
    ]
    pieces = [
        msgspec.structs.replace(p, result=0, is_content=False)
        if getattr(p, "is_content", False)
        else p
        for p in pieces
    ]
    return (
        pieces,
        results,
        [msgspec.structs.replace(t, native=None) for t in request.tools],
        request.settings,
        request.output_schema,
        request.options,
    )


def test_keys_in_snake_case_mean_the_same_and_stay_so():
    request = wire.load_request(snake(WHOLE))
    assert neutral(request) == neutral(wire.load_request(WHOLE))
    assert wire.dump_request(request) == snake(WHOLE) != WHOLE
    assert wire.dump_request(wire.load_request(WHOLE)) == WHOLE
    wrapped = {"generate_content_request": snake(WHOLE)}
    assert wire.dump_request(wire.load_request(wrapped)) == wrapped
    assert neutral(wire.load_request(wrapped)) == neutral(request)


def test_a_key_in_both_spellings_is_read_in_camel_case():
    request = wire.load_request(
        {"contents": CONTENTS, "generationConfig": {"topP": 0.5, "top_p": 0.1}}
    )
    assert request.settings.top_p == 0.5
    assert request.options == {"generationConfig": {"top_p": 0.1}}
