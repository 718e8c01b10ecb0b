"""The models that a provider offers: one request or several, in whichever of the usual shapes it
answers, and what each model is for: as its provider tells, else guessed from its name. All of that
is data."""

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
from dragoman.providers.address import join_url
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
"""The first that is found in the name decides; none: chat."""

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
"""Where a provider tells what a model does → its words, and the kind that each means. The first
that says anything counts."""

_ORDER = ("chat", "embeddings", "image", "media", "tts", "audio", "count_tokens")


def find_kinds(name: str, fields: JsonMap) -> tuple[str, ...]:
    """The kinds of a model of that name, of which a provider told this. Never empty; what it is
    mainly for comes first.

    A provider that tells only that a model answers the requests of a chat leaves it to the name
    what it answers with.
    """
    name_kinds = next((kinds for pattern, kinds in _KINDS_BY_NAME if pattern.search(name)), ())
    kinds = next(
        (kinds for path, names in _KINDS_BY_FIELD if (kinds := _read_kinds(fields, path, names))),
        (),
    )
    count_kinds = tuple(model_kind for model_kind in kinds if model_kind == "count_tokens")
    main_kinds = tuple(model_kind for model_kind in kinds if model_kind != "count_tokens")
    if not main_kinds or (
        main_kinds[0] == "chat" and name_kinds and name_kinds[0] not in main_kinds
    ):
        main_kinds = name_kinds or ("chat",)
    return main_kinds + count_kinds


def _read_kinds(
    fields: JsonMap, path: tuple[str, ...], kind_names: Mapping[str, str]
) -> tuple[str, ...]:
    """The kinds that the value at a path says; what is "other" says nothing beside one that has a
    name."""
    *above, last = path
    for key in above:
        fields = if_object(fields.get(key))
    kinds = {kind_names[name] for name in _list_words(fields.get(last)) if name in kind_names}
    return tuple(model_kind for model_kind in _ORDER if model_kind in kinds) or tuple(kinds)


def _list_words(value: Any) -> Iterable[str]:
    """A word, a list of words, or an object that says true of some."""
    if isinstance(value, str):
        return (value,)
    return [name for name in if_list(value) if isinstance(name, str)] or [
        name for name, holds in if_object(value).items() if holds is True
    ]


# lists of models

_LISTS = ("data", "models", "publisherModels")
"""Where the models of a page stand; Together's are the page itself."""
_IDS = ("id", "model", "name")
"""What a request names the model by; the first that is there."""
_TITLES = ("display_name", "displayName", "name")
_DESCRIPTIONS = ("description", "summary")
_PREFIXES = ("models/", "publishers/google/models/")
"""What Google puts before a name that a request may do without."""
_CURSORS: Mapping[str, str] = {
    "last_id": "after_id",
    "nextPageToken": "pageToken",
    "next_page_token": "page_token",
}
"""What a page calls its end → the parameter that asks for what follows: Anthropic, Google,
Cohere."""


async def list_models(access: Access) -> list[ModelInfo]:
    """The models of a provider, each once, in its order, from all pages of its answer.

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
        # its key was for the first request
        route = None
        for model in load_models(provider.name, body):
            models.setdefault(model.name, model)
        url = next_page(url, body)
    return list(models.values())


def load_models(provider: str, body: Any) -> list[ModelInfo]:
    """One page of models: `{"data": […]}` (OpenAI and most), `{"models": […]}` (Google, Cohere,
    Ollama), `{"publisherModels": […]}` (Vertex) or a bare list (Together).

    Raises:
        DecodeError: it is none of these.
    """
    page: Any = body
    if isinstance(body, dict):
        fields = if_object(body)
        page = next((fields[name] for name in _LISTS if name in fields), None)
        # Google leaves out what is empty
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
    """The URL of the page after this one; `None`: it was the last. Only the query is the provider's
    to choose."""
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
    name_key = next((key for key in _IDS if item.get(key)), None)
    if name_key is None:
        raise KeyError("a model without a name")
    name = str(item[name_key])
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    title = next((item[key] for key in _TITLES if key != name_key and item.get(key)), None)
    known_keys = {name_key, *_TITLES, *_DESCRIPTIONS}
    return ModelInfo(
        name=name,
        provider=provider,
        kinds=find_kinds(name, item),
        display_name=str(title) if title not in (None, name) else None,
        description=next(
            (if_text(item[key]) for key in _DESCRIPTIONS if if_text(item.get(key))), None
        ),
        extra={key: value for key, value in item.items() if key not in known_keys},
    )


async def _fetch_page(access: Access, url: str, route: ModelRoute | None) -> Any:
    _, body = await access.fetch(HttpRequest(url, method="GET"), route)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise DecodeError(
            f"the list of models at {public_url(url)} is no JSON: {error}; is the base URL right?",
            provider=access.provider.name,
            body=body,
        ) from error
