"""`dragoman serve`: an agent, a model or a gateway behind the APIs that clients of models speak;
and the lines that it prints, which are such clients."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dragoman.cli.terminal import echo
from dragoman.json_bytes import Json, JsonMap
from dragoman.runtime import extra_hint

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from dragoman.agent import Agent
    from dragoman.serve.core.policy import AgentPolicy
    from dragoman.serve.core.service import Service
    from dragoman.serve.http.callers import Key

__all__ = ["format_greeting", "serve"]

_TARGET = "MODULE:AGENT"
_KEY = "DRAGOMAN_SERVE_KEY"


def serve(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar=f"[{_TARGET}]...",
            help="A Python module and the agent in it, or the application that dragoman.serve.app made. "
            "Of several agents, and of those of a module alone, clients ask by their names.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="A model, such as openai:gpt-4o.",
            show_default=False,
        ),
    ] = None,
    gateway: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A TOML file that says which models of providers clients may ask for.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="The address.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8000,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="A key that clients must send.  [default: those of DRAGOMAN_SERVE_KEY]",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Keys, one on each line: KEY, then a name for logs, then the models that it may ask for.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="DRAGOMAN_SERVE_STORE",
            help="Where answers are kept: memory:, sqlite:///FILE, postgresql://…, or none.",
        ),
    ] = "memory:",
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="HOST",
            help="A name that clients reach it by, such as that of a proxy.",
        ),
    ] = None,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            metavar="URL",
            help="Web pages that may use it (CORS), such as https://chat.example.com.",
        ),
    ] = None,
    on_disconnect: Annotated[
        str,
        typer.Option(
            metavar="cancel|detach",
            help="What becomes of an agent's run whose client leaves; detached, it is kept.",
        ),
    ] = "cancel",
    drain: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="So long answers may go on once it is asked to end."
        ),
    ] = 30.0,
    log: Annotated[
        bool,
        typer.Option(
            "--log",
            help="Show each call in a line, on standard error: never what was said, and no keys.",
        ),
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option(
            "-C",
            "--directory",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Where to run, and to look for modules.  [default: here]",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Serve a model, an agent or a gateway to the clients of any model API.

    \b
    dragoman serve                             the embedded model: no key, no network
    dragoman serve -m anthropic:claude-sonnet-4-6
    dragoman serve myagent:agent               an agent of yours, tools and all
    dragoman serve --gateway gateway.toml      models of providers, under names of yours

    \b Clients of OpenAI (Chat Completions and Responses), Anthropic, Gemini, Ollama, Mistral and
    Cohere reach it at http://127.0.0.1:8000, or by http://127.0.0.1:8000/anthropic and the like;
    the first lines that it prints are such clients. Agents are served over AG-UI (/ag-ui), A2A
    (/a2a) and the AI SDK's UI stream (/ai-sdk) too. Another address than this machine's needs a
    key: --key, or better DRAGOMAN_SERVE_KEY or --key-file, since others can read command lines.
    Ctrl-C ends it once the answers that are being given have ended; a second one at once.
    """
    if directory is not None:
        os.chdir(directory)
    try:
        from dragoman.serve.server import run_server
    except ImportError as error:
        from dragoman.errors import SettingsError

        raise SettingsError(f"a server needs {error.name}: {extra_hint('serve')}") from error
    with _show_logs(calls=log):
        auth = _read_keys(keys or [], key_file)
        if (host_names := list(hosts or ())) == [] and auth is not None:
            host_names = _list_host_names(host)
        with redirect_stdout(sys.stderr):
            app = _make_app(
                _load_targets(targets or [], model),
                gateway,
                {
                    "store": None if store == "none" else store,
                    "auth": auth,
                    "hosts": host_names,
                    "origins": origins or (),
                    "policy": _make_policy(on_disconnect),
                },
            )
        service: Service = app.state.service

        def ready(url: str) -> None:
            names = [name for backend in service.backends for name in getattr(backend, "names", ())]
            echo(
                format_greeting(
                    names, url, _KEY if service.has_keys else None, agents=_has_agents(service)
                )
            )

        run_server(app, host=host, port=port, drain_seconds=drain, ready=ready)
    return 0


