"""What somebody meets who tries the library for the first time: arguments of other libraries, wrong
settings, `print`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman import Agent, ChatResult, Interrupt, Settings, ToolCallPart, tool
from dragoman.errors import SettingsError
from dragoman.testing import ScriptedModel
from support.llm_server import Llm, obliging

pytestmark = pytest.mark.mend("4.5")
Cli = Callable[..., tuple[int, str, str]]


@tool
def roll() -> int:
    """Rolls a die."""
    return 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"instructions": "Be brief."}, "instructions= is system= of the Agent here"),
        ({"system_prompt": "Be brief."}, "system_prompt= is system= of the Agent here"),
        ({"output_type": int}, r"output_type= is send_for\(prompt, Type\)"),
        ({"temperature": 0.5}, r"temperature= is settings=Settings\(temperature=…\) here"),
        ({"tols": []}, "did you mean tools="),
        ({"qqq": 1}, r"Agent\(\) takes no argument qqq; it takes model, tools, system"),
    ],
)
def test_arguments_of_other_libraries_are_explained(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Agent("local", **arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"message_history": []}, "message_history= is history= here"),
        ({"model_settings": {}}, r"model_settings= is settings=Settings\(…\) here"),
        ({"max_tokens": 5}, r"max_tokens= is settings=Settings\(max_tokens=…\) here"),
        ({"atachments": []}, "did you mean attachments="),
    ],
)
def test_arguments_of_a_send_too(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Agent(ScriptedModel("x")).run("Hi.", **arguments)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(max_tokens=-1), r"Settings\(max_tokens=-1\): give 1 or more"),
        (Settings(max_tokens=0), "give 1 or more"),
        (Settings(temperature=-0.1), "give 0 or more"),
        (Settings(top_p=1.5), "give 0 to 1"),
        (Settings(tool_choice="nope"), 'tool_choice="nope".*there is no such tool.*Tools: roll'),
    ],
)
def test_settings_that_no_provider_takes_are_refused_before_anything_is_sent(
    settings: Settings, words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        Agent(ScriptedModel("x"), tools=[roll]).run("Hi.", settings=settings)


@pytest.mark.anyio
@pytest.mark.parametrize("choice", ["auto", "none", "required", "roll"])
async def test_a_tool_that_is_there_may_be_chosen(choice: str) -> None:
    result = await Agent(ScriptedModel("x"), tools=[roll]).send(
        "Hi.", settings=Settings(tool_choice=choice)
    )
    assert result.output == "x"


@pytest.mark.anyio
async def test_what_is_printed_is_short() -> None:
    agent = Agent(ScriptedModel("word " * 500), tools=[roll])
    assert str(agent) == "<Agent scripted:scripted, 1 tools>" or str(agent).startswith("<Agent ")
    result = await agent.send("Hi.")
    assert len(str(result)) < 200
    assert str(result).startswith("ChatResult('word word")
    assert "messages=" in repr(result)
    interrupt = Interrupt(
        "c1", "approval", ToolCallPart("c1", "pay", {"whom": "Ann", "text": "x" * 5000})
    )
    assert repr((interrupt,)).startswith("(Interrupt('c1', 'approval', pay(whom='Ann', text=")
    assert len(repr(interrupt)) < 200
    assert str(ChatResult("")) == "ChatResult('', unspecified)"


@pytest.mark.parametrize("words", [("hello there",), ("--json", "hello"), ("hello",)])
def test_a_prompt_without_a_command_is_one_of_chat(
    words: tuple[str, ...], cli: Cli, llm: Llm
) -> None:
    llm.reply = obliging
    code, out, _ = cli(*words, "-m", "openai-compatible:m", "--base-url", llm.url)
    assert code == 0
    assert "Gladly." in out
    assert llm.requests[-1].messages[-1].text.startswith("hello")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("chta", "chat"), ("server", "serve"), ("--verson", "--version"), ("thread", "threads")],
)
def test_a_slip_of_the_keys_is_no_prompt(word: str, hint: str, cli: Cli) -> None:
    code, out, err = cli(word)
    assert (code, out) == (2, "")
    assert "No such" in err and hint in err
