"""Reads and writes requests and responses of Ollama's `/api/embed`. Its older `/api/embeddings` is
read too."""

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
    """Reads a body of `/api/embed`. `path` is not read.

    Raises:
        InvalidRequestError: its input is not text.
    """
    del path
    body = if_object(body)
    # The older endpoint has one text, in `prompt`.
    field = "prompt" if "prompt" in body else "input"
    return load_texts(body, OWN, texts=field, dimensions="dimensions")


def dump_request(request: EmbeddingsRequest, *, quirks: Any = None) -> Json:
    """Writes a body of `/api/embed`. The API has no field for the purpose."""
    del quirks
    older = "prompt" in OWN.form(request.native) and len(request.texts) == 1
    return dump_texts(request, OWN, texts="prompt" if older else "input", dimensions="dimensions")


def dump_http(request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
    """Writes path, headers and body of a request."""
    body = dump_request(request, quirks=quirks)
    return HttpRequest("/api/embeddings" if "prompt" in body else "/api/embed", body=body)


def load_response(body: bytes | JsonMap) -> BatchEmbeddingsResult:
    """Reads the vectors of Ollama's response.

    Raises:
        ProviderError: the response is an error. The subclass says which.
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
    """Writes vectors as a response. `request` names the model."""
    counts = read_extra_fields(dump_usage(result.usage), "eval_count")
    return {
        "model": request.model if request else "",
        "embeddings": [dump_vector(vector) for vector in result.embeddings],
        **read_extra_fields(result.metadata, "usage_estimated"),
        **counts,
    }
