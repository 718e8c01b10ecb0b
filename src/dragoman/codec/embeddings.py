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
    wire_native: WireNative,
    *,
    texts: str = "input",
    dimensions: str,
    tokens: bool = False,
) -> EmbeddingsRequest:
    """Converts an embeddings body with a text or a list of them to the neutral request. `texts` and
    `dimensions` are the fields' names.

    `tokens`: a text may be given by the numbers of its tokens too. They belong to one model's
    tokenizer, so they are no neutral texts: the request has none, and this wire's own field holds
    the numbers.

    Raises:
        InvalidRequestError: there is no text.
    """
    options = dict(if_object(body))
    try:
        json_bytes.check_value_depth(options)
    except ValueError as error:
        raise InvalidRequestError(f"the embeddings request cannot be read: {error}") from error
    input_value = options.pop(texts, None)
    numbers = tokens and _are_tokens(input_value)
    try:
        if numbers:
            loaded = ()
        elif isinstance(input_value, str):
            loaded = (input_value,)
        else:
            loaded = msgspec.convert(input_value, tuple[str, ...])
    except msgspec.ValidationError as error:
        raise InvalidRequestError(
            f"an embeddings request needs the field {texts}, a text or a list of texts"
        ).at(field=texts) from error
    if if_text(options.get("model")):
        model = options.pop("model")
    else:
        model = ""
    if type(options.get(dimensions)) is int:
        size = options.pop(dimensions)
    else:
        size = None
    if isinstance(input_value, str):
        alone = {texts: "text"}
    else:
        alone = {}
    native = wire_native.note({texts: input_value} if numbers else None, form=alone)
    return EmbeddingsRequest(model, loaded, None, size, options, native)


def _are_tokens(input_value: Any) -> bool:
    """True if the input of an embeddings request is a list of token numbers, or a list of such
    lists."""
    if any(isinstance(entry, list) for entry in if_list(input_value)):
        lists = if_list(input_value)
    else:
        lists = [input_value]
    return all(
        if_list(numbers) and all(type(number) is int for number in if_list(numbers))
        for numbers in lists
    )


def dump_texts(
    request: EmbeddingsRequest,
    wire_native: WireNative,
    *,
    texts: str = "input",
    dimensions: str,
    **fields: Any,
) -> Json:
    """Returns the body of an embeddings request with more `fields`. `options` win over them.
    Reverses `load_texts`."""
    alone = wire_native.form(request.native).get(texts) == "text" and len(request.texts) == 1
    body: Json = {"model": request.model} if request.model else {}
    if alone:
        body[texts] = request.texts[0]
    else:
        body[texts] = list(request.texts)
    if not request.texts:
        body |= wire_native.fields(request.native)
    if request.dimensions is not None:
        body[dimensions] = request.dimensions
    return body | fields | dict(request.options)


def load_answer_object(body: bytes | JsonMap) -> Json:
    """Converts the body of an embeddings response to the JSON object that it is.

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
    """Returns the numbers of an embedding vector, which came as a list or packed as base64.

    Base64 holds 32-bit floats, little endian (OpenAI, Voyage, Cohere), or where these would make no
    sense, signed bytes (Perplexity).

    Raises:
        DecodeError: it is no vector.
    """
    try:
        if isinstance(value, str):
            vector = _unpack_vector(value)
        else:
            vector = msgspec.convert(value, Vector)
    except ValueError as error:
        # Among them half a pair of surrogates, which is not convertible.
        raise shape_error(value, "a vector that is no list of numbers") from error
    # A sum is finite only if each number is, and is much faster than a look at each.
    if not isfinite(sum(vector)):
        raise shape_error(value, "a vector with numbers that are none (NaN or infinity)")
    return vector


def dump_vector(vector: Vector, *, packed: bool = False) -> list[float] | str:
    """Returns an embedding vector as a response holds it: as a list, or packed as base64."""
    if not packed:
        return list(vector)
    floats = array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return b64encode(floats.tobytes()).decode()


def load_vector_entries(value: Any) -> list[Vector]:
    """Converts a list of `{"index", "embedding"}` (OpenAI, Mistral) to the vectors in the order of
    their indexes.

    Where no index is told, or one for all, the list's order counts.

    Raises:
        DecodeError: it is no such list, or an index is told twice.
    """
    entries = [as_object(entry, "vector") for entry in as_list(value, "vectors")]
    indexes = [entry.get("index") for entry in entries]
    if len({str(index) for index in indexes}) > 1:
        if sorted(place for place in indexes if isinstance(place, int)) != list(
            range(len(entries))
        ):
            raise shape_error(indexes, "vectors whose indexes do not count them")
        entries.sort(key=lambda entry: entry["index"])
    return [load_vector(entry.get("embedding")) for entry in entries]


def load_data_vectors(
    body: bytes | JsonMap,
    refusal: Callable[[Json], DragomanError],
    counted: Callable[[Json], tuple[Usage | None, Json]],
) -> BatchEmbeddingsResult:
    """Converts an embeddings response with its vectors in `data` (OpenAI, Mistral). `refusal`: an
    answer without them to its error; `counted`: reads the usage.

    Raises:
        ProviderError: an error stands in the place of the vectors; which subclass tells why.
        DecodeError: it holds no vectors.
    """
    answer = load_answer_object(body)
    if "data" not in answer:
        raise refusal(answer)
    usage, beside = counted(if_object(answer.get("usage")))
    metadata = read_extra_fields(answer, "object", "data", "id", "usage")
    if beside:
        metadata["usage"] = beside
    return BatchEmbeddingsResult(
        load_vector_entries(answer["data"]),
        count_input_tokens(usage),
        metadata=metadata,
        id=if_text(answer.get("id")),
    )


def dump_vector_entries(vectors: Iterable[Vector], *, packed: bool = False) -> list[Json]:
    """Returns vectors as entries of an embeddings response. The inverse of
    `load_vector_entries`."""
    return [
        {"object": "embedding", "index": index, "embedding": dump_vector(vector, packed=packed)}
        for index, vector in enumerate(vectors)
    ]


def count_input_tokens(usage: Usage | None) -> Usage | None:
    """Returns the usage of an embeddings request: all tokens are input, also where the provider
    tells the total alone (Voyage)."""
    if usage is None:
        return None
    if usage.input_tokens is None:
        tokens = usage.total_tokens
    else:
        tokens = usage.input_tokens
    if usage.total_tokens is None:
        total = tokens
    else:
        total = usage.total_tokens
    return msgspec.structs.replace(
        usage, input_tokens=tokens, output_tokens=usage.output_tokens or 0, total_tokens=total
    )


def _unpack_vector(value: str) -> Vector:
    """Returns the numbers of an embedding vector packed as base64, 4 bytes or signed bytes each."""
    try:
        data = b64decode(value, validate=True)
    except ValueError as error:
        raise shape_error(value, "a vector that is no base64") from error
    # Signed bytes read as floats soon give one that is larger than any in a vector.
    if len(data) % 4 == 0:
        floats = array("f", data)
        if sys.byteorder == "big":
            floats.byteswap()
        if all(-_BEYOND < number < _BEYOND or _is_nan(number) for number in floats[:_TRIED]):
            return floats.tolist()
    return list(map(float, array("b", data)))


def _is_nan(number: float) -> bool:
    """True if the number is the NaN of a failed calculation. Bytes that are no floats rarely have
    just this bit pattern."""
    return number != number and pack("<f", number).strip(b"\0") in _NANS
