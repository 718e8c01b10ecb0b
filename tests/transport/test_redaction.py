"""Keys and passwords stay out of errors, logs, stored messages and recordings, however a provider
repeats them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dragoman import Agent, providers
from dragoman.errors import AuthenticationError, DragomanError, ProviderError, SettingsError
from dragoman.model.access import Access
from dragoman.model.embeddings_model import EmbeddingsModel
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport, Exchange, Player, Recorder
from dragoman.transport.redaction import hide_secrets, public_url

pytestmark = pytest.mark.anyio

KEY = 'sk-proj/0123"é-abcdef'
ASCII = "sk-proj-0123456789abcdef"
ANSWER = Exchange(
    body=b'{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}'
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def agent(*answers: Exchange, **how: Any) -> tuple[Agent[None], Player]:
    player = Player(answers)
    return Agent("openai", transport=player, **{"api_key": ASCII, **how}), player


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"message":"bad key %b","code":"invalid_api_key"}}',
        b'data: {"error":{"message":"bad key %b"}}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\ndata: {"error":{"message":"bad key %b"}}\n\n',
    ],
)
async def test_a_key_that_an_error_inside_a_success_repeats_is_not_shown(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the message, the body, the log."""
    caplog.set_level(logging.DEBUG)
    ours, _ = agent(Exchange(body=body % ASCII.encode()))
    with pytest.raises(DragomanError, match=r"bad key \*\*\*") as caught:
        await ours.send("hi")
    assert ASCII not in repr(caught.value) + str(caught.value.body) + caplog.text
    assert "failed" in caplog.text


async def test_a_key_in_an_answer_to_an_embeddings_request_is_not_shown() -> None:
    body = b'{"data":[],"error":"bad key %b"}' % ASCII.encode()
    model = EmbeddingsModel(
        providers.get("openai"), transport=Player([Exchange(body=body)]), api_key=ASCII
    )
    with pytest.raises(DragomanError) as caught:
        await model.embed_query("hi")
    assert ASCII not in repr(caught.value) + str(caught.value.body)


@pytest.mark.parametrize(
    "escaped",
    [
        KEY,
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1].replace("/", r"\/"),
        json.dumps(json.dumps(KEY))[1:-1],
        "".join(f"\\u{ord(one):04X}" for one in KEY),
        quote(KEY, safe=""),
        quote(KEY).lower(),
    ],
)
def test_a_key_is_found_however_it_is_escaped(escaped: str) -> None:
    told = hide_secrets(f'{{"message": "bad key {escaped}!"}}'.encode(), [KEY])
    assert told in (b'{"message": "bad key ***!"}', b'{"message": "bad key \\"***\\"!"}')


async def test_an_escaped_key_in_a_refusal_is_not_shown() -> None:
    escaped = "".join(f"\\u{ord(one):04x}" for one in ASCII)
    ours, _ = agent(
        Exchange(status=401, body=f'{{"error":{{"message":"bad key {escaped}"}}}}'.encode())
    )
    with pytest.raises(AuthenticationError, match=r"bad key \*\*\*") as caught:
        await ours.send("hi")
    assert escaped not in str(caught.value.body)


async def test_password_and_keys_of_a_base_url_are_not_stored() -> None:
    ours, player = agent(
        ANSWER, base_url=f"https://me:pass-word-1@h.test/v1/?api-key={ASCII}&region=eu"
    )
    result = await ours.send("hi")
    origin = result.messages[-1].origin
    assert origin is not None
    assert origin.endpoint == "https://h.test/v1?region=eu"
    assert (
        player.requests[0].path
        == f"https://me:pass-word-1@h.test/v1/chat/completions?api-key={ASCII}&region=eu"
    )
    assert "pass-word-1" not in b"".join(message.to_json() for message in result.messages).decode()


async def test_password_and_keys_of_a_base_url_are_not_shown_by_a_refusal() -> None:
    body = b'{"error":{"message":"bad pass-word-1 or %b"}}' % ASCII.encode()
    ours, _ = agent(
        Exchange(status=401, body=body),
        api_key="other-key-1",
        base_url=f"https://me:pass-word-1@h.test/v1?key={ASCII}",
    )
    with pytest.raises(AuthenticationError, match=r"bad \*\*\* or \*\*\*"):
        await ours.send("hi")


