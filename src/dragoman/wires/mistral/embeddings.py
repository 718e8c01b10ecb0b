"""Mistral's embeddings endpoint ⇄ `EmbeddingsRequest`, `BatchEmbeddingsResult`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.embeddings import dump_entries, dump_texts, load_listed, load_texts
from dragoman.codec.json_values import if_object, rest
from dragoman.message import Usage
from dragoman.request import EmbeddingsRequest, HttpRequest
from dragoman.result import BatchEmbeddingsResult
from dragoman.wires.mistral.errors import load_error_object
from dragoman.wires.mistral.outcome import dump_usage, load_usage
from dragoman.wires.mistral.quirks import OWN

__all__ = ["dump_http", "dump_request", "dump_response", "load_request", "load_response"]


def load_request(body: Mapping[str, Any], *, path: str = "") -> EmbeddingsRequest:
    """A body of `/embeddings` → the neutral request. `path` tells nothing on this wire.

    Raises:
        InvalidRequestError: its input is no text.
    """
    del path
    return load_texts(body, OWN, dimensions="output_dimension")


def dump_request(request: EmbeddingsRequest, *, quirks: Any = None) -> dict[str, Any]:
    """The neutral request → a body of `/embeddings`. The API knows no purpose."""
    del quirks
    return dump_texts(request, OWN, dimensions="output_dimension")


def dump_http(request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
    """The neutral request → path, headers and body."""
    return HttpRequest("/embeddings", body=dump_request(request, quirks=quirks))


def load_response(body: bytes | Mapping[str, Any]) -> BatchEmbeddingsResult:
    """A response → its vectors, by their indexes.

    Raises:
        ProviderError: an error stands in the place of the vectors; which subclass tells why.
        DecodeError: it holds no vectors.
    """
    return load_listed(body, load_error_object, load_usage)


def dump_response(result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None) -> dict[str, Any]:
    """Vectors → a response. `request` says whether they are packed and, where the result does not know, of which model
    they are."""
    packed = request is not None and request.options.get("encoding_format") == "base64"
    body: dict[str, Any] = {"id": result.id, "object": "list", "data": dump_entries(result.embeddings, packed=packed)}
    body |= {"model": request.model if request else ""} | rest(result.metadata, "usage", "usage_estimated")
    return body | {"usage": dump_usage(result.usage or Usage(), if_object(result.metadata.get("usage")))}
