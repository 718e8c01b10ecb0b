"""The OpenAPI document of a server, made of its places.

`describe_server` takes the same list of paths that the routes are made of, so that the document
cannot differ from the server. Each path becomes an operation; a path that several wires share
accepts the bodies of all of them. The schema of a wire's errors is inferred from an error that
the wire writes. The server's own pages, which no wire has, stand in tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from dragoman.codec.multipart import FORM_TYPE
from dragoman.codec.serving import PURPOSES, KeyPlace, Route
from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.serve.http.body import FORM_PURPOSES
from dragoman.serve.http.method_paths import MethodPath
from dragoman.wires.serving import get_serving
from dragoman.wires.wire import Wire

__all__ = ["describe_server"]

_NAMES = re.compile(r"\{(\w+)\}")
_JSON_TYPES: Mapping[object, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_OPERATIONS: JsonMap = {
    "/healthz": ("Whether the server lives.", _TEXT, {"200"}),
    "/readyz": ("Whether it takes calls: not while it ends.", _TEXT, {"200", "503"}),
    "/metrics": ("What Prometheus reads.", _TEXT, {"200", "401", "403"}),
    "/openapi.json": (
        "This document.",
        {"application/json": {"schema": {"type": "object"}}},
        {"200"},
    ),
}


_OBJECT: JsonMap = {"application/json": {"schema": {"type": "object"}}}
_PLAN = (
    "/v1/plan",
    "What a conversation would lose, cost and void at a model.",
    _OBJECT,
    {"200", "400", "401", "404"},
)
_PLAN_BODY: JsonMap = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["model", "format", "body"],
            "properties": {
                "model": {"type": "string"},
                "format": {"type": "string"},
                "body": {"type": ["object", "array"]},
            },
        }
    }
}
"""The body of `/v1/plan`."""


def describe_server(method_paths: Iterable[MethodPath], *, has_keys: bool) -> Json:
    """Returns the OpenAPI document of these places: methods, parameters, keys, bodies and
    answers."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("dragoman")
    except PackageNotFoundError:
        number = "0"
    paths: dict[str, Json] = {
        path: {"get": _describe_own_path(path, summary, content, statuses)}
        for path, (summary, content, statuses) in _OPERATIONS.items()
    }
    plan = _describe_own_path(*_PLAN)
    paths["/v1/plan"] = {"post": {**plan, "requestBody": {"required": True, "content": _PLAN_BODY}}}
    wires: dict[str, Wire] = {}
    for method_path in method_paths:
        paths.setdefault(method_path.path, {})[method_path.method.lower()] = _describe_operation(
            method_path, has_keys=has_keys
        )
        wires |= {wire.name: wire for wire, _ in method_path.candidates}
    keys = {
        _scheme_name(key): _security_scheme(key)
        for wire in wires.values()
        for key in _key_places(wire)
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dragoman",
            "version": number,
            "description": "Every API at the paths of its own clients.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": keys,
            "schemas": {
                f"{name}_error": _infer_schema(_sample_error(wire))
                for name, wire in sorted(wires.items())
            },
        },
        "tags": [{"name": name} for name in sorted(wires)],
    }


def _describe_operation(method_path: MethodPath, *, has_keys: bool) -> Json:
    """Returns the OpenAPI operation for a path of the server."""
    wire, route = method_path.candidates[0]
    wire_names = list(dict.fromkeys(wire.name for wire, _ in method_path.candidates))
    operation: Json = {
        "operationId": _operation_id(method_path),
        "summary": PURPOSES.get(route.purpose, route.purpose),
        "tags": wire_names,
        "responses": {"200": _describe_answer(wire, route), "default": _describe_error(wire_names)},
    }
    if names := _NAMES.findall(method_path.path):
        operation["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
            }
            for name in names
        ]
    if method_path.method == "POST":
        bodies = [
            body for wire, route in method_path.candidates if (body := _body_schema(wire, route))
        ]
        if bodies:
            schema: JsonMap = {"anyOf": bodies}
        else:
            schema = {"type": "object"}
        if len(bodies) == 1:
            schema = bodies[0]
        operation["requestBody"] = {
            "required": bool(bodies),
            "content": {name: {"schema": schema} for name in _body_types(route)},
        }
    if has_keys:
        names = dict.fromkeys(
            _scheme_name(key) for wire, _ in method_path.candidates for key in _key_places(wire)
        )
        operation["security"] = [{name: []} for name in names]
    return operation


