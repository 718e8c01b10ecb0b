"""One wire's part of `native`: its own fields of a value, beyond the neutral ones.

Its keys are fields of the wire's own JSON object, which a dump writes as they are, but for the reserved ones: `spelling` (how
neutral things were spelled, where it is not the usual way) and `response` (what stood around a message in a response;
never sent). A wire may reserve more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.message import Native

__all__ = ["Own"]


class Own:
    """Reads and makes the `native` of one wire. A wire gives its methods the names that it knows them by."""

    def __init__(self, name: str, *reserved: str) -> None:
        """`reserved`: further keys that are no fields."""
        self._name = name
        self._reserved = ("spelling", "response", *reserved)

    def all(self, native: Native) -> dict[str, Any]:
        """All that is this wire's own, reserved keys included."""
        return cast("dict[str, Any]", native.get(self._name) or {}) if native else {}

    def is_ours(self, native: Native) -> bool:
        """Whether the value came through this wire with something of its own."""
        return native is not None and self._name in native

    def is_foreign(self, native: Native) -> bool:
        """Whether the value came through other wires with something of their own, and not through this one."""
        return bool(native) and self._name not in native

    def fields(self, native: Native) -> dict[str, Any]:
        """The fields that are written as they are."""
        own = self.all(native)
        return {key: value for key, value in own.items() if key not in self._reserved} if own else {}

    def spelling(self, native: Native) -> dict[str, Any]:
        """How neutral fields were spelled, where it is not the usual way."""
        return self.all(native).get("spelling", {})

    def response(self, native: Native) -> dict[str, Any]:
        """Of a message: fields of the response around it."""
        return self.all(native).get("response", {})

    def note(self, fields: Mapping[str, Any] | None = None, *, mark: bool = False, **reserved: Any) -> Native:
        """The native mapping of these fields and `reserved` keys. `None` where there is nothing to say, unless `mark` asks for a
        mark that the value came through this wire."""
        own = {**(fields or {}), **{key: value for key, value in reserved.items() if value}}
        return {self._name: own} if own or mark else None

    def spelled(self, native: Native, **how: Any) -> Native:
        """The same native mapping with more noted of the spelling."""
        own = {**self.all(native), "spelling": {**self.spelling(native), **how}}
        return self.note({key: value for key, value in own.items() if value or key not in self._reserved})
