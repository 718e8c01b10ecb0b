"""What a send returns, whole or as a chunk of a stream; what embedding returns; a model in a list."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from dragoman.loss import Loss
from dragoman.message import FinishReason, Message, ToolCallPart, Usage

__all__ = ["BatchEmbeddingsResult", "ChatResult", "EmbeddingsResult", "ModelInfo", "Vector"]

T = TypeVar("T")

Vector = list[float]
"""A text as numbers. A plain list, because that is what numpy, JSON, SQLite's and Postgres' vector types and every vector
store take as it is; a number in it costs 32 bytes. To hold millions of vectors pack them: `array("f", vector)` takes 4."""


class ChatResult(msgspec.Struct, Generic[T], frozen=True, omit_defaults=True):
    """The result of one send, or one chunk of it: chunks hold only what is new, so their outputs joined are the whole."""

    output: T
    """Text (D-09), or the typed value of `send_for`."""
    messages: tuple[Message, ...] = ()
    """Messages that this send made, in order: user, (model with calls, user with results)*, model (D-05)."""
    finish_reason: FinishReason = FinishReason.unspecified
    usage: Usage | None = None
    """Of a chunk: the model call that it ends, each exactly once. Of a whole result: the sum (decision 3)."""
    thinking: str | None = None
    metadata: dict[str, Any] = {}
    """What the provider said beside its message; on chunks also `thinking`."""
    id: str = ""
    """The run's id; `""` on the chunk that shows the prompt (D-01)."""
    pending: tuple[ToolCallPart, ...] = ()
    """Calls that the client must answer before the conversation can go on."""
    losses: tuple[Loss, ...] = ()
    """What the requests of this send had to leave out, each once: what the provider cannot take, or may not read."""


class EmbeddingsResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One text as a vector."""

    embeddings: Vector
    """The vector."""
    usage: Usage | None = None
    """Input tokens. Where the provider tells none: characters / 4, and `metadata["usage_estimated"]` is true (D-141)."""
    finish_reason: FinishReason = FinishReason.stop
    metadata: dict[str, Any] = {}
    """What the provider said beside the vectors, such as `model`, the one that served."""
    id: str = ""
    """The provider's id of the response; `""`: it gave none."""


class BatchEmbeddingsResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Texts as vectors, in the order of the texts."""

    embeddings: list[Vector]
    """A vector for each text (D-140)."""
    usage: Usage | None = None
    """As in `EmbeddingsResult`, summed over all requests that were needed (D-141)."""
    finish_reason: FinishReason = FinishReason.stop
    metadata: dict[str, Any] = {}
    """As in `EmbeddingsResult`. Of several requests: numbers are added, lists joined, of all else the last stands."""
    id: str = ""
    """Of the first request; `""`: the provider gave none."""

    @property
    def count(self) -> int:
        """How many vectors."""
        return len(self.embeddings)

    @property
    def dimensions(self) -> int:
        """Numbers of each vector; 0 where there is none."""
        return len(self.embeddings[0]) if self.embeddings else 0


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model that a provider offers (D-80)."""

    name: str
    provider: str
    kinds: tuple[str, ...] = ("chat",)
    """Any of chat, embeddings, media, image, audio, tts, count_tokens, other."""
    display_name: str | None = None
    description: str | None = None
    extra: dict[str, Any] = {}

    @property
    def model(self) -> str:
        """The model string: `provider:name`."""
        return f"{self.provider}:{self.name}"
