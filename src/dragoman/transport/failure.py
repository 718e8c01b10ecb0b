"""Translates aiohttp's exceptions into dragoman's. Their messages name the host, never the rest of
the URL, which may hold a key."""

from __future__ import annotations

import re

import aiohttp

from dragoman.errors import (
    DragomanError,
    ProviderConnectionError,
    ProviderTimeoutError,
    SettingsError,
    StreamCutError,
)
from dragoman.transport.base import ConnectionLostError, Timeouts
from dragoman.transport.redaction import public_url

__all__ = ["FAILURES", "host_and_port", "translate_error"]

FAILURES: tuple[type[Exception], ...] = (aiohttp.ClientError, OSError, ValueError)
"""Exceptions that a request can fail with. Timeouts are OSErrors; a header that cannot be sent
raises ValueError."""

_TRANSLATIONS: tuple[tuple[type[Exception], type[DragomanError], str], ...] = (
    (
        aiohttp.ConnectionTimeoutError,
        ProviderTimeoutError,
        "no connection to {host} within {connect:g} s: check the network, or raise Timeouts.connect",
    ),
    (
        aiohttp.SocketTimeoutError,
        ProviderTimeoutError,
        "nothing came from {host} for {read:g} s: try again, or raise Timeouts.read",
    ),
    (
        TimeoutError,
        ProviderTimeoutError,
        "the answer of {host} was not complete within {total:g} s: try again, or raise Timeouts.total",
    ),
    (
        aiohttp.InvalidURL,
        SettingsError,
        "{url} is no URL that a request can be sent to: check the base URL",
    ),
    (
        aiohttp.NonHttpUrlClientError,
        SettingsError,
        "{url} is no URL that a request can be sent to: check the base URL",
    ),
    (
        aiohttp.ClientConnectorDNSError,
        ProviderConnectionError,
        "the host {host} is not known ({reason}): check the base URL and the network",
    ),
    (
        aiohttp.ClientProxyConnectionError,
        ProviderConnectionError,
        "the proxy for {host} cannot be reached ({reason}): check HTTPS_PROXY, HTTP_PROXY and NO_PROXY",
    ),
    (
        aiohttp.ClientHttpProxyError,
        ProviderConnectionError,
        "the proxy for {host} refused ({reason}): check HTTPS_PROXY and NO_PROXY",
    ),
    (
        aiohttp.ClientConnectorCertificateError,
        ProviderConnectionError,
        "the certificate of {host} is not trusted ({reason}): name the file of its authority in SSL_CERT_FILE",
    ),
    (
        aiohttp.ClientSSLError,
        ProviderConnectionError,
        "no TLS with {host} ({reason}): check whether its URL begins with https",
    ),
    (
        aiohttp.ClientConnectorError,
        ProviderConnectionError,
        "cannot connect to {host} ({reason}): check that the server is running and that the base URL is right",
    ),
    (
        aiohttp.ServerDisconnectedError,
        ConnectionLostError,
        "{host} closed the connection without an answer: try again",
    ),
    (
        aiohttp.ClientPayloadError,
        StreamCutError,
        "the connection to {host} was cut before the answer ended: try again",
    ),
    (
        aiohttp.ClientResponseError,
        ProviderConnectionError,
        "what {host} answered is not HTTP ({reason}): check the base URL",
    ),
    (
        aiohttp.ClientOSError,
        ConnectionLostError,
        "the connection to {host} broke ({reason}): try again",
    ),
    (ConnectionError, ConnectionLostError, "the connection to {host} broke ({reason}): try again"),
    (
        aiohttp.ClientError,
        ProviderConnectionError,
        "the connection to {host} broke ({reason}): try again",
    ),
    (OSError, ProviderConnectionError, "the connection to {host} broke ({reason}): try again"),
    (
        ValueError,
        SettingsError,
        "a request to {host} cannot be sent: check the base URL, and that the key and the headers hold no line break",
    ),
)


def translate_error(error: Exception, url: str, timeouts: Timeouts) -> DragomanError:
    """Translates a failure of the HTTP client: returns the error for one of `FAILURES` from a
    request to `url`."""
    error_class, text = next(
        (error_class, text)
        for cause, error_class, text in _TRANSLATIONS
        if isinstance(error, cause)
    )
    return error_class(
        text.format(
            host=host_and_port(url),
            url=public_url(url),
            reason=_describe_error(error),
            connect=timeouts.connect or 0,
            read=timeouts.read or 0,
            total=timeouts.total or 0,
        )
    )


def host_and_port(url: str) -> str:
    """Returns host and port of a URL."""
    return re.split("[/?#]", url.partition("://")[2])[0].rpartition("@")[2]


def _describe_error(error: Exception) -> str:
    """Returns a short description of a failure without a URL's query, headers or body."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            str(getattr(error.certificate_error, "verify_message", ""))
            or type(error.certificate_error).__name__
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"HTTP {error.status}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
