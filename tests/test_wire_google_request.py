"""The google wire's requests: rules D-123…D-125, D-127, D-130, settings, tools and schemas."""

from __future__ import annotations

import re

import msgspec
import pytest

from dragoman import providers
from dragoman.errors import HistoryError
from dragoman.message import Message
from dragoman.providers.keys import request_headers
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import google as wire
from dragoman.wires.google.schema import lift, lower

HI = Message.user("hi")
OLDER, NEWER = "gemini-2.5-flash", "gemini-3.5-flash"
CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]
TOWN = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def dump(model=NEWER, *, losses=None, **how):
    settings = Settings(**how.pop("settings", {}))
    return wire.dump_request(ModelRequest(model, (HI,), settings=settings, **how), losses=losses)


def config(model=NEWER, **settings):
    return dump(model, settings=settings).get("generationConfig")


def same(body, path=""):
    body = {"contents": CONTENTS, **body}
    request = wire.load_request(body, path=path)
    assert wire.dump_request(request) == body
    return request


def test_the_smallest_request():
    assert dump() == {"contents": CONTENTS}


def test_settings_have_their_fields():
    told = {
        "temperature": 0.5, "topP": 0.9, "topK": 40, "maxOutputTokens": 9, "presencePenalty": 0.1, "frequencyPenalty": 0.2,
        "seed": 7, "stopSequences": ["END"],
    }  # fmt: skip
    settings = Settings(
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        max_tokens=9,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        seed=7,
        stop=("END",),
    )
    assert wire.dump_request(ModelRequest(NEWER, (HI,), settings=settings))["generationConfig"] == told
    request = same({"generationConfig": {**told, "candidateCount": 2}})
    assert request.settings == settings
    assert request.options == {"generationConfig": {"candidateCount": 2}}


def test_what_has_no_setting_is_told():
    losses = []
    assert dump(settings={"parallel_tool_calls": False}, losses=losses) == {"contents": CONTENTS}
    assert [loss.what for loss in losses] == ["parallel_tool_calls"]


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
        {"generationConfig": {"temperature": None, "topK": None, "thinkingConfig": None, "responseSchema": None}},
        {"generation_config": {"max_output_tokens": 5, "top_p": 0.5, "response_mime_type": "text/plain"}},
        {"tools": []},
        {"tools": {}},
        {"tool_config": {}},
        {"system_instruction": {"parts": [{"text": "a"}]}, "safety_settings": [], "cachedContent": "cachedContents/1"},
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
        {"generationConfig": {"responseSchema": {"type": "STRING", "enum": ["a"]}, "responseMimeType": "text/x.enum"}},
    ],
)
def test_every_spelling_stays_as_it_was(body):
    same(body)


@pytest.mark.parametrize(
    "body", [None, [], {}, {"contents": "hi"}, {"contents": None}, {"contents": CONTENTS, "tools": [1]}]
)
def test_what_is_no_request_is_refused(body):
    with pytest.raises(HistoryError):
        wire.load_request(body)


def test_a_request_to_count_tokens_may_hold_a_whole_one():
    body = {
        "generateContentRequest": {
            "model": "models/gemini-x",
            "contents": CONTENTS,
            "system_instruction": {"parts": [{"text": "a"}]},
        }
    }
    request = wire.load_request(body)
    assert (request.model, request.messages[0].text) == ("gemini-x", "a")
    assert wire.dump_request(request) == body


# --- path


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        ("/v1beta/models/gemini-x:generateContent", "gemini-x", False),
        ("https://h/v1beta/models/gemini-x:streamGenerateContent?alt=sse&key=a:b", "gemini-x", True),
        ("/v1beta/tunedModels/mine:generateContent", "tunedModels/mine", False),
        (
            "https://h/v1/projects/p/locations/l/publishers/google/models/gemini-x:streamGenerateContent",
            "gemini-x",
            True,
        ),
        ("/v1/publishers/google/models/gemini-x:generateContent", "gemini-x", False),
        ("/v1/projects/p/locations/l/publishers/acme/models/y:generateContent", "publishers/acme/models/y", False),
        ("/v1/projects/p/locations/l/endpoints/12:generateContent", "endpoints/12", False),
        ("/somewhere/else", "", False),
        ("", "", False),
    ],
)
def test_model_and_stream_stand_in_the_path(path, model, stream):
    request = wire.load_request({"contents": CONTENTS}, path=path)
    assert (request.model, request.stream) == (model, stream)


