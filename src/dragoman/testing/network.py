"""What a test may send over the network: nothing, unless it is asked for, recorded, or answered by
a scripted model.

`Network` decides where each request of a test goes. `Recordings` are the exchanges of one test,
made once with a real provider, then answered from, beside the test.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Awaitable, Callable, Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from dragoman import providers
from dragoman.codec.json_values import if_object
from dragoman.errors import DragomanError
from dragoman.request import HttpRequest
from dragoman.testing.scripted import ScriptedModel
from dragoman.testing.server import ScriptedServer
from dragoman.transport.base import Response
from dragoman.transport.exchange import Exchange, load_exchange, request_body
from dragoman.transport.player import Player
from dragoman.transport.recorder import Recorder
from dragoman.transport.redaction import public_body, public_url
from dragoman.transport.retry import RETRY_STATUSES

__all__ = [
    "ANY",
    "LOOPBACK",
    "Network",
    "Recordings",
    "RequestRefusedError",
    "Send",
    "folder_name",
    "placeholder_keys",
]

Send: TypeAlias = Callable[[HttpRequest], Awaitable[Response]]
"""How a request really goes."""

_DIFFERENCES = 40
"""Lines of a difference that are shown."""
_LONGEST = 80

ANY = "*"
"""Stands for every host."""
LOOPBACK = "loopback"
"""Stands for this machine."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class RequestRefusedError(DragomanError, AssertionError):
    """A test sent a request that it may not send, or that nothing recorded answers."""

    def __str__(self) -> str:
        return self.message


class Recordings:
    """The exchanges of a folder, each given once to the request that it was recorded for; or, with
    `record`, the making of them.

    Args:
        folder: of one test, most often; files are `0001.json` and on.
        record: whether requests go to the provider, and are written down.
        fresh: whether those that are kept replace what the folder holds.
        normalize: a request's body as JSON → what is compared of it, where some of it differs each time.
    """

    def __init__(
        self,
        folder: Path,
        *,
        record: bool = False,
        fresh: bool = True,
        normalize: Callable[[Any], Any] | None = None,
    ) -> None:
        self.folder = folder
        self.records = record
        self._new_folder = folder.with_name(f"{folder.name}.new") if record else None
        self._fresh = fresh
        self._normalize = normalize
        self._all = (
            [] if record else [load_exchange(file) for file in sorted(folder.glob("*.json"))]
        )
        self._remaining = list(self._all)

    async def send(self, request: HttpRequest, real: Send) -> Response:
        """Answers a request.

        Raises:
            RequestRefusedError: nothing that was recorded is left for it.
        """
        if self._new_folder is not None:
            return await Recorder(_Sender(real), self._new_folder).send(request)
        wanted = self._key(request.method, request.path, request_body(request))
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
        """Puts what was recorded into the folder, without attempts that were made again. Returns
        False if there was nothing."""
        files = [] if self._new_folder is None else sorted(self._new_folder.glob("*.json"))
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
            if exchange.status not in RETRY_STATUSES or keys[index] not in keys[index + 1 :]:
                number += 1
                file.rename(self.folder / f"{number:04d}.json")
        self.discard()
        return True

    def discard(self) -> None:
        """Forgets what was recorded and not kept."""
        if self._new_folder is not None:
            shutil.rmtree(self._new_folder, ignore_errors=True)

    def _key_of(self, exchange: Exchange) -> tuple[str, str, Any]:
        return self._key(exchange.method, exchange.url or "", exchange.request_body)

    def _key(self, method: str, url: str, body: Any) -> tuple[str, str, Any]:
        compared = public_body(body)
        return (
            method,
            public_url(url),
            self._normalize(compared) if self._normalize is not None else compared,
        )

    def _explain_unanswered(self, request: HttpRequest, wanted: tuple[str, str, Any]) -> str:
        what = f"{request.method} {public_url(request.path)}"
        again = "--dragoman-record=all records it anew"
        if not self._all:
            return f"nothing is recorded for {what} in {self.folder}: run with --dragoman-record=once, with a key"
        if any(self._key_of(exchange) == wanted for exchange in self._all):
            return f"{what} is sent more often than it was recorded in {self.folder}; {again}"
        if not self._remaining:
            return f"{what} is request {len(self._all) + 1}, and {self.folder} has {len(self._all)}; {again}"
        lines = _format_key(wanted)
        near = [_format_key(self._key_of(exchange)) for exchange in self._remaining]
        nearest = max(
            near,
            key=lambda recorded_lines: difflib.SequenceMatcher(
                None, recorded_lines, lines, autojunk=False
            ).ratio(),
        )
        difference = list(
            difflib.unified_diff(nearest, lines, "recorded", "sent", n=2, lineterm="")
        )
        more = (
            [f"… {len(difference) - _DIFFERENCES} lines more"]
            if len(difference) > _DIFFERENCES
            else []
        )
        shown = "\n".join([*difference[:_DIFFERENCES], *more])
        return f"{what} is not what was recorded in {self.folder}; {again}. The nearest that is left differs so:\n{shown}"


