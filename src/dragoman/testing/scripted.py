"""A model for tests of one's own: it says what the test says, by any provider's wire, and notes what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from hashlib import sha256
from typing import Any, Self

import msgspec

from dragoman import wires
from dragoman.arguments import expect
from dragoman.capability import Capability
from dragoman.errors import DragomanError, SettingsError
from dragoman.event import Event
from dragoman.message import Role
from dragoman.model.defaults import resolve
from dragoman.providers.provider import Provider
from dragoman.request import EmbeddingsRequest, HttpRequest, ModelRequest
from dragoman.result import Vector
from dragoman.runs.log import RunLog
from dragoman.testing.outline import Source, messages_of
from dragoman.testing.script import Answers, Script, first_prompt
from dragoman.testing.server import ScriptedServer
from dragoman.transport.exchange import request_body

__all__ = ["ScriptedModel", "ScriptedRecord"]

_URL = "http://scripted.invalid/v1"
_OF_THE_NETWORK = frozenset(
    {
        "auth",
        "auth_names",
        "key_names",
        "key_required",
        "key_kinds",
        "base_url_names",
        "embeddings_url",
        "models",
        "transport",
        "by_url",
        "discovery",
    }
)
"""What of a real provider's record says how it is reached."""


class ScriptedRecord(Provider, frozen=True, kw_only=True, eq=False):
    """What the record of a `ScriptedModel` says beside its answers. All fields of a `Provider` may be given too."""

    name: str = "scripted"
    """See `Provider.name`."""
    display_name: str = "Scripted"
    """See `Provider.display_name`."""
    wire: str = "openai_chat"
    """Name of the wire that it speaks."""
    base_url: str = _URL
    """Where requests seem to go."""
    chat_model: str | None = "scripted-1"
    """See `Provider.chat_model`."""
    embeddings_model: str | None = "scripted-embeddings-1"
    """See `Provider.embeddings_model`."""
    capabilities: frozenset[Capability] = frozenset(Capability)
    """See `Provider.capabilities`: fewer of them make it answer as providers do that can less."""
    stream: bool = True
    """`False`: answers come whole, not as streams."""
    chunks: int = 256
    """Bytes that arrive at a time."""
    by: Callable[[ModelRequest], Hashable] = first_prompt
    """A request → the key of its conversation, where the answers are a mapping; usually the text of its first user message."""
    vectors: Callable[[str], Vector] | None = None
    """A text → its vector; `None`: eight numbers that depend on the text alone."""
    script: Script | None = None
    """Finds the answers; made by the model itself."""
    server: ScriptedServer | None = None
    """What answers; made by the model itself. A copy by `msgspec.structs.replace` shares it."""


class ScriptedModel(ScriptedRecord, frozen=True, eq=False):
    """A provider's record whose model is the test: `Agent(ScriptedModel(["Hello."]))`. No key and no network.

    ```python
    model = ScriptedModel([call("get_weather", city="Oslo"), "It rains."], wire="anthropic")
    result = await Agent(model, tools=[get_weather]).send("How is it in Oslo?")
    assert model.requests[1].messages[-1].tool_results[0].result == "rain"
    model.assert_exhausted()
    ```

    Requests are written by the wire as they are for a provider, and what is answered is written in the provider's own
    format and read again, so that all that lies between is tested. Tasks, threads and event loops may share one.
    """

    answers: Answers | Mapping[Any, Answers] = ()
    """What it says to one request after the other: see `Answerable`. Or a function of the request, plain, async or a generator;
    or a mapping from the key of a conversation (see `by`) to either."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.server is not None:
            return
        expect("chunks", self.chunks, int, hint="it is bytes")
        if self.chunks < 1:
            raise SettingsError(f"ScriptedModel(chunks={self.chunks}) must be above 0")
        script = self.script or Script(self.answers, self.by)
        server = ScriptedServer(
            wires.get(self.wire),
            script,
            base_url=str(self.base_url),
            models=[self.chat_model or "scripted-1"],
            vectors=self._embed,
            piece=self.chunks,
            stream=self.stream,
            remembers=True,
        )
        msgspec.structs.force_setattr(self, "script", script)
        msgspec.structs.force_setattr(self, "server", server)
        msgspec.structs.force_setattr(self, "transport", self.transport or server)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}:{self.chat_model}, {self.wire}, {len(self.requests)} requests)"

    @classmethod
    def like(
        cls, model: str | Provider, answers: Answers | Mapping[Any, Answers], **fields: Any
    ) -> Self:
        """A scripted model in the place of a real one: with its name, wire, capabilities and quirks. In the place of an agent that is asked by
        a protocol stands a model that speaks Chat Completions.

        Raises:
            SettingsError: the model string is malformed, or no provider has that name.
        """
        string, provider = resolve(model)
        base_url = provider.base_url if isinstance(provider.base_url, str) else _URL
        own = {
            name: getattr(provider, name)
            for name in Provider.__struct_fields__
            if name not in _OF_THE_NETWORK
        }
        named: dict[str, Any] = {
            "base_url": base_url,
            "chat_model": string.chat or provider.chat_model or "scripted-1",
        }
        if wires.client(provider.wire) is not None:
            named |= {"wire": "openai_chat", "quirks": None}
        return cls(answers, **{**own, **named, **fields})

    @classmethod
    def from_run(cls, run: Source, **fields: Any) -> Self:
        """A scripted model that says again what the model said in a run: in its result, its events or its history. What was retracted
        is left out, and what agents within its tools said: of events that is `fold(events, run_id=…)`."""
        answers = [message for message in messages_of(run) if message.role is Role.MODEL]
        return cls([message.replace(id=None, origin=None) for message in answers], **fields)

    @classmethod
    async def from_log(cls, log: RunLog, run_id: str, **fields: Any) -> Self:
        """The same of a run that a log holds, as far as it is stored.

        Raises:
            RunLogError: the store cannot be reached, or answers with an error.
        """
        events: list[Event] = []
        while more := await log.read(run_id, len(events)):
            events += more
        return cls.from_run(events, **fields)

    @property
    def requests(self) -> list[ModelRequest]:
        """What it was asked, as its wire reads the requests, in order."""
        return self._server.requests

    @property
    def sent(self) -> list[HttpRequest]:
        """All requests as HTTP has them: URL, headers and body."""
        return self._server.sent

    @property
    def bodies(self) -> list[Any]:
        """Their bodies, as parsed JSON."""
        return [request_body(request) for request in self._server.sent]

    @property
    def embedded(self) -> list[EmbeddingsRequest]:
        """The requests for embeddings."""
        return self._server.embedded

    def assert_exhausted(self) -> None:
        """Raises `ScriptError` where an answer is left that nobody asked for, or a request got none."""
        if self.script is not None:
            self.script.check()

    @property
    def _server(self) -> ScriptedServer:
        if self.server is None:
            raise AssertionError("a scripted model always has its server")
        return self.server

    def _embed(self, request: EmbeddingsRequest) -> list[Vector] | DragomanError:
        return [(self.vectors or _vector)(text) for text in request.texts]


def _vector(text: str) -> Vector:
    """Eight numbers from -1 to 1."""
    return [byte / 127.5 - 1 for byte in sha256(text.encode()).digest()[:8]]
