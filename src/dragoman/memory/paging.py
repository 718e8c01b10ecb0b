"""Pages of what a store holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from dragoman.memory.store import MessageQuery, Store
from dragoman.memory.thread import Page, StoredMessage

__all__ = ["Neighbours", "page_of", "with_neighbours"]

T = TypeVar("T")


class Neighbours(msgspec.Struct, frozen=True):
    """A message that `recall` is to bring beside those of the page, with some around it."""

    message_id: str
    """Which message."""
    before: int = 0
    """How many before it."""
    after: int = 0
    """How many behind it."""


def page_of(found: Sequence[T], page: int, per_page: int | None) -> Page[T]:
    """A page of what was asked for with one more than it holds."""
    items = tuple(found if per_page is None else found[:per_page])
    return Page(items=items, page=page, per_page=per_page, has_more=len(items) < len(found))


async def with_neighbours(
    store: Store, query: MessageQuery, wanted: Neighbours
) -> list[StoredMessage]:
    """A message of the thread and branch of a query, and its neighbours; none where those do not show it."""
    own = MessageQuery(thread_id=query.thread_id, branch=query.branch)
    found = await store.messages(msgspec.structs.replace(own, ids=(wanted.message_id,)))
    if not found:
        return []
    place = found[0].position
    before = msgspec.structs.replace(own, before=place, newest_first=True, limit=wanted.before)
    after = msgspec.structs.replace(own, after=place, limit=wanted.after)
    return [*await store.messages(before), *found, *await store.messages(after)]