def test_a_model_in_the_body_stays_there():
    assert same({"model": "models/gemini-x"}).model == "gemini-x"
    request = same({"model": "gemini-x"}, path="/models/gemini-x:generateContent")
    assert wire.dump_request(request.replace(model="other"))["model"] == "other"


def test_d127_a_name_with_a_slash_stays_and_others_get_a_place():
    def path(model, *, stream=False, quirks=None):
        return wire.dump_http(ModelRequest(model, (HI,), stream=stream), quirks=quirks).path

    vertex = providers.get("vertex").quirks
    assert path("gemini-x") == "/models/gemini-x:generateContent"
    assert path("gemini-x", stream=True) == "/models/gemini-x:streamGenerateContent?alt=sse"
    assert path("tunedModels/mine") == "/tunedModels/mine:generateContent"
    assert path("gemini-x", quirks=vertex) == "/publishers/google/models/gemini-x:generateContent"
    assert path("publishers/acme/models/y", quirks=vertex) == "/publishers/acme/models/y:generateContent"


def test_d123_nothing_to_send_is_an_error():
    for messages in ((), (Message.system("be brief"),), (Message.model(),)):
        with pytest.raises(HistoryError, match="nothing to send"):
            wire.dump_http(ModelRequest(NEWER, messages))


# --- thinking (D-125)


def test_d125_efforts_and_budgets():
    assert config(NEWER, reasoning="low") == {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}}
    assert config(OLDER, reasoning="low") == {"thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": True}}
    assert config(NEWER, reasoning=512) == {"thinkingConfig": {"thinkingBudget": 512, "includeThoughts": True}}
    assert config(OLDER, reasoning="off") == {"thinkingConfig": {"thinkingBudget": 0}}


def test_d125_a_newer_model_cannot_stop_thinking():
    losses = []
    out = dump(settings={"reasoning": "off"}, losses=losses)
    assert out["generationConfig"] == {"thinkingConfig": {"thinkingLevel": "minimal"}}
    assert [loss.what for loss in losses] == ["reasoning"]
    assert config("gemini-3-pro-preview", reasoning="off") == {"thinkingConfig": {"thinkingLevel": "low"}}


