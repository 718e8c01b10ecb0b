"""Keys in camelCase and in snake_case."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from dragoman import wires
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


def _snake(value: Any) -> Any:
    """The same body with every key of the API in snake_case."""
    if isinstance(value, list):
        return [_snake(each) for each in value]
    if not isinstance(value, dict):
        return value
    free = ("args", "response", "parametersJsonSchema", "responseJsonSchema")
    return {
        re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key): (
            each if key in free else _snake(each)
        )
        for key, each in value.items()
    }


def test_a_body_in_snake_case_is_the_same_request():
    schema = {"type": "object", "properties": {"cityName": {"type": "string"}}}
    call = {
        "functionCall": {"id": "a", "name": "f", "args": {"cityName": "Rome"}},
        "thoughtSignature": "c2ln",
    }
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}}]},
            {"role": "user", "parts": [{"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/a.png"}}]},
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "f", "response": {"aB": 1}}}]},
        ],
        "tools": [
            {"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]},
            {"googleSearch": {}}, {"urlContext": {}}, {"codeExecution": {}},
            {"mcpServers": [{"name": "docs"}]},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}, "includeServerSideToolInvocations": True},
        "generationConfig": {
            "topP": 0.5, "topK": 3, "maxOutputTokens": 9, "stopSequences": ["x"], "presencePenalty": 0.5, "frequencyPenalty": 0.5,
            "responseMimeType": "application/json", "responseJsonSchema": schema, "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
            "candidateCount": 2, "responseModalities": ["TEXT"],
        },
        "safetySettings": [{"category": "x", "threshold": "y"}],
    }  # fmt: skip
    path = "/models/m:generateContent"
    camel, snake = wire.load_request(body, path=path), wire.load_request(_snake(body), path=path)

    def plain(request: Any) -> Any:
        return (
            [[without_notes(part) for part in message.content] for message in request.messages],
            [without_notes(tool) for tool in request.tools],
            request.settings,
            request.output_schema,
            request.options,
        )

    assert plain(snake) == plain(camel)
    assert wire.dump_request(snake) == _snake(body)
    written = wires.get("openai_responses").dump_request
    assert written(snake.replace(options={}, native=None)) == written(
        camel.replace(options={}, native=None)
    )


def without_notes(piece: Any) -> Any:
    native = {k: own for k, own in (piece.native or {}).items() if own and ":" not in k}
    return msgspec.structs.replace(piece, native=native or None)
