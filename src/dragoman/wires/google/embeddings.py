"""Gemini's embeddings ⇄ `EmbeddingsRequest`, `BatchEmbeddingsResult`.

Four shapes: `:batchEmbedContents` and `:embedContent` of AI Studio; the same of Vertex AI, with the
settings in `embedContentConfig`; and Vertex AI's `:predict` for models that are no Gemini.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dragoman.codec.embeddings import (
    count_input_tokens,
    dump_vector,
    load_answer_object,
    load_vector,
)
from dragoman.codec.json_values import (
    as_list,
    as_object,
    check_depth,
    if_list,
    if_object,
    if_objects,
    if_text,
    read_extra_fields,
)
from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Usage
from dragoman.request import EmbeddingsRequest, HttpRequest, Purpose
from dragoman.result import BatchEmbeddingsResult
from dragoman.wires.google.errors import error_of
from dragoman.wires.google.quirks import OWN, Quirks
from dragoman.wires.google.request import model_of_path
from dragoman.wires.google.usage import load_usage, other_usage

__all__ = ["dump_http", "dump_request", "dump_response", "load_request", "load_response"]

_PURPOSES: Mapping[str, Purpose] = MappingProxyType(
    {"RETRIEVAL_QUERY": "query", "RETRIEVAL_DOCUMENT": "document"}
)
_SENT: Mapping[Purpose, str] = MappingProxyType(
    {purpose: name for name, purpose in _PURPOSES.items()}
)
_BATCH, _ONE, _PREDICT = "batchEmbedContents", "embedContent", "predict"
_CONFIG = "embedContentConfig"
_MOST_TOKENS = 2**53
_INSTANCE = ("task_type", "title")
"""Settings that `:predict` takes with each text; the others are parameters of the request."""
_SNAKE = {"taskType": "task_type", "outputDimensionality": "output_dimensionality"}


def load_request(body: JsonMap, *, path: str = "") -> EmbeddingsRequest:
    """Converts the Gemini body of an embeddings request, of any of the four shapes, to the neutral
    request.

    Raises:
        InvalidRequestError: it holds no texts, or entries that differ in more than their text.
    """
    form: Json = {}
    body = if_object(check_depth(body))
    if isinstance(body.get("instances"), list):
        texts, fields = _read_instances(body, form)
    else:
        texts, fields = _read_contents(body, form)
    if not texts or not all(texts):
        raise InvalidRequestError(
            "an embeddings request needs a content with one text, or several of these in requests"
        )
    if any(other != fields[0] for other in fields):
        raise InvalidRequestError(
            "the entries of an embeddings request must be alike in all but their text"
        )
    options = fields[0]
    model = _take_model(options, path, form)
    form["snake"] = [
        camel for camel, snake in _SNAKE.items() if snake in options and form["shape"] != _PREDICT
    ]
    purpose, dimensions = _take_purpose_and_size(options)
    return EmbeddingsRequest(model, tuple(texts), purpose, dimensions, options, OWN.note(form=form))


def dump_request(request: EmbeddingsRequest, *, quirks: Quirks | None = None) -> Json:
    """Converts the neutral request to a body. A purpose is a task type."""
    return _dump_embeddings_body(request, quirks)[1]


def dump_http(request: EmbeddingsRequest, *, quirks: Quirks | None = None) -> HttpRequest:
    """Converts a request for embeddings to Gemini's path, headers and body."""
    method, body = _dump_embeddings_body(request, quirks)
    if "/" in request.model:
        model = request.model
    else:
        model = f"{(quirks or Quirks()).models}/{request.model}"
    return HttpRequest(f"/{model}:{method}", {}, body)


def _read_instances(body: JsonMap, form: Json) -> tuple[list[str], list[Json]]:
    """Returns the texts to embed of a Gemini body of `:predict`, and the settings of each."""
    form["shape"] = _PREDICT
    entries = if_objects(body["instances"])
    parameters = if_object(body.get("parameters"))
    texts = [if_text(entry.get("content")) for entry in entries]
    return texts, [{**read_extra_fields(entry, "content"), **parameters} for entry in entries]


