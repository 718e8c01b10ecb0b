"""What a send returns, whole or as a chunk of a stream."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from dragoman.message import FinishReason, Message, ToolCallPart, Usage

__all__ = ["ChatResult", "ModelInfo"]

T = TypeVar("T")


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
