"""Credentials that are more than a key: tokens from a server on this machine, kept, renewed, and
asked for once."""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs

import anyio
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from dragoman import Agent, providers
from dragoman.errors import (
    AuthenticationError,
    PermissionDeniedError,
    ProviderError,
    RateLimitError,
    SettingsError,
)
from dragoman.model.access import Access, ModelRoute
from dragoman.providers.auth import AuthResponse, Grant
from dragoman.providers.google_auth import vertex_url
from dragoman.providers.keys import find_key
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport
from dragoman.transport.base import read_all
from dragoman.transport.exchange import Exchange
from dragoman.transport.player import Player
from dragoman.transport.recorder import Recorder

pytestmark = pytest.mark.anyio

KEY = rsa.generate_private_key(65537, 2048)
NOTHING = {"HOME": "/nowhere", "APPDATA": "/nowhere"}


class Google:
    """Gives tokens `token-1`, `token-2`, … and answers those that are not in `refused`."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.seen: list[str] = []
        self.refused: set[str] = set()
        self.lifetime: Any = 3600
        self.error: tuple[int, Any] | None = None
        self.lock = Lock()

    def token(self, body: str, headers: dict[str, str]) -> tuple[int, Any]:
        with self.lock:
            self.asked.append(
                {name: values[0] for name, values in parse_qs(body).items()} | {"headers": headers}
            )
            if self.error:
                return self.error
            token = f"token-{len(self.asked)}"
        return 200, {"access_token": token, "expires_in": self.lifetime, "token_type": "Bearer"}

    def answer(self, headers: dict[str, str]) -> tuple[int, Any]:
        self.seen.append(headers.get("authorization", ""))
        if self.seen[-1].removeprefix("Bearer ") in self.refused:
            return 401, {
                "error": {
                    "code": 401,
                    "message": "Request had invalid credentials.",
                    "status": "UNAUTHENTICATED",
                }
            }
        said = {"parts": [{"text": "Hello."}], "role": "model"}
        return 200, {"candidates": [{"content": said, "finishReason": "STOP", "index": 0}]}


@pytest.fixture
def google() -> Iterator[Google]:
    google = Google()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, said = (
                google.token(body, headers) if "token" in self.path else google.answer(headers)
            )
            data = json.dumps(said).encode()
            if "stream" in self.path and status == 200:
                data = b"data: " + data + b"\r\n\r\n"
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    google.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield google
    server.shutdown()
    thread.join()
    server.server_close()


def service_account(folder: Path, google: Google, **changes: Any) -> dict[str, str]:
    """A key file → the environment that names it."""
    pem = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    told = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "k1",
        "private_key": pem,
        "client_email": "me@my-project.iam.gserviceaccount.com",
        "token_uri": f"{google.url}/token",
    }
    return credentials(folder, told | changes)


def credentials(folder: Path, told: Any) -> dict[str, str]:
    file = folder / "credentials.json"
    file.write_text(told if isinstance(told, str) else json.dumps(told))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(file), **NOTHING}


def access(environment: dict[str, str], provider: str = "vertex", **how: Any) -> Access:
    return Access(providers.get(provider), AiohttpTransport(), environment=environment, **how)


async def status(way: Access, google: Google, route: ModelRoute | None = None) -> int | None:
    """Sends a request → the status of its answer, also of one that refuses."""
    try:
        response = await way.send(HttpRequest(f"{google.url}/model", body={}), route)
    except AuthenticationError as error:
        if error.body and b"invalid credentials" in error.body:
            return error.status
        raise
    await response.close()
    return response.status


def claims(assertion: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head and claims of a signed statement, whose signature is checked with the public key."""
    text, _, signature = assertion.rpartition(".")
    KEY.public_key().verify(_bytes(signature), text.encode(), padding.PKCS1v15(), SHA256())
    head, body = (json.loads(_bytes(part)) for part in text.split("."))
    return head, body


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def test_a_service_accounts_key_signs_for_a_token(google: Google, tmp_path: Path) -> None:
    way = access(service_account(tmp_path, google), clock=lambda: 1_000_000.5)
    assert await status(way, google) == 200
    assert google.seen == ["Bearer token-1"]
    [asked] = google.asked
    assert asked["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    head, body = claims(asked["assertion"])
    assert head == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert body == {
        "iss": "me@my-project.iam.gserviceaccount.com",
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "aud": f"{google.url}/token",
        "iat": 1_000_000,
        "exp": 1_003_600,
    }
    with pytest.raises(InvalidSignature):
        claims(asked["assertion"].replace(".", ".e30", 1))


async def test_an_agent_speaks_to_vertex_with_a_service_account(
    google: Google, tmp_path: Path
) -> None:
    environment = service_account(tmp_path, google) | {"VERTEX_BASE_URL": google.url}
    async with Agent("vertex:gemini-3.5-flash", environment=environment) as agent:
        assert (await agent.send("Hello")).output == "Hello."
        assert (await agent.send("Hello", model="vertex:gemini-3.5-pro")).output == "Hello."
    assert google.seen == ["Bearer token-1"] * 2
    assert len(google.asked) == 1


@pytest.mark.parametrize("lifetime", [3600, "3600"])
async def test_a_token_is_renewed_before_it_ends(
    google: Google, tmp_path: Path, lifetime: Any
) -> None:
    time = [0.0]
    google.lifetime = lifetime
    way = access(service_account(tmp_path, google), clock=lambda: time[0])
    for time[0] in (0.0, 3000.0, 3400.0, 6700.0, 6900.0):
        await status(way, google)
    assert [seen[-1] for seen in google.seen] == ["1", "1", "2", "2", "3"]


async def test_a_token_of_which_no_end_is_told_is_kept(google: Google, tmp_path: Path) -> None:
    time = [0.0]
    google.lifetime = None
    way = access(service_account(tmp_path, google), clock=lambda: time[0])
    for time[0] in (0.0, 1e9):
        await status(way, google)
    assert len(google.asked) == 1


async def test_a_refused_token_is_renewed_once(google: Google, tmp_path: Path) -> None:
    google.refused = {"token-1"}
    way = access(service_account(tmp_path, google))
    assert await status(way, google) == 200
    assert google.seen == ["Bearer token-1", "Bearer token-2"]
    google.refused = {"token-2", "token-3", "token-4"}
    assert await status(way, google) == 401
    assert [seen[-1] for seen in google.seen] == ["1", "2", "2", "3"]


@pytest.mark.slow
async def test_many_requests_wait_for_one_token(google: Google, tmp_path: Path) -> None:
    way = access(service_account(tmp_path, google))
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(status, way, google)
    assert google.seen == ["Bearer token-1"] * 10
    assert len(google.asked) == 1
    google.refused = {"token-1"}
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(status, way, google)
    assert google.seen.count("Bearer token-2") == 10
    assert len(google.asked) == 2


async def test_who_waits_for_a_token_that_fails_does_not_ask_again(
    google: Google, tmp_path: Path
) -> None:
    google.error = (400, {"error": "invalid_grant"})
    way = access(service_account(tmp_path, google))
    failed = await asyncio.gather(*(status(way, google) for _ in range(8)), return_exceptions=True)
    assert {type(error) for error in failed} == {AuthenticationError}
    assert len({id(error) for error in failed}) == 8
    assert len(google.asked) == 1
    google.error = None
    assert await status(way, google) == 200


def test_no_repr_shows_a_key() -> None:
    secret = "sk-secret"
    sent = HttpRequest(
        f"http://x/v1?key={secret}", {"authorization": f"Bearer {secret}"}, secret.encode()
    )
    held = (
        sent,
        Grant({"authorization": secret}),
        AuthResponse(200, secret.encode()),
        Agent("openai", api_key=secret),
    )
    assert secret not in repr((held, access({}, api_key=secret)))
    assert repr(sent) == "HttpRequest(POST http://x/v1)"


async def test_a_key_that_a_refusal_repeats_is_not_shown() -> None:
    body = b'{"error":{"code":403,"message":"Consumer \'api_key:AIzaSecret123\' has been suspended.","status":"PERMISSION_DENIED"}}'
    way = Access(
        providers.get("google"), Player([Exchange(status=403, body=body)]), api_key="AIzaSecret123"
    )
    with pytest.raises(PermissionDeniedError, match=r"api_key:\*\*\*") as caught:
        await way.fetch(HttpRequest("http://x/v1", body={}))
    assert b"AIzaSecret" not in (caught.value.body or b"")


async def test_a_token_that_another_request_renewed_is_kept(google: Google, tmp_path: Path) -> None:
    """The second refusal of the old token comes when the new one is there already."""

    class Slow(AiohttpTransport):
        async def send(self, request: HttpRequest) -> Any:
            response = await super().send(request)
            if request.path.endswith("/late") and response.status == 401:
                refused.set()
                await renewed.wait()
            return response

    refused, renewed = anyio.Event(), anyio.Event()
    google.refused = {"token-1"}
    way = Access(providers.get("vertex"), Slow(), environment=service_account(tmp_path, google))
    late: list[int] = []

    async def second() -> None:
        response = await way.send(HttpRequest(f"{google.url}/late", body={}))
        late.append(response.status)
        await response.close()

    async with anyio.create_task_group() as group:
        group.start_soon(second)
        await refused.wait()
        assert await status(way, google) == 200
        renewed.set()
    assert late == [200]
    assert len(google.asked) == 2


async def test_who_waits_for_a_token_may_give_up(google: Google, tmp_path: Path) -> None:
    way = access(service_account(tmp_path, google))
    with google.lock:  # the server holds its answer back
        async with anyio.create_task_group() as group:
            group.start_soon(status, way, google)
            group.start_soon(status, way, google)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
    assert await status(way, google) == 200


def test_event_loops_share_a_token_and_no_lock(google: Google, tmp_path: Path) -> None:
    way = access(service_account(tmp_path, google))
    assert [asyncio.run(status(way, google)) for _ in range(3)] == [200] * 3
    assert len(google.asked) == 1


async def test_a_user_of_gcloud_is_known_by_the_file_of_its_login(
    google: Google, tmp_path: Path
) -> None:
    told = {
        "type": "authorized_user",
        "client_id": "c",
        "client_secret": "s",
        "refresh_token": "r",
        "quota_project_id": "pays",
        "token_uri": f"{google.url}/token",
    }
    (tmp_path / ".config" / "gcloud").mkdir(parents=True)
    (tmp_path / ".config" / "gcloud" / "application_default_credentials.json").write_text(
        json.dumps(told)
    )
    way = access({"HOME": str(tmp_path), "CLOUDSDK_CONFIG": str(tmp_path / ".config" / "gcloud")})
    assert await status(way, google) == 200
    [asked] = google.asked
    del asked["headers"]
    assert asked == {
        "grant_type": "refresh_token",
        "client_id": "c",
        "client_secret": "s",
        "refresh_token": "r",
    }
    assert (await way._load_credentials()).headers["x-goog-user-project"] == "pays"
    assert await way.base_url("m") == vertex_url("pays", "global")


async def test_a_machine_of_googles_asks_its_metadata_server(google: Google) -> None:
    host = google.url.removeprefix("http://")
    way = access({"GCE_METADATA_HOST": host, "GOOGLE_CLOUD_PROJECT": "p", **NOTHING})
    assert await status(way, google) == 200
    assert google.asked[0]["headers"]["metadata-flavor"] == "Google"
    assert google.seen == ["Bearer token-1"]


@pytest.mark.parametrize(
    ("location", "url"),
    [
        (None, "https://aiplatform.googleapis.com/v1/projects/my-project/locations/global"),
        (
            "europe-west4",
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4",
        ),
        ("eu", "https://aiplatform.eu.rep.googleapis.com/v1/projects/my-project/locations/eu"),
    ],
)
async def test_project_and_location_make_the_base_url(
    google: Google, tmp_path: Path, location: str | None, url: str
) -> None:
    environment = service_account(tmp_path, google) | (
        {"GOOGLE_CLOUD_LOCATION": location} if location else {}
    )
    assert await access(environment).base_url("m") == url
    other = environment | {"GOOGLE_CLOUD_PROJECT": "other"}
    assert await access(other).base_url("m") == url.replace("my-project", "other")
    assert (
        await access(other | {"VERTEX_BASE_URL": "http://proxy/v1"}).base_url("m")
        == "http://proxy/v1"
    )
    assert await access(other, base_url="http://here/v1").base_url("m") == "http://here/v1"


@pytest.mark.parametrize(
    ("key", "headers", "url"),
    [
        ("ya29.t", {}, vertex_url("p", "global")),
        (None, {"Authorization": "Bearer t"}, vertex_url("p", "global")),
        ("AQ.key", {}, "https://aiplatform.googleapis.com/v1"),
        (None, {"x-goog-api-key": "k"}, "https://aiplatform.googleapis.com/v1"),
    ],
)
async def test_a_token_leads_to_the_project_and_a_key_to_the_express_mode(
    google: Google, tmp_path: Path, key: str | None, headers: dict[str, str], url: str
) -> None:
    environment = service_account(tmp_path, google) | {"GOOGLE_CLOUD_PROJECT": "p"}
    way = access(environment, api_key=key, headers=headers)
    assert await way.base_url("m") == url
    assert await status(way, google) == 200
    assert google.asked == []  # what the caller gives goes before the file


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            (400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}),
            AuthenticationError,
            r"no access token for me@.*: Invalid JWT Signature\. Check that",
        ),
        ((401, {"error": "unauthorized_client"}), AuthenticationError, "unauthorized_client"),
        ((200, {"id_token": "no access"}), AuthenticationError, "HTTP 200"),
        ((500, "broken"), ProviderError, "HTTP 500"),
        ((429, {"error": "slow_down"}), RateLimitError, "slow_down"),
    ],
)
async def test_a_refusal_of_the_token_says_whose_and_why(
    google: Google, tmp_path: Path, answer: Any, kind: type[ProviderError], words: str
) -> None:
    google.error = answer
    with pytest.raises(kind, match=words) as caught:
        await status(access(service_account(tmp_path, google)), google)
    assert type(caught.value) is kind
    assert (caught.value.provider, caught.value.status) == ("vertex", answer[0])
    assert json.loads(caught.value.body or b"") == answer[1]
    assert google.seen == []


