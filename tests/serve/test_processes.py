"""Several processes that serve one application: what each keeps for itself is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.errors import SettingsError
from dragoman.memory import Memory
from dragoman.runs import open_log
from dragoman.serve.http.processes import check_processes, count_processes
from dragoman.testing import ScriptedModel
from support.ports import free_port

pytestmark = pytest.mark.mend("1.15")


@pytest.mark.parametrize(
    ("arguments", "environment", "name", "count"),
    [
        (["uvicorn", "m:app"], {}, "MainProcess", 1),
        (["uvicorn", "m:app", "--workers", "4"], {}, "SpawnProcess-1", 4),
        (["uvicorn", "m:app", "--workers=2"], {}, "SpawnProcess-1", 2),
        (["gunicorn", "-w", "3", "m:app"], {}, "MainProcess", 3),
        (["gunicorn", "-w3", "m:app"], {}, "MainProcess", 3),
        (["uvicorn", "m:app"], {"WEB_CONCURRENCY": "5"}, "SpawnProcess-1", 5),
        (["program.py"], {}, "SpawnProcess-2", 2),
        (["uvicorn", "m:app", "--reload"], {}, "SpawnProcess-1", 1),
        (["uvicorn", "m:app", "--workers"], {"WEB_CONCURRENCY": "many"}, "MainProcess", 1),
    ],
)
def test_the_number_of_processes_is_read_off_what_a_worker_knows(
    arguments: list[str], environment: dict[str, str], name: str, count: int
) -> None:
    assert count_processes(arguments, environment, name) == count


def test_what_is_kept_in_memory_belongs_to_one_process() -> None:
    check_processes(["answers (store=)"], 1)
    check_processes([], 4)
    with pytest.raises(
        SettingsError,
        match=r'4 processes.*answers \(store=\) in.*"sqlite:///server.db".*store=None',
    ):
        check_processes(["answers (store=)"], 4)


@pytest.mark.parametrize(
    ("memory", "options", "in_memory"),
    [
        (None, {}, "answers (store=)"),
        (None, {"store": None}, None),
        (None, {"store": "sqlite:///FILE"}, None),
        (None, {"store": "sqlite:///FILE", "log": "memory:"}, "answers in the background (log=)"),
        ("memory:", {"store": None}, "threads of agents (memory=)"),
        ("sqlite:///FILE", {"store": None}, None),
    ],
)
def test_all_that_is_kept_in_memory_is_told(
    memory: str | None, options: dict[str, Any], in_memory: str | None, tmp_path: Path
) -> None:
    def place(url: Any) -> Any:
        return url and url.replace("FILE", str(tmp_path / "server.db"))

    options = {name: place(value) for name, value in options.items()}
    if "log" in options:
        options["log"] = open_log(options["log"])
    model = ScriptedModel("Hi.")
    agent = Agent(model, memory=Memory(place(memory))) if memory else Agent(model)
    service = serve.app(agent, **options).state.service
    service.check_processes(1)
    if in_memory is None:
        service.check_processes(2)
    else:
        with pytest.raises(SettingsError, match=re.escape(in_memory)):
            service.check_processes(2)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory:", None])
def test_workers_of_uvicorn_refuse_to_keep_answers_in_memory(
    tmp_path: Path, store: str | None
) -> None:
    (tmp_path / "served.py").write_text(
        "from dragoman import Agent, serve\n"
        "from dragoman.testing import ScriptedModel\n"
        f"app = serve.app(Agent(ScriptedModel('Hi.')), store={store!r})\n"
    )
    source = str(Path(__file__).parents[2] / "src")
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "served:app",
        "--workers",
        "2",
        "--port",
        str(free_port()),
    ]
    environment = {**os.environ, "PYTHONPATH": f"{source}:{tmp_path}"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        said: list[str] = []
        for line in server.stdout:
            said.append(line)
            if "keeps answers (store=) in the memory" in line or "startup complete" in line:
                break
        server.terminate()
        server.stdout.read()
    assert ("keeps answers (store=) in the memory" in said[-1]) == (store is not None), said
