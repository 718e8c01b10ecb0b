"""Finds a provider's key, and makes the headers of its requests.

Precedence: what the caller gives, then the caller's own mapping, then the environment of the
process. The library reads no file. Who runs the process may add one more place where keys are
looked up after its environment (`use_stored_keys`), as the command line does.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

from dragoman.errors import AuthenticationError
from dragoman.providers.auth import Auth
from dragoman.providers.provider import Provider

__all__ = [
    "check_key",
    "find_auth",
    "find_key",
    "placeholder_keys",
    "request_headers",
    "use_stored_keys",
]

_readers: list[Callable[[], Mapping[str, str]]] = []
"""Functions that return the stored keys, by environment variable. Empty unless `use_stored_keys`
is active."""


@contextmanager
def use_stored_keys(read: Callable[[], Mapping[str, str]]) -> Generator[None]:
    """Looks up the keys of all providers also in what `read` returns, by environment variable and
    after the environment of the process. `read` is called when a key is not in the environment."""
    _readers.append(read)
    try:
        yield
    finally:
        _readers.remove(read)


def find_key(
    provider: Provider,
    api_key: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    system: Mapping[str, str] = os.environ,
) -> str | None:
    """Returns the key for a provider; None if it needs none or other credentials are set. An empty
    key counts as missing.

    `environment` is asked before `system`, the environment of the process; `system={}` leaves that
    one out.

    Raises:
        AuthenticationError: the provider needs a key and there is none. No request was made: it has no status.
    """
    # The caller's mapping goes before the process's environment, whatever the variable.
    environment_keys = (
        source.get(name) for source in (environment or {}, system) for name in provider.key_names
    )
    readers = _readers if system is os.environ else []
    stored_keys = (read().get(name) for read in readers for name in provider.key_names)
    for key in chain((api_key,), environment_keys, stored_keys):
        if key and (key := key.strip()):
            return key
    if not provider.key_names or not provider.key_required:
        return None
    # Other credentials stand in for a key.
    if (
        provider.auth is not None
        and provider.auth(_join_environments(environment, system), None) is not None
    ):
        return None
    alternatives = f" or {', '.join(provider.auth_names)}" if provider.auth_names else ""
    raise AuthenticationError(
        f"{provider.key_names[-1]} is required for {provider.display_name} provider: set this environment variable{alternatives}, "
        "or pass api_key=",
        provider=provider.name,
    )


def check_key(
    provider: Provider,
    api_key: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    system: Mapping[str, str] = os.environ,
) -> None:
    """Checks that there is a key for a provider, or a header that takes its place.

    Raises:
        AuthenticationError: as `find_key`.
    """
    names = {name.lower() for name in headers or {}}
    if not any(header in names for header, _ in _key_headers(provider).values()):
        find_key(provider, api_key, environment=environment, system=system)


def find_auth(
    provider: Provider,
    api_key: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    system: Mapping[str, str] = os.environ,
) -> Auth | None:
    """Returns what replaces the key of a provider that needs more than one, otherwise None. A key's
    header in `headers` counts as a key.

    Raises:
        SettingsError: the credentials that the environment names cannot be used.
        AuthenticationError: as `find_key`.
    """
    if provider.auth is None:
        return None
    lower_headers = {name.lower(): value for name, value in (headers or {}).items()}
    key = next(
        (
            lower_headers[name]
            for name, _ in _key_headers(provider).values()
            if name in lower_headers
        ),
        None,
    )
    if key is None:
        key = find_key(provider, api_key, environment=environment, system=system)
    return provider.auth(_join_environments(environment, system), key)


def request_headers(
    provider: Provider,
    *,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    system: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Returns the headers, with the key, of every request to a provider, names in lower case.

    The caller's `headers` override the provider's; who gives the key's header needs no key.

    Raises:
        AuthenticationError: as `find_key`.
    """
    lower_headers = {name.lower(): value for name, value in (headers or {}).items()}
    out = {name.lower(): value for name, value in provider.headers.items()}
    key_headers = _key_headers(provider)
    if not any(header in lower_headers for header, _ in key_headers.values()):
        key = find_key(provider, api_key, environment=environment, system=system)
        if key is not None:
            header, prefix = next(
                header_and_prefix
                for start, header_and_prefix in key_headers.items()
                if key.startswith(start)
            )
            out[header] = prefix + key
    return out | lower_headers


def _key_headers(provider: Provider) -> dict[str, tuple[str, str]]:
    """Returns the header and prefix for keys by how they begin. The last entry fits all keys."""
    return {**provider.key_kinds, "": (provider.key_header, provider.key_prefix)}


def _join_environments(
    environment: Mapping[str, str] | None, system: Mapping[str, str]
) -> Mapping[str, str]:
    """Returns both environments, in which keys are looked up, as one mapping, the caller's
    first."""
    layers: list[Any] = [environment or {}, system]
    return ChainMap(*layers)


_SHARED = {"AWS_BEARER_TOKEN_BEDROCK", "CLOUDSDK_AUTH_ACCESS_TOKEN", "HF_TOKEN"}
"""Variables by which programs also sign in elsewhere, where a placeholder would be refused."""


def placeholder_keys(records: Iterable[Provider], environment: Mapping[str, str]) -> dict[str, str]:
    """Returns a placeholder variable for each provider whose key is missing: recordings need no
    key."""
    return {
        record.key_names[-1]: "no-key-is-needed"
        for record in records
        if record.key_names
        and record.key_names[-1] not in _SHARED
        and not any(environment.get(name) for name in record.key_names)
    }
