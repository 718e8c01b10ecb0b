"""What providers say of the schemas of tools."""

from __future__ import annotations

import re
from typing import Any

import jsonschema

from agents.provider import Refused

__all__ = ["check_name", "check_openapi", "check_schema", "check_strict"]


def check_name(name: Any, pattern: str) -> None:
    """Raises `Refused` for a name that the provider does not take."""
    if not isinstance(name, str) or not re.fullmatch(pattern, name):
        raise Refused(f"tools: the name {name!r} does not fit {pattern}")


def check_schema(name: str, schema: Any) -> None:
    """Raises `Refused` for what is no JSON Schema of an object."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Refused(f"tools.{name}: the schema must be of type object")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise Refused(f"tools.{name}: no JSON Schema: {error.message}") from error


def check_strict(name: str, schema: Any) -> None:
    """Raises `Refused` for a strict schema with an object that is open or has optional keys."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and (
            schema.get("additionalProperties") is not False
            or set(schema.get("required", ())) != set(schema.get("properties", ()))
        ):
            raise Refused(f"tools.{name}: strict needs additionalProperties: false, all required")
        for part in schema.values():
            check_strict(name, part)
    elif isinstance(schema, list):
        for part in schema:
            check_strict(name, part)


_OPENAPI = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
    "$ref",
    "$defs",
    "ref",
    "defs",
    "additionalProperties",
}


def check_openapi(name: str, schema: Any) -> None:
    """Raises `Refused` for a schema with fields that Gemini's `Schema` has not."""
    if not isinstance(schema, dict):
        raise Refused(f"tools.{name}: {schema!r} is no Schema")
    if unknown := set(schema) - _OPENAPI:
        raise Refused(f'tools.{name}: Unknown name "{min(unknown)}": Cannot find field.')
    if isinstance(schema.get("type"), list):
        raise Refused(f"tools.{name}: Proto field is not repeating, cannot start list.")
    if not all(isinstance(choice, str) for choice in schema.get("enum", ())):
        raise Refused(f"tools.{name}: enum: Invalid value (TYPE_STRING)")
    if missing := set(schema.get("required", ())) - set(schema.get("properties", ())):
        raise Refused(f"tools.{name}: required: {missing} is not defined")
    for part in schema.get("properties", {}).values():
        check_openapi(name, part)
    for part in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]:
        check_openapi(name, part)
