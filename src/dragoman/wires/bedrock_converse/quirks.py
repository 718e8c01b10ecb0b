"""How endpoints and models that speak this wire differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.codec.fit_ids import NameRule
from dragoman.codec.native import WireNative
from dragoman.model_profile import ModelProfile

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "bedrock_converse"

OWN = WireNative(NAME)
"""Its part of `native`."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint of the Converse API differs. The defaults are Amazon Bedrock's."""

    reads: tuple[str, ...] = ()
    """The names of other providers whose signed thinking the endpoint reads."""
    profile: ModelProfile | None = None
    """What is known of the requested model. `None`: nothing."""
    server_tools: Mapping[str, str] = MappingProxyType(
        {"web_search": "nova_grounding", "code_execution": "nova_code_interpreter"}
    )
    """The name of a tool that the provider runs, with the API's name of it, unless that is the
    same."""
    opening: str = "."
    """The user text to send before a conversation that begins with the model, and beside a document
    without any text. The API refuses both."""
    ids: NameRule = NameRule(letters="a-zA-Z0-9_.:-")
    """The ids of tool calls that the endpoint accepts."""
    names: NameRule = NameRule()
    """The names of tools that the endpoint accepts."""
