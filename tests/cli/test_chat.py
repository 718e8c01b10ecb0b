"""`dragoman chat`: what is sent, and what is shown (seed-behaviours 1A, "Command line"; SC-nn:
7.3)."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from dragoman import DataPart, Message, TextPart, ThinkingPart
from dragoman.cli.screen import Screen, find_cost, format_usage
from dragoman.message import FinishReason, Origin, Usage
from dragoman.result import ChatResult, ModelCall
from support.cli import SRC, Stdin, one_line, shell
from support.llm_server import Llm, decoded, obliging
from support.model import says

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def test_SC_001_a_prompt_is_answered(cli) -> None:
    assert cli("chat", "Hello there") == (0, "You said: Hello there\n", "")


@pytest.mark.slow
def test_SC_011_a_piped_prompt_is_answered_and_the_answer_is_streamed(llm: Llm) -> None:
    done = shell("chat", stdin=b"hi\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"You said: hi\n", b"")
    assert llm.requests[0].stream


def test_a_piped_text_follows_the_prompt(cli, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin("eins\nzwölf\n\n".encode()))
    cli("chat", "Translate:")
    assert llm.requests[0].messages[-1].content == (TextPart("Translate:\n\neins\nzwölf"),)


def test_what_is_piped_in_attaches_no_file(
    cli, llm: Llm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("s3cret")
    monkeypatch.setattr(sys, "stdin", Stdin(f"@{tmp_path}/secret @nobody".encode()))
    assert cli("chat")[0] == 0
    assert llm.requests[0].messages[-1].content == (TextPart(f"@{tmp_path}/secret @nobody"),)


@pytest.mark.slow
def test_bytes_that_are_no_text_are_replaced(llm: Llm) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "chat", b"a\xffb"],
        input=b"caf\xe9 au lait",
        capture_output=True,
        env={**os.environ, "PYTHONPATH": SRC},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "a�b\n\ncaf� au lait" in llm.requests[0].messages[-1].text


@pytest.mark.parametrize(
    "data", [PNG, bytes(range(128, 256)) * 9, b"\x1f\x8b\x08" + b"\xf1\xe2" * 50]
)
def test_what_is_piped_in_and_is_no_text_is_refused(
    cli, llm: Llm, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(data))
    code, out, err = cli("chat", "What is it?")
    assert (code, out) == (2, "")
    assert one_line(err, "not text", "@FILE")
    assert not llm.requests


def test_SC_052_without_anything_to_ask_it_is_a_usage_error(cli, llm: Llm) -> None:
    code, out, err = cli("chat")
    assert (code, out) == (2, "")
    assert one_line(err, "nothing to ask")
    assert not llm.requests


def test_json_on_a_terminal_needs_a_prompt(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(None))
    code, out, err = cli("chat", "--json")
    assert (code, out) == (2, "")
    assert one_line(err, "--json", "needs a prompt")


def test_settings_and_the_system_prompt_are_sent(cli, llm: Llm) -> None:
    cli(
        "chat",
        "x",
        "-s",
        "Be brief.",
        "--temperature",
        "0.5",
        "--max-tokens",
        "9",
        "--reasoning",
        "low",
    )
    request = llm.requests[0]
    assert request.messages[0] == Message.system("Be brief.")
    assert (request.settings.temperature, request.settings.max_tokens) == (0.5, 9)
    assert request.settings.reasoning == "low"


def test_SC_020_a_reasoning_budget_is_a_number_of_tokens(
    cli, llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert cli("chat", "x", "-m", "claude", "--reasoning", "2048")[0] == 0
    assert llm.requests[0].settings.reasoning == 2048


@pytest.mark.parametrize(
    "arguments",
    [
        ("--temperature", "2.1"),
        ("--temperature", "-1"),
        ("--temperature", "hot"),
        ("-t", "0.5"),
        ("--max-tokens", "0"),
        ("--reasoning", "hard"),
        ("--output-schema", "{"),
        ("--output-schema", "[]"),
        ("--output-schema", "@/nowhere.json"),
        ("--nonsense",),
        ("-m",),
    ],
)
def test_SC_056_a_bad_option_is_a_usage_error_in_one_line(
    cli, llm: Llm, arguments: tuple[str, ...]
) -> None:
    code, out, err = cli("chat", "x", *arguments)
    assert (code, out) == (2, "")
    assert one_line(
        err,
        "dragoman chat --help" if arguments[0] in ("--temperature", "--nonsense") else arguments[0],
    )
    assert not llm.requests


def test_the_embedded_model_is_loaded_while_the_rest_is_imported(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str | None, bool]] = []

    def load_early(model: str | None) -> None:
        begun.append((model, "dragoman.agent" in sys.modules))

    monkeypatch.setattr("dragoman.providers.local.preload_model", load_early)
    for module in [name for name in sys.modules if name == "dragoman.agent"]:
        monkeypatch.delitem(sys.modules, module)
    assert cli("chat", "x", "-m", "local:/nowhere.gguf")[0] == 3
    assert cli("chat", "x")[0] == 0
    assert begun == [("/nowhere.gguf", False)]


def test_SC_059_the_option_goes_before_the_variable(
    cli, llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    cli("chat", "x", "-m", "anthropic:other")
    cli("chat", "x")
    assert [request.model for request in llm.requests] == ["other", "tiny"]
    assert llm.headers[0]["x-api-key"] == "secret"


def test_the_base_url_is_where_it_is_sent(cli, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    assert cli("chat", "x", "--base-url", llm.url)[0] == 0


# attachments


def test_SC_006_a_text_file_is_attached_as_text(cli, llm: Llm, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk, é")
    cli("chat", f"Read @{tmp_path}/notes.txt, please")
    text, file = llm.requests[0].messages[-1].content
    assert text == TextPart("Read notes.txt, please")
    assert isinstance(file, TextPart)
    assert "milk, é" in file.text
    assert "notes.txt" in file.text


def test_a_tilde_is_the_home_folder(
    cli, llm: Llm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes").write_text("milk")
    (tmp_path / "wow!").write_text("cheese")
    assert cli("chat", "@~/notes! @~/wow!")[0] == 0
    assert "milk" in llm.requests[0].messages[-1].text
    assert "cheese" in llm.requests[0].messages[-1].text


@pytest.mark.parametrize("form", ['What is @"{}"?', 'What is "@{}" ?'])
def test_SC_008_SC_010_a_picture_with_spaces_in_its_name(
    cli, llm: Llm, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "a b.png"
    path.write_bytes(PNG)
    assert cli("chat", form.format(path))[0] == 0
    picture = llm.requests[0].messages[-1].content[-1]
    assert isinstance(picture, DataPart)
    assert (picture.data, picture.mime_type) == (PNG, "image/png")


def test_SC_054_a_missing_file_is_a_usage_error(cli, llm: Llm, tmp_path: Path) -> None:
    code, _, err = cli("chat", f"@{tmp_path}/none.txt")
    assert code == 2
    assert one_line(err, "none.txt", "No such file", "@@")
    assert not llm.requests


def test_an_at_sign_inside_a_word_or_doubled_attaches_nothing(cli, llm: Llm) -> None:
    assert cli("chat", "ask me@example.org or @@ada @")[0] == 0
    assert llm.requests[0].messages[-1].text == "ask me@example.org or @ada @"


# what is shown


def test_SC_021_verbose_tells_the_usage_on_standard_error(cli) -> None:
    assert (
        cli("chat", "x", "-v")[2] == "Usage: Input: 3 tokens, Output: 4 tokens, Total: 7 tokens\n"
    )


def test_usage_that_is_not_known_is_left_out() -> None:
    assert format_usage(Usage(output_tokens=2)) == "Usage: Output: 2 tokens"
    assert format_usage(None) == "Usage: the provider did not tell"
    assert (
        format_usage(Usage(output_tokens=2), Decimal("0.00020"))
        == "Usage: Output: 2 tokens; cost: $0.00020"
    )


def test_what_is_known_of_costs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra too, which is then as if nothing was known."""
    free, dear = (
        ModelCall(Origin("local")),
        ModelCall(Origin("openai", None, "gpt-4o"), Usage(input_tokens=1, output_tokens=1)),
    )
    assert find_cost([ChatResult("", calls=(free,)), ChatResult("")]) == 0
    assert (find_cost([ChatResult("", calls=(free, dear))]) or 0) > 0
    assert find_cost([ChatResult("", calls=(ModelCall(),))]) is None
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert find_cost([ChatResult("", calls=(dear,))]) is None