async def test_a_run_is_told_of_credentials_that_fail(google: Google, tmp_path: Path) -> None:
    google.error = (400, {"error": "invalid_grant"})
    environment = service_account(tmp_path, google) | {"VERTEX_BASE_URL": google.url}
    async with Agent("vertex", environment=environment) as agent:
        with pytest.raises(AuthenticationError, match="invalid_grant"):
            await agent.send("Hello")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("no json", "cannot be read"),
        ({"type": "external_account"}, 'type "external_account" in .* api_key= takes a function'),
        ({"type": "service_account", "private_key": "x"}, "no key in PEM"),
    ],
)
async def test_a_file_that_cannot_be_used_says_why(
    google: Google, tmp_path: Path, told: Any, words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        await status(access(credentials(tmp_path, told)), google)


async def test_a_key_of_another_kind_says_so(google: Google, tmp_path: Path) -> None:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(SettingsError, match="no RSA key"):
        await status(access(service_account(tmp_path, google, private_key=pem.decode())), google)


async def test_a_missing_file_or_project_is_named(google: Google, tmp_path: Path) -> None:
    gone = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "gone.json"), **NOTHING}
    with pytest.raises(SettingsError, match=r"gone\.json cannot be read"):
        await access(gone).base_url("m")
    homeless = service_account(tmp_path, google, project_id=None)
    with pytest.raises(SettingsError, match="set GOOGLE_CLOUD_PROJECT"):
        await access(homeless).base_url("m")
    assert await access(homeless, base_url="http://x/v1").base_url("m") == "http://x/v1"


