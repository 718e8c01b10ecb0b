"""How an API makes an answer in the background, as data: a wire that has it holds one as
`background`, and `model.background_response` reads such answers."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import msgspec

from dragoman.json_bytes import Json, JsonMap
from dragoman.request import HttpRequest

__all__ = ["UNFINISHED", "BackgroundForm"]

UNFINISHED = ("queued", "in_progress")
"""Statuses of an answer that is still being made."""


class BackgroundForm(msgspec.Struct, frozen=True, kw_only=True):
    """The requests about an answer that is made in the background."""

    path: str
    """Path under which answers are kept, each by its id."""
    after: str
    """Parameter of a stream that goes on: the place of the last event that was read."""
    begin: Callable[[JsonMap], Json]
    """An unfinished answer → the event of a stream that tells of it."""

    def dump_poll(self, answer_id: str) -> HttpRequest:
        """Returns the request for a background answer as far as it is."""
        return HttpRequest(f"{self.path}/{quote(answer_id, safe='')}", method="GET")

    def dump_resume(self, answer_id: str, position: int | str) -> HttpRequest:
        """Returns the request for the events of a background answer behind a place."""
        http = self.dump_poll(answer_id)
        query = f"stream=true&{self.after}={quote(str(position), safe='')}"
        return msgspec.structs.replace(http, path=f"{http.path}?{query}")

    def dump_stop(self, answer_id: str) -> HttpRequest:
        """Returns the request that ends a background answer."""
        return HttpRequest(f"{self.dump_poll(answer_id).path}/cancel", body={})
