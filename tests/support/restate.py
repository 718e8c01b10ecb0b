"""Restate's server, started on free ports of this machine. `make service` installs it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.runs import Limit, Runs, open_log
from support.durable import Acts, durable_agent
from support.ports import free_port

_ROOT = Path(__file__).parents[2]
_PACKAGES = _ROOT / ".cache" / "restate" / "node_modules" / "@restatedev"


class Restate:
    """A server of Restate, which can be killed and started again with what it has stored."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._ports = [free_port() for _ in range(3)]
        self.ingress_url, self.admin_url, _ = [f"http://127.0.0.1:{port}" for port in self._ports]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        names = ("INGRESS__BIND_ADDRESS", "ADMIN__BIND_ADDRESS", "BIND_ADDRESS")
        addresses = {
            f"RESTATE_{name}": f"127.0.0.1:{port}"
            for name, port in zip(names, self._ports, strict=True)
        }
        settings = {
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_ADMIN__DISABLE_WEB_UI": "true",
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_DEFAULT_NUM_PARTITIONS": "2",
            "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "128MB",
            "RESTATE_WORKER__CLEANUP_INTERVAL": "1s",
        }
        command = [self._program, "--base-dir", self._folder, "--node-name", "tests", "--no-logo"]
        with (self._folder / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(
                command, env={**os.environ, **addresses, **settings}, stdout=log, stderr=log
            )
        for _ in range(300):
            try:
                self.query("select id from sys_invocation")
                urllib.request.urlopen(f"{self.ingress_url}/restate/health").close()
                return
            except OSError:
                time.sleep(0.1)
        log_text = (self._folder / "log.txt").read_text(errors="replace")
        pytest.fail(f"Restate does not start: {log_text[-2000:]}")

    def settings(self) -> dict[str, str]:
        """Variables of the engine, with an address for the workers of one test."""
        return {
            "RESTATE_INGRESS_URL": self.ingress_url,
            "RESTATE_ADMIN_URL": self.admin_url,
            "RESTATE_WORKER_URL": f"http://127.0.0.1:{free_port()}",
        }

    def forget(self) -> None:
        """Loses what a killed server has stored."""
        shutil.rmtree(self._folder / "tests")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def knows(self, service: str) -> bool:
        """True if a worker for a service is registered."""
        with urllib.request.urlopen(f"{self.admin_url}/services") as answer:
            return service in {known["name"] for known in json.load(answer)["services"]}

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows that Restate knows, such as those of `sys_invocation`."""
        request = urllib.request.Request(
            f"{self.admin_url}/query",
            json.dumps({"query": sql}).encode(),
            {"content-type": "application/json", "accept": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["rows"]


@contextmanager
def restate(folder: Path) -> Iterator[Restate]:
    """Starts the server, waits until it answers, and ends it."""
    programs = list(_PACKAGES.glob("restate-server-*/bin/restate-server"))
    if not programs:
        pytest.skip("Restate's server is not installed: run `make .cache/restate/.done`")
    server = Restate(programs[0], folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def work(
    settings: Mapping[str, str],
    queue: str,
    url: str,
    acts: str,
    lease_seconds: float,
    seconds: float,
    agent: str = "a",
) -> None:
    """A process that drives durable runs for Restate until SIGTERM. `seconds`: for each piece of a word
    of its model, and for each tool."""
    os.environ.update(settings)
    a, _ = durable_agent(Acts(Path(acts), seconds), seconds=seconds)
    asyncio.run(_work({agent: a}, queue, url, lease_seconds))


async def _work(
    agents: Mapping[str, Agent[Any]], queue: str, url: str, lease_seconds: float
) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with open_log(url) as log:
        how: Any = {"lease_seconds": lease_seconds, "poll_seconds": 0.02}
        async with Runs(log, engine="restate", agents=agents, **how) as runs:
            with suppress(asyncio.CancelledError):
                await runs.work(queues={queue: Limit(runs=20)})
