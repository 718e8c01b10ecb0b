"""JSON ⇄ values, bounded in depth: what nests deeper than `MOST_DEPTH` is refused before anything
recurses into it.

So whatever was read can be walked, changed, stored and written again, wherever on the stack that
happens. A text that was cut within an emoji in UTF-16 ends in half a pair of surrogates, which no
UTF-8 holds: each way into the library replaces it (`replace_halves`), so that such a text can be
sent, stored and shown as any other. `JsonEnd` finds the end of an object that comes in pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from dragoman.logs import logger

__all__ = [
    "Json",
    "JsonEnd",
    "JsonMap",
    "MOST_DEPTH",
    "check_depth",
    "check_value_depth",
    "decode",
    "encode",
    "replace_escaped_halves",
    "replace_halves",
]

T = TypeVar("T")

Json = dict[str, Any]
"""A JSON object of our own, which may be changed."""
JsonMap = Mapping[str, Any]
"""A JSON object that is only read."""

_LOG = logger("text")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)"
)
"""An escape in JSON: a pair of surrogates, half of one, or any other."""
_HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def replace_halves(value: T, where: str) -> T:
    """Returns a value of JSON, or a message, with U+FFFD in place of each half of a character; the
    same object where it holds none. Two halves that stand together are the character. What was
    replaced is logged as a warning; `where`: what holds it, for people."""
    if _is_json(value):
        return value
    try:
        mended = _mend_surrogates(value)
    except RecursionError:
        # Refused as too deep by who reads it.
        return value
    if mended is not value:
        _warn_of_surrogates(where)
    return mended


def replace_escaped_halves(data: bytes) -> bytes:
    """Returns JSON with U+FFFD in place of each escaped half of a character; the same object if it
    holds none."""
    has_halves = False

    def replace(match: re.Match[bytes]) -> bytes:
        """Returns U+FFFD for an escaped half of a character in JSON."""
        nonlocal has_halves
        if _HALF.fullmatch(match[0]) is None:
            return match[0]
        has_halves = True
        return b"\\ufffd"

    replaced = _ESCAPE.sub(replace, data)
    if not has_halves:
        return data
    _warn_of_surrogates("JSON")
    return replaced


def _warn_of_surrogates(where: str) -> None:
    """Logs that an unpaired surrogate in JSON was replaced."""
    _LOG.warning(
        "a text in %s holds half a character (an emoji that was cut): it is replaced by U+FFFD",
        where,
    )


def _is_json(value: object) -> bool:
    """True if a value is JSON as it is, by the shortest way."""
    if not isinstance(value, (str, dict, list)):
        return False
    try:
        _encode(value)
    except Exception:  # noqa: BLE001 - half a character, or a value of another kind within
        return False
    return True


def _mend_surrogates(value: object) -> Any:
    """Returns a JSON value with U+FFFD in place of unpaired surrogates in all of its texts."""
    if isinstance(value, str):
        return _mend_text(value)
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        pairs = [(_mend_surrogates(key), _mend_surrogates(inner)) for key, inner in fields.items()]
        is_same = all(map(_is_same_pair, pairs, fields.items()))
        if is_same:
            return fields
        return dict(pairs)
    if type(value) in (list, tuple):
        listed = cast("list[Any]", value)
        mended = [_mend_surrogates(inner) for inner in listed]
        is_same = all(new is old for new, old in zip(mended, listed, strict=True))
        if is_same:
            return listed
        return type(listed)(mended)
    if isinstance(value, msgspec.Struct):
        return _mend_struct(value)
    return value


def _mend_struct(value: msgspec.Struct) -> msgspec.Struct:
    """Returns a message, or a part of one, to encode as JSON without halves of characters; the same
    object where it holds none."""
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        if (new := _mend_surrogates(old)) is not old:
            changed[name] = new
    if changed:
        return msgspec.structs.replace(value, **changed)
    return value


def _is_same_pair(new: tuple[Any, Any], old: tuple[Any, Any]) -> bool:
    return new[0] is old[0] and new[1] is old[1]


def _mend_text(text: str) -> str:
    """Returns a text for JSON with U+FFFD in place of unpaired surrogates."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


