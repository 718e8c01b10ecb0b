"""A message store in process memory, for tests and for conversations that may be forgotten.
`open_store` opens a store by its URL."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec

from dragoman.errors import HistoryError, SettingsError
from dragoman.memory.memo_text import remove_lines
from dragoman.memory.memory_vectors import MemoryVectors, SharedBody
from dragoman.memory.store import Batch, MessageQuery, Quote, Slot, SlotText, Store, ThreadQuery
from dragoman.memory.stored_message import Packed, digest_data, pack, to_microseconds, unpack
from dragoman.memory.thread import Branch, Span, StoredMessage, Thread, find_spans, is_shown
from dragoman.memory.thread_rules import (
    change_thread,
    check_slot,
    fold_words,
    is_owned,
    matches_query,
)
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


class _ThreadRecord:
    """A thread with its messages, its branches and the last used position."""

    def __init__(self, thread: Thread) -> None:
        """Creates the memory store's record of a thread that has no messages yet."""
        self.thread = thread
        self.rows: list[_Row] = []
        self.indexes: defaultdict[str, list[int]] = defaultdict(list)
        """Message id → indexes of its rows."""
        self.branches: dict[int, Branch] = {}
        """Number of a branch → the branch."""
        self.end = 0
        """Position of the last message that was saved; 0: none."""
        self.slots: dict[str, SlotText] = {}
        """Name of a slot → its text."""

    def set_rows(self, rows: list[_Row]) -> None:
        """Replaces the rows of the memory store's thread."""
        self.rows = rows
        self.indexes.clear()
        for index, row in enumerate(rows):
            self.indexes[row.message_id].append(index)


