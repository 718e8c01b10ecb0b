"""Wrong types of a caller's: told where they are made, by the name of the argument, and never sent."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Chat, Limits, Message, Settings, ToolExecutor, tool
from dragoman.errors import SettingsError
from dragoman.orchestration import DefaultStreamingOrchestrator
from support import PROVIDER, agent, says

pytestmark = pytest.mark.anyio

PROMPTS: list[tuple[Any, dict[str, Any], str]] = [
    ([Message.user("hi")], {}, r"prompt\[0\] must be .*, not Message; a conversation goes into history="),
    ({"role": "user", "content": "hi"}, {}, "prompt must be a sequence of .*, not dict; .*load_messages"),
    ([{"type": "text"}], {}, r"prompt\[0\] must be .*, not dict"),
    (3, {}, "prompt must be .*, not int"),
    (b"hi", {}, "prompt must be .*, not bytes"),
    ("hi", {"attachments": ["red.png"]}, r"attachments\[0\] must be .*, not str; .*DataPart.from_file"),
    ("hi", {"attachments": "red.png"}, "attachments must be a sequence of .*, not str"),
    ("hi", {"history": [{"role": "user", "content": "a"}]}, r"history\[0\] must be Message, not dict; .*load_messages"),
    ("hi", {"history": {"role": "user"}}, "history must be a sequence of Message, not dict"),
    ("hi", {"settings": {"temperature": 1}}, "settings must be Settings, not dict"),
    ("hi", {"limits": {"model_calls": 1}}, "limits must be Limits, not dict"),
    ("hi", {"model": 3}, "model must be str or Provider, not int"),
    ("hi", {"output_schema": int}, "output_schema must be Mapping, not the class int"),
]


@pytest.mark.parametrize(("prompt", "how", "words"), PROMPTS)
async def test_what_is_sent(prompt: Any, how: dict[str, Any], words: str) -> None:
    a, script = agent(says("ok"))
    with pytest.raises(TypeError, match=words):
        await a.send(prompt, **how)
    assert script.requests == []


AGENTS: list[tuple[dict[str, Any], str]] = [
    ({"settings": {}}, "settings must be Settings, not dict"),
    ({"limits": {}}, "limits must be Limits, not dict"),
    ({"executor": ToolExecutor}, "executor must be an executor, .* not the class ToolExecutor"),
    ({"tools": ["x"]}, r"tools\[0\] must be a function or a Tool, not str"),
    ({"model": ["openai"]}, "model must be str or Provider, not list"),
    ({"system": Message.system("x")}, "system must be str, not Message"),
    ({"middleware": ["x"]}, r"middleware\[0\] must be a function"),
    ({"orchestrator": DefaultStreamingOrchestrator()}, "orchestrator must be a function or a class"),
    ({"api_key": 3}, "api_key must be a text"),
    ({"transport": object()}, "transport must be a transport, not object"),
    ({"server_tools": ["web_search"]}, r"server_tools\[0\] must be ServerTool, not str"),
    ({"options": "x"}, "options must be Mapping, not str"),
]


@pytest.mark.parametrize(("how", "words"), AGENTS)
def test_what_an_agent_is_made_with(how: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Agent(**{"model": PROVIDER, **how})


def test_tools_and_middleware_may_come_from_generators() -> None:
    @tool
    def t() -> int:
        return 1

    a, script = agent(says("ok"), tools=(each for each in [t]))
    a.send_sync("hi")
    assert [spec.name for spec in script.requests[0].tools] == ["t"]


def test_what_a_chat_is_made_with() -> None:
    with pytest.raises(TypeError, match="agent must be Agent, not str; make one: Chat"):
        Chat("openai")
    with pytest.raises(TypeError, match="agent must be Agent, not the class Agent"):
        Chat(Agent)
    with pytest.raises(TypeError, match=r"history\[0\] must be Message"):
        Chat(agent(says("ok"))[0], ["hi"])


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"temperature": "hot"}, "temperature=…. must be a number, not 'hot'"),
    ({"temperature": True}, "temperature=…. must be a number"),
    ({"max_tokens": 1.5}, "max_tokens=…. must be a whole number"),
    ({"stop": "END"}, "stop=…. must be a tuple of texts, not 'END'"),
    ({"stop": (1,)}, "stop=…. must be a tuple of texts"),
    ({"reasoning": "hot"}, "must be one of off, low, medium, high, or a number of tokens"),
    ({"reasoning": 1.5}, "an effort or a number of tokens"),
    ({"parallel_tool_calls": 1}, "true or false"),
    ({"tool_choice": ["t"]}, "a text"),
]


@pytest.mark.parametrize(("how", "words"), SETTINGS)
def test_settings(how: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Settings(**how)


def test_settings_take_what_is_right() -> None:
    assert Settings(temperature=1, stop=["a"], reasoning=100, seed=1).stop == ("a",)
    for effort in ("off", "low", "medium", "high"):
        assert Settings(reasoning=effort).reasoning == effort


def test_limits() -> None:
    with pytest.raises(SettingsError, match=r"Limits\(model_calls=…\) must be a number or None, not '3'"):
        Limits(model_calls="3")
    assert Limits(seconds=1.5, tool_calls=None).seconds == 1.5


async def test_a_json_schema_as_a_type_names_output_schema() -> None:
    a, script = agent(says("ok"))
    with pytest.raises(TypeError, match="output_schema="):
        await a.send_for("hi", {"type": "object"})
    assert script.requests == []


def test_a_typed_dict_of_typing_works_or_says_what_to_import() -> None:
    import sys
    from typing import TypedDict

    class Town(TypedDict):
        name: str

    a, _ = agent(says('{"name": "Oslo"}'))
    if sys.version_info >= (3, 12):
        assert a.send_for_sync("hi", Town).output == {"name": "Oslo"}
    else:
        with pytest.raises(SettingsError, match=r"typing_extensions\.TypedDict"):
            a.send_for_sync("hi", Town)


def test_d70_an_agent_may_use_its_own_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """`useAgentEnvironmentOnly` of the seeds."""
    from dragoman.errors import AuthenticationError

    monkeypatch.setenv("OPENAI_API_KEY", "sk-process")
    monkeypatch.setenv("DRAGOMAN_MODEL", "anthropic")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert Agent(environment_only=True).provider_name == "local"
    assert Agent(environment={"DRAGOMAN_MODEL": "openai"}).provider_name == "openai"

    class Never:
        requests: list[Any] = []

        async def send(self, request: Any) -> Any:
            self.requests.append(request)
            raise AuthenticationError("seen")

        async def close(self) -> None:
            pass

    transport: Any = Never()
    with pytest.raises(AuthenticationError, match="OPENAI_API_KEY is required"):
        Agent("openai", environment_only=True, transport=transport).send_sync("hi")
    assert transport.requests == []
    mine = Agent("openai", environment={"OPENAI_API_KEY": "sk-mine"}, environment_only=True, transport=transport)
    with pytest.raises(AuthenticationError, match="seen"):
        mine.send_sync("hi")
    assert transport.requests[0].headers["authorization"] == "Bearer sk-mine"
    assert transport.requests[0].path.startswith("https://api.openai.com")


async def test_d41_nan_and_keys_that_are_no_texts_are_error_results() -> None:
    from support import call

    def nan() -> Any:
        return {"deep": [float("nan")]}

    def keyed() -> Any:
        return {(1, 2): 3}

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    def mute() -> Any:
        raise Mute

    a, _ = agent(
        says(call("nan", id="1"), call("keyed", id="2"), call("mute", id="3")), says("ok"), tools=[nan, keyed, mute]
    )
    results = (await a.send("hi")).messages[2].tool_results
    assert [result.is_error for result in results] == [True] * 3
    assert "NaN" in results[0].result["error"]
    assert "keys of a JSON object are texts" in results[1].result["error"]
    assert results[2].result == {"error": "Mute"}


def test_a_plug_in_that_ends_the_process_harms_only_who_asks_for_it() -> None:
    from importlib.metadata import EntryPoint

    from dragoman.providers.registry import Registry

    class Quits(EntryPoint):
        def load(self) -> Any:
            raise SystemExit(3)

    registry = Registry({}, lambda: [Quits("quits", "x:y", "g")])
    assert registry.providers() == []
    with pytest.raises(SettingsError, match="SystemExit"):
        registry.get("quits")
