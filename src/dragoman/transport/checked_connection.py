"""Connections to hosts named by others, made only to addresses that a policy has checked, one for
each request."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from ssl import SSLContext
from typing import Any

import aiohttp
import anyio
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from dragoman.errors import (
    DragomanError,
    InvalidRequestError,
    ProviderConnectionError,
    ProviderTimeoutError,
    SettingsError,
    StreamCutError,
)
from dragoman.logs import logger
from dragoman.transport import environment
from dragoman.transport.address_policy import AddressPolicy
from dragoman.transport.failure import FAILURES
from dragoman.transport.hosts import UrlTarget, host_error

__all__ = ["explain_failure", "open_response"]

_LOG = logger("transport.checked")
_HEADERS = {"user-agent": "dragoman", "accept-encoding": "identity"}
_HEADER_BYTES = 16384
_CLOSING_SECONDS = 1.0


@asynccontextmanager
async def open_response(
    policy: AddressPolicy,
    target: UrlTarget,
    method: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> AsyncGenerator[aiohttp.ClientResponse]:
    """Sends a request over a connection to a checked address and returns the response, its body
    unread. Redirects, cookies, and the environment's credentials and proxies are not used.

    Raises:
        InvalidRequestError: it may not be reached.
        ProviderConnectionError, ProviderTimeoutError, SettingsError: see `Transport.send`.
    """
    url = _parse_alike(target)
    addresses: Sequence[str] = () if policy.proxy else await policy.find_addresses(target)
    session = aiohttp.ClientSession(
        connector=_make_connector(policy, target.scheme, addresses),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        trust_env=False,
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
    )
    response = None
    try:
        try:
            response = await session.request(
                method, url, data=body, headers=headers, allow_redirects=False, proxy=policy.proxy
            )
        except InvalidRequestError:
            raise
        except FAILURES as error:
            raise explain_failure(error, target) from None
        yield response
    finally:
        if response is not None:
            if response.connection is not None and response.connection.transport is not None:
                # An orderly TLS shutdown would wait for the server.
                response.connection.transport.abort()
            response.close()
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            await session.close()


def _make_connector(
    policy: AddressPolicy, scheme: str, addresses: Sequence[str]
) -> aiohttp.TCPConnector:
    """Returns a connector that reaches only the checked addresses, or the policy's proxy."""
    certificates: SSLContext | bool = True
    # Reading certificates takes long, and plain HTTP needs none.
    if scheme == "https" or policy.proxy:
        certificates = environment.load_certificates(os.environ) or True
    if policy.proxy:
        return aiohttp.TCPConnector(ssl=certificates, force_close=True)

    def open_socket(address: tuple[Any, ...]) -> socket.socket:
        """Opens the socket of a checked connection: it is made to this address, whoever found
        it."""
        if not policy.allows(ip_address(address[4][0])):
            raise InvalidRequestError("an address that is not allowed was about to be used")
        # family, type, protocol
        return socket.socket(*address[:3])

    return aiohttp.TCPConnector(
        ssl=certificates,
        force_close=True,
        use_dns_cache=False,
        resolver=_FixedResolver(addresses),
        socket_factory=open_socket,
    )


class _FixedResolver(AbstractResolver):
    """Resolves every host to the checked addresses."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: int = socket.AF_INET,  # noqa: ARG002
    ) -> list[ResolveResult]:
        """Returns the checked addresses for any host, without asking the DNS."""
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Holds nothing."""


def _parse_alike(target: UrlTarget) -> URL:
    """Parses the URL of a checked connection as the HTTP client does, and checks that both readings
    agree.

    Raises:
        InvalidRequestError: it is not.
    """
    try:
        url = URL(target.url, encoded=True)
        read = (url.scheme, url.raw_host, url.port, url.raw_user, url.raw_password)
    except ValueError:
        raise host_error() from None
    if read != (target.scheme, target.host, target.port, None, None):
        raise host_error()
    return url


def explain_failure(error: Exception, target: UrlTarget) -> DragomanError:
    """Returns the error for one of the `FAILURES` of a checked connection. Its message shows no
    address, because the author of the URL may read it."""
    _LOG.info("%s: %s: %s", target.host, type(error).__name__, error)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return ProviderConnectionError(f"{target.host} has no certificate that is trusted here")
    if isinstance(error, aiohttp.InvalidURL):
        return host_error()
    if isinstance(error, ValueError):
        return SettingsError(
            "the message has a header that cannot be sent: take line breaks out of it"
        )
    if isinstance(error, TimeoutError):
        return ProviderTimeoutError(f"{target.host} did not answer in time: try again later")
    if isinstance(error, aiohttp.ClientPayloadError):
        return StreamCutError(
            f"the connection to {target.host} was cut before the answer ended: try again"
        )
    return ProviderConnectionError(
        f"no connection to {target.host}, or a broken one: try again later"
    )
