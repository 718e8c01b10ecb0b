"""How to install an extra, worded for the way in which dragoman itself was installed.

dragoman may come from a checkout, a wheel or an index of packages. `pip install 'dragoman[sql]'` is
right for the last alone: elsewhere that name may belong to nobody, or to somebody else.
"""

from __future__ import annotations

import json
from functools import cache
from urllib.parse import unquote, urlsplit

__all__ = ["extra_hint"]


def extra_hint(extra: str) -> str:
    """A command that installs an extra, such as `pip install '.[sql]'` with the folder to run it in."""
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
    """Where dragoman was installed from (PEP 610); `None`: from an index, or nobody knows."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        record = distribution("dragoman").read_text("direct_url.json")
        return str(json.loads(record)["url"]) if record else None
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        return _checkout()


def _checkout() -> str | None:
    """The checkout that this file is in, where dragoman runs without being installed."""
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    return root.as_uri() if (root / "pyproject.toml").is_file() else None
