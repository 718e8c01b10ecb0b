"""The card of an agent: for everybody, and for who has a key."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import format_datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from dragoman import json_bytes
from dragoman.errors import AuthenticationError, ModelNotFoundError
from dragoman.serve.apis.a2a_frames import Frame, TaskError
from dragoman.serve.calls.call import Call
from dragoman.serve.http.callers import STRANGER
from dragoman.serve.protocols.agent_card import abilities_of, card_of, without_tools
from dragoman.serve.protocols.runs import Served, served_agent
from dragoman.wires import a2a

__all__ = ["show_card", "show_extended_card"]

_SIGNED = 64
"""Cards of which the signature is kept."""


async def show_card(call: Call) -> None:
    """Shows what an agent can do, and where.

    Raises:
        AuthenticationError: a key is needed.
    """
    is_stranger = call.caller is STRANGER
    try:
        served = served_agent(call, call.parameters.get("model", ""))
        if is_stranger and not card_of(call, served).public:
            raise AuthenticationError("a key is needed, and none came with the request")
    except ModelNotFoundError as error:
        if is_stranger:
            raise AuthenticationError("a key is needed, and none came with the request") from error
        raise
    card = _make_card(call, served, is_whole=not is_stranger)
    is_current = call.headers.get("a2a-version", "").startswith("1") or call.query.get(
        "version", ""
    ).startswith("1")
    is_current |= not served.policy.older
    body = json_bytes.encode(card if is_current else {**card, **a2a.old_card(card)})
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    since = format_datetime(call.service.started_at, usegmt=True)
    cache_scope = "private" if call.service.has_keys and not is_stranger else "public"
    headers = {"cache-control": f"{cache_scope}, max-age=300", "etag": tag, "last-modified": since}
    headers["vary"] = "a2a-version, authorization, x-api-key"
    if call.headers.get("if-none-match") == tag:
        await call.connection.respond(304, headers, b"")
        return
    await call.connection.respond(200, {"content-type": "application/json", **headers}, body)


async def show_extended_card(call: Call, params: dict[str, Any], frame: Frame) -> None:  # noqa: ARG001 a method's
    """Shows all that is told of an agent to clients with a key.

    Raises:
        TaskError: there are no keys.
    """
    if not call.service.has_keys:
        message = "the agent has one card, and no other for those who sign in"
        raise TaskError(message, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
    card = _make_card(call, served_agent(call, call.parameters.get("model", "")), is_whole=True)
    await frame.respond(call, {**card, **a2a.old_card(card)} if frame.old else card)


def _make_card(call: Call, served: Served, *, is_whole: bool) -> dict[str, Any]:
    service, agent_card, abilities = call.service, card_of(call, served), abilities_of(call, served)
    root = f"{_origin(call)}/a2a" + (
        f"/agents/{call.parameters['model']}" if "model" in call.parameters else ""
    )
    urls = {
        "jsonrpc": root,
        "rest": root,
        **({"grpc": service.grpc_address} if service.grpc_address else {}),
    }
    security = (
        {"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}} if service.has_keys else {}
    )
    card: dict[str, Any] = a2a.dump_card(
        agent_card,
        abilities if is_whole else without_tools(abilities),
        urls,
        extended=service.has_keys,
        security=security,
    )
    return (
        card
        if agent_card.signer is None
        else {**card, "signatures": _signatures(agent_card.signer, json_bytes.encode(card))}
    )


@lru_cache(_SIGNED)
def _signatures(signer: Callable[[Any], Any], card: bytes) -> list[Any]:
    """The signatures of a card, which a2a-sdk makes."""
    from a2a.types import AgentCard as Signable
    from google.protobuf import json_format

    signed = signer(json_format.Parse(card, Signable()))
    return json_format.MessageToDict(signed).get("signatures", [])


def _origin(call: Call) -> str:
    scheme = "https" if call.headers.get("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{call.headers.get('host', '127.0.0.1')}"
