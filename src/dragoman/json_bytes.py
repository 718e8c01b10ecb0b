"""JSON ⇄ values, bounded in depth: what nests deeper than `MOST_DEPTH` is refused before anything recurses into it.

So that whatever was read can be walked, changed, stored and written again, wherever on the stack that happens.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from dragoman.halves import replace_escaped_halves

__all__ = ["MOST_DEPTH", "bound", "bound_value", "decode", "encode"]

MOST_DEPTH = 128
"""Objects and lists within each other at most."""

_TOO_DEEP = "it nests deeper than {} levels"
_encode = msgspec.json.Encoder().encode
_NESTING = frozenset([dict, list])
_OTHER = bytes(set(range(256)) - set(b'[]{}"'))
_ALIKE = bytes.maketrans(b"{}", b"[]")


def decode(data: bytes | str) -> Any:
    """JSON → its value. Halves of characters, which JSON can escape and no text can hold, are replaced (`halves`).

    Raises:
        ValueError: it is no JSON (`msgspec.DecodeError`, `UnicodeDecodeError`), or nests too deep.
    """
    bound(data)
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        given = data.encode(errors="surrogatepass") if isinstance(data, str) else bytes(data)
        if (mended := replace_escaped_halves(given)) is given:
            raise
        return msgspec.json.decode(mended)


def encode(value: Any) -> bytes:
    """A value of JSON → JSON. Half a pair of surrogates, which UTF-8 cannot hold, is escaped."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def bound(data: bytes | str, most: int = MOST_DEPTH) -> None:
    """Refuses JSON that nests deeper than `most`, before it is decoded. Linear in its size.

    Raises:
        ValueError: it does.
    """
    brackets = (
        data.count("[") + data.count("{")
        if isinstance(data, str)
        else data.count(b"[") + data.count(b"{")
    )
    if brackets <= most:
        return
    text = data.encode(errors="replace") if isinstance(data, str) else data
    quotes = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHER).split(b'"')
    left = b"".join(quotes[::2]).translate(_ALIKE)  # outside of strings
    for _ in range(most):
        if not left:
            return
        left = left.replace(b"[]", b"")
    if left.count(b"[") > most or b"[]" in left:
        raise ValueError(_TOO_DEEP.format(most))


def bound_value(value: Any, most: int = MOST_DEPTH) -> None:
    """Refuses a value of JSON that nests deeper than `most`.

    Raises:
        ValueError: it does.
    """
    level: list[Any] = [value] if value.__class__ in _NESTING else []
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
