"""What all calls of a server share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dragoman.errors import ModelNotFoundError
from dragoman.model.chat_model import new_id, now
from dragoman.result import ModelInfo

if TYPE_CHECKING:
    from dragoman.serve.call import Backend

__all__ = ["Service"]


class Service:
    """What all calls of a server share: the backends, and what they are kept in."""

    def __init__(
        self,
        backends: Sequence[Backend],
        *,
        new_id: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.backends = tuple(backends)
        self.new_id = new_id
        self.clock = clock

    def models(self) -> list[ModelInfo]:
        """What clients may name, each name once."""
        found = {model.name: model for backend in reversed(self.backends) for model in reversed(backend.models())}
        return list(reversed(found.values()))

    def backend(self, model: str) -> Backend:
        """Who answers to that name.

        Raises:
            ModelNotFoundError: nobody does.
        """
        for backend in self.backends:
            if backend.serves(model):
                return backend
        names = ", ".join(model.name for model in self.models()[:20])
        raise ModelNotFoundError(f"there is no model {model!r} here; there are: {names}")
