"""The host of a URL that somebody else wrote, read in one way only: what two readers could understand differently is refused."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import urlsplit

from dragoman.errors import InvalidRequestError
from dragoman.transport.networks import Address

__all__ = ["USUAL_PORTS", "Place", "is_name", "place_of", "unreadable"]

_MOST = 8192
"""Characters of a URL."""
USUAL_PORTS = {"http": 80, "https": 443}
"""Of a URL that names none."""
_URL = re.compile(r"[!#-;=?-\[\]_a-z~]+", re.IGNORECASE)
"""The characters that URLs are made of; no space, no backslash, no control character, nothing beyond ASCII."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A last label by which some readers take the whole for an address."""
_PORT = re.compile(r"[0-9]{1,5}")


class Place(NamedTuple):
    """Where a URL leads."""

    url: str
    """As it is sent: with its port, without a fragment."""
    scheme: str
    """In lower case."""
    host: str
    """A name or an address, in lower case, without brackets."""
    port: int
    """Given, else the scheme's."""
    address: Address | None
    """Where the host is no name."""


def is_name(host: str) -> bool:
    """Whether it is a name of a host in the way that requests carry it: ASCII, lower case, no dot at its end, and no number."""
    labels = host.split(".")
    return (
        len(host) <= 253
        and all(_LABEL.fullmatch(label) for label in labels)
        and _NUMBER.fullmatch(labels[-1]) is None
    )


def place_of(url: str) -> Place:
    """Where a URL leads.

    Raises:
        InvalidRequestError: it is none, or is written in a way that not everybody reads alike.
    """
    if not url or len(url) > _MOST or not _URL.fullmatch(url):
        raise InvalidRequestError(
            f"a URL has at most {_MOST} characters, none of them a space, a backslash or beyond ASCII: write it with percent signs"
        )
    try:
        split = urlsplit(url)
        bracketed, netloc = split.netloc.startswith("["), split.netloc
    except ValueError as error:
        raise unreadable() from error
    scheme = split.scheme.lower()
    if not netloc or not url.lower().startswith(f"{scheme}://{netloc.lower()}"):
        raise InvalidRequestError(
            "a URL names a scheme and a host, such as https://example.org/picture.png"
        )
    if "@" in netloc:
        raise InvalidRequestError("the URL holds a user or a password before its host: take it out")
    host, port = _parted(netloc, bracketed=bracketed)
    address = _address(host)
    if port and (not _PORT.fullmatch(port) or not 0 < int(port) < 65536):
        raise InvalidRequestError("the URL has a port that is no number from 1 to 65535")
    host, number = str(address or host), int(port) if port else USUAL_PORTS.get(scheme, 0)
    written = f"[{host}]" if bracketed else host
    rest = url[len(scheme) + len("://") + len(netloc) :].partition("#")[0]
    return Place(f"{scheme}://{written}:{number}{rest}", scheme, host, number, address)


def unreadable() -> InvalidRequestError:
    """The error for a URL whose host is not sure."""
    return InvalidRequestError("the URL has a host that cannot be read")


def _parted(netloc: str, *, bracketed: bool) -> tuple[str, str]:
    """Host and port, the port as it is written."""
    if not bracketed:
        host, colon, port = netloc.partition(":")
    else:
        host, bracket, rest = netloc[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        if not bracket or (rest and colon != ":"):
            raise unreadable()
    if colon and not port:
        raise InvalidRequestError("the URL has a colon behind its host, and no port")
    if bracketed != (":" in host):
        raise InvalidRequestError(
            "the URL has a host that cannot be read: an IPv6 address stands in brackets"
        )
    return host.lower(), port


def _address(host: str) -> Address | None:
    """The address that a host is; `None`: it is a name.

    Raises:
        InvalidRequestError: neither.
    """
    if "%" in host:
        raise InvalidRequestError(
            "the URL's host holds a percent sign: write the host itself, without a zone"
        )
    try:
        address = IPv6Address(host) if ":" in host else IPv4Address(host)
    except ValueError:
        address = None
    if address is None and not is_name(host):
        raise InvalidRequestError(
            "the URL's host is neither a name nor an address as it is usually written: no dot at its end, letters of ASCII "
            "(xn--…), and an IPv4 address as four decimal numbers"
        )
    return address
