"""A transport that answers from recordings: no network, no key, the same every time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, Self

from dragoman.errors import ProviderConnectionError, SettingsError, StreamCutError
from dragoman.request import HttpRequest
from dragoman.transport.base import Response
from dragoman.transport.exchange import Exchange, load_exchange
from dragoman.transport.redaction import public_url

__all__ = ["Player"]


class Player:
    """A `Transport` that gives each recorded answer once.

    ```python
    player = Player([Exchange(status=429), Exchange(body=b'data: {"choices": …}', chunks=7)])
    agent = Agent("openai:gpt-5", transport=player, api_key="none")
    ```

    Args:
        answers: in the order in which they are given. An exception among them is raised in its turn.
        match: `order`: the next one, whatever the request; `request`: the first one left whose method, URL and body are
            those of the request (see `Exchange.fits`).

    Attributes:
        requests: what was sent so far.
    """

    def __init__(
        self,
        answers: Iterable[Exchange | Exception],
        *,
        match: Literal["order", "request"] = "order",
    ) -> None:
        """Creates a transport that plays recorded exchanges."""
        self.requests: list[HttpRequest] = []
        self._left = list(answers)
        self._match = match

    @classmethod
    def load(cls, *paths: Path | str, match: Literal["order", "request"] = "request") -> Self:
        """Makes a player of recorded files, and all `*.json` of folders in the order of their
        names.

        Raises:
            DecodeError: a file that is no recording.
        """
        files = [
            file
            for path in map(Path, paths)
            for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])
        ]
        return cls([load_exchange(file) for file in files], match=match)

    async def send(self, request: HttpRequest) -> Response:
        """Answers a request with the recording that the player has for it. See `Transport.send`.

        Raises:
            SettingsError: no recorded answer is left for this request.
        """
        self.requests.append(request)
        # Exceptions are raised in their turn, whatever the request.
        for position, answer in enumerate(self._left):
            if self._match == "order" or isinstance(answer, Exception) or answer.fits(request):
                del self._left[position]
                if isinstance(answer, Exception):
                    raise answer
                return _PlayedResponse(answer)
        raise SettingsError(
            f"no recorded answer is left for {request.method} {public_url(request.path)}, request {len(self.requests)}"
            f" ({len(self._left)} recordings do not fit): record it, or play another recording"
        )

    async def close(self) -> None:
        """Does nothing: no connection is open."""


class _PlayedResponse:
    """A response from a recording."""

    def __init__(self, exchange: Exchange) -> None:
        """Creates the response with which the player plays a recorded exchange."""
        self.status = exchange.status
        self.headers: Mapping[str, str] = exchange.headers
        self._pieces = iter(exchange.split_body())
        self._cut = exchange.cut_after is not None
        self._closed = False

    async def read(self) -> bytes:
        """Plays the next bytes of a recorded body. See `Response.read`."""
        if self._closed:
            raise ProviderConnectionError("the answer was closed before this read: read it first")
        piece = next(self._pieces, b"")
        if not piece and self._cut:
            raise StreamCutError("the recorded connection was cut here")
        return piece

    async def close(self) -> None:
        """See `Response.close`."""
        self._closed = True
