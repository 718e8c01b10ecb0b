"""Checks of a provider's record, and of the key, headers and base URL of every request. They ask a
model nothing."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from dragoman import wires
from dragoman.capability import Capability
from dragoman.errors import AuthenticationError
from dragoman.model.resolve_model import ModelString, parse_model_string
from dragoman.providers.base_url import find_base_url
from dragoman.providers.keys import find_key, request_headers
from dragoman.providers.provider import Provider
from dragoman.testing.check import Skipped, require, require_equal
from dragoman.testing.provider.bench import KEY, ProviderBench, make_reply, provider_check

__all__ = [
    "base_urls_are_found",
    "callers_headers_win",
    "keys_are_found_in_order",
    "keys_go_into_their_header",
    "lists_models",
    "missing_keys_are_named",
    "records_are_complete",
]

_RECORD = "the provider's record"


@provider_check(look=_RECORD, live=True)
def records_are_complete(bench: ProviderBench) -> None:
    """A record has names that work in model strings, a wire with requests and responses, quirks of
    that wire, a URL without a trailing slash, and the models and paths that its capabilities
    need."""
    record = bench.provider
    for name in (record.name, *record.aliases):
        require_equal(
            parse_model_string(f"{name}:m"), ModelString(name, "m"), f"the model string {name}:m"
        )
    require(record.display_name, "`display_name` is empty")
    missing = [
        name
        for name in ("dump_http", "decoder", "load_error")
        if not callable(getattr(bench.wire, name, None))
    ]
    require(
        not missing, f"the wire {record.wire} lacks {missing}, without which no model can be asked"
    )
    quirks_class: Any = getattr(bench.wire, "Quirks", None) or _find_quirks_class(record.wire)
    require(
        record.quirks is None or quirks_class is None or isinstance(record.quirks, quirks_class),
        f"`quirks` must be a Quirks record of the wire {record.wire} and is {type(record.quirks).__name__}",
    )
    _require_capabilities(record)
    _require_urls(record)


def _require_capabilities(record: Provider) -> None:
    """Requires that capabilities exist, and that the record has what they need."""
    can = record.capabilities
    require(
        Capability.chat in can or Capability.embeddings in can,
        "`capabilities` has neither chat nor embeddings",
    )
    require(
        can <= set(Capability),
        f"`capabilities` has unknown entries: {sorted(can - set(Capability))}",
    )
    needed = {Capability.parallel_tools, Capability.forced_tools} & can
    require(not needed or Capability.tools in can, f"{sorted(needed)} is declared without tools")
    require(
        Capability.typed_output in can or Capability.typed_output_with_tools not in can,
        "typed_output_with_tools is declared without typed_output",
    )
    require(
        Capability.embeddings not in can or wires.embeddings(record.wire) is not None,
        f"the capability embeddings is declared, and the wire {record.wire} has none",
    )
    require(
        Capability.models not in can or record.models is not None or record.models_path is not None,
        "the capability models is declared, and both `models_path` and `models` are None: say where models are listed",
    )


def _require_urls(record: Provider) -> None:
    """Requires an HTTP base URL and a path for models that can be joined."""
    url = record.base_url
    # Of a function or None nothing can be said before a request.
    if isinstance(url, str):
        require(url.startswith(("http://", "https://")), f"`base_url` is not an HTTP URL: {url}")
        require(not url.endswith("/"), f"`base_url` ends with a slash: {url}")
    require(
        record.models_path is None or record.models_path.startswith("/"),
        "`models_path` must begin with a slash",
    )


@provider_check(look=f"{_RECORD}: key_header, key_prefix, key_kinds, headers")
async def keys_go_into_their_header(bench: ProviderBench) -> None:
    """A request has the key exactly once, in the provider's header, and it has the provider's own
    headers."""
    record = bench.provider
    async with bench.agent(make_reply("Hello.")) as agent:
        await agent.send("Hi.")
    request = bench.server.sent[-1]
    headers = {name.lower(): value for name, value in request.headers.items()}
    for name, value in record.headers.items():
        require_equal(headers.get(name.lower()), value, f"the header {name}")
    if record.key_names:
        require_equal(
            headers.get(record.key_header.lower()),
            record.key_prefix + KEY,
            f"the header {record.key_header}",
        )
    holding = [name for name, value in headers.items() if KEY in value]
    require_equal(
        holding,
        [record.key_header.lower()] if record.key_names or holding else [],
        "the headers that hold the key",
    )
    require(
        KEY not in request.path and KEY not in str(request.body),
        "the key stands in the URL or in the body",
    )


@provider_check(look=f"{_RECORD}: key_names, key_required")
async def missing_keys_are_named(bench: ProviderBench) -> None:
    """Without a required key, `AuthenticationError` names the variable. An empty key counts as
    missing. Providers without required keys raise nothing."""
    record = bench.provider
    needed = bool(record.key_names) and record.key_required
    for environment in (
        {},
        dict.fromkeys(record.key_names, ""),
        dict.fromkeys(record.key_names, " "),
    ):
        try:
            key = find_key(record, environment=environment, system={})
        except AuthenticationError as error:
            require(needed, f"no key is needed, and without one comes {error!r}")
            require(
                record.key_names[-1] in error.message,
                f"the error does not name {record.key_names[-1]}: {error}",
            )
            require_equal(error.provider, record.name, "`provider` of the error")
        else:
            require_equal(
                (key, needed),
                (None, False),
                "the key that is found where there is none, and whether one is needed,",
            )
    # With a key in the environment of the tests, the agent would find that one.
    if needed and not any(os.environ.get(name) for name in record.key_names):
        async with bench.agent(make_reply("Hello."), api_key=None) as agent:
            try:
                await agent.send("Hi.")
            except AuthenticationError:
                require_equal(bench.server.sent, [], "what was sent without a key")
                return
        require(False, "an agent without a key asks the model all the same")


@provider_check(look=f"{_RECORD}: key_names")
def keys_are_found_in_order(bench: ProviderBench) -> None:
    """The key is the caller's, else from the caller's mapping, else from the process environment.
    The first variable name wins."""
    names = bench.provider.key_names
    if not names:
        raise Skipped(f"{bench.provider.display_name} needs no key")
    # Each source has its own value, so the result tells which one won.
    own, system = dict.fromkeys(names, "own"), dict.fromkeys(names, "system")
    require_equal(
        find_key(bench.provider, "given", environment=own, system=system),
        "given",
        "the key that is used",
    )
    require_equal(
        find_key(bench.provider, environment=own, system=system), "own", "the key that is used"
    )
    require_equal(
        find_key(bench.provider, environment={}, system=system), "system", "the key that is used"
    )
    require_equal(
        find_key(bench.provider, environment={name: name for name in names}, system={}),
        names[0],
        "the key that is used",
    )


@provider_check(look=f"{_RECORD}: headers")
async def callers_headers_win(bench: ProviderBench) -> None:
    """The caller's headers are on every request and override the provider's. A caller who sets the
    key's header needs no key."""
    record = bench.provider
    headers = {
        "X-Kit": "1",
        record.key_header.upper(): "own",
        **dict.fromkeys(record.headers, "changed"),
    }
    async with bench.agent(make_reply("Hello."), headers=headers, api_key=None) as agent:
        await agent.send("Hi.")
    sent_headers = {name.lower(): value for name, value in bench.server.sent[-1].headers.items()}
    require_equal(
        {name.lower(): sent_headers.get(name.lower()) for name in headers},
        {n.lower(): v for n, v in headers.items()},
        "the headers",
    )
    names = [name.lower() for name in request_headers(record, api_key=KEY, headers=headers)]
    require_equal(len(names), len(set(names)), "the number of headers, each once,")


