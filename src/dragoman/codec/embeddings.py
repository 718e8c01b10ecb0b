"""What the wires that have embeddings share: a request for texts, vectors as lists of numbers or
packed as base64, usage."""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from math import isfinite
from struct import pack
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import (
    as_list,
    as_object,
    if_list,
    if_object,
    if_text,
    read_extra_fields,
    shape_error,
)
from dragoman.codec.native import WireNative
from dragoman.errors import DecodeError, DragomanError, InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Usage
from dragoman.request import EmbeddingsRequest
from dragoman.result import BatchEmbeddingsResult, Vector

__all__ = [
    "dump_vector_entries",
    "dump_texts",
    "dump_vector",
    "count_input_tokens",
    "load_answer_object",
    "load_vector_entries",
    "load_data_vectors",
    "load_texts",
    "load_vector",
]

_BEYOND = 1e6
"""No number in a vector of floats is as large; bytes that give such a one are no floats."""
_NANS = (b"\xc0\x7f", b"\xc0\xff")
_TRIED = 64
"""By so many of its numbers a vector is known: of bytes that are no floats, about each second one
is beyond."""


def load_texts(
    body: JsonMap,
    own: WireNative,
    *,
    texts: str = "input",
    dimensions: str,
    tokens: bool = False,
) -> EmbeddingsRequest:
    """A body with a text or a list of them → the neutral request. `texts` and `dimensions` are the
    fields' names.

    `tokens`: a text may be given by the numbers of its tokens too. They belong to one model's
    tokenizer, so they are no neutral texts: the request has none, and this wire's own field holds
    the numbers.

    Raises:
        InvalidRequestError: there is no text.
    """
    left = dict(if_object(body))
    try:
        json_bytes.check_value_depth(left)
    except ValueError as error:
        raise InvalidRequestError(f"the embeddings request cannot be read: {error}") from error
    given = left.pop(texts, None)
    numbers = tokens and _are_tokens(given)
    try:
        loaded = (
            ()
            if numbers
            else msgspec.convert([given] if isinstance(given, str) else given, tuple[str, ...])
        )
    except msgspec.ValidationError as error:
        raise InvalidRequestError(
            f"an embeddings request needs the field {texts}, a text or a list of texts"
        ).at(field=texts) from error
    model = left.pop("model") if if_text(left.get("model")) else ""
    size = left.pop(dimensions) if type(left.get(dimensions)) is int else None
    alone = {texts: "text"} if isinstance(given, str) else {}
    native = own.note({texts: given} if numbers else None, form=alone)
    return EmbeddingsRequest(model, loaded, None, size, left, native)


def _are_tokens(given: Any) -> bool:
    """Whether it is a text by the numbers of its tokens, or a list of such."""
    lists = if_list(given) if any(isinstance(one, list) for one in if_list(given)) else [given]
    return all(
        if_list(one) and all(type(number) is int for number in if_list(one)) for one in lists
    )


def dump_texts(
    request: EmbeddingsRequest,
    own: WireNative,
    *,
    texts: str = "input",
    dimensions: str,
    **fields: Any,
) -> Json:
    """The inverse of `load_texts`, with more `fields`. `options` have the last word."""
    alone = own.form(request.native).get(texts) == "text" and len(request.texts) == 1
    body: Json = {"model": request.model} if request.model else {}
    body[texts] = request.texts[0] if alone else list(request.texts)
    if not request.texts:
        body |= own.fields(request.native)
    if request.dimensions is not None:
        body[dimensions] = request.dimensions
    return body | fields | dict(request.options)


def load_answer_object(body: bytes | JsonMap) -> Json:
    """A response's body → the JSON object that it is.

    Raises:
        DecodeError: it is none.
    """
    try:
        if isinstance(body, (bytes, str)):
            answer = json_bytes.decode(body)
        else:
            json_bytes.check_value_depth(answer := cast("Any", body))
    except ValueError as error:
        raise DecodeError(
            f"the answer is no JSON: {error}; is the base URL right?",
            body=body if isinstance(body, bytes) else None,
        ) from error
    if not isinstance(answer, dict):
        raise shape_error(answer, "an answer that is no object")
    return cast("Json", answer)


