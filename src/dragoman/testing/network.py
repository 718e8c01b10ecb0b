"""The network of a test: requests are refused unless the test allows, records or scripts them.

`Network` decides what happens to each request of a test: a scripted model answers, a recording
answers, the real transport sends it, or `RequestRefusedError` is raised. `Recordings` are the
exchanges of one test with a real provider, in files beside the test. A request gets the recording
with the same method, URL and body; each recording answers once.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Awaitable, Callable, Collection
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.errors import DragomanError
from dragoman.request import HttpRequest
from dragoman.testing.scripted import ScriptedModel
from dragoman.testing.server import ScriptedServer
from dragoman.transport.base import Response
from dragoman.transport.exchange import Exchange, load_exchange, request_body
from dragoman.transport.matching import ExchangeKey, explain_difference, find_nearest, make_key
from dragoman.transport.player import Player
from dragoman.transport.recorder import Recorder
from dragoman.transport.redaction import public_url
from dragoman.transport.retry import RETRY_STATUSES

__all__ = [
    "ANY",
    "LOOPBACK",
    "Network",
    "Recordings",
    "RequestRefusedError",
    "Send",
    "folder_name",
]

Send: TypeAlias = Callable[[HttpRequest], Awaitable[Response]]
"""Sends a request to its real address."""

_LONGEST = 80

ANY = "*"
"""Stands for every host."""
LOOPBACK = "loopback"
"""Stands for this machine."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class RequestRefusedError(DragomanError, AssertionError):
    """A test sent a request that is neither allowed nor recorded."""

    def __str__(self) -> str:
        return self.message


class Recordings:
    """The recorded exchanges in a folder, each of which answers one request, or a new recording of
    them.

    Args:
        folder: usually one per test. Files are named `0001.json` and so on.
        record: send requests to the provider and record them.
        fresh: new recordings replace the folder's.
        normalize: maps a request's JSON body to what is compared of it, if parts of it vary.
    """

    def __init__(
        self,
        folder: Path,
        *,
        record: bool = False,
        fresh: bool = True,
        normalize: Callable[[Any], Any] | None = None,
    ) -> None:
        """Creates the recorded exchanges of a test, in a folder."""
        self.folder = folder
        self.records = record
        self._new_folder = folder.with_name(f"{folder.name}.new") if record else None
        self._fresh = fresh
        self._normalize = normalize
        self._all: list[Exchange] = []
        if not record:
            self._all = [load_exchange(file) for file in sorted(folder.glob("*.json"))]
        self._remaining = list(self._all)

    async def send(self, request: HttpRequest, real: Send) -> Response:
        """Answers a request from the recordings, or sends and records it.

        Raises:
            RequestRefusedError: no unused recording matches it.
        """
        if self._new_folder is not None:
            return await Recorder(_Sender(real), self._new_folder).send(request)
        wanted = self._exchange_key(request.method, request.path, request_body(request))
        for exchange in self._remaining:
            if self._key_of(exchange) == wanted:
                self._remaining.remove(exchange)
                # The last attempt got this status, so it must not be retried now.
                if exchange.status in RETRY_STATUSES:
                    headers = {**exchange.headers, "x-should-retry": "false"}
                    exchange = msgspec.structs.replace(exchange, headers=headers)
                return await Player([exchange]).send(request)
        raise RequestRefusedError(self._explain_unanswered(request, wanted))

    def save(self) -> bool:
        """Moves the new recordings to the folder, without attempts that were retried. Returns False
        if there are none."""
        if self._new_folder is None:
            return False
        files = sorted(self._new_folder.glob("*.json"))
        if not files:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._fresh:
            for old in self.folder.glob("*.json"):
                old.unlink()
        exchanges = [load_exchange(file) for file in files]
        keys = [self._key_of(exchange) for exchange in exchanges]
        number = len(list(self.folder.glob("*.json")))
        for index, (file, exchange) in enumerate(zip(files, exchanges, strict=True)):
            # A refusal that was retried is not kept: a replay must not wait and try again.
            if exchange.status not in RETRY_STATUSES or keys[index] not in keys[index + 1 :]:
                number += 1
                file.rename(self.folder / f"{number:04d}.json")
        self.discard()
        return True

    def discard(self) -> None:
        """Deletes new recordings that were not saved."""
        if self._new_folder is not None:
            shutil.rmtree(self._new_folder, ignore_errors=True)

    def _key_of(self, exchange: Exchange) -> ExchangeKey:
        return self._exchange_key(exchange.method, exchange.url or "", exchange.request_body)

    def _exchange_key(self, method: str, url: str, body: Any) -> ExchangeKey:
        """Returns the key by which a recorded exchange is found."""
        key = make_key(method, url, body)
        return key if self._normalize is None else key._replace(body=self._normalize(key.body))

    def _explain_unanswered(self, request: HttpRequest, wanted: ExchangeKey) -> str:
        """Returns why no recording matches a request, with a diff to the nearest one."""
        what = f"{request.method} {public_url(request.path)}"
        again = "--dragoman-record=all records it again"
        if not self._all:
            return f"nothing is recorded for {what} in {self.folder}: run with --dragoman-record=once, with a key"
        if any(self._key_of(exchange) == wanted for exchange in self._all):
            return f"{what} is sent more often than it was recorded in {self.folder}; {again}"
        if not self._remaining:
            return f"{what} is request {len(self._all) + 1}, and {self.folder} has {len(self._all)}; {again}"
        lines = wanted.format_lines()
        near = [self._key_of(exchange).format_lines() for exchange in self._remaining]
        difference = explain_difference(near[find_nearest(lines, near)], lines)
        lines_shown = "\n".join(difference)
        return f"{what} is not what was recorded in {self.folder}; {again}. The nearest unused recording differs:\n{lines_shown}"


