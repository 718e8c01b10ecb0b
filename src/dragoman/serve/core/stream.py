"""Events on their way to a client: an answer to a model's API, whole or streamed, and the stream of
any run.

`answer` resolves the turn of a request, asks the backend, and keeps what comes of it. `stream` is
the one loop that writes events: what an API shows of them, and how it frames them, it is given.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

from dragoman import json_bytes
from dragoman.codec.timing import AnswerTimer
from dragoman.errors import AuthenticationError, public
from dragoman.event import Event, MessageFinished, RunError, RunFinished
from dragoman.json_bytes import Json
from dragoman.media_request import MediaKind, MediaRequest
from dragoman.memory.working_memory import WorkingMemory
from dragoman.model.tokens import TokenCount
from dragoman.request import EmbeddingsRequest, ModelRequest
from dragoman.result import BatchEmbeddingsResult, ModelInfo
from dragoman.serve.core.agents import AgentBackend
from dragoman.serve.core.answer_record import Record
from dragoman.serve.core.background import begin_in_background
from dragoman.serve.core.call import Call, Links
from dragoman.serve.core.model_api_turn import recall_turn
from dragoman.serve.core.request_fields import loss_headers, losses_of
from dragoman.serve.core.turn import Turn
from dragoman.serve.http.limits import check_request
from dragoman.wires.serving import get_stream_form

__all__ = ["Backend", "BytesEncoder", "answer", "stream"]

_ENDS = (MessageFinished, RunFinished, RunError)


class Backend(Protocol):
    """What stands behind the endpoints: an agent, or a gateway to providers."""

    async def models(self) -> Sequence[ModelInfo]:
        """Returns what a client may name, for lists."""
        ...

    def serves(self, model: str) -> bool:
        """True if a client may name that model."""
        ...

    def check_keys(self) -> Mapping[str, AuthenticationError | None]:
        """Returns the error for a missing key, or None, for each model."""
        ...

    @property
    def edits(self) -> bool:
        """True if a client may change, in the conversation that it sends back, what the model said
        and what tools gave."""
        ...

    @property
    def detaches(self) -> bool:
        """True if an answer is made to its end although its client left."""
        ...

    @property
    def references(self) -> bool:
        """True if names of what a provider keeps are passed on to it."""
        ...

    @property
    def working_memories(self) -> Sequence[WorkingMemory]:
        """The working memories of its agents, which clients do not see."""
        ...

    @property
    def has_threads_in_memory(self) -> bool:
        """True if an agent keeps its threads in the memory of this process."""
        ...

    def admit(self, call: Call) -> Call:
        """Returns the call to stream an answer to, with only those fields of its body that are
        passed on.

        Raises:
            InvalidRequestError: it asks for what is not passed on.
        """
        ...

    def remembers(self, call: Call, request: ModelRequest) -> bool:
        """True if the conversation of a request is looked up and kept, beside what the client may
        ask for by an id."""
        ...

    def answer(self, call: Call, turn: Turn, record: Record) -> AsyncGenerator[list[Event], None]:
        """Yields the events that are streamed to the client, one list for each read.

        A failure is a `RunError`, the last event; what is raised ends the call. What the client
        does not get of the answer is given to `record`.
        """
        ...

    async def count_tokens(self, call: Call, request: ModelRequest) -> TokenCount:
        """Returns how many tokens a request has."""
        ...

    async def embed(self, call: Call, request: EmbeddingsRequest) -> BatchEmbeddingsResult:
        """Returns, without a stream, the vectors of texts, for clients of an embeddings API.

        Raises:
            DragomanError: there are none.
        """
        ...

    def make_media(
        self, call: Call, media_kind: MediaKind, request: MediaRequest
    ) -> AsyncGenerator[list[Event], None]:
        """Yields the events to stream of the message that holds the media, one list for each read.
        A failure is a `RunError`, the last event. What of the request is left out is noted in
        `call.observed`.

        Raises:
            SettingsError: the model makes no such media.
            InvalidRequestError: the request asks for what is not passed on.
        """
        ...

    async def close(self) -> None:
        """Gives back what it holds."""
        ...


class BytesEncoder(Protocol):
    """Makes the bytes of a stream."""

    def feed(self, event: Event) -> bytes:
        """Returns the bytes that tell of an event."""
        ...

    def close(self) -> bytes:
        """Returns the last bytes."""
        ...


async def answer(call: Call, request: ModelRequest, backend: Backend) -> None:
    """Answers a request to a model's API, whole or as a stream.

    Raises:
        DragomanError: there is no answer, and nothing was sent yet.
    """
    timer = AnswerTimer()
    links = call.api.links(request)
    turn = await recall_turn(
        call, links, edits=backend.edits, remembers=backend.remembers(call, request)
    )
    # What was kept counts too.
    check_request(turn.model_request, call.service.limits)
    # Clients that ask for it while it is made read what there is.
    if links.background:
        turn = turn.replace(request=turn.model_request.replace(stream=True))
    record = Record.of_answer(call, turn, request, links)
    envelope = call.wire.envelope(request, id=call.id, now=call.now)
    timer.ask()
    events, recorded, state = await _begin_answer(call, turn, record, links, backend)
    if links.background and not request.stream:
        await call.api.respond_in_progress(call, envelope, state)
        return
    # The wire tells how long it took.
    if "timing" in envelope:
        envelope["timing"] = timer
        events = _observe(events, timer)
    async with aclosing(events):
        if request.stream:
            await _stream_answer(call, envelope, events, recorded)
        else:
            await _respond_whole(call, envelope, events, recorded)


async def _begin_answer(
    call: Call, turn: Turn, record: Record, links: Links, backend: Backend
) -> tuple[AsyncGenerator[list[Event], None], Record | None, str]:
    """Begins to make an answer. Returns its events, what keeps it once its client has read them (None
    if it is kept without that), and its state: `queued` or `in_progress`."""
    if isinstance(backend, AgentBackend) and backend.is_durable:
        events = await backend.enqueue(call, turn, record, background=links.background)
        return events, None, "queued"
    events = backend.answer(call, turn, record)
    if not (links.background or backend.detaches):
        return events, record, "in_progress"
    await begin_in_background(call, events, record, turn.thread_id, strict=links.background)
    # Read from the log like any other reader; `paces` keeps the run near its client.
    return call.service.runs.pages(call.id, paces=True), None, "in_progress"


async def stream(
    call: Call,
    encoder: BytesEncoder,
    pages: AsyncIterable[Sequence[Event]],
    take: Callable[[Sequence[Event]], Sequence[Event]],
    *,
    headers: Mapping[str, str] = {},
    keep: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Streams events to the client through an encoder, until they end.

    Args:
        call: the call that they answer.
        encoder: makes the bytes.
        pages: the events, some at a time.
        take: is given each page, and returns what the client gets of it.
        headers: of the response, beside its media type.
        keep: keeps an answer that is over before its client knows of it, so that the client can go on
            from it at once. With it, an error that comes first is raised.

    Raises:
        DragomanError: the answer failed before anything of it was sent.
    """
    connection = call.connection
    media_type, ping = get_stream_form(call.wire, encoder)
    connection.stream(
        {"content-type": media_type, **headers},
        ping,
        lambda error: encoder.feed(RunError(error)) + encoder.close(),
    )
    ending = b""
    async for page in pages:
        shown = take(page)
        last = shown[-1] if keep is not None else None
        failure = last if isinstance(last, RunError) else None
        data = b"".join([encoder.feed(event) for event in (shown[:-1] if failure else shown)])
        if failure is not None:
            # Nothing was sent, so the error can still have its own HTTP status.
            if not (connection.started or ending or data):
                raise failure.error
            data += encoder.feed(RunError(public(failure.error), failure.run_id))
        # The end is held back until the answer is kept: the client may continue from it
        # at once.
        if ending or isinstance(last, _ENDS):
            ending += data
        elif data:
            await connection.write(data)
    ending += encoder.close()
    if keep is not None:
        await keep()
    await connection.end(ending)