async def test_without_the_library_that_signs_the_extra_is_named(
    google: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = service_account(tmp_path, google)
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SettingsError, match=r"cryptography.*\(vertex\)"):
        await status(access(environment), google)


def test_d72_without_anything_both_ways_are_named() -> None:
    vertex = providers.get("vertex")
    with pytest.raises(
        AuthenticationError,
        match=r"VERTEX_API_KEY is required.*variable or GOOGLE_APPLICATION_CREDENTIALS, or pass",
    ):
        find_key(vertex, environment=NOTHING, system={})


def test_credentials_do_without_a_key(google: Google, tmp_path: Path) -> None:
    assert (
        find_key(providers.get("vertex"), environment=service_account(tmp_path, google), system={})
        is None
    )


async def test_no_recording_holds_a_token(google: Google, tmp_path: Path) -> None:
    for environment in (
        service_account(tmp_path, google),
        {"GCE_METADATA_HOST": google.url.removeprefix("http://"), **NOTHING},
    ):
        way = Access(
            providers.get("vertex"),
            Recorder(AiohttpTransport(), tmp_path / "to"),
            environment=environment,
        )
        response = await way.send(HttpRequest(f"{google.url}/model", body={}))
        await read_all(response)
    files = list((tmp_path / "to").iterdir())
    assert len(files) == len(google.seen) == 2  # the requests to the model alone
    assert not any(
        "token-" in file.read_text() or "assertion" in file.read_text() for file in files
    )


