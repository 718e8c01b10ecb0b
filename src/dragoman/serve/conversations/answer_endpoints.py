"""What a client may ask of answers that are kept for it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from dragoman import json_bytes
from dragoman.errors import InvalidRequestError, ModelNotFoundError
from dragoman.event import RunError
from dragoman.fold import unfold
from dragoman.message import Message
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.answer_progress import end_answer, settled, status_of
from dragoman.serve.conversations.logged import public_events
from dragoman.serve.store.records import Answered

__all__ = ["cancel_response", "delete_response", "input_items", "response"]

_MOST_ITEMS = 100
_ITEMS = 20
_DIGITS = 6
"""Digits of a number that is read at all; leading zeros count."""
_LONGEST_NUMBER = 9
"""Digits of the place of an event in a stream."""
_YES = ("true", "1")


async def response(call: Call) -> None:
    """An answer that is kept, whole or streamed again."""
    answered = await _found(call)
    if call.query.get("stream", "").lower() in _YES:
        await _stream_again(call, answered)
    else:
        await _respond(call, dumped(call, await settled(call, answered)))


async def input_items(call: Call) -> None:
    """What a kept answer answers, a page at a time."""
    answered, query = await _found(call), call.query
    most = call.service.limits.conversation_bytes
    chain = await call.service.answers.chain(call.caller.id, answered.id, most_bytes=most)
    messages: list[Message] = [
        message for one in chain[:-1] for message in (*one.lasting, *one.messages)
    ]
    items = call.served.dump_input_items([*messages, *answered.request.messages])
    if query.get("order", "desc") != "asc":
        items.reverse()
    limit = query.get("limit", str(_ITEMS))
    if not (
        limit.isascii()
        and limit.isdigit()
        and len(limit) <= _DIGITS
        and 0 < int(limit) <= _MOST_ITEMS
    ):
        raise InvalidRequestError(
            f"limit must be a number from 1 to {_MOST_ITEMS}, not {limit!r:.20}"
        )
    if (after := query.get("after")) is not None:
        ids = [item["id"] for item in items]
        items = items[ids.index(after) + 1 :] if after in ids else []
    page = items[: int(limit)]
    ends = (
        {"first_id": page[0]["id"], "last_id": page[-1]["id"]}
        if page
        else {"first_id": None, "last_id": None}
    )
    await _respond(
        call, {"object": "list", "data": page, **ends, "has_more": len(page) < len(items)}
    )


async def delete_response(call: Call) -> None:
    """Forgets an answer."""
    answered = await _found(call)
    await end_answer(call, answered)
    await call.service.answers.delete(call.caller.id, answered.id)
    await _respond(call, call.served.dump_deleted(answered.id))


async def cancel_response(call: Call) -> None:
    """Ends an answer that is being made in the background."""
    answered = await settled(call, await _found(call))
    if answered.state == "in_progress":
        await end_answer(call, answered)
        answered = await settled(call, await _found(call))
    elif answered.state != "cancelled":
        raise InvalidRequestError(
            "the response is not being made in the background, so that it cannot be cancelled"
        )
    await _respond(call, dumped(call, answered))


async def _stream_again(call: Call, answered: Answered) -> None:
    """Streams an answer that is made in the background, from where its client lost it.

    Raises:
        InvalidRequestError: it is not made so, or its stream is not kept any more.
    """
    skip = _number(call, "starting_after", -1) + 1
    status = await status_of(call, answered)
    if status is None:
        raise InvalidRequestError(
            "the stream of this response is not kept: it was not made in the background, or is old; ask for it without stream"
        )
    wire, connection = call.wire, call.connection
    encoder: Any = wire.encoder(
        **wire.envelope(answered.request, id=answered.id, now=answered.created_at)
    )
    encoder.skip = skip
    headers = {"content-type": wire.stream_type}
    connection.stream(
        headers, wire.ping, lambda error: encoder.feed(RunError(error)) + encoder.close()
    )
    async with aclosing(call.service.runs.pages(status.run_id, paces=True)) as pages:
        async for page in pages:
            if data := b"".join([encoder.feed(event) for event in public_events(page)]):
                await connection.write(data)
    await connection.end(encoder.close())


def dumped(call: Call, answered: Answered) -> dict[str, Any]:
    """A kept answer, as the wire has a whole response."""
    envelope = call.wire.envelope(answered.request, id=answered.id, now=answered.created_at)
    body = call.wire.dump_response(unfold(answered.visible or answered.output), **envelope)
    return (
        body
        if answered.state == "completed"
        else call.served.with_state(body, answered.state, answered.error)
    )


def _number(call: Call, name: str, default: int) -> int:
    given = call.query.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= _LONGEST_NUMBER):
        raise InvalidRequestError(f"{name} must be a number from 0 on, not {given!r:.20}")
    return int(given)


async def _found(call: Call) -> Answered:
    """The answer of the id in the path.

    Raises:
        ModelNotFoundError: there is none that the caller may see.
    """
    found = await call.service.answers.get(
        call.caller.id, call.served.call_id(call.parameters["id"])
    )
    if found is None or not found.shared or found.wire != call.wire.name:
        raise ModelNotFoundError(f"there is no response {call.parameters['id']!r:.100} here")
    return found


async def _respond(call: Call, value: Mapping[str, Any]) -> None:
    await call.connection.respond(
        200, {"content-type": "application/json"}, json_bytes.encode(value)
    )
