"""Records exchanges into files that `Player` plays, without keys.

`Recorder.send` returns the response wrapped in a `_Recording`, which collects what the caller
reads. At the end of the body, at an error, or when it is closed, it calls `Recorder.write` once.
What a file holds, and how several processes record into one folder, is in `exchange_file.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dragoman.errors import ProviderError
from dragoman.request import HttpRequest
from dragoman.transport.base import Response, Transport
from dragoman.transport.exchange_file import ExchangeFolder, format_exchange

__all__ = ["Recorder"]


class Recorder:
    """A `Transport` that sends by way of another one and writes each exchange to a file, when the
    answer ends.

    Of headers only those that are known to hold no key and no name of an account are written, and
    query parameters that hold one are left out; keys in a URL's path and in fields such as `api_key` are replaced by `***`, and so is each
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
        text = format_exchange(
            request, response.status, response.headers, body, cut=cut, notes=self._notes
        )
        ExchangeFolder(self._folder).add(text)


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