# Azure


async def test_azure_takes_an_application_of_entra(google: Google) -> None:
    environment = {
        "AZURE_TENANT_ID": "t",
        "AZURE_CLIENT_ID": "c",
        "AZURE_CLIENT_SECRET": "s",
        "AZURE_AUTHORITY_HOST": f"{google.url}/",
    }
    for provider in ("azure", "azure-responses"):
        assert await status(access(environment, provider), google) == 200
    asked = [
        {name: value for name, value in one.items() if name != "headers"} for one in google.asked
    ]
    assert (
        asked
        == [
            {
                "grant_type": "client_credentials",
                "client_id": "c",
                "client_secret": "s",
                "scope": "https://cognitiveservices.azure.com/.default",
            }
        ]
        * 2
    )
    assert google.seen == ["Bearer token-1", "Bearer token-2"]
    way = access(environment | {"AZURE_OPENAI_API_KEY": "k"}, "azure")
    assert (await way._load_credentials()).headers == {"api-key": "k"}


# keys that change


def rotating(keys: list[str], *, promise: bool) -> Callable[[], Any]:
    def now() -> str:
        return keys.pop(0) if len(keys) > 1 else keys[0]

    async def soon() -> str:
        await anyio.lowlevel.checkpoint()
        return now()

    return soon if promise else now