def _body_types(route: Route) -> Sequence[str]:
    """Returns for the OpenAPI document the media types of the bodies that clients send to a
    route."""
    if route.purpose in FORM_PURPOSES:
        return ("application/json", FORM_TYPE)
    return ("application/json",)


def _describe_answer(wire: Wire, route: Route) -> Json:
    """Returns the OpenAPI response for a successful answer of a route."""
    if route.method == "HEAD":
        return {"description": "It is there."}
    if route.purpose == "alive":
        return {"description": "It is there.", "content": _TEXT}
    content: Json = {"application/json": {"schema": {"type": "object"}}}
    if route.purpose == "chat":
        content[wire.stream_type] = {}
    if route.purpose == "object":
        return {"description": "The answer while it is written.", "content": _TEXT}
    if route.purpose == "speech":
        return {"description": "The audio.", "content": {"audio/*": {}}}
    return {"description": "The answer.", "content": content}


def _describe_error(names: Sequence[str]) -> Json:
    """Returns the OpenAPI response for errors in the shape of these wires."""
    shapes = [{"$ref": f"#/components/schemas/{name}_error"} for name in names]
    if len(shapes) == 1:
        schema = shapes[0]
    else:
        schema = {"anyOf": shapes}
    return {
        "description": "Why there is none.",
        "content": {"application/json": {"schema": schema}},
    }


def _describe_own_path(path: str, summary: str, content: Any, statuses: set[str]) -> Json:
    """Returns the OpenAPI operation for a path of the server's own, such as its health checks."""
    responses: Json = {status: {"description": summary, "content": content} for status in ("200",)}
    for status in sorted(statuses - {"200"}):
        responses[status] = {"description": "It may not, or does not."}
    return {
        "operationId": path.strip("/").replace(".", "_").replace("/", "_"),
        "summary": summary,
        "responses": responses,
    }


def _body_schema(wire: Wire, route: Route) -> JsonMap | None:
    """Returns the JSON Schema of a body, as the wire has it, or None."""
    return get_serving(wire).bodies.get(route.path)


def _key_places(wire: Wire) -> Sequence[KeyPlace]:
    return get_serving(wire).keys


def _scheme_name(key: KeyPlace) -> str:
    if key.kind == "bearer":
        return key.kind
    return f"{key.kind}_{key.name}"


def _security_scheme(key: KeyPlace) -> dict[str, str]:
    if key.kind == "bearer":
        return {"type": "http", "scheme": "bearer"}
    return {"type": "apiKey", "in": key.kind, "name": key.name}


def _operation_id(method_path: MethodPath) -> str:
    slash = " slash" if method_path.path.endswith("/") else ""
    return re.sub(r"\W+", "_", f"{method_path.method.lower()} {method_path.path}{slash}").strip("_")


def _sample_error(wire: Wire) -> Any:
    return wire.dump_error(InvalidRequestError("what was wrong", provider=None)).body


def _infer_schema(value: Any) -> Json:
    """Returns a JSON Schema for the server's OpenAPI document that a value of this shape fits; a
    text and null may stand for each other."""
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {
            "type": "object",
            "required": list(fields),
            "properties": {
                name: _infer_schema(field_value) for name, field_value in fields.items()
            },
        }
    if isinstance(value, list):
        return {"type": "array"}
    type_name = _JSON_TYPES[type(value)]
    if type_name == "null":
        return {}
    return {"type": [type_name, "null"] if type_name == "string" else type_name}
