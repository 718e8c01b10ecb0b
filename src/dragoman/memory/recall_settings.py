"""`Recall`: whether and how a memory finds earlier messages by their meaning."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterable
from typing import Any, Literal, Protocol, cast, runtime_checkable

import msgspec

from dragoman.capability import Capability
from dragoman.errors import SettingsError
from dragoman.memory.vectors import VectorStore
from dragoman.message import Message
from dragoman.providers.model_string import parse_model_string
from dragoman.result import BatchEmbeddingsResult, EmbeddingsResult

__all__ = ["Embedder", "Hit", "Recall"]


@runtime_checkable
class Embedder(Protocol):
    """What makes vectors of texts: an `Agent`."""

    @property
    def model(self) -> str:
        """Its model string, with the embeddings model."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What its provider can do."""
        ...

    @property
    def embeds_by_purpose(self) -> bool:
        """True if a text to search with gets another vector than a text to be found."""
        ...

    def embed_query(self, text: str) -> Awaitable[EmbeddingsResult]:
        """Returns the vector of a text to search with."""
        ...

    def embed_documents(self, texts: Iterable[str]) -> Awaitable[BatchEmbeddingsResult]:
        """Returns the vectors of texts to be found."""
        ...


class Hit(msgspec.Struct, frozen=True):
    """A message that was found by its meaning."""

    message: Message
    """The message."""
    thread_id: str
    """The thread's id."""
    score: float
    """The similarity of its text: 1 for the same direction, 0 for an unrelated one. What is near
    depends on the model."""


class Recall(msgspec.Struct, frozen=True):
    """Settings of recall. Before each prompt the messages whose meaning is nearest are written into
    the thread, once, for the model.

    Raises:
        SettingsError: the embedder makes no vectors, or a number is out of range.
    """

    embedder: Embedder
    """The agent whose embeddings model makes the vectors."""
    top: int = 4
    """Most messages that are found for a prompt."""
    around: int = 1
    """Messages that are quoted before and after each of them."""
    threshold: float = 0.3
    """The least similarity. It depends on the model: 0.3 suits all-MiniLM, for others unrelated
    texts may lie at 0.7."""
    scope: Literal["thread", "resource"] = "thread"
    """Where messages are looked for: in the thread, or in all threads of its owner."""
    tokens: int = 1000
    """Most tokens that quotes may take, estimated."""
    timeout: float = 5.0
    """Seconds after which a run goes on without quotes."""
    vectors: VectorStore | None = None
    """Where the vectors are stored; `None`: beside the messages."""
    automatic: bool = True
    """False to quote nothing before prompts: for `similar` and `search_tool` alone."""

    def __post_init__(self) -> None:
        # Checked here and not by the first run, which would go on without what it was to recall.
        """Checks the settings of recall."""
        _check_embedder(self.embedder)
        _check_counts(top=(self.top, 1), around=(self.around, 0), tokens=(self.tokens, 1))
        if not _is_number(self.threshold) or not -1 <= self.threshold <= 1:
            raise SettingsError(f"threshold must be from -1 to 1, not {self.threshold!r}")
        if not _is_number(self.timeout) or self.timeout <= 0:
            raise SettingsError(f"timeout must be seconds above 0, not {self.timeout!r}")
        if self.scope not in ("thread", "resource"):
            raise SettingsError(f'scope must be "thread" or "resource", not {self.scope!r}')
        if not isinstance(cast(object, self.vectors), VectorStore | None):
            raise SettingsError("vectors must be a VectorStore, with all its methods")

    @property
    def model(self) -> str:
        """The embeddings model; vectors of another one are never compared."""
        string = parse_model_string(self.embedder.model)
        return f"{string.provider}:{string.embeddings}"


def _check_embedder(embedder: Any) -> None:
    """Raises `SettingsError` if the `embedder` of recall cannot embed."""
    if not isinstance(embedder, Embedder):
        raise SettingsError(
            f'recall needs an agent that makes embeddings, such as Recall(Agent("local")), not {embedder!r:.100}'
        )
    can_embed = Capability.embeddings in embedder.capabilities
    if not can_embed or not parse_model_string(embedder.model).embeddings:
        raise SettingsError(
            f'{embedder.model} makes no embeddings: give recall another agent, such as Agent("local")'
        )


def _check_counts(**counts: tuple[int, int]) -> None:
    """Raises `SettingsError` if a number of the recall settings is less than its least."""
    for name, (value, least) in counts.items():
        if type(value) is not int or value < least:
            raise SettingsError(f"{name} must be an integer of {least} or more, not {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)
