"""Arguments of a call → path, query, headers and body of its request, as the document's styles have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

import msgspec

from dragoman.errors import ToolError
from dragoman.openapi.operations import Body, Operation, Parameter

__all__ = ["Written", "write"]

_DELIMITERS = {"form": ",", "simple": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Written(msgspec.Struct, frozen=True):
    """A request without its address and its keys."""

    path: str
    """Below the base URL."""
    query: tuple[str, ...]
    """`name=value`, encoded."""
    headers: Mapping[str, str]
    """Those that arguments set, and the body's type."""
    cookies: tuple[str, ...]
    """`name=value`, encoded."""
    body: bytes | None
    """As it is sent."""


def write(
    operation: Operation,
    parameters: Sequence[Parameter],
    body: Body | None,
    arguments: Mapping[str, Any],
) -> Written:
    """The request of a call. What is not given, or `None`, is left out.

    Raises:
        ToolError: an argument cannot stand where it belongs.
    """
    path, query, cookies = operation.path, list[str](), list[str]()
    headers: dict[str, str] = {}
    for one in parameters:
        value = arguments.get(one.argument)
        if value is None:
            continue
        if one.is_json:
            value = _json(value).decode()
        if one.location == "path":
            path = path.replace(f"{{{one.name}}}", _path_segment(one, value))
        elif one.location == "header":
            headers[one.name] = _header(one, value)
        else:
            (query if one.location == "query" else cookies).extend(_pairs(one, value))
    if "{" in path:
        raise ToolError(f"an argument of the path is missing: {path}")
    if not {".", ".."}.isdisjoint(path.split("/")):
        raise ToolError(f"the arguments lead to another path: {path}")
    content = None
    if body is not None and (value := arguments.get(body.argument)) is not None:
        headers["content-type"] = body.media_type
        content = _body(body, value)
    return Written(path, tuple(query), headers, tuple(cookies), content)


def _path_segment(one: Parameter, value: Any) -> str:
    if not (text := _simple(one, value, encoded=True)):
        raise ToolError(f"{one.argument}: it stands in the path and cannot be empty")
    return text


def _header(one: Parameter, value: Any) -> str:
    text = _simple(one, value, encoded=False)
    if _CONTROL.search(text):
        raise ToolError(f"{one.argument}: a header holds no line breaks and no control characters")
    return text


def _simple(one: Parameter, value: Any, *, encoded: bool) -> str:
    write = _encoded if encoded else _text
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        joint = "=" if one.explode else ","
        return ",".join(f"{write(name)}{joint}{write(each)}" for name, each in pairs)
    if isinstance(value, list):
        return ",".join(map(write, cast("list[Any]", value)))
    return write(value)


def _pairs(one: Parameter, value: Any) -> Iterator[str]:
    """A parameter of the query, or a cookie."""
    name = _encoded(one.name)
    if one.style == "deepObject" and isinstance(value, (Mapping, list)):
        yield from _deep(name, value)
    elif isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        if one.explode:
            yield from (f"{_encoded(key)}={_encoded(each)}" for key, each in fields.items())
        else:
            flat = [piece for pair in fields.items() for piece in pair]
            yield f"{name}={_DELIMITERS[one.style].join(map(_encoded, flat))}"
    elif isinstance(value, list):
        items = [_encoded(each) for each in cast("list[Any]", value)]
        if one.explode:
            yield from (f"{name}={each}" for each in items)
        else:
            yield f"{name}={_DELIMITERS[one.style].join(items)}"
    else:
        yield f"{name}={_encoded(value)}"


def _deep(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in cast("Mapping[str, Any]", value).items():
            yield from _deep(f"{name}%5B{_encoded(key)}%5D", each)
    elif isinstance(value, list):
        for at, each in enumerate(cast("list[Any]", value)):
            yield from _deep(f"{name}%5B{at}%5D", each)
    else:
        yield f"{name}={_encoded(value)}"


def _body(body: Body, value: Any) -> bytes:
    if body.kind == "json":
        return _json(value)
    if body.kind == "text":
        return _text(value).encode()
    if not isinstance(value, Mapping):
        raise ToolError(f"{body.argument}: a form is an object, not {value!r:.80}")
    pairs: list[str] = []
    for name, each in cast("Mapping[str, Any]", value).items():
        values = (
            cast("list[Any]", each) if isinstance(each, list) else [] if each is None else [each]
        )
        pairs += [f"{_encoded(name)}={_encoded(item)}" for item in values]
    return "&".join(pairs).encode()


def _encoded(value: Any) -> str:
    try:
        return quote(_text(value), safe="")
    except UnicodeEncodeError as error:
        raise ToolError(f"{value!r:.80} is no text that can be sent") from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value).decode()


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
