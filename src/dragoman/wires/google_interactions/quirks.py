"""How endpoints that speak this wire differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.codec.fit_ids import CALL_IDS, TOOL_NAMES, NameRule
from dragoman.codec.native import WireNative

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "google_interactions"

OWN = WireNative(NAME)
"""Its part of `native`."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint of the Interactions API differs. The defaults are AI Studio's
    (generativelanguage.googleapis.com)."""

    reads: tuple[str, ...] = ()
    """The names of other providers whose signed thoughts the endpoint reads."""
    server_tools: Mapping[str, str] = MappingProxyType(
        {"web_search": "google_search", "web_fetch": "url_context", "mcp": "mcp_server"}
    )
    """The name of a tool that the provider runs, with the API's name of it, unless that is the
    same."""
    ids: NameRule = CALL_IDS
    """The ids of calls that the endpoint accepts."""
    names: NameRule = TOOL_NAMES
    """The names of functions that the endpoint accepts."""