def thinks(_: object) -> Message:
    return says(ThinkingPart("Hm, well.", {"anthropic": {"signature": "c2ln"}}), "Yes.")


def test_SC_022_thinking_stands_between_marks_and_never_on_what_is_piped_on(
    cli, llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    llm.reply = thinks
    for terminal, options, shown in [
        (True, (), ("[Thinking]\nHm, well.\n[/Thinking]\n\nYes.\n", "")),
        (False, (), ("Yes.\n", "")),
        (False, ("--thinking",), ("Yes.\n", "[Thinking]\nHm, well.\n[/Thinking]\n\n")),
    ]:
        with monkeypatch.context() as here:
            here.setattr("sys.stdout.isatty", lambda terminal=terminal: terminal)
            assert cli("chat", "x", "-m", "claude", "--no-color", *options)[1:] == shown


def test_SC_023_no_thinking_hides_it(cli, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    llm.reply = thinks
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli("chat", "x", "-m", "claude", "--no-thinking")[1] == "Yes.\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("colour", "no_color"), [(True, False), (True, True), (False, False)])
def test_SC_034_thinking_is_dimmed_where_there_is_colour(
    colour: bool, no_color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    screen = Screen(colour=colour, out=out, err=Terminal())
    screen.show(ChatResult("", thinking="Hm"))
    screen.show(ChatResult("Yes"))
    screen.finish()
    dimmed = colour and not no_color
    assert out.getvalue() == (
        "\x1b[2mHm\x1b[0m\n\nYes\n" if dimmed else "[Thinking]\nHm\n[/Thinking]\n\nYes\n"
    )


def test_a_model_cannot_steer_the_terminal_but_a_pipe_gets_its_text_whole() -> None:
    for out, text in ((Terminal(), "a[2Jb\tc\n"), (io.StringIO(), "a\x1b[2J\x07b\tc\n")):
        screen = Screen(out=out, err=out)
        screen.show(ChatResult("a\x1b[2J\x07b\tc"))
        screen.finish()
        assert out.getvalue() == text


def test_what_is_waited_for_is_said_on_a_terminal_and_erased() -> None:
    for err, text in ((Terminal(), "\x1b[2mloading\x1b[0m\r\x1b[2K"), (io.StringIO(), "")):
        out = io.StringIO()
        screen = Screen(out=out, err=err)
        screen.show_waiting("loading")
        screen.show(ChatResult("Yes."))
        screen.show(ChatResult(" No."))
        screen.finish()
        assert (out.getvalue(), err.getvalue()) == ("Yes. No.\n", text)


def test_json_holds_output_usage_finish_reason_and_messages(cli) -> None:
    code, out, err = cli("chat", "x", "--json")
    told = decoded(out)
    assert (code, err) == (0, "")
    assert told["output"] == "You said: x"
    assert told["finish_reason"] == "stop"
    assert told["usage"]["total_tokens"] == 7
    stored = [Message.from_json(json.dumps(message)) for message in told["messages"]]
    assert [(message.role, message.text) for message in stored] == [
        ("user", "x"),
        ("model", "You said: x"),
    ]


def test_SC_017_SC_018_an_output_schema_is_sent_and_its_answer_shown(
    cli, llm: Llm, tmp_path: Path
) -> None:
    llm.reply = obliging
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    (tmp_path / "s.json").write_text(json.dumps(schema))
    for given in (json.dumps(schema), f"@{tmp_path}/s.json"):
        code, out, _ = cli("chat", "x", "--output-schema", given)
        assert (code, json.loads(out)) == (0, {"city": "Oslo"})
        assert llm.requests[-1].output_schema is not None


def test_with_a_schema_nothing_but_the_json_is_shown(cli, llm: Llm) -> None:
    llm.reply = lambda _: says(ThinkingPart("Hm."), '{"n": 1}')
    assert cli("chat", "x", "--output-schema", '{"type": "object"}')[:2] == (0, '{"n": 1}\n')
    assert "[Thinking]" in cli("chat", "x", "--thinking")[2]


def test_an_answer_that_does_not_fit_its_schema_is_not_shown_before_the_one_that_does(
    cli, llm: Llm
) -> None:
    answers = iter([says("Well,"), says('{"n": 1}')])
    llm.reply = lambda _: next(answers)
    assert cli("chat", "x", "--output-schema", '{"type": "object"}')[:2] == (0, '{"n": 1}\n')


def test_what_was_left_out_is_one_line_on_standard_error(cli, llm: Llm, tmp_path: Path) -> None:
    """Decision 25: the command line tells the losses of a run."""
    (tmp_path / "clip.mp4").write_bytes(bytes(range(256)) * 9)
    code, out, err = cli("chat", f"Say hello @{tmp_path}/clip.mp4")
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith("note: left out or changed: ")
    assert "clip.mp4" in out + err


def test_an_answer_that_is_not_whole_says_so(cli, llm: Llm) -> None:
    llm.reply = lambda _: says("Once upon").replace(finish_reason=FinishReason.length)
    code, out, err = cli("chat", "x")
    assert (code, out) == (0, "Once upon\n")
    assert err.count("\n") == 1
    assert "--max-tokens" in err


@pytest.mark.parametrize(
    ("before", "again"),
    [((), ""), (("Let me see.\n",), "Let me see.\n")],
    ids=["all of it", "the end of it"],
)
def test_a_terminal_shows_that_what_was_shown_is_void(before: tuple[str, ...], again: str) -> None:
    """Decision 24."""
    out, err = Terminal(), Terminal()
    screen = Screen(out=out, err=err)
    for chunk in [
        *map(ChatResult, before),
        ChatResult("Sure"),
        ChatResult("", retracted="Sure"),
        ChatResult("{}"),
    ]:
        screen.show(chunk)
    screen.finish()
    first = "".join(before) + "Sure"
    assert out.getvalue() == f"{first}\n[The answer above is void. It starts again:]\n{again}{{}}\n"


def test_what_was_piped_on_and_is_void_is_told_on_standard_error() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out=out, err=err)
    for chunk in [ChatResult("Sure"), ChatResult("", retracted="Sure"), ChatResult("No.")]:
        screen.show(chunk)
    assert (out.getvalue(), "void" in err.getvalue()) == ("SureNo.", True)


def test_by_a_schema_only_the_valid_answer_is_written(cli, llm: Llm) -> None:
    """A first answer that is not of the type never reaches standard output."""
    schema = {"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]}
    answers = iter([says("Sure! Here it is"), says('{"z": 1}')])
    llm.reply = lambda _: next(answers)
    assert cli("chat", "A number", "--output-schema", json.dumps(schema))[:2] == (0, '{"z": 1}\n')


def test_a_trace_goes_to_standard_error(cli) -> None:
    code, out, err = cli("chat", "x", "--trace")
    assert (code, out) == (0, "You said: x\n")
    lines = err.splitlines()
    assert "3 → 4 tokens" in lines[1] and "first token" in lines[1]
    assert lines[-1].startswith("└ success")
    assert "\x1b" not in err
