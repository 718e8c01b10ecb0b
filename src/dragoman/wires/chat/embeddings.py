"""Reads and writes requests and responses of the embeddings endpoint."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.codec.embeddings import dump_texts, dump_vector_entries, load_data_vectors, load_texts
from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.errors import DragomanError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Usage
from dragoman.request import EmbeddingsRequest, HttpRequest
from dragoman.result import BatchEmbeddingsResult
from dragoman.wires.chat.errors import make_error
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.chat.usage import dump_usage

__all__ = ["Embeddings"]


class Embeddings(msgspec.Struct, frozen=True, eq=False):
    """The embeddings of one format of the family (see `wires.EmbeddingsWire`)."""

    chat: DialectRecord
    dimensions: str = "dimensions"
    """The body's field for the length of a vector."""
    tokens: bool = False
    """True if the API takes lists of tokens instead of texts."""

    def load_request(self, body: JsonMap, *, path: str = "") -> EmbeddingsRequest:
        """Reads a body of `/embeddings`. `path` says nothing in this family.

        Raises:
            InvalidRequestError: its input is not text (nor tokens, if the API takes them).
        """
        del path
        return load_texts(body, self.chat.own, dimensions=self.dimensions, tokens=self.tokens)

    def dump_request(self, request: EmbeddingsRequest, *, quirks: Any = None) -> Json:
        """Writes a body of `/embeddings`. The API has no field for the purpose."""
        del quirks
        return dump_texts(request, self.chat.own, dimensions=self.dimensions)

    def dump_http(self, request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
        """Writes path, headers and body of a request."""
        return HttpRequest("/embeddings", body=self.dump_request(request, quirks=quirks))

    def load_response(self, body: bytes | JsonMap) -> BatchEmbeddingsResult:
        """Reads the vectors of an embeddings response, by their indexes, from floats or base64.

        Raises:
            ProviderError: the response is an error. The subclass says which.
            DecodeError: it holds no vectors.
        """
        return load_data_vectors(body, self._error, lambda usage: self.chat.load_usage(usage))

    def dump_response(
        self, result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None
    ) -> Json:
        """Writes vectors as an embeddings response. `request` says whether they are packed as
        base64 (`encoding_format`), and names the model."""
        packed = request is not None and request.options.get("encoding_format") == "base64"
        vendor_usage = if_object(result.metadata.get("usage"))
        body: Json = {
            "object": "list",
            "data": dump_vector_entries(result.embeddings, packed=packed),
            "model": request.model if request else "",
            "usage": dump_usage(self.chat, result.usage or Usage(), vendor_usage),
        }
        return body | read_extra_fields(result.metadata, "usage", "usage_estimated")

    def _error(self, answer: Json) -> DragomanError:
        return self.chat.error_of(answer) or make_error(
            self.chat, {**answer, "error": "the answer holds no vectors"}
        )
