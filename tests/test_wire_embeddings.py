"""Embeddings on each wire: what no recording shows."""

from __future__ import annotations

import base64
import json
import math
from array import array
from typing import Any

import httpx2
import msgspec
import pytest
from google import genai
from google.auth.credentials import Credentials
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from dragoman import BatchEmbeddingsResult, Usage, providers, wires
from dragoman.codec.embeddings import dump_vector, load_vector
from dragoman.errors import DecodeError, InvalidRequestError, ProviderError, RateLimitError
from dragoman.request import EmbeddingsRequest

NAMES = [name for name in wires.names("model") if wires.embeddings(name)]
TEXTS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5)
FLOAT32 = st.floats(-1000, 1000, width=32)
VECTORS = st.lists(st.lists(FLOAT32, min_size=3, max_size=3), min_size=1, max_size=6)


def wire(name: str) -> Any:
    found = wires.embeddings(name)
    assert found is not None
    return found


def test_a_wire_says_whether_it_has_embeddings() -> None:
    assert set(NAMES) == {
        "openai_chat",
        "openai_responses",
        "google",
        "mistral",
        "ollama",
        "cohere",
    }
    assert wires.embeddings("anthropic") is None


@pytest.mark.parametrize("name", NAMES)
@given(
    texts=TEXTS,
    dimensions=st.none() | st.integers(1, 4000),
    purpose=st.sampled_from([None, "query", "document"]),
)
def test_every_request_survives_its_wire(
    name: str, texts: list[str], dimensions: Any, purpose: Any
) -> None:
    request = EmbeddingsRequest("some-model", tuple(texts), purpose, dimensions, {"user": "u"})
    http = wire(name).dump_http(request)
    again = wire(name).load_request(http.body, path=http.path)
    assert (again.model, again.texts, again.dimensions) == (
        request.model,
        request.texts,
        dimensions,
    )
    assert again.options == {"user": "u"}
    assert again.purpose == (purpose if name in ("google", "cohere") else None)
    assert wire(name).dump_http(again) == http


@pytest.mark.parametrize("name", NAMES)
@given(vectors=VECTORS, tokens=st.integers(0, 1000))
def test_every_answer_survives_its_wire(name: str, vectors: list[list[float]], tokens: int) -> None:
    result = BatchEmbeddingsResult(
        vectors, Usage(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
    )
    request = EmbeddingsRequest("m", ("t",) * len(vectors))
    again = wire(name).load_response(json.dumps(wire(name).dump_response(result, request=request)))
    assert again.embeddings == vectors
    assert again.usage == (result.usage if name != "google" else None)


@given(st.lists(FLOAT32, max_size=50))
def test_packed_vectors_are_floats_of_32_bits(vector: list[float]) -> None:
    packed = dump_vector(vector, packed=True)
    assert isinstance(packed, str)
    assert base64.b64decode(packed) == array("f", vector).tobytes()
    assert load_vector(packed) == vector


@given(st.lists(st.integers(-128, 127), min_size=48, max_size=64))
def test_packed_bytes_are_never_taken_for_floats_that_make_no_sense(numbers: list[int]) -> None:
    vector = load_vector(base64.b64encode(array("b", numbers)).decode())
    assert vector == numbers or all(abs(number) < 1e6 for number in vector)


@pytest.mark.parametrize(
    "told", [["\ud800"], "\ud800", "no base64!", "YQ=", {}, None, 3, ["1"], [None], [[1.0]], [True]]
)
def test_what_is_no_vector_is_a_decode_error(told: Any) -> None:
    with pytest.raises(DecodeError, match="a vector that"):
        load_vector(told)


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
def test_vectors_are_put_in_the_order_of_their_indexes(name: str) -> None:
    def answer(*places: Any) -> list[list[float]]:
        entries = [{"index": place, "embedding": [float(n)]} for n, place in enumerate(places)]
        return wire(name).load_response({"data": entries}).embeddings

    assert answer(2, 0, 1) == [[1.0], [2.0], [0.0]]
    assert answer(None, None, None) == answer(0, 0, 0) == [[0.0], [1.0], [2.0]]
    for places in ((0, 2, 1, 2), (0, 2), (1, 2), (0, None)):
        with pytest.raises(DecodeError, match="indexes"):
            answer(*places)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b"\xff", b"[" * 100_000, b'"x"'])
def test_what_is_no_answer_is_a_decode_error(name: str, body: bytes) -> None:
    with pytest.raises(DecodeError):
        wire(name).load_response(body)


