"""Lowering a request to what its model accepts: laws for every entry of the table, and examples."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import profiles
from dragoman.codec.efforts import EFFORTS, TOKENS, effort_for, find_allowed
from dragoman.errors import SettingsError
from dragoman.loss import Loss
from dragoman.message import Message
from dragoman.model_profile import EMPTY
from dragoman.profiles import ModelProfile, find_refusals, load_shipped, lower
from dragoman.request import ModelRequest, Settings, ToolSpec

ENTRIES = list(load_shipped().entries())
WIRES = ("anthropic", "openai_chat", "openai_responses", "google", "mistral", "cohere", "ollama")
TOOL = ToolSpec("f", "", {"type": "object"})
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

efforts = st.sampled_from(EFFORTS)
settings_values = st.builds(
    Settings,
    temperature=st.none() | st.sampled_from([0.0, 0.5, 1, 1.5, 2.5]),
    top_p=st.none() | st.sampled_from([0.1, 0.96, 1]),
    top_k=st.none() | st.just(40),
    presence_penalty=st.none() | st.sampled_from([0, 0.5]),
    frequency_penalty=st.none() | st.sampled_from([0, 0.5]),
    seed=st.none() | st.just(1),
    stop=st.none() | st.just(("x",)),
    max_tokens=st.none() | st.sampled_from([1, 1000, 1024, 5000, 100_000, 10**7]),
    tool_choice=st.none() | st.sampled_from(["auto", "none", "required", "f"]),
    reasoning=st.none() | efforts | st.sampled_from([0, 1, 1000, 4000, 16_384, 65_536, 10**6]),
)
requests = st.builds(
    ModelRequest,
    st.just("m"),
    st.just((Message.user("hi"),)),
    tools=st.sampled_from([(), (TOOL,)]),
    settings=settings_values,
    output_schema=st.none() | st.just(SCHEMA),
    stream=st.booleans(),
)
entries = st.sampled_from(ENTRIES)


def lowered(model: str, wire: str | None = None, **settings: Any) -> tuple[Settings, list[str]]:
    """The settings that a model is sent, and the names of those that were changed."""
    profile = profiles.get(model, wire=wire)
    request = ModelRequest("m", (Message.user("hi"),), settings=Settings(**settings))
    result, losses = lower(request, profile, wire=wire or "")
    return result.settings, [loss.which for loss in losses]


@given(request=requests, entry=entries, wire=st.sampled_from(WIRES))
def test_lowering_twice_is_lowering_once(
    request: ModelRequest, entry: tuple[str, str], wire: str
) -> None:
    profile = load_shipped().profile(*entry)
    once, _ = lower(request, profile, wire=wire)
    twice, losses = lower(once, profile, wire=wire)
    assert twice is once
    # what a model takes and ignores stays, and is told each time
    assert all("ignores" in loss.why for loss in losses)


@given(request=requests, wire=st.sampled_from(WIRES))
def test_an_empty_profile_changes_nothing(request: ModelRequest, wire: str) -> None:
    assert lower(request, EMPTY, wire=wire) == (request, ())


@given(request=requests, entry=entries, wire=st.sampled_from(WIRES))
def test_what_is_changed_is_told(request: ModelRequest, entry: tuple[str, str], wire: str) -> None:
    profile = load_shipped().profile(*entry)
    result, losses = lower(request, profile, wire=wire)
    told = {loss.which for loss in losses}
    for name in Settings.__struct_fields__:
        before, after = getattr(request.settings, name), getattr(result.settings, name)
        if before != after and name not in told:
            # The same in other words, or what is so anyway.
            same = TOKENS.get(before) == after if isinstance(before, str) else False
            usual = profiles.DEFAULTS.get(name) == before
            assert same or usual or before in ("off", 0), (name, before, after)
    assert (result.messages, result.tools, result.options) == (
        request.messages, request.tools, request.options,
    )  # fmt: skip


@given(entry=entries, wire=st.sampled_from(WIRES), reasoning=efforts)
def test_never_more_than_was_asked_where_less_is_taken(
    entry: tuple[str, str], wire: str, reasoning: Any
) -> None:
    profile = load_shipped().profile(*entry).for_wire(wire)
    request = ModelRequest("m", settings=Settings(reasoning=reasoning))
    sent = lower(request, profile, wire=wire)[0].settings.reasoning
    if sent is None or sent == reasoning:
        return
    if isinstance(sent, int):
        least = profile.budget[0] if profile.budget else 0
        assert sent <= max(least, TOKENS.get(reasoning, 0))
        return
    taken = [effort for effort in EFFORTS if effort in (profile.efforts or ())]
    if EFFORTS.index(sent) > EFFORTS.index(reasoning):
        assert all(EFFORTS.index(effort) >= EFFORTS.index(sent) for effort in taken)


@given(request=requests, entry=entries, wire=st.sampled_from(WIRES))
def test_what_it_gives_is_not_refused_by_the_same_profile(
    request: ModelRequest, entry: tuple[str, str], wire: str
) -> None:
    profile = load_shipped().profile(*entry)
    result, _ = lower(request, profile, wire=wire)
    refused = find_refusals(result, profile, wire=wire)
    # Tools are content: what cannot be lowered is left to the model.
    assert {*refused} <= {"tools"}


@pytest.mark.parametrize("effort", EFFORTS[2:])
def test_an_effort_becomes_tokens_and_the_same_effort_again(effort: Any) -> None:
    assert effort_for(TOKENS[effort]) == effort


def test_the_highest_below_else_the_least() -> None:
    assert find_allowed("xhigh", ("low", "high", "max")) == "high"
    assert find_allowed("minimal", ("low", "high")) == "low"
    assert find_allowed("max", ()) is None


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        ("anthropic:claude-haiku-4-5", "minimal", 1024),
        ("anthropic:claude-haiku-4-5", "medium", 4096),
        ("anthropic:claude-haiku-4-5", "max", 59_904),
        ("anthropic:claude-opus-4-6", "xhigh", "high"),
        ("anthropic:claude-opus-4-6", "minimal", "low"),
        ("anthropic:claude-opus-5-5", "off", "low"),
        ("anthropic:claude-opus-5", "off", "off"),
        ("anthropic:claude-sonnet-5-5", "off", "off"),
        ("anthropic:claude-opus-4-7", 4000, "medium"),
        ("anthropic:claude-sonnet-4-5", 1000, 1024),
        ("anthropic:claude-3-5-haiku", "off", None),
        ("openai:gpt-4o", "off", None),
        ("openai:gpt-4o", "high", None),
        ("openai:gpt-5", "off", "minimal"),
        ("openai:gpt-5-pro", "low", "high"),
        ("openai:gpt-5.6", "max", "xhigh"),
        ("openai-responses:gpt-5.6", "max", "max"),
        ("openai-responses:gpt-5.6", "minimal", "low"),
        ("google:gemini-2.5-flash", "max", 24_576),
        ("google:gemini-2.5-flash", "off", "off"),
        ("google:gemini-2.5-pro", "off", 128),
        ("google:gemini-3-pro", "medium", "low"),
        ("google:gemini-3.8-flash", "off", "low"),
        ("google:gemini-3.5-flash", 6400, 6400),
        ("mistral:mistral-small-2603", "medium", "high"),
        ("deepseek:deepseek-v4", "low", "low"),
        ("openai:gpt-9", "xhigh", "xhigh"),
    ],
)
def test_how_much_a_model_is_asked_to_think(model: str, asked: Any, sent: Any) -> None:
    assert lowered(model, reasoning=asked)[0].reasoning == sent


@pytest.mark.parametrize(
    ("model", "asked", "lost"),
    [
        ("anthropic:claude-opus-4-7", {"temperature": 0.2}, ["temperature"]),
        ("anthropic:claude-opus-4-7", {"temperature": 1}, []),
        ("anthropic:claude-opus-5", {"top_p": 0.5, "top_k": 4}, ["top_p", "top_k"]),
        ("anthropic:claude-sonnet-4-5", {"temperature": 0.2, "top_p": 0.9}, ["top_p"]),
        ("anthropic:claude-sonnet-4-5", {"temperature": 1, "top_p": 0.9}, []),
        ("anthropic:claude-sonnet-4-5", {"temperature": 0.2, "reasoning": 2000}, ["temperature"]),
        ("anthropic:claude-sonnet-4-5", {"temperature": 1.5}, ["temperature"]),
        ("anthropic:claude-sonnet-4-5", {"tool_choice": "required", "reasoning": 2000}, ["tool_choice"]),
        ("anthropic:claude-sonnet-4-6", {"tool_choice": "required", "reasoning": "low"}, []),
        ("anthropic:claude-opus-5-5", {"tool_choice": "required"}, ["tool_choice"]),
        ("anthropic:claude-opus-5", {"max_tokens": 200_000}, ["max_tokens"]),
        ("openai:gpt-5", {"temperature": 0.2}, ["temperature"]),
        ("openai:gpt-5", {"temperature": 1, "stop": ("x",)}, ["stop"]),
        ("openai:gpt-5.1", {"temperature": 0.2}, []),
        ("openai:gpt-5.1", {"temperature": 0.2, "reasoning": "low"}, ["temperature"]),
        ("openai:gpt-5.5", {"temperature": 0.2}, ["temperature"]),
        ("openai:gpt-5.5", {"temperature": 0.2, "reasoning": "off"}, []),
        ("openai:gpt-4o", {"temperature": 0.2, "seed": 1}, []),
        ("google:gemini-3.8-flash", {"temperature": 0.2}, ["temperature"]),
        ("deepseek:deepseek-v4", {"tool_choice": "required"}, ["tool_choice"]),
        ("deepseek:deepseek-v4", {"tool_choice": "required", "reasoning": "off"}, []),
    ],
)  # fmt: skip
def test_what_a_model_does_not_take_is_left_out(
    model: str, asked: dict[str, Any], lost: list[str]
) -> None:
    assert lowered(model, **asked)[1] == lost


def test_what_is_ignored_is_sent_and_told() -> None:
    settings, lost = lowered("google:gemini-3.8-flash", temperature=0.2)
    assert (settings.temperature, lost) == (0.2, ["temperature"])


def test_tools_need_a_model_that_does_not_think() -> None:
    request = ModelRequest("m", tools=(TOOL,), settings=Settings(reasoning="high"))
    result, losses = lower(request, profiles.get("openai:gpt-5.6"), wire="openai_chat")
    assert (result.settings.reasoning, [str(loss) for loss in losses]) == (
        "off", ["reasoning: the model takes no tools while it thinks"],
    )  # fmt: skip


def test_a_schema_that_is_not_taken_is_left_out() -> None:
    request = ModelRequest("m", output_schema=SCHEMA)
    result, losses = lower(request, profiles.get("anthropic:claude-3-7-sonnet"), wire="anthropic")
    assert (result.output_schema, [loss.what for loss in losses]) == (None, ["output_schema"])
    result, losses = lower(request, profiles.get("deepseek"), wire="openai_chat")
    assert (result.output_schema, len(losses)) == ({"type": "object"}, 1)
    with_tools = request.replace(tools=(TOOL,))
    gemini = profiles.get("google:gemini-2.5-flash")
    assert lower(request, gemini, wire="google")[1] == ()
    assert lower(with_tools, gemini, wire="google")[0].output_schema is None


def test_a_loss_names_the_setting_and_the_reason() -> None:
    request = ModelRequest("m", settings=Settings(reasoning="xhigh"))
    _, losses = lower(request, ModelProfile(efforts=("low", "high")), wire="x")
    assert losses == (
        Loss(None, None, losses[0].what, "the model takes low, high; high is sent", "reasoning"),
    )


def test_an_unknown_effort_is_an_error() -> None:
    with pytest.raises(SettingsError, match="minimal, low, medium, high, xhigh, max"):
        Settings(reasoning="huge")  # pyright: ignore[reportArgumentType]