@pytest.mark.parametrize(
    "url",
    [
        "http://[bad",
        "http://me:pass-word-1@[bad",
        "ftp://me:pass-word-1@h.test",
        "ftp://h.test/?key=pass-word-1",
        "http://",
        "http:///v1",
        "http://h.test:99999/v1",
        "https://h.test:port",
        "h.test/v1",
    ],
)
@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "ollama"])
async def test_a_base_url_that_is_none_is_a_setting(provider: str, url: str) -> None:
    ours = Agent(provider, base_url=url, api_key=ASCII, transport=Player([ANSWER]))
    with pytest.raises(
        SettingsError, match="must begin with http:// or https:// and a host"
    ) as caught:
        await ours.send("hi")
    assert "pass-word" not in str(caught.value)


async def test_a_url_that_cannot_be_sent_to_shows_no_password() -> None:
    transport = AiohttpTransport()
    for url in ("http://me:pass-word-1@[bad/v1?key=pass-word-1", "ftp://me:pass-word-1@h.test"):
        with pytest.raises(SettingsError) as caught:
            await transport.send(HttpRequest(url))
        assert "pass-word" not in str(caught.value)
    await transport.close()


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (
            307,
            {"location": "https://me:pass-word-1@other.test/v1"},
            "HTTP 307 and leads to https://other.test/v1:",
        ),
        (301, {"location": "/v2/chat"}, "HTTP 301 and leads to /v2/chat:"),
        (302, {}, "HTTP 302 and no answer"),
        (204, {}, "HTTP 204 and no answer"),
        (101, {"upgrade": "websocket"}, "HTTP 101 and no answer"),
    ],
)
async def test_what_is_no_answer_names_status_and_location(
    status: int, headers: dict[str, str], words: str
) -> None:
    """It is no cut stream that would be worth another try."""
    ours, _ = agent(Exchange(status=status, headers=headers))
    with pytest.raises(ProviderError, match="check the base URL") as caught:
        await ours.send("hi")
    assert words in caught.value.message
    assert caught.value.status == status
    assert type(caught.value) is ProviderError
    way = Access(
        providers.get("openai"), Player([Exchange(status=status, headers=headers)]), api_key=ASCII
    )
    with pytest.raises(ProviderError, match=f"HTTP {status}"):
        await way.fetch(HttpRequest("https://h.test/v1/models", method="GET"))


async def test_a_recording_holds_no_password_no_key_of_a_body_and_none_of_a_path(
    tmp_path: Path,
) -> None:
    """And still plays."""
    secret = "pass-word-0123"
    body = {
        "model": "m",
        "api_key": secret,
        "messages": [{"role": "user", "content": "the key and its signature"}],
        "tools": [
            {
                "type": "mcp",
                "authorization": secret,
                "headers": {"X-Password": secret},
                "signature": "kept",
            }
        ],
        "prompt_cache_key": "kept too",
    }
    headers = {"X-Password": secret, "x-passphrase": secret, "private": secret, "accept": "kept"}
    url = f"https://h.test/bot123:{secret}/token/{secret}/v1/chat"
    answer = Exchange(body=f'{{"echo": "{secret}"}}'.encode(), url=None)
    recorder = Recorder(Player([answer]), tmp_path)
    response = await recorder.send(HttpRequest(url, headers, body))
    while await response.read():
        pass
    text = (tmp_path / "0001.json").read_text()
    assert secret not in text
    record = json.loads(text)["request"]
    assert record["headers"] == {"accept": "kept"}
    assert record["url"] == "https://h.test/***/token/***/v1/chat"
    assert (record["body"]["api_key"], record["body"]["prompt_cache_key"]) == ("***", "kept too")
    assert record["body"]["tools"] == [
        {
            "type": "mcp",
            "authorization": "***",
            "headers": {"X-Password": "***"},
            "signature": "kept",
        }
    ]
    played = await Player.load(tmp_path).send(HttpRequest(url, headers, body))
    assert await played.read() == b'{"echo": "***"}'


def test_no_repr_of_a_request_shows_a_password() -> None:
    request = HttpRequest("https://me:pass-word-1@h.test:1/a@b/c?key=pass-word-1")
    assert repr(request) == "HttpRequest(POST https://h.test:1/a@b/c)"


@pytest.mark.parametrize(
    "url",
    [
        "https://h.test/v1beta/models/gemini-2.5-flash:generateContent?alt=sse",
        "https://h.test/v1/projects/p-1/locations/eu/endpoints/openapi",
        "https://h.test/v1/messages/batches/msgbatch_013Zva2CMHLNnXjNJJKqJ2EF",
        "https://h.test/v1/responses/resp_68af4030592c81938ec0a5fbab4a3e9f?stream=true",
        "/relative?x=",
        "",
    ],
)
def test_what_is_no_secret_stays_in_a_url(url: str) -> None:
    assert public_url(url) == url
