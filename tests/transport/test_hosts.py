"""Which addresses are public, whatever they are written as."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.transport.hosts import is_private, is_public, unwrap_address

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.8.8",
    "169.254.169.254",
    "168.63.129.16",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:10.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3ffe::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "fe80::1",
    "fe80::1%1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "2a00:1450::5efe:10.0.0.1",
    "2a00:1450::200:5efe:10.0.0.1",
    "2a00:1450::1%1",
]
TAKEN = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.0.1",
    "172.32.0.1",
    "192.0.1.1",
    "192.167.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001::200e",
    "64:ff9b::8.8.8.8",
    "2001:200::1",
]


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", TAKEN)
def test_taken(text: str) -> None:
    assert is_public(ip_address(text))
    assert not is_private(ip_address(text))


FORMS = {
    "mapped": lambda v4: 0xFFFF00000000 | v4,
    "compatible": lambda v4: v4,
    "translated": lambda v4: 0xFFFF0000 << 32 | v4,
    "6to4": lambda v4: 0x2002 << 112 | v4 << 80 | 1,
    "teredo": lambda v4: 0x20010000 << 96 | 0x41000000 << 64 | (v4 ^ 0xFFFFFFFF),
    "isatap": lambda v4: 0x2A001450 << 96 | 0x5EFE << 32 | v4,
    "local NAT64": lambda v4: 0x0064FF9B0001 << 80 | v4,
}


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(FORMS)))
def test_no_form_of_ipv6_hides_an_address_of_ipv4(v4: int, form: str) -> None:
    assert not is_public(IPv6Address(FORMS[form](v4)))
    assert not is_private(IPv6Address(FORMS[form](v4)))


@given(st.integers(0, 2**32 - 1))
def test_what_a_gateway_translates_is_what_it_leads_to(v4: int) -> None:
    assert unwrap_address(IPv6Address(0x0064FF9B << 96 | v4)) == IPv4Address(v4)
    assert is_public(IPv6Address(0x0064FF9B << 96 | v4)) == is_public(IPv4Address(v4))


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_what_the_standard_library_calls_private_is_not_public(
    address: IPv4Address | IPv6Address,
) -> None:
    if is_public(address) and unwrap_address(address) == address:
        assert not (
            address.is_private
            or address.is_loopback
            or address.is_link_local
            or address.is_multicast
        )
        assert not (address.is_reserved or address.is_unspecified)


def test_private_is_an_organisations_network_and_no_clouds_door() -> None:
    assert all(
        is_private(ip_address(each))
        for each in ("10.1.2.3", "172.20.0.1", "192.168.0.9", "fd12::1")
    )
    assert not any(
        is_private(ip_address(each))
        for each in ("127.0.0.1", "169.254.169.254", "::1", "fe80::1", "fd00:ec2::254")
    )
