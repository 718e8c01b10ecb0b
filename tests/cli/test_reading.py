"""`dragoman plan`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import DataPart, Message, dump_messages
from support.cli import Stdin, one_line

Cli = Callable[..., tuple[int, str, str]]
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
CHAT = [{"role": "user", "content": [{"type": "text", "text": "Listen."}, AUDIO]}]


def test_a_file(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(CHAT, indent=1))
    code, out, err = cli("plan", "anthropic:claude-sonnet-4-6", str(file))
    assert (code, err) == (0, "")
    assert "data audio/wav in message 0: the API takes no audio/wav" in out
    code, out, _ = cli("plan", "mistral", str(file), "--json")
    assert (code, json.loads(out)["ok"], json.loads(out)["losses"]) == (0, True, [])


def test_lines_on_standard_input_in_several_formats(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = dump_messages([Message.user(DataPart(b"ftyp", "video/mp4"))])
    lines = b"\n".join([json.dumps({"messages": CHAT}).encode(), b"", ours, b'"Hello"'])
    monkeypatch.setattr("sys.stdin", Stdin(lines))
    code, out, _ = cli("plan", "cohere", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(each["line"], [loss["which"] for loss in each["losses"]]) for each in found] == [
        (1, ["audio/wav"]),
        (2, ["video/mp4"]),
        (3, []),
    ]
    assert found[0]["losses"][0]["minor"] is False
    monkeypatch.setattr("sys.stdin", Stdin(lines))
    assert cli("plan", "cohere")[1].splitlines()[0].startswith("line 1: cohere:")


def test_the_format_may_be_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, lost in (("ollama", []), ("openai_chat", ["name"])):
        talk = [{"role": "user", "content": "Hi", **({"name": "ann"} if lost else {})}]
        monkeypatch.setattr("sys.stdin", Stdin(json.dumps(talk).encode()))
        code, out, _ = cli("plan", "google", "--from", name, "--json")
        assert (code, [loss["which"] for loss in json.loads(out)["losses"]]) == (0, lost)


@pytest.mark.parametrize(
    ("arguments", "data", "code", "word"),
    [
        (("plan", "opnai_chat"), b"[]", 3, "openai_chat"),
        (("plan", "openai", "--from", "nothing"), b"[]", 3, "nothing"),
        (("plan", "openai"), b"", 1, "no conversation"),
        (("plan", "openai"), b"{", 1, "no JSON"),
        (("plan", "openai"), b'[{"role": "nobody"}]', 1, "position 0"),
        (("plan", "openai", "/nothing/there"), b"", 2, "/nothing/there"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    data: bytes,
    code: int,
    word: str,
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(data))
    found, out, err = cli(*arguments)
    assert (found, out) == (code, "")
    assert one_line(err, word)


def test_a_body_is_planned_with_its_tools(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    tool = {"name": "f", "input_schema": {"type": "object", "properties": {"a": True}}}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    file.write_text(json.dumps({**body, "tools": [{**tool, "strict": True}]}))
    for target in ("openai_responses", "openai:gpt-5"):
        assert "field tools.strict" in cli("plan", target, str(file))[1]
        fields = json.loads(cli("plan", "--json", target, str(file))[1])
        assert [(loss["which"], loss["minor"]) for loss in fields["settings"]] == [
            ("tools.strict", True)
        ]
