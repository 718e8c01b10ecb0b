"""Hosts of URLs that somebody else wrote, and which addresses are public.

A URL is read in one way only: what two readers could understand differently is refused
(`parse_target`). An address that is another way to write one of IPv4 is judged as that one
(`unwrap_address`). The networks that are not public stand in tables of our own, because those of the
standard library differ between its releases.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from dragoman.errors import InvalidRequestError

__all__ = [
    "DEFAULT_PORTS", "Address", "Network", "UrlTarget", "is_name", "is_private", "is_public", "unwrap_address", "parse_target", "host_error",
]  # fmt: skip

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_MAX_CHARACTERS = 8192
"""Characters of a URL at most."""
DEFAULT_PORTS = {"http": 80, "https": 443}
"""Ports of URLs without one."""
_URL = re.compile(r"[!#-;=?-\[\]_a-z~]+", re.IGNORECASE)
"""The characters that URLs are made of; no space, no backslash, no control character, nothing
beyond ASCII."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A last label by which some readers take the whole for an address."""
_PORT = re.compile(r"[0-9]{1,5}")


class UrlTarget(NamedTuple):
    """The parsed parts of a URL."""

    url: str
    """As it is sent: with its port, without a fragment."""
    scheme: str
    """In lower case."""
    host: str
    """A name or an address, in lower case, without brackets."""
    port: int
    """The URL's port, otherwise the scheme's."""
    address: Address | None
    """The address, if the host is no name."""


def is_name(host: str) -> bool:
    """True for a name of a host in the form that requests carry: ASCII, lower case, no dot at its
    end, and no number."""
    labels = host.split(".")
    return (
        len(host) <= 253
        and all(_LABEL.fullmatch(label) for label in labels)
        and _NUMBER.fullmatch(labels[-1]) is None
    )


def parse_target(url: str) -> UrlTarget:
    """Parses the host in a URL that somebody else wrote, strictly.

    Raises:
        InvalidRequestError: it is none, or is written in a way that not everybody reads alike.
    """
    if not url or len(url) > _MAX_CHARACTERS or not _URL.fullmatch(url):
        raise InvalidRequestError(
            f"a URL has at most {_MAX_CHARACTERS} characters, none of them a space, a backslash or beyond ASCII: write it with percent signs"
        )
    try:
        split = urlsplit(url)
        bracketed, netloc = split.netloc.startswith("["), split.netloc
    except ValueError as error:
        raise host_error() from error
    scheme = split.scheme.lower()
    if not netloc or not url.lower().startswith(f"{scheme}://{netloc.lower()}"):
        raise InvalidRequestError(
            "a URL names a scheme and a host, such as https://example.org/picture.png"
        )
    if "@" in netloc:
        raise InvalidRequestError("the URL holds a user or a password before its host: take it out")
    host, port = _split_port(netloc, bracketed=bracketed)
    address = _parse_address(host)
    if port and (not _PORT.fullmatch(port) or not 0 < int(port) < 65536):
        raise InvalidRequestError("the URL has a port that is no number from 1 to 65535")
    host, number = str(address or host), int(port) if port else DEFAULT_PORTS.get(scheme, 0)
    written_host = f"[{host}]" if bracketed else host
    path = url[len(scheme) + len("://") + len(netloc) :].partition("#")[0]
    return UrlTarget(f"{scheme}://{written_host}:{number}{path}", scheme, host, number, address)


def host_error() -> InvalidRequestError:
    """Returns the error for a URL whose host is ambiguous."""
    return InvalidRequestError("the URL has a host that cannot be read")


def _split_port(netloc: str, *, bracketed: bool) -> tuple[str, str]:
    """Returns host and port of a URL's authority, the port as text."""
    if not bracketed:
        host, colon, port = netloc.partition(":")
    else:
        host, bracket, tail = netloc[1:].partition("]")
        colon, port = tail[:1], tail[1:]
        if not bracket or (tail and colon != ":"):
            raise host_error()
    if colon and not port:
        raise InvalidRequestError("the URL has a colon behind its host, and no port")
    if bracketed != (":" in host):
        raise InvalidRequestError(
            "the URL has a host that cannot be read: an IPv6 address stands in brackets"
        )
    return host.lower(), port


def _parse_address(host: str) -> Address | None:
    """Returns the address in a URL's host, or None if it is a name.

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


# networks

_PRIVATE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")))
"""Networks of organisations and homes."""
_CLOUD = tuple(map(ip_network, ("fd00:ec2::/32", "fd20:ce::/32")))
"""Those of them where clouds serve metadata, with credentials, to their machines."""
_SPECIAL = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "100.64.0.0/10",  # shared by a carrier's customers
            "127.0.0.0/8",  # this machine
            "169.254.0.0/16",  # this link; clouds' metadata
            "168.63.129.16/32",  # a cloud's own services
            "192.0.0.0/24",  # protocols
            "192.0.2.0/24",  # documents
            "192.88.99.0/24",  # relays of 6to4
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documents
            "203.0.113.0/24",  # documents
            "224.0.0.0/4",  # many at once
            "240.0.0.0/4",  # reserved, and all at once
            "2001::/23",  # protocols, Teredo among them
            "2001:db8::/32",  # documents
            "2002::/16",  # 6to4
            "3ffe::/16",  # a network of the past
            "3fff::/20",  # documents
        ),
    )
)
_GLOBAL = IPv6Network("2000::/3")
"""No other address of IPv6 is public."""
_NAT64 = IPv6Network("64:ff9b::/96")
"""Network in which NAT64 gateways write IPv4 addresses."""
_ISATAP = (0x00005EFE, 0x02005EFE)
"""Markers before an IPv4 address in the second half of an IPv6 address (ISATAP)."""
_EMBEDDING = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96")))
"""Addresses of IPv6 that are another way to write one of IPv4; names have no such address."""


def unwrap_address(address: Address) -> Address | None:
    """Returns the address of a host that counts: the IPv4 address behind a NAT64 gateway's,
    otherwise the address itself. None if its form hides where it leads, or if it names a link of
    this machine."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    # 0 and 1 are `::` and `::1`, which hide nothing.
    if int(address) > 1 and any(address in network for network in _EMBEDDING):
        return None
    if address.scope_id or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return None
    return address


def is_public(address: Address) -> bool:
    """True if the address of a host can be reached from anywhere on the internet."""
    real_address = unwrap_address(address)
    if real_address is None or (
        isinstance(real_address, IPv6Address) and real_address not in _GLOBAL
    ):
        return False
    return not any(real_address in network for network in (*_SPECIAL, *_PRIVATE))


def is_private(address: Address) -> bool:
    """True if the address of a host is in an organisation's or a home's network, and no cloud
    metadata service."""
    real_address = unwrap_address(address)
    return (
        real_address is not None
        and any(real_address in network for network in _PRIVATE)
        and not any(real_address in network for network in _CLOUD)
    )
