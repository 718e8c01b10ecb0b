"""`ScriptedModel`: a model for tests that answers what the test says, by any provider's wire, and
remembers its requests.

A `Script` finds the answer to a request: the next of a list, the next of its conversation, or the
result of a function. `ScriptedModel` is a provider's record whose transport is a `ScriptedServer`
that asks the script. So a request passes through the wire's own encoder and decoder as with a real
provider.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast, get_args

import msgspec

from dragoman import wires
from dragoman.arguments import expect, wrong_type_error
from dragoman.capability import Capability
from dragoman.errors import DragomanError, SettingsError
from dragoman.event import Event
from dragoman.json_bytes import Json
from dragoman.media_request import MediaRequest
from dragoman.message import Content, Message, Role
from dragoman.model.resolve_model import resolve_model
from dragoman.providers.provider import Provider
from dragoman.request import EmbeddingsRequest, HttpRequest, ModelRequest
from dragoman.result import Vector
from dragoman.runs.log import RunLog
from dragoman.testing.scripted_answer import Answer, Answerable, AnswerFunction, check_answer
from dragoman.testing.scripted_media import MediaFunction
from dragoman.testing.server import ScriptedServer
from dragoman.testing.transcript import Source, format_transcript, list_messages
from dragoman.transport.exchange import Exchange, request_body

__all__ = ["Answers", "Script", "ScriptError", "ScriptedModel", "ScriptedRecord", "first_prompt"]

Answers: TypeAlias = Answerable | AnswerFunction | Iterable[Answerable | AnswerFunction]
"""One answer, several in order, or a function that returns them."""

_SINGLE_ANSWERS: tuple[type, ...] = (
    str,
    bytes,
    Message,
    Answer,
    Exchange,
    Exception,
    *get_args(Content),
    *get_args(Event),
)
_MESSAGES_SHOWN = 3
"""Number of messages of a request that an error shows."""

_URL = "http://scripted.invalid/v1"
_NETWORK_FIELDS = frozenset(
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
"""Fields of a real provider's record that say how it is reached. `ScriptedModel.like` does not copy
them."""


class ScriptError(DragomanError, AssertionError):
    """A request has no answer in the test's script, or an answer was not used."""

    def __str__(self) -> str:
        return self.message


def first_prompt(request: ModelRequest) -> str:
    """Returns the text of a conversation's first user message."""
    return next((message.text for message in request.messages if message.role is Role.USER), "")


class Script:
    """Finds the answer to each request. Threads may share it.

    Args:
        answers: for all requests, or by the key of a conversation.
        by: returns the key of a request's conversation, for a mapping of answers.
    """

    def __init__(
        self, answers: Answers | Mapping[Any, Answers], by: Callable[[ModelRequest], Hashable]
    ) -> None:
        """Creates a script of a model's answers. `by`: returns the key that selects answers for a
        request."""
        self._by = by
        self._scripts: dict[Any, _Answers] | None = None
        self._script = _Answers(())
        if isinstance(answers, Mapping):
            answers_by_key = cast("Mapping[Any, Answers]", answers)
            self._scripts = {
                key: _Answers(conversation_answers)
                for key, conversation_answers in answers_by_key.items()
            }
        else:
            self._script = _Answers(answers)
        self._lock = Lock()
        self._unanswered: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Any:
        """Returns the answer to a request, which may still be a function.

        Raises:
            ScriptError: there is none.
        """
        key, script = None, self._script
        if self._scripts is not None:
            key = self._by(request)
            script = self._scripts.get(key)
        with self._lock:
            if script is not None and script.has_next():
                return script.next()
            self._unanswered.append(request)
        if script is None:
            raise _make_error(
                f"the script has no conversation {key!r}; it has {', '.join(map(repr, self._scripts or ())) or 'none'}",
                request,
            )
        raise _make_error(
            f"request {script.used_count + 1} has no answer: the script has {script.used_count}; give it another, or a function",
            request,
        )

    def check(self) -> None:
        """Raises `ScriptError` if a request got no answer or an answer was not used."""
        if self._unanswered:
            raise _make_error(
                f"{len(self._unanswered)} requests got no answer from the script",
                self._unanswered[-1],
            )
        for key, script in (self._scripts or {"": self._script}).items():
            if unused := script.list_unused():
                where = f" of the conversation {key!r}" if key else ""
                raise ScriptError(
                    f"{len(unused)} answers{where} were not asked for; the next is {unused[0]!r:.200}"
                )


