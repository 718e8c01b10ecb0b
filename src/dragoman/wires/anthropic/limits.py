"""What the API's documentation says of settings that bound each other: the answer's length, thinking, sampling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_object
from dragoman.loss import Loss, Lost

__all__ = ["default_max_tokens", "fit_together", "most_output"]

_LEAST_BUDGET = 1024  # tokens; the API takes no smaller budget
_ANSWER = 4096
"""Tokens that thinking leaves for the answer at least, where the limit allows so many twice."""
_USUAL = 32_768
_OUTPUTS = (
    (re.compile(r"claude-(2|v2|instant|3-(haiku|opus|sonnet))"), 4096),
    (re.compile(r"claude-3-5-"), 8192),
    (re.compile(r"claude-opus-4(-[01])?(-20\d{6}|$|[@:])"), 32_000),
    (re.compile(r"claude-(3-7-|(sonnet|haiku)-4(-[0-5])?(-20\d{6}|$|[@:])|opus-4-5)"), 64_000),
)
"""Beginning of a model's name → the tokens of its longest answer. Newer ones give 128,000."""
_BOTH = re.compile(r"claude-(2|v2|instant|3-|(sonnet|opus)-4(-0)?(-20\d{6}|$|[@:]))")
"""Models that take a temperature and `top_p` in one request. All others answer with an error."""
_LEAST_TOP_P = 0.95  # beside thinking


def most_output(model: str) -> int | None:
    """Most tokens of an answer of this model; `None`: that is not known."""
    name = _plain(model)
    return next((output for pattern, output in _OUTPUTS if pattern.match(name)), None)


def default_max_tokens(model: str, budget: int = 0, usual: int | None = None) -> int:
    """How many tokens of an answer to allow where nothing says it: the API demands a number.

    Args:
        model: its name.
        budget: tokens of thinking, which count too.
        usual: what an endpoint allows; `None`: 32,768, or what the model's answers have at most.
    """
    most = most_output(model) if usual is None else None
    wanted = max(usual or _USUAL, budget + _ANSWER if budget else 0)
    return min(wanted, most or wanted)


def fit_together(body: Mapping[str, Any], model: str, losses: list[Loss]) -> Mapping[str, Any]:
    """The fields of a body without those that the API refuses beside others of them; the same where it takes all. What is left out or lowered
    is added to `losses`."""
    thinking = _fit_thinking(body, losses)
    changes: dict[str, Any] = {} if thinking == body.get("thinking") else {"thinking": thinking}
    thinks = if_object(thinking).get("type") in ("enabled", "adaptive")
    left_out = _unfit_sampling(body, thinks=thinks, both=_BOTH.match(_plain(model)) is not None)
    losses += [Loss(None, None, Lost.setting, why, name) for name, why in left_out.items() if why]
    if not changes and not left_out:
        return body
    fitted = {**body, **changes}
    return {name: value for name, value in fitted.items() if name not in left_out and (name not in changes or value)}


def _fit_thinking(body: Mapping[str, Any], losses: list[Loss]) -> Any:
    """`thinking` as it may stand beside the limit and the choice of a tool; `None`: it may not."""
    thinking = if_object(body.get("thinking"))
    if thinking.get("type") != "enabled":
        return body.get("thinking")
    if if_object(body.get("tool_choice")).get("type") in ("any", "tool"):
        why = "the API takes no forced choice of a tool beside thinking"
        losses.append(Loss(None, None, Lost.setting, why, "reasoning"))
        return None
    budget, limit = thinking.get("budget_tokens"), body.get("max_tokens")
    if not isinstance(budget, int) or not isinstance(limit, int) or budget + min(limit // 2, _ANSWER) <= limit:
        return thinking
    if limit <= _LEAST_BUDGET:
        why = f"the API wants {_LEAST_BUDGET} tokens of thinking at least, and max_tokens is {limit}"
        losses.append(Loss(None, None, Lost.setting, why, "reasoning"))
        return None
    lowered = max(_LEAST_BUDGET, limit - min(limit // 2, _ANSWER))
    if budget >= limit:
        why = f"the budget of {budget} tokens must be below max_tokens, which is {limit}; {lowered} are sent"
        losses.append(Loss(None, None, Lost.setting, why, "reasoning"))
        return {**thinking, "budget_tokens": lowered}
    return thinking


def _unfit_sampling(body: Mapping[str, Any], *, thinks: bool, both: bool) -> dict[str, str]:
    """The settings of sampling that may not stand in the body, and why; empty: they ask for what is so anyway."""
    temperature, top_p = body.get("temperature"), body.get("top_p")
    found: dict[str, str] = {}
    if thinks:
        why = "the API does not take it beside thinking"
        if "top_k" in body:
            found["top_k"] = why
        if temperature not in (None, 1):
            found["temperature"] = why
        if isinstance(top_p, int | float) and top_p < _LEAST_TOP_P:
            found["top_p"] = f"beside thinking the API takes {_LEAST_TOP_P} to 1"
    if both or temperature is None or top_p is None or "temperature" in found or "top_p" in found:
        return found
    if temperature == 1:  # the default
        return {**found, "temperature": ""}
    return {**found, "top_p": "the model does not take it beside a temperature"}


def _plain(model: str) -> str:
    """A model's name without vendor and region, dots in its version as dashes."""
    name = model.rpartition("/")[2]
    return name[max(name.find("claude"), 0) :].replace(".", "-")
