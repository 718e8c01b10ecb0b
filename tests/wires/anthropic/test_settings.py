"""The anthropic wire: settings, reasoning and output schemas (D-109)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.loss import Loss, Lost
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.wires import anthropic as wire
from support.anthropic import HI, dump_request, load_request
from support.profiles import quirks_of

TOOL = ToolSpec(
    "get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}}
)


def test_d109_defaults():
    assert dump_request()["max_tokens"] == 32_768
    thinking = dump_request(settings=Settings(reasoning="medium"))
    assert (thinking["max_tokens"], thinking["thinking"]) == (
        32_768,
        {"type": "enabled", "budget_tokens": 4096},
    )
    assert dump_request(tools=[TOOL])["tool_choice"] == {"type": "auto"}
    assert "tool_choice" not in dump_request()


@pytest.mark.parametrize(
    ("reasoning", "thinking", "max_tokens"),
    [
        ("off", {"type": "disabled"}, 32_768),
        ("low", {"type": "enabled", "budget_tokens": 1024}, 32_768),
        ("high", {"type": "enabled", "budget_tokens": 16384}, 32_768),
        (2000, {"type": "enabled", "budget_tokens": 2000}, 32_768),
        (60000, {"type": "enabled", "budget_tokens": 60000}, 64_096),
    ],
)
def test_reasoning_is_a_budget_below_max_tokens(reasoning, thinking, max_tokens):
    body = dump_request(settings=Settings(reasoning=reasoning))
    assert (body["thinking"], body["max_tokens"]) == (thinking, max_tokens)


def test_an_effort_fits_into_max_tokens():
    assert (
        dump_request(settings=Settings(reasoning="high", max_tokens=3000))["thinking"][
            "budget_tokens"
        ]
        == 1500
    )
    assert (
        dump_request(settings=Settings(reasoning="high", max_tokens=10))["thinking"][
            "budget_tokens"
        ]
        == 1024
    )


def test_newer_models_take_an_effort():
    body = dump_request(
        model="claude-opus-4-7-20260101",
        settings=Settings(reasoning="low"),
        quirks=quirks_of("anthropic", "claude-opus-4-7-20260101"),
    )
    assert (body["thinking"], body["output_config"]) == (
        {"type": "adaptive", "display": "summarized"},
        {"effort": "low"},
    )
    body = dump_request(
        model="vendor", settings=Settings(reasoning="low"), quirks=wire.Quirks(budgets={"low": 7})
    )
    assert body["thinking"]["budget_tokens"] == 7


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, 2048),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}}, 2048),
        ({"thinking": {"type": "disabled"}}, "off"),
        ({"thinking": {"type": "adaptive"}}, "high"),
        (
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "high"},
            },
            "high",
        ),
        (
            {
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "low", "task_budget": {"total": 1}},
            },
            "low",
        ),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}, "xhigh"),
        ({"output_config": {"effort": "medium"}}, "medium"),
        ({"output_config": {"effort": "max"}}, "max"),
        (
            {
                "thinking": {"type": "enabled", "budget_tokens": 2048},
                "output_config": {"effort": "high"},
            },
            2048,
        ),
        ({"thinking": {"type": "between_tools"}}, None),
        ({"thinking": None, "output_config": None}, None),
    ],
)
def test_thinking_of_every_spelling_survives(fields, reasoning):
    assert load_request(**fields).settings.reasoning == reasoning


def test_an_edited_effort_is_written_as_edited():
    request = load_request(thinking={"type": "adaptive"})
    assert wire.dump_request(request.replace(settings=Settings(reasoning="low")))[
        "output_config"
    ] == {"effort": "low"}
    request = load_request(thinking={"type": "adaptive", "display": "omitted"})
    edited = wire.dump_request(request.replace(settings=Settings(reasoning=1500)))
    assert edited["thinking"] == {"type": "enabled", "budget_tokens": 1500, "display": "omitted"}


def test_settings_there_and_back():
    settings = load_request(
        temperature=0.5, top_p=0.9, top_k=4, stop_sequences=["a", "b"], stream=True
    ).settings
    assert settings == Settings(max_tokens=99, temperature=0.5, top_p=0.9, top_k=4, stop=("a", "b"))
    assert load_request(stream=True).stream is True
    assert load_request(stream=False).stream is False
    assert load_request(stop_sequences=[]).settings.stop == ()


def test_settings_that_the_api_does_not_know_are_told_as_losses():
    losses = []
    request = ModelRequest(
        "m", HI, settings=Settings(seed=1, presence_penalty=0.5, frequency_penalty=0.5, top_k=3)
    )
    body = wire.dump_request(request, losses=losses)
    unknown = ("presence_penalty", "frequency_penalty", "seed")
    assert losses == [
        Loss(None, None, Lost.setting, "the API has no such setting", name) for name in unknown
    ]
    assert body["top_k"] == 3


SCHEMA = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/A"}},
    "$defs": {"A": {"type": "integer"}},
}


def test_output_schemas_of_every_spelling_survive():
    assert (
        load_request(
            output_config={"format": {"type": "json_schema", "schema": SCHEMA}}
        ).output_schema
        == SCHEMA
    )
    assert (
        load_request(
            output_config={
                "format": {"type": "json_schema", "schema": SCHEMA, "x": 1},
                "effort": "low",
            }
        ).output_schema
        == SCHEMA
    )
    assert (
        load_request(
            output_format={"type": "json_schema", "schema": SCHEMA, "name": "n"}
        ).output_schema
        == SCHEMA
    )
    assert load_request(output_format={"type": "text"}, output_config={}).output_schema is None


def test_an_output_schema_by_hand():
    options = {"output_config": {"task_budget": {"total": 1}}}
    body = dump_request(model="claude-sonnet-4-6", output_schema=SCHEMA, options=options)
    sent = {**SCHEMA, "additionalProperties": False}
    assert body["output_config"] == {
        "format": {"type": "json_schema", "schema": sent},
        "task_budget": {"total": 1},
    }


@pytest.mark.parametrize(
    ("model", "asks"),
    [
        ("claude-opus-4-6", False),
        ("claude-opus-4-7", True),
        ("claude-opus-4-8", True),
        ("claude-opus-5", True),
        ("claude-sonnet-5", True),
        ("claude-fable-5", True),
    ],
)
def test_a_model_that_omits_its_thinking_is_asked_for_the_summary(model: str, asks: bool) -> None:
    quirks = quirks_of("anthropic", model)

    def thinking(reasoning: Any, body: Any = None) -> Any:
        request = ModelRequest(model, HI, settings=Settings(reasoning=reasoning))
        if body is not None:
            request = wire.load_request(
                {"model": model, "max_tokens": 9, "messages": [], "thinking": body}
            )
        return wire.dump_request(request, quirks=quirks)["thinking"]

    shown = {"display": "summarized"} if asks else {}
    assert thinking("high") == {"type": "adaptive", **shown}
    omitted = {"type": "adaptive", "display": "omitted"}
    assert thinking(None, omitted) == omitted
    assert "display" not in thinking("off")
