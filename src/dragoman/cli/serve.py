"""`dragoman serve`: agents, a model or a gateway as a server for the clients of model APIs.

`serve` loads what to serve (`_load_served`), makes the application (`_make_app`) and runs it.
While it loads the user's modules, standard output goes to standard error. `format_greeting` is what
it prints when clients can connect: its address and working examples.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dragoman.cli.agents import check_agents, check_names, load_targets, prepare_agent
from dragoman.cli.settings import expand_alias, find_default_model
from dragoman.cli.terminal import DirectoryOption, echo
from dragoman.json_bytes import Json
from dragoman.runtime import extra_hint

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from dragoman.serve.core.policy import AgentPolicy
    from dragoman.serve.core.service import Service
    from dragoman.serve.http.callers import Key

__all__ = ["READY", "format_greeting", "serve"]

_TARGET = "MODULE:AGENT"
_KEY = "DRAGOMAN_SERVE_KEY"
READY = "dragoman.ready"
"""Key in the context's `meta` of a function that is called with the URL once clients can connect."""


def serve(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar=f"[{_TARGET}]...",
            help="A Python module and the agent in it, or an application of dragoman.serve.app. "
            "Of several agents, or a module alone, clients choose one by its name.",
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
            callback=expand_alias,
        ),
    ] = None,
    gateway: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A TOML file with the models of providers that clients may ask for.",
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
            help="A file of keys, one per line: KEY, a name for logs, the models that it may use.",
            show_default=False,
        ),
    ] = None,
    stored_keys: Annotated[
        bool,
        typer.Option(
            "--stored-keys",
            help="Take keys that dragoman keys create made in the store, too. Clients need a key.",
        ),
    ] = False,
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
            help="A host name by which clients reach the server, such as a proxy's.",
        ),
    ] = None,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            metavar="URL",
            help="A web page that may use the server (CORS), such as https://chat.example.com.",
        ),
    ] = None,
    on_disconnect: Annotated[
        str,
        typer.Option(
            metavar="cancel|detach",
            help="Cancel an agent's run when its client leaves, or let it finish and keep it.",
        ),
    ] = "cancel",
    drain: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="How long running answers may take after a stop signal."
        ),
    ] = 30.0,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable",
            help="Put agents' runs into the store: another server or dragoman worker goes on with them "
            "if this process ends. Clients name the agent.",
        ),
    ] = False,
    no_drive: Annotated[
        bool,
        typer.Option(
            "--no-drive",
            help="With --durable: leave the runs to dragoman worker and other servers.",
        ),
    ] = False,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=256,
            metavar="N",
            help="How many processes serve, for more than one core. They need a store that they share.",
        ),
    ] = 1,
    page: Annotated[
        bool,
        typer.Option(
            "--page/--no-page",
            help="Show browsers a page at /: talk to the agents, and see what they did.",
        ),
    ] = True,
    log: Annotated[
        bool,
        typer.Option(
            "--log",
            help="Print a line per call on standard error, without contents and keys.",
        ),
    ] = False,
    directory: DirectoryOption = None,
) -> int:
    """Serve a model, your agent or a gateway to the clients of any model API.

    \b
    dragoman serve                             the embedded model: no key, no network
    dragoman serve -m anthropic:claude-sonnet-4-6
    dragoman serve myagent:agent               your agent with its tools
    dragoman serve --gateway gateway.toml      models of providers, under your own names

    \b
    Clients of OpenAI (Chat Completions and Responses), Anthropic, Gemini, Ollama, Mistral
    and Cohere reach it at http://127.0.0.1:8000, or at http://127.0.0.1:8000/anthropic and
    so on. The command prints working examples. Agents are also served over AG-UI (/ag-ui),
    A2A (/a2a) and the AI SDK's UI stream (/ai-sdk). Addresses other than this machine's need
    a key: --key, or better DRAGOMAN_SERVE_KEY or --key-file, since other users can read
    command lines. Ctrl-C stops the server after the running answers; a second one at once.
    """
    from dragoman.cli.processes import run_processes
    from dragoman.http_server.server_process import ServerProcess

    process = ServerProcess.from_environment()
    if processes > 1 and process is None:
        with _show_logs(calls=False):
            return run_processes(processes, context.find_root().obj, host, port, drain)
    if directory is not None:
        os.chdir(directory)
    try:
        from dragoman.serve.server import run_process, run_server
    except ImportError as error:
        from dragoman.errors import SettingsError

        raise SettingsError(f"a server needs {error.name}: {extra_hint('serve')}") from error
    with _show_logs(calls=log):
        auth = _read_keys(keys or [], key_file)
        # Without keys the server itself allows only the names of this machine.
        if (host_names := list(hosts or ())) == [] and (auth is not None or stored_keys):
            host_names = _list_host_names(host)
        # Modules may print while they are imported; standard output is for the greeting.
        with redirect_stdout(sys.stderr):
            app = _make_app(
                _load_served(targets or [], model),
                gateway,
                {
                    "store": store if store != "none" else None,
                    "auth": auth,
                    "stored_keys": stored_keys,
                    "hosts": host_names,
                    "origins": origins or (),
                    "policy": _make_policy(on_disconnect),
                    "page": page,
                    "durable": durable,
                    "drives": not no_drive,
                },
            )
        service: Service = app.state.service

        def greet(url: str) -> str:
            names = [name for backend in service.backends for name in getattr(backend, "names", ())]
            return format_greeting(
                names,
                url,
                _KEY if service.has_keys else None,
                agents=_has_agents(service),
                page=service.has_page,
            )

        def show(url: str) -> None:
            echo(greet(url))
            if READY in context.meta:
                context.meta[READY](url)

        if process is None:
            run_server(app, host=host, port=port, drain_seconds=drain, ready=show)
        else:
            run_process(app, process, host=host, drain_seconds=drain, ready=greet)
    return 0


