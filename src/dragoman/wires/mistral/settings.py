"""Settings, where they are written otherwise than in the family."""

from __future__ import annotations

from dragoman.wires.chat.settings import SETTINGS, as_it_is, tool_choice

__all__ = ["WAYS"]

_WORDS = {"auto": "auto", "none": "none"}
WAYS = {
    **SETTINGS,
    "seed": (as_it_is("random_seed", int),),
    "tool_choice": (
        tool_choice({**_WORDS, "any": "required"}),
        tool_choice({**_WORDS, "required": "required"}, "required"),
    ),
}
"""Setting → the ways to write it."""
