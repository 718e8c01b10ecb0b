"""The operations of an OpenAPI document: what each is called, what it takes and where that goes.

`list_operations` lists all operations and gives a free name to those without an `operationId`.
`read_arguments` turns one operation into what a tool needs: a JSON Schema of one flat object of
arguments, and a `Parameter` or `Body` for each argument that says where it goes in the request.
Arguments of the same name get a prefix or a number. What cannot be written makes the operation
`Unsupported`, except an optional parameter, which is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.openapi.document import Document, pointer
from dragoman.openapi.schemas import Schemas

__all__ = [
    "METHODS",
    "Body",
    "Operation",
    "Parameter",
    "Unsupported",
    "list_operations",
    "read_arguments",
]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_STYLES = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""Where a parameter stands → how it may be written; the first is the default."""
_RESERVED_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "proxy-authorization",
        "te",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that no argument sets: they belong to HTTP, or hold keys."""
_JSON = re.compile(r"application/([^;]*\+)?json\s*(;|$)", re.IGNORECASE)
_FORM = "application/x-www-form-urlencoded"


class Unsupported(Exception):
    """Why an operation cannot be a tool."""


class Parameter(msgspec.Struct, frozen=True):
    """A parameter, and which argument fills it."""

    argument: str
    """Name of the argument."""
    name: str
    """Name in the request."""
    location: str
    """`path`, `query`, `header` or `cookie`."""
    style: str
    """How lists and objects are written: see `_STYLES`."""
    explode: bool
    """Whether each item of a list or object stands by itself."""
    is_json: bool
    """Whether it is written as JSON."""


class Body(msgspec.Struct, frozen=True):
    """The body of a request, and which argument fills it."""

    argument: str
    """Name of the argument."""
    media_type: str
    """As the document has it."""
    body_type: str
    """`json`, `form` or `text`."""


class Operation(msgspec.Struct, frozen=True):
    """One operation of a document."""

    name: str
    """Its `operationId`, else made of method and path."""
    method: str
    """In upper case."""
    path: str
    """As the document has it, with the names of parameters in braces."""
    description: str = ""
    """Its summary and its description."""
    tags: tuple[str, ...] = ()
    """By which the document groups it."""
    location: str = ""
    """Where it stands in the document."""
    fields: JsonMap = {}
    """All that the document says of it."""
    path_fields: JsonMap = {}
    """All that the document says of its path."""


def list_operations(document: Document) -> list[Operation]:
    """Returns all operations of an OpenAPI document, in order.

    Raises:
        SettingsError: two have one `operationId`.
    """
    entries = list(_read_operations(document))
    locations: dict[str, str] = {}
    for operation, has_name in entries:
        if (
            has_name
            and (first := locations.setdefault(operation.name, operation.location))
            is not operation.location
        ):
            raise SettingsError(
                f"the operations at {first!r} and {operation.location!r} have one operationId, {operation.name!r}"
            )
    named: list[Operation] = []
    for operation, has_name in entries:
        if not has_name:
            operation = msgspec.structs.replace(
                operation, name=_find_free_name(operation.name, locations)
            )
            locations[operation.name] = operation.location
        named.append(operation)
    return named


def _read_operations(document: Document) -> Iterator[tuple[Operation, bool]]:
    """Yields the OpenAPI operations of a document, and whether the document names them."""
    for path, item in if_object(document.root.get("paths")).items():
        above, location = document.follow(item, pointer("#/paths", path))
        for method in METHODS:
            if not isinstance(above.get(method), Mapping):
                continue
            fields = if_object(above[method])
            texts = dict.fromkeys(
                filter(None, (if_text(fields.get("summary")), if_text(fields.get("description"))))
            )
            name = if_text(fields.get("operationId"))
            operation = Operation(
                name or re.sub(r"[^A-Za-z0-9]+", "_", f"{method}{path}").strip("_"),
                method.upper(),
                path,
                "\n\n".join(texts),
                tuple(if_list(fields.get("tags"))),
                pointer(location, method),
                fields,
                above,
            )
            yield operation, bool(name)


def read_arguments(
    document: Document,
    operation: Operation,
    hidden: Collection[tuple[str, str]],
    reserved: Collection[str],
) -> tuple[list[Parameter], Body | None, Json]:
    """Returns an OpenAPI operation's parameters, its body, and the JSON Schema of its arguments
    object.

    `hidden`: location and name of parameters that no model fills. `reserved`: names that no
    argument may have.

    Raises:
        SettingsError: the document refers to something that is not in it.
        Unsupported: it needs something that cannot be written.
    """
    schemas, taken = Schemas(document), set(reserved)
    properties: Json = {}
    required: list[str] = []
    parameters: list[Parameter] = []
    for fields, where in _read_parameters(document, operation):
        name, location = fields["name"], fields["in"]
        key = (location, name.lower() if location == "header" else name)
        if key in hidden or (location == "header" and key[1] in _RESERVED_HEADERS):
            continue
        try:
            parameter, schema = _read_parameter(
                fields, where, schemas, _find_free_name(name, taken, location)
            )
        except Unsupported:
            # An optional parameter that cannot be written is simply left out.
            if fields.get("required") is True:
                raise
            continue
        taken.add(parameter.argument)
        properties[parameter.argument] = _with_description(schema, fields)
        parameters.append(parameter)
        if fields.get("required") is True or location == "path":
            required.append(parameter.argument)
    unfilled = set(re.findall(r"{([^{}]*)}", operation.path)) - {
        parameter.name for parameter in parameters if parameter.location == "path"
    }
    if unfilled:
        raise Unsupported(
            f"its path has {', '.join(sorted(unfilled))}, of which no parameter tells"
        )
    body = None
    if "requestBody" in operation.fields:
        fields, where = document.follow(
            operation.fields["requestBody"], pointer(operation.location, "requestBody")
        )
        body, schema = _read_body(fields, where, schemas, _find_free_name("body", taken, "request"))
        properties[body.argument] = _with_description(schema, fields)
        if fields.get("required") is True:
            required.append(body.argument)
    whole: Json = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    if required:
        whole["required"] = required
    if schemas.definitions:
        whole["$defs"] = schemas.definitions
    return parameters, body, whole


def _read_parameters(document: Document, operation: Operation) -> list[tuple[JsonMap, str]]:
    """Returns the parameters of an OpenAPI operation, its own before those of its path."""
    above = pointer(operation.location.rpartition("/")[0], "parameters")
    by_key: dict[tuple[str, str], tuple[JsonMap, str]] = {}
    for entries, base in (
        (operation.path_fields.get("parameters"), above),
        (operation.fields.get("parameters"), pointer(operation.location, "parameters")),
    ):
        for number, entry in enumerate(if_list(entries)):
            fields, where = document.follow(entry, pointer(base, number))
            if not (isinstance(fields.get("name"), str) and fields.get("in") in _STYLES):
                raise SettingsError(f"the document has no parameter at {where!r}")
            by_key[fields["in"], fields["name"]] = fields, where
    return list(by_key.values())


def _read_parameter(
    fields: JsonMap, where: str, schemas: Schemas, argument: str
) -> tuple[Parameter, Any]:
    """Reads one parameter of an OpenAPI operation: its place, style and schema."""
    location: str = fields["in"]
    styles = _STYLES[location]
    style = if_text(fields.get("style")) or styles[0]
    explode = fields.get("explode")
    if content := if_object(fields.get("content")):
        media_type = next(iter(content))
        if not _JSON.match(media_type):
            raise Unsupported(f"its parameter {fields['name']!r} is written as {media_type}")
        schema = schemas.convert(
            content[media_type].get("schema", {}), pointer(where, "content", media_type, "schema")
        )
        return Parameter(
            argument, fields["name"], location, styles[0], explode=False, is_json=True
        ), schema
    if style not in styles:
        raise Unsupported(f"its parameter {fields['name']!r} is written in the style {style!r}")
    schema = schemas.convert(fields.get("schema", {}), pointer(where, "schema"))
    if isinstance(explode, bool):
        explodes = explode
    else:
        explodes = style in ("form", "deepObject")
    return Parameter(
        argument, fields["name"], location, style, explode=explodes, is_json=False
    ), schema


def _read_body(fields: JsonMap, where: str, schemas: Schemas, argument: str) -> tuple[Body, Any]:
    """Reads the OpenAPI request body of an operation: media type and schema."""
    content = if_object(fields.get("content"))
    for body_kind, fits in _BODY_TYPES.items():
        for media_type, media in content.items():
            if fits(media_type):
                below = pointer(where, "content", media_type, "schema")
                schema = schemas.convert(
                    if_object(media).get("schema", {} if body_kind != "text" else _TEXT), below
                )
                return Body(
                    argument, "application/json" if media_type == "*/*" else media_type, body_kind
                ), schema
    raise Unsupported(f"its body is written as {' or '.join(content) or 'nothing'}")


_TEXT = {"type": "string"}


def _is_json(media_type: str) -> bool:
    return bool(_JSON.match(media_type)) or media_type == "*/*"


def _is_form(media_type: str) -> bool:
    return media_type.partition(";")[0].strip().lower() == _FORM


def _is_text(media_type: str) -> bool:
    return media_type.lower().startswith("text/")


_BODY_TYPES = {"json": _is_json, "form": _is_form, "text": _is_text}


def _with_description(schema: Any, fields: JsonMap) -> Any:
    """Returns a schema with the description of its OpenAPI parameter, unless it has one of its
    own."""
    text = if_text(fields.get("description"))
    if not text or isinstance(schema, bool) or "description" in schema:
        return schema
    return {"description": text, **if_object(schema)}


def _find_free_name(name: str, taken: Collection[str], before: str = "") -> str:
    """Returns a name for an operation's argument that is not taken yet, made from `name`."""
    free, number = name, 1
    if free in taken and before:
        free = f"{before}_{name}"
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
