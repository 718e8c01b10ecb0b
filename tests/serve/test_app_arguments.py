"""What somebody gives a server that is none of what it takes is said at once, in words that name
it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.errors import SettingsError
from dragoman.testing import ScriptedModel

MODEL = ScriptedModel("x")
AGENT = Agent(MODEL)


@pytest.mark.parametrize(
    ("agents", "given", "error", "words"),
    [
        ("local", {}, TypeError, "agents must be Agent, not str"),
        ({"a": "local"}, {}, TypeError, "agents must be Agent, not str"),
        ({}, {}, SettingsError, "agents={} has none"),
        ({"": AGENT}, {}, SettingsError, "a name has 1 to 200 characters"),
        ({5: AGENT}, {}, SettingsError, "agents={5: …}"),
        ({"a\nb": AGENT}, {}, SettingsError, "can be printed"),
        (AGENT, {"store": 5}, TypeError, "store must be the URL of a database"),
        (AGENT, {"cards": 5}, TypeError, "cards must be AgentCard"),
        (AGENT, {"policy": "drop"}, TypeError, "policy must be AgentPolicy"),
        (AGENT, {"gateway": "openai:gpt-4o"}, TypeError, "give dragoman.serve.Gateway"),
        (AGENT, {"limits": 5}, TypeError, "give dragoman.serve.ServerLimits"),
        (
            AGENT,
            {"webhooks": ["hooks.example.org"]},
            TypeError,
            "give dragoman.transport.AddressPolicy",
        ),
        (AGENT, {"hosts": "llm.example.com"}, TypeError, "hosts must be a sequence of str"),
        (
            AGENT,
            {"hosts": ["https://llm.example.com"]},
            SettingsError,
            "without https:// and a path",
        ),
        (AGENT, {"hosts": [""]}, SettingsError, "hosts='' is no name"),
        (
            AGENT,
            {"origins": "https://chat.example.com"},
            TypeError,
            "origins must be a sequence of str",
        ),
        (AGENT, {"origins": ["chat.example.com"]}, SettingsError, "write it as https://"),
        (AGENT, {"origins": ["https://chat.example.com/page"]}, SettingsError, "without a path"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_application_takes_what_it_can_use(
    agents: Any, given: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as raised:
        serve.app(agents, **given)
    assert words in str(raised.value)


def test_hosts_and_origins_in_every_form() -> None:
    origins = [
        "https://Chat.example.com/",
        "http://localhost:*",
        "*",
        "null",
        "chrome-extension://abc",
    ]
    assert serve.app(
        AGENT, hosts={"Llm.example.com:8443", "*", "[::1]"}, origins=iter(origins)
    ).state.service


@pytest.mark.parametrize("field", ["system", "tools", "on_disconnect"])
def test_a_policy_that_is_written_wrongly_is_no_policy(field: str) -> None:
    """`Drop` would otherwise let in what it should leave out."""
    with pytest.raises(
        SettingsError, match=rf"AgentPolicy\({field}='Drop'\) is unknown; there are"
    ):
        serve.AgentPolicy(**{field: "Drop"})  # type: ignore[arg-type]


@pytest.mark.parametrize("model", [5, [], {"a": "b"}, None], ids=repr)
def test_a_gateways_model_is_a_model_string_or_several(model: Any) -> None:
    with pytest.raises(SettingsError, match='the model "fast" must be a model string'):
        serve.Gateway({"fast": model})
    assert serve.Gateway({"fast": MODEL, "slow": ["openai:gpt-4o", MODEL]})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            {"keys": "sk-1"},
            TypeError,
            "keys must be Mapping, not str; give them by their providers",
        ),
        ({"base_urls": ["https://x"]}, TypeError, "base_urls must be Mapping"),
        ({"keys": {"opnai": "sk-1"}}, SettingsError, "did you mean openai?"),
        ({"retries": -1}, SettingsError, "must be 0 or more"),
        ({"middleware": print}, TypeError, "middleware must be a sequence of functions"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_gateway_takes_what_it_can_use(given: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        serve.Gateway({"fast": "openai:gpt-4o"}, **given)
    assert words in str(raised.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("port", "error"), [(65536, SettingsError), (-1, SettingsError), ("8000", TypeError)]
)
async def test_a_port_is_one(port: Any, error: type[Exception]) -> None:
    """Python takes 65536 for 0, and so any port."""
    with pytest.raises(error, match="port"):
        await serve.serve_http(serve.app(AGENT), port=port)


@pytest.mark.anyio
async def test_what_is_run_is_an_application() -> None:
    with pytest.raises(TypeError, match=r"give dragoman\.serve\.app"):
        await serve.serve_http(AGENT)  # type: ignore[arg-type]
