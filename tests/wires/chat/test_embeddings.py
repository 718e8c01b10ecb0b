"""Embeddings of the wires of the Chat family."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import wires
from dragoman.request import EmbeddingsRequest
from dragoman.result import BatchEmbeddingsResult

NAMES = ("openai_chat", "mistral")
named = pytest.mark.parametrize("name", NAMES)
DONE = b"data: [DONE]\n\n"


@named
def test_vectors_are_written_as_they_were_read(name: str) -> None:
    wire = wires.embeddings(name)
    assert wire is not None
    body: dict[str, Any] = {
        "id": "e1", "object": "list", "model": "m",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}, {"object": "embedding", "index": 1, "embedding": [2.0, 0.0]}],
        "usage": {"prompt_tokens": 3, "total_tokens": 3, "x": 1, **({"completion_tokens": 0} if name == "mistral" else {})},
    }  # fmt: skip
    result = wire.load_response(body)
    assert isinstance(result, BatchEmbeddingsResult)
    assert wire.dump_response(result, request=EmbeddingsRequest("other", ("a", "b"))) == body
    assert wire.dump_response(result) == body
    bare = BatchEmbeddingsResult(result.embeddings)
    assert wire.dump_response(bare)["model"] == ""
    assert wire.dump_response(bare, request=EmbeddingsRequest("m", ("a", "b")))["model"] == "m"
    packed = EmbeddingsRequest("m", ("a", "b"), options={"encoding_format": "base64"})
    again = wire.dump_response(result, request=packed)
    assert (
        isinstance(again["data"][0]["embedding"], str)
        and wire.load_response(again).embeddings == result.embeddings
    )
    sent = wire.dump_http(EmbeddingsRequest("m", ("a",), dimensions=2))
    assert sent.path == "/embeddings"
    assert sent.body == {
        "model": "m",
        "input": ["a"],
        "dimensions" if name == "openai_chat" else "output_dimension": 2,
    }
