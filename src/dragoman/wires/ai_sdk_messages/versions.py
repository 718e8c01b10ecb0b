"""UI messages of one release of the library: what another has and it has not, in its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text
from dragoman.loss import Lost

__all__ = ["restricted"]

Part = dict[str, Any]
_NEWER: Mapping[str, frozenset[str]] = {
    "v5": frozenset(["custom", "reasoning-file", "steering-message"]),
    "v6": frozenset(["custom", "reasoning-file", "steering-message"]),
    "v7": frozenset(),
}
"""Release → types of parts that only later ones have."""
_DENIED = "Tool call execution denied."


def restricted(parts: list[Part], version: str, lose: Callable[[Lost, str], None]) -> list[Part]:
    """The parts as that release has them. `lose` takes what it has none for."""
    out: list[Part] = []
    for part in parts:
        if part["type"] in _NEWER.get(version, ()):
            lose(Lost.provider, f"ai {version[1:]} has no part {part['type']}")
        elif version == "v5" and "approval" in part and "state" in part:
            out.append(_without_approval(part))
        else:
            out.append(part)
    return out


def _without_approval(part: Part) -> Part:
    """A call of ai 5, which knows no approvals: one that waits is a call, one that was refused has failed."""
    plain = {key: value for key, value in part.items() if key != "approval"}
    state = part["state"]
    if state == "output-denied":
        reason = if_text(if_object(part["approval"]).get("reason"))
        return {
            **plain,
            "state": "output-error",
            "errorText": f"denied: {reason}" if reason else _DENIED,
        }
    return {**plain, "state": "input-available"} if state.startswith("approval-") else plain
