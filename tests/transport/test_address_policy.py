"""Which URLs may be opened: how hosts are read, names matched, and what a name's addresses must
be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from dragoman.errors import DragomanError, InvalidRequestError, SettingsError
from dragoman.transport import AddressPolicy
from dragoman.transport.hosts import parse_target

pytestmark = pytest.mark.anyio


def policy(*allow: str, at: Sequence[str] = ("8.8.8.8",), **how: Any) -> AddressPolicy:
    async def resolve(host: str) -> Sequence[str]:
        return at

    return AddressPolicy(allow, resolve=resolve, **how)


def test_nothing_is_allowed_until_it_is_said() -> None:
    for url in (
        "https://example.org/",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
        "https://localhost/",
    ):
        with pytest.raises(InvalidRequestError, match="allowed here"):
            AddressPolicy().check_url(url)


@pytest.mark.parametrize(
    ("allow", "url", "is_allowed"),
    [
        ("example.org", "https://example.org/a", True),
        ("example.org", "HTTPS://EXAMPLE.org/a", True),
        ("example.org", "https://www.example.org/a", False),
        ("example.org", "https://example.org.evil.test/a", False),
        ("*.example.org", "https://a.example.org/", True),
        ("*.example.org", "https://a.b.example.org/", True),
        ("*.example.org", "https://example.org/", False),
        ("*.example.org", "https://evilexample.org/", False),
        ("*", "https://anything.test/", True),
        ("*", "https://localhost/", False),
        ("*", "https://metadata/", False),
        ("*", "https://8.8.8.8/", False),
        ("*", "https://[2606:4700::1111]/", False),
        ("8.8.8.8", "https://8.8.8.8/", True),
        ("8.8.8.0/24", "https://8.8.8.4/", True),
        ("8.8.8.0/24", "https://8.8.9.4/", False),
        ("10.0.0.0/8", "https://[::ffff:10.0.0.1]/", False),
        ("::1", "https://[::1]/", True),
        ("[::1]", "https://[0:0:0:0:0:0:0:1]/", True),
        ("xn--bcher-kva.example", "https://xn--bcher-kva.example/", True),
    ],
)
def test_hosts(allow: str, url: str, is_allowed: bool) -> None:
    if is_allowed:
        assert policy(allow).check_url(url).scheme == "https"
    else:
        with pytest.raises(InvalidRequestError, match="allowed here"):
            policy(allow).check_url(url)


WRITTEN_ODDLY = [
    "", "x", "example.org", "//example.org/", "https:example.org", "https:/example.org/", "https:///example.org/", "https://", "https://?a",
    "https://user@example.org/", "https://user:secret@example.org/", "https://@example.org/", "https://example.org@127.0.0.1/",
    "https://example.org:443@127.0.0.1/", "https://example.org\\@127.0.0.1/", "https://127.0.0.1\\.example.org/",
    "https://example.org./", "https://127.0.0.1./", "https://.example.org/", "https://example..org/", "https://exa mple.org/", "https://example.org /",
    "https://127.1/", "https://0x7f.1/", "https://0x7f000001/", "https://2130706433/", "https://017700000001/", "https://0177.0.0.1/", "https://127.0.0.0x1/",
    "https://127.0.0.01/", "https://1.2.3/", "https://1.2.3.4.5/", "https://256.1.1.1/", "https://foo.0x/", "https://foo.8/",
    "https://[::1/", "https://::1/", "https://[::1]x/", "https://[fe80::1%25eth0]/", "https://[fe80::1%eth0]/", "https://[v1.x]/", "https://[]/", "https://[127.0.0.1]/",
    "https://example.org:/", "https://example.org:0/", "https://example.org:65536/", "https://example.org:-1/", "https://example.org:+443/", "https://example.org:4 43/",
    "https://example.org:443:443/", "https://exampl%65.org/", "https://%31%32%37.0.0.1/", "https://bücher.example/", "https://①②⑦.0.0.1/", "https://127。0。0。1/",
    "https://ex\u00adample.org/", "https://example.org/a b", "https://example.org/\n", "https://example.org/\x00", "\nhttps://example.org/", " https://example.org/",
    "https\n://example.org/", "ht\ttps://example.org/", "https://exam\tple.org/", "https://-example.org/", "https://example-.org/", "https://a" + "a" * 63 + ".org/",
    "https://" + "a." * 130 + "org/", "https://example.org/" + "a" * 9000,
]  # fmt: skip


@pytest.mark.parametrize("url", WRITTEN_ODDLY, ids=range(len(WRITTEN_ODDLY)))
def test_what_two_readers_could_understand_differently_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        policy("*", "example.org", "localhost", "127.0.0.1", "::1").check_url(url)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org:70/",
        "data:text/plain,hi",
        "unix://example.org/",
        "javascript://example.org/",
    ],
)
def test_other_schemes_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        policy("example.org").check_url(url)


def test_ports() -> None:
    assert policy("example.org").check_url("https://example.org:443/").port == 443
    assert policy("example.org", schemes=["http"]).check_url("http://example.org/").port == 80
    assert policy("example.org", ports=[8443]).check_url("https://example.org:8443/").port == 8443
    for url in ("https://example.org:80/", "https://example.org:22/", "https://example.org:8443/"):
        with pytest.raises(InvalidRequestError, match="port"):
            policy("example.org").check_url(url)
    with pytest.raises(InvalidRequestError, match="port"):
        policy("example.org", ports=[]).check_url("https://example.org/")


@given(st.text(alphabet=st.sampled_from("ahx.017:/@#?[]%\\-_ \t"), max_size=24))
def test_a_host_is_what_the_client_takes_it_for(text: str) -> None:
    try:
        place = parse_target("https://" + text)
    except InvalidRequestError:
        return
    read = URL(place.url, encoded=True)
    assert (read.raw_host, read.port, read.raw_user) == (place.host, place.port, None)


@pytest.mark.parametrize(
    ("allow", "how", "at", "is_allowed"),
    [
        (["example.org"], {}, ["8.8.8.8", "2606:4700::1111"], True),
        (["example.org"], {}, ["10.0.0.1"], False),
        (["example.org"], {}, ["8.8.8.8", "10.0.0.1"], False),
        (["example.org"], {}, [], False),
        (["example.org"], {}, ["nonsense!"], False),
        (["example.org"], {}, ["fe80::1%1"], False),
        (["example.org", "10.0.0.0/8"], {}, ["10.0.0.1"], True),
        (["example.org", "10.0.0.0/8"], {}, ["64:ff9b::a00:1"], True),
        (["example.org", "10.0.0.0/8"], {}, ["10.0.0.1", "127.0.0.1"], False),
        (["example.org", "127.0.0.0/8"], {}, ["127.0.0.1"], True),
        (["example.org"], {"private": True}, ["192.168.1.1", "fd12::1"], True),
        (["example.org"], {"private": True}, ["127.0.0.1"], False),
        (["example.org"], {"private": True}, ["169.254.169.254"], False),
        (["example.org"], {"private": True}, ["fd00:ec2::254"], False),
    ],
)
async def test_addresses_of_a_name(
    allow: list[str], how: Any, at: list[str], is_allowed: bool
) -> None:
    asked = policy(*allow, at=at, **how)
    place = asked.check_url("https://example.org/")
    if is_allowed:
        assert list(await asked.find_addresses(place)) == at
    else:
        with pytest.raises(InvalidRequestError) as caught:
            await asked.find_addresses(place)
        assert not any(each in str(caught.value) for each in at)


async def test_that_a_name_is_private_or_unknown_cannot_be_told_apart() -> None:
    async def unknown(host: str) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    words: list[str] = []
    for asked in (
        AddressPolicy(["*"], resolve=unknown),
        policy("*", at=["10.0.0.1"]),
        policy("*", at=[]),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            await asked.find_addresses(asked.check_url("https://db.corp/"))
        words.append(caught.value.message)
    assert len(set(words)) == 1


@pytest.mark.parametrize(
    ("allow", "how"),
    [
        (["https://example.org"], {}), (["example.org/x"], {}), (["*example.org"], {}), (["a.*.org"], {}), (["*."], {}), ([""], {}), (["EXAMPLE.org"], {}),
        (["bücher.example"], {}), (["example.org."], {}), (["0.0.0.0/0"], {}), (["::/0"], {}), (["10.0.0.1/8"], {}), (["::ffff:10.0.0.0/104"], {}),
        (["64:ff9b::/96"], {}), (["127.1"], {}), (["example.org:443"], {}), ([], {"schemes": ["ftp"]}), ("example.org", {}), ([], {"schemes": "https"}),
    ],
)  # fmt: skip
def test_a_policy_that_means_nothing_is_refused(allow: Any, how: Any) -> None:
    with pytest.raises(SettingsError):
        AddressPolicy(allow, **how)


@pytest.mark.parametrize(
    ("allow", "how"),
    [
        ([7], {}),
        ([None], {}),
        ([], {"private": 1}),
        ([], {"resolve": "dns"}),
        ([], {"proxy": 7}),
        ([], {"ports": ["443"]}),
        ([], {"ports": 443}),
        ([], {"schemes": [1]}),
        (7, {}),
    ],
)
def test_arguments_of_another_type(allow: Any, how: Any) -> None:
    with pytest.raises(TypeError):
        AddressPolicy(allow, **how)


@given(st.text(max_size=60), st.sampled_from(["", "https://", "https://["]))
def test_whatever_is_written_is_read_or_refused(text: str, head: str) -> None:
    try:
        policy("*").check_url(head + text)
    except DragomanError as error:
        assert isinstance(error, InvalidRequestError)