def _has_agents(service: Service) -> bool:
    """Whether agents are served, and not models of a gateway alone."""
    from dragoman.serve.core.agents import AgentBackend

    return any(isinstance(backend, AgentBackend) for backend in service.backends)


def _make_policy(on_disconnect: str) -> AgentPolicy:
    from dragoman.serve import AgentPolicy

    if on_disconnect not in ("cancel", "detach"):
        raise typer.BadParameter(
            f"{on_disconnect!r} is neither cancel nor detach", param_hint="--on-disconnect"
        )
    return AgentPolicy(on_disconnect=on_disconnect)


def _read_keys(arguments: list[str], file: Path | None) -> list[Key] | None:
    """The keys of the command line, else of the variable; and of the file. `None`: there are
    none."""
    from dragoman.serve.http.callers import Key, keys_in, read_keys

    keys = [Key(argument) for argument in arguments]
    if not keys and (variable := os.environ.get(_KEY)):
        keys = keys_in(variable, where=_KEY)
    if file is not None:
        keys += read_keys(file)
    return keys or None


@contextmanager
def _show_logs(*, calls: bool) -> Generator[None]:
    """Shows what goes wrong, and each call if wanted, in a line each."""
    import logging

    log, of_calls = logging.getLogger("dragoman.serve"), logging.getLogger("dragoman.serve.calls")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    before = log.level, of_calls.level
    log.addHandler(handler)
    log.setLevel(logging.WARNING)
    of_calls.setLevel(logging.INFO if calls else logging.WARNING)
    try:
        yield
    finally:
        log.removeHandler(handler)
        for logger, level in zip((log, of_calls), before, strict=True):
            logger.setLevel(level)


def _load_targets(targets: list[str], model: str | None) -> list[tuple[str, Any]]:
    """What is to be served, by name.

    Raises:
        BadParameter: it is not there.
    """
    from dragoman.agent import Agent
    from dragoman.cli.modules import load_value

    served: list[tuple[str, Any]] = []
    for target in targets:
        value = load_value(target, _TARGET, lambda module, values: _find_agents(module, values))
        name = target.partition(":")[2]
        served += value if isinstance(value, _ModuleAgents) else [(name, value)]
    if model is not None:
        served.append((model, Agent[None](model)))
    names = [name for name, _ in served]
    if len(set(names)) < len(names):
        raise typer.BadParameter(
            f"two are named {max(names, key=names.count)!r}, so that clients could not ask for one",
            param_hint=_TARGET,
        )
    return served


class _ModuleAgents(list[tuple[str, Any]]):
    """The agents of a module, by name."""


def _find_agents(module: str, values: JsonMap) -> _ModuleAgents:
    from dragoman.agent import Agent

    agents: dict[int, tuple[str, Any]] = {}
    for name, value in values.items():
        if _is_instance(value, Agent):
            agents.setdefault(id(value), (name, value))
    if not agents:
        raise typer.BadParameter(
            f"{module!r} ({values.get('__file__')}) has no agent", param_hint=_TARGET
        )
    return _ModuleAgents(agents.values())


def _is_instance(value: Any, cls: type) -> bool:
    return isinstance(value, cls)


