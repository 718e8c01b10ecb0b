"""The output's schema ↔ `text.format`. A schema that says no more than "an object" is JSON mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_schema import strict_schema
from dragoman.codec.json_values import rest

__all__ = ["dump_output", "load_output"]

_ANY_OBJECT: dict[str, Any] = {"type": "object"}
_NAME = "dartantic_output"  # D-145r


def load_output(body: dict[str, Any]) -> Mapping[str, Any] | None:
    """Takes the schema out of `body["text"]`, and leaves there what is said beside it."""
    text = cast("dict[str, Any]", body["text"]) if isinstance(body.get("text"), dict) else {}
    form = text.get("format")
    match form:
        case {"type": "json_object", **others} if not others:
            schema, left = dict(_ANY_OBJECT), {}
        case {"type": "json_schema", "schema": dict()}:
            form = cast("dict[str, Any]", form)
            schema, left = form["schema"], rest(form, "type", "schema")
        case _:
            return None
    body["text"] = {**rest(text, "format"), **({"format": left} if left else {})}
    if not body["text"]:
        del body["text"]
    return schema


def dump_output(schema: Mapping[str, Any], stated: Mapping[str, Any] | None) -> dict[str, Any]:
    """The schema → `text.format`. `stated`: what a loaded request said beside it; its schema is sent as it was.

    Any other is sent in its strict form where it has one, else as it is and not strict.
    """
    if stated is not None:
        return {"type": "json_schema", **stated, "schema": schema}
    if schema == _ANY_OBJECT:
        return {"type": "json_object"}
    strict = strict_schema(schema)
    sent = {"schema": schema, "strict": False} if strict is None else {"schema": strict, "strict": True}
    return {"type": "json_schema", "name": _NAME, **sent}
