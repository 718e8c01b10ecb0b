"""How endpoints that speak this wire differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.codec.efforts import TOKENS
from dragoman.codec.fit_ids import CALL_IDS, TOOL_NAMES, NameRule
from dragoman.codec.native import WireNative
from dragoman.request import Effort

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "cohere"

OWN = WireNative(NAME)
"""Its part of `native`."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint of this API differs. The defaults are api.cohere.com's."""

    reads: tuple[str, ...] = ()
    """The names of other providers whose thinking the endpoint takes back."""
    budgets: Mapping[Effort, int] = MappingProxyType(
        {effort: tokens for effort, tokens in TOKENS.items() if effort != "high"}
    )
    """Each effort with its tokens of thinking. `high` has none, so the model thinks as long as it
    likes."""
    ids: NameRule = CALL_IDS
    """The ids of calls that the endpoint accepts."""
    names: NameRule = TOOL_NAMES
    """The names of tools that the endpoint accepts."""
