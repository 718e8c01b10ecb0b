"""Agents that speak a protocol, as models of a gateway: any client of a model asks them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import serve
from dragoman.errors import SettingsError
from support.apps import AppTransport
from support.asgi import exchange
from support.protocols import served_agent

pytestmark = pytest.mark.anyio
HOST = "there.example"
URLS = [f"a2a:http://{HOST}/a2a", f"ag-ui:http://{HOST}/ag-ui"]


async def asked(app: Any, *texts: str) -> str:
    turns = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": text}
        for at, text in enumerate(texts)
    ]
    answer = await exchange(
        app, "POST", "/v1/chat/completions", {"model": "clerk", "messages": turns}
    )
    assert answer.status == 200, answer.body
    return answer.json["choices"][0]["message"]["content"]


@pytest.mark.parametrize("url", URLS, ids=["a2a", "ag_ui"])
async def test_a_client_of_chat_asks_an_agent(url: str) -> None:
    async with served_agent(hosts=[HOST]) as there:
        gateway = serve.Gateway({"clerk": url}, transport=AppTransport({HOST: there}))
        app = serve.app(gateway=gateway)
        async with app.router.lifespan_context(app):
            assert await asked(app, "Please roll.") == "Let me.Seen 3."
            assert await asked(app, "Hello.") == "Seen 1."  # another conversation
            streamed = {
                "model": "clerk",
                "max_tokens": 9,
                "stream": True,
                "messages": [{"role": "user", "content": "Hi"}],
            }
            answer = await exchange(app, "POST", "/v1/messages", streamed)
            assert answer.body.count(b"text_delta") > 1
            again = await asked(app, "Hello.", "Seen 1.", "And now?")
            assert again == "Seen 3."


@pytest.mark.parametrize(
    "pattern",
    [
        "a2a:*",
        "ag-ui:https://*",
        "a2a:https://host*",
        "a2a:https://user@*/x",
        "a2a:https://host?x=/*",
    ],
)
def test_a_client_does_not_choose_the_host(pattern: str) -> None:
    with pytest.raises(SettingsError, match="any host"):
        serve.Gateway([pattern])


async def test_names_below_a_host_may_be_any() -> None:
    async with served_agent(hosts=[HOST]) as there:
        gateway = serve.Gateway(
            {"clerk-*": f"a2a:http://{HOST}/a2a/agents/*"}, transport=AppTransport({HOST: there})
        )
        app = serve.app(gateway=gateway)
        async with app.router.lifespan_context(app):
            body = {"model": "clerk-one", "messages": [{"role": "user", "content": "Hi"}]}
            answer = await exchange(app, "POST", "/v1/chat/completions", body)
            assert answer.json["choices"][0]["message"]["content"] == "Seen 1."
