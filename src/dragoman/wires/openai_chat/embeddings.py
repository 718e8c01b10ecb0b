"""OpenAI's embeddings endpoint ⇄ `EmbeddingsRequest`, `BatchEmbeddingsResult`. Many vendors and servers speak it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.embeddings import dump_entries, dump_texts, load_listed, load_texts
from dragoman.codec.json_values import if_object, rest
from dragoman.errors import DragomanError
from dragoman.message import Usage
from dragoman.request import EmbeddingsRequest, HttpRequest
from dragoman.result import BatchEmbeddingsResult
from dragoman.wires.openai_chat.errors import load_error_object
from dragoman.wires.openai_chat.quirks import OWN
from dragoman.wires.openai_chat.usage import dump_usage, load_usage

__all__ = ["dump_http", "dump_request", "dump_response", "load_request", "load_response"]


def load_request(body: Mapping[str, Any], *, path: str = "") -> EmbeddingsRequest:
    """A body of `/embeddings` → the neutral request. `path` tells nothing on this wire.

    Raises:
        InvalidRequestError: its input is neither text nor tokens.
    """
    del path
    return load_texts(body, OWN, dimensions="dimensions", tokens=True)


def dump_request(request: EmbeddingsRequest, *, quirks: Any = None) -> dict[str, Any]:
    """The neutral request → a body of `/embeddings`. The API knows no purpose."""
    del quirks
    return dump_texts(request, OWN, dimensions="dimensions")


def dump_http(request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
    """The neutral request → path, headers and body."""
    return HttpRequest("/embeddings", body=dump_request(request, quirks=quirks))


def load_response(body: bytes | Mapping[str, Any]) -> BatchEmbeddingsResult:
    """A response → its vectors, by their indexes, as floats or base64.

    Raises:
        ProviderError: an error stands in the place of the vectors; which subclass tells why.
        DecodeError: it holds no vectors.
    """
    return load_listed(body, _refusal, load_usage)


def _refusal(answer: dict[str, Any]) -> DragomanError:
    return load_error_object(answer.get("error") or "the answer holds no vectors", answer)


def dump_response(result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None) -> dict[str, Any]:
    """Vectors → a response. `request` says whether they are packed (`encoding_format`) and, where the result does not
    know, of which model they are."""
    packed = request is not None and request.options.get("encoding_format") == "base64"
    usage = dump_usage(result.usage or Usage(), if_object(result.metadata.get("usage")))
    del usage["completion_tokens"]
    body: dict[str, Any] = {"object": "list", "data": dump_entries(result.embeddings, packed=packed)}
    body |= {"model": request.model if request else "", "usage": usage} | ({"id": result.id} if result.id else {})
    return body | rest(result.metadata, "usage", "usage_estimated")
