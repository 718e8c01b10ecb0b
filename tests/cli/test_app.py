"""The command line: how it ends, and the commands beside chat (seed-behaviours 1A, "Command line";
SC-nn: 7.3)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from threading import Event as Flag

import msgspec
import pytest
from typer.main import get_command

from dragoman import Message, errors, providers, unfold, wires
from dragoman.cli.app import app, build_command
from dragoman.cli.terminal import find_exit_code
from support.cli import SRC, Stdin, one_line, shell
from support.llm_server import USAGE, Llm, decoded
from support.model import call, pieces, says

# how it ends


def test_a_missing_key_is_named_before_anything_is_read(cli) -> None:
    code, out, err = cli("chat", "-m", "openai")
    assert (code, out) == (4, "")
    assert one_line(err, "OPENAI_API_KEY")


def test_SC_053_an_unknown_provider_is_an_error_of_settings(cli) -> None:
    code, _, err = cli("chat", "x", "-m", "opnai")
    assert code == 3
    assert one_line(err, "opnai", 'did you mean "openai"')


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("claude-opus-4-8", "anthropic:claude-opus-4-8"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("mistral-large", "mistral:mistral-large"),
        ("llama", "ollama"),
    ],
)
def test_a_model_without_its_provider_is_shown_how_it_is_written(
    cli, model: str, meant: str
) -> None:
    code, _, err = cli("chat", "x", "-m", model)
    assert code == 3
    assert one_line(err, f'no provider is named "{model}"; did you mean "{meant}"? There are ')
    assert '"; there are a2a, ag-ui, anthropic' in cli("chat", "x", "-m", "xyz")[2]


def test_a_refusal_of_the_provider_is_told_in_one_line(cli, llm: Llm) -> None:
    llm.reply = lambda _: errors.InvalidRequestError("too\nlong\x1b[2J", status=400)
    code, out, err = cli("chat", "x")
    assert (code, out) == (4, "")
    assert one_line(err, "too long", "400")
    assert "\x1b" not in err


def test_no_connection_is_an_error_of_the_network(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.transport import retry

    async def at_once(*_: object) -> None: ...

    monkeypatch.setattr(
        retry.Retry.__init__,
        "__kwdefaults__",
        {**retry.Retry.__init__.__kwdefaults__, "sleep": at_once},
    )
    code, _, err = cli("chat", "x", "--base-url", "http://127.0.0.1:9/v1")
    assert code == 5
    assert one_line(err, "127.0.0.1:9")


def test_a_cut_answer_is_shown_as_far_as_it_came(cli, llm: Llm) -> None:
    llm.reply = lambda _: says("word " * 200)
    llm.cut = True
    code, out, err = cli("chat", "x")
    assert code == 5
    assert out.startswith("word word")
    assert out.endswith("\n")
    assert one_line(err)


@pytest.mark.slow
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


def test_ctrl_c_before_a_command_began_ends_quietly(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("dragoman.cli.app.get_command", interrupted)
    assert cli("chat", "x") == (130, "", "")


def test_only_the_command_that_is_named_is_built() -> None:
    assert list(build_command(["threads", "list"]).commands) == ["threads"]
    assert list(build_command(["chat", "Hello"]).commands) == ["chat"]
    for words in ([], ["--help"], ["thread"]):
        assert list(build_command(words).commands) == list(get_command(app).commands)


@pytest.mark.slow
def test_a_terminal_without_a_sign_for_it_ends_no_answer(llm: Llm) -> None:
    done = shell("chat", stdin="zwölf ☃".encode(), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"You said: zw?lf ?\n", b"")


def test_every_error_has_its_exit_code() -> None:
    """api.md: 1 failure, 3 settings, 4 the provider refused, 5 network."""
    classes = {
        name: kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)
    }
    codes = {name: find_exit_code(kind.__new__(kind)) for name, kind in classes.items()}
    network = {"ProviderTimeoutError", "ProviderConnectionError", "StreamCutError"}
    refused = {
        name for name in codes if issubclass(getattr(errors, name), errors.ProviderError)
    } - network
    assert {name for name, code in codes.items() if code == 5} == network
    assert {name for name, code in codes.items() if code == 4} == refused
    assert {name for name, code in codes.items() if code == 3} == {"SettingsError"}
    assert set(codes.values()) == {1, 3, 4, 5}


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error_to_speak_of(llm: Llm) -> None:
    llm.reply = lambda _: says("word " * 20000)
    command = f"{sys.executable} -m dragoman chat x | head -c 10"
    done = subprocess.run(
        command, shell=True, capture_output=True, env={**os.environ, "PYTHONPATH": SRC}
    )
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
    assert not loaded & {
        "rich",
        "aiohttp",
        "prompt_toolkit",
        "pydantic",
        "dragoman.agent",
        "asyncio",
        "xllamacpp",
    }


COMMANDS = (
    "chat",
    "generate",
    "providers",
    "models list",
    "models default",
    "aliases set",
    "aliases list",
    "aliases remove",
    "keys set",
    "keys list",
    "logs list",
    "logs status",
    "decode",
    "embed create",
    "embed search",
    "embed text",
    "local pull",
)


@pytest.mark.parametrize("command", [tuple(command.split()) for command in COMMANDS])
def test_every_command_shows_examples(cli, command: tuple[str, ...]) -> None:
    code, out, _ = cli(*command, "--help")
    assert code == 0
    assert "\n  dragoman " in out


def list_commands(command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of each command and group."""
    below = getattr(command, "commands", {}).items()
    return [path, *(words for name, part in below for words in list_commands(part, (*path, name)))]


