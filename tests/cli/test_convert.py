"""`dragoman convert`: conversations of any format → another."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import formats
from support.cli import Stdin, one_line

Cli = Callable[..., tuple[int, str, str]]
HI = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]
PICTURE = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
GOOGLE = [
    {"role": "user", "parts": [{"text": "Hi."}]},
    {"role": "model", "parts": [{"text": "Ho."}]},
]
UNREAD = [{"role": "user", "content": "Hi."}, {"role": "robot", "content": "Beep."}]


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def values(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """Writes a file → its path."""

    def write(text: str | bytes, name: str = "in.jsonl") -> str:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_lines_of_any_format_become_lines_of_one(cli: Cli, file: Any) -> None:
    code, out, err = cli("convert", file(lines(HI, {"contents": GOOGLE}, "Hi.")), "--to", "google")
    assert code == 0
    assert values(out) == [{"contents": GOOGLE}, {"contents": GOOGLE}, {"contents": GOOGLE[:1]}]
    assert err == "3 of 3 conversations written\n"


def test_it_reads_what_is_piped_in_and_is_quiet_on_demand(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(lines({"messages": HI}).encode()))
    assert cli("convert", "-t", "sharegpt", "-q") == (
        0,
        '{"conversations":[{"from":"human","value":"Hi."},{"from":"gpt","value":"Ho."}]}\n',
        "",
    )


@pytest.mark.parametrize(
    ("shape", "source", "out"),
    [
        ("auto", HI, HI),
        ("auto", {"messages": HI}, {"messages": HI}),
        ("list", {"messages": HI}, HI),
        ("body", HI, {"messages": HI}),
    ],
)
def test_a_list_stays_a_list_and_a_body_a_body(
    cli: Cli, file: Any, shape: str, source: Any, out: Any
) -> None:
    code, found, _ = cli("convert", file(lines(source)), "-t", "openai_chat", "--shape", shape)
    assert (code, values(found)) == (0, [out])


@pytest.mark.parametrize(
    ("name", "text", "conversations"),
    [
        ("one.json", json.dumps(HI), 1),
        ("one.json", json.dumps(HI, indent=2), 1),
        ("any", json.dumps({"messages": HI}, indent=1), 1),
        (
            "set.json",
            json.dumps([{"id": 1, "messages": HI}, {"id": 2, "messages": HI}], indent=1),
            2,
        ),
        ("set", json.dumps([HI, HI, HI]), 3),
        (
            "odd.json",
            json.dumps(HI, indent=1).replace("[\n", '[{"role": "user", "content": "Hi."},\n', 1),
            1,
        ),
        ("lines.json", lines(HI, HI), 2),
        ("bom.jsonl", "\ufeff" + lines(HI, HI), 2),
        ("blank.jsonl", "\n\n" + lines(HI) + "\n" + lines(HI), 2),
        ("deep.json", json.dumps([[{"role": "user", "content": "Hi."}]] * 3), 3),
        ("empty.jsonl", "", 0),
        ("unended.jsonl", lines(HI) + json.dumps(HI), 2),
    ],
)
def test_lines_documents_and_sets_are_told_apart(
    cli: Cli, file: Any, name: str, text: str, conversations: int
) -> None:
    code, out, err = cli("convert", file(text, name), "--to", "google")
    assert (code, len(values(out))) == (0, conversations)
    assert err.startswith(f"{conversations} of {conversations} ")


@pytest.mark.slow
def test_several_files_are_one_output_in_order(cli: Cli, file: Any, tmp_path: Path) -> None:
    first, second = (
        file(lines(HI), "a.jsonl"),
        file(gzip.compress(lines(GOOGLE).encode()), "b.jsonl.gz"),
    )
    out = tmp_path / "out.jsonl.gz"
    assert cli("convert", first, second, "-t", "openai_chat", "-o", str(out))[0] == 0
    assert values(gzip.decompress(out.read_bytes()).decode()) == [HI, HI]


def test_fields_beside_a_conversation_are_lost_or_kept(cli: Cli, file: Any, tmp_path: Path) -> None:
    source = file(lines({"id": 7, "messages": HI, "tools": []}))
    report = tmp_path / "report.jsonl"
    command = ("convert", source, "-t", "anthropic", "--keep", "id", "--report", str(report))
    code, out, err = cli(*command)
    assert (code, values(out)) == (0, [{"id": 7, "messages": HI}])
    assert err.splitlines() == [
        "1 of 1 conversations written; 1 lost something",
        "  lost         times  conversations",
        "  option           1              1",
    ]
    (entry,) = values(report.read_text())
    assert entry["losses"][0].pop("why")
    assert entry == {
        "file": source,
        "conversation": 1,
        "format": "openai_chat",
        "written": True,
        "losses": [
            {"message": None, "part": None, "what": "option", "which": "tools", "minor": False}
        ],
        "problems": [],
    }


def test_a_request_stays_one_between_wires(cli: Cli, file: Any) -> None:
    tool = {"name": "look", "parameters": {"type": "object"}}
    body = {
        "model": "gpt-5",
        "messages": HI,
        "tools": [{"type": "function", "function": tool}],
        "id": 7,
    }
    command = ("convert", file(lines(body)), "-q", "-t", "google")
    google = {
        "contents": GOOGLE,
        "tools": [
            {"functionDeclarations": [{"name": "look", "parametersJsonSchema": tool["parameters"]}]}
        ],
    }
    assert values(cli(*command)[1]) == [google]
    assert values(cli(*command, "--keep", "id", "--keep", "model")[1]) == [
        {"id": 7, "model": "gpt-5", **google}
    ]
    assert values(cli(*command, "--shape", "list")[1]) == [{"contents": GOOGLE}]
    (claude,) = values(cli("convert", file(lines(body)), "-q", "-m", "anthropic:claude-x")[1])
    assert (claude["model"], claude["tools"][0]["name"]) == ("claude-x", "look")


def test_what_cannot_be_read_stops_it_and_is_named(cli: Cli, file: Any) -> None:
    source = file(lines(HI, UNREAD, HI))
    code, out, err = cli("convert", source, "-t", "google", "-f", "openai_chat")
    assert (code, len(values(out))) == (1, 1)
    assert one_line(err, f"{source}, conversation 2: ", "robot", "--errors skip or collect goes on")


@pytest.mark.parametrize(("errors", "written"), [("skip", [2, 2]), ("collect", [2, 1, 2])])
def test_what_cannot_be_read_is_left_out_and_reported(
    cli: Cli, file: Any, tmp_path: Path, errors: str, written: list[int]
) -> None:
    source, report = file(lines(HI, UNREAD) + "{oops\n" + lines(HI)), tmp_path / "report.jsonl"
    command = (
        "convert",
        source,
        "-t",
        "google",
        "-f",
        "openai_chat",
        "--errors",
        errors,
        "--report",
        str(report),
    )
    code, out, err = cli(*command)
    assert (
        code,
        [len(each["contents"]) if isinstance(each, dict) else 0 for each in values(out)],
    ) == (1, written)
    assert err == f"{len(written)} of 4 conversations written; 2 could not be read completely\n"
    found = values(report.read_text())
    assert [(each["conversation"], each["written"]) for each in found] == [
        (2, errors == "collect"),
        (3, False),
    ]
    index = 1 if errors == "collect" else -1
    assert [each["problems"][0]["index"] for each in found] == [index, -1]


def test_who_reads_it_gets_what_he_may(cli: Cli, file: Any) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    said = {
        "messages": [
            HI[0],
            {"role": "assistant", "content": [thinking, {"type": "text", "text": "Ho."}]},
        ]
    }
    source = file(lines(said))
    command = ("convert", source, "-q", "-m", "anthropic:claude-sonnet-4-5")
    assert values(cli(*command, "--by", "anthropic:claude-sonnet-4-5")[1]) == [said]
    assert "c2ln" not in cli(*command, "--by", "openai:gpt-5")[1]


def test_versions_are_named(cli: Cli, file: Any) -> None:
    code, out, _ = cli(
        "convert", file(lines(HI)), "-t", "langchain", "--version", "constructor", "-q"
    )
    assert (code, values(out)[0][0]["lc"]) == (0, 1)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("-t", "nonsense"), 2, ("--to", "there are openai_chat")),
        ((), 2, ("--to",)),
        (("-t", "google", "-f", "nonsense"), 2, ("--from", "there are openai_chat")),
        (("-t", "google", "--resume"), 2, ("--resume", "give -o")),
        (("-t", "langchain", "--version", "v9"), 3, ("no version 'v9'",)),
        (("-t", "google", "--version", "v9"), 3, ("one version only",)),
        (("-t", "google", "-o", "IN"), 2, ("must be different files",)),
        (("-t", "google", "-o", "x", "--report", "x"), 2, ("must be different files",)),
        (("-t", "langchain", "--keep", "id"), 2, ("--keep",)),
        (("-t", "google", "/nonsense.jsonl"), 2, ("cannot read /nonsense.jsonl",)),
        (("-t", "google", "--errors", "never"), 2, ("--errors",)),
        (("-m", "nobody:x"), 3, ("no provider is named",)),
        (("-t", "google", "-o", "/nonsense/out"), 1, ("cannot read or write",)),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    cli: Cli, file: Any, options: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    source = file(lines(HI))
    found, out, err = cli(
        "convert", source, *(source if each == "IN" else each for each in options)
    )
    assert (found, out) == (code, "")
    assert one_line(err, *words)


def test_a_damaged_gzip_file_is_named(cli: Cli, file: Any) -> None:
    packed = gzip.compress(lines(*[HI] * 50).encode())
    for data in (packed[:-9], b"no gzip", packed[:30] + b"\xff\xff\xff" + packed[33:]):
        code, _, err = cli("convert", file(data, "a.jsonl.gz"), "-t", "google")
        assert code == 1
        assert one_line(err, "a.jsonl.gz is no whole gzip file")


def test_a_terminal_is_no_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(None))
    code, _, err = cli("convert", "-t", "google")
    assert code == 2
    assert one_line(err, "pipe conversations in")


def test_the_help_and_the_guide_name_every_format(cli: Cli) -> None:
    _, out, _ = cli("convert", "--help")
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "bring-your-history.md").read_text()
    for name in formats.names():
        assert re.search(rf"\b{name}\b", out), name
        assert f"| `{name}`" in guide or f", `{name}`" in guide, name


def test_without_a_target_it_says_what_is_missing(cli: Cli) -> None:
    code, _, err = cli("convert", "chats.jsonl")
    assert code == 2
    assert one_line(err, "--to", "give a format, or the model")


def test_a_training_line_holds_messages_and_tools_alone(cli: Cli, file: Any) -> None:
    look = {"name": "look", "parameters": {"type": "object"}}
    tool = {"type": "function", "function": look}
    body = {"model": "gpt-5", "temperature": 0.5, "messages": HI, "tools": [tool]}
    source = file(lines(HI, body))
    command = ("convert", source, "-q", "--shape", "training")
    openai = values(cli(*command, "-m", "openai:gpt-4o")[1])
    assert openai == [{"messages": HI}, {"messages": HI, "tools": [tool]}]
    (_, claude) = values(cli(*command, "-m", "anthropic:claude-x")[1])
    assert set(claude) == {"messages", "tools"}
    system = {"max_tokens": 9, "system": "Be short.", "messages": HI}
    kept = file(lines(system), "b.jsonl")
    command = ("convert", kept, "-q", "-f", "anthropic", "--shape", "training")
    assert values(cli(*command, "-t", "anthropic")[1]) == [{"system": "Be short.", "messages": HI}]
    assert set(values(cli(*command, "-t", "google")[1])[0]) == {"contents", "systemInstruction"}
    (row,) = values(cli(*command, "-t", "sharegpt", "--keep", "max_tokens")[1])
    assert set(row) == {"conversations", "max_tokens"}


def test_conversations_without_an_answer_are_left_out_on_demand(
    cli: Cli, file: Any, tmp_path: Path
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    calls = [HI[0], {"role": "assistant", "tool_calls": [call]}]
    result = [*calls, {"role": "tool", "tool_call_id": "c", "content": "4"}]
    source, report = file(lines(HI, HI[:1], calls, result, [])), tmp_path / "report.jsonl"
    command = ("convert", source, "-t", "openai_chat", "-f", "openai_chat")
    code, out, err = cli(*command, "--answered", "--report", str(report))
    assert (code, values(out)[0], len(values(out))) == (0, HI, 2)
    assert err == "2 of 5 conversations written; 3 left out without an answer at the end\n"
    reported = values(report.read_text())
    assert [(each["conversation"], each["written"]) for each in reported] == [
        (2, False),
        (4, False),
        (5, False),
    ]
    assert reported[0]["problems"][0]["error"] == "its last message is no answer"
    assert len(values(cli(*command, "-q")[1])) == 5