@provider_check(look=f"{_RECORD}: base_url, base_url_names")
async def base_urls_are_found(bench: ProviderBench) -> None:
    """The base URL is the caller's, else that of an environment variable, else the record's.
    Requests go there."""
    record = bench.provider
    # Port 9 is the discard port: a request that were really sent would fail at once.
    given = "http://127.0.0.1:9/there/"
    environment = dict.fromkeys(record.base_url_names, "http://127.0.0.1:9/elsewhere")
    require_equal(
        await find_base_url(record, given, environment=environment, system={}),
        given.rstrip("/"),
        "the base URL",
    )
    for name, suffix in record.base_url_names.items():
        found = await find_base_url(record, environment={name: environment[name]}, system={})
        require_equal(found, environment[name] + suffix, f"the base URL that {name} gives")
    if isinstance(record.base_url, str):
        require_equal(await find_base_url(record, system={}), record.base_url, "the base URL")
    async with bench.agent(make_reply("Hello.")) as agent:
        await agent.send("Hi.")
    path = bench.server.sent[-1].path
    require(
        path.startswith(f"{bench.base_url}/"),
        f"a request went to {path} and must go to {bench.base_url}/…",
    )


@provider_check(Capability.models, look=f"{_RECORD}: models_path", live=True)
async def lists_models(bench: ProviderBench) -> None:
    """The provider lists its models, each with a name and a kind."""
    async with bench.agent(make_reply("Hello.")) as agent:
        models = await agent.list_models()
    require(all(model.name and model.kinds for model in models), "a model has no name or no kind")
    require_equal(
        {model.provider for model in models} - {bench.name},
        set[str](),
        "the providers of the models, besides its own,",
    )
    if bench.provider.models is None:
        require(models, "no models are listed")
    if bench.scripted and bench.provider.models is None:
        require_equal(
            [model.name for model in models], ["kit-model-1", "kit-model-2"], "the models' names"
        )
        require_equal(bench.server.sent[-1].method, "GET", "the method")


def _find_quirks_class(wire: str) -> Any:
    """Returns the `Quirks` class of a built-in wire, or None if it has none."""
    try:
        return getattr(import_module(f"dragoman.wires.{wire}"), "Quirks", None)
    except ModuleNotFoundError:
        return None
