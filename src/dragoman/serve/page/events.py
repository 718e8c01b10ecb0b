"""Streams the events of a run to the page as server-sent events, from any of them on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import aclosing

import msgspec

from dragoman import json_bytes
from dragoman.event import Event, MessageFinished, PartDelta, event_to_json
from dragoman.serve.page.door import PageRequest, Reply
from dragoman.serve.page.views import OwnerEvents, find_run

__all__ = ["show_events"]

_PING = b": ping\n\n"
_END = b"event: end\ndata: {}\n\n"
_MOST_EVENTS = 10**10
_MOST_LISTED = 500
"""Events of a list."""


async def show_events(request: PageRequest) -> Reply | None:
    """Streams the events of a run, or lists some of them."""
    call = request.call
    status = await find_run(call, call.parameters["id"])
    start = request.read_number("from", _MOST_EVENTS)
    if call.query.get("format") == "json":
        return await _list_events(request, start)
    # A browser that lost the stream says where.
    last = call.headers.get("last-event-id", "")
    if last.isascii() and last.isdigit() and len(last) < 11:
        start = int(last)
    connection, view = call.connection, OwnerEvents(call)
    connection.stream({"content-type": "text/event-stream"}, _PING, lambda _: _END)
    position = 0 if view.needs_all else min(start, status.end)
    async with aclosing(call.service.runs.pages(status.run_id, position)) as pages:
        async for page in pages:
            frames = list(_frame_page(view, page, position, start))
            position += len(page)
            if frames:
                await connection.write(b"".join(frames))
    await connection.end(_END)
    return None


def _frame_page(
    view: OwnerEvents, page: Sequence[Event], position: int, start: int
) -> Iterator[bytes]:
    """Yields the frames of the events that the owner gets after the first `start`. Neighbouring
    deltas of one part are joined. `position`: number of the events before the page."""
    waiting: list[str | bytes] = []
    last: PartDelta | None = None
    for end, event in enumerate(page, position + 1):
        for visible in view.feed([event]) if end > start else _skip(view, event):
            if last is not None and not _continues(last, visible):
                yield _frame_deltas(last, waiting, end - 1)
                last, waiting = None, []
            if type(visible) is PartDelta:
                last = visible
                waiting.append(visible.delta)
            else:
                yield _frame(visible, end)
                yield _frame_cost(view, visible)
    if last is not None:
        yield _frame_deltas(last, waiting, position + len(page))


def _skip(view: OwnerEvents, event: Event) -> Sequence[Event]:
    """Shows the view an event that the page has."""
    view.feed([event])
    return ()


def _continues(last: PartDelta, event: Event) -> bool:
    """True if an event is a further delta of the same part."""
    return (
        type(event) is PartDelta
        and (event.message_id, event.index) == (last.message_id, last.index)
        and type(event.delta) is type(last.delta)
    )


def _frame_deltas(last: PartDelta, deltas: Sequence[str | bytes], end: int) -> bytes:
    """Returns the frame of neighbouring deltas."""
    if isinstance(last.delta, bytes):
        joined = b"".join([delta for delta in deltas if isinstance(delta, bytes)])
    else:
        joined = "".join([delta for delta in deltas if isinstance(delta, str)])
    return _frame(PartDelta(last.message_id, last.index, joined, at=last.at), end)


def _frame(event: Event, end: int) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (end, event_to_json(event))


def _frame_cost(view: OwnerEvents, event: Event) -> bytes:
    """Returns the frame of what a message cost, after its end."""
    if not isinstance(event, MessageFinished):
        return b""
    cost = view.costs.pop(event.message_id, None)
    if cost is None:
        return b""
    data = json_bytes.encode({"message_id": event.message_id, "cost": cost})
    return b"event: cost\ndata: %b\n\n" % data


async def _list_events(request: PageRequest, start: int) -> Reply:
    """Answers with some events of a run, and how many there are."""
    call = request.call
    status = await find_run(call, call.parameters["id"])
    stop = request.read_number("to", _MOST_EVENTS) or status.end
    stop = min(stop, status.end, start + _MOST_LISTED)
    view, items, position = OwnerEvents(call), list[object](), 0
    if not view.needs_all:
        position = start
    while position < stop and (page := await call.service.log.read(status.run_id, position)):
        for number, event in enumerate(page[: stop - position], position):
            items += [
                {"n": number, "event": msgspec.Raw(event_to_json(visible))}
                for visible in view.feed([event])
                if number >= start
            ]
        position += len(page)
    return Reply({"items": items, "end": status.end})
