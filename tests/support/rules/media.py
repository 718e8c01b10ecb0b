"""Media by their bytes: what kinds a target takes."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Iterator

__all__ = ["base64_problems", "data_problems"]


def data_problems(url: str, kinds: Collection[str]) -> Iterator[str]:
    """Of a URL: one that holds data must hold it in base64, and be of these media types; any other
    must be on the web."""
    if not url.startswith("data:"):
        if not url.startswith(("https://", "http://", "gs://")):
            yield f"{url!r:.60} is no URL of the web"
        return
    head, comma, text = url.removeprefix("data:").partition(";base64,")
    if head not in kinds:
        yield f"data of {head!r:.60} are none of {', '.join(kinds)}"
    if not comma:
        yield f"{url!r:.60} holds no base64"
    yield from base64_problems(text)


def base64_problems(text: str) -> Iterator[str]:
    """Of base64 that must hold something."""
    try:
        if not b64decode(text, validate=True):
            yield "the data are empty"
    except ValueError:
        yield f"{text!r:.60} is no base64"
