"""The A2A provider: agents by their URL, such as `a2a:https://host/agent`, or by the URL of their
card.

The card says where and how the agent is asked. A URL without a card is asked itself, by JSON-RPC of
1.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from dragoman import json_bytes
from dragoman.capability import Capability
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.providers.base_url import join_url
from dragoman.providers.provider import Discovery, ModelEndpoint, Provider
from dragoman.request import HttpRequest
from dragoman.runtime import is_loopback
from dragoman.transport.redaction import public_url
from dragoman.wires.a2a.quirks import EXTENSION, Quirks
from dragoman.wires.a2a.serving import CARD_PATH

__all__ = ["PROVIDER", "discover"]

_OLD_CARD_PATH = "/.well-known/agent.json"
"""Path of the card in A2A 0.2."""
_BINDINGS = {"JSONRPC": "jsonrpc", "HTTP+JSON": "rest"}
_ORDER: tuple[tuple[Literal["jsonrpc", "rest"], Literal["1.0", "0.3"]], ...] = (
    ("jsonrpc", "1.0"),
    ("rest", "1.0"),
    ("jsonrpc", "0.3"),
)
"""Bindings and versions, the preferred first."""


def discover(url: str) -> Discovery:
    """Finds by its A2A card the endpoint and protocol of the agent at a URL. Its card is there or
    below it.

    Raises:
        SettingsError: the card leads elsewhere, or to nothing that is spoken here.
    """
    addresses = [join_url(url, CARD_PATH), join_url(url, _OLD_CARD_PATH)]
    # The URL is that of the card itself.
    if url.partition("?")[0].endswith(".json"):
        addresses = [url]
    for address in addresses:
        answer = yield HttpRequest(address, {"accept": "application/json"}, method="GET")
        if answer.status == 200 and (card := _load_card(answer.body)) is not None:
            return _find_endpoint(card, url)
    return ModelEndpoint(url, Quirks())


def _load_card(body: bytes) -> Json | None:
    """Returns the A2A card in a response body, or None if it is none."""
    try:
        card = if_object(json_bytes.decode(body))
    except ValueError:
        return None
    # Any website may answer with JSON; only a card has these fields.
    if "capabilities" not in card or not card.keys() & {"supportedInterfaces", "url"}:
        return None
    return card


def _find_endpoint(card: JsonMap, url: str) -> ModelEndpoint:
    """Returns the preferred endpoint that an A2A card offers."""
    capabilities = if_object(card.get("capabilities"))
    extensions = [
        if_object(extension).get("uri") for extension in if_list(capabilities.get("extensions"))
    ]
    urls = {
        (binding, version): address
        for address, binding, version in reversed(_list_interfaces(card))
    }
    for binding, version in _ORDER:
        if (address := urls.get((binding, version))) is not None:
            _check_host(address, url)
            extras, streams = EXTENSION in extensions, capabilities.get("streaming") is True
            return ModelEndpoint(
                address, Quirks(extras=extras, version=version, binding=binding, streams=streams)
            )
    raise SettingsError(
        f"the agent at {public_url(url)} is asked by JSON-RPC and by REST here, and its card names neither; what it names: "
        f"{', '.join(sorted(f'{binding} {version}' for binding, version in urls)) or 'nothing'}",
        provider="a2a",
    )


def _list_interfaces(card: JsonMap) -> Sequence[tuple[str, Any, Any]]:
    """Returns URL, binding and version of each interface, in the A2A card's order of preference."""
    interfaces = [
        (
            if_text(interface.get("url")),
            if_text(interface.get("protocolBinding")),
            if_text(interface.get("protocolVersion")) or "1.0",
        )
        for interface in map(if_object, if_list(card.get("supportedInterfaces")))
    ]
    if url := if_text(card.get("url")):
        interfaces.append((url, if_text(card.get("preferredTransport")) or "JSONRPC", "0.3"))
        interfaces += [
            (if_text(interface.get("url")), if_text(interface.get("transport")), "0.3")
            for interface in map(if_object, if_list(card.get("additionalInterfaces")))
        ]
    return [
        (url, _BINDINGS.get(binding, binding), ".".join(version.split(".")[:2]))
        for url, binding, version in interfaces
        if url
    ]


def _check_host(address: str, url: str) -> None:
    """Raises `SettingsError` if an A2A card leads to another host, which would get the key and the
    conversation.

    Raises:
        SettingsError: it does.
    """
    try:
        target, source = urlsplit(address), urlsplit(url)
        is_same_host = (target.scheme, _port(target)) == (source.scheme, _port(source)) and (
            target.hostname == source.hostname
            or (is_loopback(target.hostname or "") and is_loopback(source.hostname or ""))
        )
    except ValueError:
        is_same_host = False
    if not is_same_host:
        raise SettingsError(
            f"the card of the agent at {public_url(url)} leads to {public_url(address)}, which is another host. If you trust it, "
            f"name that: a2a:{public_url(address)}",
            provider="a2a",
        )


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


PROVIDER = Provider(
    name="a2a",
    display_name="A2A",
    wire="a2a",
    by_url=True,
    discovery=discover,
    key_names=("A2A_API_KEY",),
    key_required=False,
    models_path=None,
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.tools,
            Capability.parallel_tools,
            Capability.vision,
            Capability.audio,
            Capability.files,
            Capability.thinking,
        }
    ),
)
