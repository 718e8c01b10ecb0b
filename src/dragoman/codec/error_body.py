"""What the body of an error says, in whatever it comes: JSON of any shape, JSON inside a text or an
event stream, a page of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import as_text, if_list, if_object, if_objects

__all__ = ["collect_codes", "parse_body", "strip_quoted_names", "collect_words"]

_WORDS = (
    "message", "Message", "detail", "error", "errors", "raw", "data", "msg", "error_description", "errorMessage", "error_from",
    "faultstring", "title", "base_resp", "status_msg",
)  # fmt: skip
"""Where the words stand; the first that says something counts."""
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
    """Returns the JSON in a body, or a short version of the text that a reader would see."""
    text = body.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    for candidate in (text, *_DATA.findall(text)):
        if (value := _decode_json(candidate)) is not None:
            return value
    if text.strip() == "null":
        return None
    title = _TITLE.search(text[:_HEAD])
    seen = " ".join((title[1] if title else _UNSEEN.sub(" ", text[:_READ])).split())
    # Loads a table of 2,000 names.
    from html import unescape

    return " ".join(unescape(seen[:_OPENED]).split())[:_SHOWN]


def collect_words(value: Any, depth: int = _DEPTH) -> str:
    """Returns the words for people in an error. For rejected fields that is each field's path and
    fault, without its value."""
    if not value or depth == 0:
        return ""
    if isinstance(value, str):
        before, inner = _split_json(value)
        text = collect_words(inner, depth - 1) if inner else ""
        return f"{before}{text}" if text else value
    if field_errors := [entry for entry in if_objects(value) if "msg" in entry]:
        return "; ".join(
            f"{'.'.join(map(as_text, if_list(field_error.get('loc'))))}: {as_text(field_error['msg'])}".removeprefix(
                ": "
            )
            for field_error in field_errors
        )
    if entries := if_list(value):
        return "; ".join(filter(None, (collect_words(entry, depth - 1) for entry in entries)))
    fields = if_object(value)
    error = fields.get("error")
    if isinstance(error, dict):
        order = ("error", *(key for key in _WORDS if key != "error"))
    else:
        order = _WORDS
    texts = (collect_words(fields.get(key), depth - 1) for key in order)
    return next(filter(None, texts), "")


def collect_codes(value: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Yields the codes, types and reasons in an error, from all levels."""
    if depth == 0:
        return
    for entry in if_list(value):
        yield from collect_codes(entry, depth - 1)
    for key, inner in if_object(value).items():
        if key in _CODES:
            yield from (
                str(code)
                for code in (if_list(inner) or [inner])
                if isinstance(code, (str, int)) and code
            )
        elif isinstance(inner, str):
            yield from collect_codes(_split_json(inner)[1], depth - 1)
        elif key in _INNER:
            yield from collect_codes(inner, depth - 1)


def strip_quoted_names(text: str) -> str:
    """Returns the words without the names and values that they quote: those come from the request
    and say nothing about the fault."""
    return _NAME.sub("''", _ECHO.sub(r"\1''", text))


def _split_json(text: str) -> tuple[str, Any]:
    """Returns the text before the JSON at the end of `text`, and that JSON; None if it ends in
    none."""
    match = _JSON.search(text)
    inner = _decode_json(text[match.start() :]) if match else None
    if match:
        return (text[: match.start()], inner)
    return (text, None)


def _decode_json(text: str) -> Any:
    """Returns a JSON object or list, also one that was encoded twice; None if the text is
    neither."""
    try:
        value: Any = msgspec.json.decode(text)
        if isinstance(value, str):
            return _decode_json(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if isinstance(value, (dict, list)):
        return cast("Any", value)
    return None
