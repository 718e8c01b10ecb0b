"""Requests by which clients of Ollama have a model loaded: `ollama run` and many others begin with
one. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.testing import ScriptedModel
from support.asgi import exchange

pytestmark = pytest.mark.anyio

LOADS: Mapping[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a prompt": ("/api/generate", {"prompt": ""}, {"response": "", "done_reason": "load"}),
    "no prompt": ("/api/generate", {"keep_alive": "5m"}, {"response": "", "done_reason": "load"}),
    "unloaded": ("/api/generate", {"keep_alive": 0}, {"response": "", "done_reason": "unload"}),
    "a chat": (
        "/api/chat",
        {"messages": [], "stream": False},
        {"message": {"role": "assistant", "content": ""}, "done_reason": "load"},
    ),
    "a chat unloaded": (
        "/ollama/api/chat",
        {"messages": [], "keep_alive": "0s"},
        {"message": {"role": "assistant", "content": ""}, "done_reason": "unload"},
    ),
}


def served() -> tuple[ScriptedModel, Any]:
    model = ScriptedModel("Hello.")
    return model, serve.app({"a": Agent(model)}, gateway=serve.Gateway({"m": model}))


@pytest.mark.parametrize("name", ["m", "a"])
@pytest.mark.parametrize("case", LOADS)
async def test_no_model_is_asked(case: str, name: str) -> None:
    path, body, said = LOADS[case]
    model, app = served()
    answer = await exchange(app, "POST", path, {"model": name, **body})
    assert answer.status == 200
    found = answer.json
    assert found.pop("created_at").endswith("Z")
    assert found == {"model": name, "done": True, **said}
    assert model.requests == []


async def test_a_model_that_is_not_there_is_not_loaded() -> None:
    _, app = served()
    assert (await exchange(app, "POST", "/api/generate", {"model": "other"})).status == 404
    assert (await exchange(app, "POST", "/api/generate", {})).status == 404


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/generate", {"prompt": "Hi."}, 200),
        ("/api/generate", {"prompt": "", "images": ["aGk="]}, 200),
        ("/api/chat", {"messages": [{"role": "user", "content": "Hi."}]}, 200),
        ("/api/chat", {}, 400),
        ("/api/chat", {"messages": {}}, 400),
    ],
)
async def test_others_are_asked(path: str, body: dict[str, Any], status: int) -> None:
    model, app = served()
    answer = await exchange(app, "POST", path, {"model": "m", "stream": False, **body})
    assert (answer.status, len(model.requests)) == (status, 1 if status == 200 else 0)
