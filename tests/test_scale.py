"""The model of `docs/scale.md` (`bench/scale.py`): what must hold of any load, and that it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli import SRC

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(scope="module")
def scale() -> Any:
    sys.path.insert(0, str(BENCH))
    try:
        import scale as module  # pyright: ignore[reportMissingImports] - it is in bench/
    finally:
        sys.path.remove(str(BENCH))
    return module


@settings(max_examples=15)
@given(
    streams=st.integers(1, 60),
    rate=st.sampled_from([1.0, 10.0, 50.0]),
    processes=st.integers(1, 4),
    pause=st.sampled_from([0.0, 0.02, 0.2]),
    database=st.sampled_from(["sqlite", "postgresql"]),
    append=st.sampled_from([1e-5, 1e-3, 1e-2]),
)
def test_no_event_is_lost_and_no_process_commits_more_than_it_may(
    scale: Any,
    streams: int,
    rate: float,
    processes: int,
    pause: float,
    database: str,
    append: float,
) -> None:
    setup = scale.Setup(database, processes=processes, pause=pause, database_cores=2)
    commit = 1e-3
    stored = scale.simulate(streams, rate, setup, commit, append, seconds=4.0)
    # What came is stored, but for what is still on its way at the end: a batch of each run.
    on_the_way = streams * (1 + rate * (stored.worst + pause + commit + append * streams))
    assert abs(stored.events - streams * rate) <= on_the_way / 4 + 1
    assert stored.appends <= stored.events + 1e-9
    assert stored.commits <= stored.appends + 1e-9
    if pause:
        assert stored.commits <= processes * (1 / pause + 1)
    assert commit + append - 1e-9 <= stored.latency
    assert stored.latency <= stored.worst * 20
    assert 0 <= stored.busy <= 1.5


def test_a_longer_pause_makes_fewer_commits_and_later_events(scale: Any) -> None:
    short, long = (
        scale.simulate(200, 20, scale.Setup(pause=pause), 5e-4, 7e-5) for pause in (0.02, 0.2)
    )
    assert long.commits < short.commits / 5
    assert long.appends < short.appends / 2
    assert long.latency > 2 * short.latency
    assert long.events == pytest.approx(short.events, rel=0.05)


def test_writers_of_one_file_wait_for_each_other(scale: Any) -> None:
    """Where a database takes several commits at a time, they do not."""
    commit, append = 2e-3, 5e-4
    file, server = (
        scale.simulate(100, 20, scale.Setup(name, processes=8, database_cores=8), commit, append)
        for name in ("sqlite", "postgresql")
    )
    assert file.busy > 4 * server.busy
    assert file.latency > 1.5 * server.latency


def test_each_knob_moves_what_it_is_named_for(scale: Any) -> None:
    load = scale.Load(streams=200, runs=20)
    costs = scale.MEASURED["postgresql"]

    def ratios(**setup: Any) -> dict[str, float]:
        needs = scale.assess(load, scale.Setup("postgresql", **setup), costs)
        assert needs == sorted(needs, key=lambda need: -need.ratio)
        return {need.resource: need.ratio for need in needs}

    before = ratios()
    assert ratios(processes=4)["CPU of the processes"] == pytest.approx(
        before["CPU of the processes"] / 4, rel=0.1
    )
    assert ratios(processes=4)["connections"] == 4 * before["connections"]
    assert ratios(poll=1.0)["CPU for polls"] == pytest.approx(before["CPU for polls"] / 5)
    assert ratios(lease=60.0)["lease renewals"] == pytest.approx(before["lease renewals"] / 2)
    assert ratios(kept_days=3)["run log on disk"] == pytest.approx(before["run log on disk"] / 10)
    assert ratios(pause=0.2)["bytes written"] < before["bytes written"]


def test_what_fits_is_less_of_more(scale: Any) -> None:
    setup, costs = scale.Setup(processes=2), scale.MEASURED["sqlite"]
    small, large = (
        scale.find_share(scale.Load(streams=count, runs=count / 10), setup, costs)
        for count in (200, 1600)
    )
    assert 0 < large < small <= 1


def run(*arguments: str) -> str:
    command = [sys.executable, str(BENCH / "scale.py"), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": SRC}, check=True
    )
    return done.stdout


def test_it_shows_what_breaks_first() -> None:
    told = run("--streams", "50", "--runs", "5")
    assert "50 open streams of 20 events a second, 5 runs a second of 10 s" in told
    assert "SQLite, 1 process " in told
    assert "Postgres, 64 processes" in told


@pytest.mark.service
@pytest.mark.timeout(240)
def test_it_measures_this_machine_and_is_near_the_log() -> None:
    told = run("--measure", "--streams", "50", "--runs", "5")
    points = [line for line in told.splitlines() if "appends" in line and " / " in line]
    assert len(points) == 4
    for line in points:
        model, real = (float(word) for word in line.split("appends")[1].split()[0:3:2])
        assert 0.4 < model / real < 2.5, told
