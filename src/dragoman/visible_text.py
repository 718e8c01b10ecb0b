"""Text that others wrote, made harmless to show: characters that a terminal obeys, or that change the
order of text or hide it, become escapes.

Names of models, files and tools, errors, titles and answers come from servers and from other
people's files.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["HARMFUL", "STEERING", "escape", "shorten", "to_one_line"]


def _make_escapes(first: int, last: int) -> dict[int, str]:
    """Returns the JSON escape for the terminal of each code from `first` to `last`; codes beyond 16
    bits have two."""
    signs = {
        code: chr(code).encode("utf-16-be", "surrogatepass") for code in range(first, last + 1)
    }
    return {
        code: "".join(f"\\u{units[index : index + 2].hex()}" for index in range(0, len(units), 2))
        for code, units in signs.items()
    }


_CONTROLS = {
    code: sign
    for code, sign in (_make_escapes(0x00, 0x1F) | _make_escapes(0x7F, 0x9F)).items()
    if code not in (9, 10)
}
"""Control characters except tab and line feed."""
STEERING: Mapping[int, str] = {
    **_make_escapes(0x061C, 0x061C),
    **_make_escapes(0x200E, 0x200F),
    **_make_escapes(0x2028, 0x202E),
    **_make_escapes(0x2066, 0x2069),
    **_make_escapes(0xD800, 0xDFFF),
    **_make_escapes(0xFFF9, 0xFFFB),
    **_make_escapes(0xE0000, 0xE007F),
}
"""Characters that change the direction of text, break lines or hide text, and lone surrogates →
their escapes. A table for `str.translate`."""
HARMFUL: Mapping[int, str] = {**_CONTROLS, **STEERING}
"""`STEERING`, and control characters except tab and line feed."""


def escape(text: str) -> str:
    """Returns text with every character that a terminal obeys written as `\\u001b`. Tabs and line
    feeds stay."""
    return text.translate(HARMFUL)


def to_one_line(text: str) -> str:
    """Returns text in one line, without characters that a terminal obeys."""
    return escape(" ".join(text.split()))


def shorten(text: str, width: int = 100) -> str:
    """Returns text in one line of at most `width` characters."""
    # A longer piece cannot matter, however long the text is.
    line = to_one_line(text[: 8 * width])
    return line if len(line) <= width else f"{line[: width - 1]}…"
