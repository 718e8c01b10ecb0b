"""Reads and writes requests and responses of Cohere's `/embed`, version 2. Responses of version 1
are read too."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.codec.embeddings import (
    count_input_tokens,
    dump_texts,
    dump_vector,
    load_answer_object,
    load_texts,
    load_vector,
)
from dragoman.codec.json_values import as_list, if_object, if_text, read_extra_fields
from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import EmbeddingsRequest, HttpRequest, Purpose
from dragoman.result import BatchEmbeddingsResult
from dragoman.wires.cohere.errors import error_of
from dragoman.wires.cohere.quirks import OWN
from dragoman.wires.cohere.usage import dump_usage, load_usage

__all__ = ["dump_http", "dump_request", "dump_response", "load_request", "load_response"]

_PURPOSES: Mapping[str, Purpose] = MappingProxyType(
    {"search_query": "query", "search_document": "document"}
)
_INPUT_TYPES = {purpose: name for name, purpose in _PURPOSES.items()}
_PREFERRED = ("float", "base64")
"""Types of numbers from which the vectors are taken if the response has several; otherwise from the
first."""


def load_request(body: JsonMap, *, path: str = "") -> EmbeddingsRequest:
    """Reads a body of `/embed`. Images stay among its options. `path` says nothing on this wire.

    Raises:
        InvalidRequestError: it holds neither texts nor images.
    """
    del path
    fields_left = dict(if_object(body))
    media = "texts" not in fields_left and bool(fields_left.keys() & {"images", "inputs"})
    purpose = _PURPOSES.get(if_text(fields_left.get("input_type")))
    if purpose is not None:
        del fields_left["input_type"]
    request = load_texts(
        {"texts": [], **fields_left} if media else fields_left,
        OWN,
        texts="texts",
        dimensions="output_dimension",
    )
    if OWN.form(request.native):
        raise InvalidRequestError("the field texts must be a list of texts").at(field="texts")
    return request.replace(purpose=purpose)


def dump_request(request: EmbeddingsRequest, *, quirks: Any = None) -> Json:
    """Writes a body of `/embed`. A purpose becomes an `input_type`."""
    del quirks
    purpose = {} if request.purpose is None else {"input_type": _INPUT_TYPES[request.purpose]}
    body = dump_texts(request, OWN, texts="texts", dimensions="output_dimension", **purpose)
    if request.texts:
        return body
    return read_extra_fields(body, "texts")


def dump_http(request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
    """Writes path, headers and body of a request."""
    return HttpRequest("/embed", body=dump_request(request, quirks=quirks))


def load_response(body: bytes | JsonMap) -> BatchEmbeddingsResult:
    """Reads the vectors of Cohere's response.

    Of several `embedding_types` the floats are the vectors, or else the first type (whole numbers,
    packed bits). The others stay in the metadata, `embeddings_by_type`, as they came.

    Raises:
        ProviderError: the response is an error. The subclass says which.
        DecodeError: it holds no vectors.
    """
    answer = load_answer_object(body)
    embeddings = answer.get("embeddings")
    if embeddings is None:
        raise error_of(answer)
    vectors_by_type = {
        number_type: vectors
        for number_type, vectors in if_object(embeddings).items()
        if vectors is not None
    }
    # Version 1 of the API answers with a plain list.
    types = vectors_by_type or {"float": embeddings}
    number_type = next(iter(types))
    for preferred_type in reversed(_PREFERRED):
        if preferred_type in types:
            number_type = preferred_type
    metadata = read_extra_fields(answer, "id", "embeddings", "texts", "response_type")
    if further_types := read_extra_fields(types, number_type):
        metadata["embeddings_by_type"] = further_types
    return BatchEmbeddingsResult(
        [load_vector(vector) for vector in as_list(types[number_type], "vectors")],
        count_input_tokens(load_usage(if_object(answer.get("meta")))),
        metadata=metadata,
        id=if_text(answer.get("id")),
    )


def dump_response(
    result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None
) -> Json:
    """Writes vectors as a response, as floats. `request` holds the texts, which the API repeats."""
    usage = result.usage
    if usage is not None:
        usage = msgspec.structs.replace(usage, output_tokens=None)
    tokens = dump_usage(usage, {}).get("tokens", {})
    meta = {**if_object(result.metadata.get("meta"))}
    meta["billed_units"] = {**if_object(meta.get("billed_units")), **tokens}
    return {
        "id": result.id,
        "texts": list(request.texts) if request else [],
        "embeddings": {
            "float": [dump_vector(vector) for vector in result.embeddings],
            **if_object(result.metadata.get("embeddings_by_type")),
        },
        "response_type": "embeddings_by_type",
        **read_extra_fields(result.metadata, "meta", "embeddings_by_type", "usage_estimated"),
        "meta": meta,
    }
