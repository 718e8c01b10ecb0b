"""Tokens of a client's request, counted by the provider that would answer it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from dragoman import Agent, Message, serve
from dragoman.model import ChatModel
from dragoman.providers import get
from dragoman.request import HttpRequest, ModelRequest, Settings, ToolSpec
from dragoman.testing import ScriptedModel
from support.gateway import AsgiTransport

pytestmark = pytest.mark.anyio

CLAUDE = {
    "model": "m",
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "Name a river."}],
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    "thinking": {"type": "enabled", "budget_tokens": 2000},
}
"""What Claude Code asks before it shortens a conversation."""
ANSWERS = {
    "/v1/messages/count_tokens": {"input_tokens": 17},
    "/v1/responses/input_tokens": {"object": "response.input_tokens", "input_tokens": 18},
    "/v1beta/models/m:countTokens": {"totalTokens": 19, "promptTokensDetails": []},
}


class Counter:
    """A `Transport` to a provider that only counts."""

    def __init__(self, status: int = 200, body: bytes | None = None) -> None:
        self.status, self.body = status, body
        self.sent: list[HttpRequest] = []

    async def send(self, request: HttpRequest) -> Any:
        self.sent.append(request)
        body = self.body
        if body is None:
            body = msgspec.json.encode(ANSWERS[urlsplit(request.path).path])
        return _Whole(self.status, body)

    async def close(self) -> None:
        pass

    @property
    def asked(self) -> Any:
        [request] = self.sent
        body = request.body
        return msgspec.json.decode(body) if isinstance(body, bytes) else body


class _Whole:
    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.headers, self._body = status, {"content-type": "application/json"}, body

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    async def close(self) -> None:
        pass


async def count(model: str, counter: Counter, body: Any, path: str) -> tuple[Any, Any, int]:
    """The gateway's answer, its header of an estimate, and the status."""
    keys = {get(model).name: "sk-1"}
    gateway = serve.Gateway({"m": f"{model}:m"}, transport=counter, keys=keys)
    client = AsgiTransport(serve.app(gateway=gateway))
    await client.send(
        HttpRequest(f"http://127.0.0.1{path}", {"content-type": "application/json"}, body)
    )
    answer = msgspec.json.decode(client.bodies[0])
    return answer, client.headers[0].get("dragoman-estimate"), client.statuses[0]


async def test_a_client_of_the_providers_own_api_is_told_what_the_provider_counts() -> None:
    counter = Counter()
    answer, estimate, _ = await count("anthropic", counter, CLAUDE, "/v1/messages/count_tokens")
    assert (answer, estimate) == ({"input_tokens": 17}, None)
    assert counter.asked == CLAUDE


@pytest.mark.parametrize(
    ("provider", "tokens"), [("openai-responses", 18), ("google", 19)], ids=str
)
async def test_a_client_of_another_api_is_told_too(provider: str, tokens: int) -> None:
    counter = Counter()
    answer, estimate, _ = await count(provider, counter, CLAUDE, "/v1/messages/count_tokens")
    assert (answer, estimate) == ({"input_tokens": tokens}, None)
    asked = counter.asked
    asked = asked.get("generateContentRequest", asked)
    assert "look" in str(asked["tools"]) and "Name a river." in str(asked)
    assert not {"stream", "max_output_tokens", "store", "include"} & asked.keys()


async def test_the_client_of_gemini_gets_its_own_form() -> None:
    counter = Counter()
    body = {"contents": [{"role": "user", "parts": [{"text": "Name a river."}]}]}
    answer, _, _ = await count("anthropic", counter, body, "/v1beta/models/m:countTokens")
    assert answer["totalTokens"] == 17
    assert counter.asked == {
        "model": "m",
        "messages": [{"role": "user", "content": "Name a river."}],
    }


@pytest.mark.parametrize(
    "counter",
    [
        Counter(404, b"{}"),
        Counter(500, b"oops"),
        Counter(401, b'{"error": {"message": "sk-1 is wrong"}}'),
        Counter(200, b"{}"),
        Counter(200, b'{"input_tokens": "many"}'),
        Counter(200, b"no json"),
        Counter(200, b"[]"),
    ],
    ids=lambda counter: f"{counter.status} {counter.body.decode()[:12]}",
)
async def test_a_provider_that_does_not_count_leaves_an_estimate_that_says_so(
    counter: Counter,
) -> None:
    answer, estimate, status = await count(
        "anthropic", counter, CLAUDE, "/v1/messages/count_tokens"
    )
    assert status == 200 and estimate == "tokens"
    assert 5 < answer["input_tokens"] < 500


async def test_an_api_without_the_endpoint_is_asked_once() -> None:
    counter = Counter(404, b"{}")
    model = ChatModel(get("anthropic"), "m", transport=counter, api_key="sk-1")
    request = ModelRequest("", (Message.user("Hi."),))
    assert [await model.count_tokens(request) for _ in range(3)] == [None] * 3
    assert len(counter.sent) == 1


async def test_a_wire_without_counts_asks_nobody() -> None:
    counter = Counter()
    answer, estimate, _ = await count("mistral", counter, CLAUDE, "/v1/messages/count_tokens")
    assert estimate == "tokens" and answer["input_tokens"] > 5
    assert counter.sent == []


async def test_an_agents_own_words_are_not_counted() -> None:
    agent = Agent(ScriptedModel("Hello."), system="A long and secret system text. " * 100)
    client = AsgiTransport(serve.app(agent))
    await client.send(HttpRequest("http://127.0.0.1/v1/messages/count_tokens", {}, CLAUDE))
    assert msgspec.json.decode(client.bodies[0])["input_tokens"] < 200
    assert client.headers[0]["dragoman-estimate"] == "tokens"


async def test_a_model_counts_what_it_would_be_asked() -> None:
    counter = Counter()
    model = ChatModel(get("anthropic"), "m", transport=counter, api_key="sk-1")
    request = ModelRequest(
        "",
        (Message.system("Be brief."), Message.user("Hi.")),
        (ToolSpec("look", "Looks."),),
        Settings(temperature=0.5, max_tokens=10),
        stream=True,
    )
    assert await model.count_tokens(request) == 17
    assert counter.asked.keys() - {"tool_choice"} == {"model", "system", "messages", "tools"}, (
        counter.asked
    )
    assert counter.sent[0].path.endswith("/v1/messages/count_tokens")
    vertex = ChatModel(
        get("vertex"), "m", transport=(seen := Counter(200, b'{"totalTokens": 3}')), api_key="k"
    )
    assert await vertex.count_tokens(ModelRequest("", (Message.user("Hi."),))) == 3
    assert seen.asked == {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
    assert seen.sent[0].path.endswith("publishers/google/models/m:countTokens")
