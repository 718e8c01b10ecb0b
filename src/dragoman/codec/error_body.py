"""What the body of an error says, in whatever it comes: JSON of any shape, JSON inside a text or an
event stream, a page of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import as_text, if_list, if_object, if_objects
from dragoman.json_bytes import JsonMap

__all__ = ["collect_codes", "parse_body", "strip_quoted_names", "collect_words"]

_WORDS = (
    "message", "Message", "detail", "error", "errors", "raw", "data", "msg", "error_description", "errorMessage", "error_from",
    "faultstring", "title", "base_resp", "status_msg",
)  # fmt: skip
"""Where the words stand; the first that says something counts."""
_ERROR_FIRST = ("error", *(key for key in _WORDS if key != "error"))
_CODES = ("code", "type", "status", "reason", "reasons", "error_type", "errorcode")
_INNER = ("error", "errors", "innererror", "details", "detail", "metadata", "error_from")
"""Where more codes stand."""
_DATA = re.compile(r"^data:(.*)$", re.MULTILINE)
_JSON = re.compile(r"\{|\[\s*\{")
# Linear: what is opened and not closed goes on to the end, and a title holds no tag.
_UNSEEN = re.compile(
    r"<!--.*?(-->|\Z)|<(script|style)\b.*?(</\2\s*+>|\Z)|<[^>]*+(>|\Z)", re.DOTALL | re.IGNORECASE
)
_TITLE = re.compile(r"<title[^<>]*+>\s*+([^<\s][^<]*+)</title", re.IGNORECASE)
_NAME = re.compile(r"""(['"`])[\w.\-/:\[\]]+\1""")
_ECHO = re.compile(r"""(input_value=|['"]input['"]: ?|\bvalue:? |\bgot )(['"]).*?\2""", re.DOTALL)
# Characters of a page: where its title stands, where words are looked for.
_HEAD, _READ = (
    8192,
    65536,
)
# Characters of a text in which `&…;` are read; Python refuses numbers that are longer.
_OPENED = 4000
# Characters of a text that is no JSON.
_SHOWN = 300
_DEPTH = 8


def parse_body(body: bytes) -> Any:
    """Returns the JSON in an error's body, or a short version of the text that a reader would
    see."""
    # A byte order mark is no JSON.
    text = body.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    for candidate in (text, *_DATA.findall(text)):
        if (value := _decode_json(candidate)) is not None:
            return value
    if text.strip() == "null":
        return None
    title = _TITLE.search(text[:_HEAD])
    # The title of a proxy's page tells the fault ("502 Bad Gateway"); the rest is mostly layout.
    seen = title[1] if title else _UNSEEN.sub(" ", text[:_READ])
    seen = " ".join(seen.split())
    # Imported here, since it loads a table of 2,000 names that most processes never need.
    from html import unescape

    return " ".join(unescape(seen[:_OPENED]).split())[:_SHOWN]


def collect_words(value: Any, depth: int = _DEPTH) -> str:
    """Returns the words for people in an error body. For rejected fields that is each field's path
    and fault, without its value."""
    if not value or depth == 0:
        return ""
    if isinstance(value, str):
        return _unpack_words(value, depth)
    # FastAPI's shape, as many self-hosted servers answer: a list of `{"loc": …, "msg": …}`.
    if field_errors := [entry for entry in if_objects(value) if "msg" in entry]:
        return "; ".join(map(_describe_field_error, field_errors))
    if entries := if_list(value):
        return "; ".join(filter(None, (collect_words(entry, depth - 1) for entry in entries)))
    fields = if_object(value)
    texts = (collect_words(fields.get(key), depth - 1) for key in _order_of_words(fields))
    return next(filter(None, texts), "")


def _order_of_words(fields: JsonMap) -> tuple[str, ...]:
    """Returns the fields in which the words of an error body may stand, the surest first."""
    # An object there is the error itself; a text there may be no more than its class.
    if isinstance(fields.get("error"), dict):
        return _ERROR_FIRST
    return _WORDS


def _unpack_words(text: str, depth: int) -> str:
    """Returns a text of an error body with the JSON at its end replaced by that JSON's own
    words."""
    before, inner = _split_json(text)
    if not inner:
        return text
    words = collect_words(inner, depth - 1)
    if words:
        return f"{before}{words}"
    return text


def _describe_field_error(field_error: JsonMap) -> str:
    """Returns `path: fault` for a rejected field, without the value that was sent."""
    path = ".".join(map(as_text, if_list(field_error.get("loc"))))
    return f"{path}: {as_text(field_error['msg'])}".removeprefix(": ")


def collect_codes(value: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Yields the codes, types and reasons in an error body, from all levels."""
    if depth == 0:
        return
    for entry in if_list(value):
        yield from collect_codes(entry, depth - 1)
    for key, inner in if_object(value).items():
        if key in _CODES:
            yield from _list_codes(inner)
        elif isinstance(inner, str):
            yield from collect_codes(_split_json(inner)[1], depth - 1)
        elif key in _INNER:
            yield from collect_codes(inner, depth - 1)


def _list_codes(value: Any) -> list[str]:
    """Returns the codes in a field, which holds one or a list of them."""
    codes = if_list(value) or [value]
    return [str(code) for code in codes if isinstance(code, (str, int)) and code]


def strip_quoted_names(text: str) -> str:
    """Returns the words without the names and values that they quote: those come from the request
    and say nothing about the fault."""
    return _NAME.sub("''", _ECHO.sub(r"\1''", text))


def _split_json(text: str) -> tuple[str, Any]:
    """Splits a text of an error body: returns the text before the JSON at the end of `text`, and
    that JSON; None if it ends in none."""
    match = _JSON.search(text)
    if match is None:
        return text, None
    return text[: match.start()], _decode_json(text[match.start() :])


def _decode_json(text: str) -> Any:
    """Returns a JSON object or list in an error body, also one that was encoded twice; None if the
    text is neither."""
    try:
        value: Any = msgspec.json.decode(text)
        # An error that a gateway passed on as a text of JSON.
        if isinstance(value, str):
            return _decode_json(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if isinstance(value, (dict, list)):
        return cast("Any", value)
    return None
