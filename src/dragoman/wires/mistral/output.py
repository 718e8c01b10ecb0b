"""The output's schema ⇄ `response_format`. A schema that says no more than "an object" is JSON mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_schema import strict_schema
from dragoman.codec.json_values import if_object, merged, rest

__all__ = ["dump_output", "load_output"]

_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def load_output(body: dict[str, Any]) -> tuple[Mapping[str, Any] | None, dict[str, Any]]:
    """Takes the schema out of `body` → it, and what `response_format` says beside it."""
    stated = if_object(body.get("response_format"))
    if stated == {"type": "json_object"}:
        del body["response_format"]
        return dict(_ANY_OBJECT), {}
    named = if_object(stated.get("json_schema"))
    if not isinstance(schema := named.get("schema"), dict) or stated.get("type") != "json_schema":
        return None, {}
    del body["response_format"]
    around = {**rest(stated, "type", "json_schema"), "json_schema": rest(named, "schema")}
    return cast("dict[str, Any]", schema), {"response_format": around}


def dump_output(schema: Mapping[str, Any], stated: Mapping[str, Any] | None) -> dict[str, Any]:
    """The schema → `response_format`. `stated`: what a loaded request said beside it; its schema is sent as it was.

    Any other is sent in its strict form, under the name `output_schema`, or as it is and not strict.
    """
    if stated is not None:
        return merged({"type": "json_schema", "json_schema": {"schema": schema}}, stated)
    if schema == _ANY_OBJECT:
        return {"type": "json_object"}
    strict = strict_schema(schema)
    sent = {"schema": schema, "strict": False} if strict is None else {"schema": strict, "strict": True}
    return {"type": "json_schema", "json_schema": {"name": "output_schema", **sent}}
