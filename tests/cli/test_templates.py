"""Templates of the command line (issue 30, 4): what is stored, filled in and sent; broken ones."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataPart, Message, TextPart
from dragoman.cli.templates import (
    Template,
    dump_template,
    fill_template,
    merge_templates,
    parse_template,
)
from dragoman.json_bytes import JsonMap
from support.cli import Stdin, one_line
from support.llm_server import Llm, obliging


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the templates."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "dragoman" / "templates"


def asked(llm: Llm) -> str:
    return llm.requests[-1].messages[-1].text


@pytest.mark.parametrize(
    ("prompt", "user", "params", "text"),
    [
        ("S: $input", "in", {}, "S: in"),
        ("No variables", "", {}, "No variables"),
        ("No variables", "in", {}, "No variables\n\nin"),
        ("", "in", {}, "in"),
        ("$one and $two", "", {"one": 1, "two": 2}, "1 and 2"),
        ("$one and $$2", "", {"one": 1}, "1 and $2"),
        ("${one}s", "", {"one": "$two"}, "$twos"),
        ("$input", "costs $5 or $name", {}, "costs $5 or $name"),
    ],
)
def test_variables_are_filled_in_once(prompt: str, user: str, params: JsonMap, text: str) -> None:
    assert fill_template(Template(prompt=prompt), user, params).prompt == text


def test_a_template_is_stored_and_used(cli, llm: Llm, folder: Path) -> None:
    assert cli("Say it as $voice: $input", "-s", "Be brief.", "--save", "say") == (0, "", "")
    assert not llm.requests
    assert stat.S_IMODE((folder / "say.toml").stat().st_mode) == 0o600
    assert cli("-t", "say", "hello $x", "-p", "voice", "a cat") == (
        0,
        "You said: Say it as a cat: hello $x\n",
        "",
    )
    assert llm.requests[0].messages[0] == Message.system("Be brief.")
    cli("-t", "say", "hi", "-p", "voice", "x", "-s", "Be $long.")
    assert llm.requests[1].messages[0] == Message.system("Be $long.")


def test_everything_of_a_prompt_is_stored(cli, llm: Llm, tmp_path: Path, folder: Path) -> None:
    llm.reply = obliging
    notes, photo = tmp_path / "notes.txt", tmp_path / "scan"
    notes.write_text("milk")
    photo.write_bytes(b"\x89PNG\r\n\x1a\n\0")
    saved = cli(
        *("$input", "-m", "openai-compatible:other", "-o", "temperature", "0.5", "-o", "seed", "7"),
        *("-o", "extra", '{"a": null}', "-f", str(notes), "--at", str(photo), "image/png"),
        *("--schema", "name", "--functions", 'def f(x: int):\n    "doc"', "--save", "all"),
    )
    assert saved == (0, "", "")
    code, out, _ = cli("-t", "all", "go")
    assert (code, json.loads(out)) == (0, {"name": "Oslo"})
    request = llm.requests[0]
    assert (request.model, request.settings.temperature, request.settings.seed) == ("other", 0.5, 7)
    assert request.tools[0].name == "f"
    assert request.options["extra"] == {"a": None}
    notes_part, prompt, file = request.messages[-1].content
    assert (notes_part, prompt) == (TextPart("milk"), TextPart("go"))
    assert isinstance(file, DataPart)
    assert file.mime_type == "image/png"


def test_defaults_stand_for_variables_without_a_value(cli, llm: Llm) -> None:
    cli("$a and $b: $input", "-p", "a", "1", "--save", "two")
    code, _, err = cli("-t", "two", "x")
    assert code == 2
    assert one_line(err, "variables without a value: b", "-p b VALUE")
    assert cli("-t", "two", "x", "-p", "b", "2")[1] == "You said: 1 and 2: x\n"
    assert cli("-t", "two", "x", "-p", "b", "2", "-p", "a", "3")[1] == "You said: 3 and 2: x\n"


def test_what_is_piped_in_is_the_input(
    cli, llm: Llm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("s3cret")
    cli("Sum up: ", "--save", "sum")
    monkeypatch.setattr(sys, "stdin", Stdin(f"@{tmp_path}/secret".encode()))
    cli("-t", "sum")
    assert asked(llm) == f"Sum up: \n\n@{tmp_path}/secret"


def test_a_file_can_be_a_template(cli, llm: Llm, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('prompt = "Mine: $input"\noptions = { max_tokens = 9 }\n')
    cli("-t", str(file), "x")
    assert asked(llm) == "Mine: x"
    assert llm.requests[0].settings.max_tokens == 9
    cli("-t", str(file), "x", "--max-tokens", "5")
    assert llm.requests[1].settings.max_tokens == 5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("prompt = ", ("bad.toml: no TOML",)),
        ("promt = 'x'", ("promt", "a template has prompt, system")),
        ("prompt = 5", ("prompt", "str")),
        ("prompt = 'costs $5'", ("$$",)),
        ("schema = 'a itn'", ("column 3",)),
        ("options = { temprature = 1 }", ("did you mean 'temperature'",)),
        ("a=" * 600_000, ("larger than",)),
        ("x = " + "[" * 5000, ("no TOML",)),
        ("\xff", ("no TOML",)),
    ],
)
def test_a_broken_template_is_one_line(
    cli, llm: Llm, folder: Path, content: str, words: tuple[str, ...]
) -> None:
    folder.mkdir(parents=True)
    (folder / "bad.toml").write_bytes(content.encode("latin-1"))
    code, out, err = cli("-t", "bad", "x")
    assert (code, out) == (2, "")
    assert one_line(err, *words)
    assert not llm.requests


def test_a_template_that_is_not_there_names_those_that_are(cli) -> None:
    cli("x", "--save", "summary")
    assert one_line(cli("-t", "sumary", "x")[2], "did you mean 'summary'")
    assert one_line(cli("-t", "0.5", "x")[2], "--temperature")
    assert one_line(cli("-t", "/nowhere/x.toml", "x")[2], "/nowhere/x.toml")
    assert one_line(cli("x", "--save", "../x")[2], "no name of a template")
    assert one_line(cli("x", "--save", "x", "-t", "summary")[2], "--save")
    assert one_line(cli("--save", "empty")[2], "nothing to save")
    assert one_line(cli("x", "-p", "a", "1")[2], "needs a template")
    assert one_line(cli("costs $5", "--save", "x")[2], "write $$")


def test_the_commands(cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("Sum up", "-s", "Brief", "--save", "sum")
    (folder / "bad.toml").write_text("x = 1")
    code, out, err = cli("templates", "list")
    assert (code, out) == (0, "sum: system: Brief prompt: Sum up\n")
    assert one_line(err, "bad.toml")
    assert cli("templates", "show", "sum")[1] == 'prompt = "Sum up"\nsystem = "Brief"\n'
    assert cli("templates", "path")[1] == f"{folder}\n"
    editor = folder.parent / "editor.py"
    editor.write_text("import sys\nopen(sys.argv[1], 'a').write('model = \"openai\"\\n')\n")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    assert cli("templates", "edit", "sum") == (0, "", "")
    assert 'model = "openai"' in (folder / "sum.toml").read_text()
    code, _, err = cli("templates", "edit", "sum")
    assert code == 2
    assert one_line(err, "no TOML")
    monkeypatch.setenv("VISUAL", "/nowhere/editor")
    assert one_line(cli("templates", "edit", "new")[2], "/nowhere/editor")
    assert cli("templates", "remove", "sum")[0] == 0
    assert one_line(cli("templates", "remove", "sum")[2], "no template 'sum'")
    assert one_line(cli("templates", "show", "../../x")[2], "no name")


def test_a_folder_that_cannot_be_written_is_one_line(cli, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file")
    code, _, err = cli("x", "--save", "x")
    assert code in (1, 2, 3)
    assert one_line(err)
    assert os.environ["XDG_CONFIG_HOME"] in err


VALUES = st.one_of(st.text(max_size=30), st.integers(-9, 9), st.booleans(), st.floats(-9, 9))
TABLES = st.dictionaries(st.text(max_size=8), VALUES, max_size=3)
TEMPLATES = st.builds(
    Template,
    prompt=st.text(),
    system=st.text(),
    functions=st.text(),
    tools=st.lists(st.text(max_size=9), max_size=3).map(tuple),
    options=TABLES,
    defaults=TABLES,
    attachment_types=st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=2),
    extract=st.booleans(),
)


@given(TEMPLATES)
def test_what_is_written_is_read(template: Template) -> None:
    assert parse_template(dump_template(template).encode(), "x") == template


@given(TEMPLATES)
def test_merging_with_nothing_changes_nothing(template: Template) -> None:
    assert merge_templates(template, Template()) == template
    nothing = merge_templates(Template(prompt=template.prompt), template)
    assert nothing == template


@given(st.binary(max_size=200))
def test_any_bytes_are_a_template_or_one_error(content: bytes) -> None:
    import typer

    try:
        parse_template(content, "x")
    except typer.BadParameter as error:
        assert "x: " in str(error)
