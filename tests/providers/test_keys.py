"""Keys, headers and base URLs: rules D-70…D-75 and the seed's `provider_initialization_test`."""

import asyncio

import msgspec
import pytest

from dragoman import providers
from dragoman.errors import AuthenticationError, SettingsError
from dragoman.providers.auth import Auth
from dragoman.providers.base_url import find_base_url, join_url
from dragoman.providers.keys import find_auth, find_key, placeholder_keys, request_headers
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
    assert (
        find_key(OPENAI, empty, environment={"OPENAI_API_KEY": ""}, system={"OPENAI_API_KEY": "k"})
        == "k"
    )


def test_a_key_read_with_its_newline_is_trimmed():
    assert find_key(OPENAI, system={"OPENAI_API_KEY": "sk-1\n"}) == "sk-1"


def test_d72_a_missing_key_is_an_error_that_names_the_variable():
    for provider in providers.Registry().providers():
        if provider.key_required and provider.key_names:
            with pytest.raises(AuthenticationError) as caught:
                request_headers(provider, system=NOTHING)
            name = provider.key_names[-1]
            assert caught.value.message.startswith(
                f"{name} is required for {provider.display_name} provider"
            )
            assert (caught.value.provider, caught.value.status) == (provider.name, None)


def test_d72_the_error_says_openai_in_full():
    with pytest.raises(
        AuthenticationError,
        match=r"OPENAI_API_KEY is required for OpenAI provider: set .* or pass api_key=",
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
    assert request_headers(provider, system={provider.key_names[0]: "e"}) == {
        "authorization": "Bearer e"
    }


def test_d75_the_callers_headers_override_in_any_case():
    headers = request_headers(
        ANTHROPIC,
        api_key="k",
        headers={"Anthropic-Version": "2099-01-01", "X-Team": "a"},
        system=NOTHING,
    )
    assert headers == {"x-api-key": "k", "anthropic-version": "2099-01-01", "x-team": "a"}


def test_d75_who_gives_the_keys_header_needs_no_key():
    assert request_headers(OPENAI, headers={"Authorization": "Custom t"}, system=NOTHING) == {
        "authorization": "Custom t"
    }


def test_d75_the_base_url_given_beats_the_callers_mapping_which_beats_environment_and_record():
    system = {"OPENAI_BASE_URL": "http://system/v1"}
    mine = {"OPENAI_BASE_URL": "http://mine/v1"}
    assert (
        base_url(OPENAI, "http://given/v1/", environment=mine, system=system) == "http://given/v1"
    )
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
    assert (
        base_url(providers.get("openai-compatible"), "http://localhost:1/v1")
        == "http://localhost:1/v1"
    )


def test_a_base_url_that_is_no_http_url_is_an_error():
    with pytest.raises(
        SettingsError, match=r'base URL "localhost:8000" of OpenAI provider must begin with http'
    ):
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
        assert base_url(record, environment={name: given}) == (
            used if used.endswith(rest) else used + rest
        )


OWN = Provider(
    name="own",
    display_name="Own",
    wire="openai_chat",
    base_url="https://own.example:8443/v1",
    base_url_names={"OWN_HOST": "", "OWN_API": "/v2"},
    key_names=("OWN_TEST_KEY", "OWN_KEY"),
    key_kinds={"tok_": ("x-token", ""), "sess_": ("x-session", "S ")},
    headers={"X-Own": "1"},
)


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        ("tok_1", {"x-own": "1", "x-token": "tok_1"}),
        ("sess_1", {"x-own": "1", "x-session": "S sess_1"}),
        ("k", {"x-own": "1", "authorization": "Bearer k"}),
        (" k\n", {"x-own": "1", "authorization": "Bearer k"}),
    ],
)
def test_a_key_goes_in_the_header_of_its_kind(key, headers):
    assert request_headers(OWN, api_key=key, system=NOTHING) == headers


def test_all_places_of_a_key_are_asked_in_their_order():
    system = {"OWN_TEST_KEY": "s1", "OWN_KEY": "s2"}
    for mine, key in (
        ({"OWN_KEY": "m2"}, "m2"),
        ({"OWN_TEST_KEY": " ", "OWN_KEY": ""}, "s1"),
        (None, "s1"),
    ):
        assert find_key(OWN, environment=mine, system=system) == key
        assert (
            request_headers(OWN, environment=mine, system=system)["authorization"]
            == f"Bearer {key}"
        )
    assert find_key(OWN, system={"OWN_KEY": "s2"}) == "s2"
    assert request_headers(OWN, headers={"Authorization": "mine"}, system=NOTHING) == {
        "x-own": "1",
        "authorization": "mine",
    }
    with pytest.raises(AuthenticationError) as caught:
        find_key(OWN, "", environment={}, system=NOTHING)
    assert (caught.value.provider, caught.value.status) == ("own", None)
    assert caught.value.message == (
        "OWN_KEY is required for Own provider: set this environment variable, or pass api_key="
    )
    with pytest.raises(AuthenticationError):
        request_headers(OWN, system=NOTHING)
    optional = msgspec.structs.replace(OWN, key_required=False)
    assert find_key(optional, system=NOTHING) is None
    assert find_key(msgspec.structs.replace(OWN, key_names=()), system=NOTHING) is None


