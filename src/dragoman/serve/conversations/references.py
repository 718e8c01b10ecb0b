"""Items of kept answers that a request names by their ids, in place of sending them again: the server puts them where they are named.

Which wire's requests do is said by the wire: `item_references` finds them, `items_by_id` has those of an answer, `with_items` puts them in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.errors import InvalidRequestError
from dragoman.fold import unfold
from dragoman.serve.calls.call import Call
from dragoman.serve.http.limits import check_conversation
from dragoman.serve.store.records import Answered
from dragoman.wires.serving import serving
from dragoman.wires.wire import Wire

__all__ = ["item_keys", "with_references"]


async def with_references(call: Call, *, passed_on: bool) -> Call:
    """The call with the items that its body names. `passed_on`: those that are not kept are left to the provider.

    Raises:
        InvalidRequestError: one is not kept, or is another's, or is named twice.
        ContextLengthError: together they are larger than may be.
    """
    wire = serving(call.wire)
    named = [] if wire.item_references is None else wire.item_references(call.body)
    if not named or wire.with_items is None:
        return call
    known: dict[str, Mapping[str, Any]] = {}
    items: dict[int, Mapping[str, Any]] = {}
    taken: set[int] = set()
    for place, name in named:
        if name not in known:
            answered = await call.service.answers.find(call.caller.id, [_key(name)])
            if answered is not None and answered.shared and answered.wire == call.wire.name:
                known |= _items(call.wire, answered)  # a later answer's, where ids come again
        if (item := known.get(name)) is None:
            if passed_on:
                continue
            raise InvalidRequestError(
                f"input[{place}]: there is no item {name!r:.80} here; send the item itself, as clients do where store is false"
            ).at(field=f"input[{place}]")
        if id(item) in taken:  # two answers may have items of one id
            raise InvalidRequestError(
                f"input[{place}]: the item {name!r:.80} is there twice; leave one out"
            ).at(field=f"input[{place}]")
        taken.add(id(item))
        items[place] = item
    if not items:
        return call
    check_conversation(
        len(msgspec.json.encode(list(items.values()))), call.service.limits.conversation_bytes
    )
    return msgspec.structs.replace(call, body=wire.with_items(call.body, items))


def item_keys(wire: Wire, answered: Answered) -> list[str]:
    """The keys under which an answer is found by its items."""
    if not answered.shared:
        return []
    return [_key(name) for name in _items(wire, answered)]


def _items(wire: Wire, answered: Answered) -> dict[str, dict[str, Any]]:
    by_id = serving(wire).items_by_id
    if by_id is None:
        return {}
    envelope = wire.envelope(answered.request, id=answered.id, now=answered.created_at)
    return by_id(wire.dump_response(unfold(answered.visible or answered.output), **envelope))


def _key(name: str) -> str:
    return f"item:{name}"
