"""A wire's record of differences with the profile of a model, as a chat model gives it to the wire."""

from __future__ import annotations

from typing import Any

from dragoman import profiles, wires
from dragoman.profiles import attach_profile

VENDORS = {"anthropic": "anthropic", "google": "google"}


def quirks_of(wire: str, model: str, quirks: Any = None) -> Any:
    """Returns the record for a model of the wire's own vendor."""
    return attach_profile(quirks, wires.get(wire), profiles.get(f"{VENDORS[wire]}:{model}"))
