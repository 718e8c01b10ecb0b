"""What a commit of a log of runs costs, beside the same statements by sqlite3 alone: CPU, both in
one run, the best of several rounds.

python bench/run_log.py [postgresql://…]
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
import time

from dragoman.event import Event, PartDelta, event_to_json
from dragoman.runs import sql_log
from dragoman.runs.sql_log import SqlLog

EVENTS: list[Event] = [PartDelta("m", 0, "word ") for _ in range(20)]
DATA = b"\n".join(map(event_to_json, EVENTS)).decode()
ROUNDS, COMMITS, RUNS = 6, 200, 200


def by_hand(connection: sqlite3.Connection, start: int) -> None:
    for number in range(start, start + COMMITS):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT * FROM runs WHERE run_id IN (?)", ("one",)).fetchall()
        connection.executemany("UPDATE runs SET end = ? WHERE run_id = ?", [(number, "one")])
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", [("one", number, DATA)])
        connection.execute("COMMIT")


async def main(folder: str, url: str) -> None:
    sql_log._PAUSE_SECONDS = 0.0
    raw = sqlite3.connect(f"{folder}/raw.db", isolation_level=None)
    raw.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE runs (run_id PRIMARY KEY, end);"
        "CREATE TABLE events (run_id, end, data, PRIMARY KEY (run_id, end)); INSERT INTO runs VALUES ('one', 0);"
    )
    async with SqlLog(url) as log:
        spent = 0.0
        commit = log._commit

        def timed(changes: list[object]) -> list[object]:
            nonlocal spent
            began = time.thread_time()
            results = commit(changes)
            spent += time.thread_time() - began
            return results

        log._writer._commit = timed
        one = await log.lease(f"one-{time.time()}", "bench", 1000)
        many = await asyncio.gather(
            *[log.lease(f"{number}-{time.time()}", "bench", 1000) for number in range(RUNS)]
        )
        best = dict.fromkeys(
            ("by hand", "one run", "of 200 runs, an append", "the same with JSON and waiting"), 1e9
        )

        def note(name: str, seconds: float) -> None:
            best[name] = min(best[name], seconds * 1e6)

        for turn in range(ROUNDS):
            began = time.thread_time()
            by_hand(raw, turn * COMMITS)
            note("by hand", (time.thread_time() - began) / COMMITS)
            spent = 0.0
            for number in range(COMMITS):
                await log.append(
                    one.run_id, (turn * COMMITS + number) * len(EVENTS), EVENTS, lease=one
                )
            note("one run", spent / COMMITS)
            spent, began = 0.0, time.process_time()
            await asyncio.gather(
                *[log.append(each.run_id, turn * len(EVENTS), EVENTS, lease=each) for each in many]
            )
            note("of 200 runs, an append", spent / RUNS)
            note("the same with JSON and waiting", (time.process_time() - began) / RUNS)
    for name, micros in best.items():
        print(f"{name:32} {micros:8.0f} µs")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(place, sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{place}/runs.db"))
