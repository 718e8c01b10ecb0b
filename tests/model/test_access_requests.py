"""What `Access` sends, what it makes of refusals, and which credentials it finds when."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from dragoman.errors import (
    AuthenticationError,
    DragomanError,
    InvalidRequestError,
    ProviderConnectionError,
    ProviderError,
    RateLimitError,
    SettingsError,
)
from dragoman.model.access import Access, encoding_error
from dragoman.providers.auth import Auth, AuthResponse, Flow, Grant, load_grant, make_form
from dragoman.providers.provider import Provider
from dragoman.request import HttpRequest
from dragoman.transport import Exchange, Player
from dragoman.transport.base import read_all
from support.model import PROVIDER

pytestmark = pytest.mark.anyio

ASK = HttpRequest("http://h/v1/x", {"x-own": "1"}, {"a": 1})
OK = Exchange(headers={"a": "b"}, body=b"done", chunks=1)
SECRET = "sk-secret-1234567"


def flow(name: str, ends: float | None = None) -> Any:
    def asked(now: float) -> Flow:
        answer = yield HttpRequest(f"http://tokens/{name}", body={"now": now})
        return Grant({"authorization": f"{name} {answer.body.decode()}"}, ends)

    return asked


def way(*answers: Any, provider: Provider = PROVIDER, **how: Any) -> tuple[Access, Player]:
    player = Player(answers)
    return Access(provider, player, **{"system": {}, "clock": lambda: 1000.0, **how}), player


def keyed(auth: Any, **more: Any) -> Provider:
    return msgspec.structs.replace(PROVIDER, key_names=("KEY",), auth=auth, **more)


async def test_a_request_carries_its_headers_and_the_providers() -> None:
    one, player = way(OK, api_key="k", headers={"X-Team": "t"})
    response = await one.send(ASK)
    assert (response.status, await read_all(response)) == (200, b"done")
    assert player.requests == [
        ASK.__class__(
            ASK.path, {"x-own": "1", "authorization": "Bearer k", "x-team": "t"}, {"a": 1}
        )
    ]
    fetched, _ = way(OK, api_key="k")
    assert await fetched.fetch(ASK) == ({"a": "b"}, b"done")


async def test_credentials_are_found_once_and_anew_where_the_key_is_a_functions() -> None:
    seen: list[str | None] = []

    def auth(_: Mapping[str, str], key: str | None) -> Auth:
        seen.append(key)
        return Auth(base_url=f"http://{key}")

    keys = iter("abcdef")
    one, _ = way(provider=keyed(auth, base_url=None), api_key=lambda: next(keys))
    assert [await one.base_url("m") for _ in range(3)] == ["http://a", "http://b", "http://c"]
    fixed, _ = way(provider=keyed(auth, base_url=None), api_key="z")
    assert [await fixed.base_url("m") for _ in range(3)] == ["http://z"] * 3
    assert seen == ["a", "b", "c", "z"]
    none, _ = way(provider=keyed(lambda *_: None, base_url="http://record"), api_key="z")
    assert await none.base_url("m") == "http://record"


async def test_a_key_that_was_asked_for_the_url_is_of_its_own_access_alone() -> None:
    keys = iter("abcdef")
    first, player = way(OK, OK, provider=keyed(lambda *_: None), api_key=lambda: next(keys))
    other, others = way(OK, api_key=lambda: next(keys))
    route = await first.route("m")
    await other.send(ASK)
    await first.send(ASK, route)
    await first.send(ASK)
    assert [one.headers["authorization"] for one in others.requests] == ["Bearer b"]
    assert [one.headers["authorization"] for one in player.requests] == ["Bearer a", "Bearer c"]
    plain, _ = way(OK, api_key=lambda: next(keys))
    assert await plain.base_url("m") == PROVIDER.base_url
    assert next(keys) == "d"  # nobody asked for it


async def test_where_each_use_has_its_place() -> None:
    started: list[str] = []

    async def start(model: str) -> str:
        started.append(model)
        return "http://started/"

    one, _ = way(
        provider=msgspec.structs.replace(PROVIDER, base_url=start, embeddings_url="http://vectors/")
    )
    assert await one.base_url("m") == "http://started"
    assert await one.base_url("e", embeddings=True) == "http://vectors"
    assert started == ["m"]
    same, _ = way(provider=msgspec.structs.replace(PROVIDER, base_url=start))
    assert await same.base_url("e", embeddings=True) == "http://started"
    assert started == ["m", "e"]
    names = msgspec.structs.replace(PROVIDER, base_url_names={"URL": ""})
    mine, _ = way(
        provider=names, environment={"URL": "http://mine"}, system={"URL": "http://theirs"}
    )
    assert await mine.base_url("m") == "http://mine"
    theirs, _ = way(provider=names, system={"URL": "http://theirs"})
    assert await theirs.base_url("m") == "http://theirs"
    given, _ = way(provider=names, base_url="http://given", environment={"URL": "http://mine"})
    assert await given.base_url("m") == "http://given"


async def test_a_grant_is_used_until_shortly_before_it_ends_and_headers_of_the_callers_go_before() -> (
    None
):
    now = [1000.0]
    auth = Auth(flow("t", 2000.0))
    tokens = [Exchange(body=b"1"), OK, OK, Exchange(body=b"2"), OK]
    one, player = way(*tokens, provider=keyed(lambda *_: auth), api_key="k", clock=lambda: now[0])
    for now[0] in (1000.0, 1775.0, 1775.5):
        await one.send(ASK)
    assert [(sent.path, sent.headers.get("authorization")) for sent in player.requests] == [
        ("http://tokens/t", None),
        ("http://h/v1/x", "t 1"),
        ("http://h/v1/x", "t 1"),
        ("http://tokens/t", None),
        ("http://h/v1/x", "t 2"),
    ]
    assert player.requests[0].body == {"now": 1000.0}
    own, theirs = way(
        Exchange(body=b"1"), OK, provider=keyed(lambda *_: auth), headers={"authorization": "mine"}
    )
    await own.send(ASK)
    assert theirs.requests[1].headers["authorization"] == "mine"


async def test_a_refused_grant_is_asked_for_again_and_both_answers_are_closed() -> None:
    auth = Auth(flow("t"))
    refused = Exchange(status=401, body=b'{"error":{"message":"old"}}')
    one, player = way(
        Exchange(body=b"1"), refused, Exchange(body=b"2"), OK, provider=keyed(lambda *_: auth)
    )
    assert (await one.send(ASK)).status == 200
    assert [sent.headers.get("authorization") for sent in player.requests] == [
        None,
        "t 1",
        None,
        "t 2",
    ]
    again, player = way(
        Exchange(body=b"1"), refused, Exchange(body=b"1"), OK, provider=keyed(lambda *_: auth)
    )
    with pytest.raises(AuthenticationError, match="old"):
        await again.send(ASK)
    assert len(player.requests) == 3  # the same again would be refused again
    broken, player = way(
        Exchange(body=b"1"),
        refused,
        ProviderConnectionError("gone"),
        provider=keyed(lambda *_: auth),
    )
    with pytest.raises(ProviderConnectionError, match="gone") as caught:
        await broken.send(ASK)
    assert caught.value.provider == "scripted"


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (204, {}, "answered with HTTP 204 and no answer: check the base URL"),
        (205, {}, "answered with HTTP 205 and no answer: check the base URL"),
        (199, {}, "answered with HTTP 199 and no answer: check the base URL"),
        (300, {"location": "http://e/?api_key=k&a=1"}, "answered with HTTP 300 and leads to http://e/?a=1: check the base URL"),
        (399, {"location": "http://e/" + "x" * 500}, f"and leads to http://e/{'x' * 191}: check the base URL"),
    ],
)  # fmt: skip
async def test_what_is_no_answer_is_an_error(
    status: int, headers: dict[str, str], words: str
) -> None:
    one, _ = way(Exchange(status=status, headers=headers, body=b"so"), api_key="k")
    with pytest.raises(ProviderError) as caught:
        await one.send(ASK)
    error = caught.value
    assert type(error) is ProviderError
    assert error.message.startswith("Scripted provider answered with")
    assert error.message.endswith(words)
    assert (error.provider, error.status, error.body) == ("scripted", status, b"so")
    for fine in (200, 201, 206, 299):
        assert (await way(Exchange(status=fine), api_key="k")[0].send(ASK)).status == fine


async def test_a_refusal_is_read_and_shows_no_key() -> None:
    body = f'{{"error":{{"message":"bad {SECRET} and {SECRET[::-1]}"}}}}'.encode()
    refused = Exchange(status=400, headers={"x-request-id": "r"}, body=body)
    one, _ = way(refused, api_key=SECRET)
    sent = HttpRequest(ASK.path, {}, {"api_key": SECRET[::-1]})
    with pytest.raises(InvalidRequestError) as caught:
        await one.send(sent)
    error = caught.value
    assert error.message == "bad *** and ***. Change the request."
    assert error.body == b'{"error":{"message":"bad *** and ***"}}'
    assert (error.provider, error.status, error.request_id) == ("scripted", 400, "r")
    cut, _ = way(Exchange(status=400, body=body, cut_after=20, chunks=5), api_key="k")
    with pytest.raises(InvalidRequestError) as caught:
        await cut.send(ASK)
    assert caught.value.body == body[:20]
    assert one.redact(DragomanError(f"x {SECRET}", body=SECRET.encode())).message == "x ***"
    assert one.redact(DragomanError("x", body=SECRET.encode())).body == b"***"


async def test_keys_of_the_latest_requests_are_remembered() -> None:
    keys = [f"secret-key-{n:03}" for n in range(70)]
    left = iter(keys)
    one, _ = way(*[OK] * 70, api_key=lambda: next(left))
    for _ in keys:
        await one.send(ASK)
    told = one.redact(DragomanError(" ".join(keys))).message.split()
    assert told == [*keys[:6], *["***"] * 64]


async def test_errors_of_a_fetch_name_the_provider() -> None:
    one, _ = way(Exchange(body=b"abc", cut_after=2))
    with pytest.raises(DragomanError, match="cut") as caught:
        await one.fetch(ASK)
    assert caught.value.provider == "scripted"


class Awaited:
    """A key that is awaited for."""

    def __await__(self) -> Any:
        yield from ()
        return "later"


async def test_a_key_may_be_awaited_for() -> None:
    one, player = way(OK, api_key=lambda: Awaited())  # type: ignore[arg-type, return-value] - an awaitable that is no coroutine
    await one.send(ASK)
    assert player.requests[0].headers["authorization"] == "Bearer later"


async def test_a_key_of_the_environment_is_used() -> None:
    for how in ({"environment": {"KEY": "e"}}, {"system": {"KEY": "e"}}):
        one, player = way(OK, provider=keyed(None), **how)
        await one.send(ASK)
        assert player.requests[0].headers["authorization"] == "Bearer e"


def test_half_a_character_is_shown_where_it_stands() -> None:
    for text, shown in (
        ("a\ud800b", "a\\ud800b"),
        ("x" * 30 + "\ud800" + "y" * 30, "x" * 20 + "\\ud800" + "y" * 20),
    ):
        error = encoding_error(
            UnicodeEncodeError("utf-8", text, text.index("\ud800"), text.index("\ud800") + 1, "")
        )
        assert error.message == (
            f'a text of the request holds half a character and cannot be sent: "{shown}". '
            'Replace it: text.encode("utf-8", "replace").decode().'
        )


def test_a_form_is_a_secret() -> None:
    assert make_form("http://t", {"a": "b c", "d": "é"}) == HttpRequest(
        "http://t",
        {"content-type": "application/x-www-form-urlencoded"},
        b"a=b+c&d=%C3%A9",
        secret=True,
    )


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        (b'{"access_token":"t","expires_in":3600}', 4600.0),
        (b'{"access_token":"t","expires_in":"60"}', 1060.0),
        (b'{"access_token":"t","expires_in":"soon"}', None),
        (b'{"access_token":"t","expires_in":null}', None),
        (b'{"access_token":"t"}', None),
    ],
)
def test_a_token_is_granted_until_it_ends(body: bytes, ends: float | None) -> None:
    grant = load_grant(AuthResponse(200, body), 1000.0, who="me", headers={"x": "y"})
    assert grant == Grant({"authorization": "Bearer t", "x": "y"}, ends)
    assert repr(grant) == f"Grant(headers=…, expires_at={ends})"
    assert repr(AuthResponse(200, body)) == "Answer(status=200)"


@pytest.mark.parametrize(
    ("status", "body", "kind", "why"),
    [
        (400, b'{"error_description":"gone.\\nSee x","error":"y"}', AuthenticationError, "gone"),
        (400, b'{"error":"invalid_grant"}', AuthenticationError, "invalid_grant"),
        (401, b"\xff", AuthenticationError, "HTTP 401"),
        (200, b"[]", AuthenticationError, "HTTP 200"),
        (200, b'{"access_token":3}', AuthenticationError, "HTTP 200"),
        (400, b'{"access_token":"t"}', AuthenticationError, "HTTP 400"),
        (429, b"", RateLimitError, "HTTP 429"),
        (499, b"", AuthenticationError, "HTTP 499"),
        (500, b"", ProviderError, "HTTP 500"),
    ],
)
def test_a_token_that_is_refused_says_why(
    status: int, body: bytes, kind: type[DragomanError], why: str
) -> None:
    with pytest.raises(DragomanError) as caught:
        load_grant(AuthResponse(status, body), 0.0, who="me")
    error = caught.value
    assert type(error) is kind
    assert (
        error.message
        == f"no access token for me: {why}. Check that these credentials are still valid."
    )
    assert (error.status, error.body) == (status, body)


async def test_credentials_that_lead_nowhere_say_so() -> None:
    one, _ = way(
        provider=keyed(lambda *_: Auth(base_url=SettingsError("name a project"))), api_key="k"
    )
    with pytest.raises(SettingsError, match="name a project") as caught:
        await one.base_url("m")
    assert caught.value.provider == "scripted"


async def test_credentials_can_sign_each_request_over_its_url_headers_and_bytes() -> None:
    """As AWS Signature Version 4 does: what is signed is what is sent, and each attempt is signed
    anew."""
    signed: list[tuple[HttpRequest, float]] = []

    def sign(request: HttpRequest, now: float) -> Mapping[str, str]:
        signed.append((request, now))
        return {"x-signature": str(len(signed))}

    provider = keyed(lambda *_: Auth(sign=sign))
    one, player = way(
        Exchange(status=401, body=b"{}"), OK, provider=provider, headers={"x-team": "t"}
    )
    await one.fetch(ASK)
    headers = {"x-own": "1", "x-team": "t"}
    assert [(request.path, request.headers, request.body) for request, _ in signed] == [
        (ASK.path, headers, b'{"a":1}')
    ] * 2
    assert {now for _, now in signed} == {1000.0}
    assert [(request.headers, request.body) for request in player.requests] == [
        ({**headers, "x-signature": number}, b'{"a":1}') for number in ("1", "2")
    ]


def signature(secret: str, request: HttpRequest, now: float) -> str:
    """A signature as AWS Signature Version 4 makes it: over method, path, query, headers and body,
    and the day."""
    url = urlsplit(request.path)
    assert isinstance(request.body, bytes)
    headers = "\n".join(sorted(f"{name}:{value}" for name, value in request.headers.items()))
    canonical = "\n".join(
        [request.method, url.path, url.query, headers, sha256(request.body).hexdigest()]
    )
    return hmac.digest(f"{secret} {now // 86400}".encode(), canonical.encode(), "sha256").hex()


async def test_a_fetched_secret_signs_requests_until_it_ends_or_is_refused() -> None:
    def asked(now: float) -> Flow:
        answer = yield HttpRequest("http://metadata/credentials", method="GET", secret=True)
        secret, token = answer.body.decode().split()
        return Grant(
            {"x-security-token": token},
            now + 900,
            sign=lambda request, at: {"x-signature": signature(secret, request, at)},
        )

    provider = keyed(lambda *_: Auth(asked), base_url="http://h/model")
    times = iter([1000.0] * 6 + [2000.0] * 9)
    answers = [Exchange(body=b"secret-1 token-1"), OK, OK, Exchange(body=b"secret-2 token-2"), OK]
    refused = [Exchange(status=401, body=b"{}"), Exchange(body=b"secret-3 token-3"), OK]
    one, player = way(*answers, *refused, provider=provider, clock=lambda: next(times))
    ask = HttpRequest("http://h/model/m/converse?x=1&y=%2F", {"x-own": "1"}, {"a": 1})
    for _ in range(2):
        await one.fetch(ask)
    list(iter(lambda: next(times), 2000.0))
    for _ in range(2):
        await one.fetch(ask)
    sent = [request for request in player.requests if request.method == "POST"]
    assert len(player.requests) - len(sent) == 3, (
        "a grant is asked for once, anew at its end, and once more where it is refused"
    )
    for request, number, now in zip(
        sent, (1, 1, 2, 2, 3), (1000.0, 1000.0, 2000.0, 2000.0, 2000.0), strict=True
    ):
        headers = {"x-own": "1", "x-security-token": f"token-{number}"}
        unsigned = HttpRequest(ask.path, headers, b'{"a":1}')
        expected = signature(f"secret-{number}", unsigned, now)
        assert (request.headers, request.body) == ({**headers, "x-signature": expected}, b'{"a":1}')
    changed = msgspec.structs.replace(sent[0], path=ask.path.replace("x=1", "x=2"))
    assert signature("secret-1", changed, 1000.0) != sent[0].headers["x-signature"]