class _Answers:
    """Answers in order, taken from their iterable when needed: it may be endless."""

    def __init__(self, answers: Answers) -> None:
        """Creates the scripted answers of one key, in order."""
        self.used_count = 0
        self._function: Any = None
        every: Iterable[Any] = ()
        # A text is iterable too, so single answers come first.
        if isinstance(answers, _SINGLE_ANSWERS):
            every = (answers,)
        elif callable(answers):
            self._function = answers
        else:
            every = cast("Iterable[Any]", answers)
        if not isinstance(cast(object, every), Iterable):
            raise wrong_type_error("answers", every, "an answer, a sequence of them, or a function")
        self._counted = isinstance(every, Sequence)
        if isinstance(every, Sequence):
            for single in every:
                check_answer(single)
        self._rest: Iterator[Any] = iter(every)
        self._next: list[Any] = []

    def has_next(self) -> bool:
        """Returns whether another answer is left."""
        if self._function is not None or self._next:
            return True
        self._next = list(islice(self._rest, 1))
        return bool(self._next)

    def next(self) -> Any:
        """Returns the next scripted answer, and counts it."""
        self.used_count += 1
        if self._function is not None:
            return self._function
        return self._next.pop(0)

    def list_unused(self) -> list[Any]:
        """Returns the unused answers; none of an iterator, which may be endless."""
        if not self._counted or self._function is not None:
            return []
        self._next += self._rest
        return self._next


def _make_error(problem: str, request: ModelRequest) -> ScriptError:
    """Returns a `ScriptError` that shows the end of the request."""
    lines = "\n".join(
        f"  {line}" for line in format_transcript(request.messages[-_MESSAGES_SHOWN:])
    )
    return ScriptError(f"{problem}. The last request ended with:\n{lines}")


class ScriptedRecord(Provider, frozen=True, kw_only=True, eq=False):
    """The fields of a `ScriptedModel` beside its answers. It takes all fields of a `Provider`
    too."""

    name: str = "scripted"
    """See `Provider.name`."""
    display_name: str = "Scripted"
    """See `Provider.display_name`."""
    wire: str = "openai_chat"
    """The name of the wire that it speaks."""
    base_url: str = _URL
    """The URL of its requests, which are never sent."""
    chat_model: str | None = "scripted-1"
    """See `Provider.chat_model`."""
    embeddings_model: str | None = "scripted-embeddings-1"
    """See `Provider.embeddings_model`."""
    capabilities: frozenset[Capability] = frozenset(Capability)
    """See `Provider.capabilities`. With fewer, agents use the methods of less capable providers."""
    stream: bool = True
    """False: answers are sent whole and not streamed."""
    chunks: int = 256
    """Bytes per chunk of a response."""
    by: Callable[[ModelRequest], Hashable] = first_prompt
    """Returns the key of a request's conversation, for a mapping of answers; by default the text of
    its first user message."""
    vectors: Callable[[str], Vector] | None = None
    """Returns the vector of a text; by default eight numbers that depend only on the text."""
    media: MediaFunction | None = None
    """Returns the answer to a request for images, speech or a transcript: a part, a text, a message
    or an error. `None`: there are none."""
    image_model: str | None = "scripted-images-1"
    """See `Provider.image_model`."""
    speech_model: str | None = "scripted-speech-1"
    """See `Provider.speech_model`."""
    transcription_model: str | None = "scripted-transcripts-1"
    """See `Provider.transcription_model`."""
    script: Script | None = None
    """Finds the answers. The model makes it."""
    server: ScriptedServer | None = None
    """Answers requests. The model makes it, and copies by `msgspec.structs.replace` share it."""


class _OneList(type(ScriptedRecord)):
    """Says how answers are passed, where the struct itself would speak of positions."""

    # Type checkers read the fields, which this would hide from them.
    if not TYPE_CHECKING:

        def __call__(cls, *answers: Any, **fields: Any) -> Any:
            """Makes a scripted model."""
            if len(answers) > 1:
                raise TypeError(
                    f"{cls.__name__} takes one list of answers, but {len(answers)} arguments came: "
                    f"{cls.__name__}([first, second]); other fields by name"
                )
            return super().__call__(*answers, **fields)


