"""Lists a provider's models and what each is for, as the provider reports or as its name suggests.
The shapes of the answers are data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import DecodeError, SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.model.access import Access, ModelRoute
from dragoman.model.profile_from_list import load_listed_profile
from dragoman.profiles.registry import REGISTRY
from dragoman.providers.base_url import join_url
from dragoman.request import HttpRequest
from dragoman.result import ModelInfo
from dragoman.transport.redaction import public_url

__all__ = ["find_kinds", "list_models", "load_models", "next_page"]

_KINDS_BY_NAME: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kinds)
    for pattern, kinds in (
        (r"embed|minilm|\bbge-|\bgte-|\be5-", ("embeddings",)),
        (r"moderation|rerank|(llama|prompt)-guard|\bocr\b", ("other",)),
        (r"transcribe|whisper|realtime", ("audio",)),
        (r"\btts\b", ("tts",)),
        (r"gpt-audio|audio-preview|voxtral", ("chat", "audio")),
        # converse, in pictures
        (r"gemini.*\bimage\b|nano-banana", ("image", "chat")),
        (r"dall-e|\bimage\b|imagen|imagine|flux|stable-diffusion", ("image",)),
        (r"\bsora\b|\bveo\b|video", ("media",)),
        (r"davinci|babbage|gpt-3\.?5-turbo-instruct", ("other",)),  # completions only
    )
)
"""The first pattern that matches a model's name gives its kinds; without a match it is a chat
model."""

_MODALITIES: Mapping[str, str] = {
    "text": "chat",
    "embeddings": "embeddings",
    "image": "image",
    "audio": "audio",
    "speech": "tts",
    "video": "media",
}

_KINDS_BY_FIELD: tuple[tuple[tuple[str, ...], Mapping[str, str]], ...] = (
    # Together, LM Studio
    (
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
    # OpenRouter, Hugging Face
    (("architecture", "output_modalities"), _MODALITIES),
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
    # Mistral, Azure, Ollama
    (
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
"""Path of a field that reports what a model does → the provider's words and the kind that each
means. The first field with a value counts."""

_ORDER = ("chat", "embeddings", "image", "media", "tts", "audio", "count_tokens")


def find_kinds(name: str, fields: JsonMap) -> tuple[str, ...]:
    """Returns the kinds of a model by its name and the provider's fields, the main kind first,
    never empty.

    A provider that tells only that a model answers the requests of a chat leaves it to the name
    what it answers with.
    """
    name_kinds = next((kinds for pattern, kinds in _KINDS_BY_NAME if pattern.search(name)), ())
    kinds = next(
        (kinds for path, names in _KINDS_BY_FIELD if (kinds := _read_kinds(fields, path, names))),
        (),
    )
    main_kinds = tuple(kind for kind in kinds if kind != "count_tokens")
    # Some providers report "chat" for every model that their chat endpoint takes, also for those
    # that answer in pictures or speech: then the name knows better.
    is_vague = main_kinds[:1] == ("chat",) and not {*name_kinds[:1]} <= {*main_kinds}
    if not main_kinds or is_vague:
        main_kinds = name_kinds or ("chat",)
    return main_kinds + tuple(kind for kind in kinds if kind == "count_tokens")


def _read_kinds(
    fields: JsonMap, path: tuple[str, ...], kind_names: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns the kinds that a field of a listed model reports. "other" counts only if there is no
    better one."""
    *above, last = path
    for key in above:
        fields = if_object(fields.get(key))
    kinds = {kind_names[name] for name in _list_words(fields.get(last)) if name in kind_names}
    return tuple(model_kind for model_kind in _ORDER if model_kind in kinds) or tuple(kinds)


def _list_words(value: Any) -> Iterable[str]:
    """Returns the words in a value of a provider's model list: a word, a list of words, or an
    object with words that are true."""
    if isinstance(value, str):
        return (value,)
    return [name for name in if_list(value) if isinstance(name, str)] or [
        name for name, holds in if_object(value).items() if holds is True
    ]


# lists of models

_LISTS = ("data", "models", "publisherModels")
"""Fields that hold the models of a page. Together's page is the list itself."""
_IDS = ("id", "model", "name")
"""Fields with the name that requests use; the first one present counts."""
_TITLES = ("display_name", "displayName", "name")
_DESCRIPTIONS = ("description", "summary")
_PREFIXES = ("models/", "publishers/google/models/")
"""Prefixes of Google's model names that requests do not need."""
_CURSORS: Mapping[str, str] = {
    "last_id": "after_id",
    "nextPageToken": "pageToken",
    "next_page_token": "page_token",
}
"""Field with a page's cursor → the parameter that asks for the next page: Anthropic, Google,
Cohere."""


