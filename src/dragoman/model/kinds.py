"""What a model is for: as its provider tells, else guessed from its name. All of it is data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_object

__all__ = ["kinds_of"]

_BY_NAME: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kinds)
    for pattern, kinds in (
        (r"embed|minilm|\bbge-|\bgte-|\be5-", ("embeddings",)),
        (r"moderation|rerank|(llama|prompt)-guard|\bocr\b", ("other",)),
        (r"transcribe|whisper|realtime", ("audio",)),
        (r"\btts\b", ("tts",)),
        (r"gpt-audio|audio-preview|voxtral", ("chat", "audio")),
        (r"gemini.*\bimage\b|nano-banana", ("image", "chat")),  # converse, in pictures
        (r"dall-e|\bimage\b|imagen|imagine|flux|stable-diffusion", ("image",)),
        (r"\bsora\b|\bveo\b|video", ("media",)),
        (r"davinci|babbage|gpt-3\.?5-turbo-instruct", ("other",)),  # completions only
    )
)
"""The first that is found in the name decides; none: chat."""

_MODALITIES: Mapping[str, str] = {
    "text": "chat",
    "embeddings": "embeddings",
    "image": "image",
    "audio": "audio",
    "speech": "tts",
    "video": "media",
}

_LISTED: tuple[tuple[tuple[str, ...], Mapping[str, str]], ...] = (
    (  # Together, LM Studio
        ("type",),
        {
            "chat": "chat",
            "llm": "chat",
            "vlm": "chat",
            "embedding": "embeddings",
            "embeddings": "embeddings",
            "image": "image",
            "audio": "tts",
            "transcribe": "audio",
            "video": "media",
            "language": "other",
            "code": "other",
            "moderation": "other",
            "rerank": "other",
        },
    ),
    (("architecture", "output_modalities"), _MODALITIES),  # OpenRouter, Hugging Face
    (("supported_output_modalities",), _MODALITIES),  # GitHub
    (  # Google
        ("supportedGenerationMethods",),
        {
            "generateContent": "chat",
            "embedContent": "embeddings",
            "embedText": "embeddings",
            "predict": "image",
            "predictLongRunning": "media",
            "bidiGenerateContent": "audio",
            "countTokens": "count_tokens",
            "generateAnswer": "other",
        },
    ),
    (  # Cohere
        ("endpoints",),
        {
            "chat": "chat",
            "embed": "embeddings",
            "embed_image": "embeddings",
            "transcribe": "audio",
            "audio_transcriptions": "audio",
            "rerank": "other",
            "classify": "other",
            "summarize": "other",
            "generate": "other",
            "rate": "other",
        },
    ),
    (  # Mistral, Azure, Ollama
        ("capabilities",),
        {
            "completion_chat": "chat",
            "chat_completion": "chat",
            "completion": "chat",
            "embeddings": "embeddings",
            "embedding": "embeddings",
            "audio": "audio",
            "audio_transcription": "audio",
            "audio_transcription_realtime": "audio",
            "audio_speech": "tts",
            "image": "image",
            "moderation": "other",
            "classification": "other",
            "ocr": "other",
        },
    ),
)
"""Where a provider tells what a model does → its words, and the kind that each means. The first that says anything counts."""

_ORDER = ("chat", "embeddings", "image", "media", "tts", "audio", "count_tokens")


def kinds_of(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of a model of that name, of which a provider told this. Never empty; what it is mainly for comes first.

    A provider that tells only that a model answers the requests of a chat leaves it to the name what it answers with.
    """
    named = next((kinds for pattern, kinds in _BY_NAME if pattern.search(name)), ())
    kinds = next((kinds for path, words in _LISTED if (kinds := _kinds(fields, path, words))), ())
    counts = tuple(kind for kind in kinds if kind == "count_tokens")
    does = tuple(kind for kind in kinds if kind != "count_tokens")
    if not does or (does[0] == "chat" and named and named[0] not in does):
        does = named or ("chat",)
    return does + counts


def _kinds(
    fields: Mapping[str, Any], path: tuple[str, ...], words: Mapping[str, str]
) -> tuple[str, ...]:
    """The kinds that the value at a path says; what is "other" says nothing beside one that has a name."""
    *above, last = path
    for key in above:
        fields = if_object(fields.get(key))
    found = {words[word] for word in _words(fields.get(last)) if word in words}
    return tuple(kind for kind in _ORDER if kind in found) or tuple(found)


def _words(value: Any) -> Iterable[str]:
    """A word, a list of words, or an object that says true of some."""
    if isinstance(value, str):
        return (value,)
    return [word for word in if_list(value) if isinstance(word, str)] or [
        word for word, holds in if_object(value).items() if holds is True
    ]
