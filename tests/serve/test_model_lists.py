"""Lists of models as each API's clients read them: pages, and how long a prompt may be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import profiles, serve
from dragoman.model_profile import ModelProfile
from dragoman.request import HttpRequest
from dragoman.transport import Player
from support.gateway import AsgiTransport

pytestmark = pytest.mark.anyio
NAMES = ["a", "b", "c", "d", "e"]


async def ask(path: str, method: Any = "GET", body: Any = None) -> Any:
    gateway = serve.Gateway(
        dict.fromkeys(NAMES, "openai:gpt-of-the-list"),
        keys={"openai": "sk-1"},
        transport=Player({}),
    )
    client = AsgiTransport(serve.app(gateway=gateway))
    headers = {"anthropic-version": "2023-06-01"} if path.startswith("/v1/") else {}
    await client.send(HttpRequest(f"http://127.0.0.1{path}", headers, body, method))
    return client.statuses[0], msgspec.json.decode(client.bodies[0])


@pytest.mark.parametrize(
    ("query", "names", "more"),
    [
        ("", "abcde", False),
        ("?limit=2", "ab", True),
        ("?limit=5", "abcde", False),
        ("?limit=1000", "abcde", False),
        ("?limit=2&after_id=b", "cd", True),
        ("?limit=2&after_id=d", "e", False),
        ("?after_id=e", "", False),
        ("?limit=2&before_id=e", "cd", True),
        ("?limit=9&before_id=c", "ab", False),
        ("?limit=1&after_id=a&before_id=d", "b", True),
        ("?limit=2&after_id=a&before_id=d", "bc", False),
    ],
)
async def test_anthropics_list_has_pages(query: str, names: str, more: bool) -> None:
    status, page = await ask("/v1/models" + query)
    assert status == 200 and page["has_more"] is more
    assert [model["id"] for model in page["data"]] == list(names)
    assert page["last_id"] == (names[-1] if names else None)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=%D9%A3",
        "limit=" + "9" * 99,
        "after_id=nobody",
        "before_id=nobody",
    ],
)
async def test_a_page_that_there_is_not_is_refused(query: str) -> None:
    status, page = await ask(f"/v1/models?{query}")
    assert status == 400 and page["error"]["type"] == "invalid_request_error"


async def test_each_api_says_how_long_a_prompt_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles.REGISTRY, "_registered", {})
    monkeypatch.setattr(profiles.REGISTRY, "_ready", {})
    profiles.register("openai:gpt-of-the-list", ModelProfile(input=1234, output=56))
    _, page = await ask("/v1/models/a")
    assert (page["max_input_tokens"], page["max_tokens"]) == (1234, 56)
    _, page = await ask("/v1beta/models")
    assert {model["inputTokenLimit"] for model in page["models"]} == {1234}
    _, shown = await ask("/api/show", "POST", {"model": "a"})
    info = shown["model_info"]
    assert info[f"{info['general.architecture']}.context_length"] == 1234
    _, running = await ask("/api/ps")
    assert [model["name"] for model in running["models"]] == NAMES
    assert running["models"][0]["context_length"] == 1234


async def test_a_length_that_nobody_knows_is_left_out() -> None:
    _, shown = await ask("/api/show", "POST", {"model": "a"})
    assert shown["model_info"] == {"general.basename": "a"}
    _, page = await ask("/v1beta/models")
    assert "inputTokenLimit" not in page["models"][0]
