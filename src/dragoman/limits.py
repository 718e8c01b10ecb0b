"""How far a run may go: `Limits`, what it has spent so far, and whether there is room for more."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import msgspec

from dragoman.cost import need_prices
from dragoman.errors import SettingsError

__all__ = ["Limits", "Spent", "find_reached_limit"]


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bounds of one run. `None` is no bound. The run that meets one ends with `LimitReachedError`.

    Raises:
        SettingsError: a bound is no number, or one of cost is set without the extra `cost`.
    """

    model_calls: int | None = 50
    """Calls of the model."""
    tool_calls: int | None = None
    """Calls of tools, failed ones included."""
    total_tokens: int | None = None
    """Tokens of all model calls together; no model call begins once so many are spent."""
    cost: Decimal | float | str | None = None
    """US dollars of all model calls together, those of agents within tools included; no model call
    begins once so many are spent. A number or its text, such as `"0.50"`; kept as a `Decimal`. A
    call whose cost is unknown leaves no room for another."""
    seconds: float | None = None
    """Time since the run began; what is still running then is stopped."""
    output_retries: int | None = 1
    """How often the model may be told that its output is not of the type, or that an output check
    sends it back. A run whose model gives no better answer ends with `TypedOutputError`."""

    def __post_init__(self) -> None:
        """Checks the limits and converts `cost` to dollars as a decimal. Raises `SettingsError` for
        a limit that is no number."""
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            if name == "cost":
                continue
            kinds = (int, float) if name == "seconds" else int
            if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
                raise SettingsError(
                    f"Limits({name}=…) must be a number or None, not {value!r:.100}"
                )
        if self.cost is not None:
            msgspec.structs.force_setattr(self, "cost", _dollars(self.cost))
            need_prices()


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run has used so far, in the units of `Limits`."""

    model_calls: int = 0
    """Calls of the model."""
    tool_calls: int = 0
    """Calls of tools."""
    total_tokens: int = 0
    """Tokens of all model calls together."""
    cost: Decimal | None = Decimal(0)
    """US dollars of all model calls together; `None`: that of one is unknown."""
    seconds: float = 0.0
    """Since the run began."""


def find_reached_limit(
    limits: Limits, spent: Spent, *, model_calls: int = 0, tool_calls: int = 0
) -> str | None:
    """Returns a sentence for the user that names the limit which leaves no room for so many more
    calls; `None` if there is room.

    Counts may be used up to their bound. Tokens, dollars and seconds, which nobody knows
    beforehand, end the run at theirs.
    """
    more = {"model_calls": model_calls, "tool_calls": tool_calls}
    for name in spent.__struct_fields__:
        bound, used = getattr(limits, name), getattr(spent, name)
        if bound is None:
            continue
        if name == "cost" and used is None:
            return f"what a model call cost is unknown, so that the limit of {bound} US dollars cannot be held; lift it with None"
        limit = _dollars(bound) if name == "cost" else bound
        if name in more:
            is_reached = used + more[name] > limit
        else:
            is_reached = used >= limit
        if is_reached:
            if name == "cost":
                unit = "US dollars"
            else:
                unit = name.replace("_", " ")
            return f"the limit of {bound} {unit} is reached; raise it with Limits({name}=…), or lift it with None"
    return None


def _dollars(value: object) -> Decimal:
    """Returns the limit of a cost as people write it, without what binary fractions add to it."""
    if isinstance(value, (int, float, str, Decimal)) and not isinstance(value, bool):
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            amount = Decimal("NaN")
        if amount.is_finite() and amount >= 0:
            return amount
    raise SettingsError(
        f"Limits(cost=…) must be an amount of US dollars or None, not {value!r:.100}"
    )