async def _observe(
    events: AsyncGenerator[list[Event], None], timer: AnswerTimer
) -> AsyncGenerator[list[Event], None]:
    """Yields the stream's pages of events, and lets the timer measure each."""
    async with aclosing(events):
        async for page in events:
            timer.observe(page)
            yield page


async def _stream_answer(
    call: Call,
    envelope: Json,
    events: AsyncGenerator[list[Event], None],
    record: Record | None,
) -> None:
    """Streams an answer to the client, with the losses in a header, and records it."""

    def take(page: Sequence[Event]) -> Sequence[Event]:
        """Takes the losses of the streamed answer."""
        if not call.connection.started:
            call.connection.add_headers(loss_headers(losses_of(page)))
        if record is not None:
            record.add(page)
        return page

    async def keep() -> None:
        if record is not None:
            await record.end()

    await stream(call, call.wire.encoder(**envelope), events, take, keep=keep)


async def _respond_whole(
    call: Call,
    envelope: Json,
    events: AsyncGenerator[list[Event], None],
    record: Record | None,
) -> None:
    """Answers with a whole response instead of a stream, and records it."""
    whole: list[Event] = []
    async for page in events:
        whole += page
    if whole and isinstance(whole[-1], RunError):
        raise whole[-1].error
    body = json_bytes.encode(call.wire.dump_response(whole, **envelope))
    if record is not None:
        record.add(whole)
        await record.end()
    headers = {"content-type": "application/json", **loss_headers(losses_of(whole))}
    await call.connection.respond(200, headers, body)
