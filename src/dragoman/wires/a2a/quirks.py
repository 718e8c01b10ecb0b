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
    "read_carried",
    "json_of",
    "load_events",
    "app_metadata",
    "role_of",
    "text_of",
    "dump_events",
]

NAME = "a2a"
OWN = WireNative(NAME)
"""The wire's part of `native`."""
VERSION = "1.0"
"""Protocol version that is written. Versions 0.2 and 0.3 are read too."""
EXTENSION = "https://dragoman.dev/a2a/ext/conversation/v1"
"""URI of dragoman's extension, and the key of its fields in metadata. It holds what the protocol
has no field for. Its values are texts, since peers that store JSON as protobuf change numbers
and the order of keys."""
CANONICAL = "canonical_type"
"""Metadata key under which agents before 1.0 name the AG-UI event that a message is."""
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
"""Member of a stream's object in 1.0 → its `kind` in 0.3."""
REPLY = "a2a_reply"
"""Name of the custom event that makes a run answer with a message in place of a task, for short
answers."""
ROLE_NAMES: Mapping[Role, str] = {
    Role.USER: "ROLE_USER",
    Role.MODEL: "ROLE_AGENT",
    Role.SYSTEM: "ROLE_USER",
}
"""Role → its name. The protocol has no system messages, so they are the user's, and the
extension has the true role."""
ROLES: Mapping[str, Role] = {
    "ROLE_USER": Role.USER,
    "ROLE_AGENT": Role.MODEL,
    "user": Role.USER,
    "agent": Role.MODEL,
    "assistant": Role.MODEL,
}
"""Name in any version → role."""


class Quirks(msgspec.Struct, frozen=True):
    """What a peer takes."""

    extras: bool = True
    """True if the peer gets dragoman's extension."""
    version: Literal["1.0", "0.3"] = VERSION
    """Protocol version that the peer speaks."""
    binding: Literal["jsonrpc", "rest"] = "jsonrpc"
    """Binding by which it is asked."""
    streams: bool = True
    """True if it streams tasks."""


def role_of(value: object) -> Role | None:
    """Returns the role for any A2A version's name of it, or None."""
    if isinstance(value, str):
        return ROLES.get(value)
    return None


def text_of(value: Any) -> str:
    """Returns a JSON value as text, as the extension carries it."""
    return json_bytes.encode(value).decode()


def json_of(text: Any) -> Any:
    """Returns the value of a JSON text, or None if it is no JSON or nests too deep."""
    return _decode_carried(text, Any)


def read_carried(metadata: Any) -> dict[str, str]:
    """Returns the fields under the A2A extension's URI in metadata. Values that are no text are
    ignored."""
    fields = if_object(if_object(metadata).get(EXTENSION))
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def app_metadata(metadata: Any) -> Json:
    """Returns the metadata of the application, without the extension's and the canonical type."""
    return read_extra_fields(if_object(metadata), EXTENSION, CANONICAL)


def dump_events(events: Sequence[Event]) -> dict[str, str]:
    """Returns the A2A extension's `events` field, or an empty object without events."""
    if not events:
        return {}
    return {"events": "[" + ",".join([event_to_json(event).decode() for event in events]) + "]"}


def load_events(text: str) -> list[Event] | None:
    """Returns the events in the A2A extension's `events` field, or None if they cannot be read."""
    raw_events = _decode_carried(text, list[msgspec.Raw])
    if raw_events is None:
        return None
    try:
        return [event_from_json(bytes(raw)) for raw in raw_events]
    except (HistoryError, ValueError, TypeError, RecursionError):
        return None


def _decode_carried(text: Any, value_type: Any) -> Any:
    """Returns a JSON text in the metadata of an A2A object as a value of this type, or None if it
    does not fit or nests too deep."""
    if not isinstance(text, str):
        return None
    try:
        json_bytes.check_depth(text, _DEPTH)
        return msgspec.json.decode(text, type=value_type)
    except ValueError:
        return None