def test_credentials_stand_in_for_a_key_and_are_told_what_is_known():
    asked = []

    def auth(environment, key):
        asked.append(({name: environment.get(name) for name in ("A", "B")}, key))
        return Auth() if environment.get("A") or key else None

    provider = msgspec.structs.replace(OWN, auth=auth, auth_names=("A", "C"))
    mine, system = {"A": "m"}, {"A": "s", "B": "s"}
    assert find_key(provider, environment=mine, system=system) is None
    assert find_auth(provider, environment=mine, system=system) == Auth()
    assert find_auth(provider, "k", system=NOTHING) == Auth()
    assert find_auth(provider, headers={"Authorization": "h"}, system=NOTHING) == Auth()
    assert find_auth(OWN, "k", system=NOTHING) is None
    assert asked == [
        ({"A": "m", "B": "s"}, None),
        ({"A": "m", "B": "s"}, None),
        ({"A": "m", "B": "s"}, None),
        ({"A": None, "B": None}, "k"),
        ({"A": None, "B": None}, "h"),
    ]
    with pytest.raises(
        AuthenticationError, match="set this environment variable or A, C, or pass api_key="
    ):
        find_auth(provider, system=NOTHING)


@pytest.mark.parametrize(
    ("given", "mine", "system", "url"),
    [
        (None, {}, {}, "https://own.example:8443/v1"),
        (None, {}, {"OWN_API": "api.example"}, "https://api.example:8443/v2"),
        (None, {}, {"OWN_API": " api.example/v2/ "}, "https://api.example:8443/v2"),
        (None, {}, {"OWN_API": "http://a", "OWN_HOST": "http://b"}, "http://b"),
        (None, {"OWN_API": "http://a"}, {"OWN_HOST": "http://b"}, "http://a/v2"),
        (None, {}, {"OWN_HOST": "  "}, "https://own.example:8443/v1"),
        (None, {}, {"OWN_HOST": ":9"}, "https://own.example:9"),
        (None, {}, {"OWN_HOST": "h:9/x"}, "https://h:9/x"),
        (None, {}, {"OWN_HOST": "h/x"}, "https://h:8443/x"),
        ("http://given", {}, {"OWN_HOST": "h"}, "http://given/v2"),
        ("http://given/?q=1", {}, {}, "http://given/v2?q=1"),
        ("http://given/v1/?q=1", {}, {}, "http://given/v1?q=1"),
        ("", {}, {}, "https://own.example:8443/v1"),
    ],
)
def test_where_a_provider_is(given, mine, system, url):
    assert base_url(OWN, given, environment=mine, system=system) == url


@pytest.mark.parametrize(
    "url",
    ["own.example", "ftp://x", "http://", "http://x:0", "http://[bad", "https:///v1", "HTTP//x"],
)
def test_what_is_no_http_url_says_so(url):
    with pytest.raises(SettingsError, match="must begin with http") as caught:
        base_url(OWN, url)
    assert caught.value.provider == "own"


def test_where_credentials_lead_goes_before_the_record_and_may_be_an_error():
    assert base_url(OWN, credentials_url="http://place/") == "http://place"
    assert (
        base_url(OWN, system={"OWN_HOST": "http://env"}, credentials_url="http://place")
        == "http://env"
    )
    with pytest.raises(SettingsError, match="nowhere") as caught:
        base_url(OWN, credentials_url=SettingsError("nowhere"))
    assert caught.value.provider == "own"
    assert (
        base_url(OWN, "http://given/v1", credentials_url=SettingsError("nowhere"))
        == "http://given/v1"
    )
    nowhere = msgspec.structs.replace(OWN, base_url=None)
    with pytest.raises(SettingsError) as caught:
        base_url(nowhere)
    assert caught.value.message == (
        "Own provider has no base URL: pass base_url=, such as http://localhost:8000/v1, or set OWN_HOST or set OWN_API"
    )
    assert caught.value.provider == "own"
    assert base_url(nowhere, system={"OWN_HOST": "http://h"}) == "http://h"
    with pytest.raises(SettingsError, match="must begin with http"):
        base_url(nowhere, system={"OWN_HOST": "h"})


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://h/", "/a", "http://h/a"),
        ("http://h/v1?q=1", "/a", "http://h/v1/a?q=1"),
        ("http://h/v1/?q=1", "/a?b=2", "http://h/v1/a?b=2&q=1"),
        ("http://h", "/a?b=2", "http://h/a?b=2"),
        ("?q=1", "http://h/a", "http://h/a?q=1"),
    ],
)
def test_a_path_below_a_base_url_keeps_its_query(base, path, url):
    assert join_url(base, path) == url


def test_keys_of_other_services_too_get_no_placeholder():
    """A program that a recording proxy runs may load a model of the hub, or sign in at AWS."""
    records = providers.Registry(plug_ins=lambda: ()).providers()
    placeholders = placeholder_keys(records, NOTHING)
    assert {"OPENAI_API_KEY", "CEREBRAS_API_KEY", "VERTEX_API_KEY"} <= placeholders.keys()
    assert (
        not {"HF_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "CLOUDSDK_AUTH_ACCESS_TOKEN"}
        & placeholders.keys()
    )
