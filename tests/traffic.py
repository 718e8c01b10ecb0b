"""Recorded traffic: read from the folder beside the repository, or from `DRAGOMAN_TRAFFIC`. Nothing of it is committed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("DRAGOMAN_TRAFFIC") or Path(__file__).resolve().parents[2] / "shared" / "traffic")


class Exchange:
    """One recorded exchange."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = f"{path.parent.name}/{path.stem}"
        record: dict[str, Any] = json.loads(path.read_bytes())
        self.record = record
        self.vendor: str = record["vendor"]
        self.endpoint: str = record["endpoint"]
        self.framing: str = record["framing"]
        self.url: str = record["request"]["url"]
        self.request: dict[str, Any] | None = record["request"]["body"]
        self.request_headers: dict[str, str] = record["request"]["headers"] or {}
        self.status: int = record["response"]["status"]
        self.headers: dict[str, str] = {k.lower(): v for k, v in (record["response"]["headers"] or {}).items()}
        self.body: bytes = (record["response"]["body_text"] or "").encode()

    def __repr__(self) -> str:
        return self.id


@cache
def _load(folder: str) -> tuple[Exchange, ...]:
    return tuple(Exchange(path) for path in sorted((FOLDER / folder).glob("*.json")))


def exchanges(*folders: str) -> Iterator[Exchange]:
    """All exchanges of these folders; skips the test where the recordings are absent."""
    if not FOLDER.is_dir():
        pytest.skip(f"recorded traffic is absent: {FOLDER} (set DRAGOMAN_TRAFFIC)")
    for folder in folders:
        yield from _load(folder)
