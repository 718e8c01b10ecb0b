"""What a run takes, together with the runs in its tools: `Account`."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.errors import LimitReachedError
from dragoman.result import ModelCall

__all__ = ["Account"]


class _Calls(list[ModelCall]):
    """Calls of models, of which each is one of the run around, too."""

    outer: _Calls | None = None

    def append(self, call: ModelCall, /) -> None:
        super().append(call)
        if self.outer is not None:
            self.outer.append(call)


class Account:
    """What a run and the runs in its tools have taken, held against the limits of the run and of those around it."""

    def __init__(self) -> None:
        self.calls = _Calls()
        """The calls of models that have ended."""
        self.model_calls = 0
        """How many calls of models have begun."""
        self.tool_calls = 0
        """How many calls of tools have."""
        self.reached: Callable[[int, int], str | None] = lambda model_calls, tool_calls: None  # noqa: ARG005
        """Says which limit of the run leaves no room for so many more calls of models and of tools; `None`: there is room."""
        self.full: str | None = None
        """The limit of this run, or of one around it, that a run in its tools has met: then this one cannot go on either."""
        self.owners: dict[str, str] = {}
        """By the id of each message that was told of the runs in the tools, the run in whose stream it came."""
        self._outer: Account | None = None

    def join(self, outer: Account) -> None:
        """What is taken here is taken there, too. Before anything is."""
        self._outer, self.calls.outer = outer, outer.calls

    def begin(self, *, model_calls: int = 0, tool_calls: int = 0) -> None:
        """Counts calls that are about to begin.

        Raises:
            LimitReachedError: a limit of this run or of one around it leaves no room for them.
        """
        account: Account | None = self
        while account is not None:
            if (why := account.reached(model_calls, tool_calls)) is not None:
                self._fill(account, why)
                raise LimitReachedError(why)
            account = account._outer
        account = self
        while account is not None:
            account.model_calls += model_calls
            account.tool_calls += tool_calls
            account = account._outer

    def check(self) -> None:
        """Raises `LimitReachedError` where a run in a tool has met a limit that is also this run's."""
        if self.full is not None:
            raise LimitReachedError(self.full)

    def _fill(self, last: Account, why: str) -> None:
        """None of the runs up to and with the last can go on."""
        account: Account | None = self
        while account is not None:
            account.full = account.full or why
            account = None if account is last else account._outer
