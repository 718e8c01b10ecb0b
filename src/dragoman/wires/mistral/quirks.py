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
    """The names of other providers whose thinking this one takes back: gateways, and other clouds
    that serve the same models."""
    bridge: str | None = None
    """The model text to send between results of tools and a user message. Most models of
    api.mistral.ai accept no user message right after a tool message (error 3230). `None`: no text,
    for newer models and other servers."""
    thinking: bool = True
    """True if the server takes a model's thinking back, as the models that think do."""
    tool_media: bool = False
    """True if tool messages may hold images and documents. Otherwise these follow in a user
    message."""
    ids: NameRule = NameRule(letters="a-zA-Z0-9", least=9, most=9)
    """The ids of calls that the server accepts. For ids that it did not make itself the API takes
    exactly nine letters and digits."""
    names: NameRule = TOOL_NAMES
    """The names of tools that the server accepts."""
