"""Wires: message formats with an owner. Each is a package of this folder that goes both ways (see
`Wire`), or brought by others.

wire = wires.get("anthropic")
messages = wire.load_messages(payload)      # from the wire
payload = wire.dump_messages(messages)      # to the wire
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Literal, cast

from dragoman.codec.plug_ins import load_plug_in, plug_ins
from dragoman.errors import SettingsError
from dragoman.wires.wire import (
    AgentClient,
    EmbeddingsWire,
    FileWire,
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
    "ProtocolWire",
    "StreamDecoder",
    "StreamEncoder",
    "Wire",
    "client",
    "embeddings",
    "get",
    "names",
    "protocol",
    "register",
]

_MODELS = ("openai_chat", "openai_responses", "anthropic", "google", "mistral", "ollama", "cohere")
_PROTOCOLS: tuple[str, ...] = ("ag_ui", "a2a", "ai_sdk")
_CLIENTS = ("ag_ui", "a2a")
"""Those by which agents are asked like models."""
_NAMES = (*_MODELS, *_PROTOCOLS)
_EMBEDDINGS = {name: name for name in ("openai_chat", "google", "mistral", "ollama", "cohere")} | {
    "openai_responses": "openai_chat"
}
"""Name of a wire → the one whose embeddings it has: OpenAI's endpoint for them is one for both of
its APIs."""
_REGISTERED: dict[str, Wire] = {}
"""Those of the process: registered in code, or loaded from an entry point."""

ENTRY_POINTS = "dragoman.wires"
"""Group of the entry points by which a distribution brings wires: name of the wire → the wire, a
module most often."""


def names(kind: Literal["model", "protocol"] | None = None) -> list[str]:
    """The names of all wires: dragoman's own, those registered, those of plug-ins. `kind`: those
    alone that models are asked in, or those that agents are; a plug-in that is broken is
    neither."""
    found = list(
        dict.fromkeys([*_NAMES, *_REGISTERED, *(entry.name for entry in plug_ins(ENTRY_POINTS))])
    )
    return found if kind is None else [name for name in found if kind in _kinds(name)]


def _kinds(name: str) -> list[str]:
    try:
        wire = get(name)
    except SettingsError:
        return []
    asks = {"model": "load_request", "protocol": "load_run"}
    return [kind for kind, function in asks.items() if hasattr(wire, function)]


def protocol(name: str) -> ProtocolWire:
    """The wire of that name, in which agents are asked.

    Raises:
        SettingsError: there is none.
    """
    wire: object = get(name)
    if not hasattr(wire, "load_run"):
        raise SettingsError(
            f"models are asked in {name}, not agents; there are {', '.join(names('protocol'))}"
        )
    return cast("ProtocolWire", wire)


def client(name: str) -> AgentClient | None:
    """How an agent that speaks the protocol of that name is asked like a model; `None`: models
    speak it, and are asked by the wire itself. A protocol that others bring has it as its attribute
    `client`.

    Raises:
        SettingsError: there is no such wire, or agents are not asked by it.
    """
    if name in _MODELS:
        return None
    wire = get(name)
    if hasattr(wire, "load_request"):
        return None
    if name in _NAMES and name not in _CLIENTS:
        found = None
    else:
        found = (
            import_module(f"dragoman.wires.{name}.client")
            if name in _NAMES
            else getattr(wire, "client", None)
        )
    if found is None:
        raise SettingsError(
            f"agents are not asked by the wire {name}; those by which they are: {', '.join(_CLIENTS)}"
        )
    return cast("AgentClient", found)


def register(wire: Wire, *, replace: bool = False) -> None:
    """Makes a wire known by its name, so that providers' records can name it.

    Raises:
        SettingsError: the name is dragoman's own, or, without `replace`, already registered.
    """
    if wire.name in _NAMES or (wire.name in _REGISTERED and not replace):
        raise SettingsError(f"a wire is named {wire.name!r} already; give yours another name")
    _REGISTERED[wire.name] = wire


def get(name: str) -> Wire:
    """The wire of that name.

    Raises:
        SettingsError: there is none, or its plug-in is broken.
    """
    if name in _NAMES:
        return _built_in(name)
    if name not in _REGISTERED:
        found = load_plug_in(ENTRY_POINTS, name, "wire")
        if found is None:
            raise SettingsError(f"no wire is named {name!r}; there are {', '.join(names())}")
        _REGISTERED[name] = cast("Wire", found)
    return _REGISTERED[name]


@cache
def _built_in(name: str) -> Wire:
    return cast("Wire", import_module(f"dragoman.wires.{name}"))


def embeddings(name: str) -> EmbeddingsWire | None:
    """The embeddings of the wire of that name; `None`: it has none. A wire that others bring has
    them as its attribute `embeddings`.

    Raises:
        SettingsError: there is no such wire.
    """
    if name in _NAMES:
        own = _EMBEDDINGS.get(name)
        return (
            None
            if own is None
            else cast("EmbeddingsWire", import_module(f"dragoman.wires.{own}.embeddings"))
        )
    return getattr(get(name), "embeddings", None)
