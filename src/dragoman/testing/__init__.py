"""Tests for agents, and the conformance kit for wires, providers, stores and
engines.

    import pytest
    from dragoman import testing

    @pytest.mark.parametrize("check", testing.checks(acme), ids=str)
    def test_acme(check):
        check()

A check is one behaviour. It returns, or raises `CheckFailed`, or `Skipped` if it does not apply. It
needs no pytest, no event loop and no network: a scripted server answers with the wire's own
encoder. `python -m dragoman.testing acme` prints a report; with `--live` it asks the real server.
`ScriptedModel` is a model for tests of agents.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dragoman import providers, wires
from dragoman.errors import SettingsError
from dragoman.memory.store import Store
from dragoman.memory.vectors import VectorStore
from dragoman.message import ThinkingPart
from dragoman.providers.provider import Provider
from dragoman.runs.engines import Engine
from dragoman.runs.log import RunLog
from dragoman.serve.store.answer_store import AnswerStore
from dragoman.testing.check import (
    BoundCheck,
    Check,
    CheckFailed,
    Inconclusive,
    Skipped,
    StoreFactory,
)
from dragoman.testing.engine import CHECKS as ENGINE_CHECKS
from dragoman.testing.engine.bench import EngineFactory
from dragoman.testing.every_tool import call_every_tool
from dragoman.testing.provider import CHECKS as PROVIDER_CHECKS
from dragoman.testing.report import run_checks
from dragoman.testing.scripted import ScriptedModel, ScriptError
from dragoman.testing.scripted_answer import Answer, answer_with, call
from dragoman.testing.server import ScriptedServer
from dragoman.testing.store import CHECKS as STORE_CHECKS
from dragoman.testing.store.answers import CHECKS as ANSWER_STORE_CHECKS
from dragoman.testing.store.vectors import CHECKS as VECTOR_STORE_CHECKS
from dragoman.testing.transcript import assert_calls, collect_events, format_transcript
from dragoman.testing.wire import CHECKS as WIRE_CHECKS
from dragoman.wires import Wire

__all__ = [
    "ANSWER_STORE_CHECKS",
    "ENGINE_CHECKS",
    "PROVIDER_CHECKS",
    "STORE_CHECKS",
    "VECTOR_STORE_CHECKS",
    "WIRE_CHECKS",
    "Answer",
    "BoundCheck",
    "Check",
    "CheckFailed",
    "Inconclusive",
    "ScriptError",
    "ScriptedModel",
    "ScriptedServer",
    "Skipped",
    "answer_store_checks",
    "assert_calls",
    "call",
    "checks",
    "collect_events",
    "engine_checks",
    "call_every_tool",
    "format_transcript",
    "provider_checks",
    "run_checks",
    "store_checks",
    "answer_with",
    "vector_store_checks",
    "wire_checks",
]

T = TypeVar("T")


def wire_checks(wire: Wire | str, **options: Any) -> list[BoundCheck]:
    """Returns the checks of a wire. `options`: `signed` and `recordings`, as for `WireBench`.

    Raises:
        SettingsError: no wire has that name, or the wire is a class and not an instance.
    """
    subject = wires.get(wire) if isinstance(wire, str) else _instance(wire)
    return [BoundCheck(check, subject, options) for check in WIRE_CHECKS]


def provider_checks(provider: Provider | str, **options: Any) -> list[BoundCheck]:
    """Returns the checks of a provider without those of its wire.

    `options`: as for `ProviderBench`: `live`, `transport`, `recordings`, `model`, `api_key`,
    `base_url`, `headers`, `environment`, `signed`.

    Raises:
        SettingsError: no provider has that name, it is a class, or it names agents and no model.
    """
    subject = providers.get(provider) if isinstance(provider, str) else _instance(provider)
    if wires.client(subject.wire) is not None:
        raise SettingsError(
            f"{subject.display_name} names agents, and these checks are of models: serve a scripted agent with dragoman.serve, and ask that"
        )
    return [BoundCheck(check, subject, options) for check in PROVIDER_CHECKS]


def store_checks(
    make: Callable[[], Store], *, name: str = "", shared: bool = False
) -> list[BoundCheck]:
    """Returns the checks of a message store.

    Args:
        make: returns a store. Each check calls it, deletes the threads that it creates, and
            closes the store.
        name: the store's name in reports; by default the function's.
        shared: True if two stores from `make` hold the same data, as two of one database do.
    """
    factory = StoreFactory(make, name or getattr(make, "__name__", "store"))
    return [BoundCheck(check, factory, {"shared": shared}) for check in STORE_CHECKS]


def answer_store_checks(make: Callable[[], AnswerStore], *, name: str = "") -> list[BoundCheck]:
    """Returns the checks of a store of a server's answers (`serve.app(store=…)`).

    Args:
        make: returns a store. Each check calls it, deletes what it saves, and closes the store.
        name: the store's name in reports; by default the function's.
    """
    factory = StoreFactory(make, name or getattr(make, "__name__", "store"))
    return [BoundCheck(check, factory, {}) for check in ANSWER_STORE_CHECKS]


def engine_checks(
    make: Callable[[RunLog], Engine],
    url: Callable[[], str] = lambda: "memory:",
    *,
    name: str = "",
    priorities: bool = False,
    shared_limits: bool = False,
) -> list[BoundCheck]:
    """Returns the checks of an engine of durable runs (`Runs(log, engine=…)`).

    Args:
        make: returns an engine for a log. Each check calls it once for each of its processes, and calls
            the engine's `close` if it has one. One check starts a process of the operating system,
            which must be able to import `make` and `url`.
        url: returns the URL of an empty log, as for `open_log`. Each check calls it.
        name: the engine's name in reports; by default the function's.
        priorities: True if runs of a lower priority number come first.
        shared_limits: True if limits hold over all processes.
    """
    factory = EngineFactory(make, url, name or getattr(make, "__name__", "engine"))
    options = {"priorities": priorities, "shared_limits": shared_limits}
    return [BoundCheck(check, factory, options) for check in ENGINE_CHECKS]


def vector_store_checks(
    make: Callable[[], tuple[Store, VectorStore]], *, name: str = ""
) -> list[BoundCheck]:
    """Returns the checks of a vector store (`Recall(vectors=…)`).

    Args:
        make: returns an empty message store and the vector store of its texts. Each check calls it,
            deletes what it saves, and closes both.
        name: the store's name in reports; by default the function's.
    """
    factory = StoreFactory(make, name or getattr(make, "__name__", "store"))
    return [BoundCheck(check, factory, {}) for check in VECTOR_STORE_CHECKS]


def checks(
    provider: Provider | str,
    *,
    signed: ThinkingPart | None = None,
    recordings: Path | str | None = None,
    **options: Any,
) -> list[BoundCheck]:
    """Returns all checks of a provider: its record, then its wire, then its other behaviour.

    `signed` and `recordings` are for both benches, `options` for `provider_checks`.

    Raises:
        SettingsError: no provider has that name, it is a class, or its wire is unknown.
    """
    record, *own_checks = provider_checks(provider, signed=signed, recordings=recordings, **options)
    return [
        record,
        *wire_checks(record.subject.wire, signed=signed, recordings=recordings),
        *own_checks,
    ]


def _instance(subject: T) -> T:
    """Returns a subject of the kit. Raises `SettingsError` if it is a class instead of an
    instance."""
    if isinstance(subject, type):
        name = subject.__name__
        raise SettingsError(f"{name} is a class: give an instance, such as {name}()")
    return subject
