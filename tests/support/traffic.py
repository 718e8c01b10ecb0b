"""Recorded traffic: read from the folder beside the repository, or from `DRAGOMAN_TRAFFIC`. Nothing
of it is committed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dragoman.event import Event
from dragoman.message import Message
from dragoman.request import ModelRequest
from dragoman.wires import Wire

FOLDER = Path(
    os.environ.get("DRAGOMAN_TRAFFIC") or Path(__file__).resolve().parents[3] / "shared" / "traffic"
)
WIRES = {
    "anthropic": "anthropic",
    "cohere": "cohere",
    "cohere_v1": "cohere",
    "google": "google",
    "google_interactions": "google_interactions",
    "mistral": "mistral",
    "ollama_native": "ollama",
    "ollama_openai": "openai_chat",
    "openai_chat": "openai_chat",
    "openai_compatible": "openai_chat",
    "openai_embeddings": "openai_chat",
    "openai_responses": "openai_responses",
    "openrouter": "openai_chat",
    "together": "openai_chat",
}
"""Folder of recordings → the wire that its providers speak."""


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
        self.headers: dict[str, str] = {
            k.lower(): v for k, v in (record["response"]["headers"] or {}).items()
        }
        self.body: bytes = (record["response"]["body_text"] or "").encode()

    def __repr__(self) -> str:
        return self.id


def decode(wire: Wire, body: bytes, cuts: Sequence[int] = ()) -> list[Event]:
    """The events of a response that arrives cut at these offsets."""
    decoder = wire.decoder()
    events: list[Event] = []
    for start, end in zip((0, *cuts), (*cuts, len(body)), strict=True):
        events += decoder.feed(body[start:end])
    return [*events, *decoder.close()]


def through_storage(request: ModelRequest) -> ModelRequest:
    """The request, its messages written to storage and read again."""
    return request.replace(
        messages=[Message.from_json(message.to_json()) for message in request.messages]
    )


@cache
def _load(folder: str) -> tuple[Exchange, ...]:
    return tuple(Exchange(path) for path in sorted((FOLDER / folder).glob("*.json")))


def exchanges(*folders: str) -> Iterator[Exchange]:
    """All exchanges of these folders; skips the test where the recordings are absent."""
    if not FOLDER.is_dir():
        pytest.skip(f"recorded traffic is absent: {FOLDER} (set DRAGOMAN_TRAFFIC)")
    for folder in folders:
        yield from _load(folder)
