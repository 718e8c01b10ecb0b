"""A store in memory: gone with the process. For tests, and for agents that need not remember longer."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec

from dragoman.errors import HistoryError, SettingsError
from dragoman.memory.changing import fits, made, owned, words_of
from dragoman.memory.packing import Packed, digest_of, microseconds, packed, unpacked
from dragoman.memory.store import Batch, MessageQuery, Store, ThreadQuery
from dragoman.memory.thread import Branch, Span, StoredMessage, Thread, path, shows
from dragoman.message import Message
from dragoman.sql.address import check_address

__all__ = ["open_store", "MemoryStore"]


class _Row(msgspec.Struct, frozen=True):
    message_id: str
    position: int
    branch: int
    created_at: datetime | None
    at: int
    turn: str | None
    body: bytes


class _Body(msgspec.Struct, frozen=True):
    data: str
    text: frozenset[str]
    attachments: tuple[bytes, ...]


class _Kept:
    """A thread, its messages, its branches, and the last position that was given."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.rows: list[_Row] = []
        self.places: defaultdict[str, list[int]] = defaultdict(list)
        """Of each id: where its messages stand among the rows."""
        self.branches: dict[int, Branch] = {}
        self.end = 0


class MemoryStore:
    """A `Store` that threads and event loops may share."""

    def __init__(self) -> None:
        self._threads: dict[str, _Kept] = {}
        self._bodies: dict[bytes, _Body] = {}
        self._uses: Counter[bytes] = Counter()
        """How many messages have a body, and how many bodies an attachment."""
        self._attachments: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    async def save(self, batch: Batch) -> Thread:
        """As `Store.save`."""
        parts = [packed(message) for message in batch.messages]
        with self._lock:
            kept = self._threads.get(batch.thread_id)
            thread = made(batch, None if kept is None else kept.thread)
            kept = _Kept(thread) if kept is None else kept
            if batch.change.branch is not None:
                path(thread.id, batch.change.branch, kept.branches)
            spans = path(thread.id, thread.branch, kept.branches)
            branch = self._branch(kept, thread, spans, batch)
            if branch is not None:
                kept.branches[branch.number] = branch
                thread = msgspec.structs.replace(thread, branch=branch.number)
                spans = path(thread.id, thread.branch, kept.branches)
            kept.thread = self._threads.setdefault(batch.thread_id, kept).thread = thread
            for message, part in zip(batch.messages, parts, strict=True):
                kept.end += 1
                self._write(
                    kept, _place(kept, spans, message.id or ""), message, self._keep(part), batch.at
                )
            return thread

    async def messages(self, wanted: MessageQuery) -> list[StoredMessage]:
        """As `Store.messages`."""
        with self._lock:
            rows = self._found(wanted)
            chosen = islice(
                rows, wanted.offset, None if wanted.limit is None else wanted.offset + wanted.limit
            )
            return [self._stored(thread_id, row) for thread_id, row in chosen]

    async def threads(self, wanted: ThreadQuery) -> list[Thread]:
        """As `Store.threads`."""
        with self._lock:
            found = [kept.thread for kept in self._threads.values() if fits(kept.thread, wanted)]
        found.sort(key=lambda thread: (thread.updated_at, thread.id), reverse=wanted.newest_first)
        return found[wanted.offset : None if wanted.limit is None else wanted.offset + wanted.limit]

    async def branches(self, thread_id: str) -> list[Branch]:
        """As `Store.branches`."""
        kept = self._threads.get(thread_id)
        return [] if kept is None else list(kept.branches.values())

    async def delete_thread(self, thread_id: str) -> bool:
        """As `Store.delete_thread`."""
        with self._lock:
            kept = self._threads.pop(thread_id, None)
            for row in [] if kept is None else kept.rows:
                self._release(row.body)
            return kept is not None

    async def delete_messages(self, thread_id: str, ids: Sequence[str], at: datetime) -> int:
        """As `Store.delete_messages`."""
        with self._lock:
            kept, unwanted = self._threads.get(thread_id), frozenset(ids)
            gone = [] if kept is None else [row for row in kept.rows if row.message_id in unwanted]
            if kept is None or not gone:
                return 0
            kept.rows = [row for row in kept.rows if row.message_id not in unwanted]
            kept.places.clear()
            for place, row in enumerate(kept.rows):
                kept.places[row.message_id].append(place)
            kept.thread = msgspec.structs.replace(kept.thread, updated_at=at)
            for row in gone:
                self._release(row.body)
            return len(gone)

    async def close(self) -> None:
        """As `Store.close`. What it holds stays."""

    def _branch(
        self, kept: _Kept, thread: Thread, spans: tuple[Span, ...], batch: Batch
    ) -> Branch | None:
        """The branch that begins; `None`: none does."""
        if batch.after is None:
            return None
        place = _place(kept, spans, batch.after)
        at = None if place is None else kept.rows[place]
        last = next(
            (row for row in reversed(kept.rows) if shows(spans, row.branch, row.position)), None
        )
        if at is None and batch.after:
            raise HistoryError(
                f'the thread "{thread.id}" shows no message "{batch.after}" to go on from'
            )
        if last is at:
            return None
        parent, position = (at.branch, at.position) if at is not None else (0, 0)
        number = max(kept.branches, default=0) + 1
        return Branch(number=number, parent=parent, position=position, created_at=batch.at)

    def _write(
        self, kept: _Kept, place: int | None, message: Message, body: bytes, at: datetime
    ) -> None:
        """Writes a message at the end, or in place of another."""
        old = None if place is None else kept.rows[place]
        position, branch = (
            (kept.end, kept.thread.branch) if old is None else (old.position, old.branch)
        )
        at_microseconds = microseconds(message.created_at or at)
        row = _Row(
            message.id or "",
            position,
            branch,
            message.created_at,
            at_microseconds,
            message.turn,
            body,
        )
        if place is None or old is None:
            kept.places[row.message_id].append(len(kept.rows))
            kept.rows.append(row)
        else:
            kept.rows[place] = row
            self._release(old.body)

    def _found(self, wanted: MessageQuery) -> Iterator[tuple[str, _Row]]:
        if wanted.thread_id is not None:
            yield from self._in_order(wanted)
            return
        found = sorted(
            self._in_order(wanted), key=lambda each: (each[1].at, each[0], each[1].position)
        )
        yield from reversed(found) if wanted.newest_first else found

    def _in_order(self, wanted: MessageQuery) -> Iterator[tuple[str, _Row]]:
        """Those of one thread after the other, each in its order."""
        words = None if wanted.text is None else words_of(wanted.text)
        ids = None if wanted.ids is None else frozenset(wanted.ids)
        threads = self._threads
        if wanted.thread_id is not None:
            threads = (
                {wanted.thread_id: threads[wanted.thread_id]} if wanted.thread_id in threads else {}
            )
        for thread_id, kept in threads.items():
            if not owned(kept.thread, wanted.resource_id):
                continue
            spans = None if wanted.branch is None else path(thread_id, wanted.branch, kept.branches)
            for row in reversed(kept.rows) if wanted.newest_first else kept.rows:
                if (
                    (spans is None or shows(spans, row.branch, row.position))
                    and (ids is None or row.message_id in ids)
                    and (words is None or (bool(words) and words <= self._bodies[row.body].text))
                    and (wanted.after is None or row.position > wanted.after)
                    and (wanted.before is None or row.position < wanted.before)
                    and (wanted.since is None or row.at >= microseconds(wanted.since))
                    and (wanted.until is None or row.at < microseconds(wanted.until))
                ):
                    yield thread_id, row

    def _stored(self, thread_id: str, row: _Row) -> StoredMessage:
        body = self._bodies[row.body]
        attachments = [self._attachments[each] for each in body.attachments]
        message = unpacked(
            body.data,
            attachments,
            message_id=row.message_id,
            created_at=row.created_at,
            turn=row.turn,
        )
        return StoredMessage(
            message=message, thread_id=thread_id, position=row.position, branch=row.branch
        )

    def _keep(self, part: Packed) -> bytes:
        """Keeps a body, or counts one more use of it. Returns its digest."""
        row, attachments = part
        body_digest: bytes = row["digest"]
        self._uses[body_digest] += 1
        if body_digest not in self._bodies:
            digests = tuple([digest_of(data) for data in attachments])
            self._bodies[body_digest] = _Body(row["body"], words_of(row["text"]), digests)
            for digest, data in zip(digests, attachments, strict=True):
                self._uses[digest] += 1
                self._attachments[digest] = data
        return body_digest

    def _release(self, digest: bytes) -> None:
        self._uses[digest] -= 1
        if self._uses[digest]:
            return
        del self._uses[digest]
        for each in self._bodies.pop(digest).attachments:
            self._uses[each] -= 1
            if not self._uses[each]:
                del self._uses[each], self._attachments[each]


def _place(kept: _Kept, spans: tuple[Span, ...], message_id: str) -> int | None:
    """Where the message with that id stands which these spans show."""
    places = kept.places.get(message_id, ())
    return next(
        (
            place
            for place in places
            if shows(spans, kept.rows[place].branch, kept.rows[place].position)
        ),
        None,
    )


def open_store(url: str) -> Store:
    """A store: `memory:` (gone with the process), `sqlite:///path`, or `postgresql://user:password@host/database`. Its tables are made or
    brought up to date with the first use.

    Raises:
        SettingsError: the URL is of another kind, its folder is not there, or a package is missing.
    """
    if url == "memory:":
        return MemoryStore()
    check_address(url, "message store", "message store")
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and not (folder := Path(rest.removeprefix("/")).parent).is_dir():
        raise SettingsError(f"the folder of the message store is not there: make {folder}")
    from dragoman.memory.sql_store import SqlStore

    return SqlStore(url)