@pytest.mark.parametrize(
    ("given", "reasoning"),
    [
        ({"thinkingBudget": 0}, "off"),
        ({"thinkingBudget": 0, "includeThoughts": True}, "off"),
        ({"thinkingBudget": 512, "includeThoughts": True}, 512),
        ({"thinking_budget": 512, "include_thoughts": False}, 512),
        ({"thinkingLevel": "low"}, "low"),
        ({"thinking_level": "HIGH", "include_thoughts": True}, "high"),
        ({"thinkingBudget": 512, "somethingNew": 1}, 512),
        ({"thinkingBudget": -1, "include_thoughts": True}, None),
        ({"includeThoughts": True}, None),
        ({"thinkingLevel": "minimal"}, None),
        ({"thinkingLevel": "low", "thinkingBudget": 5}, None),
        ({"thinkingBudget": None}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("model", [OLDER, NEWER])
def test_d125_thinking_is_read_so_that_it_is_written_again(given, reasoning, model):
    request = same({"generationConfig": {"thinkingConfig": given}}, path=f"/models/{model}:generateContent")
    assert request.settings.reasoning == reasoning


# --- tools


def tools(*some, model=NEWER, **how):
    return dump(model, tools=some, **how)


def test_functions_share_an_entry_and_the_providers_tools_have_their_own():
    out = tools(ToolSpec("f", "Does f.", TOWN), ServerTool("web_search"), ServerTool("code_execution"), ToolSpec("g"))
    assert out["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "Does f.", "parametersJsonSchema": TOWN},
                {"name": "g"},
            ]
        },
        {"googleSearch": {}},
        {"codeExecution": {}},
    ]
    assert out["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert "toolConfig" not in tools(ToolSpec("f"), ServerTool("googleSearch"), model=OLDER)


@pytest.mark.parametrize(
    "entries",
    [
        [
            {"functionDeclarations": [{"name": "f", "description": ""}]},
            {"functionDeclarations": [{"name": "g", "parameters": None}]},
        ],
        [{"function_declarations": [{"name": "f", "parameters_json_schema": TOWN}], "codeExecution": None}],
        [{"googleSearch": {}, "codeExecution": {}}, {"urlContext": {}}],
        [{"googleSearch": {"timeRangeFilter": {}}}, {"functionDeclarations": [{"name": "f"}]}],
        [{"functionDeclarations": [{"name": "f"}], "google_search": {}}],
        [{"functionDeclarations": []}],
        [{}],
        [{"codeExecution": None}],
        {"functionDeclarations": [{"name": "f", "behavior": "BLOCKING", "response": {"type": "STRING"}}]},
        [{"functionDeclarations": [{"name": "no name for it", "parameters": {}}]}],
    ],
)
def test_every_entry_of_tools_stays_as_it_was(entries):
    same({"tools": entries})


def test_a_tool_of_the_providers_that_is_added_later_is_announced():
    request = same({"tools": [{"functionDeclarations": [{"name": "f"}]}]}, path=f"/models/{NEWER}:generateContent")
    out = wire.dump_request(request.replace(tools=(*request.tools, ServerTool("googleSearch"))))
    assert out["toolConfig"] == {"includeServerSideToolInvocations": True}


def test_what_tools_become():
    request = same({"tools": [{"functionDeclarations": [{"name": "f"}]}, {"google_search": {"a": 1}}]})
    function, search = request.tools
    assert (function.name, function.input_schema) == ("f", {})
    assert (search.name, search.options) == ("googleSearch", {"a": 1})


@pytest.mark.parametrize(
    ("calling", "choice"),
    [
        ({"mode": "AUTO"}, "auto"),
        ({"mode": "ANY"}, "required"),
        ({"mode": "NONE"}, "none"),
        ({"mode": "none"}, "none"),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, "f"),
        ({"mode": "ANY", "allowed_function_names": ["f"]}, "f"),
        ({"mode": "ANY", "allowedFunctionNames": ["f", "g"]}, None),
        ({"mode": "ANY", "allowedFunctionNames": ["auto"]}, None),
        ({"mode": "VALIDATED"}, None),
        ({"mode": "ANY", "streamFunctionCallArguments": True}, None),
        ({}, None),
    ],
)
def test_tool_choice(calling, choice):
    body = {
        "toolConfig": {"functionCallingConfig": calling, "retrievalConfig": {}},
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
    }
    request = same(body)
    assert request.settings.tool_choice == choice
    if choice is not None and calling["mode"].isupper() and "allowed_function_names" not in calling:
        assert tools(ToolSpec("f"), settings={"tool_choice": choice})["toolConfig"] == {
            "functionCallingConfig": calling
        }


def test_d130_what_no_setting_says_can_be_given_as_an_option():
    calling = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}}
    out = wire.dump_request(ModelRequest(NEWER, (HI,), (ToolSpec("f"), ToolSpec("g")), options={"toolConfig": calling}))
    assert out["toolConfig"] == calling


def test_d124_an_older_model_gets_no_functions_with_a_schema():
    losses = []
    out = tools(ToolSpec("f"), ServerTool("googleSearch"), model=OLDER, output_schema=TOWN, losses=losses)
    assert out["tools"] == [{"googleSearch": {}}]
    assert out["generationConfig"] == {"responseJsonSchema": TOWN, "responseMimeType": "application/json"}
    assert [loss.what for loss in losses] == ["tools"]
    assert "functionDeclarations" in tools(ToolSpec("f"), output_schema=TOWN)["tools"][0]
    body = {
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "generationConfig": {"responseJsonSchema": TOWN, "responseMimeType": "application/json"},
    }
    same(body, path=f"/models/{OLDER}:generateContent")


