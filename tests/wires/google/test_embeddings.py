"""Embeddings of Google's wire, in all four shapes (D-144)."""

from __future__ import annotations

import pytest

from dragoman.errors import DecodeError, InvalidRequestError
from dragoman.request import EmbeddingsRequest
from dragoman.wires.google import embeddings
from dragoman.wires.google.quirks import Quirks
from support.google import NESTED, content

VERTEX_QUIRKS = Quirks(models="publishers/google/models", vertex_embeddings=True)


SETTINGS = {"outputDimensionality": 8, "title": "t", "autoTruncate": True}


TASK = {"taskType": "RETRIEVAL_QUERY"}


@pytest.mark.parametrize(
    ("model", "quirks", "texts", "path", "body"),
    [
        ("gemini-e", Quirks(), ("a",), "/models/gemini-e:batchEmbedContents", {"requests": [{"model": "models/gemini-e", **content("a"), **TASK, **SETTINGS}]}),
        ("tuned/x", None, ("a", "b"), "/tuned/x:batchEmbedContents", {"requests": [{"model": "tuned/x", **content(each), **TASK, **SETTINGS} for each in "ab"]}),
        ("maas-e", VERTEX_QUIRKS, ("a",), "/publishers/google/models/maas-e:embedContent", {**content("a"), "embedContentConfig": {**TASK, **SETTINGS}}),
        (
            "gemini-e", VERTEX_QUIRKS, ("a", "b"), "/publishers/google/models/gemini-e:batchEmbedContents",
            {"requests": [{**content(each), "embedContentConfig": {**TASK, **SETTINGS}} for each in "ab"]},
        ),
        (
            "text-e", VERTEX_QUIRKS, ("a", "b"), "/publishers/google/models/text-e:predict",
            {
                "instances": [{"content": each, "task_type": "RETRIEVAL_QUERY", "title": "t"} for each in "ab"],
                "parameters": {"outputDimensionality": 8, "autoTruncate": True},
            },
        ),
    ],
)  # fmt: skip
def test_d144_an_embeddings_request_to_the_last_field(model, quirks, texts, path, body):
    options = {"title": "t", "autoTruncate": True}
    http = embeddings.dump_http(EmbeddingsRequest(model, texts, "query", 8, options), quirks=quirks)
    assert (http.path, http.headers, http.body) == (path, {}, body)
    read = embeddings.load_request(body, path=path)
    assert (read.model, read.texts, read.purpose, read.dimensions, read.options) == (
        model,
        texts,
        "query",
        8,
        options,
    )
    assert embeddings.dump_http(read, quirks=quirks) == http
    assert embeddings.dump_request(read) == body


@pytest.mark.parametrize(
    ("body", "model", "purpose", "dimensions", "options"),
    [
        (content("a"), "", None, None, {}),
        ({"model": "models/m", **content("a")}, "m", None, None, {}),
        ({"model": "m", **content("a"), "task_type": "RETRIEVAL_DOCUMENT", "output_dimensionality": 3}, "m", "document", 3, {}),
        ({"content": {"role": "user", "parts": [{"text": "a"}]}, "taskType": "CLUSTERING", "title": 1}, "", None, None, {"taskType": "CLUSTERING", "title": 1}),
        ({**content("a"), "outputDimensionality": True}, "", None, None, {"outputDimensionality": True}),
        ({**content("a"), "embedContentConfig": {"taskType": "RETRIEVAL_QUERY", "x": 1}}, "", "query", None, {"x": 1}),
        ({"requests": [content("a")]}, "", None, None, {}),
        ({"instances": [{"content": "a", "task_type": "RETRIEVAL_DOCUMENT"}], "parameters": {"x": 1}}, "", "document", None, {"x": 1}),
    ],
)  # fmt: skip
def test_d144_an_embeddings_request_goes_back_as_it_came(body, model, purpose, dimensions, options):
    request = embeddings.load_request(body)
    assert (request.model, request.texts) == (model, ("a",))
    assert (request.purpose, request.dimensions, request.options) == (purpose, dimensions, options)
    assert embeddings.dump_request(request) == body


@pytest.mark.parametrize(
    "body",
    [
        {}, {"requests": []}, {"requests": [content("a"), content("")]}, {"content": {"parts": [{"text": "a"}, {"text": "b"}]}},
        {"content": {"parts": [{"text": "a"}], "role": "model"}}, {"instances": [{"content": 1}]}, {"content": "a"},
    ],
)  # fmt: skip
def test_an_embeddings_request_without_its_texts_is_refused(body):
    with pytest.raises(InvalidRequestError, match="needs a content with one text"):
        embeddings.load_request(body)


@pytest.mark.parametrize(
    ("answer", "vectors", "tokens", "metadata"),
    [
        ({"embedding": {"values": [0.5, 1]}}, [[0.5, 1.0]], None, {}),
        ({"embeddings": [{"values": [1]}, {"values": [2]}], "x": 1}, [[1.0], [2.0]], None, {"x": 1}),
        (
            {"embedding": {"values": [1], "statistics": {"truncated": True, "token_count": 2.0}}, "usageMetadata": {"promptTokenCount": 3, "y": 1}},
            [[1.0]], 3, {"usage": {"y": 1}, "truncated": True},
        ),
        (
            {"predictions": [{"embeddings": {"values": [1], "statistics": {"token_count": n, "truncated": False}}} for n in (2, 3.0, -1, "x", 2**53)]},
            [[1.0]] * 5, 5, {},
        ),
        ({"predictions": [{"embeddings": {"values": [1], "statistics": {"token_count": 0}}}]}, [[1.0]], 0, {}),
    ],
)  # fmt: skip
def test_an_embeddings_answer_to_the_last_field(answer, vectors, tokens, metadata):
    result = embeddings.load_response(answer)
    assert (result.embeddings, result.usage and result.usage.input_tokens, result.metadata) == (
        vectors,
        tokens,
        metadata,
    )
    for shape in ({"instances": [{"content": "a"}]}, content("a"), {"requests": [content("a")]}):
        body = embeddings.dump_response(result, request=embeddings.load_request(shape))
        (key,) = body
        assert key == (
            "predictions"
            if "instances" in shape
            else "embedding"
            if "content" in shape
            else "embeddings"
        )
        again = embeddings.load_response(body).embeddings
        assert again == (vectors[:1] if key == "embedding" else vectors)
    assert embeddings.dump_response(result) == {
        "embeddings": [{"values": vector} for vector in vectors]
    }


def test_embeddings_of_a_users_content_come_back():
    one = {"content": {"role": "user", "parts": [{"text": "a"}]}}
    for body, path in (
        (one, "/models/m:embedContent"),
        ({"requests": [one, one]}, "/models/m:batchEmbedContents"),
    ):
        request = embeddings.load_request(body, path=path)
        assert request.texts in (("a",), ("a", "a"))
        assert embeddings.dump_request(request) == body


@pytest.mark.parametrize(
    "body", [5, ["x"], {"embedding": {"values": ["\ud800"]}}, {"embedding": {"values": NESTED}}]
)
def test_vectors_of_another_shape_are_a_decode_error(body):
    with pytest.raises(DecodeError):
        embeddings.load_response(body)
