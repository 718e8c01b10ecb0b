"""What a server does at the places of agent protocols: runs are begun, read, left and ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.errors import InvalidRequestError, ModelNotFoundError
from dragoman.event import RunError
from dragoman.message import Message, Role
from dragoman.request import RunRequest
from dragoman.serve.agents.shown_events import shown
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.threads import resource_of, thread_id
from dragoman.serve.protocols.agent_card import abilities_of, card_of
from dragoman.serve.protocols.runs import begun, latest_key, read_run, served_agent
from dragoman.serve.store.records import Answered
from dragoman.wires.serving import serving
from dragoman.wires.wire import ProtocolWire

__all__ = ["attach", "cancel_run", "capabilities", "logged", "run", "stream_run"]

_SSE = "text/event-stream"


async def run(call: Call) -> None:
    """Begins a run, and streams it."""
    wire = _wire(call)
    request = wire.load_run(call.body, path=call.path, headers=call.headers)
    served = served_agent(call, call.parameters.get("model", ""))
    run_id = await begun(call, request, served)
    leaves = served.policy.on_disconnect == "cancel"
    await stream_run(call, run_id, request, cancel_on_leave=leaves)


async def attach(call: Call) -> None:
    """Streams a run that was begun before, from where its client lost it."""
    found = await _found(call)
    if found is None or found.run_id is None:
        empty = serving(call.wire).nothing_runs
        if empty is None:
            raise _unknown(call)
        await call.connection.respond(empty, {}, b"")
        return
    skip, again = _offset(call), serving(call.wire).envelope_again
    if skip or again is None:
        await stream_run(
            call, found.run_id, await _request_of(call, found, goes_on=bool(skip)), skip=skip
        )
    else:
        await stream_run(
            call, found.run_id, await _request_of(call, found, goes_on=True), envelope=again
        )


async def _request_of(call: Call, found: Answered, *, goes_on: bool) -> RunRequest:
    """What a run was asked, with the conversation before it, of which nothing that a provider signed is shown. `goes_on`: who goes on has its
    own question too."""
    request = found.asked or RunRequest(thread_id=call.parameters.get("id"), run_id=found.run_id)
    chain = (
        []
        if found.parent is None
        else await call.service.answers.chain(call.caller.id, found.parent)
    )
    before = [message for one in chain for message in one.messages]
    own = [message for message in found.request.messages if message.role is Role.USER]
    return request.replace(
        messages=tuple([_plain(message) for message in (*before, *(own if goes_on else ()))])
    )


def _plain(message: Message) -> Message:
    content = [
        msgspec.structs.replace(piece, native=None) if piece.native else piece
        for piece in message.content
    ]
    return message.replace(content=tuple(content), native=None, origin=None)


async def cancel_run(call: Call) -> None:
    """Ends a run."""
    found = await _found(call)
    if found is None or found.run_id is None:
        raise _unknown(call)
    await call.service.runs.cancel(found.run_id)
    await call.connection.respond(204, {}, b"")


async def capabilities(call: Call) -> None:
    """What an agent can do, as the wire words it."""
    served = served_agent(call, call.parameters.get("model", ""))
    body = call.served.dump_capabilities(card_of(call, served), abilities_of(call, served))
    await call.connection.respond(
        200, {"content-type": "application/json"}, json_bytes.encode(body)
    )


async def stream_run(
    call: Call,
    run_id: str,
    request: RunRequest,
    *,
    skip: int = 0,
    cancel_on_leave: bool = False,
    envelope: Callable[..., dict[str, Any]] | None = None,
) -> None:
    """Streams a run to its end. `skip`: so many of its events the client has, which is the id of the last frame that it got; `cancel_on_leave`: where the client leaves, the run ends; `envelope`: in
    the place of the wire's."""
    wire, connection = _wire(call), call.connection
    encoder = wire.encoder(**(envelope or wire.envelope)(request, id=run_id, now=call.now))
    headers = {"content-type": wire.stream_type, **serving(wire).stream_headers}
    connection.stream(
        headers, wire.ping, lambda error: encoder.feed(RunError(error)) + encoder.close()
    )
    count, is_sse = 0, wire.stream_type.startswith(_SSE)
    async with read_run(call, run_id, cancel_on_leave=cancel_on_leave) as pages:
        async for page in pages:
            call.observed.add(page)
            pieces = [encoder.feed(event) for event in shown(page, resource_of(call))]
            if is_sse:
                pieces = [
                    _numbered(piece, number) for number, piece in enumerate(pieces, count + 1)
                ]
            if data := b"".join(pieces[max(0, skip - count) :]):
                await connection.write(data)
            count += len(page)
    await connection.end(encoder.close())


async def _found(call: Call) -> Answered | None:
    """The run of the id in the path: its own, the client's for it, or its
    thread's latest, which may go on. `None`: there is none in the log."""
    store, owner, name = call.service.answers, call.caller.id, call.parameters.get("id", "")
    thread = thread_id(resource_of(call), name)
    keys = [f"run:{name}", latest_key(thread), f"thread:{thread}"]
    found = await store.get(owner, name) or await store.find(owner, keys)
    return found if found is not None and await logged(call, found.run_id) else None


async def logged(call: Call, run_id: str | None) -> bool:
    """Whether the log has a run: it may have forgotten what is kept yet."""
    return run_id is not None and run_id in await call.service.log.status([run_id])


def _numbered(piece: bytes, number: int) -> bytes:
    """The frames of an event, the last of them with the offset from which a client goes on that has it."""
    if not piece.endswith(b"\n\n"):
        return piece
    at = piece.rfind(b"\n\n", 0, -2) + 2 if piece.count(b"\n\n") > 1 else 0
    return b"%bid: %d\n%b" % (piece[:at], number, piece[at:])


def _offset(call: Call) -> int:
    given = call.headers.get("last-event-id") or call.query.get("from") or "0"
    if not (given.isascii() and given.isdigit() and len(given) < 12):
        raise InvalidRequestError(f"the offset must be a number of events, not {given!r:.20}")
    return int(given)


def _unknown(call: Call) -> ModelNotFoundError:
    return ModelNotFoundError(f"there is no run {call.parameters.get('id', '')!r:.200} here")


def _wire(call: Call) -> ProtocolWire:
    return cast("ProtocolWire", call.wire)