MOST_DEPTH = 128
"""Objects and lists within each other at most."""

_TOO_DEEP = "it nests deeper than {} levels"
_encode = msgspec.json.Encoder().encode
_NESTING = frozenset([dict, list])
_OTHER = bytes(set(range(256)) - set(b'[]{}"'))
_ALIKE = bytes.maketrans(b"{}", b"[]")


def decode(data: bytes | str, most: int = MOST_DEPTH) -> Any:
    """Decodes JSON. Halves of characters, which JSON can escape and no text can hold, are replaced
    (`replace_escaped_halves`). `most`: levels of objects and lists that it may have.

    Raises:
        ValueError: it is no JSON (`msgspec.DecodeError`, `UnicodeDecodeError`), or nests too deep.
    """
    check_depth(data, most)
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        if isinstance(data, str):
            encoded = data.encode(errors="surrogatepass")
        else:
            encoded = bytes(data)
        if (mended := replace_escaped_halves(encoded)) is encoded:
            raise
        return msgspec.json.decode(mended)


def encode(value: Any) -> bytes:
    """Encodes a value as JSON. Half a pair of surrogates, which UTF-8 cannot hold, is escaped."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def check_depth(data: bytes | str, most: int = MOST_DEPTH) -> None:
    """Refuses JSON that nests deeper than `most`, before it is decoded. Linear in its size.

    Raises:
        ValueError: it does.
    """
    if isinstance(data, str):
        brackets = data.count("[") + data.count("{")
    else:
        brackets = data.count(b"[") + data.count(b"{")
    if brackets <= most:
        return
    # Strings are cut out, then innermost pairs are removed level by level: no recursion, whatever
    # the input.
    if isinstance(data, str):
        text = data.encode(errors="replace")
    else:
        text = data
    quotes = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHER).split(b'"')
    # Outside of strings.
    nested = b"".join(quotes[::2]).translate(_ALIKE)
    for _ in range(most):
        if not nested:
            return
        nested = nested.replace(b"[]", b"")
    if nested.count(b"[") > most or b"[]" in nested:
        raise ValueError(_TOO_DEEP.format(most))


def check_value_depth(value: object, most: int = MOST_DEPTH) -> None:
    """Refuses a value of JSON that nests deeper than `most`.

    Raises:
        ValueError: it does.
    """
    level: list[Any] = []
    if value.__class__ in _NESTING:
        level = [value]
    for _ in range(most):
        if not level:
            return
        level = [
            inner
            for outer in level
            for inner in (outer.values() if outer.__class__ is dict else outer)
            if inner.__class__ in _NESTING
        ]
    if level:
        raise ValueError(_TOO_DEEP.format(most))


_MARKS = re.compile(r'\\.|["{}\[\]]|\\\Z', re.DOTALL)
_DEPTH = {"{": 1, "[": 1, "}": -1, "]": -1}


class JsonEnd:
    """Counts the brackets of one text, each piece of it once."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_read", "reached")

    def __init__(self) -> None:
        """Starts before the first character of a JSON value."""
        self.reached = False
        """Whether all that was opened is closed."""
        self._read = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def is_among(self, pieces: Sequence[str | bytes]) -> bool:
        """True if the end of a JSON value is among these pieces: all so far, those of earlier calls
        among them."""
        for index in range(self._read, len(pieces)):
            self._feed(str(pieces[index]))
        self._read = len(pieces)
        return self.reached

    def _feed(self, piece: str) -> None:
        """Takes the next characters of JSON, and notes if the JSON value ends in them."""
        # The piece before may have ended in a backslash: then the first character is escaped.
        start, self._escaped = int(self._escaped and piece != ""), self._escaped and piece == ""
        for match in _MARKS.finditer(piece, start):
            mark = match[0]
            if mark == '"':
                self._in_string = not self._in_string
            elif self._in_string:
                self._escaped = mark == "\\"
            elif mark in _DEPTH:
                self._depth += _DEPTH[mark]
                self.reached = self._depth == 0
