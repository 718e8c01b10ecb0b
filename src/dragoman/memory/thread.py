"""What a store gives: threads, their branches, messages in them; and what a branch shows of a
thread."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

import msgspec

from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.message import Message

__all__ = ["Branch", "Page", "Span", "StoredMessage", "Thread", "path", "shows"]

T = TypeVar("T")


class Thread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation that is stored, without its messages."""

    id: str
    """Its id."""
    resource_id: str | None = None
    """Whose it is, such as a user's id."""
    title: str = ""
    """For people; may be empty."""
    metadata: Json = {}
    """The application's own notes, any JSON."""
    created_at: datetime
    """When it was made."""
    updated_at: datetime
    """When something was last written into it."""
    branch: int = 0
    """The branch that is shown and gone on with."""
    trimmed: int = 0
    """The position up to which a token budget leaves messages out of what agents are given; 0:
    none."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One of the ways in which a conversation went on. The first one has no `Branch`: it is number
    0."""

    number: int
    """Its number in the thread."""
    parent: int
    """The branch that it leaves."""
    position: int
    """The position of the last message that both have; 0: none."""
    created_at: datetime
    """When it was made."""


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message and where it stands."""

    message: Message
    """The message."""
    thread_id: str
    """The thread's id."""
    position: int
    """Its place in the order of the thread, from 1 on; there are gaps."""
    branch: int = 0
    """The branch that it was written in."""
    problem: str | None = None
    """Why the message cannot be read, where it was asked for nevertheless; it is empty then."""


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Some of many."""

    items: tuple[T, ...]
    """These."""
    page: int
    """Which page, from 0 on."""
    per_page: int | None
    """Most items of a page; `None`: all."""
    has_more: bool
    """Whether there is another page behind it."""


class Span(NamedTuple):
    """Messages of a branch."""

    branch: int
    """Which one."""
    until: int | None
    """The position of the last one; `None`: all."""


def path(thread_id: str, branch: int, branches: Mapping[int, Branch]) -> tuple[Span, ...]:
    """Returns the spans that a branch shows, the latest first.

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


def shows(spans: tuple[Span, ...], branch: int, position: int) -> bool:
    """Returns whether these spans hold a message."""
    return any(
        span.branch == branch and (span.until is None or position <= span.until) for span in spans
    )
