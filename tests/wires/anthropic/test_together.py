"""The anthropic wire: settings that the API refuses together are never sent together, and how long
an answer may be."""

from __future__ import annotations

from typing import Any

import pytest
from serve.test_gateway_same_api import Behind, faults

from dragoman import Message
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.wires import anthropic as wire
from dragoman.wires.anthropic.settings import default_max_tokens
from support.profiles import quirks_of

MODEL = "claude-sonnet-4-5"


def sent(model: str = MODEL, **settings: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The body of a request with these settings, and what was lost: name → why."""
    losses: list[Loss] = []
    tools = (ToolSpec("look", "Looks."),)
    request = ModelRequest(model, (Message.user("Hi."),), tools, Settings(**settings))
    quirks = quirks_of("anthropic", model)
    target = Origin("anthropic", None, model)
    body = wire.dump_request(request, target=target, quirks=quirks, losses=losses)
    assert not faults(body, {}) or "claude-3" in model
    return body, {loss.which: loss.why for loss in losses}


@pytest.mark.mend("2.2")
@pytest.mark.parametrize(
    ("settings", "left", "lost"),
    [
        ({"temperature": 0.0, "top_p": 0.1}, {"temperature": 0.0}, {"top_p"}),
        ({"temperature": 1.0, "top_p": 0.5}, {"top_p": 0.5}, set[str]()),
        ({"temperature": 0.3}, {"temperature": 0.3}, set[str]()),
        (
            {"temperature": 1.0, "top_p": 0.95, "top_k": 64, "reasoning": 8192},
            {"top_p": 0.95},
            {"top_k"},
        ),
        ({"temperature": 0.2, "top_p": 0.99, "reasoning": "low"}, {"top_p": 0.99}, {"temperature"}),
        ({"temperature": 0.2, "top_p": 0.5, "reasoning": "high"}, {}, {"temperature", "top_p"}),
        ({"temperature": 1.0, "reasoning": "high"}, {"temperature": 1.0}, set[str]()),
        (
            {"temperature": 0.2, "top_k": 3, "reasoning": "off"},
            {"temperature": 0.2, "top_k": 3},
            set[str](),
        ),
    ],
)
def test_what_the_api_refuses_together_is_not_sent_together(
    settings: dict[str, Any], left: dict[str, Any], lost: set[str]
) -> None:
    body, losses = sent(**settings)
    assert {name: body[name] for name in ("temperature", "top_p", "top_k") if name in body} == left
    assert losses.keys() == lost


@pytest.mark.mend("2.2")
def test_older_models_take_a_temperature_and_top_p() -> None:
    body, losses = sent("claude-3-5-haiku", temperature=0.2, top_p=0.9)
    assert (body["temperature"], body["top_p"], losses) == (0.2, 0.9, {})


@pytest.mark.mend("2.2")
@pytest.mark.parametrize("choice", ["required", "look"])
def test_a_forced_choice_of_a_tool_goes_before_thinking(choice: str) -> None:
    body, losses = sent(tool_choice=choice, reasoning="high")
    assert "thinking" not in body
    assert body["tool_choice"]["type"] in ("any", "tool")
    assert losses.keys() == {"reasoning"}


@pytest.mark.mend("2.3")
@pytest.mark.parametrize(
    ("budget", "limit", "sent_budget"),
    [
        (16_000, 8000, 4000),
        (16_000, 32_000, 16_000),
        (32_000, 32_000, 27_904),
        (1024, 1500, 1024),
        (2000, 1500, 1024),
    ],
)
def test_a_budget_is_below_the_limit_and_leaves_room_for_the_answer(
    budget: int, limit: int, sent_budget: int
) -> None:
    body, losses = sent(max_tokens=limit, reasoning=budget)
    assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (limit, sent_budget)
    assert bool(losses) == (budget != sent_budget)


@pytest.mark.mend("2.3")
@pytest.mark.parametrize("reasoning", [16_000, "low", "high"])
def test_where_there_is_no_room_for_thinking_it_is_left_out(reasoning: int | str) -> None:
    body, losses = sent(max_tokens=1000, reasoning=reasoning)
    assert "thinking" not in body
    assert losses.keys() == {"reasoning"}


@pytest.mark.mend("2.4")
@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("claude-3-haiku-20240307", 4096),
        ("claude-3-opus", 4096),
        ("claude-2.1", 4096),
        ("claude-instant-1.2", 4096),
        ("claude-3-5-sonnet-20241022", 8192),
        ("anthropic/claude-3.5-haiku", 8192),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", 8192),
        ("claude-3-7-sonnet", 32_768),
        ("claude-opus-4-20250514", 32_000),
        ("claude-opus-4-0", 32_000),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-opus-4-5", 32_768),
        ("claude-sonnet-4-20250514", 32_768),
        ("claude-sonnet-4-5", 32_768),
        ("claude-haiku-5-5", 32_768),
        ("somebody-elses", 32_768),
    ],
)
def test_an_answer_may_be_32768_tokens_long_or_what_its_model_gives(model: str, most: int) -> None:
    assert default_max_tokens(quirks_of("anthropic", model)) == most
    assert sent(model)[0]["max_tokens"] == most


@pytest.mark.mend("2.4")
def test_thinking_comes_on_top_as_far_as_the_model_goes() -> None:
    assert sent(reasoning=40_000)[0]["max_tokens"] == 44_096
    body, losses = sent("claude-opus-4-1", reasoning=40_000)
    assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (32_000, 27_904)
    assert losses.keys() == {"reasoning"}


@pytest.mark.mend("2.2", "2.3")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("config", "lost"),
    [
        (  # Gemini CLI, in every request
            {
                "temperature": 1,
                "topP": 0.95,
                "topK": 64,
                "thinkingConfig": {"thinkingBudget": 8192},
            },
            ['setting;which="top_k"'],
        ),
        (  # OpenCode, for a title
            {"maxOutputTokens": 8000, "topK": 64, "thinkingConfig": {"thinkingBudget": 16_000}},
            ['setting;which="reasoning"', 'setting;which="top_k"'],
        ),
    ],
)
async def test_real_clients_of_gemini_are_understood(
    config: dict[str, Any], lost: list[str]
) -> None:
    there = Behind("google", None, upstream=Behind("anthropic", lambda _: "Hello.").upstream)
    await there.post(
        {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], "generationConfig": config}
    )
    assert not faults(there.body, {})
    assert sorted(there.losses.split(", ")) == lost