def folder_name(name: str) -> str:
    """Returns a test's name as a folder name of recordings for every system. Names that have to be
    changed get a digest, so that they stay distinct."""
    # Characters that Windows allows in file names.
    fit = re.sub(r"[^\w.=\[\]-]+", "_", name)
    if fit == name and len(name) <= _LONGEST:
        return name
    return f"{fit[:_LONGEST]}-{sha256(name.encode()).hexdigest()[:8]}"


class _Sender:
    """The real transport of a request, as a `Transport`."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def send(self, request: HttpRequest) -> Response:
        """See `Transport.send`."""
        return await self._send(request)

    async def close(self) -> None:
        """Does nothing: the transport belongs to its agent."""


class Network:
    """Decides where each request of a test goes.

    Args:
        hosts: hosts that requests may reach; see `ANY` and `LOOPBACK`.
        recordings: answer all requests in place of their hosts.
    """

    def __init__(self, hosts: Collection[str] = (), recordings: Recordings | None = None) -> None:
        """Creates the network of a test, which replays recordings and reaches only these hosts."""
        self.scripted: list[ScriptedModel] = []
        self.recordings = recordings
        self._hosts = set(hosts)
        if LOOPBACK in hosts:
            self._hosts |= _LOCAL
        self._refused: list[RequestRefusedError] = []

    async def send(self, request: HttpRequest, real: Send) -> Response:
        """Answers a request by a scripted model or a recording, or sends it with `real`.

        Raises:
            RequestRefusedError: the test allows none of these.
        """
        if (server := self._find_scripted(request)) is not None:
            return await server.send(request)
        try:
            if self.recordings is not None:
                return await self.recordings.send(request, real)
            self._check_host(request)
        except RequestRefusedError as refused:
            self._refused.append(refused)
            raise
        return await real(request)

    def _find_scripted(self, request: HttpRequest) -> ScriptedServer | None:
        """Returns the scripted server for a request, or None. Of several at one address it is the
        one with the same API and model."""
        candidates = [
            model for model in self.scripted if request.path.startswith(str(model.base_url))
        ]
        if not candidates:
            return None
        name = if_object(request_body(request)).get("model")

        def fits(model: ScriptedModel) -> tuple[bool, bool]:
            speaks = model.server is not None and model.server.is_chat(request.path)
            return speaks, name == model.chat_model or f"/{model.chat_model}:" in request.path

        return max(candidates, key=fits).server

    def _check_host(self, request: HttpRequest) -> None:
        """Raises `RequestRefusedError` if the test does not allow the request's host."""
        host = urlsplit(request.path).hostname or ""
        if self._hosts.isdisjoint({ANY, host}):
            raise RequestRefusedError(_explain_refusal(request, host))

    def check(self) -> None:
        """Raises the first refusal, in case the tested code swallowed it."""
        if self._refused:
            raise self._refused[0]


def _explain_refusal(request: HttpRequest, host: str) -> str:
    """Returns the message of a refused request: three ways to allow it."""
    allow = LOOPBACK if host in _LOCAL else host
    return (
        f"a test may not send {request.method} {public_url(request.path)}. Give the agent a ScriptedModel "
        "(dragoman.testing, or the fixture scripted_model), mark the test with @pytest.mark.dragoman_record to record the "
        f'exchange once and replay it, or allow it with @pytest.mark.dragoman_network("{allow}")'
    )
