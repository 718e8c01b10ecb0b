"""Amazon Bedrock: keys, regions, and signatures held against botocore's own; and a server on this
machine that takes only what AWS's SDK types allow."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from dragoman import Agent, Message, providers, tool
from dragoman.errors import AuthenticationError, ContextLengthError, RateLimitError, SettingsError
from dragoman.fold import unfold
from dragoman.message import FinishReason, TextPart, ToolCallPart, Usage
from dragoman.providers import aws_auth
from dragoman.providers.aws_auth import bedrock_auth, bedrock_url
from dragoman.request import HttpRequest
from dragoman.transport.aiohttp import AiohttpTransport
from dragoman.wires import bedrock_converse as wire
from support.rules import problems

pytestmark = pytest.mark.anyio

ARN = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-pro-v1:0"
MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": "/nowhere"}


class Bedrock(BaseHTTPRequestHandler):
    """Answers as Amazon Bedrock does, if the request is one that AWS's SDK could make."""

    replies: Any
    seen: list[Any]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        fields = json.loads(body)
        headers = {name.lower(): told for name, told in self.headers.items()}
        self.seen.append((self.path, headers, fields, body))
        model, _, action = self.path.removeprefix("/model/").rpartition("/")
        wrong = problems("bedrock_converse", fields)
        if wrong or unquote(model) not in (MODEL, ARN):
            return self.refuse(400, "ValidationException", "; ".join(wrong) or model)
        reply = self.replies(fields)
        if isinstance(reply, tuple):
            return self.refuse(*reply)
        events = unfold([reply])
        if action == "converse":
            return self.answer("application/json", json.dumps(wire.dump_response(events)).encode())
        encoder = wire.encoder()
        data = b"".join([encoder.feed(event) for event in events]) + encoder.close()
        return self.answer("application/vnd.amazon.eventstream", data)

    def refuse(self, status: int, name: str, words: str) -> None:
        self.answer("application/json", json.dumps({"message": words}).encode(), status, name)

    def answer(self, kind: str, data: bytes, status: int = 200, name: str = "") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("x-amzn-requestid", "r1")
        if name:
            self.send_header("x-amzn-errortype", name)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def serving(replies: Any) -> Iterator[tuple[str, list[Any]]]:
    seen: list[Any] = []
    handler = type("Scripted", (Bedrock,), {"replies": staticmethod(replies), "seen": seen})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@tool
def look(at: str) -> dict[str, str]:
    """Looks somewhere."""
    return {"seen": f"a cat at {at}"}


def reply(fields: Any) -> Message:
    if any("toolResult" in block for block in fields["messages"][-1]["content"]):
        return Message.model("A cat.").replace(
            finish_reason=FinishReason.stop, usage=Usage(input_tokens=9, output_tokens=3)
        )
    call = ToolCallPart("tooluse_1", "look", {"at": "home"})
    return Message.model("I look.", call).replace(finish_reason=FinishReason.tool_calls)


@pytest.mark.parametrize("model", [MODEL, ARN])
@pytest.mark.parametrize("environment", [{"AWS_BEARER_TOKEN_BEDROCK": "bedrock-key"}, KEYS])
async def test_an_agent_asks_a_strict_server(environment: dict[str, str], model: str) -> None:
    with serving(reply) as (url, seen):
        async with Agent(f"bedrock:{model}", base_url=url, environment=environment, environment_only=True, tools=[look]) as agent:  # fmt: skip
            result = await agent.send("Where is the cat?")
            assert str(result.output).endswith("A cat.")
    assert [path.rpartition("/")[2] for path, *_ in seen] == ["converse-stream"] * 2
    for path, headers, _, body in seen:
        if "AWS_ACCESS_KEY_ID" not in environment:
            assert headers["authorization"] == "Bearer bedrock-key"
        else:
            assert headers["authorization"] == signature(url + path, headers, body)


