"""Tools and settings of a prompt (issue 30, 4): `-T`, `--functions`, `--td`, `--ta`, `-o`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import ModelRequest, ToolSpec
from support.cli import one_line
from support.llm_server import Llm
from support.model import call, says

TWICE = '''
def twice(x: int) -> int:
    """Doubles."""
    return _double(x)


def _double(x):
    return 2 * x
'''


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def calling(name: str, **arguments: object):
    def reply(request: ModelRequest):
        results = request.messages[-1].tool_results
        if results:
            return says(f"It is {results[0].result}.")
        return says(call(name, **arguments))

    return reply


def names(llm: Llm) -> list[str]:
    return [tool.name for tool in llm.requests[-1].tools if isinstance(tool, ToolSpec)]


def test_functions_are_tools(cli, llm: Llm, here: Path) -> None:
    llm.reply = calling("twice", x=21)
    assert cli("x", "--functions", TWICE) == (0, "It is 42.\n", "")
    assert names(llm) == ["twice"]
    (here / "f.py").write_text(TWICE)
    assert cli("x", "--functions", "f.py", "--functions", "def g(): return 1")[0] == 0
    assert names(llm) == ["twice", "g"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def f(:", ("line 1", "SyntaxError")),
        ("1 / 0", ("ZeroDivisionError",)),
        ("import sys\nsys.exit(3)", ("SystemExit",)),
        ("x = 1", ("defines no function",)),
        ("def f(*a): ...", ("f",)),
        ("from os.path import join", ("defines no function",)),
        ("nowhere.py", ("nowhere.py", "No such file")),
        ("\0", ()),
    ],
)
def test_code_that_serves_for_nothing_is_one_line(
    cli, llm: Llm, code: str, words: tuple[str, ...]
) -> None:
    exit_code, out, err = cli("x", "--functions", code)
    assert (exit_code, out) == (2, "")
    assert one_line(err, *words)
    assert not llm.requests


def test_a_tool_is_chosen_by_its_name(cli, llm: Llm, here: Path) -> None:
    (here / "tools_by_name.py").write_text(
        "from dragoman import tool\n@tool\ndef one(): ...\n@tool\ndef two(): ...\n"
        "def three(): ...\nfour = 4\n"
    )
    cli("x", "--tools", "tools_by_name")
    assert names(llm) == ["one", "two"]
    cli("x", "--tools", "tools_by_name", "-T", "two")
    assert names(llm) == ["two"]
    cli("x", "-T", "tools_by_name:one", "-T", "tools_by_name:three")
    assert names(llm) == ["one", "three"]
    for arguments, word in {
        ("--tools", "tools_by_name", "-T", "tow"): "did you mean 'two'",
        ("-T", "tow"): "Known are none",
        ("-T", "tools_by_name:four"): "no tool and no function",
        ("-T", "tools_by_name:nothing"): "nothing",
        ("-T", "nowhere:x"): "no module",
    }.items():
        code, _, err = cli("x", *arguments)
        assert code == 2
        assert one_line(err, word)
    code, out, _ = cli("tools", "list", "--tools", "tools_by_name", "--functions", TWICE)
    assert (code, out) == (0, "one(): \ntwo(): \ntwice(x): Doubles.\n")


def test_calls_are_shown(cli, llm: Llm) -> None:
    llm.reply = calling("twice", x=21)
    code, out, err = cli("x", "--functions", TWICE, "--td")
    assert (code, out) == (0, "It is 42.\n")
    assert err == 'Tool call: twice({"x":21})\n  42\n'


def test_each_call_is_approved(cli, llm: Llm) -> None:
    llm.reply = calling("twice", x=21)
    code, _, err = cli("x", "--functions", TWICE, "--ta")
    assert code == 1
    assert 'pending: waits for approval: twice {"x": 21}' in err
    assert len(llm.requests) == 1


# settings


def test_options_are_settings_or_fields_of_the_provider(cli, llm: Llm) -> None:
    cli(
        *("x", "-o", "temperature", "0.5", "-o", "max_tokens", "9", "-o", "stop", "END"),
        *("-o", "reasoning", "low", "-o", "user", "ada", "-o", "logit_bias", '{"5": 1}'),
    )
    request = llm.requests[0]
    assert (request.settings.temperature, request.settings.max_tokens) == (0.5, 9)
    assert request.settings.stop == ("END",)
    assert request.settings.reasoning == "low"
    assert request.options["logit_bias"] == {"5": 1}
    cli("x", "-o", "temperature", "0.5", "--temperature", "0.7", "-o", "stop", '["a", "b"]')
    assert llm.requests[1].settings.temperature == 0.7
    assert llm.requests[1].settings.stop == ("a", "b")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("temprature", "1"), ("did you mean 'temperature'", "There are temperature, max_tokens")),
        (("temperature", "hot"), ("temperature 'hot'", "float")),
        (("temperature", "3"), ("from 0 to 2",)),
        (("max_tokens", "0"), ("at least 1",)),
        (("max_tokens", "1.5"), ("int",)),
        (("reasoning", "hard"), ("hard",)),
        (("parallel_tool_calls", "maybe"), ("bool",)),
        (("temperature",), ("requires 2 arguments",)),
    ],
)
def test_a_bad_option_is_one_line(
    cli, llm: Llm, option: tuple[str, ...], words: tuple[str, ...]
) -> None:
    code, out, err = cli("chat", "x", "-o", *option)
    assert (code, out) == (2, "")
    assert one_line(err, *words)
    assert not llm.requests