@pytest.mark.parametrize("name", NAMES)
def test_an_error_in_the_place_of_an_answer_is_of_our_tree(name: str) -> None:
    with pytest.raises(ProviderError):
        wire(name).load_response({})
    with pytest.raises(RateLimitError, match="too many requests"):
        told = {
            "error": {"message": "too many requests", "code": 429},
            "message": "too many requests",
        }
        wire(name).load_response(told)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"input": [1, "2"]},
        {"input": [[1], []], "texts": [1]},
        {"requests": [{"content": {}}]},
        {"texts": "one"},
    ],
)
def test_a_request_without_texts_is_refused(name: str, body: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        wire(name).load_request(body)


@pytest.mark.parametrize("tokens", [[1, 2], [[1, 2], [3]]])
def test_openai_a_text_may_be_given_by_its_tokens(tokens: Any) -> None:
    body = {"model": "m", "input": tokens, "dimensions": 3, "user": "u"}
    request = wire("openai_chat").load_request(body)
    assert request.texts == ()
    assert wire("openai_chat").dump_request(request) == body
    with pytest.raises(InvalidRequestError):
        wire("mistral").load_request(body)


@pytest.mark.parametrize("name", ["openai_chat", "mistral", "ollama", "cohere"])
def test_what_a_caller_passes_is_read_or_refused(name: str) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    for body in ([], None, "x", 0.5, {"input": "x", "more": deep}):
        with pytest.raises(InvalidRequestError):
            wire(name).load_request(body)
    for body in ([], "x", {"data": deep}, None):
        with pytest.raises(DecodeError):
            wire(name).load_response(body)


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
def test_all_tokens_are_input_whatever_is_told_of_them(name: str) -> None:
    def usage(**told: int) -> Usage | None:
        return wire(name).load_response({"data": [{"embedding": [1.0]}], "usage": told}).usage

    whole = Usage(input_tokens=5, output_tokens=0, total_tokens=5)
    assert (
        usage(total_tokens=5)
        == usage(prompt_tokens=5)
        == usage(prompt_tokens=5, total_tokens=5)
        == whole
    )
    assert usage(prompt_tokens=5, total_tokens=7) == msgspec.structs.replace(whole, total_tokens=7)
    assert usage() is None


def test_openai_vectors_are_packed_where_the_client_asks_for_it() -> None:
    result = BatchEmbeddingsResult([[0.5, -1.0]], metadata={"model": "served"})
    request = EmbeddingsRequest("asked", ("t",), options={"encoding_format": "base64"})
    told = wire("openai_chat").dump_response(result, request=request)
    assert told["data"][0]["embedding"] == base64.b64encode(array("f", [0.5, -1.0])).decode()
    assert (told["model"], told["usage"]) == ("served", {"prompt_tokens": 0, "total_tokens": 0})
    assert (
        wire("openai_chat").dump_response(BatchEmbeddingsResult([[0.5]]), request=request)["model"]
        == "asked"
    )


def test_cohere_of_several_types_the_floats_are_the_vectors() -> None:
    told = {
        "embeddings": {"int8": [[1, -2]], "float": [[0.5, 0.25]], "ubinary": None},
        "meta": {"billed_units": {"input_tokens": 4}},
    }
    result = wire("cohere").load_response(told)
    assert result.embeddings == [[0.5, 0.25]]
    assert result.metadata["embeddings_by_type"] == {"int8": [[1, -2]]}
    assert result.usage == Usage(input_tokens=4, output_tokens=0, total_tokens=4)
    del told["embeddings"]["float"]
    result = wire("cohere").load_response(told)
    assert result.embeddings == [[1.0, -2.0]] and "embeddings_by_type" not in result.metadata
    packed = base64.b64encode(array("f", [0.5])).decode()
    assert wire("cohere").load_response({"embeddings": {"base64": [packed]}}).embeddings == [[0.5]]


def test_ollamas_older_endpoint_is_read_and_written() -> None:
    request = wire("ollama").load_request({"model": "m", "prompt": "text"})
    http = wire("ollama").dump_http(request)
    assert (request.texts, http.path, http.body) == (
        ("text",),
        "/api/embeddings",
        {"model": "m", "prompt": "text"},
    )
    assert wire("ollama").load_response({"embedding": [1, 2.5]}).embeddings == [[1.0, 2.5]]


def test_google_knows_the_shape_of_one_text_and_refuses_batches_that_differ() -> None:
    body = {"content": {"parts": [{"text": "t"}]}, "taskType": "RETRIEVAL_QUERY", "title": "x"}
    request = wire("google").load_request(
        body, path="/v1beta/models/gemini-embedding-001:embedContent"
    )
    assert (request.model, request.texts, request.purpose) == (
        "gemini-embedding-001",
        ("t",),
        "query",
    )
    http = wire("google").dump_http(request)
    assert (http.path, http.body) == ("/models/gemini-embedding-001:embedContent", body)
    assert wire("google").dump_response(BatchEmbeddingsResult([[1.0]]), request=request) == {
        "embedding": {"values": [1.0]}
    }
    entries = [
        {"content": {"parts": [{"text": "t"}]}, "taskType": kind}
        for kind in ("RETRIEVAL_QUERY", "CLUSTERING")
    ]
    with pytest.raises(InvalidRequestError, match="alike in all but their text"):
        wire("google").load_request({"requests": entries})


def test_google_an_option_has_the_last_word_however_it_is_spelled() -> None:
    for option in ("taskType", "task_type"):
        request = EmbeddingsRequest("m", ("t",), "query", None, {option: "CLUSTERING"})
        (entry,) = wire("google").dump_request(request)["requests"]
        assert entry == {
            "model": "models/m",
            "content": {"parts": [{"text": "t"}]},
            option: "CLUSTERING",
        }


def test_google_a_request_of_ai_studio_goes_to_vertex_in_its_shape() -> None:
    body = {
        "requests": [
            {
                "model": "models/gemini-embedding-001",
                "content": {"parts": [{"text": "t"}]},
                "taskType": "RETRIEVAL_QUERY",
            }
        ]
    }
    http = wire("google").dump_http(
        wire("google").load_request(body), quirks=providers.get("vertex").quirks
    )
    assert http.path == "/publishers/google/models/gemini-embedding-001:embedContent"
    assert http.body == {
        "content": {"parts": [{"text": "t"}]},
        "embedContentConfig": {"taskType": "RETRIEVAL_QUERY"},
    }


class Nobody(Credentials):  # type: ignore[misc]
    """Credentials that need nobody to be asked."""

    def __init__(self) -> None:
        super().__init__()
        self.token = "ya29.none"

    def refresh(self, request: Any) -> None:
        pass


VERTEX = [
    ("gemini-embedding-001", ["one"], {"embedding": {"values": [0.5]}, "usageMetadata": {"promptTokenCount": 3}}, 3),
    ("gemini-embedding-001", ["one", "two"], {"embeddings": [{"values": [0.5]}, {"values": [1.0]}]}, None),
    (
        "text-embedding-005",
        ["one", "two"],
        {"predictions": [{"embeddings": {"values": [n], "statistics": {"token_count": 2, "truncated": False}}} for n in (0.5, 1.0)]},
        4,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "texts", "told", "tokens"), VERTEX)
@pytest.mark.parametrize("dimensions", [None, 256])
def test_vertex_is_spoken_to_as_by_the_official_client(
    model: str, texts: list[str], told: dict[str, Any], tokens: int | None, dimensions: int | None
) -> None:
    """Path, body and reading, in each of its three shapes."""
    sent: list[Any] = []

    def respond(request: Any) -> Any:
        sent.append(request)
        return httpx2.Response(200, json=told)

    http = types.HttpOptions(httpx_client=httpx2.Client(transport=httpx2.MockTransport(respond)))
    client = genai.Client(
        vertexai=True, project="p", location="l", credentials=Nobody(), http_options=http
    )
    config = types.EmbedContentConfig(task_type="RETRIEVAL_QUERY", output_dimensionality=dimensions)
    theirs = client.models.embed_content(model=model, contents=texts, config=config)
    ours = wire("google").dump_http(
        EmbeddingsRequest(model, tuple(texts), "query", dimensions),
        quirks=providers.get("vertex").quirks,
    )
    assert sent[0].url.path.endswith(ours.path)
    assert ours.body == _plain(json.loads(sent[0].content))
    result = wire("google").load_response(told)
    assert result.embeddings == [entry.values for entry in theirs.embeddings]
    assert (result.usage and result.usage.input_tokens) == tokens
    request = wire("google").load_request(ours.body, path=ours.path)
    assert (request.texts, request.purpose, request.dimensions) == (
        tuple(texts),
        "query",
        dimensions,
    )
    assert wire("google").dump_http(request, quirks=providers.get("vertex").quirks) == ours


def _plain(body: Any) -> Any:
    """Without the role that the client gives to contents of some models, which the API does not
    need."""
    if isinstance(body, dict):
        return {
            key: _plain(value) for key, value in body.items() if (key, value) != ("role", "user")
        }
    return [_plain(value) for value in body] if isinstance(body, list) else body


@pytest.mark.parametrize("numbers", [[math.nan] * 8, [0.5, math.nan], [0.5] * 100 + [math.inf]])
def test_a_vector_that_a_calculation_spoilt_is_an_error(numbers: list[float]) -> None:
    with pytest.raises(DecodeError, match="numbers that are none"):
        load_vector(base64.b64encode(array("f", numbers)).decode())


def test_a_count_that_is_no_number_is_no_count() -> None:
    usage = (
        wire("cohere")
        .load_response({"embeddings": [], "meta": {"billed_units": {"input_tokens": float("inf")}}})
        .usage
    )
    assert usage is None or usage.input_tokens is None
