"""The APIs of agent protocols whose clients ask for runs: AG-UI, and UI message streams of the AI
SDK.

A run is begun in the server's log of runs, streamed from there, and kept as an answer of its thread
whether its client stays or leaves. A2A begins and reads its runs by the same functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import DragomanError, InvalidRequestError, ModelNotFoundError
from dragoman.event import Event
from dragoman.message import Message, Role
from dragoman.request import RunRequest
from dragoman.runs.requests import RunTerms
from dragoman.serve.apis.cards import abilities_of, card_of
from dragoman.serve.core.agent_protocol_turn import change_memory, join_turn
from dragoman.serve.core.agents import ServedAgent, choose_model, find_agent
from dragoman.serve.core.answer_record import Record, RunFollower, latest_key
from dragoman.serve.core.background import check_room, read_run
from dragoman.serve.core.call import Api, Call, Handler
from dragoman.serve.core.client_events import ClientEvents
from dragoman.serve.core.enqueueing import enqueue_run
from dragoman.serve.core.policy import apply_policy
from dragoman.serve.core.stream import BytesEncoder, stream
from dragoman.serve.core.threads import resource_of, thread_id
from dragoman.serve.core.turn import Turn
from dragoman.serve.http.limits import check_request
from dragoman.serve.store.keep_answer import store_deadline
from dragoman.serve.store.stored_answer import Answered
from dragoman.wires import ai_sdk
from dragoman.wires.wire import ProtocolWire

__all__ = ["AiSdkApi", "HANDLERS", "begin_run", "is_logged", "settle_thread"]

_SSE = "text/event-stream"


async def run(call: Call) -> None:
    """Starts a run of an agent protocol, and streams its events."""
    wire = _wire_of(call)
    request = wire.load_run(call.body, path=call.path, headers=call.headers)
    served = find_agent(call, call.parameters.get("model", ""))
    forwarded = if_object(request.metadata.get("forwarded_props"))
    if served.policy.models and (model := if_text(forwarded.get("model"))):
        served = choose_model(call, served, model)
    run_id = await begin_run(call, request, served)
    leaves = served.policy.on_disconnect == "cancel"
    encoder = wire.encoder(**wire.envelope(request, id=run_id, now=call.now))
    await _stream_run(call, run_id, encoder, cancel_on_leave=leaves)


async def attach(call: Call) -> None:
    """Streams a run that was begun before, from where its client lost it."""
    answered = await _find_run(call)
    if answered is None or answered.run_id is None:
        raise _unknown_run_error(call)
    skip = _read_offset(call)
    wire = _wire_of(call)
    request = await _request_of(call, answered, goes_on=bool(skip))
    encoder = wire.encoder(**wire.envelope(request, id=answered.run_id, now=call.now))
    await _stream_run(call, answered.run_id, encoder, skip=skip)


async def cancel_run(call: Call) -> None:
    """Cancels a run that a client of an agent protocol began."""
    answered = await _find_run(call)
    if answered is None or answered.run_id is None:
        raise _unknown_run_error(call)
    await call.service.runs.cancel(answered.run_id)
    await call.connection.respond(204, {}, b"")


async def show_capabilities(call: Call) -> None:
    """Says what an agent, whose runs this API starts, can do, as the wire words it."""
    served = find_agent(call, call.parameters.get("model", ""))
    await call.respond(
        call.served.dump_capabilities(card_of(call, served), abilities_of(call, served))
    )


HANDLERS: Mapping[str, Handler] = {
    "run": run,
    "attach": attach,
    "cancel_run": cancel_run,
    "capabilities": show_capabilities,
}
"""Purpose of a route → what is done there."""


class AiSdkApi(Api):
    """UI message streams: a client may ask for an answer anew, and reads a stream from its
    beginning."""

    stream_headers = ai_sdk.stream_headers

    def __init__(self, more: Mapping[str, Handler] = {}) -> None:
        """Creates the API. `more`: what is done for its further purposes."""
        super().__init__({**HANDLERS, "attach": self._attach_to_run, **more})

    def regenerates(self, request: RunRequest) -> str | None:
        """See `Api`."""
        return ai_sdk.find_regenerated(request)

    async def _attach_to_run(self, call: Call) -> None:
        """Streams a run of the chat that still goes on to an AI SDK client that reconnects."""
        answered = await _find_run(call)
        if answered is None or answered.run_id is None:
            await call.connection.respond(ai_sdk.nothing_runs, {}, b"")
            return
        if _read_offset(call):
            await attach(call)
            return
        request = await _request_of(call, answered, goes_on=True)
        envelope = ai_sdk.envelope_again(request, id=answered.run_id, now=call.now)
        await _stream_run(call, answered.run_id, ai_sdk.encoder(**envelope))


async def begin_run(
    call: Call,
    request: RunRequest,
    served: ServedAgent,
    *,
    task_id: str | None = None,
    shown: Sequence[Message] = (),
    progress: RunFollower | None = None,
) -> str:
    """Begins the run that answers a request. Returns its id in the server's log.

    Args:
        call: the call.
        request: what the client asks.
        served: the agent.
        task_id: of the task that the run is a part of.
        shown: the client's messages, if an answer took the place of one.
        progress: follows the run.

    Raises:
        OverloadedError: the server makes no runs now, or as many as it may.
        InvalidRequestError: the request holds what the policy refuses, or answers what does not wait.
        ContextLengthError: the conversation is too long.
        DragomanError: the run cannot begin.
    """
    if not call.service.durable:
        check_room(call)
    await settle_thread(call, request.thread_id)
    agent, limits = served.agent, call.service.limits
    check_request(request, limits)
    admitted, losses = apply_policy(request, call.wire.name, served.policy, agent.all_tools)
    call.observed.losses = [*call.observed.losses, *losses]
    with store_deadline(limits):
        turn = await join_turn(
            agent,
            call,
            admitted.replace(tools=request.tools),
            regenerates=call.api.regenerates(request),
        )
    # Ids are minted before the run, so that the stream and the store agree.
    turn = _with_ids(call, turn.replace(task_id=task_id or turn.task_id))
    run_request = admitted.replace(
        messages=(*turn.before, *turn.new),
        run_id=call.id,
        thread_id=turn.thread_id,
        resource_id=resource_of(call),
        resume=turn.resumes,
        native=None,
    )
    check_request(run_request, limits)
    record = Record.of_run(call, turn, served.name, request, shown=shown, progress=progress)
    if call.service.durable:
        return await _enqueue(call, served, run_request, turn, record)
    deadline = _Deadline(call)

    async def end(result: Any, last: Any) -> None:
        deadline.cancel()
        await record.end_run(result, last)

    try:
        with store_deadline(limits):
            await record.begin()
            await change_memory(agent, turn, resource_of(call))
            run_id = await call.service.runs.start(
                agent,
                run_request,
                model=served.model,
                on_end=end,
                owner=call.caller.id,
                on_stored=None if progress is None else progress.feed,
                trusted_history=turn.is_trusted,
                output_schema=served.policy.output_schema,
                output_events=served.policy.output_schema is not None,
                reading=turn.reading,
            )
    except DragomanError:
        # the client is answered that nothing was begun
        await record.forget()
        raise
    deadline.begin(run_id)
    record.wake_task()
    return run_id


async def _enqueue(
    call: Call, served: ServedAgent, request: RunRequest, turn: Turn, record: Record
) -> str:
    """Enqueues the run that answers a request. Returns its id. See `begin_run`."""
    agent, schema = served.agent, served.policy.output_schema
    # What is wrong with the request is said at once, and not by whoever drives the run.
    agent.run(
        request,
        model=served.model,
        trusted_history=turn.is_trusted,
        output_schema=schema,
        claim=call.service.log.claim,
    )
    terms = RunTerms(
        trusted=turn.is_trusted, output_events=schema is not None, model=served.stored_model
    )
    request = request.replace(output_schema=schema)
    with store_deadline(call.service.limits):
        await change_memory(agent, turn, resource_of(call))
        await enqueue_run(call, agent, request, terms, record, always=True)
    return call.id


async def settle_thread(call: Call, name: str | None) -> None:
    """Keeps the latest answer of a conversation if its durable run is over, and its server died before
    it kept the answer. `name`: the client's name of the conversation."""
    if call.service.durable and name:
        thread = latest_key(thread_id(resource_of(call), name))
        latest = await call.service.answers.find(call.caller.id, [thread])
        if latest is not None:
            await call.service.settle(latest)


