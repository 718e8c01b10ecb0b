"""Real coding agents ask a gateway before each provider (issue R): a file is read, edited and copied.

`make agents` runs all tasks, and prints what came of each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.openai_chat_api import ChatApi
from agents.programs import PROGRAMS, find_missing, make_home
from agents.provider import served
from agents.table import APIS, play
from agents.tasks import TASKS, Script, Stage
from support.cli import SRC

pytestmark = pytest.mark.service

SEEN = {
    # what the client shows to nobody, or does itself
    'field;which="metadata"',
    'option;which="context_management"',
    'field;which="tools.defer_loading"',
    'field;which="include"',
    'field;which="prompt_cache_key"',
    'field;which="reasoning.summary"',
    'option;which="client_metadata"',
    'option;which="tools.web_search.external_web_access"',
    'field;which="generationConfig.thinkingConfig.includeThoughts"',
    'setting;which="parallel_tool_calls"',
    # sampling that a reasoning model has none of
    'setting;which="top_p"',
    'setting;which="top_k"',
    # said in another form
    "texts",
    "system-message",
    # Chat Completions has none
    'tool;which="web_search"',
}
"""What the gateway may name as lost: nothing that a user misses."""
LEAST_STABLE = 0.98


@pytest.fixture(params=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> str:
    name = request.param
    if missing := find_missing(PROGRAMS[name]):
        pytest.skip(missing)
    return name


@pytest.mark.parametrize("api", list(APIS))
def test_a_file_is_read_edited_and_copied(program: str, api: str, tmp_path: Path) -> None:
    cell = play(PROGRAMS[program], api, "edit", tmp_path)
    assert cell.verdict == "ok"
    assert set(cell.losses) <= SEEN
    assert cell.share >= LEAST_STABLE


@pytest.mark.parametrize("api", list(APIS))
def test_a_tool_of_a_server_that_codex_knows_is_called(api: str, tmp_path: Path) -> None:
    if missing := find_missing(PROGRAMS["codex"]):
        pytest.skip(missing)
    cell = play(PROGRAMS["codex"], api, "grouped", tmp_path)
    assert cell.verdict == "ok"
    assert set(cell.losses) <= SEEN
    assert cell.share >= LEAST_STABLE


def test_dragoman_run_starts_it(program: str, tmp_path: Path) -> None:
    chosen = PROGRAMS[program]
    script = Script(chosen, tmp_path / "work")
    environment = {**make_home(tmp_path), "PYTHONPATH": SRC, "OPENAI_API_KEY": "provider-key"}
    (tmp_path / "home").chmod(0o700)
    with served(ChatApi(), script.play, script.name_of) as (url, report):
        file = tmp_path / "gateway.toml"
        file.write_text(
            f'[models]\n"*" = "openai:gpt-5"\n[providers.openai]\nbase_url = "{url}/v1"\n'
        )

        def start(words: list[str]) -> subprocess.Popen[str]:
            run = [sys.executable, "-m", "dragoman", "run", "--gateway", str(file), "-m", "gpt-5"]
            return subprocess.Popen(
                [*run, "--", program, *words],
                env=environment,
                cwd=tmp_path / "work",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        if program == "gemini" and os.access("/tmp", os.W_OK) and tmp_path.is_relative_to("/tmp"):
            # It reads no settings below a folder in which others may write.
            environment["XDG_CACHE_HOME"] = str(Path.home() / ".cache")
        TASKS["edit"].play(Stage(chosen, tmp_path, report, start))
    assert report.refused == []
