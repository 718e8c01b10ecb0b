"""What a test may send over the network: nothing, unless it is asked for, recorded, or answered by a scripted model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from dragoman import providers
from dragoman.codec.json_values import if_object
from dragoman.request import HttpRequest
from dragoman.testing.recordings import Recordings, RequestRefusedError, Send
from dragoman.testing.scripted import ScriptedModel
from dragoman.testing.server import ScriptedServer
from dragoman.transport.base import Response
from dragoman.transport.exchange import request_body
from dragoman.transport.redaction import public_url

__all__ = ["ANY", "LOOPBACK", "Network", "placeholder_keys"]

ANY = "*"
"""Stands for every host."""
LOOPBACK = "loopback"
"""Stands for this machine."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


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
        if (server := self._scripted(request)) is not None:
            return await server.send(request)
        try:
            if self.recordings is not None:
                return await self.recordings.send(request, real)
            self._let_through(request)
        except RequestRefusedError as refused:
            self._refused.append(refused)
            raise
        return await real(request)

    def _scripted(self, request: HttpRequest) -> ScriptedServer | None:
        """What stands in the place where a request goes; of several the one with its wire and its model."""
        there = [model for model in self.scripted if request.path.startswith(str(model.base_url))]
        if not there:
            return None
        name = if_object(request_body(request)).get("model")

        def fits(model: ScriptedModel) -> tuple[bool, bool]:
            speaks = model.server is not None and model.server.is_chat(request.path)
            return speaks, name == model.chat_model or f"/{model.chat_model}:" in request.path

        return max(there, key=fits).server

    def _let_through(self, request: HttpRequest) -> None:
        host = urlsplit(request.path).hostname or ""
        if self._hosts.isdisjoint({ANY, host}):
            raise RequestRefusedError(_advice(request, host))

    def check(self) -> None:
        """Raises the first refusal, which what was tested may have passed over."""
        if self._refused:
            raise self._refused[0]


def placeholder_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """A variable for each provider that has no key there: where nothing is sent, none is needed."""
    return {
        provider.key_names[-1]: "no-key-is-needed"
        for provider in providers.REGISTRY.providers()
        if provider.key_names and not any(environment.get(name) for name in provider.key_names)
    }


def _advice(request: HttpRequest, host: str) -> str:
    allow = f'"{LOOPBACK}"' if host in _LOCAL else f'"{host}"'
    return (
        f"a test may not send {request.method} {public_url(request.path)}. Give the agent a ScriptedModel "
        "(dragoman.testing, or the fixture scripted_model), mark the test with @pytest.mark.dragoman_record to record the "
        f"exchange once and replay it, or let it through with @pytest.mark.dragoman_network({allow})"
    )
