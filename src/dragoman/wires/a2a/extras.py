"""What the protocol has no field for: texts, under the URI of our extension, in metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object
from dragoman.errors import HistoryError
from dragoman.event import Event, event_from_json, event_to_json
from dragoman.wires.a2a.quirks import EXTENSION

__all__ = ["extras", "json_of", "load_events", "others", "text_of", "with_events"]

_RESERVED = (EXTENSION, "canonical_type")
_DEPTH = 3 * json_bytes.MOST_DEPTH


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
