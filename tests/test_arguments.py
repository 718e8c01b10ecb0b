"""Wrong types of a caller's: told where they are made, by the name of the argument, and never
sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from dragoman import (
    Agent,
    Chat,
    Limits,
    Message,
    ServerTool,
    Settings,
    TextPart,
    ToolExecutor,
    tool,
)
from dragoman.errors import SettingsError
from dragoman.hooks import Hooks, add_global_hooks
from dragoman.mcp import mcp
from dragoman.message import Content
from dragoman.model.breaker import Breaker
from dragoman.model.fallbacks import fallback
from dragoman.model.response_cache import cache
from dragoman.model.throttle import Throttle
from dragoman.openapi import openapi
from dragoman.telemetry import telemetry
from dragoman.testing import ScriptedModel, assert_calls
from dragoman.tools import handoff
from dragoman.tools.agent_tool import agent_tool
from dragoman.tools.toolsets import toolset
from dragoman.transport import Player
from support.model import PROVIDER, Script, agent, says

pytestmark = pytest.mark.anyio

PROMPTS: list[tuple[Any, dict[str, Any], str]] = [
    (
        [Message.user("hi")],
        {},
        r"prompt\[0\] must be .*, not Message; a conversation goes into history=",
    ),
    (
        {"role": "user", "content": "hi"},
        {},
        "prompt must be a sequence of .*, not dict; .*load_messages",
    ),
    ([{"type": "text"}], {}, r"prompt\[0\] must be .*, not dict"),
    (3, {}, "prompt must be .*, not int"),
    (b"hi", {}, "prompt must be .*, not bytes"),
    (
        "hi",
        {"attachments": ["red.png"]},
        r"attachments\[0\] must be .*, not str; .*DataPart.from_file",
    ),
    ("hi", {"attachments": "red.png"}, "attachments must be a sequence of .*, not str"),
    (
        "hi",
        {"history": [{"role": "user", "content": "a"}]},
        r"history\[0\] must be Message, not dict; .*load_messages",
    ),
    ("hi", {"history": {"role": "user"}}, "history must be a sequence of Message, not dict"),
    ("hi", {"settings": {"temperature": 1}}, "settings must be Settings, not dict"),
    ("hi", {"limits": {"model_calls": 1}}, "limits must be Limits, not dict"),
    ("hi", {"model": 3}, "model must be str or Provider or Fallback or list or tuple, not int"),
    ("hi", {"output_schema": int}, "output_schema must be Mapping, not the class int"),
]


@pytest.mark.parametrize(("prompt", "how", "words"), PROMPTS)
async def test_what_is_sent(prompt: Any, how: dict[str, Any], words: str) -> None:
    a, script = agent(says("ok"))
    with pytest.raises(TypeError, match=words):
        await a.send(prompt, **how)
    assert script.requests == []


EXECUTOR = "an executor, such as ToolExecutor()"
EACH: list[tuple[dict[str, Any], str]] = [
    ({"model": b"x"}, "model must be str or Provider or Fallback or list or tuple, not bytes"),
    ({"system": 1}, "system must be str, not int"),
    ({"settings": 1}, "settings must be Settings, not int"),
    ({"options": ["x"]}, "options must be Mapping, not list"),
    ({"base_url": 1}, "base_url must be str, not int"),
    ({"headers": [("a", "b")]}, "headers must be Mapping, not list"),
    ({"environment": ["A=b"]}, "environment must be Mapping, not list"),
    ({"display_name": 1}, "display_name must be str, not int"),
    ({"limits": 1}, "limits must be Limits, not int"),
    ({"transport": 1}, "transport must be a transport, not int"),
    ({"transport": Player}, "transport must be a transport, not the class Player"),
    ({"executor": 1}, f"executor must be {EXECUTOR}, not int"),
    ({"executor": ToolExecutor}, f"executor must be {EXECUTOR}, not the class ToolExecutor"),
    ({"tools": [max, 1]}, "tools[1] must be a function, a Tool or a Toolset, not int"),
    ({"middleware": [1]}, "middleware[0] must be a function (request, next) -> events, not int"),
    (
        {"middleware": [print, 1]},
        "middleware[1] must be a function (request, next) -> events, not int",
    ),
    ({"server_tools": [ServerTool("a"), 1]}, "server_tools[1] must be ServerTool, not int"),
    (
        {"orchestrator": 1},
        "orchestrator must be an orchestrator, or a function or a class that makes one, not int",
    ),
    ({"accumulator": 1}, "accumulator must be a function or a class, not int"),
    ({"id_factory": 1}, "id_factory must be a function or a class, not int"),
    ({"clock": 1}, "clock must be a function or a class, not int"),
    ({"api_key": 1}, "api_key must be a text, or a function that gives one, not int"),
]


@pytest.mark.parametrize(("how", "words"), EACH)
def test_each_argument_of_an_agent_is_named_with_what_it_must_be(
    how: dict[str, Any], words: str
) -> None:
    with pytest.raises(TypeError) as caught:
        Agent(**{"model": PROVIDER, **how})
    assert str(caught.value) == words


A_FILE = "a file is attached with DataPart.from_file(path), a text stands in the prompt"
A_FORMAT = "messages of other formats are read by a wire: dragoman.wires.get(NAME).load_messages"
A_HISTORY = "a conversation goes into history=, its last message is the prompt"
PARTS = " or ".join(kind.__name__ for kind in get_args(Content))
HOWS: list[tuple[Any, dict[str, Any], str]] = [
    (["a", 1], {}, f"prompt[1] must be str or {PARTS}, not int"),
    ([Message.user("a")], {}, f"prompt[0] must be str or {PARTS}, not Message; {A_HISTORY}"),
    ([{}], {}, f"prompt[0] must be str or {PARTS}, not dict; {A_FORMAT}"),
    ({}, {}, f"prompt must be a sequence of str or {PARTS}, not dict; {A_FORMAT}"),
    (3, {}, f"prompt must be a sequence of str or {PARTS}, not int"),
    ([Path("x")], {}, f"prompt[0] must be str or {PARTS}, not {type(Path()).__name__}; {A_FILE}"),
    ("hi", {"attachments": "x"}, f"attachments must be a sequence of {PARTS}, not str; {A_FILE}"),
    (
        "hi",
        {"attachments": [TextPart("a"), "x"]},
        f"attachments[1] must be {PARTS}, not str; {A_FILE}",
    ),
    ("hi", {"attachments": [{}]}, f"attachments[0] must be {PARTS}, not dict; {A_FORMAT}"),
    ("hi", {"history": "x"}, f"history must be a sequence of Message, not str; {A_FILE}"),
    ("hi", {"history": 3}, "history must be a sequence of Message, not int"),
    (
        "hi",
        {"history": [Message.user("a"), {}]},
        f"history[1] must be Message, not dict; {A_FORMAT}",
    ),
    ("hi", {"model": 1}, "model must be str or Provider or Fallback or list or tuple, not int"),
    ("hi", {"output_schema": "x"}, "output_schema must be Mapping, not str"),
    ("hi", {"settings": {}}, "settings must be Settings, not dict"),
    ("hi", {"limits": {}}, "limits must be Limits, not dict"),
    (
        "hi",
        {"output_checks": len},
        "output_checks must be list or tuple, not builtin_function_or_method",
    ),
    (
        "hi",
        {"output_checks": [1]},
        "output_checks[0] must be a function (context, output) -> output, not int",
    ),
    (
        "hi",
        {"b": 1, "a": 2},
        "sending takes no argument a, b; it takes history, model, attachments, output_schema, settings, deps, limits, on_loss, thread_id, run_id, resource_id, tools, context, state, resume, output_checks, output_events, options, metadata, trusted_history, reading, claim. "
        "Where requests go and with which key is said to the Agent, or to a Provider that is passed as model=",
    ),
]


@pytest.mark.parametrize(("prompt", "how", "words"), HOWS)
async def test_each_argument_of_a_run_is_named_with_what_it_must_be(
    prompt: Any, how: dict[str, Any], words: str
) -> None:
    a, script = agent(says("ok"))
    with pytest.raises(TypeError) as caught:
        await a.send(prompt, **how)
    assert str(caught.value) == words
    assert script.requests == []


async def test_arguments_that_are_none_are_not_there() -> None:
    nothing = dict.fromkeys(
        ["model", "settings", "limits", "system", "options", "base_url", "headers", "environment"]
    )
    more = dict.fromkeys(
        ["transport", "api_key", "executor", "orchestrator", "accumulator", "display_name"]
    )
    script = Script(says("ok"))
    a = Agent(**{**nothing, **more, "model": PROVIDER, "middleware": [script]})
    result = await a.send(
        "hi", model=None, output_schema=None, settings=None, limits=None, on_loss=None, deps=None
    )
    assert result.output == "ok"


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
    (
        {"reasoning": "hot"},
        "must be one of off, minimal, low, medium, high, xhigh, max, or a number of tokens",
    ),
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


@pytest.mark.parametrize("name", ["model_calls", "tool_calls", "total_tokens", "seconds"])
def test_each_limit_is_a_number_or_none(name: str) -> None:
    kept: Any = Limits(**{name: 3})
    assert getattr(kept, name) == 3
    assert getattr(Limits(**{name: None}), name) is None
    wrong = ["3", True, [1], *([] if name == "seconds" else [1.5])]
    for value in wrong:
        with pytest.raises(SettingsError) as caught:
            Limits(**{name: value})
        assert str(caught.value) == f"Limits({name}=…) must be a number or None, not {value!r}"


def test_limits() -> None:
    with pytest.raises(
        SettingsError, match=r"Limits\(model_calls=…\) must be a number or None, not '3'"
    ):
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
    mine = Agent(
        "openai",
        environment={"OPENAI_API_KEY": "sk-mine"},
        environment_only=True,
        transport=transport,
    )
    with pytest.raises(AuthenticationError, match="seen"):
        mine.send_sync("hi")
    assert transport.requests[0].headers["authorization"] == "Bearer sk-mine"
    assert transport.requests[0].path.startswith("https://api.openai.com")


async def test_d41_nan_and_keys_that_are_no_texts_are_error_results() -> None:
    from support.model import call

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
        says(call("nan", id="1"), call("keyed", id="2"), call("mute", id="3")),
        says("ok"),
        tools=[nan, keyed, mute],
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


TOOLS = toolset([])
NEW: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    (
        Agent,
        (),
        {"tools": TOOLS},
        "tools must be a sequence of functions, Tools and Toolsets, not CombinedToolset",
    ),
    (Agent, (), {"tools": 3}, "tools must be a sequence of .*, not int"),
    (
        Agent,
        (),
        {"middleware": cache()},
        "middleware must be a sequence of middlewares, not ResponseCache",
    ),
    (
        Agent,
        (),
        {"middleware": [Throttle]},
        r"middleware\[0\] must be a value of that class, not the class Throttle",
    ),
    (Agent, (), {"hooks": 3}, "hooks must be a sequence of Hooks, not int"),
    (Hooks, (), {"run_start": 3}, "run_start must be a function, not int"),
    (add_global_hooks, (3,), {}, r"hooks\[0\] must be Hooks, not int"),
    (add_global_hooks, (Hooks,), {}, r"hooks\[0\] must be Hooks, not the class Hooks"),
    (telemetry, (3,), {}, "tracer_provider must be a provider of OpenTelemetry's, not int"),
    (telemetry, (None, 3), {}, "meter_provider must be a provider of OpenTelemetry's, not int"),
    (telemetry, (), {"conventions": "2"}, "conventions='2'"),
    (
        fallback,
        ("openai",),
        {"on": 3},
        "on must be a sequence of classes of DragomanError, .*, not int",
    ),
    (fallback, ("openai",), {"retries": -1}, "must be 0 or more"),
    (Throttle, (), {"concurrency": 1, "max_wait": -1}, "must be 0 or more"),
    (Throttle, (), {"concurrency": 1, "clock": 3}, "clock must be a function, not int"),
    (Breaker, (), {"on": 3}, "on must be a function of an error, not int"),
    (cache, (), {"ttl": "1"}, "ttl must be .*, not str"),
    (cache, (), {"scope": 3}, "scope must be str or None, not int"),
    (cache, (), {"clock": 3}, "clock must be a function, not int"),
    (toolset, ("abc",), {}, "must be a sequence of tools, or a function, not str"),
    (toolset, ([3],), {}, r"tools\[0\] must be a function, a Tool or a Toolset, not int"),
    (TOOLS.filter, (3,), {}, "must be a function of a tool and a context, not int"),
    (TOOLS.prepare, (3,), {}, "must be a function of a tool and a context, not int"),
    (TOOLS.rename, ({"a": 1},), {}, "must be str, not int"),
    (TOOLS.prefix, (3,), {}, "must be str, not int"),
    (TOOLS.require_approval, (3,), {}, "must be a bool, or a function .*, not int"),
    (mcp, (None,), {}, "server must be .*, not NoneType"),
    (mcp, ([3],), {}, r"server\[0\] must be str or PathLike, not int"),
    (mcp, ("ftp://host/x",), {}, "no URL of a server"),
    (mcp, ("https://",), {}, "no URL of a server"),
    (mcp, ("x",), {"env": {"A": 1}}, r"env\[1\] must be str, not int"),
    (mcp, ("x",), {"timeout": "1"}, "timeout must be .*, not str; it is seconds"),
    (openapi, (3,), {}, "document must be Mapping or str or Path, not int"),
    (openapi, ("{}",), {"base_url": 3}, "base_url must be str or None, not int"),
    (openapi, ("{}",), {"api_key": 3}, "api_key must be .*, not int"),
    (handoff, (3,), {}, "agent must be an agent, or a function that gives one, not int"),
    (agent_tool, (Agent("openai"), 3), {}, "name must be str or None, not int"),
    (
        ScriptedModel,
        (3,),
        {},
        "answers must be an answer, a sequence of them, or a function, not int",
    ),
    (ScriptedModel, ("a",), {"chunks": 0}, "chunks=0"),
    (assert_calls, ([], 3), {}, r"calls\[0\] must be ToolCallPart, not int"),
]


@pytest.mark.parametrize(("function", "given", "how", "words"), NEW)
def test_what_runs_are_made_with(function: Any, given: Any, how: Any, words: str) -> None:
    with pytest.raises((TypeError, SettingsError), match=words):
        function(*given, **how)


async def test_headers_that_are_no_texts_are_left_out() -> None:
    model = ScriptedModel(["ok"])
    with_hooks = Agent(
        model, hooks=[Hooks(propagate=lambda: {"a": 3}), Hooks(propagate=lambda: {"b": "c"})]
    )  # type: ignore[dict-item, return-value]
    assert (await with_hooks.send("hi")).output == "ok"
    assert "a" not in model.sent[0].headers
    assert model.sent[0].headers["b"] == "c"
