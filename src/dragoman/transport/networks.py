"""Which addresses are public, told by tables of our own: those of the standard library differ between its releases."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

__all__ = ["Address", "Network", "is_private", "is_public", "judged"]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_PRIVATE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")))
"""Those of organisations and homes."""
_CLOUD = tuple(map(ip_network, ("fd00:ec2::/32", "fd20:ce::/32")))
"""Of these, where clouds answer their machines' questions: credentials lie there."""
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
"""How a network without IPv4 writes an address of IPv4."""
_ISATAP = (0x00005EFE, 0x02005EFE)
"""Stand before an address of IPv4 in the second half of one of IPv6."""
_EMBEDDING = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96")))
"""Addresses of IPv6 that are another way to write one of IPv4; names have no such address."""


def judged(address: Address) -> Address | None:
    """The address that counts: of one that leads to an address of IPv4 through a gateway, that. `None`: it is written in a way that hides
    where it leads, or names a link of this machine."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    hides = any(address in network for network in _EMBEDDING) and int(address) > 1
    return (
        None
        if hides or address.scope_id or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
        else address
    )


def is_public(address: Address) -> bool:
    """Whether anybody may have it, wherever he is."""
    known = judged(address)
    if known is None or (isinstance(known, IPv6Address) and known not in _GLOBAL):
        return False
    return not any(known in network for network in (*_SPECIAL, *_PRIVATE))


def is_private(address: Address) -> bool:
    """Whether it is of an organisation's or a home's own network, and no machine's door to its cloud."""
    known = judged(address)
    return (
        known is not None
        and any(known in network for network in _PRIVATE)
        and not any(known in network for network in _CLOUD)
    )