def _make_app(served: list[tuple[str, Any]], file: Path | None, options: Json) -> Starlette:
    """The application.

    Raises:
        BadParameter: what is named is nothing that can be served.
        SettingsError: what the file says cannot be used, or a model has no key.
    """
    from starlette.applications import Starlette

    from dragoman.agent import Agent
    from dragoman.serve import Gateway, app

    if len(served) == 1 and isinstance(application := served[0][1], Starlette):
        if file is not None:
            raise typer.BadParameter(
                "the application has its own; give one of the two", param_hint="--gateway"
            )
        if not hasattr(application.state, "service"):
            raise typer.BadParameter(
                "it is no application of dragoman.serve.app", param_hint=_TARGET
            )
        return application
    for name, value in served:
        if not isinstance(value, Agent):
            raise typer.BadParameter(
                f"{name!r} is a {type(value).__name__}, and no agent", param_hint=_TARGET
            )
    gateway = None if file is None else Gateway.from_toml(file)
    if not served and gateway is None:
        served = [("local", Agent[None]())]
    agents: dict[str, Agent[Any]] = dict(served)
    for agent in agents.values():
        _check_keys(agent)
        _load_embedded_model(agent)
    # A gateway's names must not be an agent's.
    several = len(agents) > 1 or gateway is not None
    return app(
        (agents if several else next(iter(agents.values()))) if agents else None,
        gateway=gateway,
        **options,
    )


def _check_keys(agent: Agent[Any]) -> None:
    """Refuses an agent none of whose models has its key. The server warns of one that has some.

    Raises:
        AuthenticationError: there is none.
    """
    errors = list(agent.check_keys().values())
    if errors and errors[0] is not None and None not in errors:
        raise errors[0]


def _load_embedded_model(agent: Any) -> None:
    """Starts what serves the agent's model, where that is this process."""
    from dragoman import providers

    if agent.provider_name != "local":
        return
    import asyncio

    record = providers.get("local")
    if callable(record.base_url):
        echo("loading the embedded model", err=True)
        asyncio.run(record.base_url(agent.chat_model_name or record.chat_model))  # pyright: ignore


def _list_host_names(host: str) -> list[str]:
    """By which names clients reach it that send a key: a page of another's, which could come under
    any name, has none."""
    if host in ("0.0.0.0", "::"):  # noqa: S104
        return ["*"]
    return [f"[{host}]" if ":" in host else host]


_MOST_NAMES = 8

_TEXT = """\
serving {names} at {url}; Ctrl-C ends it

# curl
curl {url}/v1/chat/completions -H "content-type: application/json"{header} \\
  -d '{{"model": {model}, "messages": [{{"role": "user", "content": "Name a river."}}]}}'

# Python: pip install openai
{python_imports}from openai import OpenAI
client = OpenAI(base_url="{url}/v1", api_key={python_key})
print(client.chat.completions.create(model={model}, messages=[{{"role": "user", "content": "Name a river."}}]).choices[0].message.content)

// JavaScript: npm install openai
import OpenAI from "openai";
const client = new OpenAI({{ baseURL: "{url}/v1", apiKey: {javascript_key} }});
const answer = await client.chat.completions.create({{ model: {model}, messages: [{{ role: "user", content: "Name a river." }}] }});
console.log(answer.choices[0].message.content);
"""
_PROTOCOLS = """
# agents, in every protocol
AG-UI   {url}/ag-ui          for CopilotKit, assistant-ui and HttpAgent of @ag-ui/client
AI SDK  {url}/ai-sdk         for useChat: new DefaultChatTransport({{ api: … }})
A2A     {url}/a2a            its card: {url}/.well-known/agent-card.json
"""


def format_greeting(
    names: Sequence[str], url: str, variable: str | None, *, agents: bool = False
) -> str:
    """Where the server is, and clients in three languages.

    `names`: what clients may ask for; `*` stands for any characters. `variable`: of the
    environment, which holds the key that clients send; `None`: they need none. `agents`: whether
    agents are among them, which are served in agent protocols too.
    """
    example = next((name for name in names if "*" not in name), "MODEL")
    listed = ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )
    text = _TEXT + (_PROTOCOLS if agents else "")
    return text.format(
        url=url,
        names=listed or "models",
        model=msgspec.json.encode(example).decode(),
        header=f' -H "authorization: Bearer ${variable}"' if variable else "",
        python_imports="import os\n" if variable else "",
        python_key=f'os.environ["{variable}"]' if variable else '"none"',
        javascript_key=f"process.env.{variable}" if variable else '"none"',
    )
