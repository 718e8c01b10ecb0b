"""Ollama's `/api/embed` ⇄ `EmbeddingsRequest`, `BatchEmbeddingsResult`. Its older `/api/embeddings`
is read too."""

from __future__ import annotations

from typing import Any

from dragoman.codec.embeddings import (
    count_input_tokens,
    dump_texts,
    dump_vector,
    load_answer_object,
    load_texts,
    load_vector,
)
from dragoman.codec.json_values import as_list, if_object, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import EmbeddingsRequest, HttpRequest
from dragoman.result import BatchEmbeddingsResult
from dragoman.wires.ollama.errors import error_of
from dragoman.wires.ollama.quirks import OWN
from dragoman.wires.ollama.usage import dump_usage, load_usage

__all__ = ["dump_http", "dump_request", "dump_response", "load_request", "load_response"]


def load_request(body: JsonMap, *, path: str = "") -> EmbeddingsRequest:
    """A body of `/api/embed` → the neutral request. `path` is not read.

    Raises:
        InvalidRequestError: its input is no text.
    """
    del path
    body = if_object(body)
    return load_texts(
        body, OWN, texts="prompt" if "prompt" in body else "input", dimensions="dimensions"
    )


def dump_request(request: EmbeddingsRequest, *, quirks: Any = None) -> Json:
    """The neutral request → a body of `/api/embed`. The API knows no purpose."""
    del quirks
    older = "prompt" in OWN.form(request.native) and len(request.texts) == 1
    return dump_texts(request, OWN, texts="prompt" if older else "input", dimensions="dimensions")


def dump_http(request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
    """The neutral request → path, headers and body."""
    body = dump_request(request, quirks=quirks)
    return HttpRequest("/api/embeddings" if "prompt" in body else "/api/embed", body=body)


def load_response(body: bytes | JsonMap) -> BatchEmbeddingsResult:
    """A response → its vectors.

    Raises:
        ProviderError: an error stands in the place of the vectors; which subclass tells why.
        DecodeError: it holds no vectors.
    """
    answer = load_answer_object(body)
    vectors = [answer["embedding"]] if "embedding" in answer else answer.get("embeddings")
    if vectors is None:
        raise error_of(answer)
    return BatchEmbeddingsResult(
        [load_vector(vector) for vector in as_list(vectors, "vectors")],
        count_input_tokens(load_usage(answer)),
        metadata=read_extra_fields(answer, "embedding", "embeddings", "prompt_eval_count"),
    )


def dump_response(
    result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None
) -> Json:
    """Vectors → a response. `request` says of which model they are, where the result does not
    know."""
    counts = read_extra_fields(dump_usage(result.usage), "eval_count")
    return {
        "model": request.model if request else "",
        "embeddings": [dump_vector(vector) for vector in result.embeddings],
        **read_extra_fields(result.metadata, "usage_estimated"),
        **counts,
    }
