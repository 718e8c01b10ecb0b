"""Runs as others see them: what of a run's events a client may be shown."""

from __future__ import annotations

from dragoman.runs.visible import Visible, visible

__all__ = ["Visible", "visible"]
