"""LangChain's and pydantic-ai's models as clients of the server, each from an environment of its
own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.service, pytest.mark.timeout(180)]

CACHE = Path(__file__).parents[3] / ".cache"
KEY = "one-secret-key"
KINDS = {
    "langchain": ("openai", "responses", "anthropic", "google", "ollama", "mistral", "cohere"),
    "pydantic_ai": ("openai", "responses", "anthropic", "google", "mistral", "cohere"),
}


def checked(library: str, url: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What a library's models make of the server, by the provider whose they are and by the
    check."""
    python = CACHE / library / "bin" / "python"
    if not (CACHE / library / ".done").exists():
        pytest.skip(f"{library} is not installed: make service")
    script = Path(__file__).with_name(f"{library}_client.py")
    done = subprocess.run(
        [python, script, url, KEY, *KINDS[library]], capture_output=True, text=True, timeout=170
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(found) == 6 * len(KINDS[library]), done.stderr
    return {(each.pop("kind"), each.pop("check")): each for each in found}


@pytest.mark.parametrize(
    "behind", ["agent anthropic", "gateway google"], scope="session", indirect=True
)
@pytest.mark.parametrize("library", KINDS)
def test_a_librarys_models_find_nothing_wrong(url: str, library: str) -> None:
    found = checked(library, url)
    for kind in KINDS[library]:
        assert found[kind, "whole"] == {"text": "Hello.", "usage": True}, kind
        assert found[kind, "stream"] == {"text": "Hello."}, kind
        one, two = found[kind, "tools"], found[kind, "tools_streamed"]
        merges = (library, kind) != (
            "langchain",
            "cohere",
        )  # which joins the arguments of parallel calls wrongly
        for each in (one, two) if merges else (one,):
            places = [
                call[-1] if isinstance(call, list) else call for call in each.get("calls", each)
            ]
            assert sorted(places) == ["Oakland", "Rome"], kind  # and none of the agent's own
        assert one["text"].startswith("Hello "), kind
        assert "Sunny in Oakland" in one["text"], kind
        if kind != "cohere":  # which has no pictures there
            assert found[kind, "image"] == {"text": "Hello a picture."}, kind
        assert found[kind, "wrong_key"] == {"failed": True, "secret": False}, kind
