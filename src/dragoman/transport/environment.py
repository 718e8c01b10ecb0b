"""Settings of the environment for the network: proxies and certificate authorities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.errors import SettingsError
from dragoman.runtime import is_loopback

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["load_certificates", "find_proxies", "find_proxy"]


def find_proxies() -> Mapping[str, str]:
    """Returns the proxies by scheme from the environment: `HTTP_PROXY`, `HTTPS_PROXY` and
    `ALL_PROXY`, and under `no` the hosts without one from `NO_PROXY`, in either case."""
    from urllib.request import getproxies_environment

    return getproxies_environment()


def find_proxy(url: str, proxies: Mapping[str, str]) -> str | None:
    """Returns the proxy for a URL, or None for a direct connection. This machine's own addresses
    never use one.

    Raises:
        SettingsError: a proxy that does not speak HTTP.
    """
    if not proxies:
        return None
    target = urlsplit(url)
    proxy = proxies.get(target.scheme) or proxies.get("all")
    if not proxy or is_loopback(target.hostname or ""):
        return None
    from urllib.request import proxy_bypass

    if proxy_bypass(target.netloc.rpartition("@")[2]):
        return None
    scheme, separator, _ = proxy.partition("://")
    if not separator:
        return f"http://{proxy}"
    if scheme not in {"http", "https"}:
        raise SettingsError(
            f"proxies that speak {scheme} cannot be used:"
            f" name an HTTP proxy in {target.scheme.upper()}_PROXY, or the host in NO_PROXY"
        )
    return proxy


def load_certificates(environment: Mapping[str, str]) -> SSLContext | None:
    """Returns the certificates of `SSL_CERT_FILE` and `SSL_CERT_DIR`, or else of
    `REQUESTS_CA_BUNDLE`; None: the system's own.

    Raises:
        SettingsError: a file that is absent or holds no certificates.
    """
    bundle = environment.get("REQUESTS_CA_BUNDLE")
    file, folder = environment.get("SSL_CERT_FILE"), environment.get("SSL_CERT_DIR")
    if not file and not folder and bundle:
        file, folder = (None, bundle) if Path(bundle).is_dir() else (bundle, None)
    if not file and not folder:
        return None
    return _make_context(file or None, folder or None, _file_version(file), _file_version(folder))


@lru_cache(8)
def _make_context(
    file: str | None, folder: str | None, *versions: tuple[int, ...] | None
) -> SSLContext:
    """Returns the TLS context of the certificates that the environment names. Cached, because
    reading a usual bundle takes 25 ms."""
    # Only a part of the cache's key: another file under the same name is read again.
    del versions
    import ssl

    try:
        context = ssl.create_default_context(cafile=file, capath=folder)
    except OSError as error:
        raise SettingsError(
            f"no certificates could be read from {file or folder} ({error.strerror or error}):"
            " mend SSL_CERT_FILE, SSL_CERT_DIR or REQUESTS_CA_BUNDLE"
        ) from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def _file_version(path: str | None) -> tuple[int, ...] | None:
    """Returns values that change with a file or folder of certificates; None if it does not
    exist."""
    try:
        status = Path(path).stat() if path else None
    except OSError:
        return None
    return status and (status.st_mtime_ns, status.st_size, status.st_ino)
