"""Settings, thinking and output schema of Google's wire (D-125, decision 27)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.request import ModelRequest, Settings
from dragoman.wires import google as wire
from support.google import CONTENTS, HI, NEWER, OLDER, dump, same_request


def test_settings_have_their_fields():
    generation = {
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
    assert (
        wire.dump_request(ModelRequest(NEWER, (HI,), settings=settings))["generationConfig"]
        == generation
    )
    request = same_request({"generationConfig": {**generation, "candidateCount": 2}})
    assert request.settings == settings
    assert request.options == {"generationConfig": {"candidateCount": 2}}


def test_what_has_no_setting_is_told():
    losses = []
    assert dump(settings={"parallel_tool_calls": False}, losses=losses) == {"contents": CONTENTS}
    assert [(loss.what, loss.which) for loss in losses] == [("setting", "parallel_tool_calls")]


def config(model=NEWER, **settings):
    return dump(model, settings=settings).get("generationConfig")


def test_d125_efforts_and_budgets():
    assert config(NEWER, reasoning="low") == {
        "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}
    }
    assert config(OLDER, reasoning="low") == {
        "thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": True}
    }
    assert config(NEWER, reasoning=512) == {
        "thinkingConfig": {"thinkingBudget": 512, "includeThoughts": True}
    }
    assert config(OLDER, reasoning="off") == {"thinkingConfig": {"thinkingBudget": 0}}


def test_d125_a_newer_model_cannot_stop_thinking():
    losses = []
    out = dump(settings={"reasoning": "off"}, losses=losses)
    assert out["generationConfig"] == {
        "thinkingConfig": {"thinkingLevel": "minimal", "includeThoughts": True}
    }
    assert [(loss.what, loss.which) for loss in losses] == [("setting", "reasoning")]
    assert config("gemini-3-pro-preview", reasoning="off") == {
        "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}
    }


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
        ({"thinkingLevel": "minimal"}, "minimal"),
        ({"thinkingLevel": "low", "thinkingBudget": 5}, None),
        ({"thinking_level": None, "thinkingBudget": 5}, None),
        ({"thinkingBudget": "512", "includeThoughts": True}, 512),
        ({"thinking_budget": 512.0}, 512),
        ({"thinkingBudget": "much"}, None),
        ({"thinkingBudget": None}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("model", [OLDER, NEWER])
def test_d125_thinking_is_read_so_that_it_is_written_again(given, reasoning, model):
    request = same_request(
        {"generationConfig": {"thinkingConfig": given}}, path=f"/models/{model}:generateContent"
    )
    assert request.settings.reasoning == reasoning


@pytest.mark.parametrize(
    ("model", "reasoning", "sent", "lost"),
    [
        (
            "gemini-3-pro",
            "off",
            {"thinkingLevel": "low", "includeThoughts": True},
            "the model cannot stop thinking; low is sent",
        ),
        (
            "gemini-3-flash",
            "off",
            {"thinkingLevel": "minimal", "includeThoughts": True},
            "the model cannot stop thinking; minimal is sent",
        ),
        ("gemini-3-pro", "low", {"thinkingLevel": "low", "includeThoughts": True}, None),
        (
            "gemini-3-pro",
            "medium",
            {"thinkingLevel": "low", "includeThoughts": True},
            "the model takes low, high; low is sent",
        ),
        ("gemini-3-pro", "high", {"thinkingLevel": "high", "includeThoughts": True}, None),
        ("gemini-3-pro", 7, {"thinkingBudget": 7, "includeThoughts": True}, None),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}, None),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 1024, "includeThoughts": True}, None),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 4096, "includeThoughts": True}, None),
        ("gemini-2.5-flash", "high", {"thinkingBudget": 16384, "includeThoughts": True}, None),
        ("gemini-2.5-flash", 7, {"thinkingBudget": 7, "includeThoughts": True}, None),
    ],
)
def test_d125_what_thinking_is_asked_for(model, reasoning, sent, lost):
    losses = []
    config = dump(model, settings={"reasoning": reasoning}, losses=losses)["generationConfig"]
    assert config == {"thinkingConfig": sent}
    lost_settings = [(loss.message, loss.part, loss.what, loss.which, loss.why) for loss in losses]
    assert lost_settings == ([(None, None, "setting", "reasoning", lost)] if lost else [])


@pytest.mark.parametrize(
    ("config", "settings", "schema", "left", "notes"),
    [
        ({"temperature": 1}, {"temperature": 1}, None, {}, {}),
        *[(one, {}, None, one, {}) for one in (
            {"temperature": True}, {"maxOutputTokens": 1.5}, {"topK": 1.5}, {"seed": "x"}, {"stopSequences": "x"}, {"responseMimeType": "application/json"},
            {"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": None}}, {"thinkingConfig": {"thinkingBudget": 5, "thinking_level": "low"}},
            {"thinkingConfig": {"thinkingLevel": "low", "thinking_budget": 5}}, {"thinkingConfig": {"thinking_level": None, "thinkingBudget": "5"}}, {"thinkingConfig": {"thinkingBudget": -1}}, {"candidateCount": 2},
        )],
        ({"stopSequences": ["a"]}, {"stop": ("a",)}, None, {}, {}), ({"stopSequences": []}, {"stop": ()}, None, {}, {}),
        ({"temperature": None, "x": None}, {}, None, {"x": None}, {"null": ["temperature"]}),
        ({"thinkingConfig": {"thinkingBudget": 0}}, {"reasoning": "off"}, None, {}, {"thinking": {"includeThoughts": "absent", "form": "budget"}}),
        ({"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": True}}, {"reasoning": "off"}, None, {}, {"thinking": {"form": "budget"}}),
        ({"thinkingConfig": {"thinkingBudget": 5, "includeThoughts": True, "x": 1}}, {"reasoning": 5}, None, {"thinkingConfig": {"x": 1}}, {"thinking": {}}),
        ({"thinkingConfig": {"thinking_level": "HIGH"}}, {"reasoning": "high"}, None, {}, {"thinking": {"includeThoughts": "absent", "form": "level", "level": "HIGH"}, "snake": ["thinking_level"]}),
        ({"thinkingConfig": {"thinkingLevel": "medium", "includeThoughts": False}}, {"reasoning": "medium"}, None, {}, {"thinking": {"includeThoughts": False, "form": "level"}}),
        ({"responseJsonSchema": {"type": "object"}, "responseMimeType": "application/json"}, {}, {"type": "object"}, {}, {"schema": "as is"}),
        ({"responseSchema": {"type": "STRING"}, "responseMimeType": "text/x.enum"}, {}, {"type": "string"}, {"responseMimeType": "text/x.enum"}, {"schema": "upper", "mime": "as is"}),
        ({"responseSchema": {"type": 1}, "responseMimeType": "application/json"}, {}, {"type": "string"}, {}, {"schema": "number"}),
        ({"responseSchema": {"x": [1]}}, {}, {"x": [1]}, {}, {"schema": "raw", "mime": "as is"}),
        ({"responseSchema": {"type": "string"}}, {}, {"type": "string"}, {}, {"schema": "lower", "mime": "as is"}),
        ({"topK": 40.0, "temperature": "0.5"}, {"top_k": 40, "temperature": 0.5}, None, {}, {"numbers": {"temperature": "0.5", "topK": 40.0}}),
        ({"max_output_tokens": "7", "seed": "1e3"}, {"max_tokens": 7, "seed": 1000}, None, {}, {"numbers": {"maxOutputTokens": "7", "seed": "1e3"}, "snake": ["max_output_tokens"]}),
        *[(one, {}, None, one, {}) for one in ({"topK": "1.5"}, {"seed": "9" * 5000}, {"maxOutputTokens": 1e300}, {"temperature": "NaN"}, {"temperature": "1e999"})],
        ({"top_p": 0.5, "topK": 3}, {"top_p": 0.5, "top_k": 3}, None, {}, {"snake": ["top_p"]}),
    ],
)  # fmt: skip
def test_d27_generation_config_as_it_is_kept(config, settings, schema, left, notes):
    """What no setting can say stays an option: half a token of `topK` was an error of ours about
    `Settings`."""
    body = {"contents": [], "generationConfig": config}
    request = wire.load_request(body)
    assert (request.settings, request.output_schema) == (Settings(**settings), schema)
    assert request.options == ({"generationConfig": left} if left else {})
    assert request.native == ({"google:notes": {"spelling": {"config": notes}}} if notes else None)
    assert wire.dump_request(request) == body


@pytest.mark.parametrize("odd", [{"includeThoughts": "absent"}, {"includeThoughts": None}, {}])
def test_decision_27_no_text_in_include_thoughts_is_taken_for_its_absence(
    odd: dict[str, Any],
) -> None:
    body = {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingBudget": 5, **odd}}}
    assert wire.dump_request(wire.load_request(body)) == body
