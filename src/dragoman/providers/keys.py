"""Where a provider's key comes from, and the headers that a request to it carries.

Precedence: what the caller gives, then the caller's own mapping, then the environment of the process (D-70).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from dragoman.errors import AuthenticationError
from dragoman.providers.provider import Provider

__all__ = ["find_key", "request_headers"]


def find_key(
    provider: Provider,
    api_key: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    system: Mapping[str, str] = os.environ,
) -> str | None:
    """The key for a provider; `None` where there is none and none is needed. An empty key is no key (D-71).

    `environment` is asked before `system`, the environment of the process; `system={}` leaves that one out.

    Raises:
        AuthenticationError: the provider needs a key and there is none (D-72). No request was made: it has no status.
    """
    found = [source.get(name) for source in (environment or {}, system) for name in provider.key_names]
    for key in (api_key, *found):
        if key and (key := key.strip()):
            return key
    if provider.key_names and provider.key_required:
        name = provider.key_names[-1]
        raise AuthenticationError(
            f"{name} is required for {provider.display_name} provider: set this environment variable or pass api_key=",
            provider=provider.name,
        )
    return None


def request_headers(
    provider: Provider,
    *,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    system: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """The headers of every request to a provider, names in lower case.

    The caller's `headers` override the provider's (D-75); who gives the key's header needs no key.

    Raises:
        AuthenticationError: as `find_key`.
    """
    given = {name.lower(): value for name, value in (headers or {}).items()}
    out = {name.lower(): value for name, value in provider.headers.items()}
    kinds = {**provider.key_kinds, "": (provider.key_header, provider.key_prefix)}
    if not any(header in given for header, _ in kinds.values()):
        key = find_key(provider, api_key, environment=environment, system=system)
        if key is not None:
            header, prefix = next(how for start, how in kinds.items() if key.startswith(start))
            out[header] = prefix + key
    return out | given