async def is_logged(call: Call, run_id: str | None) -> bool:
    """True if the log has a run: it may have forgotten what is still kept."""
    return run_id is not None and run_id in await call.service.log.status([run_id])


class _Deadline:
    """Ends a run once it has taken as long as a call may."""

    def __init__(self, call: Call) -> None:
        """Starts the time limit of a protocol's run."""
        self._call = call
        self._timer: asyncio.TimerHandle | None = None
        self._cancelling: asyncio.Task[None] | None = None
        self._is_over = False

    def begin(self, run_id: str) -> None:
        """Starts the deadline after which a run that nobody reads is cancelled."""
        seconds = self._call.service.limits.run_seconds
        if seconds is not None and not self._is_over:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire, run_id)

    def cancel(self) -> None:
        """Cancels the deadline, because the run is over."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self, run_id: str) -> None:
        self._cancelling = asyncio.create_task(
            self._call.service.runs.cancel(run_id), name=f"dragoman-expire-{run_id}"
        )


class _NumberedEncoder:
    """Numbers the frames of each event: a client that lost the stream goes on behind the number of
    the last frame that it got."""

    def __init__(self, encoder: BytesEncoder, skip: int, *, is_sse: bool) -> None:
        """Creates an encoder that numbers the frames of a run. `skip`: how many events the
        client already has. `is_sse`: True if frames are Server-Sent Events, which have room for
        a number."""
        self._encoder, self._skip, self._is_sse = encoder, skip, is_sse
        self._count = 0

    def feed(self, event: Event) -> bytes:
        """Encodes an event of a run, with a number. See `Encoder`."""
        data = self._encoder.feed(event)
        self._count += 1
        if self._count <= self._skip:
            return b""
        if self._is_sse:
            return _number_frames(data, self._count)
        return data

    def close(self) -> bytes:
        """See `Encoder`."""
        return self._encoder.close()


def _number_frames(data: bytes, number: int) -> bytes:
    """Puts the number in front of the last of the frames of a run's event."""
    if not data.endswith(b"\n\n"):
        return data
    if data.count(b"\n\n") > 1:
        start = data.rfind(b"\n\n", 0, -2) + 2
    else:
        start = 0
    return b"%bid: %d\n%b" % (data[:start], number, data[start:])


