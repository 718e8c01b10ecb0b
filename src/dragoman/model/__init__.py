"""A provider, its wire and a transport put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.runtime import lazy

if TYPE_CHECKING:
    from dragoman.model.breaker import Breaker
    from dragoman.model.cache_store import CacheStore
    from dragoman.model.chat_model import ChatModel
    from dragoman.model.embeddings_model import EmbeddingsModel
    from dragoman.model.fallbacks import fallback
    from dragoman.model.file_fetching import fetch_files
    from dragoman.model.media_endpoint import MediaEndpoint
    from dragoman.model.middleware import Middleware
    from dragoman.model.resolve_model import parse_model_string
    from dragoman.model.response_cache import cache
    from dragoman.model.throttle import Throttle

__all__ = [
    "Breaker",
    "CacheStore",
    "ChatModel",
    "EmbeddingsModel",
    "MediaEndpoint",
    "Middleware",
    "Throttle",
    "cache",
    "fallback",
    "fetch_files",
    "parse_model_string",
]

_MODULES = {
    "Breaker": "breaker",
    "CacheStore": "cache_store",
    "ChatModel": "chat_model",
    "EmbeddingsModel": "embeddings_model",
    "MediaEndpoint": "media_endpoint",
    "Middleware": "middleware",
    "Throttle": "throttle",
    "cache": "response_cache",
    "fallback": "fallbacks",
    "fetch_files": "file_fetching",
    "parse_model_string": "resolve_model",
}

__getattr__ = lazy("dragoman.model", _MODULES)
