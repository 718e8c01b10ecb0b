"""`dragoman serve MODULE:AGENT` asks the agent for its keys, wherever they come from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

pytestmark = [pytest.mark.mend("2.7"), pytest.mark.timeout(60)]

ROOT = Path(__file__).parents[2]
AGENTS = """
from dragoman import Agent, Capability, Provider
from dragoman.testing import ScriptedModel

ACME = Provider(name="acme", display_name="Acme", wire="openai_chat", base_url="http://127.0.0.1:1/v1",
                chat_model="big", key_names=("ACME_API_KEY",), capabilities=frozenset({Capability.chat}))
key = Agent("openai:gpt-4o", api_key="sk-mine")
function = Agent("openai:gpt-4o", api_key=lambda: "sk-mine")
header = Agent("openai:gpt-4o", headers={"Authorization": "Bearer sk-mine"})
environment = Agent("openai:gpt-4o", environment={"OPENAI_API_KEY": "sk-mine"})
fallback = Agent(["openai:gpt-4o", "ollama:llama3"])
record = Agent(ACME, api_key="sk-mine")
scripted = Agent(ScriptedModel(["Scripted words."]))
none = Agent("openai:gpt-4o")
record_without = Agent(ACME)
"""
USABLE = ["key", "function", "header", "environment", "fallback", "record", "scripted"]


@contextmanager
def serving(target: str, folder: Path, **environment: str) -> Generator[str]:
    """A server as a process of its own → its URL."""
    (folder / "keyed.py").write_text(AGENTS)
    system = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    command = [sys.executable, "-m", "dragoman", "serve", target, "--port", "0", "--store", "none"]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "examples")])
    with subprocess.Popen(
        command, cwd=folder, env={**system, "PYTHONPATH": path, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if "http://" in line:
                    yield "http://" + line.partition("http://")[2].split("/")[0].split()[0].strip(
                        "\"'`,;"
                    )
                    break
            else:
                assert process.stderr is not None
                pytest.fail(process.stderr.read())
        finally:
            process.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("name", USABLE)
def test_an_agent_with_its_key_in_code_is_served(name: str, tmp_path: Path) -> None:
    with serving(f"keyed:{name}", tmp_path) as url, urlopen(f"{url}/v1/models") as answer:
        assert answer.status == 200


@pytest.mark.slow
def test_the_readmes_own_provider_is_served(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dragoman import Agent\nfrom own_provider import ACME\nagent = Agent(ACME)\n"
    )
    with (
        serving("mine:agent", tmp_path, ACME_API_KEY="sk-mine") as url,
        urlopen(f"{url}/v1/models") as answer,
    ):
        assert answer.status == 200


@pytest.mark.slow
def test_a_scripted_agent_answers(tmp_path: Path) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi."}]}).encode()
    with serving("keyed:scripted", tmp_path) as url:
        request = Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})
        with urlopen(request) as answer:
            assert json.load(answer)["choices"][0]["message"]["content"] == "Scripted words."


def test_each_model_of_an_agent_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ACME_API_KEY", raising=False)
    space: dict[str, object] = {}
    exec(AGENTS, space)  # the same agents as above
    missing = {name: [error is not None for error in space[name].check_keys().values()] for name in [*USABLE, "none", "record_without"]}  # type: ignore[attr-defined] # fmt: skip
    assert missing == {
        **{name: [False] for name in USABLE},
        "fallback": [True, False],
        "none": [True],
        "record_without": [True],
    }
