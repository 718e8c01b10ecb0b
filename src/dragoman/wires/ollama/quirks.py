"""How models behind this wire differ, as data."""

from __future__ import annotations

import msgspec

from dragoman.codec.native import WireNative

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "ollama"

OWN = WireNative(NAME)
"""Its part of `native`."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """How a server of this API, or a model of it, differs. The defaults are Ollama's."""

    reads: tuple[str, ...] = ()
    """The names of other providers whose thinking the server takes back."""
    levels: tuple[str, ...] = ("gpt-oss",)
    """Parts of the names of models whose `think` is a level. All other models accept only true and
    false."""

    def has_levels(self, model: str) -> bool:
        """Returns whether the model takes `low`, `medium` and `high`."""
        return any(part in model for part in self.levels)
