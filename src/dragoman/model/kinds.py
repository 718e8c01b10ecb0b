"""What a model is for: as its provider tells, else guessed from its name (D-80). All of it is data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["kinds_of"]

_BY_NAME: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kinds)
    for pattern, kinds in (
        (r"embed|minilm|\bbge-|\bgte-|\be5-", ("embeddings",)),
        (r"moderation|rerank|(llama|prompt)-guard|\bocr\b", ("other",)),
        (r"transcribe|whisper|realtime", ("audio",)),
        (r"\btts\b", ("tts",)),
        (r"gpt-audio|audio-preview|voxtral", ("chat", "audio")),
        (r"dall-e|\bimage\b|imagen|imagine|flux|stable-diffusion", ("image",)),
        (r"\bsora\b|\bveo\b|video", ("media",)),
        (r"davinci|babbage|gpt-3\.5-turbo-instruct", ("other",)),  # completions only
    )
)
"""The first that is found in the name decides; none: chat."""

_BY_MODALITY = {
    "text": "chat",
    "embeddings": "embeddings",
    "image": "image",
    "audio": "audio",
    "speech": "tts",
    "video": "media",
}
"""What a model puts out, as OpenRouter and Hugging Face tell."""

_BY_TYPE = {
    "chat": "chat",
    "embedding": "embeddings",
    "image": "image",
    "audio": "tts",
    "transcribe": "audio",
    "video": "media",
    "language": "other",
    "code": "other",
    "moderation": "other",
    "rerank": "other",
}
"""A model's `type`, as Together tells; `language` and `code` are models of plain completions."""


def kinds_of(name: str, told: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of a model of that name, of which a provider told this. Never empty."""
    if kind := _BY_TYPE.get(str(told.get("type"))):
        return (kind,)
    architecture = told.get("architecture")
    if isinstance(architecture, dict):
        outputs = cast("dict[str, Any]", architecture).get("output_modalities") or ()
        if kinds := tuple(dict.fromkeys(_BY_MODALITY[output] for output in outputs if output in _BY_MODALITY)):
            return kinds
    return next((kinds for pattern, kinds in _BY_NAME if pattern.search(name)), ("chat",))
