"""Output checks: functions of the user's that accept, change or send back what a run gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import anyio.to_thread
from typing_extensions import TypeVar

from dragoman.arguments import wrong_type_error
from dragoman.errors import ModelRetry, TypedOutputError
from dragoman.orchestration.output_type import TypedOutput
from dragoman.tools import ToolContext

__all__ = ["OutputCheck", "OutputChecks", "make_checks"]

Deps = TypeVar("Deps", default=Any)

OutputCheck: TypeAlias = Callable[[ToolContext[Deps], Any], Any]
"""Function of the run's context and its output, plain or async. It returns the output, changed or
not, or raises `ModelRetry` with words for the model."""


class OutputChecks:
    """The checks of one run, and the output that they accepted."""

    def __init__(
        self,
        functions: Sequence[OutputCheck],
        read: Callable[[str], Any],
        dump: Callable[[Any], str],
    ) -> None:
        """`read`: text of the output → its value; raises `ValueError` if it has another type.
        `dump`: the inverse."""
        self._functions, self._read, self._dump = functions, read, dump
        self._accepted: str | None = None
        self.value: Any = None
        """The accepted output."""

    def has_accepted(self, text: str) -> bool:
        """True if that is the output that was accepted."""
        return self._accepted == text

    def can_read(self, text: str) -> bool:
        """True if the text is of the type that the output checks take."""
        try:
            self._read(text)
        except ValueError:
            return False
        return True

    async def apply(self, context: ToolContext[Any], text: str, *, is_final: bool = False) -> str:
        """Runs the checks, each on what the one before returned. Returns the text of the output as
        they leave it. A plain function runs in a thread, as a plain tool does. `is_final`: the checks
        have changed the text before, and change no more of it.

        Raises:
            ModelRetry: a check sends the output back.
            TypeError: a check returns no output.
            Exception: what a check raises beside.
        """
        value = self._read(text)
        before = self._dump(value)
        for function in self._functions:
            value = await _call(function, context, value)
        after = self._dump(value)
        self.value = self._read(text) if is_final else value
        # The model's own spelling stays where nothing was changed.
        if is_final or after == before:
            after = text
        self._accepted = after
        return after

    async def apply_last(self, context: ToolContext[Any], text: str) -> None:
        """Runs the checks on the output of a run that cannot ask its model again.

        Raises:
            TypedOutputError: a check sends it back, or it is not of the type.
        """
        try:
            self._read(text)
        except ValueError as error:
            raise TypedOutputError.because(str(error), output=text) from error
        try:
            await self.apply(context, text)
        except ModelRetry as error:
            raise TypedOutputError.refused(error.message, output=text) from error
        self._accepted = text


def make_checks(
    functions: Sequence[OutputCheck], output: TypedOutput[Any] | None
) -> OutputChecks | None:
    """Returns the checks of a run; None if there are none. `output`: its type, or None for text.

    Raises:
        TypeError: one is no function.
    """
    for index, function in enumerate(functions):
        if not callable(function):
            what = "a function (context, output) -> output"
            raise wrong_type_error(f"output_checks[{index}]", function, what)
    if not functions:
        return None
    if output is None:
        return OutputChecks(functions, str, str)
    return OutputChecks(functions, output.read, output.dump)


async def _call(function: OutputCheck, context: ToolContext[Any], value: Any) -> Any:
    """Calls an output check, plain or async."""
    if inspect.iscoroutinefunction(function):
        checked = await function(context, value)
    else:
        checked = await anyio.to_thread.run_sync(function, context, value, abandon_on_cancel=True)
        if inspect.isawaitable(checked):
            checked = await checked
    name = getattr(function, "__name__", type(function).__name__)
    if checked is None and value is not None:
        raise TypeError(f"the output check {name} returned None; return the output, changed or not")
    if isinstance(value, str) and not isinstance(checked, str):
        raise TypeError(
            f"the output check {name} returned {checked!r:.100} for a text; return a text"
        )
    return checked
