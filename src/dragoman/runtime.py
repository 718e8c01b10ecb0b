"""The process that dragoman runs in: names that load late, its event loop, its installation, its
machine; new ids and the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from os import urandom
from typing import TYPE_CHECKING, Any

from dragoman.errors import SettingsError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = [
    "new_id",
    "now",
    "LOOPBACK",
    "extra_hint",
    "is_loopback",
    "lazy",
    "running_loop",
]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine, as they stand in URLs."""


def lazy(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a package that loads names late. `modules`: public name to the
    module that has it, below the package."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return load


def running_loop() -> AbstractEventLoop:
    """Returns the running event loop of asyncio.

    Raises:
        SettingsError: there is none, or another library's.
    """
    from asyncio import get_running_loop

    try:
        return get_running_loop()
    except RuntimeError:
        raise SettingsError(
            "dragoman works on asyncio, and none of its event loops runs here: start it by asyncio.run(); under trio, call "
            "the synchronous methods in a thread: await trio.to_thread.run_sync(agent.send_sync, prompt)"
        ) from None


def extra_hint(extra: str) -> str:
    """Returns a command that installs an extra, such as `pip install '.[sql]'` with the folder to
    run it in."""
    from urllib.parse import unquote, urlsplit

    # `dragoman[sql]` is right only for an installation from an index: elsewhere that name may
    # belong to nobody, or to somebody else.
    url = _direct_url()
    if url is None:
        return f"pip install 'dragoman[{extra}]'"
    path = unquote(urlsplit(url).path)
    if path.endswith((".whl", ".tar.gz")):
        return f"pip install '{path if urlsplit(url).scheme == 'file' else url}[{extra}]'"
    if urlsplit(url).scheme == "file":
        return f"pip install '.[{extra}]' in {path}"
    return f"pip install 'dragoman[{extra}] @ {url}'"


@cache
def _direct_url() -> str | None:
    """Returns the URL from which dragoman was installed (PEP 610), or None if from an index or
    unknown."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        record = distribution("dragoman").read_text("direct_url.json")
        return str(json.loads(record)["url"]) if record else None
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        return _find_checkout()


def _find_checkout() -> str | None:
    """Returns the checkout that this file is in, where dragoman runs without being installed."""
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():
        return root.as_uri()
    return None


def is_loopback(host: str) -> bool:
    """True if at runtime a host's name or address is this machine's own, which no other machine can
    reach."""
    from ipaddress import ip_address

    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


def new_id() -> str:
    """Returns a fresh id for a message, a call or a run."""
    return urandom(16).hex()


def now() -> datetime:
    """Returns the time, in UTC."""
    return datetime.now(UTC)
