"""Which entry of the table a model's name finds, and where the fields of a profile come from."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dragoman import profiles, providers
from dragoman.errors import SettingsError
from dragoman.model_profile import EMPTY
from dragoman.profiles import ModelProfile, ProfileRegistry, ProfileTable, load_shipped
from dragoman.providers import Provider


@pytest.mark.parametrize(
    ("vendor", "model", "entry"),
    [
        ("anthropic", "claude-sonnet-4-5-20250929", "sonnet-4-5"),
        ("anthropic", "claude-opus-4.5", "opus-4-5"),
        ("anthropic", "CLAUDE-OPUS-4-5", "opus-4-5"),
        ("anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "sonnet-4-5"),
        ("anthropic", "global.anthropic.claude-opus-5-5", "opus-5-5"),
        ("anthropic", "arn:aws:bedrock:eu:1:inference-profile/eu.anthropic.claude-haiku-4-5", "haiku-4-5"),
        ("anthropic", "claude-haiku-4-5@20251001", "haiku-4-5"),
        ("anthropic", "publishers/anthropic/models/claude-opus-5", "opus-5"),
        ("anthropic", "claude-opus-5-6", "base"),
        ("anthropic", "claude-opus-5-5-1", "base"),
        ("anthropic", "claude-opus-6", "base"),
        ("anthropic", "claude-sonnet-4-5-latest", "base"),
        ("anthropic", "gpt-5", None),
        ("openai", "gpt-5-2025-08-07", "gpt-5"),
        ("openai", "gpt-5-mini", "gpt-5"),
        ("openai", "gpt-5.7", "base"),
        ("openai", "gpt-5.4-mini", "gpt-5-4-mini"),
        ("openai", "gpt-4o-2024-08-06", "gpt-4o"),
        ("openai", "ft:gpt-4o-2024-08-06:acme::1", "gpt-4o"),
        ("openai", "gpt-5.3-chat-latest", "base"),
        ("openai", "chat-latest", "gpt-5-x-chat"),
        ("google", "models/gemini-3-pro-preview", "gemini-3-pro"),
        ("google", "gemini-3.2-flash", "base"),
        ("google", "gemini-flash-latest", "gemini-latest"),
        ("google", "gemini-2.5-flash-preview-09-2025", "gemini-2-5"),
        ("mistral", "mistral-small-latest", "base"),
        ("mistral", "mistral-small-2603", "reasoning"),
        ("cohere", "command-a-03-2025", "base"),
        ("cohere", "command-r-08-2024", "r"),
        ("xai", "grok-4-0709", "grok-4-3"),
        ("groq", "openai/gpt-oss-120b", "gpt-oss"),
        ("groq", "anything", "base"),
        ("nobody", "anything", None),
    ],
)  # fmt: skip
def test_the_longest_beginning_at_a_boundary_finds_the_entry(
    vendor: str, model: str, entry: str | None
) -> None:
    assert load_shipped().find_entry(vendor, model) == entry


def test_every_field_of_the_shipped_table_has_a_source() -> None:
    table = load_shipped(sources=True)
    legend = ("C", "P", "A", "L", "M", "R", "S", "G", "I", "D", "T", "~")
    for vendor, key in table.entries():
        profile = table.profile(vendor, key)
        sources = profile.sources or {}
        fields = [field for field in profile.known() if field not in ("on", "sources")]
        for wire, special in (profile.on or {}).items():
            fields += [f"on.{wire}.{field}" for field in special.known()]
        for field in fields:
            assert sources[field].startswith(legend), (vendor, key, field)


def test_the_table_without_sources_is_the_same_table() -> None:
    with_sources, without = load_shipped(sources=True), load_shipped()
    assert list(with_sources.entries()) == list(without.entries())
    for vendor, key in without.entries():
        profile = msgspec.structs.replace(with_sources.profile(vendor, key), sources=None)
        assert profile == without.profile(vendor, key)


def test_what_is_absent_is_unknown() -> None:
    assert profiles.get("openai-compatible:anything") == EMPTY
    assert profiles.get("azure:gpt-5") == EMPTY
    assert profiles.get("anthropic:claude-opus-5").window is None


def test_a_wire_has_what_differs_there() -> None:
    responses = profiles.get("openai-responses:gpt-5.6")
    chat = profiles.get("openai:gpt-5.6")
    assert "max" in (responses.efforts or ()) and "max" not in (chat.efforts or ())
    assert chat == profiles.get("openai-responses:gpt-5.6", wire="openai_chat")
    # refused settings are added to those of the model
    assert {"logprobs", "seed"} <= {*(responses.refused or ())}


def test_routers_take_over_limits_and_inputs_alone() -> None:
    routed = profiles.get("openrouter:anthropic/claude-opus-5.5")
    assert routed.known().keys() == {"input", "output", "inputs"}
    assert profiles.get("together:openai/gpt-oss-120b").input == 131_072


def test_a_moving_alias_is_found_by_its_own_entry_alone() -> None:
    assert profiles.get("mistral:mistral-small-latest").efforts is None
    assert profiles.get("mistral:mistral-small-2603").efforts == ("none", "high")


# precedence


def test_who_knows_more_goes_first() -> None:
    clock = [0.0]
    registry = ProfileRegistry(clock=lambda: clock[0])
    record = msgspec.structs.replace(
        providers.get("anthropic"),
        profile=ModelProfile(output=1, input=1, window=1, thinks="asked"),
    )
    where = {"wire": "anthropic", "endpoint": "https://here"}
    model = "claude-opus-5-5"
    assert registry.find(record, model, **where).output == 1
    assert registry.find(record, model, **where).forced == "no"
    registry.note_listed("anthropic", model, ModelProfile(input=2, window=2, thinks="always"))
    registry.learn("https://here", "anthropic", model, ModelProfile(window=3, thinks="default"))
    registry.register(f"anthropic:{model}", ModelProfile(thinks="never"))
    profile = registry.find(record, model, **where)
    assert (profile.output, profile.input, profile.window, profile.thinks) == (1, 2, 3, "never")


def test_a_lesson_holds_for_a_day_at_one_endpoint() -> None:
    clock = [0.0]
    registry = ProfileRegistry(clock=lambda: clock[0])
    provider = providers.get("openai")
    registry.learn("https://a", "openai_chat", "gpt-4o", ModelProfile(refused=("seed",)))
    registry.learn("https://a", "openai_chat", "gpt-4o", ModelProfile(refused=("stop",)))
    assert registry.find(provider, "gpt-4o", endpoint="https://a").refused == (
        "top_k",
        "seed",
        "stop",
    )
    assert registry.find(provider, "gpt-4o", endpoint="https://b").refused == ("top_k",)
    assert registry.find(provider, "gpt-4o").refused == ("top_k",)
    clock[0] = 24 * 3600
    assert registry.find(provider, "gpt-4o", endpoint="https://a").refused == ("top_k",)


def test_a_user_names_what_a_deployment_is_like() -> None:
    registry = ProfileRegistry()
    registry.register("azure:mine", like="openai:gpt-5.6")
    assert "max" not in (registry.get("azure:mine").efforts or ())
    assert "max" in (registry.get("azure:mine", wire="openai_responses").efforts or ())
    registry.register("azure:mine", ModelProfile(output=5), like="openai:gpt-5.6")
    assert registry.get("azure:mine").output == 5
    assert registry.get("azure:mine").thinks == "default"
    registry.forget()
    assert registry.get("azure:mine") == EMPTY


def test_the_users_word_is_final() -> None:
    registry = ProfileRegistry()
    registry.register("anthropic:claude-opus-5-5", ModelProfile(refused=(), forced="yes"))
    profile = registry.get("anthropic:claude-opus-5-5")
    assert (profile.refused, profile.forced, profile.thinks) == ((), "yes", "always")


def test_a_record_may_name_the_vendor_by_the_model() -> None:
    provider = Provider(
        name="mine",
        display_name="Mine",
        wire="openai_chat",
        family=lambda model: "openai" if model.startswith("o-") else None,
    )
    registry = ProfileRegistry()
    assert registry.find(provider, "gpt-5") == EMPTY
    by_name = msgspec.structs.replace(provider, family="openai")
    assert registry.find(by_name, "gpt-5").thinks == "always"


# files


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[azure.mine]\nlike = "openai:gpt-5.6"\noutput = 9\n\n[openai.house]\nnames = ["house-1"]\nthinks = "never"\n'
    )
    registry = ProfileRegistry()
    registry.load(path)
    assert (registry.get("azure:mine").output, registry.get("azure:mine").thinks) == (9, "default")
    assert registry.get("openai:house-1-2025-01-01").thinks == "never"
    registry.register("azure:mine", ModelProfile(output=10))
    assert registry.get("azure:mine").output == 10
    monkeypatch.setenv("DRAGOMAN_PROFILES", str(path))
    assert ProfileRegistry().get("azure:mine").output == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[openai.x]\nthinks = 'perhaps'\n", "mine.toml, line 2, openai.x.thinks"),
        ("[openai.x]\nnames = ['a']\nthoughts = 1\n", "mine.toml, line 3, openai.x.thoughts"),
        ("[openai.x]\n[openai.y]\nlike = 'z'\n", 'line 3, openai.y.like: there is no entry "z"'),
        ("[openai.x]\nlike = 'x'\n", "line 2, openai.x.like: it is like itself"),
        ("[openai.x]\nlike = 'openai:gpt-99'\n", "nothing is known of this model"),
        ("[openai.x]\non.openai_chat.efforts = 1\n", "line 2, openai.x.efforts"),
        ("[openai]\nx = 1\n", "write [openai.NAME]"),
        ("[openai.x\n", "is no TOML"),
        ("[openai.x]\nnames = 'a'\n", "names must be a list"),
    ],
)
def test_a_broken_file_is_told_by_line_and_key(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as error:
        ProfileRegistry().load(path)
    assert message in str(error.value)


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    registry = ProfileRegistry()
    with pytest.raises(SettingsError, match="cannot be read"):
        registry.load(tmp_path / "none.toml")
    with pytest.raises(SettingsError, match="nothing is known"):
        registry.register("azure:mine", like="azure:yours")
    with pytest.raises(SettingsError, match="no provider"):
        registry.register("nobody:mine", like="openai:gpt-5")
    with pytest.raises(SettingsError, match="pass a profile"):
        registry.register("azure:mine")
    with pytest.raises(SettingsError, match="no provider"):
        registry.get("nobody:model")


def test_a_profile_shows_what_it_knows() -> None:
    assert repr(ModelProfile(thinks="never")) == "ModelProfile(thinks='never')"


def test_a_table_may_stand_alone() -> None:
    table = ProfileTable("[a.base]\nnames = ['']\noutput = 3\n[a.b]\ninput = 4\n", "a.toml")
    found = table.find("a", "b-2024-01-01")
    assert found is not None and (found.output, found.input) == (3, 4)
    assert table.names("a", "b") == ("b",)
