"""Engines by their names."""

from __future__ import annotations

import pytest

from dragoman.errors import SettingsError
from dragoman.runs import Runs, named_engines
from dragoman.runs.engines import LogEngine
from dragoman.runs.memory_log import MemoryLog

pytestmark = pytest.mark.anyio


async def test_an_engine_is_opened_by_its_name() -> None:
    async with MemoryLog() as log:
        engine = named_engines.open_engine("log", log, poll_seconds=0.1)
        assert isinstance(engine, LogEngine)
        with pytest.raises(SettingsError, match='there is no engine "redis": give one of log'):
            Runs(log, engine="redis")


async def test_an_engine_whose_package_is_missing_names_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = named_engines.NamedEngine("engines", "LogEngine", "no_such_package")
    monkeypatch.setattr(named_engines, "ENGINES", {"acme": row})
    async with MemoryLog() as log:
        with pytest.raises(
            SettingsError, match=r'the engine "acme" needs no_such_package: pip install .*\[acme\]'
        ):
            Runs(log, engine="acme")


async def test_runs_close_the_engine_that_they_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Closing(LogEngine):
        async def close(self) -> None:
            closed.append("closed")

    monkeypatch.setattr("dragoman.runs.engines.LogEngine", Closing)
    async with MemoryLog() as log:
        async with Runs(log):
            assert closed == []
        assert closed == ["closed"]
        async with Runs(log, engine=Closing(log)):
            pass
    assert closed == ["closed"]