def signature(url: str, headers: dict[str, str], body: bytes) -> str:
    """The header by which botocore signs the bytes that arrived."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    request = AWSRequest("POST", url, {"content-type": headers["content-type"]}, body)
    signer = SigV4Auth(Credentials("AKIDEXAMPLE", "secret"), "bedrock", "us-east-1")
    request.context["timestamp"] = headers["x-amz-date"]
    request.headers["X-Amz-Date"] = headers["x-amz-date"]
    canonical = signer.canonical_request(request)
    to_sign = signer.string_to_sign(request, canonical)
    signed = signer.signed_headers(signer.headers_to_sign(request))
    return f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={signed}, Signature={signer.signature(to_sign, request)}"


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        ((429, "ThrottlingException", "Too many requests"), RateLimitError),
        ((400, "ValidationException", "Input is too long for requested model."), ContextLengthError),
        ((403, "UnrecognizedClientException", "The security token is invalid."), AuthenticationError),
    ],
)  # fmt: skip
async def test_a_refusal_is_the_error_that_its_name_says(
    refusal: Any, expected: type[Exception]
) -> None:
    with serving(lambda _: refusal) as (url, _):
        async with Agent(
            f"bedrock:{MODEL}", base_url=url, api_key="k", transport=AiohttpTransport()
        ) as agent:
            with pytest.raises(expected) as raised:
                await agent.send("Hi.")
    assert raised.value.request_id == "r1"  # type: ignore[attr-defined]


def test_the_region_decides_the_url(tmp_path: Path) -> None:
    def url(key: str | None = None, **environment: str) -> Any:
        auth = bedrock_auth({"HOME": str(tmp_path), **environment}, key)
        return auth and auth.base_url

    assert url("k") == bedrock_url("us-east-1") == "https://bedrock-runtime.us-east-1.amazonaws.com"
    assert url("k", AWS_REGION="eu-west-1", AWS_DEFAULT_REGION="x") == bedrock_url("eu-west-1")
    assert url("k", AWS_DEFAULT_REGION="eu-west-1") == bedrock_url("eu-west-1")
    assert (
        url("k", AWS_REGION="cn-north-1") == "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"
    )
    assert url(AWS_REGION="eu-west-1") == bedrock_url("eu-west-1")
    assert url() is None


def test_a_profile_has_a_region_and_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aws_auth._open_session.cache_clear()
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "config").write_text("[profile work]\nregion = ap-south-1\n")
    (folder / "credentials").write_text(
        "[work]\naws_access_key_id = AKIDWORK\naws_secret_access_key = s\naws_session_token = t\n"
    )
    for name, file in (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")):  # fmt: skip
        monkeypatch.setenv(name, str(folder / file))
    auth = bedrock_auth({"AWS_PROFILE": "work", "HOME": str(tmp_path)}, None)
    assert auth is not None and auth.sign is not None
    assert auth.base_url == bedrock_url("ap-south-1")
    headers = auth.sign(HttpRequest("https://h.test/model/m/converse", body=b"{}"), 0)
    assert "Credential=AKIDWORK/" in headers["authorization"]
    assert "/ap-south-1/bedrock/aws4_request" in headers["authorization"]
    assert headers["x-amz-security-token"] == "t"
    aws_auth._open_session.cache_clear()


def test_an_unknown_profile_is_a_clear_error(tmp_path: Path) -> None:
    aws_auth._open_session.cache_clear()
    auth = bedrock_auth({"AWS_PROFILE": "nobody", "HOME": str(tmp_path)}, None)
    assert auth is not None and auth.sign is not None
    with pytest.raises(AuthenticationError, match="nobody"):
        auth.sign(HttpRequest("https://h.test/model/m/converse", body=b"{}"), 0)


def test_without_botocore_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in ("botocore.auth", "botocore.session", "botocore.credentials"):
        monkeypatch.setitem(sys.modules, name, None)
    auth = bedrock_auth(KEYS, None)
    assert auth is not None and auth.sign is not None
    with pytest.raises(SettingsError, match=r"install it with `.*install 'botocore") as raised:
        auth.sign(HttpRequest("https://h.test/model/m/converse", body=b"{}"), 0)
    assert "\n" not in str(raised.value)
    # A key needs no library.
    keyed = bedrock_auth(KEYS, "bedrock-key")
    assert keyed is not None and keyed.sign is None


async def test_signing_does_not_hold_up_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def sign(*_: Any) -> dict[str, str]:
        threads.append(threading.get_ident())
        return {"authorization": "signed"}

    monkeypatch.setattr(aws_auth, "_sign", sign)
    with serving(reply) as (url, seen):
        async with Agent(
            f"bedrock:{MODEL}", base_url=url, environment=KEYS, environment_only=True
        ) as agent:
            await agent.send("Hi.")
    assert threads and threading.get_ident() not in threads
    assert seen[0][1]["authorization"] == "signed"


def test_a_key_that_is_missing_is_one_clear_line(tmp_path: Path) -> None:
    from dragoman.providers.keys import find_key

    with pytest.raises(
        AuthenticationError, match=r"AWS_BEARER_TOKEN_BEDROCK is required.* or AWS_ACCESS_KEY_ID"
    ):
        find_key(providers.get("bedrock"), environment={"HOME": str(tmp_path)}, system={})
    assert isinstance(Message.model("x").content[0], TextPart)
