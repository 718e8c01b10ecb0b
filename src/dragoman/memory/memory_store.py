"""A store in memory: gone with the process. For tests, and for agents that need not remember
longer."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec

from dragoman.errors import HistoryError, SettingsError
from dragoman.memory.changing import change_thread, fits, is_owned, words_of
from dragoman.memory.packing import Packed, digest_data, pack, to_microseconds, unpack
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
        parts = [pack(message) for message in batch.messages]
        with self._lock:
            record = self._threads.get(batch.thread_id)
            thread = change_thread(batch, None if record is None else record.thread)
            record = _Kept(thread) if record is None else record
            if batch.change.branch is not None:
                path(thread.id, batch.change.branch, record.branches)
            spans = path(thread.id, thread.branch, record.branches)
            branch = self._branch(record, thread, spans, batch)
            if branch is not None:
                record.branches[branch.number] = branch
                thread = msgspec.structs.replace(thread, branch=branch.number)
                spans = path(thread.id, thread.branch, record.branches)
            record.thread = self._threads.setdefault(batch.thread_id, record).thread = thread
            for message, part in zip(batch.messages, parts, strict=True):
                record.end += 1
                self._write(
                    record,
                    _find_index(record, spans, message.id or ""),
                    message,
                    self._keep(part),
                    batch.at,
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
            threads = [
                record.thread for record in self._threads.values() if fits(record.thread, wanted)
            ]
        threads.sort(key=lambda thread: (thread.updated_at, thread.id), reverse=wanted.newest_first)
        return threads[
            wanted.offset : None if wanted.limit is None else wanted.offset + wanted.limit
        ]

    async def branches(self, thread_id: str) -> list[Branch]:
        """As `Store.branches`."""
        record = self._threads.get(thread_id)
        return [] if record is None else list(record.branches.values())

    async def delete_thread(self, thread_id: str) -> bool:
        """As `Store.delete_thread`."""
        with self._lock:
            record = self._threads.pop(thread_id, None)
            for row in [] if record is None else record.rows:
                self._release(row.body)
            return record is not None

    async def delete_messages(self, thread_id: str, ids: Sequence[str], at: datetime) -> int:
        """As `Store.delete_messages`."""
        with self._lock:
            record, unwanted = self._threads.get(thread_id), frozenset(ids)
            gone = (
                [] if record is None else [row for row in record.rows if row.message_id in unwanted]
            )
            if record is None or not gone:
                return 0
            record.rows = [row for row in record.rows if row.message_id not in unwanted]
            record.places.clear()
            for index, row in enumerate(record.rows):
                record.places[row.message_id].append(index)
            record.thread = msgspec.structs.replace(record.thread, updated_at=at)
            for row in gone:
                self._release(row.body)
            return len(gone)

    async def close(self) -> None:
        """As `Store.close`. What it holds stays."""

    def _branch(
        self, record: _Kept, thread: Thread, spans: tuple[Span, ...], batch: Batch
    ) -> Branch | None:
        """Returns the branch that begins; `None`: none does."""
        if batch.after is None:
            return None
        index = _find_index(record, spans, batch.after)
        previous = None if index is None else record.rows[index]
        last = next(
            (row for row in reversed(record.rows) if shows(spans, row.branch, row.position)), None
        )
        if previous is None and batch.after:
            raise HistoryError(
                f'the thread "{thread.id}" shows no message "{batch.after}" to go on from'
            )
        if last is previous:
            return None
        parent, position = (previous.branch, previous.position) if previous is not None else (0, 0)
        number = max(record.branches, default=0) + 1
        return Branch(number=number, parent=parent, position=position, created_at=batch.at)

    def _write(
        self, record: _Kept, index: int | None, message: Message, body: bytes, time: datetime
    ) -> None:
        """Writes a message at the end, or in place of another."""
        old = None if index is None else record.rows[index]
        position, branch = (
            (record.end, record.thread.branch) if old is None else (old.position, old.branch)
        )
        microseconds_since = to_microseconds(message.created_at or time)
        row = _Row(
            message.id or "",
            position,
            branch,
            message.created_at,
            microseconds_since,
            message.turn,
            body,
        )
        if index is None or old is None:
            record.places[row.message_id].append(len(record.rows))
            record.rows.append(row)
        else:
            record.rows[index] = row
            self._release(old.body)

    def _found(self, wanted: MessageQuery) -> Iterator[tuple[str, _Row]]:
        if wanted.thread_id is not None:
            yield from self._in_order(wanted)
            return
        matches = sorted(
            self._in_order(wanted), key=lambda match: (match[1].at, match[0], match[1].position)
        )
        yield from reversed(matches) if wanted.newest_first else matches

    def _in_order(self, wanted: MessageQuery) -> Iterator[tuple[str, _Row]]:
        """Yields those of one thread after the other, each in its order."""
        query_words = None if wanted.text is None else words_of(wanted.text)
        ids = None if wanted.ids is None else frozenset(wanted.ids)
        threads = self._threads
        if wanted.thread_id is not None:
            threads = (
                {wanted.thread_id: threads[wanted.thread_id]} if wanted.thread_id in threads else {}
            )
        for thread_id, record in threads.items():
            if not is_owned(record.thread, wanted.resource_id):
                continue
            spans = (
                None if wanted.branch is None else path(thread_id, wanted.branch, record.branches)
            )
            for row in reversed(record.rows) if wanted.newest_first else record.rows:
                if (
                    (spans is None or shows(spans, row.branch, row.position))
                    and (ids is None or row.message_id in ids)
                    and (
                        query_words is None
                        or (bool(query_words) and query_words <= self._bodies[row.body].text)
                    )
                    and (wanted.after is None or row.position > wanted.after)
                    and (wanted.before is None or row.position < wanted.before)
                    and (wanted.since is None or row.at >= to_microseconds(wanted.since))
                    and (wanted.until is None or row.at < to_microseconds(wanted.until))
                ):
                    yield thread_id, row

    def _stored(self, thread_id: str, row: _Row) -> StoredMessage:
        body = self._bodies[row.body]
        attachments = [self._attachments[digest] for digest in body.attachments]
        message = unpack(
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
            digests = tuple([digest_data(data) for data in attachments])
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
        for attachment in self._bodies.pop(digest).attachments:
            self._uses[attachment] -= 1
            if not self._uses[attachment]:
                del self._uses[attachment], self._attachments[attachment]


def _find_index(record: _Kept, spans: tuple[Span, ...], message_id: str) -> int | None:
    """Returns where the message with that id stands which these spans show."""
    indexes = record.places.get(message_id, ())
    return next(
        (
            index
            for index in indexes
            if shows(spans, record.rows[index].branch, record.rows[index].position)
        ),
        None,
    )


def open_store(url: str) -> Store:
    """Returns a store: `memory:` (gone with the process), `sqlite:///path`, or
    `postgresql://user:password@host/database`. Its tables are made or brought up to date with the
    first use.

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
