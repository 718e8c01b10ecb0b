"""The Responses API, whose answers are kept: a client may go on from one, ask for it later, and
have it made in the background.

A request names what the server kept in three ways: `previous_response_id`, `conversation`, and
references to single items (`_resolve_references`). An answer that is made without its client stands in
the log of runs; where its record does not know of its end yet, `settle` asks the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing

import anyio
import msgspec

from dragoman.codec.json_values import if_object
from dragoman.errors import (
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    RunLogError,
    public,
)
from dragoman.event import Event, RunError
from dragoman.fold import fold, unfold
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Message, Role, ToolCallPart, ToolResultPart
from dragoman.repair import repair
from dragoman.request import ModelRequest
from dragoman.runs.log import RunState, RunStatus
from dragoman.serve.apis import media, models
from dragoman.serve.core.background import public_events, read_run, wait_for_job
from dragoman.serve.core.call import Api, Call, Links
from dragoman.serve.core.client_events import ClientAnswer
from dragoman.serve.core.enqueueing import KEEP
from dragoman.serve.core.stream import stream
from dragoman.serve.http.limits import check_conversation
from dragoman.serve.store.keep_answer import keep_answer
from dragoman.serve.store.stored_answer import Answered, AnsweredState
from dragoman.wires import openai_responses as wire

__all__ = ["ResponsesApi"]

_MOST_ITEMS = 100
_DEFAULT_LIMIT = 20
_LONGEST_LIMIT = 6
"""Digits of a number that is read at all; leading zeros count."""
_LONGEST_NUMBER = 9
"""Digits of the place of an event in a stream."""
_TRUE = ("true", "1")
_STATES: Mapping[RunState, AnsweredState] = {
    "queued": "in_progress",
    "running": "failed",
    "success": "completed",
    "pending": "completed",
    "cancelled": "cancelled",
    "error": "failed",
    "interrupted": "failed",
}
_GRACE_SECONDS = 60
_WAIT_SECONDS = 5.0
"""So long an answer that another process makes may take to end."""


class ResponsesApi(Api):
    """What the Responses API has beyond other models' APIs."""

    drops_parts = True

    def __init__(self) -> None:
        """Creates the handlers of OpenAI's Responses API."""
        super().__init__(
            {
                **models.HANDLERS,
                **media.HANDLERS,
                "response": show_response,
                "input_items": list_input_items,
                "delete_response": delete_response,
                "cancel_response": cancel_response,
            }
        )

    async def complete(self, call: Call, *, passes_on: bool) -> Call:
        """See `Api`."""
        return await _resolve_references(call, passes_on=passes_on)

    async def respond_in_progress(self, call: Call, envelope: JsonMap, state: str) -> None:
        """See `Api`."""
        body = wire.dump_response([], **envelope)
        await call.respond(wire.dump_unfinished(body, state, None))

    def links(self, request: ModelRequest) -> Links:
        """See `Api`."""
        return _read_links(request)

    def is_lasting(self, message: Message) -> bool:
        """See `Api`."""
        return wire.is_lasting(message)

    def answer_keys(self, answered: Answered) -> list[str]:
        """See `Api`. An answer is found by its items."""
        if answered.shared:
            return [_item_key(name) for name in _dump_items(answered)]
        return []

    def dump_interrupt(self, interrupt: Interrupt) -> Content | None:
        """See `Api`."""
        return wire.dump_interrupt(interrupt)

    def load_interrupt(self, piece: Content) -> Interrupt | None:
        """See `Api`."""
        return wire.load_interrupt(piece)

    def load_resume(self, piece: Content) -> Resume | None:
        """See `Api`."""
        return wire.load_resume(piece)

    def answer_call(
        self, piece: Content, calls: Mapping[str, ToolCallPart]
    ) -> ToolResultPart | None:
        """See `Api`."""
        return wire.answer_call(piece, calls)


async def show_response(call: Call) -> None:
    """Shows an answer that is kept, whole or streamed again."""
    answered = await _find_answer(call)
    if call.query.get("stream", "").lower() in _TRUE:
        await _stream_again(call, answered)
    else:
        await _show_answer(call, await settle(call, answered))


async def list_input_items(call: Call) -> None:
    """Lists the input of a kept Responses answer, a page at a time."""
    answered, query = await _find_answer(call), call.query
    most = call.service.limits.conversation_bytes
    chain = await call.service.answers.chain(call.caller.id, answered.id, most_bytes=most)
    messages: list[Message] = [
        message for earlier in chain[:-1] for message in (*earlier.lasting, *earlier.messages)
    ]
    items = wire.dump_input_items([*messages, *answered.request.messages])
    if query.get("order", "desc") != "asc":
        items.reverse()
    limit = _read_limit(query.get("limit", str(_DEFAULT_LIMIT)))
    if (after := query.get("after")) is not None:
        ids = [item["id"] for item in items]
        if after in ids:
            items = items[ids.index(after) + 1 :]
        else:
            items = []
    page = items[:limit]
    first_id, last_id = (page[0]["id"], page[-1]["id"]) if page else (None, None)
    await call.respond(
        {
            "object": "list",
            "data": page,
            "first_id": first_id,
            "last_id": last_id,
            "has_more": len(page) < len(items),
        }
    )


