"""Decides which URLs written by others may be opened, and at which addresses: `AddressPolicy`.

A URL is checked in two steps. `check_url` looks at scheme, port and host name without any lookup.
`find_addresses` then resolves the name and returns the addresses that were checked, and the
caller connects to those: a second lookup could give other ones. One bad address refuses the name.
Addresses in disguise, such as IPv4 inside IPv6, are unwrapped before they are compared. Errors do
not say what a lookup has found, because whoever wrote the URL may read them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from dragoman.arguments import expect, expect_callable, expect_each
from dragoman.errors import InvalidRequestError, SettingsError
from dragoman.logs import logger
from dragoman.transport.hosts import (
    DEFAULT_PORTS,
    Address,
    Network,
    UrlTarget,
    is_name,
    is_private,
    is_public,
    parse_target,
    unwrap_address,
)

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["AddressPolicy", "Resolve", "system_addresses"]

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the addresses of a host's name."""

_LOG = logger("transport.addresses")
_MIN_PREFIX = {4: 8, 6: 7}
"""Shortest prefix of an allowed network, by IP version. A wider network is most likely a
mistake."""
_MAX_ADDRESSES = 32
"""Addresses of a name that are checked at most."""
_THREADS = 8
"""Names that are looked up at the same time."""


async def system_addresses(host: str) -> Sequence[str]:
    """Returns for the policy a host's addresses as the system resolves them. Slow names delay only
    other lookups, because these have threads of their own.

    Raises:
        OSError: the name is not known.
    """
    import socket
    from asyncio import get_running_loop

    entries = await get_running_loop().run_in_executor(
        _open_threads(), lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


@cache
def _open_threads() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_THREADS, "dragoman-names")


