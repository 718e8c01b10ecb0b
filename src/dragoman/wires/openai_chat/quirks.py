"""How vendors of Chat Completions differ. The defaults are what most of them take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from dragoman.codec.native import WireNative

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "openai_chat"

OWN = WireNative(NAME)
"""Its part of `native`."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor's differences. A request that is made for a vendor by its quirks ignores how a
    loaded one was spelled."""

    reads: tuple[str, ...] = ()
    """Names of other providers whose thinking and signatures this one takes back (gateways)."""
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Field of the token limit. OpenAI's reasoning models know `max_completion_tokens` only, most
    others `max_tokens`."""
    reasoning: (
        Literal[
            "reasoning_effort",
            "reasoning",
            "thinking",
            "thinking reasoning_effort",
            "enable_thinking",
        ]
        | None
    ) = "reasoning_effort"
    """Field that says how much to think: `reasoning_effort` (OpenAI, Groq, xAI), `reasoning`
    (OpenRouter), `thinking` (Z.ai; DeepSeek with `reasoning_effort` for
    what the other cannot say), `enable_thinking` (Qwen, DashScope); `None`: there is
    none."""
    cache: Literal["prompt_cache_retention", "cache_control"] | None = None
    """Field that says how long to keep the prompt in its cache: `prompt_cache_retention` (OpenAI,
    Azure; for a long time only), `cache_control` (OpenRouter, for Anthropic's models); `None`: it
    caches by itself, or not at all."""
    thinking: Literal["reasoning_content", "reasoning"] | None = "reasoning_content"
    """Field in which a model's thinking goes back where the message itself does not tell:
    `reasoning_content` (DeepSeek, Z.ai, Moonshot, llama.cpp, vLLM), `reasoning` (OpenRouter, Groq,
    Ollama, Cerebras); `None`: it is not taken back."""
    developer: bool = True
    """Knows the role `developer`; else such messages are sent as `system` (most vendors but
    OpenAI)."""
    string_content: bool = False
    """Takes text as one string only, never as a list of blocks (small and older servers)."""
    tool_media: bool = False
    """Takes images inside tool messages (llama.cpp, Ollama, OpenRouter); else they follow in a user
    message."""
    blocks: Mapping[str, str] = {}
    """Media type, or its first half → the block that carries it, by data or by link, beyond the
    usual ones: OpenRouter `{"video": "video_url", "application": "file"}`, Perplexity
    `{"application": "file_url"}`."""
    json_schema: bool = True
    """Takes `response_format: json_schema`; else JSON mode stands in for it (DeepSeek)."""
    refuses: tuple[str, ...] = ()
    """Fields of the body that the vendor refuses and that are therefore left out, such as `top_k`
    (OpenAI), `seed`, or `stream_options` (a few send usage without being asked)."""
    executed_tools: bool = False
    """Takes back the record of tools that it ran itself (none is known to; Groq sends it)."""
    max_id_length: int | None = None
    """Longest tool id, in characters (OpenAI: 40). Ids and names that do not fit, or that stand
    twice in one message, are mapped for the request; where it is `None`, ids that the vendor gave
    itself go back as they are, whatever they look like."""
    image_edits: Literal["form", "json"] = "form"
    """How images are sent that are to be edited: as files of a form (OpenAI), or in JSON (xAI)."""
