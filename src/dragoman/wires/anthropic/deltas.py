"""What the deltas of a block add to it beside its text: signatures, citations, and whatever else the API streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.codec.json_values import rest

__all__ = ["grown"]


def grown(block: Mapping[str, Any], deltas: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A block with the fields of its deltas: text is added to text, list to list, anything else stands in place of what was there."""
    runs: dict[str, list[Any]] = {key: [value] for key, value in block.items()}
    for delta in deltas:
        for key, value in rest(delta, "type").items():
            run = runs.setdefault(key, [])
            if run and not (type(run[-1]) is type(value) and isinstance(value, (str, list))):
                run.clear()
            run.append(value)
    return {key: run[0] if len(run) == 1 else _joined(run) for key, run in runs.items()}


def _joined(run: list[Any]) -> Any:
    return "".join(run) if isinstance(run[0], str) else [entry for entries in run for entry in entries]
