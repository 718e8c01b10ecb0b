"""Engines with a server of their own do what every engine must: the checks of the kit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from dragoman import testing
from support.engines import restate_engine, temporal_engine
from support.restate import Restate, restate
from support.temporal import temporal_in_thread

CHECKS = [check.name for check in testing.ENGINE_CHECKS]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restate]:
    with restate(tmp_path_factory.mktemp("restate")) as server:
        yield server


@pytest.mark.service
@pytest.mark.parametrize("name", CHECKS)
def test_restate(
    name: str, server: Restate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in server.settings().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("RESTATE_SERVICE_PREFIX", f"kit-{uuid4().hex[:8]}")
    checks = testing.engine_checks(restate_engine, partial(str, f"sqlite:///{tmp_path}/runs.db"))
    {check.name: check for check in checks}[name]()


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_temporal(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against our small server, which has no priorities."""
    with temporal_in_thread(beat_seconds=1.0) as address:
        monkeypatch.setenv("TEMPORAL_ADDRESS", address)
        url = partial(str, f"sqlite:///{tmp_path}/runs.db")
        checks = testing.engine_checks(temporal_engine, url)
        {check.name: check for check in checks}[name]()
