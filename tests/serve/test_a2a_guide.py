"""The programs of docs/guides/a2a.md: the official clients talk to the guide's server, and print what stands behind them."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.testing import ScriptedModel, call
from support.javascript import INSTALLED, with_installed
from support.ports import free_port
from support.serving import in_a_thread

pytestmark = pytest.mark.service
TEXT = (Path(__file__).parents[2] / "docs" / "guides" / "a2a.md").read_text()
SERVER = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
CLIENTS = re.findall(r"^```(py|js)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", TEXT, re.MULTILINE | re.DOTALL)
KEY = "a-key-that-nobody-guesses"


async def shopkeeper(request: Any) -> Any:
    """Does what the last words want, with one call, and says what came of it."""
    last = next(message for message in reversed(request.messages) if message.text or message.tool_results)
    if not last.tool_results:
        return await _begun(last.text)
    [result] = last.tool_results
    if "denied" in str(result.result):
        return "Then not."
    return {"stock": "There are {} of tea.", "order": "{}.", "deliver": "It is {}."}[result.name].format(result.result)


async def _begun(wish: str) -> Any:
    match wish.split()[0]:
        case "Order":
            return call("order", article="tea", count=2)
        case "Deliver":
            return call("deliver", article="tea")
        case "Count":
            return await asyncio.Event().wait()
        case _:
            return call("stock", article="tea")


@pytest.mark.parametrize(("language", "code", "printed"), CLIENTS, ids=[f"{c[0]}{n}" for n, c in enumerate(CLIENTS)])
def test_each_client_prints_what_the_guide_shows(language: str, code: str, printed: str, tmp_path: Path) -> None:
    if language == "js" and not (INSTALLED / ".done").exists():
        pytest.skip("A2A's client in JavaScript is not installed: make service")
    port = str(free_port())
    names: dict[str, Any] = {"MODEL": ScriptedModel(shopkeeper)}
    [server] = SERVER
    server = server.replace('"local"', "MODEL").replace("9000", port)
    if "KEY" in code:
        server = server.replace("webhooks=here", f"auth={KEY!r}")
    exec(compile(server, "a2a.md", "exec", dont_inherit=True), names)
    with in_a_thread(names["app"]) as url:
        code = code.replace("http://127.0.0.1:8000", url).replace("9000", port)
        command = ["node", str(with_installed(tmp_path, code))] if language == "js" else [sys.executable, "-c", code]
        environment = {**os.environ, "KEY": KEY}
        done = subprocess.run(command, capture_output=True, timeout=50, env=environment, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed.splitlines()
