"""What the profiles say of recorded requests: which accepted ones they would wrongly refuse, and
which refused ones they foresee."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import wires
from dragoman.errors import DragomanError
from dragoman.profiles import find_refusals, load_shipped
from dragoman.request import ModelRequest

__all__ = ["Recording", "find_recordings", "is_of_the_model", "predict"]

WIRES = {
    "anthropic": "anthropic",
    "cohere": "cohere",
    "google": "google",
    "mistral": "mistral",
    "openai_chat": "openai_chat",
    "openai_compatible": "openai_chat",
    "openai_responses": "openai_responses",
}
"""Folder of recordings → the wire that is spoken there. Routers are left out: their hosts decide."""
FAMILIES = {"vertex": "google", "z.ai": "zai", "azure": "openai", "bedrock-mantle": "openai"}
"""Vendor of recordings → the vendor in the table, where they differ."""
_PARAMETER = re.compile(
    r"not support|unsupported|not enabled|unknown variant `(image_url|file)`"
    r"|expected to be either text or image_url",
    re.IGNORECASE,
)
"""Errors that say that the model lacks something. Others are of a file, a schema, a key, a range."""


class Recording(NamedTuple):
    """A request to a model of the table, and how it was answered."""

    name: str
    vendor: str
    entry: str
    wire: str
    request: ModelRequest
    status: int
    answer: str


def find_recordings(folder: Path) -> Iterator[Recording]:
    """Yields the recorded chat requests whose model is in the table."""
    table = load_shipped()
    for name, wire_name in WIRES.items():
        wire = wires.get(wire_name)
        for path in sorted((folder / name).glob("*.json")):
            record = json.loads(path.read_bytes())
            asked, answered = record["request"], record["response"]
            body: Any = asked["body"]
            if not isinstance(body, dict) or answered["status"] not in (200, 400, 422):
                continue
            try:
                request = wire.load_request(body, path=asked["url"].partition("?")[0])
            except DragomanError:  # vectors, token counts
                continue
            if "stream" in asked["url"]:
                request = request.replace(stream=True)
            vendor = FAMILIES.get(record["vendor"], record["vendor"])
            entry = table.find_entry(vendor, request.model)
            if entry is None or not request.messages:
                continue
            text = answered["body_text"] or ""
            yield Recording(
                f"{name}/{path.stem}", vendor, entry, wire_name, request, answered["status"], text
            )


def predict(recording: Recording) -> tuple[str, ...]:
    """Returns what the model's profile says that it refuses of the request."""
    profile = load_shipped().profile(recording.vendor, recording.entry)
    return find_refusals(recording.request, profile, wire=recording.wire)


def is_of_the_model(recording: Recording) -> bool:
    """True if the request was refused since the model lacks something that it asks for."""
    is_schema = re.search(r"tools\.\d+\.custom", recording.answer) is not None
    return recording.status != 200 and not is_schema and bool(_PARAMETER.search(recording.answer))