def _read_limit(text: str) -> int:
    """Parses the Responses API's `limit` of a list of input items, from 1 on. Raises
    `InvalidRequestError` if invalid."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_LIMIT
    if not is_number or not 0 < int(text) <= _MOST_ITEMS:
        raise InvalidRequestError(
            f"limit must be a number from 1 to {_MOST_ITEMS}, not {text!r:.20}"
        )
    return int(text)


async def delete_response(call: Call) -> None:
    """Deletes a stored answer of the Responses API."""
    answered = await _find_answer(call)
    await end_answer(call, answered)
    await call.service.answers.delete(call.caller.id, answered.id)
    await call.respond(wire.dump_deleted(answered.id))


async def cancel_response(call: Call) -> None:
    """Ends an answer that is being made in the background."""
    answered = await settle(call, await _find_answer(call))
    if answered.state == "in_progress":
        await end_answer(call, answered)
        answered = await settle(call, await _find_answer(call))
    elif answered.state != "cancelled":
        raise InvalidRequestError(
            "the response is not being made in the background, so that it cannot be cancelled"
        )
    await _show_answer(call, answered)


async def _show_answer(call: Call, answered: Answered) -> None:
    """Answers with a kept answer as a whole response."""
    state: str = answered.state
    if state == "in_progress" and answered.ending is not None:
        status = await find_status(call, answered)
        if status is not None and status.state == "queued":
            state = "queued"
    await call.respond(_dump_answer(answered, state))


async def _stream_again(call: Call, answered: Answered) -> None:
    """Streams an answer of the Responses API that is made in the background, from where its client
    lost it.

    Raises:
        InvalidRequestError: it is not made so, or its stream is not kept any more.
    """
    skip = _read_number(call, "starting_after", -1) + 1
    status = await find_status(call, answered)
    if status is None:
        raise InvalidRequestError(
            "the stream of this response is not kept: it was not made in the background, or is old; ask for it without stream"
        )
    envelope = wire.envelope(answered.request, id=answered.id, now=answered.created_at)
    encoder = wire.encoder(**envelope)
    encoder.skip = skip
    client_answer: ClientAnswer | None = None
    if status.is_durable:
        # The log has the run as the agent made it.
        client_answer = ClientAnswer(call, (), answered.request.messages, drops_parts=True)

    def take(page: Sequence[Event]) -> Sequence[Event]:
        return public_events(page if client_answer is None else client_answer.feed(page))

    async with read_run(call, status.run_id, cancel_on_leave=False) as pages:
        await stream(call, encoder, pages, take)


def _dump_answer(answered: Answered, state: str) -> Json:
    """Returns a kept answer as a whole response. `state`: its own, or `queued`."""
    body = _dump_completed(answered)
    if state == "completed":
        return body
    return wire.dump_unfinished(body, state, answered.error)


def _dump_completed(answered: Answered) -> Json:
    envelope = wire.envelope(answered.request, id=answered.id, now=answered.created_at)
    return wire.dump_response(unfold(answered.visible or answered.output), **envelope)


def _read_number(call: Call, name: str, default: int) -> int:
    """Parses a number from 0 on in the query of a Responses request, or returns `default` if
    absent."""
    text = call.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise InvalidRequestError(f"{name} must be a number from 0 on, not {text!r:.20}")
    return int(text)


async def _find_answer(call: Call) -> Answered:
    """Returns the Responses answer of the id in the path.

    Raises:
        ModelNotFoundError: there is none that the caller may see.
    """
    response_id = call.parameters["id"]
    answered = await call.service.answers.get(call.caller.id, wire.read_call_id(response_id))
    if answered is None or not answered.shared or answered.wire != call.wire.name:
        raise ModelNotFoundError(f"there is no response {response_id!r:.100} here")
    return answered


# how far an answer is that is made in the background


async def settle(call: Call, answered: Answered) -> Answered:
    """Returns a Responses answer as far as it is by now. One whose process is gone has failed, with
    what there was of it."""
    if answered.state != "in_progress":
        return answered
    if answered.ending is not None:
        return await call.service.settle(answered)
    status = await find_status(call, answered)
    if status is None:
        if _is_old(call, answered):
            return msgspec.structs.replace(answered, state="failed")
        return answered
    if not status.is_over and status.driven:
        return answered
    # who made it may have kept it just now
    latest = await call.service.answers.get(answered.owner, answered.id)
    if latest is not None and latest.state != "in_progress":
        return latest
    logged = await _load_from_log(call, answered, status)
    # nobody else will keep it
    if status.state in ("running", "interrupted"):
        seconds = call.service.limits.keep_seconds
        await keep_answer(call.service.answers, logged, [], seconds=seconds)
    return logged


async def find_status(call: Call, answered: Answered) -> RunStatus | None:
    """Returns the status of the run that makes a Responses answer; None if no run does, or if the
    log has forgotten it."""
    if answered.run_id is None:
        return None
    try:
        return await call.service.runs.status(answered.run_id)
    except RunLogError:
        return None


async def end_answer(call: Call, answered: Answered) -> None:
    """Ends a Responses answer that is being made, wherever that is, and waits for its end."""
    status = await find_status(call, answered)
    if status is None or status.is_over:
        return
    runs = call.service.runs
    await runs.cancel(status.run_id)
    with anyio.move_on_after(_WAIT_SECONDS):
        async with aclosing(runs.pages(status.run_id, status.end)) as pages:
            async for _ in pages:
                pass
        # What is deleted would else come back.
        if status.is_durable:
            await wait_for_job(call.service, KEEP, status.run_id, None)


async def _load_from_log(call: Call, answered: Answered, status: RunStatus) -> Answered:
    """Returns a Responses answer as the run log has it."""
    events: list[Event] = []
    async with aclosing(call.service.runs.stored_events(status)) as pages:
        async for page in pages:
            events += page
    last = events[-1] if events else None
    if isinstance(last, RunError) and status.state == "error":
        error = last.error
    else:
        error = None
    if error is None and status.state in ("running", "interrupted", "error"):
        error = OverloadedError(
            "the process that made this answer ended before it did; send the request again"
        )
    output = [message for message in repair(fold(events)) if message.role is Role.MODEL]
    return msgspec.structs.replace(
        answered,
        output=tuple(output),
        state=_STATES[status.state],
        error=None if error is None else dict(call.wire.dump_error(public(error)).body),
        usage=output[-1].usage if output else None,
    )


def _is_old(call: Call, answered: Answered) -> bool:
    """True if no process can be making the Responses answer any more."""
    limit = call.service.limits.run_seconds
    age = (call.now - answered.created_at).total_seconds()
    return limit is not None and age > limit + _GRACE_SECONDS


# what a request names of answers


def _read_links(request: ModelRequest) -> Links:
    """Returns what a request says of responses that are kept.

    Raises:
        InvalidRequestError: it says it in a form that there is not.
    """
    options = request.options
    after, conversation = options.get("previous_response_id"), options.get("conversation")
    conversation = if_object(conversation).get("id", conversation)
    for name, value in (("previous_response_id", after), ("conversation", conversation)):
        if value is not None and not isinstance(value, str):
            raise InvalidRequestError(f"{name} must be an id").at(field=name)
    if after is not None and conversation is not None:
        both = "previous_response_id and conversation exclude each other; leave one out"
        raise InvalidRequestError(both).at(field="previous_response_id")
    remaining = {
        name: value
        for name, value in options.items()
        if name not in wire.LINKS or (name, value) == ("store", False)
    }
    return Links(
        request.replace(options=remaining, wire=request.wire if remaining else None),
        after=None if after is None else wire.read_call_id(after),
        conversation=conversation,
        stored=options.get("store") is not False,
        background=options.get("background") is True,
    )


async def _resolve_references(call: Call, *, passes_on: bool) -> Call:
    """Returns the call of the Responses API with the items that its body names. `passes_on`: those
    that are not kept are left to the provider.

    Raises:
        InvalidRequestError: one is not kept, or is another's, or is named twice.
        ContextLengthError: together they are larger than may be.
    """
    references = wire.find_item_references(call.body)
    if not references:
        return call
    known_items: dict[str, JsonMap] = {}
    items: dict[int, JsonMap] = {}
    taken: set[int] = set()
    for index, name in references:
        if name not in known_items:
            answered = await call.service.answers.find(call.caller.id, [_item_key(name)])
            if answered is not None and answered.shared and answered.wire == call.wire.name:
                # a later answer's, where ids come again
                known_items |= _dump_items(answered)
        if (item := known_items.get(name)) is None:
            if passes_on:
                continue
            raise InvalidRequestError(
                f"input[{index}]: there is no item {name!r:.80} here; send the item itself, as clients do where store is false"
            ).at(field=f"input[{index}]")
        # two answers may have items of one id
        if id(item) in taken:
            raise InvalidRequestError(
                f"input[{index}]: the item {name!r:.80} is there twice; leave one out"
            ).at(field=f"input[{index}]")
        taken.add(id(item))
        items[index] = item
    if not items:
        return call
    check_conversation(
        len(msgspec.json.encode(list(items.values()))), call.service.limits.conversation_bytes
    )
    return msgspec.structs.replace(call, body=wire.replace_items(call.body, items))


def _dump_items(answered: Answered) -> dict[str, Json]:
    """Returns the items of an answer by their ids."""
    return wire.index_items(_dump_completed(answered))


def _item_key(name: str) -> str:
    return f"item:{name}"