def test_no_help_has_words_of_the_parser(cli) -> None:
    commands = list_commands(get_command(app))
    assert len(commands) > 40
    for command in commands:
        out = cli(*command, "--help")[1]
        assert out.startswith("Usage: dragoman")
        assert not re.search(r"<[a-z ]+>|\b[A-Z]+ RANGE|<=|>=|\[\[", out), command


def test_help_names_the_words_of_which_one_is_wanted(cli) -> None:
    assert "--by key|model|day" in cli("usage", "--help")[1]
    assert "--errors raise|skip|collect" in cli("convert", "--help")[1]
    assert "{bash|zsh|fish}" in cli("completion", "--help")[1]


@pytest.mark.parametrize("command", [(), ("local",), ("embed",)])
def test_a_command_that_is_given_nothing_shows_its_help_as_it_is(
    cli, command: tuple[str, ...]
) -> None:
    code, out, err = cli(*command)
    assert (code, out) == (2, "")
    assert err == cli(*command, "--help")[1]


def test_version(cli) -> None:
    code, out, _ = cli("--version")
    assert code == 0
    assert out.startswith("dragoman ")


@pytest.mark.parametrize(
    "arguments", [("chta",), ("chat", "a", "b"), ("decode",), ("models", "-x")]
)
def test_a_wrong_command_line_is_told_in_one_line(cli, arguments: tuple[str, ...]) -> None:
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert one_line(err, "--help")


def test_providers_lists_all_with_what_they_can_do(cli) -> None:
    code, out, _ = cli("providers")
    assert code == 0
    assert all(
        word in out
        for word in ("openai", "ANTHROPIC_API_KEY", "claude", "[OLLAMA_API_KEY]", "typed output")
    )
    rows = {row["provider"]: row for row in decoded(cli("providers", "--json")[1])}
    assert rows["anthropic"]["aliases"] == ["claude"]
    assert "tools" in rows["openai"]["capabilities"]


def test_SC_048_SC_051_models_are_listed_by_kind(cli) -> None:
    assert cli("models")[1] == (
        "Chat:\n  openai-compatible:tiny\nEmbeddings:\n  openai-compatible:text-embedding-tiny\n"
        "Media:\n  openai-compatible:dall-e-3\nOther:\n  openai-compatible:text-moderation-1\n"
    )
    first = decoded(cli("models", "openai-compatible", "--json")[1])[0]
    assert (first["model"], first["name"], first["kinds"]) == (
        "openai-compatible:tiny",
        "tiny",
        ["chat"],
    )


def test_models_without_a_key_names_the_variable(cli) -> None:
    code, _, err = cli("models", "openai")
    assert code == 4
    assert one_line(err, "OPENAI_API_KEY")


def test_local_pull_tells_its_progress_and_where_the_model_is(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(progress: Callable[[str], None], model: str) -> Path:
        progress(f"fetching {model}")
        return Path("/models/small.gguf")

    def failing(progress: Callable[[str], None], model: str) -> Path:
        raise errors.SettingsError("the model could not be fetched")

    monkeypatch.setattr("dragoman.providers.local_pull.pull", fetched)
    assert cli("local", "pull") == (0, "/models/small.gguf\n", "fetching SmolLM2-135M-Instruct\n")
    assert cli("local", "pull", "all-MiniLM-L6-v2") == (
        0,
        "/models/small.gguf\n",
        "fetching all-MiniLM-L6-v2\n",
    )
    monkeypatch.setattr("dragoman.providers.local_pull.pull", failing)
    assert cli("local", "pull") == (3, "", "error: the model could not be fetched\n")


def test_local_pull_says_when_there_is_nothing_that_runs_the_model(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.providers.local_pull.pull", lambda *_: Path("/models/small.gguf"))
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *_: None if name == "xllamacpp" else find_spec(name),
    )
    code, out, err = cli("local", "pull")
    assert (code, out) == (0, "/models/small.gguf\n")
    assert re.fullmatch(
        r"note: what runs it is not installed: `.* install .*'xllamacpp.*'`\n", err
    ), err


@pytest.mark.parametrize(
    "command", ["-m dragoman --help", "-m dragoman providers", "-m dragoman.testing --list"]
)
@pytest.mark.slow
def test_a_reader_that_is_gone_already_is_no_error_to_speak_of(command: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, *command.split()],
        stdout=write,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SRC},
    )
    os.close(write)
    assert (done.returncode != 0, done.stderr) == (True, b"")


