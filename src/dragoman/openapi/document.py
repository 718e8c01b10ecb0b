"""Reading an OpenAPI document: parsed, checked as a whole, and its references followed.

`load` reads JSON or YAML into plain JSON, checks the version, and lets a validator check the whole
document. A broken document so fails at once, with the place of the fault, and later code need not
check shapes again. YAML may repeat a value by an alias; `_count_values` measures it as if written
out, before it is copied. References are not replaced: `Document.follow` resolves one when it is
needed, and only within the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.runtime import extra_hint

__all__ = [
    "Document",
    "SCHEMA_LIST_KEYS",
    "SCHEMA_MAP_KEYS",
    "SCHEMA_KEYS",
    "load",
    "pointer",
]

SCHEMA_KEYS = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""One schema."""
SCHEMA_LIST_KEYS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""A list of them."""
SCHEMA_MAP_KEYS = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
"""Schemas by name."""


_VERSION = re.compile(r"3\.([01])(\.|$)")
_MOST_VALUES = 2_000_000
"""Values of a YAML document with its aliases written out."""


class Document(msgspec.Struct, frozen=True):
    """A document that was checked."""

    root: JsonMap
    """All of it, as JSON."""
    is_3_0: bool
    """Whether its schemas are those of OpenAPI 3.0, which are not quite JSON Schema."""

    def resolve(self, location: str) -> Any:
        """Returns the value at a location of the OpenAPI document, such as
        `#/components/schemas/Pet`.

        Raises:
            SettingsError: nothing does, or the place is in another document.
        """
        if not location.startswith("#"):
            raise SettingsError(
                f"the document refers to {location!r}, and only what is in it is read: bundle it into one"
            )
        target: Any = self.root
        for step in location[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping) and key in target:
                target = cast("JsonMap", target)[key]
            elif (
                isinstance(target, list)
                and key.isascii()
                and key.isdigit()
                and int(key) < len(cast("list[Any]", target))
            ):
                target = cast("list[Any]", target)[int(key)]
            else:
                raise SettingsError(f"the document refers to {location!r}, and there is nothing")
        return target

    def follow(self, value: Any, location: str) -> tuple[JsonMap, str]:
        """Follows the references (`$ref`) of an object in the OpenAPI document. Returns the final
        object and its location.

        Raises:
            SettingsError: it is no object, or it refers to nothing or to itself.
        """
        seen: set[str] = set()
        while isinstance(value, Mapping) and isinstance(
            to := cast("JsonMap", value).get("$ref"), str
        ):
            if to in seen:
                raise SettingsError(
                    f"the document refers at {location!r} to {to!r}, which refers to itself"
                )
            seen.add(to)
            value, location = self.resolve(to), to
        if not isinstance(value, Mapping):
            raise SettingsError(f"the document has no object at {location!r}, but {value!r:.80}")
        return cast("JsonMap", value), location


def pointer(base: str, *steps: str | int) -> str:
    """Returns the location below another in the document, as a JSON pointer."""
    return "/".join([base, *[str(step).replace("~", "~0").replace("/", "~1") for step in steps]])


def load(document: JsonMap | str | Path) -> Document:
    """Reads an OpenAPI document from a file, text or value, and checks it.

    Raises:
        SettingsError: it cannot be read, or is no OpenAPI 3.0 or 3.1; the text says where.
    """
    if isinstance(document, Mapping):
        root = _copy_as_json(document)
    else:
        root = _parse_document(_read_text(document))
    if not isinstance(root, dict):
        raise SettingsError("an OpenAPI document is an object, and this is none")
    root = cast("Json", root)
    # YAML reads an unquoted 3.1 as a number, which is not a valid version either.
    version = root.get("openapi")
    if isinstance(version, str):
        match = _VERSION.match(version)
    else:
        match = None
    if match is None:
        if "swagger" in root:
            stated = "swagger 2.0"
        else:
            stated = f"{version!r:.40}"
        raise SettingsError(
            f"OpenAPI 3.0 and 3.1 can be read, and this document is of version {stated}: convert it"
        )
    is_3_0 = match[1] == "0"
    _check_version_rules(
        {**root, "openapi": "3.0.3"} if is_3_0 else {**_replace_booleans(root), "openapi": "3.1.0"}
    )
    return Document(root, is_3_0)


def _read_text(document: str | Path) -> str:
    """Returns the text of an OpenAPI document, which is a text already or in a file."""
    if isinstance(document, str):
        if "\n" not in document and not document.lstrip().startswith("{"):
            raise SettingsError(
                f"{document!r:.100} is no OpenAPI document: a text is the document itself; name a file by Path(…), and fetch a URL first"
            )
        return document
    try:
        return document.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"the OpenAPI document {document} cannot be read: {error}") from error


def _parse_document(text: str) -> Any:
    """Parses the text of an OpenAPI document as JSON, otherwise as YAML."""
    try:
        return json_bytes.decode(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith(("{", "[")):
            raise SettingsError(f"the OpenAPI document cannot be read: {error}") from error
    try:
        import yaml
    except ImportError as error:
        raise SettingsError(
            "the OpenAPI document is no JSON; to read YAML: pip install pyyaml"
        ) from error
    try:
        return _copy_as_json(yaml.safe_load(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SettingsError(f"the OpenAPI document is neither JSON nor YAML: {error}") from error


def _copy_as_json(value: Any) -> Any:
    """Copies a parsed OpenAPI document as JSON values: keys are texts, and nothing nests too
    deep."""
    try:
        _count_values(value, {})
        return json_bytes.decode(msgspec.json.encode(value))
    except (ValueError, TypeError, RecursionError) as error:
        raise SettingsError(f"the OpenAPI document cannot be read as JSON: {error}") from error


def _count_values(value: Any, sizes: dict[int, int]) -> int:
    """Counts the values in an OpenAPI document, those that it holds twice counted twice. `sizes`:
    of what was counted, by identity; -1 while it is being counted. Raises `ValueError` where it is
    too large or holds itself."""
    if isinstance(value, Mapping):
        below: Iterable[Any] = cast("Mapping[Any, Any]", value).values()
    elif isinstance(value, list):
        below = cast("list[Any]", value)
    else:
        return 1
    key = id(cast("object", value))
    if key not in sizes:
        sizes[key] = -1
        sizes[key] = size = 1 + sum(_count_values(item, sizes) for item in below)
        if size > _MOST_VALUES:
            raise ValueError("it is too large")
    elif sizes[key] < 0:
        raise ValueError("it holds itself")
    return sizes[key]


def _check_version_rules(root: JsonMap) -> None:
    """Holds an OpenAPI document against the rules of its version."""
    try:
        from openapi_pydantic import parse_obj
        from pydantic import ValidationError
    except ImportError as error:
        raise SettingsError(f"OpenAPI documents need a library: {extra_hint('openapi')}") from error
    try:
        parse_obj(root)
    except ValidationError as error:
        first = max(
            error.errors(include_url=False),
            key=lambda problem: len(_known_steps(root, problem["loc"])),
        )
        raise SettingsError(
            f"the OpenAPI document is wrong at {pointer('#', *_known_steps(root, first['loc']))}: {first['msg']}"
        ) from error
    except RecursionError as error:
        raise SettingsError("the OpenAPI document nests too deep") from error


def _replace_booleans(value: Any, under: str = "") -> Any:
    """Returns an OpenAPI document with its boolean schemas as objects, since the validator does not
    know `true` and `false` as schemas."""
    if isinstance(value, bool):
        return {} if under in SCHEMA_KEYS else value
    if isinstance(value, list):
        below = "not" if under in SCHEMA_LIST_KEYS else ""
        return [_replace_booleans(item, below) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {
            key: _replace_booleans(item, "not" if under in SCHEMA_MAP_KEYS else key)
            for key, item in fields.items()
        }
    return value


def _known_steps(root: Any, location: tuple[str | int, ...]) -> list[str | int]:
    """Returns the steps of a validator's path that exist in the OpenAPI document; others name types
    of the validator."""
    value, steps = root, list[str | int]()
    for step in location:
        if isinstance(value, Mapping) and step in value:
            value = cast("Mapping[Any, Any]", value)[step]
        elif (
            isinstance(value, list)
            and isinstance(step, int)
            and step < len(cast("list[Any]", value))
        ):
            value = cast("list[Any]", value)[step]
        else:
            continue
        steps.append(step)
    return steps