async def _stream_run(
    call: Call,
    run_id: str,
    encoder: BytesEncoder,
    *,
    skip: int = 0,
    cancel_on_leave: bool = False,
) -> None:
    """Streams a run to its end. `skip`: so many of its events the client has."""
    numbered = _NumberedEncoder(encoder, skip, is_sse=call.wire.stream_type.startswith(_SSE))
    client_events = ClientEvents(call)

    def take(page: Sequence[Event]) -> Sequence[Event]:
        call.observed.add(page)
        return client_events.feed(page)

    async with read_run(call, run_id, cancel_on_leave=cancel_on_leave) as pages:
        await stream(
            call,
            numbered,
            pages,
            take,
            headers=call.api.stream_headers,
        )


async def _request_of(call: Call, answered: Answered, *, goes_on: bool) -> RunRequest:
    """Returns what a run was asked, with the conversation before it, of which nothing that a
    provider signed is shown. `goes_on`: a client that goes on has its own question too."""
    request = answered.asked or RunRequest(
        thread_id=call.parameters.get("id"), run_id=answered.run_id
    )
    chain: Sequence[Answered] = ()
    if answered.parent is not None:
        chain = await call.service.answers.chain(call.caller.id, answered.parent)
    before = [message for answered in chain for message in answered.messages]
    if goes_on:
        before += [message for message in answered.request.messages if message.role is Role.USER]
    return request.replace(messages=tuple(map(_without_native, before)))


def _without_native(message: Message) -> Message:
    """Returns a message of a client's run request without native fields and origin, which only the
    server may set."""
    content = [
        msgspec.structs.replace(piece, native=None) if piece.native else piece
        for piece in message.content
    ]
    return message.replace(content=tuple(content), native=None, origin=None)


def _with_ids(call: Call, turn: Turn) -> Turn:
    """Gives every message of a run's request that is kept an id, the same in each protocol."""
    new_id: Callable[[], str] = call.service.new_id
    messages_by_id = {
        id(message): message if message.id else message.replace(id=new_id())
        for message in (*turn.before, *turn.new, *turn.added)
    }

    def name(messages: Sequence[Message]) -> tuple[Message, ...]:
        return tuple([messages_by_id[id(message)] for message in messages])

    return turn.replace(before=name(turn.before), new=name(turn.new), added=name(turn.added))


async def _find_run(call: Call) -> Answered | None:
    """Returns the run of the id in the path: its own, the client's for it, or its thread's latest,
    which may go on; None if the log has none."""
    store, owner, name = call.service.answers, call.caller.id, call.parameters.get("id", "")
    thread = thread_id(resource_of(call), name)
    keys = [f"run:{name}", latest_key(thread), f"thread:{thread}"]
    # Clients name a run by our id, by their own, or by its thread.
    answered = await store.get(owner, name) or await store.find(owner, keys)
    if answered is None or not await is_logged(call, answered.run_id):
        return None
    return answered


def _read_offset(call: Call) -> int:
    """Returns the number of a run's events that a reconnecting client already has, from header or
    query."""
    text = call.headers.get("last-event-id") or call.query.get("from") or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise InvalidRequestError(f"the offset must be a number of events, not {text!r:.20}")
    return int(text)


def _unknown_run_error(call: Call) -> ModelNotFoundError:
    return ModelNotFoundError(f"there is no run {call.parameters.get('id', '')!r:.200} here")


def _wire_of(call: Call) -> ProtocolWire:
    return cast("ProtocolWire", call.wire)
