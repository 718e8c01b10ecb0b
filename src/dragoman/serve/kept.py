"""What a client may ask of answers that are kept for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.errors import InvalidRequestError, ModelNotFoundError
from dragoman.fold import unfold
from dragoman.message import Message
from dragoman.serve.call import Call
from dragoman.serve.records import Answered

__all__ = ["cancel_response", "delete_response", "input_items", "response"]

_MOST_ITEMS = 100
_ITEMS = 20
_DIGITS = 6
"""Digits of a number that is read at all; leading zeros count."""
_GRACE_SECONDS = 60


async def response(call: Call) -> None:
    """An answer that is kept."""
    await _respond(call, dumped(call, await _found(call)))


async def input_items(call: Call) -> None:
    """What a kept answer answers, a page at a time."""
    answered, query = await _found(call), call.query
    most = call.service.limits.conversation_bytes
    chain = await call.service.answers.chain(call.caller.id, answered.id, most_bytes=most)
    messages: list[Message] = [message for one in chain[:-1] for message in one.messages]
    wire: Any = call.wire
    items: list[dict[str, Any]] = wire.dump_input_items([*messages, *answered.request.messages])
    if query.get("order", "desc") != "asc":
        items.reverse()
    limit = query.get("limit", str(_ITEMS))
    if not (limit.isascii() and limit.isdigit() and len(limit) <= _DIGITS and 0 < int(limit) <= _MOST_ITEMS):
        raise InvalidRequestError(f"limit must be a number from 1 to {_MOST_ITEMS}, not {limit!r:.20}")
    if (after := query.get("after")) is not None:
        ids = [item["id"] for item in items]
        items = items[ids.index(after) + 1 :] if after in ids else []
    page = items[: int(limit)]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    await _respond(call, {"object": "list", "data": page, **ends, "has_more": len(page) < len(items)})


async def delete_response(call: Call) -> None:
    """Forgets an answer."""
    answered = await _found(call)
    await call.service.answers.delete(call.caller.id, answered.id)
    wire: Any = call.wire
    await _respond(call, wire.dump_deleted(answered.id))


async def cancel_response(call: Call) -> None:
    """Ends an answer that is being made in the background."""
    answered = await _found(call)
    if await call.service.background.cancel(answered.id):
        answered = await _found(call)
    elif answered.state != "cancelled":
        raise InvalidRequestError("the response is not being made in the background, so that it cannot be cancelled")
    await _respond(call, dumped(call, answered))


def dumped(call: Call, answered: Answered) -> dict[str, Any]:
    """A kept answer, as the wire has a whole response."""
    envelope = call.wire.envelope(answered.request, id=answered.id, now=answered.created_at)
    body = call.wire.dump_response(unfold(answered.visible or answered.output), **envelope)
    state, error = answered.state, answered.error
    if state == "in_progress" and not call.service.background.is_running(answered.id) and _is_old(call, answered):
        state = "failed"
    wire: Any = call.wire
    return body if state == "completed" else wire.with_state(body, state, error)


def _is_old(call: Call, answered: Answered) -> bool:
    """Whether no process can be making the answer any more."""
    most = call.service.limits.run_seconds
    return most is not None and (call.now - answered.created_at).total_seconds() > most + _GRACE_SECONDS


async def _found(call: Call) -> Answered:
    """The answer of the id in the path.

    Raises:
        ModelNotFoundError: there is none that the caller may see.
    """
    wire: Any = call.wire
    found = await call.service.answers.get(call.caller.id, wire.call_id(call.parameters["id"]))
    if found is None or not found.shared or found.wire != call.wire.name:
        raise ModelNotFoundError(f"there is no response {call.parameters['id']!r:.100} here")
    return found


async def _respond(call: Call, value: Mapping[str, Any]) -> None:
    await call.connection.respond(200, {"content-type": "application/json"}, json_bytes.encode(value))
