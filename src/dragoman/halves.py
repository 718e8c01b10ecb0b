"""Halves of characters: a text that was cut within an emoji in UTF-16 ends in half a pair of surrogates, which no UTF-8 holds.

Each way into the library passes what it reads through here, so that such a text can be sent, stored and shown as any other.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar, cast

import msgspec

from dragoman.logs import logger

__all__ = ["replace_escaped_halves", "replace_halves"]

T = TypeVar("T")

_LOG = logger("text")
_encode = msgspec.json.Encoder().encode
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)"
)
"""An escape in JSON: a pair of surrogates, half of one, or any other."""
_HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def replace_halves(value: T, where: str) -> T:
    """A value of JSON, or a message, with U+FFFD in place of each half of a character; the same object where it holds none. Two
    halves that stand together are the character. What was replaced is logged as a warning; `where`: what holds it, for people."""
    if _is_json(value):
        return value
    try:
        mended = _mend(value)
    except RecursionError:  # refused as too deep by who reads it
        return value
    if mended is not value:
        _warn(where)
    return mended


def replace_escaped_halves(data: bytes) -> bytes:
    """JSON with U+FFFD in place of each half of a character that it escapes; the same object where it holds none."""
    found = False

    def replace(match: re.Match[bytes]) -> bytes:
        nonlocal found
        if _HALF.fullmatch(match[0]) is None:
            return match[0]
        found = True
        return b"\\ufffd"

    replaced = _ESCAPE.sub(replace, data)
    if not found:
        return data
    _warn("JSON")
    return replaced


def _warn(where: str) -> None:
    _LOG.warning(
        "a text in %s holds half a character (an emoji that was cut): it is replaced by U+FFFD",
        where,
    )


def _is_json(value: object) -> bool:
    """Whether a value is JSON as it is, by the shortest way."""
    if not isinstance(value, (str, dict, list)):
        return False
    try:
        _encode(value)
    except Exception:  # noqa: BLE001 - half a character, or a value of another kind within
        return False
    return True


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return _mend_text(value)
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        pairs = [(_mend(key), _mend(inner)) for key, inner in fields.items()]
        is_same = all(map(_is_same_pair, pairs, fields.items()))
        return fields if is_same else dict(pairs)
    if type(value) in (list, tuple):
        listed = cast("list[Any]", value)
        mended = [_mend(inner) for inner in listed]
        is_same = all(new is old for new, old in zip(mended, listed, strict=True))
        return listed if is_same else type(listed)(mended)
    if isinstance(value, msgspec.Struct):
        changed: dict[str, Any] = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            if (new := _mend(old)) is not old:
                changed[name] = new
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def _is_same_pair(new: tuple[Any, Any], old: tuple[Any, Any]) -> bool:
    return new[0] is old[0] and new[1] is old[1]


def _mend_text(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