def test_the_older_fields_for_schemas():
    quirks = wire.Quirks(json_schema=False)
    out = wire.dump_request(ModelRequest(NEWER, (HI,), (ToolSpec("f", "", TOWN),), output_schema=TOWN), quirks=quirks)
    lowered = {"type": "OBJECT", "properties": {"name": {"type": "STRING"}}, "required": ["name"]}
    assert out["tools"][0]["functionDeclarations"][0]["parameters"] == lowered
    assert out["generationConfig"] == {"responseSchema": lowered, "responseMimeType": "application/json"}


@pytest.mark.parametrize("schema", [
    {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True, "enum": ["x"]}}},
    {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}},
    {"type": "OBJECT", "properties": {"a": {"type": "STRING", "format": "uuid"}}},
    {"type": "OBJECT", "properties": {"a": {"type": "string"}}},
    {"type": "ARRAY", "items": {"type": "INTEGER", "minimum": 1}, "minItems": "1"},
    {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
    {"$ref": "#/x"},
])  # fmt: skip
def test_an_older_schema_is_read_as_json_schema_and_written_again(schema):
    request = same(
        {
            "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}],
            "generationConfig": {"responseSchema": schema},
        }
    )
    request = msgspec.convert(msgspec.to_builtins(request), ModelRequest)
    assert wire.dump_request(request)["generationConfig"]["responseSchema"] == schema


def test_an_older_schema_in_lower_case_becomes_json_schema_too():
    given = {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}}
    request = same({"generationConfig": {"responseSchema": given, "responseMimeType": "application/json"}})
    assert request.output_schema["properties"]["a"] == {"type": ["string", "null"]}


