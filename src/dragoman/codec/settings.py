"""Settings that a format has as they are, under names of its own."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codec.json_values import if_list
from dragoman.json_bytes import Json
from dragoman.request import Settings

__all__ = ["Fields", "dump_fields", "take_fields", "take_stops"]

Fields = Mapping[str, tuple[str, tuple[type, ...]]]
"""Field → the setting that it is, and the types that it has then."""


def take_fields(body: Json, fields: Fields) -> Json:
    """Removes the settings that `fields` names from a request's `body`. Returns them by their
    neutral names. A value of another type stays."""
    found: Json = {}
    for field, (setting, types) in fields.items():
        if isinstance(body.get(field), types) and isinstance(body[field], bool) == (
            types == (bool,)
        ):
            found[setting] = body.pop(field)
    return found


def take_stops(body: Json, field: str) -> Json:
    """Removes the setting for stop texts from a request's `body`. Returns the setting `stop`, or
    nothing if it is no list of texts."""
    stops = body.get(field)
    usual = isinstance(stops, list) and all(isinstance(text, str) for text in if_list(stops))
    return {"stop": tuple(body.pop(field))} if usual else {}


def dump_fields(settings: Settings, fields: Fields) -> Json:
    """Returns settings as fields of a body. The inverse of `take_fields`."""
    return {
        field: value
        for field, (name, _) in fields.items()
        if (value := getattr(settings, name)) is not None
    }
