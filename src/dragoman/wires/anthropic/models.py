"""What differs between Anthropic's models, by their names. A name that nothing here knows is taken for a newer model."""

from __future__ import annotations

import re

__all__ = ["most_output", "takes_both_samplings", "takes_schema"]

_OUTPUTS = (
    (re.compile(r"claude-(2|v2|instant|3-(haiku|opus|sonnet))"), 4096),
    (re.compile(r"claude-3-5-"), 8192),
    (re.compile(r"claude-opus-4(-[01])?(-20\d{6}|$|[@:])"), 32_000),
    (re.compile(r"claude-(3-7-|(sonnet|haiku)-4(-[0-5])?(-20\d{6}|$|[@:])|opus-4-5)"), 64_000),
)
"""Beginning of a model's name → the tokens of its longest answer. Newer ones give 128,000."""
_FIRST_FOUR = re.compile(r"claude-(2|v2|instant|3-|4(-20\d{6}|$|[@:])|(sonnet|opus)-4(-0)?(-20\d{6}|$|[@:]))")
"""The models up to the first Claude 4. Opus 4.1 is the first with structured outputs and the first that takes
one of `temperature` and `top_p` only."""


def most_output(model: str) -> int | None:
    """Most tokens of an answer of this model; `None`: that is not known."""
    name = _plain(model)
    return next((output for pattern, output in _OUTPUTS if pattern.match(name)), None)


def takes_schema(model: str) -> bool:
    """Whether a model answers by a JSON Schema (`output_config.format`)."""
    return _FIRST_FOUR.match(_plain(model)) is None


def takes_both_samplings(model: str) -> bool:
    """Whether a model takes a temperature and `top_p` in one request. All others answer with an error."""
    return _FIRST_FOUR.match(_plain(model)) is not None


def _plain(model: str) -> str:
    """A model's name without vendor and region, dots in its version as dashes."""
    name = model.rpartition("/")[2]
    return name[max(name.find("claude"), 0) :].replace(".", "-")