class ScriptedModel(ScriptedRecord, frozen=True, eq=False, metaclass=_OneList):
    """A model for tests, as a provider's record: `Agent(ScriptedModel(["Hello."]))`. It needs no
    key and no network.

    ```python model = ScriptedModel([call("get_weather", city="Oslo"), "It rains."],
    wire="anthropic") result = await Agent(model, tools=[get_weather]).send("How is it in Oslo?")
    assert model.requests[1].messages[-1].tool_results[0].result == "rain" model.assert_exhausted()
    ```

    Requests and answers go through the provider's wire format, so a test covers everything in
    between. Tasks, threads and event loops may share a model.
    """

    answers: Answers | Mapping[Any, Answers] = ()
    """The answers to successive requests, see `Answerable`. Also a function of the request (plain,
    async or a generator), or a mapping from the key of a conversation (`by`) to either."""

    def __post_init__(self) -> None:
        """Creates the scripted server that answers this model's requests."""
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
            media=self.media,
            piece=self.chunks,
            stream=self.stream,
            remembers=True,
        )
        # The record is frozen for its users; it makes these fields from the others.
        msgspec.structs.force_setattr(self, "script", script)
        msgspec.structs.force_setattr(self, "server", server)
        msgspec.structs.force_setattr(self, "transport", self.transport or server)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}:{self.chat_model}, {self.wire}, {len(self.requests)} requests)"

    @classmethod
    def like(
        cls, model: str | Provider, answers: Answers | Mapping[Any, Answers], **fields: Any
    ) -> Self:
        """Makes a scripted model with the name, wire, capabilities and quirks of a real one. In
        place of an agent of another server it is a model that speaks Chat Completions.

        Raises:
            SettingsError: the model string is malformed, or no provider has that name.
        """
        string, provider = resolve_model(model)
        base_url = provider.base_url if isinstance(provider.base_url, str) else _URL
        fields_of_record = {
            name: getattr(provider, name)
            for name in Provider.__struct_fields__
            if name not in _NETWORK_FIELDS
        }
        named: Json = {
            "base_url": base_url,
            "chat_model": string.chat or provider.chat_model or "scripted-1",
        }
        # Wires of agent protocols have no encoder for a model's answers.
        if wires.client(provider.wire) is not None:
            named |= {"wire": "openai_chat", "quirks": None}
        return cls(answers, **{**fields_of_record, **named, **fields})

    @classmethod
    def from_run(cls, run: Source, **fields: Any) -> Self:
        """Makes a scripted model that repeats the model messages of a run, from its result, events
        or history. Retracted messages and those of agents within tools are left out; of events,
        `fold(events, run_id=…)` has one run's."""
        answers = [message for message in list_messages(run) if message.role is Role.MODEL]
        return cls([message.replace(id=None, origin=None) for message in answers], **fields)

    @classmethod
    async def from_log(cls, log: RunLog, run_id: str, **fields: Any) -> Self:
        """Makes a scripted model that repeats the model messages of a run in a log, as far as they
        are stored.

        Raises:
            RunLogError: the store cannot be reached, or returns an error.
        """
        events: list[Event] = []
        while more := await log.read(run_id, len(events)):
            events += more
        return cls.from_run(events, **fields)

    @property
    def requests(self) -> list[ModelRequest]:
        """Returns the model requests that it received, in order, as its wire reads them."""
        return self._server.requests

    @property
    def sent(self) -> list[HttpRequest]:
        """Returns all HTTP requests that it received: URL, headers and body."""
        return self._server.sent

    @property
    def bodies(self) -> list[Any]:
        """Returns the JSON bodies of all requests."""
        return [request_body(request) for request in self._server.sent]

    @property
    def embedded(self) -> list[EmbeddingsRequest]:
        """Returns the embeddings requests that it received."""
        return self._server.embedded

    @property
    def media_requests(self) -> list[MediaRequest]:
        """Returns the requests for images, speech and transcripts that it received."""
        return self._server.media_requests

    def assert_exhausted(self) -> None:
        """Raises `ScriptError` if an answer was not used or a request got none."""
        if self.script is not None:
            self.script.check()

    @property
    def _server(self) -> ScriptedServer:
        if self.server is None:
            raise AssertionError("a scripted model always has its server")
        return self.server

    def _embed(self, request: EmbeddingsRequest) -> list[Vector] | DragomanError:
        return [(self.vectors or _make_vector)(text) for text in request.texts]


def _make_vector(text: str) -> Vector:
    """Returns eight numbers from -1 to 1 that depend only on the text."""
    return [byte / 127.5 - 1 for byte in sha256(text.encode()).digest()[:8]]
