"""How an answer ended: `done_reason`, counts and the further fields of its lines, both ways."""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_list, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = ["add_fields", "dump_finish", "dump_usage", "load_finish", "load_usage"]

_REASONS = {"stop": FinishReason.stop, "length": FinishReason.length}
_SENT = {reason: name for name, reason in _REASONS.items()}
_READ = (
    "message",
    "response",
    "thinking",
    "tool_calls",
    "model",
    "done",
    "done_reason",
    "prompt_eval_count",
    "eval_count",
)
"""Fields of a line that are read elsewhere; `response` and `thinking` are those of
`/api/generate`."""


def load_finish(name: str | None, calls: bool) -> FinishReason:
    """`done_reason` → the neutral reason; `load`, `unload` and what is not known are
    unspecified."""
    reason = _REASONS.get(name or "", FinishReason.unspecified)
    asks = calls and (name is None or reason is FinishReason.stop)
    return FinishReason.tool_calls if asks else reason


def dump_finish(reason: FinishReason | None, original: Any = None) -> str | None:
    """The neutral reason → `done_reason`: the original one where it was kept; `None` where there
    was none."""
    if isinstance(original, str):
        return original
    return (
        None
        if reason is FinishReason.unspecified
        else _SENT.get(reason or FinishReason.stop, "stop")
    )


def load_usage(fields: JsonMap) -> Usage | None:
    """Counts; a prompt that was all in the cache may have none."""
    prompt, answer = fields.get("prompt_eval_count"), fields.get("eval_count")
    prompt = prompt if type(prompt) is int else None
    answer = answer if type(answer) is int else None
    if prompt is None and answer is None:
        return None
    return Usage(
        input_tokens=prompt,
        output_tokens=answer,
        total_tokens=None if prompt is None or answer is None else prompt + answer,
    )


def dump_usage(usage: Usage | None) -> dict[str, int]:
    """The inverse."""
    counts = (
        {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
        if usage
        else {}
    )
    return {name: count for name, count in counts.items() if count is not None}


def add_fields(fields: Json, line: JsonMap) -> None:
    """Adds the fields of a line beside its message: lists (of log probabilities) grow, of all else
    the last stands."""
    for name, value in read_extra_fields(line, *_READ).items():
        if name == "logprobs":
            fields.setdefault(name, []).extend(if_list(value))
        elif value is not None:
            fields[name] = value