def test_the_older_schema_becomes_json_schema():
    assert lift({"type": "OBJECT", "properties": {"type": {"type": "STRING", "nullable": True, "enum": ["x"]}}}) == {
        "type": "object",
        "properties": {"type": {"type": ["string", "null"], "enum": ["x", None]}},
    }
    assert lift({"anyOf": [{"type": "STRING"}], "nullable": True}) == {"anyOf": [{"type": "string"}, {"type": "null"}]}


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "name": {"type": "string"}}}
GOLDEN = {
    "a reference is put in its place": (
        {"$defs": {"P": {"type": "integer", "title": "P"}}, "type": "object", "properties": {"p": {"$ref": "#/$defs/P", "description": "d"}}},
        {"type": "OBJECT", "properties": {"p": {"type": "INTEGER", "title": "P", "description": "d"}}},
    ),
    "a recursion ends in any object": (
        {"$defs": {"Node": NODE}, "$ref": "#/$defs/Node"},
        {"type": "OBJECT", "properties": {"next": {"type": "OBJECT"}, "name": {"type": "STRING"}}},
    ),
    "a recursion of the whole": (
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "ARRAY", "items": {"type": "ARRAY", "items": {"type": "OBJECT"}}},
    ),
    "a reference to nothing": ({"$ref": "#/$defs/X", "title": "t"}, {"type": "OBJECT", "title": "t"}),
    "optional, as pydantic writes it": (
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "T"},
        {"type": "STRING", "nullable": True, "default": None, "title": "T"},
    ),
    "optional by a list of types": ({"type": ["integer", "null"], "minimum": 0}, {"type": "INTEGER", "nullable": True, "minimum": 0}),
    "several types": ({"type": ["integer", "string"]}, {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]}),
    "a union": (
        {"oneOf": [{"type": "integer"}, {"type": "string"}], "discriminator": {"propertyName": "kind"}},
        {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]},
    ),
    "a union of one": ({"anyOf": [{"type": "integer"}]}, {"anyOf": [{"type": "INTEGER"}]}),
    "what is told not to be null": ({"type": "string", "nullable": False}, {"type": "STRING", "nullable": False}),
    "definitions by their older name": (
        {"definitions": {"P": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/definitions/P"}, "example": [1]},
        {"type": "ARRAY", "items": {"type": "INTEGER"}, "example": [1]},
    ),
    "an optional union": (
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}], "nullable": True},
    ),
    "a constant": ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
    "an enum with null": ({"type": ["string", "null"], "enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
    "an enum of numbers": (
        {"type": "integer", "enum": [1, 2], "description": "How many."},
        {"type": "INTEGER", "description": "How many. One of: 1, 2"},
    ),
    "what the subset has no word for": (
        {"$schema": "x", "type": "object", "additionalProperties": False, "patternProperties": {}, "minProperties": 1},
        {"type": "OBJECT", "minProperties": 1},
    ),
    "formats of strings": (
        {"type": "object", "properties": {"a": {"type": "string", "format": "uuid"}, "b": {"type": "string", "format": "date-time"}}},
        {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING", "format": "date-time"}}},
    ),
    "all of": (
        {"$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
         "allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}], "description": "d"},
        {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING"}}, "required": ["a", "b"], "description": "d"},
    ),
    "properties named like keywords": (
        {"type": "object", "properties": {"$ref": {"type": "string"}, "anyOf": {"type": "array", "items": {"type": "number"}}}},
        {"type": "OBJECT", "properties": {"$ref": {"type": "STRING"}, "anyOf": {"type": "ARRAY", "items": {"type": "NUMBER"}}}},
    ),
    "anything": ({"type": "object", "properties": {"a": True, "b": {}}}, {"type": "OBJECT", "properties": {"a": {}, "b": {}}}),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_schemas(name):
    schema, lowered = GOLDEN[name]
    assert lower(schema) == lowered
    assert lower(lift(lowered)) == lowered or name == "an enum of numbers"


# --- providers


def test_the_records():
    google = providers.get("gemini")
    assert google is providers.get("googleai") is providers.get("google-gla")
    assert request_headers(google, system={"GEMINI_API_KEY": "k"}) == {"x-goog-api-key": "k"}
    assert request_headers(google, system={"GOOGLE_API_KEY": "k"}) == {"x-goog-api-key": "k"}


def test_vertex_takes_a_key_or_a_token():
    vertex = providers.get("vertex")
    assert request_headers(vertex, api_key="AQ.key", system={}) == {"x-goog-api-key": "AQ.key"}
    assert request_headers(vertex, api_key="ya29.token", system={}) == {"authorization": "Bearer ya29.token"}
    assert request_headers(vertex, headers={"Authorization": "Bearer t"}, system={}) == {"authorization": "Bearer t"}
    assert request_headers(vertex, headers={"x-goog-api-key": "k"}, system={}) == {"x-goog-api-key": "k"}


# --- keys in snake_case

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
    own = ("args", "response", "parametersJsonSchema", "responseJsonSchema")  # keys that the API does not know
    return {
        re.sub("[A-Z]", lambda m: "_" + m[0].lower(), key): snake(each, deep=key not in own)
        for key, each in value.items()
    }


def neutral(request):
    """What a request says, without how it was spelled."""
    pieces = [msgspec.structs.replace(p, native=None) for message in request.messages for p in message.content]
    results = [
        [msgspec.structs.replace(each, native=None) for each in p.result]
        for p in pieces
        if getattr(p, "is_content", False)
    ]
    pieces = [
        msgspec.structs.replace(p, result=0, is_content=False) if getattr(p, "is_content", False) else p for p in pieces
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


def test_older_schemas_in_snake_case():
    body = {
        "contents": CONTENTS,
        "generation_config": {
            "response_schema": {"type": "OBJECT"},
            "response_mime_type": "application/json",
            "thinking_config": {"thinking_level": "low"},
        },
    }
    request = wire.load_request(body)
    assert (request.output_schema, request.settings.reasoning, request.options) == ({"type": "object"}, "low", {})
    assert wire.dump_request(request) == body


def test_a_key_in_both_spellings_is_read_in_camel_case():
    request = wire.load_request({"contents": CONTENTS, "generationConfig": {"topP": 0.5, "top_p": 0.1}})
    assert request.settings.top_p == 0.5
    assert request.options == {"generationConfig": {"top_p": 0.1}}


def test_media_recorded_inside_a_response_stays_there_whatever_the_model():
    media = {"inlineData": {"mimeType": "a/b", "data": "AAAA"}}
    told = {"functionResponse": {"name": "f", "id": "1", "response": {"result": "x"}, "parts": [media]}}
    same({"contents": [{"role": "user", "parts": [told]}]}, path=f"/models/{OLDER}:generateContent")
