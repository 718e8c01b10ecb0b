"""JSON Schemas on the command line: `--schema` takes a shorthand such as `name, age int: years`,
JSON, or a file.

The shorthand is that of Simon Willison's `llm`, with two additions: the type `list` (of texts), and
a `?` behind a name or type for a field that may be missing. Fields are separated by commas, or by
line breaks as soon as there is one, so that a description may contain commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple, cast

import msgspec
import typer

from dragoman.cli.terminal import echo_json
from dragoman.json_bytes import Json, JsonMap

__all__ = ["dsl", "load_schema", "parse_shorthand"]

_TYPES: Mapping[str, JsonMap] = MappingProxyType(
    {
        "str": {"type": "string"},
        "int": {"type": "integer"},
        "float": {"type": "number"},
        "bool": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "string"}},
    }
)
_NAME = re.compile(r"\w[\w-]*\??")
_TOKEN = re.compile(r"\S+")
_MAX_BYTES = 2**20
"""Of a file with a schema."""
_OPTION = "--schema, --output-schema"


class _Field(NamedTuple):
    """One field of a shorthand, as it was written."""

    text: str
    """The field with its description."""
    start: int
    """Its index in the shorthand."""


def parse_shorthand(text: str) -> JsonMap:
    """Returns the JSON Schema of an object that a shorthand such as `name, age int: years, tags
    list?` describes.

    Raises:
        ValueError: it has a typo; the message has its line and column.
    """
    schema: Json = {"type": "object", "properties": {}, "required": []}
    for field in _split_fields(text):
        name, is_required, described = _parse_field(field, text)
        if name in schema["properties"]:
            raise _make_error(f"the field {name!r} is there twice", text, field.start)
        schema["properties"][name] = described
        if is_required:
            schema["required"].append(name)
    if not schema["properties"]:
        raise ValueError("it has no field; write for example 'name, age int: years'")
    return schema


def _split_fields(text: str) -> Iterator[_Field]:
    """Yields the fields of a shorthand that are not blank."""
    separator = "\n" if "\n" in text.strip() else ","
    start = 0
    for piece in text.split(separator):
        if piece.strip():
            yield _Field(piece, start + len(piece) - len(piece.lstrip()))
        start += len(piece) + 1


def _parse_field(field: _Field, text: str) -> tuple[str, bool, Json]:
    """Returns the name of a field, whether it is required, and its schema."""
    head, _, description = field.text.lstrip().partition(":")
    tokens = [(match[0], field.start + match.start()) for match in _TOKEN.finditer(head)]
    if not tokens:
        raise _make_error("a name is missing before the colon", text, field.start)
    name, start = tokens[0]
    if not _NAME.fullmatch(name):
        raise _make_error(f"{name!r} is no name of a field", text, start)
    is_optional = name.endswith("?")
    schema: Json = {**_TYPES["str"]}
    if len(tokens) > 1:
        type_name, start = tokens[1]
        is_optional |= type_name.endswith("?")
        schema = {**_find_type(type_name.removesuffix("?"), text, start)}
    if len(tokens) > 2:
        raise _make_error(
            f"{tokens[2][0]!r} follows the type; a description begins with a colon, and one with "
            "commas needs each field on a line of its own",
            text,
            tokens[2][1],
        )
    if description.strip():
        schema["description"] = description.strip()
    return name.removesuffix("?"), not is_optional, schema


def _find_type(name: str, text: str, start: int) -> JsonMap:
    """Returns the schema of a type's name in a shorthand."""
    if name in _TYPES:
        return _TYPES[name]
    hint = "; a description begins with a colon"
    if matches := get_close_matches(name, _TYPES, n=1):
        hint = f"; did you mean {matches[0]}?"
    raise _make_error(f"{name!r} is no type, there are {', '.join(_TYPES)}{hint}", text, start)


def _make_error(problem: str, text: str, index: int) -> ValueError:
    """Returns an error with the position of an index in a shorthand."""
    line = text.count("\n", 0, index) + 1
    column = index - text.rfind("\n", 0, index)
    where = f"line {line}, column {column}" if "\n" in text.strip() else f"column {column}"
    return ValueError(f"{where}: {problem}")


def load_schema(argument: str, option: str = _OPTION, *, multi: bool = False) -> JsonMap:
    """Returns the JSON Schema that an option describes: JSON, the file that `@path` or a path
    names, or a shorthand.

    Args:
        argument: what was written.
        option: its option, for errors.
        multi: return the schema of an object with a list `items` of such values.

    Raises:
        BadParameter: it is not an object, the file cannot be read, or a shorthand has a typo.
    """
    try:
        schema = _read_schema(argument)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise typer.BadParameter(f"no JSON Schema: {reason}", param_hint=option) from error
    if not isinstance(schema, dict):
        raise typer.BadParameter("no JSON Schema: it must be an object", param_hint=option)
    if not multi:
        return cast("JsonMap", schema)
    return {
        "type": "object",
        "properties": {"items": {"type": "array", "items": schema}},
        "required": ["items"],
    }


def _read_schema(argument: str) -> object:
    """Returns the value that an argument describes.

    Raises:
        ValueError: it is neither JSON nor a shorthand.
        OSError: its file cannot be read.
    """
    text = argument.strip()
    if text.startswith("@"):
        return msgspec.json.decode(_read_file(Path(text[1:]).expanduser()))
    if text.startswith(("{", "[", '"')):
        return msgspec.json.decode(text)
    if text.endswith(".json"):
        return msgspec.json.decode(_read_file(Path(text).expanduser()))
    return parse_shorthand(argument)


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(f"{path} is larger than {_MAX_BYTES >> 20} MB")
    return content


def dsl(
    shorthand: Annotated[str, typer.Argument(help="Such as 'name, age int: years, tags list?'.")],
    multi: Annotated[bool, typer.Option("--multi", help="Of a list of such objects.")] = False,
) -> None:
    """Print the JSON Schema that a shorthand stands for.

    \b
    dragoman schemas dsl 'name, age int: in years, tags list?'
    dragoman schemas dsl --multi 'name, age int'

    \b
    Fields are separated by commas, or by line breaks. Types: str (if there is none), int, float,
    bool and list (of texts). A ? behind a name or a type: the field may be missing. A description
    for the model begins with a colon.
    """
    echo_json(load_schema(shorthand, "SHORTHAND", multi=multi))
