"""The command line: what is shown, what is sent, and how it ends (seed-behaviours 1A, "Command line"; SC-nn: 7.3)."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as Flag

import pytest

from dragoman import DataPart, Message, TextPart, ThinkingPart, errors
from dragoman.cli import main
from dragoman.cli.failure import exit_code
from dragoman.cli.screen import Screen, usage_line
from dragoman.message import Usage
from dragoman.result import ChatResult
from support import says
from support_llm import Llm, decoded, echo, obliging, serving

SRC = str(Path(__file__).parents[1] / "src")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


class Stdin(io.TextIOWrapper):
    """Standard input that holds these bytes; with `None` it is a terminal."""

    def __init__(self, data: bytes | None) -> None:
        super().__init__(io.BytesIO(data or b""), encoding="utf-8")
        self.is_terminal = data is None

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Llm]:
    with serving(echo) as server:
        for name in [name for name in os.environ if name.endswith("_API_KEY")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("DRAGOMAN_MODEL", "openai-compatible:tiny")
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setattr(sys, "stdin", Stdin(b""))
        yield server


@pytest.fixture
def run(llm: Llm, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line in this process → exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def shell(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments],
        input=stdin,
        capture_output=True,
        timeout=50,
        env={**os.environ, "PYTHONPATH": SRC, **environment},
    )


def one_line(err: str, *words: str) -> bool:
    """Whether it is one plain line that holds these words."""
    return err.startswith("error: ") and err.count("\n") == 1 and all(word in err for word in words)


# chat


def test_SC_001_a_prompt_is_answered(run) -> None:
    assert run("chat", "Hello there") == (0, "You said: Hello there\n", "")


def test_SC_011_a_piped_prompt_is_answered_and_the_answer_is_streamed(llm: Llm) -> None:
    done = shell("chat", stdin=b"hi\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"You said: hi\n", b"")
    assert llm.requests[0].stream


def test_a_piped_text_follows_the_prompt(run, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin("eins\nzwölf\n\n".encode()))
    run("chat", "Translate:")
    assert llm.requests[0].messages[-1].content == (TextPart("Translate:\n\neins\nzwölf"),)


def test_what_is_piped_in_attaches_no_file(run, llm: Llm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("s3cret")
    monkeypatch.setattr(sys, "stdin", Stdin(f"@{tmp_path}/secret @nobody".encode()))
    assert run("chat")[0] == 0
    assert llm.requests[0].messages[-1].content == (TextPart(f"@{tmp_path}/secret @nobody"),)


def test_bytes_that_are_no_text_are_replaced(llm: Llm) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "chat", b"a\xffb"],
        input=b"c\xffd",
        capture_output=True,
        env={**os.environ, "PYTHONPATH": SRC},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "a�b\n\nc�d" in llm.requests[0].messages[-1].text


def test_SC_052_without_anything_to_ask_it_is_a_usage_error(run, llm: Llm) -> None:
    code, out, err = run("chat")
    assert (code, out) == (2, "")
    assert one_line(err, "nothing to ask")
    assert not llm.requests


def test_settings_and_the_system_prompt_are_sent(run, llm: Llm) -> None:
    run("chat", "x", "-s", "Be brief.", "-t", "0.5", "--max-tokens", "9", "--reasoning", "low")
    request = llm.requests[0]
    assert request.messages[0] == Message.system("Be brief.")
    assert (request.settings.temperature, request.settings.max_tokens) == (0.5, 9)
    assert request.settings.reasoning == "low"


def test_SC_020_a_reasoning_budget_is_a_number_of_tokens(run, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert run("chat", "x", "-m", "claude", "--reasoning", "2048")[0] == 0
    assert llm.requests[0].settings.reasoning == 2048


@pytest.mark.parametrize(
    "arguments",
    [
        ("-t", "2.1"),
        ("-t", "-1"),
        ("-t", "hot"),
        ("--max-tokens", "0"),
        ("--reasoning", "hard"),
        ("--output-schema", "{"),
        ("--output-schema", "[]"),
        ("--output-schema", "@/nowhere.json"),
        ("--nonsense",),
        ("-m",),
    ],
)
def test_SC_056_a_bad_option_is_a_usage_error_in_one_line(run, llm: Llm, arguments: tuple[str, ...]) -> None:
    code, out, err = run("chat", "x", *arguments)
    assert (code, out) == (2, "")
    assert one_line(err, "dragoman chat --help" if arguments[0] in ("-t", "--nonsense") else arguments[0])
    assert not llm.requests


def test_SC_059_the_option_goes_before_the_variable(run, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    run("chat", "x", "-m", "anthropic:other")
    run("chat", "x")
    assert [request.model for request in llm.requests] == ["other", "tiny"]
    assert llm.headers[0]["x-api-key"] == "secret"


def test_the_base_url_is_where_it_is_sent(run, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    assert run("chat", "x", "--base-url", llm.url)[0] == 0


# attachments


def test_SC_006_a_text_file_is_attached_as_text(run, llm: Llm, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk, é")
    run("chat", f"Read @{tmp_path}/notes.txt, please")
    text, file = llm.requests[0].messages[-1].content
    assert text == TextPart("Read notes.txt, please")
    assert isinstance(file, TextPart)
    assert "milk, é" in file.text
    assert "notes.txt" in file.text


@pytest.mark.parametrize("form", ['What is @"{}"?', 'What is "@{}" ?'])
def test_SC_008_SC_010_a_picture_with_spaces_in_its_name(run, llm: Llm, tmp_path: Path, form: str) -> None:
    path = tmp_path / "a b.png"
    path.write_bytes(PNG)
    assert run("chat", form.format(path))[0] == 0
    picture = llm.requests[0].messages[-1].content[-1]
    assert isinstance(picture, DataPart)
    assert (picture.data, picture.mime_type) == (PNG, "image/png")


def test_SC_054_a_missing_file_is_a_usage_error(run, llm: Llm, tmp_path: Path) -> None:
    code, _, err = run("chat", f"@{tmp_path}/none.txt")
    assert code == 2
    assert one_line(err, "none.txt", "No such file", "@@")
    assert not llm.requests


def test_an_at_sign_inside_a_word_or_doubled_attaches_nothing(run, llm: Llm) -> None:
    assert run("chat", "ask me@example.org or @@ada @")[0] == 0
    assert llm.requests[0].messages[-1].text == "ask me@example.org or @ada @"


# what is shown


def test_SC_021_verbose_tells_the_usage_on_standard_error(run) -> None:
    assert run("chat", "x", "-v")[2] == "Usage: Input: 3 tokens, Output: 4 tokens, Total: 7 tokens\n"


def test_usage_that_is_not_known_is_left_out() -> None:
    assert usage_line(Usage(output_tokens=2)) == "Usage: Output: 2 tokens"
    assert usage_line(None) == "Usage: the provider did not tell"


def thinks(_: object) -> Message:
    return says(ThinkingPart("Hm, well.", {"anthropic": {"signature": "c2ln"}}), "Yes.")


def test_SC_022_thinking_stands_between_marks(run, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    llm.reply = thinks
    assert run("chat", "x", "-m", "claude")[1] == "[Thinking]\nHm, well.\n[/Thinking]\n\nYes.\n"


def test_SC_023_no_thinking_hides_it(run, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    llm.reply = thinks
    assert run("chat", "x", "-m", "claude", "--no-thinking")[1] == "Yes.\n"


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
    assert out.getvalue() == ("\x1b[2mHm\x1b[0m\n\nYes\n" if dimmed else "[Thinking]\nHm\n[/Thinking]\n\nYes\n")


def test_a_model_cannot_steer_the_terminal_but_a_pipe_gets_its_text_whole() -> None:
    for out, text in ((Terminal(), "a[2Jb\tc\n"), (io.StringIO(), "a\x1b[2J\x07b\tc\n")):
        screen = Screen(out=out, err=out)
        screen.show(ChatResult("a\x1b[2J\x07b\tc"))
        screen.finish()
        assert out.getvalue() == text


def test_what_is_waited_for_is_said_and_on_a_terminal_erased() -> None:
    for err, text in ((Terminal(), "\x1b[2mloading\x1b[0m\r\x1b[2K"), (io.StringIO(), "loading\n")):
        out = io.StringIO()
        screen = Screen(out=out, err=err)
        screen.waiting("loading")
        screen.show(ChatResult("Yes."))
        screen.show(ChatResult(" No."))
        screen.finish()
        assert (out.getvalue(), err.getvalue()) == ("Yes. No.\n", text)


def test_json_holds_output_usage_finish_reason_and_messages(run) -> None:
    code, out, err = run("chat", "x", "--json")
    told = decoded(out)
    assert (code, err) == (0, "")
    assert told["output"] == "You said: x"
    assert told["finish_reason"] == "stop"
    assert told["usage"]["total_tokens"] == 7
    stored = [Message.from_json(json.dumps(message)) for message in told["messages"]]
    assert [(message.role, message.text) for message in stored] == [("user", "x"), ("model", "You said: x")]


def test_SC_017_SC_018_an_output_schema_is_sent_and_its_answer_shown(run, llm: Llm, tmp_path: Path) -> None:
    llm.reply = obliging
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    (tmp_path / "s.json").write_text(json.dumps(schema))
    for given in (json.dumps(schema), f"@{tmp_path}/s.json"):
        code, out, _ = run("chat", "x", "--output-schema", given)
        assert (code, json.loads(out)) == (0, {"city": "Oslo"})
        assert llm.requests[-1].output_schema is not None


# how it ends


def test_a_missing_key_is_named_before_anything_is_read(run) -> None:
    code, out, err = run("chat", "-m", "openai")
    assert (code, out) == (4, "")
    assert one_line(err, "OPENAI_API_KEY")


def test_SC_053_an_unknown_provider_is_an_error_of_settings(run) -> None:
    code, _, err = run("chat", "x", "-m", "opnai")
    assert code == 3
    assert one_line(err, "opnai", 'did you mean "openai"')


def test_a_refusal_of_the_provider_is_told_in_one_line(run, llm: Llm) -> None:
    llm.reply = lambda _: errors.InvalidRequestError("too\nlong\x1b[2J", status=400)
    code, out, err = run("chat", "x")
    assert (code, out) == (4, "")
    assert one_line(err, "too long", "400")
    assert "\x1b" not in err


def test_no_connection_is_an_error_of_the_network(run, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.transport import retry

    async def at_once(*_: object) -> None: ...

    monkeypatch.setattr(
        retry.Retry.__init__, "__kwdefaults__", {**retry.Retry.__init__.__kwdefaults__, "sleep": at_once}
    )
    code, _, err = run("chat", "x", "--base-url", "http://127.0.0.1:9/v1")
    assert code == 5
    assert one_line(err, "127.0.0.1:9")


def test_a_cut_answer_is_shown_as_far_as_it_came(run, llm: Llm) -> None:
    llm.reply = lambda _: says("word " * 200)
    llm.cut = True
    code, out, err = run("chat", "x")
    assert code == 5
    assert out.startswith("word word")
    assert out.endswith("\n")
    assert one_line(err)


def test_ctrl_c_ends_the_answer_where_it_stands(llm: Llm) -> None:
    llm.reply = lambda _: says("word " * 200)
    llm.held = Flag()
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "chat", "x"],
        bufsize=0,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SRC},
    )
    assert process.stdout is not None
    first = process.stdout.read(9)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")
    assert len(rest) < 1000
    assert (b"word " * 200).startswith((first + rest).removesuffix(b"\n"))
    assert rest.endswith(b"\n")


def test_a_terminal_without_a_sign_for_it_ends_no_answer(llm: Llm) -> None:
    done = shell("chat", stdin="zwölf ☃".encode(), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"You said: zw?lf ?\n", b"")


def test_every_error_has_its_exit_code() -> None:
    """api.md: 1 failure, 3 settings, 4 the provider refused, 5 network."""
    codes = {name: exit_code(getattr(errors, name).__new__(getattr(errors, name))) for name in errors.__all__}
    network = {"ProviderTimeoutError", "ProviderConnectionError", "StreamCutError"}
    refused = {name for name in codes if issubclass(getattr(errors, name), errors.ProviderError)} - network
    assert {name for name, code in codes.items() if code == 5} == network
    assert {name for name, code in codes.items() if code == 4} == refused
    assert {name for name, code in codes.items() if code == 3} == {"SettingsError"}
    assert set(codes.values()) == {1, 3, 4, 5}


def test_a_reader_that_goes_away_is_no_error_to_speak_of(llm: Llm) -> None:
    llm.reply = lambda _: says("word " * 20000)
    command = f"{sys.executable} -m dragoman chat x | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, env={**os.environ, "PYTHONPATH": SRC})
    assert done.stdout == b"word word "
    assert done.stderr == b""


# the other commands


def test_help_teaches_and_loads_little() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dragoman", "--help"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": SRC},
    )
    assert b"OPENAI_API_KEY" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "typer" in loaded
    assert not loaded & {"rich", "aiohttp", "pydantic", "dragoman.agent", "asyncio", "xllamacpp"}


@pytest.mark.parametrize("command", [("chat",), ("providers",), ("models",), ("decode",), ("local", "pull")])
def test_every_command_shows_examples(run, command: tuple[str, ...]) -> None:
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "\n  dragoman " in out


def test_version(run) -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("dragoman ")


@pytest.mark.parametrize("arguments", [("nonsense",), ("chat", "a", "b"), ("decode",), ("models", "-x")])
def test_a_wrong_command_line_is_told_in_one_line(run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert one_line(err, "--help")


def test_providers_lists_all_with_what_they_can_do(run) -> None:
    code, out, _ = run("providers")
    assert code == 0
    assert all(word in out for word in ("openai", "ANTHROPIC_API_KEY", "claude", "[OLLAMA_API_KEY]", "typed output"))
    rows = {row["provider"]: row for row in decoded(run("providers", "--json")[1])}
    assert rows["anthropic"]["aliases"] == ["claude"]
    assert "tools" in rows["openai"]["capabilities"]


def test_SC_048_SC_051_models_are_listed_by_kind(run) -> None:
    assert run("models")[1] == (
        "Chat:\n  openai-compatible:tiny\nEmbeddings:\n  openai-compatible:text-embedding-tiny\n"
    )
    first = decoded(run("models", "openai-compatible", "--json")[1])[0]
    assert (first["model"], first["name"], first["kinds"]) == ("openai-compatible:tiny", "tiny", ["chat"])


def test_models_without_a_key_names_the_variable(run) -> None:
    code, _, err = run("models", "openai")
    assert code == 4
    assert one_line(err, "OPENAI_API_KEY")


@pytest.fixture(params=["openai_chat", "anthropic"])
def recorded(request: pytest.FixtureRequest) -> tuple[str, bytes]:
    """A wire, and a streamed response of it."""
    from dragoman import unfold, wires
    from support import call, pieces
    from support_llm import USAGE

    encoder = wires.get(request.param).encoder(id="a", model="m")
    message = says("Let me see.", call("look", city="Oslo")).replace(id="a", usage=USAGE)
    return request.param, b"".join([*map(encoder.feed, pieces(unfold([message]), 4)), encoder.close()])


def test_decode_reads_a_recorded_stream(run, recorded: tuple[str, bytes], tmp_path: Path) -> None:
    wire, data = recorded
    (tmp_path / "answer").write_bytes(data)
    code, out, err = run("decode", "--wire", wire, str(tmp_path / "answer"))
    told = decoded(out)
    assert (code, err) == (0, "")
    message = Message.from_json(json.dumps(told["messages"][0]))
    assert message.text == "Let me see."
    assert message.tool_calls[0].arguments == {"city": "Oslo"}
    assert (told["finish_reason"], told["usage"]["total_tokens"]) == ("tool_calls", 7)
    assert "error" not in told


def test_decode_reads_a_whole_response_from_standard_input(run, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"id": "a", "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
    monkeypatch.setattr(sys, "stdin", Stdin(json.dumps(body).encode()))
    code, out, _ = run("decode", "--wire", "openai_chat")
    assert (code, decoded(out)["messages"][0]["content"][0]["text"]) == (0, "Hi")


def test_decode_of_a_cut_stream_prints_what_could_be_read(run, recorded: tuple[str, bytes], tmp_path: Path) -> None:
    wire, data = recorded
    (tmp_path / "answer").write_bytes(data[: len(data) // 2])
    code, out, err = run("decode", "--wire", wire, str(tmp_path / "answer"))
    told = decoded(out)
    assert code == 1
    assert one_line(err)
    assert told["messages"][0]["content"][0]["text"].startswith("Let me")
    assert told["error"]["type"] == "StreamCutError"


def test_decode_of_something_else_is_a_clear_error(run, recorded: tuple[str, bytes], tmp_path: Path) -> None:
    wire, data = recorded
    other = "anthropic" if wire == "openai_chat" else "openai_chat"
    strange = [bytes(range(128, 256)), b"", b"{}", b'data: {"type": "\xff"}\n\n', b"data: " + b"[" * 99999 + b"\n\n"]
    for content, reader in ((data, other), *[(content, wire) for content in strange]):
        (tmp_path / "answer").write_bytes(content)
        code, out, err = run("decode", "--wire", reader, str(tmp_path / "answer"))
        assert code == 1, content
        assert one_line(err)
        assert decoded(out)["error"]["message"]


def test_decode_names_wires_and_files_that_are_not_there(run) -> None:
    code, _, err = run("decode", "--wire", "morse")
    assert code == 2
    assert one_line(err, "anthropic", "openai_chat")
    code, _, err = run("decode", "--wire", "anthropic", "/nowhere")
    assert code == 2
    assert one_line(err, "/nowhere")
