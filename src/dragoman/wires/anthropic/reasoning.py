"""How much to think: `thinking` and the effort of `output_config` ↔ `Settings.reasoning`.

A budget is `thinking: enabled`; an effort is a budget too (from `Quirks.budgets`), or on newer models
`thinking: adaptive` with `output_config.effort`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.request import ModelRequest
from dragoman.wires.anthropic.quirks import Quirks

__all__ = ["dump_effort", "load_effort", "take"]

_EFFORTS = ("low", "medium", "high")
_USUAL_EFFORT = "high"  # what the API assumes where none is told
_LEAST_BUDGET = 1024  # tokens; the API takes no smaller budget


def load_effort(body: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Takes what `Settings.reasoning` says out of a body → the setting, and its spelling."""
    thinking, config = body.get("thinking"), body.get("output_config")
    effort = cast("dict[str, Any]", config).get("effort") if isinstance(config, dict) else None
    effort = effort if effort in _EFFORTS else None
    match thinking:
        case {"type": "enabled", "budget_tokens": int(budget)} if not isinstance(budget, bool):
            reasoning, known = budget, ("type", "budget_tokens")
        case {"type": "disabled"}:
            reasoning, known = "off", ("type",)
        case {"type": "adaptive"}:
            reasoning, known = effort or _USUAL_EFFORT, ()
        case None if effort is not None:
            take(body, "output_config", "effort")
            return effort, {"reasoning": {"thinking": None, "effort": True}}
        case _:
            return None, {}
    del body["thinking"]
    form = {key: value for key, value in cast("dict[str, Any]", thinking).items() if key not in known}
    if known:
        return reasoning, {"reasoning": {"thinking": form}} if form else {}
    if effort is not None:
        take(body, "output_config", "effort")
    return reasoning, {"reasoning": {"thinking": form, "effort": effort is not None}}


def dump_effort(
    request: ModelRequest, quirks: Quirks, spelled: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, str | None]:
    """The setting → `thinking`, and the effort for `output_config`."""
    reasoning = request.settings.reasoning
    if reasoning is None:
        return None, None
    told = cast("Mapping[str, Any]", spelled.get("reasoning", {}))
    form = cast("dict[str, Any] | None", told.get("thinking", {}))
    details = {key: value for key, value in (form or {}).items() if key != "type"}
    if reasoning == "off":
        return {**details, "type": "disabled"}, None
    if isinstance(reasoning, int):
        return {**details, "type": "enabled", "budget_tokens": reasoning}, None
    if form is None:
        return None, reasoning
    if "type" in form or request.model.startswith(quirks.adaptive_models):
        effort = reasoning if told.get("effort", True) or reasoning != _USUAL_EFFORT else None
        return {**details, "type": "adaptive"}, effort
    budget = quirks.budgets[reasoning]
    if request.settings.max_tokens is not None:  # which must exceed the budget
        budget = max(_LEAST_BUDGET, min(budget, request.settings.max_tokens - 1))
    return {**details, "type": "enabled", "budget_tokens": budget}, None


def take(body: dict[str, Any], outer: str, inner: str) -> None:
    """Takes a field out of an object of the body, and the object with its last field."""
    body[outer] = {key: value for key, value in body[outer].items() if key != inner}
    if not body[outer]:
        del body[outer]
