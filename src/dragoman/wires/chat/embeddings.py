"""The embeddings endpoint ⇄ `EmbeddingsRequest`, `BatchEmbeddingsResult`."""

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
    """The embeddings of one format (see `wires.EmbeddingsWire`)."""

    chat: DialectRecord
    dimensions: str = "dimensions"
    """The body's field for the length of a vector."""
    tokens: bool = False
    """Takes tokens in the place of texts."""

    def load_request(self, body: JsonMap, *, path: str = "") -> EmbeddingsRequest:
        """A body of `/embeddings` → the neutral request. `path` says nothing in this family.

        Raises:
            InvalidRequestError: its input is no text (and no tokens, where they are taken).
        """
        del path
        return load_texts(body, self.chat.own, dimensions=self.dimensions, tokens=self.tokens)

    def dump_request(self, request: EmbeddingsRequest, *, quirks: Any = None) -> Json:
        """The neutral request → a body of `/embeddings`. The API knows no purpose."""
        del quirks
        return dump_texts(request, self.chat.own, dimensions=self.dimensions)

    def dump_http(self, request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
        """The neutral request → path, headers and body."""
        return HttpRequest("/embeddings", body=self.dump_request(request, quirks=quirks))

    def load_response(self, body: bytes | JsonMap) -> BatchEmbeddingsResult:
        """A response → its vectors, by their indexes, as floats or base64.

        Raises:
            ProviderError: an error stands in the place of the vectors; which subclass tells why.
            DecodeError: it holds no vectors.
        """
        return load_data_vectors(body, self._error, lambda usage: self.chat.load_usage(usage))

    def dump_response(
        self, result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None
    ) -> Json:
        """Vectors → a response. `request` says whether they are packed (`encoding_format`) and,
        where the result does not know, of which model they are."""
        packed = request is not None and request.options.get("encoding_format") == "base64"
        usage = dump_usage(
            self.chat, result.usage or Usage(), if_object(result.metadata.get("usage"))
        )
        body: Json = {
            "object": "list",
            "data": dump_vector_entries(result.embeddings, packed=packed),
        }
        body |= {"model": request.model if request else "", "usage": usage}
        return body | read_extra_fields(result.metadata, "usage", "usage_estimated")

    def _error(self, answer: Json) -> DragomanError:
        return self.chat.error_of(answer) or make_error(
            self.chat, {**answer, "error": "the answer holds no vectors"}
        )
