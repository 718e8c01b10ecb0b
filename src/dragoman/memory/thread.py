"""Values that a store returns: threads, branches, messages and pages; and the spans of messages
that a branch shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

import msgspec

from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.message import Message

__all__ = ["Branch", "Page", "Span", "StoredMessage", "Thread", "find_spans", "is_shown"]

T = TypeVar("T")


class Thread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored conversation, without its messages."""

    id: str
    """Its id."""
    resource_id: str | None = None
    """Its owner, such as a user's id."""
    title: str = ""
    """For people; may be empty."""
    metadata: Json = {}
    """The application's own notes, any JSON."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When something was last written into it."""
    branch: int = 0
    """The visible branch, which new messages continue."""
    trimmed: int = 0
    """The position up to which the token budget leaves messages out; 0: none are."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """An alternative continuation of a conversation. The first one is number 0 and has no
    `Branch`."""

    number: int
    """Its number within the thread."""
    parent: int
    """Number of the branch that it leaves."""
    position: int
    """Position of the last common message; 0: none."""
    created_at: datetime
    """Time of its creation."""


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message and its place in the store."""

    message: Message
    """The message."""
    thread_id: str
    """The thread's id."""
    position: int
    """Its place in the order of the thread, from 1, with gaps."""
    branch: int = 0
    """The branch in which it was written."""
    problem: str | None = None
    """The reason why the message cannot be read, if damaged ones were asked for; `message` is empty
    then."""


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One page of a longer list."""

    items: tuple[T, ...]
    """Items of this page."""
    page: int
    """Number of the page, from 0."""
    per_page: int | None
    """Most items of a page; `None`: all."""
    has_more: bool
    """True if another page follows."""


class Span(NamedTuple):
    """The messages of a branch up to a position."""

    branch: int
    """Number of the branch."""
    until: int | None
    """Position of the last message; `None`: to the end."""


def find_spans(thread_id: str, branch: int, branches: Mapping[int, Branch]) -> tuple[Span, ...]:
    """Returns the spans (ranges of messages) that a branch of a thread shows, the branch's own
    first, then those of its parents.

    Raises:
        HistoryError: the thread has no such branch.
    """
    spans = [Span(branch, None)]
    while branch:
        if branch not in branches:
            raise HistoryError(f'the thread "{thread_id}" has no branch {branch}')
        parent_branch = branches[branch]
        branch = parent_branch.parent
        spans.append(Span(branch, parent_branch.position))
    return tuple(spans)


def is_shown(spans: tuple[Span, ...], branch: int, position: int) -> bool:
    """True if one of the spans that a thread's branch shows contains the message at this
    position."""
    return any(
        span.branch == branch and (span.until is None or position <= span.until) for span in spans
    )
