"""Recordings as JSON, for the command line and the page: in a list, and one with what its answer
decodes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dragoman.codec.json_values import if_object
from dragoman.errors import DecodeError, SettingsError
from dragoman.json_bytes import Json
from dragoman.proxy.answer_names import decode_answer
from dragoman.proxy.drift import find_drift
from dragoman.proxy.recordings import Recording, load_recording
from dragoman.proxy.wire_of import find_wire
from dragoman.transport.exchange import Exchange
from dragoman.transport.exchange_file import ExchangeFolder

__all__ = ["describe", "find_file", "load_all", "summarize"]

_MOST_SHOWN = 2**20
"""Bytes of a body that are shown and decoded."""


def load_all(
    folder: Path, on_problem: Callable[[str], object]
) -> Iterator[tuple[Recording, Exchange]]:
    """Yields the recordings in a folder, in order. `on_problem` is called with the reason for which
    one is left out."""
    for file in ExchangeFolder(folder).files():
        try:
            yield load_recording(file)
        except DecodeError as error:
            on_problem(str(error))


def find_file(folder: Path, recording_id: str) -> Path:
    """Returns the file of a recording. Numbers may lack their zeros.

    Raises:
        SettingsError: there is none.
    """
    names = {file.stem: file for file in ExchangeFolder(folder).files()}
    # People write 12 for 0012.
    for name in (recording_id, recording_id.zfill(4)):
        if name in names:
            return names[name]
    raise SettingsError(
        f"{folder} has no recording {recording_id!r:.80}; dragoman proxy list shows all"
    )


def summarize(recording: Recording, exchange: Exchange) -> Json:
    """Returns a recording as it stands in a list."""
    parts = urlsplit(exchange.url or "")
    route = find_wire(exchange.method, exchange.url or "")
    return {
        "id": recording.id,
        "method": exchange.method,
        "url": f"{parts.netloc}{parts.path}",
        "status": exchange.status,
        "model": if_object(exchange.request_body).get("model") or "",
        "wire": route.wire if route else "",
        "bytes": len(exchange.body),
        "cut": exchange.cut_after is not None,
    }


def describe(recording: Recording, exchange: Exchange) -> Json:
    """Returns a whole recording: request, answer, the messages that it decodes to, and what of it
    is not known."""
    findings = find_drift(exchange)
    return {
        **summarize(recording, exchange),
        "request": _show_body(exchange.request_body),
        "headers": dict(exchange.headers),
        "answer": _show_body(exchange.body),
        "decoded": _decode(exchange),
        "drift": None
        if findings is None
        else [{"kind": problem, "what": path} for problem, path in findings],
    }


def _decode(exchange: Exchange) -> Json | None:
    """Returns what an answer decodes to, or None if it is no answer of a model."""
    route = find_wire(exchange.method, exchange.url or "")
    if route is None or route.purpose != "chat" or len(exchange.body) > _MOST_SHOWN:
        return None
    try:
        messages, errors = decode_answer(route.wire, exchange.body)
    except Exception as error:  # noqa: BLE001 - what is at fault is shown
        messages, errors = [], [error]
    return {"messages": messages, "errors": [str(error) for error in errors]}


def _show_body(body: Any) -> Any:
    """Returns a body as JSON has it: text as it is, other bytes as their number."""
    if not isinstance(body, bytes):
        return body
    if len(body) > _MOST_SHOWN:
        return f"{len(body)} bytes"
    try:
        return body.decode()
    except UnicodeDecodeError:
        return f"{len(body)} bytes that are no text"
