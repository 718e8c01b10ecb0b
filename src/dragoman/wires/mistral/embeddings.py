"""Mistral's embeddings endpoint."""

from __future__ import annotations

from dragoman.json_bytes import Json
from dragoman.request import EmbeddingsRequest
from dragoman.result import BatchEmbeddingsResult
from dragoman.wires.chat.embeddings import Embeddings
from dragoman.wires.mistral.dialect import WIRE

__all__ = ["dump_http", "dump_request", "dump_response", "load_request", "load_response"]

_WIRE = Embeddings(WIRE, dimensions="output_dimension")
load_request, dump_request, dump_http = _WIRE.load_request, _WIRE.dump_request, _WIRE.dump_http
load_response = _WIRE.load_response


def dump_response(
    result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None
) -> Json:
    """Implements `Embeddings.dump_response` for Mistral. The response always has an id."""
    return {"id": result.id, **_WIRE.dump_response(result, request=request)}
