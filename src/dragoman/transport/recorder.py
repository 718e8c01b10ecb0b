"""Records exchanges into files that `Player` plays, without keys.

`Recorder.send` returns the response wrapped in a `_Recording`, which collects what the caller
reads. At the end of the body, at an error, or when it is closed, it calls `Recorder.write` once.
Secrets are removed twice: by name from headers, query and fields, and then by value from the
finished text, because a response may repeat a key. Files are created exclusively, so that several
processes can record into one folder.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import ProviderError
from dragoman.request import HttpRequest
from dragoman.transport.base import Response, Transport
from dragoman.transport.exchange import request_body
from dragoman.transport.redaction import (
    find_secrets,
    hide_secrets,
    is_secret,
    public_body,
    public_url,
)

__all__ = ["Recorder"]

_FRAMINGS = {"text/event-stream": "sse", "application/x-ndjson": "ndjson"}
_TRANSFER_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers about the transfer. The recorded body is decompressed and whole."""


class Recorder:
    """A `Transport` that sends by way of another one and writes each exchange to a file, when the
    answer ends.

    Headers and query parameters that hold keys, passwords, cookies or names of accounts are left
    out; keys in a URL's path and in fields such as `api_key` are replaced by `***`, and so is each
    of these wherever a body repeats it. What an answer says is not read: look at it before you
    publish it.

    Args:
        transport: what sends the requests. Inside a `Retry` each attempt is recorded, around it only the last.
        folder: is made where it does not exist; files are named `0001.json` and on, after those that are there.
        notes: further keys for each file, such as `wire` or `vendor`.
    """

    def __init__(
        self, transport: Transport, folder: Path | str, notes: Mapping[str, str] | None = None
    ) -> None:
        """Creates a transport that records exchanges to a folder."""
        self._transport = transport
        self._folder = Path(folder)
        self._notes = dict(notes or {})

    async def send(self, request: HttpRequest) -> Response:
        """Sends a request and records the exchange. See `Transport.send`. A request without an
        answer is not recorded, nor one that asks for a token."""
        response = await self._transport.send(request)
        return response if request.secret else _Recording(response, request, self)

    async def close(self) -> None:
        """Closes the transport."""
        await self._transport.close()

    def write(self, request: HttpRequest, response: Response, body: bytes, *, cut: bool) -> None:
        """Writes one recorded exchange to the next free file.

        Args:
            request: what was sent.
            response: what was answered.
            body: what of its body arrived.
            cut: whether the connection broke after that.
        """
        request_json = request_body(request)
        framing = _FRAMINGS.get(
            response.headers.get("content-type", "").partition(";")[0].strip(), "json"
        )
        record = {
            **self._notes,
            "provenance": "recorded",
            "framing": framing,
            "request": {
                "method": request.method,
                "url": public_url(request.path),
                "headers": _public_headers(request.headers),
                **_body_fields("body", public_body(request_json)),
            },
            "response": {
                "status": response.status,
                "headers": _public_headers(response.headers),
                **_body_fields("body_text", body),
                **({"cut": True} if cut else {}),
            },
        }
        # Masked in the finished text, because a body may repeat a key anywhere.
        text = msgspec.json.format(msgspec.json.encode(record))
        text = hide_secrets(text, find_secrets(request.path, request.headers, request_json))
        self._folder.mkdir(parents=True, exist_ok=True)
        _write_file(self._folder, text)


class _Recording:
    """A response that is written to a file when it ends, once."""

    def __init__(self, response: Response, request: HttpRequest, recorder: Recorder) -> None:
        """Wraps a response whose body is recorded while it is read."""
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._request = request
        self._recorder: Recorder | None = recorder
        self._pieces: list[bytes] = []

    async def read(self) -> bytes:
        """Reads and records the next bytes. See `Response.read`."""
        try:
            data = await self._response.read()
        except ProviderError:
            self._end(cut=True)
            raise
        if data:
            self._pieces.append(data)
        else:
            self._end()
        return data

    async def close(self) -> None:
        """See `Response.close`. What was not read is not recorded, and counts as cut."""
        await self._response.close()
        self._end(cut=True)

    def _end(self, *, cut: bool = False) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.write(self._request, self._response, b"".join(self._pieces), cut=cut)


def _public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns headers as they are recorded, without secrets and without those about the
    transfer."""
    return {
        name: value
        for name, value in ((name.lower(), value) for name, value in headers.items())
        if name not in _TRANSFER_HEADERS and not is_secret(name)
    }


def _body_fields(name: str, body: Any) -> dict[str, Any]:
    """Returns the fields with which the recorder writes a body: JSON or text under `name`,
    otherwise base64."""
    if not isinstance(body, bytes):
        return {name: body}
    try:
        return {"body_text": body.decode(), **({} if name == "body_text" else {name: None})}
    except UnicodeDecodeError:
        return {name: None, "body_base64": base64.b64encode(body).decode()}


def _write_file(folder: Path, text: bytes) -> None:
    """Writes a recording to a file under the next free number, also if other processes write to the
    folder."""
    number = len(list(folder.glob("*.json")))
    while True:
        number += 1
        try:
            with (folder / f"{number:04d}.json").open("xb") as file:
                file.write(text)
        except FileExistsError:
            continue
        return
