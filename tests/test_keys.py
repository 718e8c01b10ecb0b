"""Keys, headers and base URLs: rules D-70…D-75 and the seed's `provider_initialization_test`."""

import asyncio

import pytest

from dragoman import providers
from dragoman.errors import AuthenticationError, SettingsError
from dragoman.providers.address import find_base_url
from dragoman.providers.keys import find_key, request_headers
from dragoman.providers.provider import Provider

OPENAI = providers.get("openai")
ANTHROPIC = providers.get("anthropic")
NOTHING = {}


def base_url(*args, system=NOTHING, **kwargs):
    return asyncio.run(find_base_url(*args, system=system, **kwargs))


def test_d70_the_key_given_beats_the_callers_mapping_which_beats_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of the process")
    mine = {"OPENAI_API_KEY": "of the caller"}
    assert find_key(OPENAI, "given", environment=mine) == "given"
    assert find_key(OPENAI, environment=mine) == "of the caller"
    assert find_key(OPENAI) == "of the process"


def test_d70_the_environment_of_the_process_can_be_left_out(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of the process")
    with pytest.raises(AuthenticationError):
        find_key(OPENAI, system={})


@pytest.mark.parametrize("empty", ["", "  ", None])
def test_d71_an_empty_key_falls_back(empty):
    assert find_key(OPENAI, empty, environment={"OPENAI_API_KEY": ""}, system={"OPENAI_API_KEY": "k"}) == "k"


def test_a_key_read_with_its_newline_is_trimmed():
    assert find_key(OPENAI, system={"OPENAI_API_KEY": "sk-1\n"}) == "sk-1"


def test_d72_a_missing_key_is_an_error_that_names_the_variable():
    for provider in providers.Registry().providers():
        if provider.key_required and provider.key_names:
            with pytest.raises(AuthenticationError) as caught:
                request_headers(provider, system=NOTHING)
            name = provider.key_names[-1]
            assert caught.value.message.startswith(f"{name} is required for {provider.display_name} provider")
            assert (caught.value.provider, caught.value.status) == (provider.name, None)


def test_d72_the_error_says_openai_in_full():
    with pytest.raises(
        AuthenticationError, match=r"OPENAI_API_KEY is required for OpenAI provider: set .* or pass api_key="
    ):
        find_key(OPENAI, system=NOTHING)


def test_d73_anthropic_looks_for_its_test_key_first():
    both = {"ANTHROPIC_API_KEY": "usual", "ANTHROPIC_API_TEST_KEY": "test"}
    assert find_key(ANTHROPIC, system=both) == "test"
    assert find_key(ANTHROPIC, system={"ANTHROPIC_API_KEY": "usual"}) == "usual"
    with pytest.raises(AuthenticationError, match=r"^ANTHROPIC_API_KEY is required"):
        find_key(ANTHROPIC, system=NOTHING)


def test_headers_carry_the_key_as_the_provider_wants_it():
    assert request_headers(OPENAI, api_key="k", system=NOTHING) == {"authorization": "Bearer k"}
    assert request_headers(ANTHROPIC, api_key="k", system=NOTHING) == {
        "x-api-key": "k",
        "anthropic-version": "2023-06-01",
    }


@pytest.mark.parametrize("name", ["ollama", "llamacpp", "openai-compatible"])
def test_servers_of_ones_own_work_without_a_key_and_take_one(name):
    provider = providers.get(name)
    assert request_headers(provider, system=NOTHING) == {}
    assert request_headers(provider, api_key="k", system=NOTHING) == {"authorization": "Bearer k"}
    assert request_headers(provider, system={provider.key_names[0]: "e"}) == {"authorization": "Bearer e"}


def test_d75_the_callers_headers_override_in_any_case():
    headers = request_headers(
        ANTHROPIC, api_key="k", headers={"Anthropic-Version": "2099-01-01", "X-Team": "a"}, system=NOTHING
    )
    assert headers == {"x-api-key": "k", "anthropic-version": "2099-01-01", "x-team": "a"}


def test_d75_who_gives_the_keys_header_needs_no_key():
    assert request_headers(OPENAI, headers={"Authorization": "Custom t"}, system=NOTHING) == {
        "authorization": "Custom t"
    }


def test_d75_the_base_url_given_beats_the_callers_mapping_which_beats_environment_and_record():
    system = {"OPENAI_BASE_URL": "http://system/v1"}
    mine = {"OPENAI_BASE_URL": "http://mine/v1"}
    assert base_url(OPENAI, "http://given/v1/", environment=mine, system=system) == "http://given/v1"
    assert base_url(OPENAI, environment=mine, system=system) == "http://mine/v1"
    assert base_url(OPENAI, system=system) == "http://system/v1"
    assert base_url(OPENAI) == "https://api.openai.com/v1"
    assert base_url(OPENAI, system={"OPENAI_BASE_URL": ""}) == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("name", "value", "url"),
    [
        ("ANTHROPIC_BASE_URL", "https://proxy.example", "https://proxy.example/v1"),
        ("ANTHROPIC_BASE_URL", "https://proxy.example/a/", "https://proxy.example/a/v1"),
        ("ANTHROPIC_BASE_URL", "https://proxy.example/v1", "https://proxy.example/v1"),
        ("OLLAMA_HOST", "gpu.example", "http://gpu.example:11434"),
        ("OLLAMA_HOST", "10.0.0.5:8000", "http://10.0.0.5:8000"),
        ("OLLAMA_HOST", ":8000", "http://localhost:8000"),
        ("OLLAMA_HOST", "[::1]", "http://[::1]:11434"),
        ("OLLAMA_HOST", "[::1]:8000", "http://[::1]:8000"),
        ("OPENAI_BASE_URL", "proxy.example/openai", "https://proxy.example/openai"),
        ("OLLAMA_HOST", "https://ollama.com", "https://ollama.com"),
    ],
)
def test_base_urls_of_the_environment_are_completed_as_their_owners_mean_them(name, value, url):
    provider = next(p for p in providers.Registry().providers() if name in p.base_url_names)
    assert base_url(provider, system={name: value}) == url


