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
    """The names of other providers whose thinking and signatures this one takes back, as gateways
    do."""
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The field of the token limit. OpenAI's reasoning models accept only `max_completion_tokens`,
    most others `max_tokens`."""
    reasoning: (
        Literal[
            "reasoning_effort",
            "reasoning",
            "thinking",
            "thinking reasoning_effort",
            "reasoning_effort thinking",
            "reasoning_effort thinking_token_budget",
            "chat_template_kwargs reasoning_effort",
            "enable_thinking",
        ]
        | None
    ) = "reasoning_effort"
    """Field that says how much to think: `reasoning_effort` (OpenAI, Groq, xAI), `reasoning`
    (OpenRouter), `thinking` (Z.ai), `enable_thinking` (Qwen, DashScope); `None`: there is none. Of
    two fields the first that can say it is sent: DeepSeek switches by `thinking`, Fireworks and vLLM
    say tokens in the second, SambaNova switches off in `chat_template_kwargs`."""
    cache: Literal["prompt_cache_retention", "cache_control"] | None = None
    """Field that says how long to keep the prompt in its cache: `prompt_cache_retention` (OpenAI,
    Azure; for a long time only), `cache_control` (OpenRouter, for Anthropic's models); `None`: it
    caches by itself, or not at all."""
    thinking: Literal["reasoning_content", "reasoning"] | None = "reasoning_content"
    """The field in which a model's thinking is sent back, unless the message says:
    `reasoning_content` (DeepSeek, Z.ai, Moonshot, llama.cpp, vLLM) or `reasoning` (OpenRouter,
    Groq, Ollama, Cerebras). `None`: the vendor takes no thinking back."""
    developer: bool = True
    """True if the vendor accepts the role `developer`. Otherwise such messages are sent as
    `system`, as most vendors but OpenAI need."""
    string_content: bool = False
    """True if text must be one string and never a list of blocks (small and older servers)."""
    tool_media: bool = False
    """True if tool messages may hold images (llama.cpp, Ollama, OpenRouter). Otherwise the images
    follow in a user message."""
    blocks: Mapping[str, str] = {}
    """Media type, or its first half → the block that carries it, by data or by link, beyond the
    usual ones: OpenRouter `{"video": "video_url", "application": "file"}`, Perplexity
    `{"application": "file_url"}`."""
    json_schema: bool = True
    """True if the vendor accepts `response_format: json_schema`. Otherwise JSON mode replaces it
    (DeepSeek)."""
    refuses: tuple[str, ...] = ()
    """Body fields that the vendor refuses and that dragoman leaves out, such as `top_k` (OpenAI),
    `seed`, or `stream_options` (a few vendors report usage anyway)."""
    executed_tools: bool = False
    """True if the vendor takes back the record of tools that it ran itself. Groq sends such a
    record; no vendor is known to take it."""
    max_id_length: int | None = None
    """Longest tool id, in characters (OpenAI: 40). Ids and names that do not fit, or that stand
    twice in one message, are mapped for the request; where it is `None`, ids that the vendor gave
    itself go back as they are, whatever they look like."""
    alternates: bool = False
    """True if messages of the user and the model must alternate (Perplexity). Neighbours of one role
    are joined."""
    same_strict: bool = False
    """True if all tools must have the same `strict` (Cerebras). Otherwise it is left out."""
    image_edits: Literal["form", "json"] = "form"
    """How images to edit are sent: as files of a form (OpenAI) or in JSON (xAI)."""
