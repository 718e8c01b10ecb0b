"""What A2A is here: its name, its version, the words of its older versions, and our extension of
it.

Under the extension's URI stands, in metadata, what the protocol has no field for. Each value there
is a text, since peers that keep JSON as protobuf change numbers and the order of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.native import WireNative
from dragoman.errors import HistoryError
from dragoman.event import Event, event_from_json, event_to_json
from dragoman.json_bytes import Json
from dragoman.message import Role

__all__ = [
    "EXTENSION",
    "CANONICAL",
    "NAME",
    "OLD_KINDS",
    "PATCH_TYPE",
    "OWN",
    "Quirks",
    "REPLY",
    "ROLES",
    "ROLE_NAMES",
    "VERSION",
    "extras",
    "json_of",
    "load_events",
    "others",
    "role_of",
    "text_of",
    "with_events",
]

NAME = "a2a"
OWN = WireNative(NAME)
"""Its part of `native`."""
VERSION = "1.0"
"""Of the protocol that is written; 0.2 and 0.3 are read too."""
EXTENSION = "https://dragoman.dev/a2a/ext/conversation/v1"
"""URI of our extension. Under it stands, in metadata, what the protocol has no field for; each of
its values is a text, since peers that keep JSON as protobuf change numbers and the order of
keys."""
CANONICAL = "canonical_type"
"""Key in metadata under which agents before 1.0 wrote which event of AG-UI a message is."""
PATCH_TYPE = "application/json-patch+json"
"""Media type of a change of the shared state."""
# A carried value nests an event, which nests a message, which nests what an application put there.
_DEPTH = 3 * json_bytes.MOST_DEPTH
OLD_KINDS: Mapping[str, str] = {
    "task": "task",
    "message": "message",
    "statusUpdate": "status-update",
    "artifactUpdate": "artifact-update",
}
"""Member of a stream's object → the kind that 0.3 has in its place."""
REPLY = "a2a_reply"
"""Name of a custom event by which a run says that it is answered by a message, and no task: for
short answers that are not streamed."""
ROLE_NAMES: Mapping[Role, str] = {
    Role.USER: "ROLE_USER",
    Role.MODEL: "ROLE_AGENT",
    Role.SYSTEM: "ROLE_USER",
}
"""Whose a message is → as it is written. The protocol has no system messages: they are the user's,
and the extension knows better."""
ROLES: Mapping[str, Role] = {
    "ROLE_USER": Role.USER,
    "ROLE_AGENT": Role.MODEL,
    "user": Role.USER,
    "agent": Role.MODEL,
    "assistant": Role.MODEL,
}
"""As it is read, 0.3 and the time before it included."""


class Quirks(msgspec.Struct, frozen=True):
    """What a peer takes."""

    extras: bool = True
    """Whether it is sent what the protocol has no field for, under `EXTENSION`."""
    version: Literal["1.0", "0.3"] = VERSION
    """Of the protocol that it speaks."""
    binding: Literal["jsonrpc", "rest"] = "jsonrpc"
    """By which it is asked."""
    streams: bool = True
    """Whether it tells a task while it works on it."""


def role_of(value: object) -> Role | None:
    """Returns the role of that name, or None."""
    return ROLES.get(value) if isinstance(value, str) else None


def text_of(value: Any) -> str:
    """Returns the text of a JSON value, as our extension carries it."""
    return json_bytes.encode(value).decode()


def json_of(text: Any) -> Any:
    """Returns the JSON value of a text; None if it is no JSON, or nests too deep."""
    return _decode(text, Any)


def extras(metadata: Any) -> dict[str, str]:
    """Returns what stands under our extension; only texts count."""
    fields = if_object(if_object(metadata).get(EXTENSION))
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def others(metadata: Any) -> Json:
    """Returns the application's own metadata."""
    return read_extra_fields(if_object(metadata), EXTENSION, CANONICAL)


def with_events(events: Sequence[Event]) -> dict[str, str]:
    """Returns the field `events` of our extension; empty without events."""
    if not events:
        return {}
    return {"events": "[" + ",".join([event_to_json(event).decode() for event in events]) + "]"}


def load_events(text: str) -> list[Event] | None:
    """Returns the events of the field `events`; None if they cannot be read."""
    raw_events = _decode(text, list[msgspec.Raw])
    if raw_events is None:
        return None
    try:
        return [event_from_json(bytes(raw)) for raw in raw_events]
    except (HistoryError, ValueError, TypeError, RecursionError):
        return None


def _decode(text: Any, kind: Any) -> Any:
    if not isinstance(text, str):
        return None
    try:
        json_bytes.check_depth(text, _DEPTH)
        return msgspec.json.decode(text, type=kind)
    except ValueError:
        return None
