"""What A2A is here: its name, its version, the words of its older versions, and our extension of it.

Under the extension's URI stands, in metadata, what the protocol has no field for. Each value there is a text, since peers that keep
JSON as protobuf change numbers and the order of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object
from dragoman.codec.native import Own
from dragoman.errors import HistoryError
from dragoman.event import Event, event_from_json, event_to_json
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
OWN = Own(NAME)
"""Its part of `native`."""
VERSION = "1.0"
"""Of the protocol that is written; 0.2 and 0.3 are read too."""
EXTENSION = "https://dragoman.dev/a2a/ext/conversation/v1"
"""URI of our extension. Under it stands, in metadata, what the protocol has no field for; each of its values is a text, since peers
that keep JSON as protobuf change numbers and the order of keys."""
CANONICAL = "canonical_type"
"""Key in metadata under which agents before 1.0 wrote which event of AG-UI a message is."""
PATCH_TYPE = "application/json-patch+json"
"""Media type of a change of the shared state."""
_RESERVED = (EXTENSION, CANONICAL)
_DEPTH = 3 * json_bytes.MOST_DEPTH
OLD_KINDS: Mapping[str, str] = {
    "task": "task",
    "message": "message",
    "statusUpdate": "status-update",
    "artifactUpdate": "artifact-update",
}
"""Member of a stream's object → the kind that 0.3 has in its place."""
REPLY = "a2a_reply"
"""Name of a custom event by which a run says that it is answered by a message, and no task: for short answers that are not streamed."""
ROLE_NAMES: Mapping[Role, str] = {
    Role.USER: "ROLE_USER",
    Role.MODEL: "ROLE_AGENT",
    Role.SYSTEM: "ROLE_USER",
}
"""Whose a message is → as it is written. The protocol has no system messages: they are the user's, and the extension knows better."""
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
    """The role of that name; `None`: there is none."""
    return ROLES.get(value) if isinstance(value, str) else None


def text_of(value: Any) -> str:
    """A JSON value as its text."""
    return json_bytes.encode(value).decode()


def json_of(text: Any) -> Any:
    """The inverse; `None` where it is no JSON, or nests too deep."""
    if not isinstance(text, str):
        return None
    try:
        json_bytes.bound(text, _DEPTH)
        return msgspec.json.decode(text)
    except ValueError:
        return None


def extras(metadata: Any) -> dict[str, str]:
    """What stands under our extension; only texts count."""
    given = if_object(if_object(metadata).get(EXTENSION))
    return {key: value for key, value in given.items() if isinstance(value, str)}


def others(metadata: Any) -> dict[str, Any]:
    """Metadata that is the application's."""
    return {key: value for key, value in if_object(metadata).items() if key not in _RESERVED}


def with_events(events: Sequence[Event]) -> dict[str, str]:
    """Events as the value of the field `events`; none where there are none."""
    if not events:
        return {}
    return {"events": "[" + ",".join([event_to_json(event).decode() for event in events]) + "]"}


def load_events(fields: Mapping[str, str]) -> list[Event] | None:
    """The inverse; `None` where they cannot be read."""
    if "events" not in fields:
        return []
    listed = json_of(fields["events"])
    if not isinstance(listed, list):
        return None
    try:
        return [event_from_json(json_bytes.encode(each)) for each in if_list(listed)]
    except (HistoryError, ValueError, TypeError, RecursionError):
        return None
