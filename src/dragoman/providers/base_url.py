"""Finds a provider's base URL: the caller's, otherwise the environment's, otherwise the
record's."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from dragoman.errors import SettingsError
from dragoman.providers.provider import Provider
from dragoman.transport.redaction import public_url

__all__ = ["find_base_url", "join_url", "find_written_url"]


async def find_base_url(
    provider: Provider,
    base_url: str | None = None,
    *,
    model: str = "",
    credentials_url: str | SettingsError | None = None,
    environment: Mapping[str, str] | None = None,
    system: Mapping[str, str] = os.environ,
) -> str:
    """Returns the base URL of a provider, without a slash at the end of its path. May start a local
    server for `model`.

    `environment` is asked before `system`, the environment of the process; `system={}` leaves that
    one out. `place` is where the credentials lead; it goes before the record's.

    Raises:
        SettingsError: there is none, or it is no HTTP URL; `place`, where that is what is left.
    """
    url = (
        find_written_url(provider, base_url, environment, system)
        or credentials_url
        or provider.base_url
    )
    if isinstance(url, SettingsError):
        raise url.at(provider=provider.name)
    if callable(url):
        url = await url(model)
    if url is None and provider.by_url:
        url = model
    if not url:
        hint = "".join(f" or set {name}" for name in provider.base_url_names)
        raise SettingsError(
            f"{provider.display_name} provider has no base URL: pass base_url=, such as http://localhost:8000/v1,{hint}",
            provider=provider.name,
        )
    if not _is_http(url):
        raise SettingsError(
            f'base URL "{public_url(url)}" of {provider.display_name} provider must begin with http:// or https:// and a '
            "host, such as http://localhost:8000/v1",
            provider=provider.name,
        )
    return url if provider.by_url else join_url(url, "")


def find_written_url(
    provider: Provider,
    base_url: str | None = None,
    environment: Mapping[str, str] | None = None,
    system: Mapping[str, str] = os.environ,
) -> str | None:
    """Returns the base URL that the caller or the environment sets, as `find_base_url` uses it, or
    None."""
    return _complete_url(base_url, provider) or _read_environment(
        provider, environment or {}, system
    )


def join_url(base_url: str, path: str) -> str:
    """Returns the URL of a path below a provider's base URL. The query of the base URL stays at the
    end."""
    base, _, query = base_url.partition("?")
    url = base.rstrip("/") + path
    if not query:
        return url
    return f"{url}{'&' if '?' in path else '?'}{query}"


@lru_cache(64)
def _is_http(url: str) -> bool:
    """True if a provider's base URL is an HTTP URL with a host and a usable port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _complete_url(base_url: str | None, provider: Provider) -> str | None:
    """Returns a provider's base URL with the suffix that a bare host lacks: Anthropic's own client
    takes one without `/v1`."""
    if not base_url:
        return None
    suffix = next((suffix for suffix in provider.base_url_names.values() if suffix), "")
    if suffix and _is_http(base_url) and not urlsplit(base_url).path.strip("/"):
        return join_url(base_url, suffix)
    return base_url


def _read_environment(provider: Provider, *environments: Mapping[str, str]) -> str | None:
    """Returns a provider's base URL from the first environment variable that is set, or None."""
    for environment in environments:
        for name, suffix in provider.base_url_names.items():
            if value := environment.get(name, "").strip().rstrip("/"):
                return _add_scheme(value, provider).removesuffix(suffix) + suffix
    return None


def _add_scheme(value: str, provider: Provider) -> str:
    """Returns a provider's base URL for `host`, `host:port` or `:port`, as in OLLAMA_HOST,
    completed from the record."""
    if "://" in value or not isinstance(provider.base_url, str):
        return value
    usual = urlsplit(provider.base_url)
    authority, slash, path = value.partition("/")
    if authority.startswith(":"):
        authority = f"{usual.hostname}{authority}"
    elif usual.port and not re.search(r":\d+$", authority):
        authority = f"{authority}:{usual.port}"
    return f"{usual.scheme}://{authority}{slash}{path}"