def test_what_is_loaded_first_is_said_on_a_terminal(
    cli, llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def base_url(_: str) -> str:
        return llm.url

    record = msgspec.structs.replace(providers.get("openai-compatible"), base_url=base_url)
    monkeypatch.setattr(providers.REGISTRY, "_own", {"openai-compatible": lambda: record})
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert cli("chat", "x")[1:] == (
        "You said: x\n",
        "\x1b[2mloading openai-compatible:tiny …\x1b[0m\r\x1b[2K",
    )


@pytest.fixture(params=["openai_chat", "anthropic"])
def recorded(request: pytest.FixtureRequest) -> tuple[str, bytes]:
    """A wire, and a streamed response of it."""
    encoder = wires.get(request.param).encoder(id="a", model="m")
    message = says("Let me see.", call("look", city="Oslo")).replace(id="a", usage=USAGE)
    return request.param, b"".join(
        [*map(encoder.feed, pieces(unfold([message]), 4)), encoder.close()]
    )


def test_decode_reads_a_recorded_stream(cli, recorded: tuple[str, bytes], tmp_path: Path) -> None:
    wire, data = recorded
    (tmp_path / "answer").write_bytes(data)
    code, out, err = cli("decode", "--wire", wire, str(tmp_path / "answer"))
    told = decoded(out)
    assert (code, err) == (0, "")
    message = Message.from_json(json.dumps(told["messages"][0]))
    assert message.text == "Let me see."
    assert message.tool_calls[0].arguments == {"city": "Oslo"}
    assert (told["finish_reason"], told["usage"]["total_tokens"]) == ("tool_calls", 7)
    assert "error" not in told


def test_decode_reads_a_whole_response_from_standard_input(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {
        "id": "a",
        "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    }
    monkeypatch.setattr(sys, "stdin", Stdin(json.dumps(body).encode()))
    code, out, _ = cli("decode", "--wire", "openai_chat")
    assert (code, decoded(out)["messages"][0]["content"][0]["text"]) == (0, "Hi")


def test_decode_of_a_cut_stream_prints_what_could_be_read(
    cli, recorded: tuple[str, bytes], tmp_path: Path
) -> None:
    wire, data = recorded
    (tmp_path / "answer").write_bytes(data[: len(data) // 2])
    code, out, err = cli("decode", "--wire", wire, str(tmp_path / "answer"))
    told = decoded(out)
    assert code == 1
    assert one_line(err)
    assert told["messages"][0]["content"][0]["text"].startswith("Let me")
    assert told["error"]["type"] == "StreamCutError"


def test_decode_of_something_else_is_a_clear_error(
    cli, recorded: tuple[str, bytes], tmp_path: Path
) -> None:
    wire, data = recorded
    other = "anthropic" if wire == "openai_chat" else "openai_chat"
    strange = [
        bytes(range(128, 256)),
        b"",
        b"{}",
        b'data: {"type": "\xff"}\n\n',
        b"data: " + b"[" * 99999 + b"\n\n",
    ]
    for content, reader in ((data, other), *[(content, wire) for content in strange]):
        (tmp_path / "answer").write_bytes(content)
        code, out, err = cli("decode", "--wire", reader, str(tmp_path / "answer"))
        assert code == 1, content
        assert one_line(err)
        assert decoded(out)["error"]["message"]


def test_decode_help_lists_the_wires(cli) -> None:
    shown = cli("decode", "--help")[1]
    assert [name for name in wires.names("model") if name not in shown] == []


def test_decode_names_wires_and_files_that_are_not_there(cli) -> None:
    code, _, err = cli("decode", "--wire", "morse")
    assert code == 2
    assert one_line(err, "anthropic", "openai_chat")
    code, _, err = cli("decode", "--wire", "anthropic", "/nowhere")
    assert code == 2
    assert one_line(err, "/nowhere")


@pytest.mark.parametrize(
    "command",
    [("chat", "-m", "openai", "Hi"), ("models", "openai"), ("chat", "-m", "vertex", "Hi")],
)
def test_what_the_library_calls_arguments_has_its_own_words_here(
    cli, monkeypatch: pytest.MonkeyPatch, command
) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    code, _, err = cli(*command)
    assert code == 4
    assert re.search(
        r"(\w+_API_KEY) is required for .* provider: run dragoman keys set \1, or set this environment variable( or [A-Z_]+)? \(",
        err,
    ), err
    assert "api_key" not in err


def test_a_missing_base_url_names_the_option(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL")
    code, _, err = cli("chat", "-m", "openai-compatible:m", "Hi")
    assert code == 3
    assert (
        "give --base-url, such as http://localhost:8000/v1, or set OPENAI_COMPATIBLE_BASE_URL"
        in err
    )
