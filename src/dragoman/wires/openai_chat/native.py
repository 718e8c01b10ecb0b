"""How this wire keeps what it has beyond the neutral fields: `native["openai_chat"]`, by the names that this wire uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.native import Own
from dragoman.message import Native

__all__ = ["NAME", "OWN", "bare", "extra", "is_foreign", "marked", "respelled", "response_of", "spelling"]

NAME = "openai_chat"

OWN = Own(NAME)
extra = OWN.fields
is_foreign = OWN.is_foreign
respelled = OWN.spelled
response_of = OWN.response
spelling = OWN.spelling


def marked(fields: Mapping[str, Any], spelled: Mapping[str, Any] | None = None, *, mark: bool = False) -> Native:
    """This wire's fields and spellings → `native`; `None` where there is nothing to keep, unless a `mark` is wanted."""
    return OWN.note(fields, mark=mark, spelling=spelled)


def bare(native: Native) -> Native:
    """Without the fields that only their own provider understands."""
    return marked({}, spelling(native))
