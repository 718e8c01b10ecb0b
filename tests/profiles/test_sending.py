"""Requests as agents and models send them: lowered to what each model accepts, and told."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Message, Settings, fallback, profiles
from dragoman.errors import InvalidRequestError, OverloadedError, SettingsError
from dragoman.loss import Loss
from dragoman.message import Origin
from dragoman.profiles import ModelProfile
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from dragoman.wires import anthropic
from support.answers import agent_of, answer

pytestmark = pytest.mark.anyio


def body_of(player: Any) -> dict[str, Any]:
    """The body of the last request."""
    body = player.requests[-1].body
    return msgspec.json.decode(body) if isinstance(body, bytes) else dict(body)


def names(losses: Any) -> list[str]:
    """What was changed or left out."""
    return [loss.which for loss in losses]


async def send(wire: str, model: str, settings: Settings, **how: Any) -> tuple[dict[str, Any], Any]:
    """The body that an agent of this model sends, and its result."""
    agent, player = agent_of(wire, answer(wire, "Yes."), model=model, **how)
    result = await agent.send("Hi.", settings=settings)
    return body_of(player), result


async def test_what_the_model_does_not_take_is_not_sent_and_is_told() -> None:
    asked = Settings(temperature=0.2, reasoning="max", tool_choice="required")
    body, result = await send("anthropic", "anthropic:claude-opus-5-5", asked)
    assert "temperature" not in body and "tool_choice" not in body
    assert body["output_config"] == {"effort": "max"}
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert names(result.losses) == ["temperature", "tool_choice"]


async def test_tokens_become_an_effort_and_an_effort_tokens() -> None:
    body, _ = await send("anthropic", "anthropic:claude-haiku-4-5", Settings(reasoning="medium"))
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    body, result = await send("anthropic", "anthropic:claude-opus-4-7", Settings(reasoning=4000))
    assert body["output_config"] == {"effort": "medium"}
    assert names(result.losses) == ["reasoning"]


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("anthropic:claude-sonnet-5-5", {"type": "between_tools"}),
        ("anthropic:claude-sonnet-5", {"type": "disabled"}),
    ],
)
async def test_thinking_is_switched_off_in_the_models_words(
    model: str, thinking: dict[str, str]
) -> None:
    body, _ = await send("anthropic", model, Settings(reasoning="off"))
    assert body["thinking"] == thinking


async def test_deepseek_is_told_an_effort_or_to_stop() -> None:
    chat: dict[str, Any] = {"model": "deepseek:deepseek-v4-flash"}
    body, result = await send("openai_chat", chat["model"], Settings(reasoning="low"))
    assert (body["reasoning_effort"], "thinking" in body) == ("low", False)
    assert result.losses == ()
    body, _ = await send("openai_chat", chat["model"], Settings(reasoning="off"))
    assert (body["thinking"], "reasoning_effort" in body) == ({"type": "disabled"}, False)


async def test_a_request_may_be_refused_instead() -> None:
    agent, player = agent_of(
        "openai_chat", answer("openai_chat", "Yes."), model="openai:gpt-5", on_loss="error"
    )
    with pytest.raises(InvalidRequestError, match="temperature: the model takes 1 alone"):
        await agent.send("Hi.", settings=Settings(temperature=0.2))
    assert not player.requests


async def test_the_users_word_goes_first() -> None:
    asked = Settings(temperature=0.2)
    mine = ModelProfile(refused=(), fixed=())
    body, result = await send("openai_chat", "openai:gpt-5", asked, profile=mine)
    assert (body["temperature"], result.losses) == (0.2, ())
    with pytest.raises(TypeError, match="profile"):
        Agent("openai:gpt-5", profile="gpt-4o")  # pyright: ignore[reportArgumentType]


async def test_a_profile_is_of_its_agents_own_model_alone() -> None:
    agent, player = agent_of(
        "openai_chat",
        answer("openai_chat", "Yes."),
        model="openai:gpt-4o",
        profile=ModelProfile(refused=("temperature",)),
    )
    await agent.send("Hi.", settings=Settings(temperature=0.2), model="openai:gpt-4.1")
    assert body_of(player)["temperature"] == 0.2


async def test_each_model_of_a_fallback_is_sent_what_it_takes() -> None:
    def fails(_: ModelRequest) -> Message:
        raise OverloadedError("busy")

    new = ScriptedModel.like("anthropic:claude-opus-5", fails)
    old = ScriptedModel.like("anthropic:claude-haiku-4-5", "Yes.")
    agent = Agent(fallback(new, old))
    await agent.send("Hi.", settings=Settings(temperature=1, reasoning="max"))
    assert new.bodies[0]["output_config"] == {"effort": "max"}
    assert old.bodies[0]["thinking"]["budget_tokens"] == 59_904


async def test_a_hook_sees_what_was_sent() -> None:
    from dragoman import Hooks

    seen: list[Settings] = []

    def note(start: Any) -> None:
        seen.append(start.request.settings)

    await send(
        "openai_chat",
        "openai:gpt-5-pro",
        Settings(reasoning="low"),
        hooks=Hooks(model_start=note),
    )
    assert seen[0].reasoning == "high"


async def test_options_are_never_touched() -> None:
    agent, player = agent_of("openai_chat", answer("openai_chat", "Yes."), model="openai:gpt-5")
    await agent.send("Hi.", options={"temperature": 0.2})
    assert body_of(player)["temperature"] == 0.2


async def test_a_broken_file_of_profiles_is_an_error_of_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_PROFILES", "/none.toml")
    profiles.REGISTRY.forget()
    try:
        with pytest.raises(SettingsError, match="cannot be read"):
            await send("openai_chat", "openai:gpt-5", Settings(temperature=1))
    finally:
        monkeypatch.undo()
        profiles.REGISTRY.forget()


def test_most_tokens_are_never_more_than_the_model_gives() -> None:
    losses: list[Loss] = []
    for model, most in (("claude-3-haiku", 4096), ("claude-opus-5", 32_768)):
        quirks = profiles.attach_profile(None, anthropic, profiles.get(f"anthropic:{model}"))
        body = anthropic.dump_request(
            ModelRequest(model, (Message.user("Hi."),)),
            target=Origin("anthropic", None, model),
            quirks=quirks,
            losses=losses,
        )
        assert body["max_tokens"] == most


def test_a_request_without_settings_loads_no_table() -> None:
    code = (
        "import asyncio, sys\n"
        "sys.path.insert(0, 'tests')\n"
        "from support.answers import agent_of, answer\n"
        "agent, player = agent_of('openai_chat', answer('openai_chat', 'Yes.'))\n"
        "asyncio.run(agent.send('Hi.'))\n"
        "from dragoman.profiles.profile_table import load_shipped\n"
        "print(load_shipped.cache_info().currsize)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "0"