def _has_agents(service: Service) -> bool:
    """True if agents are served, and not only models of a gateway."""
    from dragoman.serve.core.agents import AgentBackend

    return any(isinstance(backend, AgentBackend) for backend in service.backends)


def _make_policy(on_disconnect: str) -> AgentPolicy:
    """Returns the policy for agents' runs from the options of `dragoman serve`.

    Raises:
        BadParameter: `--on-disconnect` has another value.
    """
    from dragoman.serve import AgentPolicy

    if on_disconnect not in ("cancel", "detach"):
        raise typer.BadParameter(
            f"{on_disconnect!r} is neither cancel nor detach", param_hint="--on-disconnect"
        )
    return AgentPolicy(on_disconnect=on_disconnect)


def _read_keys(arguments: list[str], file: Path | None) -> list[Key] | None:
    """Returns the keys that `dragoman serve` takes: those of the command line, or else of the
    variable, and those of the file; None if there are none."""
    from dragoman.serve.http.callers import Key, parse_keys, read_keys

    keys = [Key(argument) for argument in arguments]
    if not keys and (variable := os.environ.get(_KEY)):
        keys = parse_keys(variable, where=_KEY)
    if file is not None:
        keys += read_keys(file)
    return keys or None


@contextmanager
def _show_logs(*, calls: bool) -> Generator[None]:
    """Shows failures of the served calls on standard error, and with `calls` a line per call."""
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


def _load_served(targets: list[str], model: str | None) -> list[tuple[str, Any]]:
    """Returns the agents that `dragoman serve` is to serve, by name.

    Raises:
        BadParameter: something does not exist, or two things have the same name.
    """
    from dragoman.agent import Agent

    served = load_targets(targets, _TARGET)
    if model is not None:
        served.append((model, Agent[None](model)))
    check_names(served, _TARGET)
    return served


def _make_app(served: list[tuple[str, Any]], file: Path | None, options: Json) -> Starlette:
    """Returns the ASGI application for the options of `dragoman serve`.

    Raises:
        BadParameter: a target cannot be served.
        SettingsError: the gateway's file cannot be used, or a model has no key.
    """
    from starlette.applications import Starlette

    from dragoman.agent import Agent
    from dragoman.serve import Gateway, app

    if len(served) == 1 and isinstance(application := served[0][1], Starlette):
        if file is not None:
            raise typer.BadParameter(
                "the application has its own; give one of the two", param_hint="--gateway"
            )
        if options["durable"] or not options["drives"]:
            raise typer.BadParameter(
                "the application says it itself: dragoman.serve.app(…, durable=True)",
                param_hint="--durable",
            )
        if not hasattr(application.state, "service"):
            raise typer.BadParameter(
                "it is no application of dragoman.serve.app", param_hint=_TARGET
            )
        return application
    agents = check_agents(served, _TARGET)
    gateway = Gateway.from_toml(file) if file is not None else None
    if not agents and gateway is None:
        agents = {"local": Agent[None](find_default_model())}
    for agent in agents.values():
        prepare_agent(agent)
    if not agents:
        return app(None, gateway=gateway, **options)
    # One agent alone answers to any model name, which would hide the names of a gateway. Workers find
    # an agent by its name.
    if len(agents) == 1 and gateway is None and not options["durable"]:
        return app(next(iter(agents.values())), **options)
    return app(agents, gateway=gateway, **options)


def _list_host_names(host: str) -> list[str]:
    """Returns the host names by which clients with keys reach the server. Behind `0.0.0.0` and `::`
    any name will do: a web page under a foreign name has no key."""
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
_PAGE = """
# in a browser: talk to the agents, and see what they did
{url}/
"""


def format_greeting(
    names: Sequence[str],
    url: str,
    variable: str | None,
    *,
    agents: bool = False,
    page: bool = False,
) -> str:
    """Returns the server's address and examples in three languages.

    `names`: the models that clients may ask for, in which `*` stands for any characters.
    `variable`: the environment variable with the clients' key, or None if they need none. `agents`:
    agents are among them, which are also served in agent protocols. `page`: browsers get a page.
    """
    example = next((name for name in names if "*" not in name), "MODEL")
    name_list = ", ".join(names[:_MOST_NAMES]) or "models"
    if len(names) > _MOST_NAMES:
        name_list += f" and {len(names) - _MOST_NAMES} more"
    # The official clients refuse to start without a key, so one is given in any case.
    fields = {
        "header": "",
        "python_imports": "",
        "python_key": '"none"',
        "javascript_key": '"none"',
    }
    if variable:
        fields = {
            "header": f' -H "authorization: Bearer ${variable}"',
            "python_imports": "import os\n",
            "python_key": f'os.environ["{variable}"]',
            "javascript_key": f"process.env.{variable}",
        }
    text = _TEXT + (_PROTOCOLS if agents else "") + (_PAGE if page else "")
    model = msgspec.json.encode(example).decode()
    return text.format(url=url, names=name_list, model=model, **fields)