def test_a_provider_without_a_base_url_says_what_to_do():
    with pytest.raises(SettingsError, match=r"pass base_url=.* or set OPENAI_COMPATIBLE_BASE_URL"):
        base_url(providers.get("openai-compatible"))
    assert base_url(providers.get("openai-compatible"), "http://localhost:1/v1") == "http://localhost:1/v1"


def test_a_base_url_that_is_no_http_url_is_an_error():
    with pytest.raises(SettingsError, match=r'base URL "localhost:8000" of OpenAI provider must begin with http'):
        base_url(OPENAI, "localhost:8000")


def test_a_base_url_may_be_started_for_the_model():
    async def start(model):
        return f"http://127.0.0.1:1/{model}"

    provider = Provider(name="own", display_name="Own", wire="openai_chat", base_url=start)
    assert base_url(provider, model="m") == "http://127.0.0.1:1/m"
    assert base_url(provider, "http://other/v1", model="m") == "http://other/v1"


@pytest.mark.parametrize(
    ("provider", "given", "used"),
    [
        ("anthropic", "http://localhost:1", "http://localhost:1/v1"),
        ("anthropic", "http://localhost:1/", "http://localhost:1/v1"),
        ("anthropic", "http://localhost:1/v1", "http://localhost:1/v1"),
        ("anthropic", "http://localhost:1/proxy", "http://localhost:1/proxy"),
        ("google", "http://localhost:1", "http://localhost:1/v1beta"),
        ("google", "http://localhost:1/v1", "http://localhost:1/v1"),
        ("azure", "https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1"),
        ("openai", "http://localhost:1", "http://localhost:1"),
        ("ollama", "http://localhost:1", "http://localhost:1"),
    ],
)
def test_a_bare_host_gets_the_path_of_the_api_as_the_variables_value_does(provider, given, used):
    record = providers.get(provider)
    assert base_url(record, given) == used
    if name := next(iter(record.base_url_names), None):
        rest = record.base_url_names[name]
        assert base_url(record, environment={name: given}) == (used if used.endswith(rest) else used + rest)