class AddressPolicy:
    """Decides which URLs written by others may be opened. Without allowed hosts it refuses all.

    The host of a URL must be allowed by its name. Then its addresses must be public, or in a
    network that is allowed: loopback, private, link-local, multicast and reserved ones are refused,
    however they are written, and a name is refused when one of its addresses is.

    ```python
    AddressPolicy(["*.example.org", "files.example.com"])
    AddressPolicy(["*"])  # any host of the internet, none of this network
    AddressPolicy(["files.intern", "10.1.0.0/16"])  # a host of this network, by name or by address
    ```
    """

    def __init__(
        self,
        allow: Sequence[str] = (),
        *,
        schemes: Sequence[str] = ("https",),
        ports: Sequence[int] | None = None,
        private: bool = False,
        proxy: str | None = None,
        resolve: Resolve = system_addresses,
    ) -> None:
        """Creates the policy. Args: allow: hosts: a name (`example.org`), all names below one
        (`*.example.org`), all names that hold a dot (`*`); and networks (`10.1.0.0/16`) or
        addresses, at which allowed names may be too. schemes: `https`, `http`. ports: those of
        URLs; left out, 443 with `https` and 80 with `http`. private: allowed names may be at
        private addresses (10/8, 172.16/12, 192.168/16, fc00::/7), but not at this machine's own.
        proxy: URL of an HTTP proxy that all requests go through. It finds the addresses, and has to
        refuse those that are not public; here only names are checked. The environment's proxies are
        never used. resolve: finds the addresses of a name; left out, the system.

        Raises:
            SettingsError: something of it cannot be used.
        """
        for argument, value in {"allow": allow, "schemes": schemes}.items():
            if isinstance(value, str):
                raise SettingsError(
                    f"AddressPolicy({argument}={value!r}) must be a list: [{value!r}]"
                )
            expect_each(argument, value, str)
        expect_each("ports", () if ports is None else ports, int)
        expect("private", private, bool)
        expect("proxy", proxy, str, type(None))
        expect_callable("resolve", resolve, "a function of a host's name")
        if unknown := {*schemes} - {"http", "https"}:
            raise SettingsError(
                f"AddressPolicy(schemes=…) knows https and http, not {', '.join(sorted(unknown))}"
            )
        self.schemes, self.private, self.proxy, self.resolve = (
            frozenset(schemes),
            private,
            proxy,
            resolve,
        )
        self.ports = None if ports is None else frozenset(ports)
        self._names = {entry for entry in allow if _parse_network(entry) is None}
        self._networks = tuple(
            network for entry in allow if (network := _parse_network(entry)) is not None
        )
        for name in self._names:
            _check_name(name)

    def __repr__(self) -> str:
        allowed = [*sorted(self._names), *map(str, self._networks)]
        return f"AddressPolicy({allowed}, schemes={sorted(self.schemes)}, private={self.private})"

    def check_url(self, url: str) -> UrlTarget:
        """Returns the parsed URL if the policy allows it. No name is looked up.

        Raises:
            InvalidRequestError: it is not allowed, or cannot be read.
        """
        target = parse_target(url)
        if target.scheme not in self.schemes:
            raise InvalidRequestError(
                f"the URL's scheme is not {' or '.join(sorted(self.schemes, reverse=True))}"
            )
        if target.port not in (
            {DEFAULT_PORTS[target.scheme]} if self.ports is None else self.ports
        ):
            raise InvalidRequestError(f"the URL's port {target.port} is not allowed here")
        if target.address is None and not self._allows_name(target.host):
            raise InvalidRequestError(
                f"the URL's host {target.host} is not one that is allowed here"
            )
        if target.address is not None and not self._in_network(target.address):
            raise InvalidRequestError(
                "the URL's host is an address that is not allowed here: write a name"
            )
        return target

    async def find_addresses(self, target: UrlTarget) -> Sequence[str]:
        """Looks up the addresses of a target and checks them by the policy.

        Raises:
            InvalidRequestError: there are none. What was found is not in the message: it is not for who wrote the URL.
        """
        if target.address is not None:
            return [str(target.address)]
        try:
            addresses = [
                ip_address(address)
                for address in list(await self.resolve(target.host))[:_MAX_ADDRESSES]
            ]
        except (OSError, ValueError) as error:
            _LOG.info("no address of %s: %s", target.host, error)
            raise _no_address_error(target.host) from None
        # One bad address refuses the name: whoever answers for it could choose otherwise.
        refused = [address for address in addresses if not self.allows(address)]
        if refused:
            _LOG.warning(
                "%s is at %s, which is not allowed", target.host, ", ".join(map(str, refused))
            )
        if refused or not addresses:
            raise _no_address_error(target.host)
        return [str(address) for address in addresses]

    def allows(self, address: Address) -> bool:
        """True if by the policy a connection may be made to an address: a public one, a private one
        if those are allowed, or one in an allowed network."""
        return (
            is_public(address)
            or (self.private and is_private(address))
            or self._in_network(address)
        )

    def _in_network(self, address: Address) -> bool:
        """Returns whether an address is in one of the allowed networks."""
        real_address = unwrap_address(address)
        return real_address is not None and any(
            real_address in network for network in self._networks
        )

    def _allows_name(self, host: str) -> bool:
        """Returns whether the policy allows a host by its name."""
        if host in self._names or ("*" in self._names and "." in host):
            return True
        labels = host.split(".")
        return any(
            f"*.{'.'.join(labels[start:])}" in self._names for start in range(1, len(labels))
        )


def _parse_network(text: str) -> Network | None:
    """Returns the network that an entry of an address policy describes, or None if it is a name.

    Raises:
        SettingsError: it is one that cannot be allowed.
    """
    try:
        network = ip_network(text.removeprefix("[").removesuffix("]"))
    except ValueError as error:
        if "/" in text:
            raise SettingsError(
                f"AddressPolicy(allow=[{text!r}]) is no network: {error}"
            ) from error
        return None
    if network.prefixlen < _MIN_PREFIX[network.version]:
        raise SettingsError(
            f'AddressPolicy(allow=[{text!r}]) is too wide a network; "*" allows all public hosts'
        )
    first = unwrap_address(network.network_address)
    if first is None or first.version != network.version:
        raise SettingsError(
            f"AddressPolicy(allow=[{text!r}]) is a network of addresses in disguise: write it as IPv4"
        )
    return network


def _check_name(name: str) -> None:
    """Raises `SettingsError` if an entry of a policy's `allow` is neither a host nor a network."""
    if name != "*" and not is_name(name.removeprefix("*.")):
        raise SettingsError(
            f"AddressPolicy(allow=[{name!r}]) is neither a host nor a network: write example.org, *.example.org or 10.1.0.0/16, "
            "in lower case and in ASCII (xn--…)"
        )


def _no_address_error(host: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"no address of the URL's host {host} is known that may be used here"
    )
