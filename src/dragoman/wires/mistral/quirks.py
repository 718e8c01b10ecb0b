"""How servers of this API differ. The defaults are what all of them take."""

from __future__ import annotations

import msgspec

from dragoman.codec.fit_ids import TOOL_NAMES, NameRule
from dragoman.codec.native import WireNative

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "mistral"

OWN = WireNative(NAME)
"""Its part of `native`."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """One server's differences."""

    reads: tuple[str, ...] = ()
    """Names of other providers whose thinking this one takes back (gateways, other clouds that
    serve the same models)."""
    bridge: str | None = None
    """What the model is made to say between results of tools and a user's message. Most models of
    api.mistral.ai take no user message right after a tool's (error 3230); `None`: nothing, as newer
    ones and other servers take it."""
    thinking: bool = True
    """Takes a model's thinking back, as the models that think do."""
    tool_media: bool = False
    """Takes images and documents inside tool messages; else they follow in a user message."""
    ids: NameRule = NameRule(letters="a-zA-Z0-9", least=9, most=9)
    """Ids of calls. The API takes nine letters and digits, nothing else, for ids that it did not
    give itself."""
    names: NameRule = TOOL_NAMES
    """Names of tools."""
