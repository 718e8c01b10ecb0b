"""What the command line prints: text of others is made harmless on its way out.

Names of models, files and tools, errors, titles and answers come from servers and strangers' files.
A terminal obeys some signs instead of showing them (ESC and other control characters), and some turn
the order of what is read (U+202E and its kin) or break a line (U+2028). `echo` and `echo_json` write
each of these as `\\u202e`; nothing in this package writes to the terminal in another way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["STEERING", "echo", "echo_json", "escape"]


def _escapes(first: int, last: int) -> dict[int, str]:
    """Code → its escape, as JSON has it: two of them where UTF-16 takes two."""
    signs = {
        code: chr(code).encode("utf-16-be", "surrogatepass") for code in range(first, last + 1)
    }
    return {
        code: "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
        for code, units in signs.items()
    }


_CONTROLS = {
    code: sign
    for code, sign in (_escapes(0x00, 0x1F) | _escapes(0x7F, 0x9F)).items()
    if code not in (9, 10)
}
"""But for tab and line feed."""
STEERING: Mapping[int, str] = {
    **_escapes(0x061C, 0x061C),
    **_escapes(0x200E, 0x200F),
    **_escapes(0x2028, 0x202E),
    **_escapes(0x2066, 0x2069),
    **_escapes(0xD800, 0xDFFF),
    **_escapes(0xFFF9, 0xFFFB),
    **_escapes(0xE0000, 0xE007F),
}
"""Signs that turn the direction of text, break lines or hide text, and halves of characters → what is shown. A table for
`str.translate`."""
_HARMFUL = {**_CONTROLS, **STEERING}
_JSON = {code: sign for code, sign in _HARMFUL.items() if code >= 0x20}


def escape(text: str) -> str:
    """The text with every sign that a terminal obeys written as `\\u001b`; tabs and line feeds stay."""
    return text.translate(_HARMFUL)


def echo(text: object = "", *, err: bool = False) -> None:
    """Prints a line, escaped. `err`: on standard error."""
    print(escape(str(text)), file=sys.stderr if err else sys.stdout, flush=err)


def echo_json(value: Any, *, indent: int = 2) -> None:
    """Prints a value as JSON, escaped in JSON's own way. `indent`: spaces a level; 0: on one line."""
    data = msgspec.json.encode(value)
    text = (msgspec.json.format(data, indent=indent) if indent else data).decode()
    print(text.translate(_JSON))  # noqa: T201 - the one place
