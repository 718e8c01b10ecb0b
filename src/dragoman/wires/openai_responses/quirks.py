"""How vendors of the Responses API differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from dragoman.codec.fit_ids import CALL_IDS, TOOL_NAMES, NameRule
from dragoman.codec.native import WireNative

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "openai_responses"

OWN = WireNative(NAME)
"""Its part of `native`."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor's differences. The defaults are OpenAI's own API."""

    reads: tuple[str, ...] = ()
    """The names of other providers whose reasoning items this one reads, as gateways do."""
    links: bool = True
    """Stores responses and goes on from one by `previous_response_id` (OpenAI, Azure, xAI). Servers
    that hold no state (llama.cpp, vLLM, DeepSeek, OpenRouter) are sent the whole conversation each
    time."""
    plain_thinking: bool = False
    """Takes back thinking that is neither stored nor encrypted (DeepSeek, llama.cpp, vLLM, gpt-oss
    servers); OpenAI knows the reasoning of others by its id or its encrypted content only."""
    summary: Literal["auto", "concise", "detailed"] | None = "detailed"
    """The summary of thinking to ask for when an effort is set and the request names none. `None`:
    no summary, for vendors that show their thinking anyway or know no summaries."""
    retention: bool = True
    """True if the vendor accepts `prompt_cache_retention`."""
    encrypted: bool = True
    """True if the vendor encrypts its reasoning on request. dragoman asks for that when nothing is
    to be stored."""
    listed: bool = False
    """True if a model's message must have its type and a list of content, and never a string
    (llama.cpp)."""
    developer: bool = True
    """True if the vendor accepts the role `developer`. Otherwise such messages are sent as
    `system`."""
    server_tools: Mapping[str, str] = MappingProxyType(
        {
            "code_execution": "code_interpreter",
            "computer_use": "computer",
            "tool_search_tool_bm25": "tool_search",
            "tool_search_tool_regex": "tool_search",
        }
    )
    """Another provider's name of a tool that the provider runs, with the name of the same tool
    here."""
    ids: NameRule = CALL_IDS
    """The ids of tool calls that the vendor accepts."""
    names: NameRule = TOOL_NAMES
    """The names of tools that the vendor accepts."""
