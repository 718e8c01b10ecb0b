"""The registry of wires, which are message formats with an owner.

    wire = wires.get("anthropic")
    messages = wire.load_messages(payload)      # read
    payload = wire.dump_messages(messages)      # write

A wire comes from one of three places, looked up in this order: a package of this folder, a call of
`register`, or an entry point of another distribution. Packages of this folder are imported when
they are first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Literal, cast

from dragoman.codec.plug_ins import load_plug_in, plug_ins
from dragoman.errors import SettingsError
from dragoman.media_request import MediaKind
from dragoman.wires.wire import (
    AgentClient,
    EmbeddingsWire,
    FileWire,
    MediaClient,
    MediaWire,
    ProtocolWire,
    StreamDecoder,
    StreamEncoder,
    Wire,
)

__all__ = [
    "ENTRY_POINTS",
    "AgentClient",
    "EmbeddingsWire",
    "FileWire",
    "MediaClient",
    "MediaWire",
    "ProtocolWire",
    "StreamDecoder",
    "StreamEncoder",
    "Wire",
    "client",
    "embeddings",
    "get",
    "is_known",
    "is_model",
    "media",
    "media_client",
    "names",
    "protocol",
    "register",
    "registered",
]

_MODELS = (
    "openai_chat",
    "openai_responses",
    "anthropic",
    "google",
    "mistral",
    "ollama",
    "cohere",
    "google_interactions",
    "bedrock_converse",
)
_PROTOCOLS: tuple[str, ...] = ("ag_ui", "a2a", "ai_sdk")
_CLIENTS = ("ag_ui", "a2a")
"""Protocols whose agents can be asked like models."""
_NAMES = (*_MODELS, *_PROTOCOLS)
_EMBEDDINGS = {name: name for name in ("openai_chat", "google", "mistral", "ollama", "cohere")} | {
    "openai_responses": "openai_chat"
}
"""Name of a wire → the wire whose embeddings it uses. OpenAI has one embeddings endpoint for both
of its APIs."""
_OPENAI = {"openai_chat": "openai_chat", "openai_responses": "openai_chat"}
_MEDIA: Mapping[MediaKind, Mapping[str, str]] = {
    "images": _OPENAI,
    "speech": _OPENAI,
    "transcription": {**_OPENAI, "mistral": "mistral"},
}
"""Kind of media → the name of a wire → the wire whose endpoint it uses."""
_MEDIA_BY_CHAT = ("google",)
"""Wires without such endpoints whose chat makes media when it is asked in its own way."""
_REGISTERED: dict[str, Wire] = {}
"""Name → a wire registered in code or loaded from an entry point."""

ENTRY_POINTS = "dragoman.wires"
"""Entry point group in which other distributions declare wires: a wire's name → the wire, usually
a module."""


def names(kind: Literal["model", "protocol"] | None = None) -> list[str]:
    """Returns the names of all wires: dragoman's own, registered ones and those of plug-ins.

    `kind` selects wires in which models (`"model"`) or agents (`"protocol"`) are asked. A broken
    plug-in is neither.
    """
    plug_in_names = [entry.name for entry in plug_ins(ENTRY_POINTS)]
    all_names = list(dict.fromkeys([*_NAMES, *_REGISTERED, *plug_in_names]))
    if kind is None:
        return all_names
    return [name for name in all_names if kind in _find_kinds(name)]


def is_known(name: str) -> bool:
    """True if there is a wire of that name: see `names`."""
    return (
        name in _NAMES
        or name in _REGISTERED
        or any(entry.name == name for entry in plug_ins(ENTRY_POINTS))
    )


def is_model(name: str) -> bool:
    """True if there is a wire of that name in which models are asked."""
    return is_known(name) and "model" in _find_kinds(name)


def registered() -> tuple[Wire, ...]:
    """Returns the wires that were registered in code or loaded from an entry point."""
    return tuple(_REGISTERED.values())


def _find_kinds(name: str) -> list[str]:
    """Returns which of `"model"` and `"protocol"` the wire of that name is."""
    try:
        wire = get(name)
    except SettingsError:
        return []
    functions = {"model": "load_request", "protocol": "load_run"}
    return [kind for kind, function in functions.items() if hasattr(wire, function)]


def protocol(name: str) -> ProtocolWire:
    """Returns the protocol of that name, a wire in which agents are asked.

    Raises:
        SettingsError: there is no such protocol.
    """
    wire: object = get(name)
    if not hasattr(wire, "load_run"):
        raise SettingsError(
            f"{name} is a wire for models, not for agents; "
            f"the protocols are {', '.join(names('protocol'))}"
        )
    return cast("ProtocolWire", wire)


def client(name: str) -> AgentClient | None:
    """Returns the client that asks an agent of that protocol like a model.

    None for a wire in which models are asked: it needs no client. A protocol of another
    distribution has its client in the attribute `client`.

    Raises:
        SettingsError: there is no such wire, or it has no client.
    """
    if name in _MODELS:
        return None
    wire = get(name)
    if hasattr(wire, "load_request"):
        return None
    client_module: object = None
    if name in _CLIENTS:
        # Imported on first use, like the wires themselves.
        client_module = import_module(f"dragoman.wires.{name}.client")
    elif name not in _NAMES:
        client_module = getattr(wire, "client", None)
    if client_module is None:
        raise SettingsError(
            f"agents cannot be asked over the wire {name}; use one of {', '.join(_CLIENTS)}"
        )
    return cast("AgentClient", client_module)


def register(wire: Wire, *, replace: bool = False) -> None:
    """Registers a wire under its name, so that provider records can refer to it.

    Raises:
        SettingsError: the name is one of dragoman's own, or is registered already and `replace` is
            false.
    """
    if wire.name in _NAMES or (wire.name in _REGISTERED and not replace):
        raise SettingsError(f"a wire named {wire.name!r} exists already; give yours another name")
    _REGISTERED[wire.name] = wire


def get(name: str) -> Wire:
    """Returns the registered wire with a name.

    Raises:
        SettingsError: there is no such wire, or its plug-in is broken.
    """
    if name in _NAMES:
        return _import_wire(name)
    if name not in _REGISTERED:
        wire = load_plug_in(ENTRY_POINTS, name, "wire")
        if wire is None:
            raise SettingsError(f"no wire is named {name!r}; there are {', '.join(names())}")
        _REGISTERED[name] = cast("Wire", wire)
    return _REGISTERED[name]


@cache
def _import_wire(name: str) -> Wire:
    return cast("Wire", import_module(f"dragoman.wires.{name}"))


def embeddings(name: str) -> EmbeddingsWire | None:
    """Returns the embeddings of the wire of that name, or None if it has none. A wire of another
    distribution has them in its attribute `embeddings`.

    Raises:
        SettingsError: there is no such wire.
    """
    if name not in _NAMES:
        return getattr(get(name), "embeddings", None)
    if name not in _EMBEDDINGS:
        return None
    module = import_module(f"dragoman.wires.{_EMBEDDINGS[name]}.embeddings")
    return cast("EmbeddingsWire", module)


def media(name: str, media_kind: MediaKind) -> MediaWire | None:
    """Returns the endpoint of the wire of that name for this kind of media, or None if it has none.
    A wire of another distribution has it in an attribute of the kind's name.

    Raises:
        SettingsError: there is no such wire.
    """
    if name not in _NAMES:
        return getattr(get(name), media_kind, None)
    if name not in _MEDIA[media_kind]:
        return None
    module = import_module(f"dragoman.wires.{_MEDIA[media_kind][name]}.{media_kind}")
    return cast("MediaWire", module)


def media_client(name: str, media_kind: MediaKind) -> MediaClient | None:
    """Returns what asks a provider of that wire for this kind of media: its endpoint, else its chat,
    or None if it has neither.

    Raises:
        SettingsError: there is no such wire.
    """
    if name not in _MEDIA_BY_CHAT:
        return media(name, media_kind)
    return cast("MediaClient", import_module(f"dragoman.wires.{name}.{media_kind}"))