class MemoryStore:
    """A `Store` that threads and event loops may share."""

    def __init__(self) -> None:
        """Creates an empty store in the process's memory."""
        self._threads: dict[str, _ThreadRecord] = {}
        self._bodies: dict[bytes, _Body] = {}
        self._uses: Counter[bytes] = Counter()
        """Number of messages that share a body, and of bodies that share an attachment."""
        self._attachments: dict[bytes, bytes] = {}
        self._quotes: dict[bytes, dict[int, bytes]] = {}
        """Body of a memo → the body that each of its lines quotes."""
        self._texts: dict[bytes, str] = {}
        """Texts of bodies that may be embedded."""
        self._resources: dict[str, dict[str, SlotText]] = {}
        self._lock = threading.Lock()
        self.vectors = MemoryVectors(self._texts, self._iterate_bodies, self._lock)
        """The vectors of its texts."""

    async def save(self, batch: Batch) -> Thread:
        """Saves a batch, as `Store.save`."""
        parts = [pack(message) for message in batch.messages]
        with self._lock:
            record = self._threads.get(batch.thread_id)
            if record is None:
                thread = change_thread(batch, None)
                record = _ThreadRecord(thread)
            else:
                thread = change_thread(batch, record.thread)
            # Nothing is stored before the last of these checks, so that a refused batch leaves no
            # trace.
            if batch.change.branch is not None:
                find_spans(thread.id, batch.change.branch, record.branches)
            spans = find_spans(thread.id, thread.branch, record.branches)
            branch = self._begin_branch(record, thread, spans, batch)
            if branch is not None:
                record.branches[branch.number] = branch
                thread = msgspec.structs.replace(thread, branch=branch.number)
                spans = find_spans(thread.id, thread.branch, record.branches)
            record.thread = self._threads.setdefault(batch.thread_id, record).thread = thread
            for message, part in zip(batch.messages, parts, strict=True):
                record.end += 1
                self._write_message(
                    record,
                    _find_index(record, spans, message.id or ""),
                    message,
                    self._store_body(part),
                    batch.at,
                )
            self._note_quotes(record, batch.quotes)
            return thread

    async def messages(self, query: MessageQuery) -> list[StoredMessage]:
        """Returns stored messages, as `Store.messages`."""
        with self._lock:
            rows = islice(self._find_rows(query), query.offset, _find_end(query))
            return [self._load_message(thread_id, row) for thread_id, row in rows]

    async def threads(self, query: ThreadQuery) -> list[Thread]:
        """Returns stored threads, as `Store.threads`."""
        with self._lock:
            threads = [
                record.thread
                for record in self._threads.values()
                if matches_query(record.thread, query)
            ]
        threads.sort(key=lambda thread: (thread.updated_at, thread.id), reverse=query.newest_first)
        return threads[query.offset : _find_end(query)]

    async def branches(self, thread_id: str) -> list[Branch]:
        """Returns a thread's branches, as `Store.branches`."""
        record = self._threads.get(thread_id)
        return [] if record is None else list(record.branches.values())

    async def delete_thread(self, thread_id: str) -> bool:
        """Deletes a thread, as `Store.delete_thread`."""
        with self._lock:
            record = self._threads.pop(thread_id, None)
            if record is None:
                return False
            for row in record.rows:
                self._release_body(row.body)
            self._forget_quotes({row.body for row in record.rows})
            return True

    async def delete_messages(self, thread_id: str, ids: Sequence[str], at: datetime) -> int:
        """Deletes messages, as `Store.delete_messages`."""
        with self._lock:
            record, unwanted = self._threads.get(thread_id), frozenset(ids)
            if record is None:
                return 0
            deleted_rows = [row for row in record.rows if row.message_id in unwanted]
            if not deleted_rows:
                return 0
            record.set_rows([row for row in record.rows if row.message_id not in unwanted])
            record.thread = msgspec.structs.replace(record.thread, updated_at=at)
            for row in deleted_rows:
                self._release_body(row.body)
            self._forget_quotes({row.body for row in deleted_rows})
            return len(deleted_rows)

    async def read_slot(self, slot: Slot) -> SlotText:
        """As `Store.read_slot`."""
        with self._lock:
            return self._find_slots(slot).get(slot.name, SlotText())

    async def write_slot(
        self,
        slot: Slot,
        text: str,
        version: int | None,
        time: datetime,  # noqa: ARG002 - of databases
    ) -> SlotText:
        """Writes a slot of the in-memory store, as `Store.write_slot`."""
        with self._lock:
            record = self._threads.get(slot.thread_id or "")
            slots = self._find_slots(slot)
            stored = slots.get(slot.name, SlotText())
            check_slot(slot, record and record.thread, stored.version, version)
            written = slots[slot.name] = SlotText(text, stored.version + 1)
            if slot.thread_id is None:
                self._resources[slot.resource_id or ""] = slots
            return written

    async def close(self) -> None:
        """Closes the store, as `Store.close`. What it holds stays."""

    def _find_slots(self, slot: Slot) -> dict[str, SlotText]:
        """Returns from memory the slots, by name, of the thread or resource that a slot belongs to.
        Empty if that is unknown; nothing may be added to it then."""
        if slot.thread_id is None:
            return self._resources.get(slot.resource_id or "", {})
        record = self._threads.get(slot.thread_id)
        return {} if record is None else record.slots

    def _begin_branch(
        self, record: _ThreadRecord, thread: Thread, spans: tuple[Span, ...], batch: Batch
    ) -> Branch | None:
        """Returns the in-memory thread's new branch that a batch begins, or None if it continues
        the visible one."""
        if batch.after is None:
            return None
        index = _find_index(record, spans, batch.after)
        if index is None and batch.after:
            raise HistoryError(
                f'the thread "{thread.id}" shows no message "{batch.after}" to go on from'
            )
        last = next(
            (row for row in reversed(record.rows) if is_shown(spans, row.branch, row.position)),
            None,
        )
        parent = position = 0
        fork = None
        if index is not None:
            fork = record.rows[index]
            parent, position = fork.branch, fork.position
        if last is fork:
            return None
        number = max(record.branches, default=0) + 1
        return Branch(number=number, parent=parent, position=position, created_at=batch.at)

    def _write_message(
        self,
        record: _ThreadRecord,
        index: int | None,
        message: Message,
        body: bytes,
        time: datetime,
    ) -> None:
        """Appends a message in memory, or replaces the row at `index`."""
        row = _Row(
            message.id or "",
            record.end,
            record.thread.branch,
            message.created_at,
            to_microseconds(message.created_at or time),
            message.turn,
            body,
        )
        if index is None:
            record.indexes[row.message_id].append(len(record.rows))
            record.rows.append(row)
        else:
            old = record.rows[index]
            record.rows[index] = msgspec.structs.replace(
                row, position=old.position, branch=old.branch
            )
            self._release_body(old.body)
            self._forget_quotes({old.body})

    def _note_quotes(self, record: _ThreadRecord, quotes: Sequence[Quote]) -> None:
        """Notes in memory what the memos of a batch quote. Lines whose message was deleted
        meanwhile go."""
        lost: defaultdict[_Row, set[int]] = defaultdict(set)
        for quote in quotes:
            quoting = next((row for row in record.rows if row.message_id == quote.memo_id), None)
            if quoting is None:
                continue
            other = self._threads.get(quote.thread_id)
            rows = [] if other is None else other.rows
            quoted = next((row for row in rows if row.position == quote.position), None)
            if quoted is None:
                lost[quoting].add(quote.line)
            else:
                self._quotes.setdefault(quoting.body, {})[quote.line] = quoted.body
        for row, numbers in lost.items():
            self._rewrite_memo(record, row, numbers)

    def _forget_quotes(self, digests: set[bytes]) -> None:
        """Removes from in-memory memos the lines that quote these bodies, unless the memo's owner
        has another message with the body."""
        # Few bodies are memos, so that all threads are searched only if one is concerned.
        quoting = {
            memo for memo, lines in self._quotes.items() if not digests.isdisjoint(lines.values())
        }
        for record in [*self._threads.values()] if quoting else ():
            for row in [row for row in record.rows if row.body in quoting]:
                gone = digests - self._bodies_of(record.thread)
                lines = self._quotes[row.body].items()
                if numbers := {line for line, digest in lines if digest in gone}:
                    self._rewrite_memo(record, row, numbers)

    def _bodies_of(self, thread: Thread) -> set[bytes]:
        """Returns the in-memory bodies of a thread's messages, and of all threads of its owner."""
        owner = thread.resource_id
        return {
            row.body
            for record in self._threads.values()
            if record.thread.id == thread.id
            or (owner is not None and record.thread.resource_id == owner)
            for row in record.rows
        }

    def _rewrite_memo(self, record: _ThreadRecord, row: _Row, numbers: set[int]) -> None:
        """Rewrites an in-memory memo without these lines; one that has no other goes."""
        memo = remove_lines(self._load_message(record.thread.id, row).message, numbers)
        rows = [*record.rows]
        index = rows.index(row)
        if memo is None:
            del rows[index]
        else:
            body = self._store_body(pack(memo))
            rows[index] = msgspec.structs.replace(row, body=body)
            self._quotes[body] = {
                line - sum(number < line for number in numbers): digest
                for line, digest in self._quotes.get(row.body, {}).items()
                if line not in numbers
            }
        record.set_rows(rows)
        self._release_body(row.body)

    def _find_rows(self, query: MessageQuery) -> Iterator[tuple[str, _Row]]:
        """Yields the in-memory rows that a query finds: by position in one thread, by time across
        threads."""
        if query.thread_id is not None:
            yield from self._iterate_rows(query)
            return
        matches = sorted(
            self._iterate_rows(query), key=lambda match: (match[1].at, match[0], match[1].position)
        )
        yield from reversed(matches) if query.newest_first else matches

    def _iterate_rows(self, query: MessageQuery) -> Iterator[tuple[str, _Row]]:
        """Yields matching in-memory rows thread by thread, each thread in its order."""
        conditions = self._make_conditions(query)
        thread_ids = [*self._threads] if query.thread_id is None else [query.thread_id]
        for thread_id in thread_ids:
            record = self._threads.get(thread_id)
            if record is None or not is_owned(record.thread, query.resource_id):
                continue
            spans = None
            if query.branch is not None:
                spans = find_spans(thread_id, query.branch, record.branches)
            for row in reversed(record.rows) if query.newest_first else record.rows:
                is_visible = spans is None or is_shown(spans, row.branch, row.position)
                if is_visible and all(condition(row) for condition in conditions):
                    yield thread_id, row

    def _iterate_bodies(self, query: MessageQuery) -> Iterator[SharedBody]:
        for thread_id, row in self._find_rows(msgspec.structs.replace(query, newest_first=True)):
            yield SharedBody(thread_id, row.message_id, row.body)

    def _make_conditions(self, query: MessageQuery) -> list[Callable[[_Row], bool]]:
        """Returns the conditions on an in-memory row that a query sets, apart from its thread and
        branch."""
        conditions: list[Callable[[_Row], bool]] = []
        if (ids := query.ids) is not None:
            conditions.append(lambda row: row.message_id in ids)
        if query.text is not None:
            words = fold_words(query.text)
            # A text without words finds nothing, as in the databases.
            conditions.append(lambda row: bool(words) and words <= self._bodies[row.body].text)
        if (after := query.after) is not None:
            conditions.append(lambda row: row.position > after)
        if (before := query.before) is not None:
            conditions.append(lambda row: row.position < before)
        if query.since is not None:
            since = to_microseconds(query.since)
            conditions.append(lambda row: row.at >= since)
        if query.until is not None:
            until = to_microseconds(query.until)
            conditions.append(lambda row: row.at < until)
        return conditions

    def _load_message(self, thread_id: str, row: _Row) -> StoredMessage:
        """Returns the message of an in-memory row with its place in the thread."""
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

    def _store_body(self, part: Packed) -> bytes:
        """Stores a body in memory, or counts one more use of an equal one. Returns its digest."""
        row, attachments = part
        body_digest: bytes = row["digest"]
        self._uses[body_digest] += 1
        if body_digest not in self._bodies:
            digests = tuple([digest_data(data) for data in attachments])
            self._bodies[body_digest] = _Body(row["body"], fold_words(row["text"]), digests)
            if not row["embedded"]:
                self._texts[body_digest] = row["text"]
            for digest, data in zip(digests, attachments, strict=True):
                self._uses[digest] += 1
                self._attachments[digest] = data
        return body_digest

    def _release_body(self, digest: bytes) -> None:
        """Counts one use less of an in-memory body; drops it, and its attachments, after the
        last."""
        self._uses[digest] -= 1
        if self._uses[digest]:
            return
        del self._uses[digest]
        self._texts.pop(digest, None)
        self._quotes.pop(digest, None)
        self.vectors.forget(digest)
        # Attachments are counted by the bodies that use them, not by messages.
        for attachment in self._bodies.pop(digest).attachments:
            self._uses[attachment] -= 1
            if not self._uses[attachment]:
                del self._uses[attachment], self._attachments[attachment]


def _find_index(record: _ThreadRecord, spans: tuple[Span, ...], message_id: str) -> int | None:
    """Returns the index of the visible message with that id in the memory store's rows, or None."""
    indexes = record.indexes.get(message_id, ())
    return next(
        (
            index
            for index in indexes
            if is_shown(spans, record.rows[index].branch, record.rows[index].position)
        ),
        None,
    )


def _find_end(query: MessageQuery | ThreadQuery) -> int | None:
    """Returns the index at which a query's results end; None: at their end."""
    return None if query.limit is None else query.offset + query.limit


def open_store(url: str) -> Store:
    """Returns the message store for a URL, such as a memory store: `memory:` (ends with the
    process), `sqlite:///path`, or `postgresql://user:password@host/database`. Tables are created or
    migrated on first use.

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
