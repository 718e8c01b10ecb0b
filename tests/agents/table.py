"""Runs coding agents through a gateway before scripted providers, and prints what came of it.

python tests/agents/table.py [claude|codex|… | anthropic|openai_chat|… | edit|rounds|…] …
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.anthropic_api import AnthropicApi
from agents.gemini_api import GeminiApi
from agents.openai_chat_api import ChatApi
from agents.openai_responses_api import ResponsesApi
from agents.programs import MODULES, PROGRAMS, Program, find_missing, make_home
from agents.provider import Report, served
from agents.tasks import TASKS, Script, Stage
from dragoman import serve
from dragoman.cli.child import child_environment
from dragoman.cli.coding_agents import make_command
from support.serving import in_a_thread

__all__ = ["APIS", "Cell", "play"]

KEY = "a-key-of-the-gateway"
APIS: dict[str, tuple[type, str, str]] = {
    "anthropic": (AnthropicApi, "anthropic:claude-opus-4-8", ""),
    "openai_chat": (ChatApi, "openai:gpt-5", "/v1"),
    "openai_responses": (ResponsesApi, "openai-responses:gpt-5", "/v1"),
    "google": (GeminiApi, "google:gemini-3-pro-preview", "/v1beta"),
}
"""API → its class here, the model string, and what the base URL ends with."""


@dataclass
class Cell:
    """What came of a task of a program before a provider."""

    error: str | None = None
    report: Report = field(default_factory=Report)
    losses: Counter[str] = field(default_factory=Counter)
    """What the gateway named in `dragoman-loss`."""

    @property
    def share(self) -> float:
        """How much of each request stood unchanged at the head of the next one, from 0 to 1."""
        return self.report.stable / self.report.expected if self.report.expected else 1.0

    @property
    def verdict(self) -> str:
        """One line."""
        if self.report.refused:
            return f"refused {len(self.report.refused)}: {self.report.refused[0][:300]}"
        if self.error:
            return self.error[:1500]
        return "ok"


class _Watch:
    """Notes what the gateway names in `dragoman-loss`."""

    def __init__(self, app: Any, losses: Counter[str], requests: list[bytes]) -> None:
        self.app, self.losses, self.requests = app, losses, requests
        self.state = app.state

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def told(message: Any) -> None:
            for name, value in message.get("headers", ()):
                if name == b"dragoman-loss":
                    self.losses.update(part.strip() for part in value.decode().split(","))
            await send(message)

        async def read() -> Any:
            message = await receive()
            self.requests.append(message.get("body", b""))
            return message

        await self.app(scope, read, told)


@contextmanager
def _gateway(model: str, url: str, losses: Counter[str], requests: list[bytes]) -> Iterator[str]:
    provider, _, name = model.partition(":")
    gateway = serve.Gateway(
        {name: model, "*": model},
        base_urls={provider: url},
        keys={provider: "provider-key"},
    )
    app = serve.app(gateway=gateway, auth=KEY, hosts=["127.0.0.1"])
    with in_a_thread(app, outside=lambda whole: _Watch(whole, losses, requests)) as address:
        yield address


def play(program: Program, api_name: str, task_name: str, folder: Path) -> Cell:
    """Runs a task of a program before a provider, and the task that goes before it."""
    kind, model, path = APIS[api_name]
    name = model.partition(":")[2]
    script = Script(program, folder / "work")
    environment = make_home(folder)
    cell = Cell()
    settings = MODULES.parent / "settings"
    settings.mkdir(exist_ok=True)

    with served(kind(), script.play, script.name_of) as (url, report):
        cell.report = report
        tasks = [name for name in (TASKS[task_name].after, task_name) if name]
        try:
            # Each in a gateway of its own, as with `dragoman run`.
            for each in tasks:
                with _gateway(model, url + path, cell.losses, []) as address:

                    def start(words: list[str], address: str = address) -> Any:
                        command, variables = make_command(
                            [program.name, *words],
                            url=address,
                            key=KEY,
                            model=name,
                            # More than the model has, so that the client itself cuts nothing off.
                            window=1_000_000,
                            folder=settings,
                        )
                        return subprocess.Popen(
                            command,
                            env=child_environment(variables, environment),
                            cwd=folder / "work",
                            stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            text=True,
                            start_new_session=True,
                        )

                    TASKS[each].play(Stage(program, folder, report, start))
        except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
            cell.error = str(error)
    return cell


def main() -> None:
    """Prints a line for each cell."""
    words = set(sys.argv[1:])
    chosen = [list(words & set(names)) or list(names) for names in (PROGRAMS, APIS, TASKS)]
    good = everything = 0
    for program in chosen[0]:
        if missing := find_missing(PROGRAMS[program]):
            print(f"{program:9} skipped: {missing}")
            continue
        for api in chosen[1]:
            for task in chosen[2]:
                if (only := TASKS[task].only) and program not in only:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    cell = play(PROGRAMS[program], api, task, Path(folder))
                everything += 1
                good += cell.verdict == "ok"
                losses = ", ".join(f"{name} x{count}" for name, count in cell.losses.items())
                requests = f"{len(cell.report.bodies)} requests, {100 * cell.share:.0f} % stable"
                print(f"{program:9} {api:17} {task:10} {requests:27} {losses} {cell.verdict}")
    print(f"{good} of {everything}")
    sys.exit(good < everything)


if __name__ == "__main__":
    main()
