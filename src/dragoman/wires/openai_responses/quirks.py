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
    """Names of other providers whose reasoning items it reads (gateways)."""
    links: bool = True
    """Stores responses and goes on from one by `previous_response_id` (OpenAI, Azure, xAI). Servers
    that hold no state (llama.cpp, vLLM, DeepSeek, OpenRouter) are sent the whole conversation each
    time."""
    plain_thinking: bool = False
    """Takes back thinking that is neither stored nor encrypted (DeepSeek, llama.cpp, vLLM, gpt-oss
    servers); OpenAI knows the reasoning of others by its id or its encrypted content only."""
    summary: Literal["auto", "concise", "detailed"] | None = "detailed"
    """Which summary of its thinking to ask for where an effort is set and nothing else is said;
    `None`: none (vendors that tell their thinking anyway, or know no summaries)."""
    retention: bool = True
    """Takes `prompt_cache_retention`."""
    encrypted: bool = True
    """Gives its reasoning encrypted on request; asked for where nothing is to be stored."""
    listed: bool = False
    """Knows a message of the model's by its type and a list of content only, never as a string
    (llama.cpp)."""
    developer: bool = True
    """Knows the role `developer`; else such messages are sent as `system`."""
    server_tools: Mapping[str, str] = MappingProxyType(
        {
            "code_execution": "code_interpreter",
            "tool_search_tool_bm25": "tool_search",
            "tool_search_tool_regex": "tool_search",
        }
    )
    """Another provider's name of a tool that the provider runs → the name of it here."""
    ids: NameRule = CALL_IDS
    """What ids of tool calls it takes."""
    names: NameRule = TOOL_NAMES
    """What names of tools it takes."""