def _read_contents(body: JsonMap, form: Json) -> tuple[list[str], list[Json]]:
    """Returns the texts to embed of a Gemini body of the other shapes, and the settings of each."""
    if "requests" in body:
        form["shape"] = _BATCH
        entries = if_objects(body["requests"])
    else:
        form["shape"] = _ONE
        entries = [dict(body)]
    texts = [_single_text(entry.get("content")) for entry in entries]
    if entries and all("role" in if_object(entry.get("content")) for entry in entries):
        # As Google's clients for JavaScript and Go write it.
        form["role"] = "user"
    form["config"] = all(_CONFIG in entry for entry in entries)
    settings = [
        {**read_extra_fields(entry, "content", _CONFIG), **if_object(entry.get(_CONFIG))}
        for entry in entries
    ]
    return texts, settings


def _take_model(options: Json, path: str, form: Json) -> str:
    """Takes the embeddings model out of the settings of a Gemini request and returns its name,
    without "models/". A name that is not the one in the path stays in the settings, and the path
    counts."""
    model, _ = model_of_path(path)
    full_name = if_text(options.get("model"))
    if full_name and full_name.endswith(model):
        model = model or full_name.removeprefix("models/")
        form["model"] = options.pop("model").removesuffix(model)
    return model


def _take_purpose_and_size(options: Json) -> tuple[Purpose | None, int | None]:
    """Takes purpose and number of dimensions out of the settings of a Gemini embeddings request, in
    either spelling, and returns them. A value without a neutral meaning stays there."""
    task, size = (next((key for key in pair if key in options), "") for pair in _SNAKE.items())
    purpose = _PURPOSES.get(str(options.get(task)))
    if purpose is not None:
        del options[task]
    if type(options.get(size)) is int:
        return purpose, options.pop(size)
    return purpose, None


def _find_vectors(answer: JsonMap) -> list[Any]:
    """Returns the Gemini entries of a response that hold its vectors, by the shape of the response.

    Raises:
        ProviderError: there are none, so the response is an error.
    """
    if "predictions" in answer:
        predictions = as_list(answer["predictions"], "predictions")
        return [if_object(prediction).get("embeddings") for prediction in predictions]
    if "embedding" in answer:
        return [answer["embedding"]]
    if "embeddings" in answer:
        return as_list(answer["embeddings"], "vectors")
    raise error_of(answer)


def load_response(body: bytes | JsonMap) -> BatchEmbeddingsResult:
    """Converts a Gemini embeddings response of any of the four shapes to its vectors. AI Studio
    counts nothing.

    Raises:
        ProviderError: an error stands in the place of the vectors; which subclass tells why.
        DecodeError: it holds no vectors.
    """
    answer = load_answer_object(body)
    entries = [as_object(entry, "vector") for entry in _find_vectors(answer)]
    counts = if_object(answer.get("usageMetadata"))
    metadata = read_extra_fields(answer, "embedding", "embeddings", "predictions", "usageMetadata")
    if other := other_usage(counts):
        metadata["usage"] = other
    if any(if_object(entry.get("statistics")).get("truncated") for entry in entries):
        metadata["truncated"] = True
    usage = load_usage(counts) or _count_tokens(entries)
    return BatchEmbeddingsResult(
        [load_vector(entry.get("values")) for entry in entries],
        count_input_tokens(usage),
        metadata=metadata,
    )


def dump_response(
    result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None
) -> Json:
    """Converts vectors to a Gemini embeddings response, in the shape that belongs to the
    request's."""
    vectors = [{"values": dump_vector(vector)} for vector in result.embeddings]
    match OWN.form(request.native).get("shape") if request else None:
        case "embedContent" if vectors:
            return {"embedding": vectors[0]}
        case "predict":
            return {"predictions": [{"embeddings": vector} for vector in vectors]}
        case _:
            return {"embeddings": vectors}


def _choose_shape(request: EmbeddingsRequest, form: JsonMap, *, vertex: bool) -> str:
    """Returns the method for a Gemini embeddings request: the one that it was read from, or its
    model's."""
    shape = form.get("shape", _find_method(request.model, vertex=vertex))
    # `:embedContent` takes one text only.
    if shape == _ONE and len(request.texts) != 1:
        return _BATCH
    return shape