@pytest.mark.parametrize("promise", [True, False])
async def test_a_key_may_be_a_function(google: Google, promise: bool) -> None:
    way = access({}, "openai", api_key=rotating(["a", "b", "c"], promise=promise))
    for _ in range(3):
        assert await status(way, google) == 200
    assert google.seen == ["Bearer a", "Bearer b", "Bearer c"]


async def test_a_refused_key_is_replaced_where_its_function_gives_another(google: Google) -> None:
    google.refused = {"old"}
    assert (
        await status(access({}, "openai", api_key=rotating(["old", "new"], promise=True)), google)
        == 200
    )
    assert google.seen == ["Bearer old", "Bearer new"]
    assert (
        await status(access({}, "openai", api_key=rotating(["old"], promise=True)), google) == 401
    )
    assert await status(access({}, "openai", api_key="old"), google) == 401
    assert len(google.seen) == 4  # the same again would be refused again


async def test_a_token_of_a_function_leads_to_the_project(google: Google) -> None:
    way = access(
        {"GOOGLE_CLOUD_PROJECT": "p", **NOTHING}, api_key=rotating(["ya29.a"], promise=True)
    )
    route = await way.route("m")
    assert route.base_url == vertex_url("p", "global")
    assert await status(way, google, route) == 200
    assert google.seen == ["Bearer ya29.a"]


async def test_a_keys_function_is_called_once_a_request(google: Google) -> None:
    """Also where the key says what the URL is; what was asked for and not used is not kept for
    later."""
    keys = ["ya29.a", "ya29.b", "ya29.c", "ya29.d", "ya29.e"]
    way = access({"GOOGLE_CLOUD_PROJECT": "p", **NOTHING}, api_key=rotating(keys, promise=True))
    for _ in range(3):
        route = await way.route("m")
        assert await status(way, google, route) == 200
    assert google.seen == ["Bearer ya29.a", "Bearer ya29.b", "Bearer ya29.c"]
    await way.base_url("m")  # and no request, since something else failed
    assert await status(way, google) == 200
    assert google.seen[-1] == "Bearer ya29.e"


async def test_an_agents_key_may_be_a_function(google: Google) -> None:
    async with Agent("google:gemini-3.5-flash", base_url=google.url, api_key=lambda: "k") as agent:
        assert (await agent.send("Hello")).output == "Hello."


async def test_what_a_keys_function_raises_is_raised(google: Google) -> None:
    def broken() -> str:
        raise RuntimeError("the vault is closed")

    async with Agent("google:gemini-3.5-flash", base_url=google.url, api_key=broken) as agent:
        with pytest.raises(RuntimeError, match="the vault is closed"):
            await agent.send("Hello")
    assert google.seen == []


def identity(**how: Any) -> tuple[str, str]:
    how = {"environment": {}, "system": {}, **how}
    return Access(providers.get(how.pop("provider", "openai")), Player([]), **how).identity


def test_what_requests_carry_has_a_digest_and_what_is_secret_of_it_another() -> None:
    """So that who caches answers can tell whose they are, and what they were asked with."""
    plain = identity(api_key="a")
    assert identity(api_key="a") == plain
    assert identity(system={"OPENAI_API_KEY": "a"}) == plain
    assert identity(api_key="b")[0] == plain[0]
    assert identity(api_key="b")[1] != plain[1]
    other = identity(api_key="a", headers={"X-Variant": "b"})
    assert other[0] != plain[0]
    assert other[1] == plain[1]
    assert identity(headers={"authorization": "Bearer a"})[1] == plain[1]
    assert identity(api_key=lambda: "a")[1] != identity(api_key=lambda: "a")[1]
    assert identity()[1] != plain[1]


def test_credentials_that_the_environment_names_tell_users_apart() -> None:
    one, other = ({"GOOGLE_APPLICATION_CREDENTIALS": path} for path in ("/a.json", "/b.json"))
    assert (
        identity(provider="vertex", system=one)[1] != identity(provider="vertex", system=other)[1]
    )
