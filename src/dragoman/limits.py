"""How far a run may go: `Limits`, what it has spent so far, and whether there is room for more."""

from __future__ import annotations

import msgspec

from dragoman.errors import SettingsError

__all__ = ["Limits", "Spent", "reached"]


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bounds of one run. `None` is no bound. The run that meets one ends with `LimitReachedError`.

    Raises:
        SettingsError: a bound is no number.
    """

    model_calls: int | None = 50
    """Calls of the model."""
    tool_calls: int | None = None
    """Calls of tools, failed ones included."""
    total_tokens: int | None = None
    """Tokens of all model calls together; no model call begins once so many are spent."""
    seconds: float | None = None
    """Time since the run began; what is still running then is stopped."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            kinds = (int, float) if name == "seconds" else int
            if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
                raise SettingsError(f"Limits({name}=…) must be a number or None, not {value!r:.100}")


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run has used so far, in the units of `Limits`."""

    model_calls: int = 0
    """Calls of the model."""
    tool_calls: int = 0
    """Calls of tools."""
    total_tokens: int = 0
    """Tokens of all model calls together."""
    seconds: float = 0.0
    """Since the run began."""


def reached(limits: Limits, spent: Spent, *, model_calls: int = 0, tool_calls: int = 0) -> str | None:
    """Says which limit leaves no room for so many more calls, as a sentence for the user; `None`: there is room.

    Counts may be used up to their bound; tokens and seconds, which nobody knows beforehand, end the run at theirs.
    """
    full = {
        "model_calls": limits.model_calls is not None and spent.model_calls + model_calls > limits.model_calls,
        "tool_calls": limits.tool_calls is not None and spent.tool_calls + tool_calls > limits.tool_calls,
        "total_tokens": limits.total_tokens is not None and spent.total_tokens >= limits.total_tokens,
        "seconds": limits.seconds is not None and spent.seconds >= limits.seconds,
    }
    for name, is_full in full.items():
        if is_full:
            bound, what = getattr(limits, name), name.replace("_", " ")
            return f"the limit of {bound} {what} is reached; raise it with Limits({name}=…), or lift it with None"
    return None