def _find_method(model: str, *, vertex: bool) -> str:
    """Returns the method of the Gemini endpoint that serves an embeddings model. `vertex`: on
    Vertex AI."""
    if not vertex:
        return _BATCH
    if any(part in model for part in ("gemini", "maas")):
        return _ONE
    return _PREDICT


def _dump_settings(request: EmbeddingsRequest, shape: str, form: JsonMap) -> Json:
    """Writes purpose, number of dimensions and options as fields of a Gemini embeddings request.
    `shape`: the method that the body is for; `form`: the note on how a loaded body was written.
    Options replace the other fields."""
    settings: Json = {}
    if request.purpose is not None:
        settings["task_type" if shape == _PREDICT else "taskType"] = _SENT[request.purpose]
    if request.dimensions is not None:
        settings["outputDimensionality"] = request.dimensions
    snake = form.get("snake", ())
    settings = {_SNAKE[key] if key in snake else key: value for key, value in settings.items()}
    # An option may be spelled the other way and would stand beside its twin.
    settings = {
        key: value for key, value in settings.items() if _SNAKE.get(key) not in request.options
    }
    settings |= request.options
    return settings


def _dump_model(model: str, form: JsonMap, *, vertex: bool) -> Json:
    """Returns the field with the model of each Gemini entry. Empty if only the path names the
    model, as on Vertex AI. `form`: of a body that is written as it was read; else empty."""
    if form:
        prefix = form.get("model")
    elif vertex:
        prefix = None
    elif "/" in model:
        prefix = ""
    else:
        prefix = "models/"
    if prefix is None:
        return {}
    return {"model": prefix + model}


def _dump_instances(texts: Sequence[str], settings: JsonMap) -> Json:
    """Writes the Gemini embeddings body of `:predict`, where some settings stand beside each
    text."""
    instance_settings = {key: value for key, value in settings.items() if key in _INSTANCE}
    parameters = read_extra_fields(settings, *_INSTANCE)
    body: Json = {"instances": [{"content": text, **instance_settings} for text in texts]}
    if parameters:
        body["parameters"] = parameters
    return body


def _dump_embeddings_body(request: EmbeddingsRequest, quirks: Quirks | None) -> tuple[str, Json]:
    """Returns the method and the Gemini body: as it was read, or as an endpoint wants it."""
    form = OWN.form(request.native) if quirks is None else {}
    vertex = quirks is not None and quirks.vertex_embeddings
    shape = _choose_shape(request, form, vertex=vertex)
    settings = _dump_settings(request, shape, form)
    if shape == _PREDICT:
        return shape, _dump_instances(request.texts, settings)
    model_field = _dump_model(request.model, form, vertex=vertex)
    if form.get("config", vertex):
        settings = {_CONFIG: settings} if settings else {}
    role = {"role": "user"} if "role" in form else {}
    entries = [
        {**model_field, "content": {**role, "parts": [{"text": text}]}, **settings}
        for text in request.texts
    ]
    return shape, entries[0] if shape == _ONE else {"requests": entries}


def _single_text(content: Any) -> str:
    """Returns the text to embed of a Gemini content that is one text of a user's and nothing else,
    else nothing. The API takes a single object in place of the list."""
    content = if_object(content)
    listed_parts = content.get("parts")
    if isinstance(listed_parts, dict):
        parts: list[Any] = [listed_parts]
    else:
        parts = if_list(listed_parts)
    alone = len(parts) == 1 and read_extra_fields(content, "parts") in ({}, {"role": "user"})
    if alone:
        return if_text(if_object(parts[0]).get("text"))
    return ""


def _count_tokens(entries: list[Json]) -> Usage | None:
    """Returns the tokens that Vertex AI counts for each embedded text."""
    counts = [if_object(entry.get("statistics")).get("token_count") for entry in entries]
    tokens = [
        int(count)
        for count in counts
        if isinstance(count, (int, float)) and 0 <= count < _MOST_TOKENS
    ]
    return Usage(input_tokens=sum(tokens)) if tokens else None