def folder_name(name: str) -> str:
    """Returns a test's name as the name of a folder, on every system; what has to be changed leaves
    a digest."""
    fit = re.sub(r"[^\w.=\[\]-]+", "_", name)
    if fit == name and len(name) <= _LONGEST:
        return name
    return f"{fit[:_LONGEST]}-{sha256(name.encode()).hexdigest()[:8]}"


class _Sender:
    """The real way, as a `Transport`."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def send(self, request: HttpRequest) -> Response:
        """See `Transport.send`."""
        return await self._send(request)

    async def close(self) -> None:
        """It is another's."""


def _format_key(key: tuple[str, str, Any]) -> list[str]:
    method, url, body = key
    text = (
        repr(body)
        if isinstance(body, bytes)
        else msgspec.json.format(msgspec.json.encode(body)).decode()
    )
    return [f"{method} {url}", *text.splitlines()]


class Network:
    """Decides where each request of a test goes.

    Args:
        hosts: where requests may go; see `ANY` and `LOOPBACK`.
        recordings: answer all of them, in place of their hosts.
    """

    def __init__(self, hosts: Collection[str] = (), recordings: Recordings | None = None) -> None:
        self.scripted: list[ScriptedModel] = []
        self.recordings = recordings
        self._hosts = {*hosts, *(_LOCAL if LOOPBACK in hosts else ())}
        self._refused: list[RequestRefusedError] = []

    async def send(self, request: HttpRequest, real: Send) -> Response:
        """Sends a request on its way, `real` or another.

        Raises:
            RequestRefusedError: it has none.
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
        """Returns the scripted server that a request goes to; of several the one with its wire
        and its model."""
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
        host = urlsplit(request.path).hostname or ""
        if self._hosts.isdisjoint({ANY, host}):
            raise RequestRefusedError(_explain_refusal(request, host))

    def check(self) -> None:
        """Raises the first refusal, which what was tested may have passed over."""
        if self._refused:
            raise self._refused[0]


def placeholder_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns a variable for each provider that has no key there: where nothing is sent, none is
    needed."""
    return {
        provider.key_names[-1]: "no-key-is-needed"
        for provider in providers.REGISTRY.providers()
        if provider.key_names and not any(environment.get(name) for name in provider.key_names)
    }


def _explain_refusal(request: HttpRequest, host: str) -> str:
    allow = f'"{LOOPBACK}"' if host in _LOCAL else f'"{host}"'
    return (
        f"a test may not send {request.method} {public_url(request.path)}. Give the agent a ScriptedModel "
        "(dragoman.testing, or the fixture scripted_model), mark the test with @pytest.mark.dragoman_record to record the "
        f"exchange once and replay it, or let it through with @pytest.mark.dragoman_network({allow})"
    )
