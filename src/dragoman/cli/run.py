"""`dragoman run`: starts a gateway and a coding agent that asks it, in one command."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.coding_agents import find_agent, make_command
from dragoman.cli.terminal import report
from dragoman.errors import DragomanError, SettingsError
from dragoman.runtime import extra_hint

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from dragoman.serve import Gateway

__all__ = ["run"]

_KEY_BYTES = 24


def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM [ARGUMENT]...", help="The program.", show_default=False),
    ],
    models: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--model",
            metavar="[NAME=]MODEL",
            help="A model, such as openai:gpt-5, and the name by which the program asks for it. The "
            "first one answers to any other name, too. May be repeated.  [default: DRAGOMAN_MODEL]",
            show_default=False,
        ),
    ] = None,
    gateway: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A TOML file with the models, as for dragoman serve; -m is then one of its names.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    store: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="DRAGOMAN_SERVE_STORE",
            help="Where answers are kept: memory:, or sqlite:///FILE to resume sessions later.",
        ),
    ] = "memory:",
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="A file that gets a line per call, without contents and keys.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Run Claude Code, Codex, Gemini CLI, Qwen Code, OpenCode or aider with any model.

    \b
    dragoman run -m openai:gpt-5 claude
    dragoman run -m anthropic:claude-opus-4-8 codex exec "fix the tests"
    dragoman run -m big=google:gemini-3-pro -m small=groq:llama-3.3-70b-versatile -- claude
    dragoman run --gateway gateway.toml -- gemini -p "what is here?"

    \b
    A gateway serves on this machine as long as the program runs, for it alone: by a key that is made
    for this run. The program gets its address, that key and the model's name in its own variables;
    nothing else on this machine changes. A program of another name gets the variables of all. The
    exit code is the program's.
    """
    from dragoman.cli.child import NOT_FOUND

    if shutil.which(command[0]) is None:
        install = find_agent(command[0]).install
        hint = f"install it: {install}" if install else "write its name as in a shell"
        report(DragomanError(f"there is no program {command[0]!r}; {hint}"))
        return NOT_FOUND
    try:
        from dragoman.http_server.listener import run_in_loop
        from dragoman.serve import app
        from dragoman.serve.http.callers import Key
    except ImportError as error:
        raise SettingsError(f"a gateway needs {error.name}: {extra_hint('serve')}") from error
    served, name = _make_gateway(models or [], gateway)
    for missing in served.check_keys().values():
        if missing is not None:
            raise missing
    key = secrets.token_urlsafe(_KEY_BYTES)
    application = app(
        gateway=served, store=store if store != "none" else None, auth=Key(key), hosts=["127.0.0.1"]
    )

    def make(url: str, folder: Path) -> tuple[list[str], dict[str, str | None]]:
        return make_command(
            command,
            url=url,
            key=key,
            model=name,
            window=_find_window(served, name),
            folder=folder,
        )

    with _keep_quiet(log), _make_folder() as folder:
        return run_in_loop(_run_beside(application, port, lambda url: make(url, Path(folder))))


def _make_gateway(models: Sequence[str], file: Path | None) -> tuple[Gateway, str | None]:
    """Returns the gateway, and the name that the program is to ask for; None: one of its own.

    Raises:
        BadParameter: there is no model, or the file has not the one that is named.
        SettingsError: a model, or the file, cannot be used.
    """
    from dragoman.serve import Gateway

    if file is not None:
        gateway = Gateway.from_toml(file)
        if not models:
            return gateway, next((name for name in gateway.names if "*" not in name), None)
        if not gateway.serves(models[0]):
            raise typer.BadParameter(f"{file} has no model {models[0]!r}", param_hint="-m")
        return gateway, models[0]
    if not (models := models or list(filter(None, [os.environ.get("DRAGOMAN_MODEL")]))):
        raise typer.BadParameter(
            "which model? Name one, such as -m openai:gpt-5, or a gateway's file", param_hint="-m"
        )
    named = dict(_read_model(text) for text in models)
    first = next(iter(named))
    return Gateway({**named, "*": named[first]}), first


def _read_model(text: str) -> tuple[str, str]:
    """Returns the name by which the program asks for a model, and its model string: `NAME=MODEL`,
    or `MODEL` with the provider's own name of it."""
    name, equals, model = text.partition("=")
    if equals and "://" not in name:
        return name.strip(), model.strip()
    return text.partition(":")[2] or text, text


@contextmanager
def _keep_quiet(file: Path | None) -> Generator[None]:
    """Keeps the gateway's lines off the screen within the block, since that is the program's.
    `file`: gets them."""
    handler: logging.Handler = logging.NullHandler()
    served, root = logging.getLogger("dragoman.serve"), logging.getLogger()
    before = served.level
    if file is not None:
        handler = logging.FileHandler(file, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        served.setLevel(logging.INFO)
    # Without any handler, warnings would reach standard error by themselves.
    root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)
        handler.close()
        served.setLevel(before)


def _make_folder() -> tempfile.TemporaryDirectory[str]:
    """Makes a folder for the files of a run. Gemini CLI reads none that is below a folder in which
    others may write, as /tmp is."""
    parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    with suppress(OSError):
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="dragoman-run-", dir=parent)
    return tempfile.TemporaryDirectory(prefix="dragoman-run-")


def _find_window(gateway: Gateway, name: str | None) -> int | None:
    """Returns how many tokens a model of the gateway takes, or None if that is not known."""
    profile = gateway.find_profile(name) if name else None
    return profile and (profile.input or profile.window)


async def _run_beside(
    application: Starlette,
    port: int,
    make: Callable[[str], tuple[list[str], dict[str, str | None]]],
) -> int:
    """Serves an application while a program runs, and returns the program's exit code. `make`: gets
    the address, and returns the program's command and variables."""
    import asyncio

    from dragoman.cli.child import run_child
    from dragoman.serve.server import serve_http

    ready = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(
        serve_http(application, port=port, drain_seconds=0, ready=ready.set_result)
    )
    try:
        await asyncio.wait((ready, serving), return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            # It could not begin, or a signal came before.
            await serving
            raise KeyboardInterrupt
        return await run_child(*make(ready.result()))
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
