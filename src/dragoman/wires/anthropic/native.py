"""This wire's own fields of a value: those beyond the neutral ones, and how the neutral ones were spelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.message import Native

__all__ = ["NAME", "fields", "is_ours", "note", "response", "spelled", "spelling"]

NAME = "anthropic"
_RESERVED = ("spelling", "response")


def is_ours(native: Native) -> bool:
    """Whether the value came through this wire with something of its own."""
    return native is not None and NAME in native


def fields(native: Native) -> dict[str, Any]:
    """The fields that are written as they are."""
    return {key: value for key, value in _own(native).items() if key not in _RESERVED}


def spelling(native: Native) -> Mapping[str, Any]:
    """How neutral fields were spelled, where it is not the usual way."""
    return _own(native).get("spelling", {})


def response(native: Native) -> Mapping[str, Any]:
    """Of a message: fields of the response around it."""
    return _own(native).get("response", {})


def note(fields: Mapping[str, Any] | None = None, **reserved: Mapping[str, Any]) -> Native:
    """The native mapping of these fields; `reserved` are `spelling` and `response`. `None` where there is nothing to say."""
    own = {**(fields or {}), **{key: value for key, value in reserved.items() if value}}
    return {NAME: own} if own else None


def spelled(native: Native, **how: Any) -> Native:
    """The same native mapping with more noted of the spelling."""
    return note(fields(native), spelling={**spelling(native), **how}, response=response(native))


def _own(native: Native) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", native.get(NAME, {})) if native else {}
