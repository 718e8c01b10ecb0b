"""Tokens, as a text under our extension: a list of entries, as AG-UI has them. States of tasks too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_text
from dragoman.codec.usage_entries import dump_entries, load_entries
from dragoman.message import FinishReason, Usage
from dragoman.wires.a2a.extras import json_of, text_of

__all__ = [
    "STATES",
    "TERMINAL",
    "dump_finish",
    "dump_usage",
    "is_over",
    "load_finish",
    "load_usage",
    "state_of",
]

TERMINAL = (
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
)
"""States in which nothing more comes of a task."""
_WAITING = ("TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED")
STATES = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", *TERMINAL, *_WAITING)
"""States of a task."""
_FINISH: Mapping[str, FinishReason] = {
    "TASK_STATE_COMPLETED": FinishReason.stop,
    "TASK_STATE_FAILED": FinishReason.error,
    "TASK_STATE_CANCELED": FinishReason.cancelled,
    "TASK_STATE_REJECTED": FinishReason.refusal,
    "TASK_STATE_INPUT_REQUIRED": FinishReason.stop,
    "TASK_STATE_AUTH_REQUIRED": FinishReason.stop,
}


def state_of(value: Any) -> str:
    """The name of a state as 1.0 has it, from any version's: `input-required` is `TASK_STATE_INPUT_REQUIRED`; else empty."""
    name = if_text(value)
    if not name.startswith("TASK_STATE_"):
        name = f"TASK_STATE_{name.upper().replace('-', '_')}"
    return name if name in STATES else ""


def is_over(state: str) -> bool:
    """Whether a turn ends in that state: the task does, or waits for its client."""
    return state in TERMINAL or state in _WAITING


def load_finish(state: str) -> FinishReason | None:
    """Why an answer ended, as far as the state of its task tells; `None`: it goes on."""
    return _FINISH.get(state)


def dump_finish(reason: FinishReason | None) -> str:
    """The inverse."""
    if reason is FinishReason.error:
        return "TASK_STATE_FAILED"
    return "TASK_STATE_CANCELED" if reason is FinishReason.cancelled else "TASK_STATE_COMPLETED"


def dump_usage(usage: Usage | None) -> dict[str, str]:
    """The field `usage`; none where nothing is known."""
    entries = dump_entries(usage)
    return {"usage": text_of(entries)} if entries else {}


def load_usage(fields: Mapping[str, str]) -> Usage | None:
    """The inverse: the sum of the entries."""
    return load_entries(json_of(fields.get("usage")))
