"""By what a sealed text is known, whether or not it opens."""

from __future__ import annotations

import re

__all__ = ["MARK", "is_sealed", "split_id"]

MARK = "dragoman"
"""With which every token begins and ends: eight characters of base64. One whose head was cut or changed is known by its tail."""


def is_sealed(text: str) -> bool:
    """Whether a text looks like a token of any server's, or like what is left of one; whether it opens, `Sealer.open` says."""
    return text.startswith(MARK) or text.rstrip("=").endswith(MARK)


def split_id(call_id: str) -> tuple[str, str] | None:
    """A call's id that holds a token → the id and the token; `None` for any other."""
    if MARK not in call_id or (found := _ID.fullmatch(call_id)) is None:
        return None
    return found[1], found[2]


_ID = re.compile(rf"(.+?)({MARK}[\w+/=-]{{48,}}{MARK})", re.ASCII | re.DOTALL)
"""The least token has more characters than that."""
