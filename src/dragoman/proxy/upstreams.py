"""The hosts that the proxy sends to, and the variables that lead the clients of each to the proxy.

Each host has a name, which is the first segment of its paths at the proxy: the provider's name, or
that of `--upstream NAME=URL`. What follows the name goes to the host as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from dragoman import providers
from dragoman.errors import SettingsError
from dragoman.providers.base_url import find_written_url
from dragoman.providers.keys import placeholder_keys
from dragoman.transport.redaction import public_url

__all__ = ["Upstream", "client_keys", "client_variables", "find_upstreams"]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_RESERVED = "page"
"""The first segment of the paths of the proxy's own page."""
_CLIENT_URLS: Mapping[str, Mapping[str, str]] = {
    "openai": {"OPENAI_API_BASE": ""},
    "vertex": {"GOOGLE_VERTEX_BASE_URL": "/v1"},
}
"""Provider → variables that its clients read and dragoman does not, as `base_url_names`."""
_CLIENT_KEYS = {"COHERE_API_KEY": "CO_API_KEY"}
"""Variable of a key → the one in which the provider's own client looks for it."""
_PROXY_URL = "DRAGOMAN_PROXY_URL"


class Upstream(NamedTuple):
    """A host that the proxy sends to."""

    name: str
    """The first segment of its paths at the proxy."""
    origin: str
    """Its URL without a path."""
    path: str
    """The path at which its API begins, such as `/v1`; often none."""
    variables: Mapping[str, str]
    """Variables in which clients look for its URL → the end of the path that they add
    themselves."""

    def client_url(self, proxy: str) -> str:
        """Returns the URL under which the API begins at the proxy of this URL."""
        return f"{proxy}/{self.name}{self.path}"


def find_upstreams(options: Iterable[str], environment: Mapping[str, str]) -> dict[str, Upstream]:
    """Returns the hosts by their names: those of the providers, at the URLs that the environment
    has for them, and those of `--upstream NAME=URL`.

    Raises:
        SettingsError: an option is none, or names what cannot be a host.
    """
    upstreams = {upstream.name: upstream for upstream in _of_providers(environment)}
    for option in options:
        name, equals, url = option.partition("=")
        if not (equals and _NAME.fullmatch(name)) or name == _RESERVED:
            raise SettingsError(
                f"{public_url(option)!r:.200} is no upstream: write NAME=URL, such as "
                "acme=https://api.acme.example/v1, with a name of lower-case letters other than page"
            )
        # A provider at another host is found by the same variables.
        replaced = upstreams.get(name)
        upstreams[name] = _make_upstream(name, url, {} if replaced is None else replaced.variables)
    return upstreams


def client_variables(upstreams: Mapping[str, Upstream], proxy: str) -> dict[str, str]:
    """Returns the variables that lead clients to the proxy at this URL."""
    variables = {
        name: upstream.client_url(proxy).removesuffix(suffix)
        for upstream in upstreams.values()
        for name, suffix in upstream.variables.items()
    }
    return {**variables, _PROXY_URL: proxy}


def client_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns a placeholder for each provider's key that is missing, as clients refuse to start
    without one, and recordings need none."""
    keys = placeholder_keys(providers.REGISTRY.providers(), environment)
    clients = {_CLIENT_KEYS[name]: key for name, key in keys.items() if name in _CLIENT_KEYS}
    return {**keys, **clients}


def _of_providers(environment: Mapping[str, str]) -> Iterable[Upstream]:
    """Yields the hosts of the providers that have one."""
    taken: set[str] = set()
    for record in providers.REGISTRY.providers():
        names = {**record.base_url_names, **_CLIENT_URLS.get(record.name, {})}
        written = find_written_url(
            msgspec.structs.replace(record, base_url_names=names), system=environment
        )
        url = written or record.base_url
        # Of two providers at one host, as OpenAI's APIs are, the first has it.
        if not isinstance(url, str) or record.by_url or (names and taken.issuperset(names)):
            continue
        taken.update(names)
        # Who signs in otherwise than by a key may ask another host than the usual one.
        is_led = written is not None or record.auth is None
        yield _make_upstream(record.name, url, names if is_led else {})


def _make_upstream(name: str, url: str, variables: Mapping[str, str]) -> Upstream:
    """Returns the host of a URL. Raises `SettingsError` if it is no HTTP URL."""
    try:
        parts = urlsplit(url)
        is_host = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        if is_host and not (parts.query or parts.fragment or "@" in parts.netloc):
            origin = f"{parts.scheme}://{parts.netloc}"
            return Upstream(name, origin, parts.path.rstrip("/"), variables)
    except ValueError:
        pass
    raise SettingsError(
        f"the URL of {name} is {public_url(url)!r:.200}: write http:// or https://, a host and a path"
    )
