"""Every field of a provider's record and of the wires' quirks, as tables: `docs/fields.md`; and of
the records that a wire is made of: `docs/records.md`."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import msgspec

from dragoman.capability import Capability
from dragoman.codec.error_rules import ErrorInfo, ErrorRules
from dragoman.codec.fit_ids import NameRule
from dragoman.providers.provider import Provider
from dragoman.request import HttpRequest
from dragoman.wires.chat import ChatDialect
from pages.switching import NAMES

__all__ = ["Field", "fields", "markdown", "records"]

_OF_WIRES: Sequence[type[Any]] = (ChatDialect, ErrorInfo, ErrorRules, HttpRequest)
_HANDED_ON = {ChatDialect: "dragoman.wires.chat.Chat"}
"""Where a class is imported from that another module has."""

_LONGEST = 160
"""Characters of a default that are shown."""
_FUNCTION = re.compile(r"<function (\w+)\S* at \w+>")
_ENUM = re.compile(r"<(\w+\.\w+): [^>]*>")
_CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")


class Field(msgspec.Struct, frozen=True):
    """A field of a record, as its source tells it."""

    name: str
    """Its name."""
    type: str
    """Its annotation, as it is written."""
    default: str | None
    """As Python has it; `None`: the field is required."""
    meaning: str
    """The docstring below it; `""`: there is none."""


def fields(record: type[Any]) -> list[Field]:
    """The fields of a class and their docstrings, in order. One that a subclass gives another
    default keeps its place."""
    defaults = {field.name: field for field in msgspec.structs.fields(record)}
    found: dict[str, Field] = {}
    owners = [base for base in reversed(record.__mro__) if base.__module__.startswith("dragoman.")]
    for body in map(_body, owners):
        for line, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(line, ast.AnnAssign) and (name := ast.unparse(line.target)) in defaults:
                annotation, default = ast.unparse(line.annotation), _default(defaults[name])
                found.setdefault(name, Field(name, annotation, default, _docstring(after)))
    return list(found.values())


def markdown() -> str:
    """The tables of `docs/fields.md`."""
    return "\n".join(
        [
            "# Fields of a provider's record",
            "",
            "`make pages` generates this page from the source. See [providers](providers.md) for how to write a record. A field without",
            "an explanation means what its name says.",
            "",
            "## `dragoman.Provider`",
            "",
            *_table(Provider),
            "",
            "## `dragoman.Capability`",
            "",
            "| name | meaning |",
            "| --- | --- |",
            *_capabilities(),
            "",
            "## `Quirks`",
            "",
            "How a provider differs from others of its wire: `quirks=` of its record takes the `Quirks` of its wire, such as",
            "`dragoman.wires.openai_chat.Quirks`.",
            *(line for wire in NAMES for line in _quirks(wire)),
            "",
            "## `dragoman.codec.fit_ids.NameRule`",
            "",
            "Ids or names that a provider accepts. Others are mapped for the request, and back in the answer.",
            "",
            *_table(NameRule),
            "",
        ]
    )


def records() -> str:
    """The tables of `docs/records.md`."""
    return "\n".join(
        [
            "# Fields of a wire's records",
            "",
            "`make pages` generates this page from the source. See [your own wire](wires.md) for how to write a wire.",
            *(line for record in _OF_WIRES for line in _record(record)),
            "",
        ]
    )


def _record(record: type[Any]) -> Iterator[str]:
    name = f"{record.__module__}.{record.__name__}"
    yield from (
        "",
        f"## `{_HANDED_ON.get(record, name)}`",
        "",
        inspect.getdoc(record) or "",
        "",
        *_table(record),
    )


def _quirks(wire: str) -> Iterator[str]:
    record = import_module(f"dragoman.wires.{wire}").Quirks
    yield from (
        "",
        f"### `dragoman.wires.{wire}.Quirks`",
        "",
        inspect.getdoc(record) or "",
        "",
        *_table(record),
    )


def _table(record: type[Any]) -> Iterator[str]:
    yield from ("| field | type | default | meaning |", "| --- | --- | --- | --- |")
    for field in fields(record):
        default = "required" if field.default is None else _code(field.default)
        yield _line((_code(field.name), _code(field.type), default, field.meaning))


def _capabilities() -> Iterator[str]:
    """A capability that needs no words is explained by its name."""
    body = _body(Capability)
    for line, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(line, ast.Assign):
            yield _line((_code(ast.unparse(line.targets[0])), _docstring(after)))


def _body(record: type[Any]) -> Sequence[ast.stmt]:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    return node.body if isinstance(node, ast.ClassDef) else []


def _docstring(line: ast.stmt | None) -> str:
    if (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    ):
        return inspect.cleandoc(line.value.value)
    return ""


def _default(field: msgspec.structs.FieldInfo) -> str | None:
    if field.required:
        return None
    shown = _shown(field.default_factory() if field.default is msgspec.NODEFAULT else field.default)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST].rpartition(',')[0]}, …"


def _shown(value: Any) -> str:
    """A value as Python has it, but functions and types by their names alone, which are the same in
    every process."""
    if isinstance(value, Mapping):
        pairs = [
            f"{_shown(key)}: {_shown(one)}" for key, one in cast("Mapping[Any, Any]", value).items()
        ]
        return f"{{{', '.join(pairs)}}}"
    shown = str(value.__name__) if callable(value) else repr(value)
    return _FUNCTION.sub(r"\1", _ENUM.sub(r"\1", _CLASS.sub(r"\1", shown)))


def _code(text: str) -> str:
    return f"`{text}`"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
