"""The clients of docs/guides/clients.md talk to a server, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import Agent, serve
from dragoman.testing import ScriptedModel
from support.javascript import INSTALLED, with_installed, with_openai
from support.serving import in_a_thread

pytestmark = pytest.mark.service
TEXT = (Path(__file__).parents[2] / "docs" / "guides" / "clients.md").read_text()
BLOCKS = re.findall(r"^```(sh|py|js)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
KEY = "a-key-that-nobody-guesses"


@pytest.mark.parametrize(("language", "code"), BLOCKS, ids=[f"{each[0]}{n}" for n, each in enumerate(BLOCKS)])
def test_each_client_gets_an_answer(language: str, code: str, tmp_path: Path) -> None:
    app = serve.app({"local": Agent(ScriptedModel(["Rhine"] * 4))}, auth=KEY)
    with in_a_thread(app) as url:
        command = {"sh": ["sh", "-c", "{}"], "py": [sys.executable, "-c", "{}"], "js": ["node", "{}"]}[language]
        code = code.replace("http://127.0.0.1:8000", url)
        if language == "js":
            code = str(_program(tmp_path, code))
        environment = {**os.environ, "KEY": KEY}
        done = subprocess.run(
            [part.replace("{}", code) for part in command], capture_output=True, timeout=50, env=environment, text=True
        )
    assert done.returncode == 0, done.stderr
    assert "Rhine" in done.stdout.replace('"', "").replace("\\n", "")


def _program(folder: Path, code: str) -> Path:
    """A program with the packages that it imports, openai's being one of ours."""
    if '"ai"' not in code:
        return with_openai(folder, code)
    if not (INSTALLED / ".done").exists():
        pytest.skip("the AI SDK's packages are not installed: make service")
    return with_installed(folder, code)


def test_there_are_clients_in_each_language() -> None:
    assert {language for language, _ in BLOCKS} == {"sh", "py", "js"}


def test_each_api_of_the_table_has_a_client() -> None:
    shown = "\n".join(code for _, code in BLOCKS)
    paths = ["/v1", "/v1/messages", "/v1beta", "/api/chat", "/mistral", "/cohere", "/anthropic"]
    assert [path for path in paths if f"http://127.0.0.1:8000{path}" not in shown] == []
