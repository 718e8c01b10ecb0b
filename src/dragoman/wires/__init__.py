"""Wires: message formats with an owner. Each is a package of this folder that goes both ways; see `Wire`.

wire = wires.get("anthropic")
messages = wire.load_messages(payload)      # from the wire
payload = wire.dump_messages(messages)      # to the wire

One of your own is registered in code, or by an entry point of the group `dragoman.wires`: the name of the wire → the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from dragoman.errors import DragomanError, SettingsError
from dragoman.event import Event
from dragoman.message import Message, Origin
from dragoman.replay import Loss
from dragoman.request import HttpRequest, ModelRequest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ENTRY_POINTS", "StreamDecoder", "StreamEncoder", "Wire", "get", "names", "register"]

_NAMES = ("openai_chat", "openai_responses", "anthropic", "google", "mistral", "ollama", "cohere")
_REGISTERED: dict[str, Wire] = {}
"""Those of the process: registered in code, or loaded from an entry point."""

ENTRY_POINTS = "dragoman.wires"
"""Group of the entry points by which a distribution brings wires: name of the wire → the wire, a module most often."""


class StreamDecoder(Protocol):
    """A streamed response → events. Never raises for what a provider sent: errors are `RunError` events."""

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        ...

    def close(self) -> list[Event]:
        """The end of the bytes. A stream that ended too early gives a `RunError` with a `StreamCutError`."""
        ...


class StreamEncoder(Protocol):
    """Events → a streamed response."""

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none)."""
        ...

    def close(self) -> bytes:
        """The end of the events → the last bytes."""
        ...


class Wire(Protocol):
    """A message format, both ways. Sans-I/O: no sockets, no clock, no randomness. A wire is a package with these names.

    `target` is where the result goes: provider, endpoint and model. Signed content is written only for a target that
    reads its origin; without a target, as if for its own origin. `quirks` is the wire's own `Quirks` record.
    """

    name: str

    def load_messages(self, payload: Any, *, origin: Origin | None = None) -> list[Message]:
        """The part of a request that holds the conversation → messages. `origin` is given to the model's messages.

        Raises:
            HistoryError: the payload is not of this format.
        """
        ...

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> Any:
        """Messages → the part of a request that holds the conversation. What the wire cannot hold is added to `losses`."""
        ...

    def load_request(
        self, body: Mapping[str, Any], *, path: str = "", headers: Mapping[str, str] = {}, origin: Origin | None = None
    ) -> ModelRequest:
        """A request's body → the neutral request.

        Raises:
            HistoryError: the body is not of this format.
        """
        ...

    def dump_request(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> dict[str, Any]:
        """The neutral request → a request's body."""
        ...

    def dump_http(self, request: ModelRequest, *, target: Origin | None = None, quirks: Any = None) -> HttpRequest:
        """The neutral request → path, headers and body."""
        ...

    def load_response(
        self, body: bytes | Mapping[str, Any], *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> list[Event]:
        """A whole response → the events that its stream would have been."""
        ...

    def dump_response(self, events: Iterable[Event], **envelope: Any) -> dict[str, Any]:
        """Events → a whole response."""
        ...

    def decoder(self, *, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> StreamDecoder:
        """A decoder of one streamed response; a whole one sent in its place is read too."""
        ...

    def encoder(self, **envelope: Any) -> StreamEncoder:
        """An encoder of one streamed response. `envelope`: what events do not hold (id, model, created …)."""
        ...

    def load_error(self, status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
        """An error's response → the exception that says it."""
        ...

    def dump_error(self, error: DragomanError) -> tuple[int, dict[str, Any]]:
        """An exception → status and body."""
        ...


def names() -> list[str]:
    """The names of all wires: dragoman's own, those registered, those of plug-ins."""
    return list(dict.fromkeys([*_NAMES, *_REGISTERED, *(entry.name for entry in _installed())]))


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
        return cast("Wire", import_module(f"dragoman.wires.{name}"))
    if name not in _REGISTERED:
        entry = next((entry for entry in _installed() if entry.name == name), None)
        if entry is None:
            raise SettingsError(f"no wire is named {name!r}; there are {', '.join(names())}")
        _REGISTERED[name] = _loaded(entry)
    return _REGISTERED[name]


def _installed() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and needed for names that are not built in only

    return entry_points(group=ENTRY_POINTS)


def _loaded(entry: EntryPoint) -> Wire:
    """The wire of an entry point.

    Raises:
        SettingsError: it cannot be imported, or has another name; the message names the distribution.
    """
    where = f'wire "{entry.name}" of the distribution {entry.dist.name if entry.dist else "?"} ({entry.value})'
    try:
        wire = entry.load()
    except Exception as error:
        raise SettingsError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}; update or uninstall that distribution"
        ) from error
    if getattr(wire, "name", None) != entry.name:
        raise SettingsError(f"{where} must have this name as its attribute `name`")
    return cast("Wire", wire)