def load_vector(value: Any) -> Vector:
    """A vector as it was sent → its numbers.

    Base64 holds 32-bit floats, little endian (OpenAI, Voyage, Cohere), or where these would make no
    sense, signed bytes (Perplexity).

    Raises:
        DecodeError: it is no vector.
    """
    try:
        vector = _unpacked(value) if isinstance(value, str) else msgspec.convert(value, Vector)
    except ValueError as error:  # among them half a pair of surrogates, which is not convertible
        raise shape_error(value, "a vector that is no list of numbers") from error
    if not isfinite(sum(vector)):
        raise shape_error(value, "a vector with numbers that are none (NaN or infinity)")
    return vector


def dump_vector(vector: Vector, *, packed: bool = False) -> list[float] | str:
    """A vector → a list, or packed as base64."""
    if not packed:
        return list(vector)
    floats = array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return b64encode(floats.tobytes()).decode()


def load_vector_entries(value: Any) -> list[Vector]:
    """A list of `{"index", "embedding"}` (OpenAI, Mistral) → the vectors in the order of their
    indexes.

    Where no index is told, or one for all, the list's order counts.

    Raises:
        DecodeError: it is no such list, or an index is told twice.
    """
    entries = [as_object(entry, "vector") for entry in as_list(value, "vectors")]
    places = [entry.get("index") for entry in entries]
    if len({str(place) for place in places}) > 1:
        if sorted(place for place in places if isinstance(place, int)) != list(range(len(entries))):
            raise shape_error(places, "vectors whose indexes do not count them")
        entries.sort(key=lambda entry: entry["index"])
    return [load_vector(entry.get("embedding")) for entry in entries]


def load_data_vectors(
    body: bytes | JsonMap,
    refusal: Callable[[Json], DragomanError],
    counted: Callable[[Json], tuple[Usage | None, Json]],
) -> BatchEmbeddingsResult:
    """A response with its vectors in `data` (OpenAI, Mistral). `refusal`: an answer without them →
    its error; `counted`: reads the usage.

    Raises:
        ProviderError: an error stands in the place of the vectors; which subclass tells why.
        DecodeError: it holds no vectors.
    """
    answer = load_answer_object(body)
    if "data" not in answer:
        raise refusal(answer)
    usage, beside = counted(if_object(answer.get("usage")))
    metadata = read_extra_fields(answer, "object", "data", "id", "usage") | (
        {"usage": beside} if beside else {}
    )
    return BatchEmbeddingsResult(
        load_vector_entries(answer["data"]),
        count_input_tokens(usage),
        metadata=metadata,
        id=if_text(answer.get("id")),
    )


def dump_vector_entries(vectors: Iterable[Vector], *, packed: bool = False) -> list[Json]:
    """The inverse of `load_vector_entries`."""
    return [
        {"object": "embedding", "index": index, "embedding": dump_vector(vector, packed=packed)}
        for index, vector in enumerate(vectors)
    ]


def count_input_tokens(usage: Usage | None) -> Usage | None:
    """Usage of a request for vectors: all tokens are input, also where only their total is told
    (Voyage)."""
    if usage is None:
        return None
    tokens = usage.total_tokens if usage.input_tokens is None else usage.input_tokens
    total = tokens if usage.total_tokens is None else usage.total_tokens
    return msgspec.structs.replace(
        usage, input_tokens=tokens, output_tokens=usage.output_tokens or 0, total_tokens=total
    )


def _unpacked(value: str) -> Vector:
    try:
        data = b64decode(value, validate=True)
    except ValueError as error:
        raise shape_error(value, "a vector that is no base64") from error
    if len(data) % 4 == 0:
        floats = array("f", data)
        if sys.byteorder == "big":
            floats.byteswap()
        if all(-_BEYOND < number < _BEYOND or _is_nan(number) for number in floats[:_TRIED]):
            return floats.tolist()
    return list(map(float, array("b", data)))


def _is_nan(number: float) -> bool:
    """Whether it is what a calculation that fails gives; bytes that are no floats rarely make just
    this one of all NaNs."""
    return number != number and pack("<f", number).strip(b"\0") in _NANS