async def list_models(access: Access) -> list[ModelInfo]:
    """Returns the models of a provider from all pages of its list, each once, in its order.

    Raises:
        SettingsError: the provider lists no models, or has no base URL.
        ProviderError: it refused; which subclass tells why.
        DecodeError: it answered something else than a list of models.
    """
    provider = access.provider
    if provider.models is not None:
        return [ModelInfo(name, provider.name, find_kinds(name, {})) for name in provider.models()]
    if provider.models_path is None:
        raise SettingsError(
            f"{provider.display_name} provider does not list its models", provider=provider.name
        )
    route: ModelRoute | None = await access.route(provider.chat_model or "")
    base, _, query = route.base_url.partition("?")
    url: str | None = join_url(f"?{query}", urljoin(base + "/", "." + provider.models_path))
    seen: set[str] = set()
    models: dict[str, ModelInfo] = {}
    while url and url not in seen:
        seen.add(url)
        body = await _fetch_page(access, url, route)
        # The route's key was read for the first request: a key function is asked again.
        route = None
        for model in load_models(provider.name, body):
            models.setdefault(model.name, model)
            if model.profile is not None:
                REGISTRY.note_listed(provider.name, model.name, model.profile)
        url = next_page(url, body)
    return list(models.values())


def load_models(provider: str, body: Any) -> list[ModelInfo]:
    """Reads one page of a provider's model list: `{"data": […]}` (OpenAI and most), `{"models":
    […]}` (Google, Cohere, Ollama), `{"publisherModels": […]}` (Vertex) or a bare list (Together).

    Raises:
        DecodeError: it is none of these.
    """
    page: Any = body
    if isinstance(body, dict):
        fields = if_object(body)
        page = next((fields[name] for name in _LISTS if name in fields), None)
        # Google leaves the list out of a page without models.
        if fields.keys() <= _CURSORS.keys():
            page = []
    try:
        return [_load_model(provider, item) for item in msgspec.convert(page, list[Json])]
    except (msgspec.ValidationError, KeyError) as error:
        raise DecodeError(
            f"the answer holds no list of models: {error}",
            provider=provider,
            body=msgspec.json.encode(body),
        ) from error


def next_page(url: str, body: Any) -> str | None:
    """Returns the URL of the model list's next page, or None after the last. The provider may
    choose only its query."""
    fields = if_object(body)
    parts = urlsplit(url)
    if link := if_text(if_object(fields.get("links")).get("next")):  # OpenRouter
        return urlunsplit(parts._replace(query=urlsplit(link).query))
    for field, parameter in _CURSORS.items():
        if (cursor := if_text(fields.get(field))) and fields.get("has_more", True):
            return urlunsplit(
                parts._replace(query=urlencode(dict(parse_qsl(parts.query)) | {parameter: cursor}))
            )
    return None


def _load_model(provider: str, item: Json) -> ModelInfo:
    """Reads one model of a page of a provider's list."""
    name_key = next((key for key in _IDS if item.get(key)), None)
    if name_key is None:
        raise KeyError("a model without a name")
    name = str(item[name_key])
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    titles = [str(item[key]) for key in _TITLES if key != name_key and item.get(key)]
    descriptions = [if_text(item.get(key)) for key in _DESCRIPTIONS if if_text(item.get(key))]
    known_keys = {name_key, *_TITLES, *_DESCRIPTIONS}
    return ModelInfo(
        name=name,
        provider=provider,
        kinds=find_kinds(name, item),
        # A title that repeats the name is none.
        display_name=next((title for title in titles[:1] if title != name), None),
        description=next(iter(descriptions), None),
        extra={key: value for key, value in item.items() if key not in known_keys},
        profile=load_listed_profile(item),
    )


async def _fetch_page(access: Access, url: str, route: ModelRoute | None) -> Any:
    """Fetches one page of a provider's model list as JSON."""
    _, body = await access.fetch(HttpRequest(url, method="GET"), route)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise DecodeError(
            f"the list of models at {public_url(url)} is no JSON: {error}; is the base URL right?",
            provider=access.provider.name,
            body=body,
        ) from error
