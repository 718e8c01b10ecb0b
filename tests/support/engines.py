"""Engines of durable runs, and their logs, for the checks of the kit; other processes import them."""

from __future__ import annotations

from dragoman.runs import Engine, RunLog
from dragoman.runs.named_engines import open_engine


def log_engine(log: RunLog) -> Engine:
    return open_engine("log", log, poll_seconds=0.05)


def dbos_engine(log: RunLog) -> Engine:
    return open_engine("dbos", log, poll_seconds=0.05)


def restate_engine(log: RunLog) -> Engine:
    return open_engine("restate", log, poll_seconds=0.02)


def temporal_engine(log: RunLog) -> Engine:
    return open_engine("temporal", log, poll_seconds=0.02)
