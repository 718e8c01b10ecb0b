"""Tools, tool choice and calls of Google's wire, with the ids of calls and results: rules D-122,
D-124, D-130, decision 12."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codec.fit_ids import fit_names
from dragoman.event import MessageStarted, PartDelta, PartStarted
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import google as wire
from support.google import (
    HI,
    NEWER,
    NEWER_GOOGLE,
    OLDER,
    SIGNED,
    TOWN,
    VERTEX,
    call,
    contents,
    dump,
    load_parts,
    same_parts,
    same_request,
)
from support.linear import is_linear
from support.profiles import quirks_of


def test_calls_and_results():
    assert contents(
        Message.model(call(city="Oslo")), Message.user(ToolResultPart("1", "f", "rain"))
    ) == [
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "f", "args": {"city": "Oslo"}, "id": "1"}}],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"result": "rain"}, "id": "1"}}
            ],
        },
    ]


def test_d122_ids_that_were_not_given_are_minted_and_never_sent():
    payload = {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g", "f")]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "g", "response": {"result": 1}}},
                {"functionResponse": {"name": "f", "response": {"result": 2}}},
                {"functionResponse": {"name": "f", "response": {"result": 3}}},
            ]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}, "id": ""}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}, "id": None}}]},
        ]
    }  # fmt: skip
    messages = wire.load_messages(payload)
    assert [c.id for m in messages for c in m.tool_calls] == [
        "call-0",
        "call-1",
        "call-2",
        "call-3",
    ]
    assert [r.id for m in messages for r in m.tool_results] == [
        "call-1",
        "call-0",
        "call-2",
        "call-3",
    ]
    assert all(c.native["google"]["id"] is None for m in messages for c in m.tool_calls)
    assert wire.dump_messages(messages) == payload


def test_d122_results_made_here_of_calls_without_ids_are_sent_without_and_in_call_order():
    model = Message.model(
        *load_parts({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f"}}, role="model")
    )
    first, second = model.tool_calls
    answer = Message.user(ToolResultPart(second.id, "f", 2), ToolResultPart(first.id, "f", 1))
    _, content = contents(model, answer, target=VERTEX)
    assert content["parts"] == [
        {"functionResponse": {"name": "f", "response": {"result": 1}}},
        {"functionResponse": {"name": "f", "response": {"result": 2}}},
    ]


def test_decision_12_an_unanswered_round_does_not_take_the_next_ones_results():
    calling = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    answered = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
    messages = wire.load_messages(
        {"contents": [calling, {"role": "user", "parts": [{"text": "?"}]}, calling, answered]}
    )
    assert messages[3].tool_results[0].id == messages[2].tool_calls[0].id == "call-1"


def test_a_minted_id_is_none_that_was_given():
    calling = [{"functionCall": {"name": "f", "id": "call-1"}}, {"functionCall": {"name": "f"}}]
    assert [piece.id for piece in load_parts(*calling, role="model")] == ["call-1", "call-2"]


def test_a_result_that_does_not_tell_its_tool_has_the_name_of_its_call():
    out = contents(Message.model(call("f", "1")), Message.user(ToolResultPart("1", "", 2)))
    assert out[1]["parts"][0]["functionResponse"]["name"] == "f"


def test_a_result_without_a_call_gets_an_id_of_its_own():
    pieces = load_parts(
        {"functionResponse": {"name": "f", "response": {}}},
        {"functionResponse": {"name": "f", "response": {}}},
    )
    assert pieces[0].id != pieces[1].id


@pytest.mark.parametrize("part", [
    {"functionCall": {"name": "f"}},
    {"functionCall": {"name": "f", "args": None}},
    {"functionCall": {"name": "f", "args": {}, "id": "1", "willContinue": False}, "thought_signature": "AA=="},
    {"function_call": {"name": "f", "args": {"a": 1.0}}},
    {"functionCall": {"name": "no name for a function!", "args": {}}},
    {"functionCall": {"name": "f", "args": [1]}},
    {"functionCall": {}},
])  # fmt: skip
def test_every_call_stays_as_it_was(part):
    same_parts(part, role="model")


def test_decision_12_names_that_the_api_does_not_take_are_mapped_alike_everywhere():
    out = contents(
        Message.model(call("two words")), Message.user(ToolResultPart("1", "two words", 1))
    )
    name = out[0]["parts"][0]["functionCall"]["name"]
    assert wire.Quirks().names.fits(name)
    assert out[1]["parts"][0]["functionResponse"]["name"] == name
    recorded = load_parts({"functionCall": {"name": "two.words"}}, role="model")
    assert contents(Message.model(*recorded))[0]["parts"][0]["functionCall"]["name"] == "two.words"
    assert (
        contents(Message.model(*recorded), target=NEWER_GOOGLE)[0]["parts"][0]["functionCall"][
            "name"
        ]
        == fit_names(["two.words"])["two.words"]
    )


def test_decision_22_what_the_provider_ran_looks_like_calls_and_results():
    pieces = same_parts(*SIGNED[2:6], role="model")
    code, output, search, found = pieces
    assert (code.name, code.arguments) == ("codeExecution", {"code": "1+1", "language": "PYTHON"})
    assert (output.id, output.result["output"], output.is_error) == (code.id, "2", False)
    assert (search.name, search.id, search.arguments) == (
        "GOOGLE_SEARCH_WEB",
        "s1",
        {"queries": ["x"]},
    )
    assert (found.id, found.result) == ("s1", {"hits": 1})
    assert all(piece.run_by == "provider" for piece in pieces)
    assert not Message.model(*pieces).tool_calls
    failed = same_parts(
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "x"}}, role="model"
    )[0]
    assert failed.is_error


def tools(*some, model=NEWER, **how):
    return dump(model, tools=some, **how)


def test_functions_share_an_entry_and_the_providers_tools_have_their_own():
    out = tools(
        ToolSpec("f", "Does f.", TOWN),
        ServerTool("web_search"),
        ServerTool("code_execution"),
        ToolSpec("g"),
    )
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
        [
            {
                "function_declarations": [{"name": "f", "parameters_json_schema": TOWN}],
                "codeExecution": None,
            }
        ],
        [{"googleSearch": {}, "codeExecution": {}}, {"urlContext": {}}],
        [{"googleSearch": {"timeRangeFilter": {}}}, {"functionDeclarations": [{"name": "f"}]}],
        [{"functionDeclarations": [{"name": "f"}], "google_search": {}}],
        [{"functionDeclarations": []}],
        [{}],
        [{"codeExecution": None}],
        {
            "functionDeclarations": [
                {"name": "f", "behavior": "BLOCKING", "response": {"type": "STRING"}}
            ]
        },
        [{"functionDeclarations": [{"name": "no name for it", "parameters": {}}]}],
    ],
)
def test_every_entry_of_tools_stays_as_it_was(entries):
    same_request({"tools": entries})


def test_a_tool_of_the_providers_that_is_added_later_is_announced():
    request = same_request(
        {"tools": [{"functionDeclarations": [{"name": "f"}]}]},
        path=f"/models/{NEWER}:generateContent",
    )
    out = wire.dump_request(request.replace(tools=(*request.tools, ServerTool("googleSearch"))))
    assert out["toolConfig"] == {"includeServerSideToolInvocations": True}


def test_what_tools_become():
    request = same_request(
        {"tools": [{"functionDeclarations": [{"name": "f"}]}, {"google_search": {"a": 1}}]}
    )
    function, search = request.tools
    assert (function.name, function.input_schema) == ("f", {})
    assert (search.name, search.options) == ("web_search", {"a": 1})


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
    request = same_request(body)
    assert request.settings.tool_choice == choice
    if choice is not None and calling["mode"].isupper() and "allowed_function_names" not in calling:
        assert tools(ToolSpec("f"), settings={"tool_choice": choice})["toolConfig"] == {
            "functionCallingConfig": calling
        }


def test_d130_what_no_setting_says_can_be_given_as_an_option():
    calling = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}}
    out = wire.dump_request(
        ModelRequest(NEWER, (HI,), (ToolSpec("f"), ToolSpec("g")), options={"toolConfig": calling})
    )
    assert out["toolConfig"] == calling


def test_d124_an_older_model_gets_no_functions_with_a_schema():
    losses = []
    tools_of_both = (ToolSpec("f"), ServerTool("googleSearch"))
    out = wire.dump_request(
        ModelRequest(OLDER, (HI,), tools_of_both, output_schema=TOWN),
        quirks=quirks_of("google", OLDER),
        losses=losses,
    )
    assert out["tools"] == [{"googleSearch": {}}]
    assert out["generationConfig"] == {
        "responseJsonSchema": TOWN,
        "responseMimeType": "application/json",
    }
    assert [(loss.what, loss.which) for loss in losses] == [("tool", "f")]
    assert "functionDeclarations" in tools(ToolSpec("f"), output_schema=TOWN)["tools"][0]
    body = {
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "generationConfig": {"responseJsonSchema": TOWN, "responseMimeType": "application/json"},
    }
    same_request(body, path=f"/models/{OLDER}:generateContent")


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
        ToolSpec(
            "g h",
            "",
            older,
            {"google": {"description": ""}, **note(name="as is", parameters="upper")},
        ),
        ToolSpec("h", "", {}, {"google": {"response": {}}, **note(parameters="absent")}),
        ToolSpec("i", "", {}, note(parameters="absent", place="apart")),
        ServerTool("web_search", {"z": 1}, note(place="together", tool="googleSearch")),
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
        ((ServerTool("web_search"), ToolSpec("f"), ToolSpec("g")), ["f, g"]),
        ((ServerTool("web_search"),), []),
        ((), []),
    ):
        losses = []
        sent = wire.dump_request(
            ModelRequest(model, tools=tools, output_schema={"type": "object"}),
            quirks=quirks_of("google", model),
            losses=losses,
        )
        why = "the model takes no functions together with an output schema"
        assert [(loss.message, loss.part, loss.what, loss.which, loss.why) for loss in losses] == [
            (None, None, "tool", which, why) for which in lost
        ]
        assert sent.get("tools") == ([{"googleSearch": {}}] if tools else None)
        assert sent["generationConfig"] == {
            "responseJsonSchema": {"type": "object"},
            "responseMimeType": "application/json",
        }
        assert "toolConfig" not in sent


@pytest.mark.parametrize(
    ("config", "choice", "notes"),
    [
        ({"mode": "AUTO"}, "auto", None), ({"mode": "NONE"}, "none", None), ({"mode": "ANY"}, "required", None),
        ({"mode": "auto"}, "auto", {"mode": "auto"}), ({"mode": 1}, "auto", {"mode": 1}), ({"mode": 2}, "required", {"mode": 2}), ({"mode": 3}, "none", {"mode": 3}),
        ({"mode": 2, "allowedFunctionNames": ["f"]}, "f", {"mode": 2}),
        ({"mode": "ANY", "allowed_function_names": ["f"]}, "f", {"snake": ["allowed_function_names"]}),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, "f", None),
        *[(one, None, None) for one in (
            {}, {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}, {"mode": "ANY", "allowedFunctionNames": ["auto"]}, {"mode": "VALIDATED"},
            {"mode": "AUTO", "x": 1}, {"mode": True}, {"mode": 4}, {"mode": "AUTO", "allowedFunctionNames": ["f"]}, {"mode": "ANY", "allowedFunctionNames": []},
        )],
    ],
)  # fmt: skip
def test_d130_choices_as_they_are_kept(config, choice, notes):
    body = {"contents": [], "toolConfig": {"functionCallingConfig": config, "retrievalConfig": {}}}
    request = wire.load_request(body)
    assert request.settings == Settings(tool_choice=choice)
    assert request.options == {
        "toolConfig": {"retrievalConfig": {}} if choice else body["toolConfig"]
    }
    assert request.native == ({"google:notes": {"spelling": {"choice": notes}}} if notes else None)
    assert wire.dump_request(request) == body


@pytest.mark.slow
def test_results_and_parts_cost_linear_time():
    def load(size):
        calls = [{"functionCall": {"name": "f", "id": f"c{n}", "args": {}}} for n in range(size)]
        results = [
            {"functionResponse": {"name": "f", "id": f"c{n}", "response": {}}}
            for n in reversed(range(size))
        ]
        return wire.load_messages(
            {"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]}
        )

    def encode(size):
        encoder = wire.encoder()
        encoder.feed(MessageStarted("m", Role.MODEL))
        for n in range(size):
            encoder.feed(PartStarted("m", n, ToolCallPart(f"c{n}", "f")))
        for n in range(size):
            encoder.feed(PartDelta("m", n, "{"))

    assert is_linear(load, 500)
    assert is_linear(encode, 500)


def test_repeated_calls_are_answered_in_order():
    calls = [{"functionCall": {"name": "f", "args": {"n": n}}} for n in range(3)]
    results = [{"functionResponse": {"name": "f", "response": {"n": n}}} for n in range(3)]
    body = {"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]}
    model, user = wire.load_messages(body)
    assert [part.id for part in user.content if isinstance(part, ToolResultPart)] == [
        call.id for call in model.tool_calls
    ]


@pytest.mark.parametrize("odd", [{"args": "absent"}, {"args": None}, {}])
def test_decision_27_no_text_in_the_place_of_arguments_is_taken_for_their_absence(
    odd: dict[str, Any],
) -> None:
    payload = {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "f", **odd}}]}]}
    assert wire.dump_messages(wire.load_messages(payload)) == payload


def test_older_notes_of_absent_fields_are_still_read() -> None:
    call = ToolCallPart(
        "c", "f", native={"google": {"id": None}, "google:notes": {"spelling": {"args": "absent"}}}
    )
    entry = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
    assert wire.dump_messages([Message.model(call)]) == {"contents": [entry]}
    empty = Message.model().replace(native={"google:notes": {"spelling": {"parts": None}}})
    assert wire.dump_messages([empty]) == {"contents": [{"role": "model", "parts": None}]}
