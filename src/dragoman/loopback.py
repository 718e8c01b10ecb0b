"""Which hosts are this machine."""

from __future__ import annotations

from ipaddress import ip_address

__all__ = ["LOOPBACK", "is_loopback"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine, as they stand in URLs."""


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own, which no other machine can reach."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")
