"""Finds what a prompt is about in earlier messages, and writes it as a memo.

`Recaller.find` embeds what has no vector yet, as far as time allows, and the text; asks the vector
store; and reads each match again through the message store. `Recaller.make_memo` quotes what was
found with its neighbours, but nothing twice: neither what the model reads anyway, nor what a memo
before has quoted, nor one text in two copies. Lines are sorted by time and never by score, so that
the same memory gives the same memo.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import anyio

from dragoman.codec.json_values import if_list
from dragoman.codec.memos import RECALLED, is_memo
from dragoman.logs import logger
from dragoman.memory.indexing import BATCH, embed_bodies, group_bodies, split_text
from dragoman.memory.memo_text import describe_message, dump_line, make_memo, read_texts
from dragoman.memory.recall_settings import Recall
from dragoman.memory.store import MessageQuery, Neighbours, Store, ThreadQuery, load_neighbours
from dragoman.memory.stored_message import to_microseconds
from dragoman.memory.thread import StoredMessage
from dragoman.memory.vectors import Unembedded, VectorMatch, VectorQuery, VectorStore
from dragoman.memory.window import count_tokens
from dragoman.message import Message, Role, TextPart

__all__ = ["Found", "Recaller", "Recollection", "question_text"]

_LOG = logger("memory")
_SPARE = 8
"""Contents beyond twice the wanted ones that are asked for: some are in other branches."""
_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)


class Found(NamedTuple):
    """A message that was found and read again."""

    stored: StoredMessage
    """The message, as the store has it."""
    score: float
    """The cosine of its text and the question, from -1 to 1."""
    branch: int
    """The visible branch of its thread."""


class Recollection(NamedTuple):
    """A memo, and where what it quotes is stored."""

    memo: Message
    """The message that quotes others, ready to store."""
    quoted: tuple[StoredMessage, ...]
    """The message of each line."""


def question_text(messages: Iterable[Message]) -> str:
    """Returns the text that messages are recalled for: that of the last user message that is no
    memo, its parts joined by spaces."""
    for message in reversed([*messages]):
        if message.role is Role.USER and not is_memo(message):
            texts = [piece.text for piece in message.content if isinstance(piece, TextPart)]
            if text := " ".join(texts).strip():
                return text
    return ""


class Recaller:
    """Recalls messages of one memory."""

    def __init__(
        self, store: Store, recall: Recall, vectors: VectorStore, *, read_only: bool
    ) -> None:
        """Creates what recalls messages. `vectors`: where vectors are stored. `read_only`: True to
        store none."""
        self._store, self._recall, self._vectors = store, recall, vectors
        self._read_only = read_only

    @property
    def is_automatic(self) -> bool:
        """True if memos are made."""
        return self._recall.automatic

    async def index(self, limit: int | None) -> int:
        """Embeds texts for recall that have no vector yet, newest first, and returns how many.
        `limit`: most texts; `None`: all.

        Raises:
            DragomanError: the embedder or the vector store failed. What was embedded before stays.
        """
        count = 0
        while limit is None or count < limit:
            most = BATCH if limit is None else min(BATCH, limit - count)
            bodies = await self._vectors.missing(self._recall.model, limit=most)
            if not bodies:
                break
            for group in group_bodies(bodies):
                await self._embed_group(group, is_proved=count > 0)
                count += len(group)
        return count

    async def find(
        self,
        text: str,
        *,
        resource_id: str | None,
        thread_id: str | None,
        limit: int,
        exclude: Iterable[str] = (),
    ) -> list[Found]:
        """Recalls visible messages whose text is similar, best first, each text once.

        Args:
            text: the text to compare with.
            resource_id: owner of the threads; `None`: any.
            thread_id: the thread; `None`: all.
            limit: most messages to return.
            exclude: ids of messages to leave out.

        Raises:
            DragomanError: the embedder, the vector store or the message store failed.
        """
        vector = await self._embed_question(text)
        if vector is None:
            return []
        query = VectorQuery(
            model=self._recall.model,
            vector=vector,
            resource_id=resource_id,
            thread_id=thread_id,
            exclude=frozenset(exclude),
            limit=2 * limit + _SPARE,
        )
        matches = [
            match
            for match in await self._vectors.query(query)
            if match.score >= self._recall.threshold
        ]
        if not matches:
            return []
        return await self._read_matches(matches, resource_id, limit)

    async def search(
        self, text: str, *, resource_id: str | None, thread_id: str
    ) -> list[StoredMessage]:
        """Returns the messages that a model searches for, within the scope of recall."""
        in_thread = self._recall.scope == "thread" or resource_id is None
        hits = await self.find(
            text,
            resource_id=resource_id,
            thread_id=thread_id if in_thread else None,
            limit=self._recall.top,
        )
        return [stored for stored, _, _ in hits]

    async def make_memo(
        self,
        text: str,
        earlier: Sequence[Message],
        *,
        resource_id: str | None,
        thread_id: str,
        is_new: bool,
    ) -> Recollection | None:
        """Returns the memo of recalled messages for a prompt, or None if there is nothing to say.
        What fails or takes too long is logged: a memo helps a run, and must not fail it.

        Args:
            text: the text of the prompt.
            earlier: what the model reads before it.
            resource_id: owner of the thread.
            thread_id: the thread.
            is_new: the thread does not exist yet.
        """
        in_thread = self._recall.scope == "thread" or resource_id is None
        if not text or (in_thread and is_new):
            return None
        try:
            # A cancellation from outside passes through; only the time limit's own ends here.
            with anyio.move_on_after(self._recall.timeout) as scope:
                seen = _list_seen(earlier)
                hits = await self.find(
                    text,
                    resource_id=resource_id,
                    thread_id=thread_id if in_thread else None,
                    limit=self._recall.top,
                    exclude=seen,
                )
                candidates = [*hits, *await self._load_around(hits)]
                texts = _list_texts(earlier) | {text}
                return self._write_memo(candidates, seen, texts, thread_id)
            if scope.cancelled_caught:
                _LOG.warning("nothing is recalled: it took over %s seconds", self._recall.timeout)
        except Exception as error:  # noqa: BLE001 - whatever an embedder or a store raises
            _LOG.warning("nothing is recalled: %s", error)
        return None

    async def close(self) -> None:
        """Closes the vector store."""
        await self._vectors.close()

    async def _embed_question(self, text: str) -> Sequence[float] | None:
        """Embeds the question of a recall and, before it, texts that have no vector yet, as far as
        half of the time allows, and the question. Returns its vector; None if it has none."""
        pieces = split_text(text)
        if not pieces:
            return None
        recall, model = self._recall, self._recall.model
        question = Unembedded(b"", pieces[0])
        bodies = [] if self._read_only else await self._vectors.missing(model, limit=BATCH)
        groups = [*group_bodies(bodies)]
        vectors: Sequence[Sequence[float]]
        if recall.embedder.embeds_by_purpose:
            vectors = [(await recall.embedder.embed_query(question.text)).embeddings]
        else:
            # One request for both, since the model knows no difference.
            first = groups.pop(0) if groups else []
            embedded_question, *embedded = await embed_bodies(recall.embedder, [question, *first])
            vectors = embedded_question.vectors
            await self._vectors.upsert(model, embedded)
        # What is embedded is stored group by group, so that a slow model gets on with each turn.
        # Half of the time is left for the search.
        with anyio.move_on_after(recall.timeout / 2):
            for group in groups:
                await self._embed_group(group, is_proved=True)
        return vectors[0] if vectors else None

    async def _embed_group(self, group: Sequence[Unembedded], *, is_proved: bool) -> None:
        embedded = await embed_bodies(self._recall.embedder, group, is_proved=is_proved)
        await self._vectors.upsert(self._recall.model, embedded)

    async def _read_matches(
        self, matches: Sequence[VectorMatch], resource_id: str | None, limit: int
    ) -> list[Found]:
        """Reads the messages to recall again: for their owner, and in the visible branch of their
        thread."""
        ids = tuple(dict.fromkeys(match.thread_id for match in matches))
        query = ThreadQuery(ids=ids, resource_id=resource_id)
        readable: dict[tuple[str, str], Found] = {}
        for thread in await self._store.threads(query):
            scores = {
                match.message_id: match.score for match in matches if match.thread_id == thread.id
            }
            shown_query = MessageQuery(
                thread_id=thread.id,
                branch=thread.branch,
                resource_id=resource_id,
                ids=tuple(scores),
                damaged=True,
            )
            # A match is a candidate only: what is not readable here is left out.
            for stored in await self._store.messages(shown_query):
                name = stored.message.id or ""
                readable[thread.id, name] = Found(stored, scores[name], thread.branch)
        # A clone has the same text under another id: the first one stands for all.
        hits: dict[str, Found] = {}
        for match in matches:
            candidate = readable.get((match.thread_id, match.message_id))
            if candidate is not None and candidate.stored.problem is None:
                hits.setdefault(candidate.stored.message.text.strip(), candidate)
        return [*hits.values()][:limit]

    async def _load_around(self, hits: Sequence[Found]) -> list[Found]:
        """Returns the neighbours of recalled messages."""
        around = self._recall.around
        neighbours: list[Found] = []
        for stored, score, branch in hits if around else ():
            query = MessageQuery(thread_id=stored.thread_id, branch=branch)
            wanted = Neighbours(stored.message.id or "", around, around)
            messages = await load_neighbours(self._store, query, wanted)
            neighbours += [Found(message, score, branch) for message in messages]
        return neighbours

    def _write_memo(
        self, candidates: Sequence[Found], seen: set[str], texts: set[str], thread_id: str
    ) -> Recollection | None:
        """Returns the memo of as many of these recalled messages, best first, as the budget allows.

        Args:
            candidates: the messages, best first.
            seen: ids of messages that are not quoted.
            texts: texts that are not quoted.
            thread_id: the thread that the memo is for.
        """
        chosen: list[StoredMessage] = []
        tokens = count_tokens(make_memo([], []))
        for stored, _, _ in candidates:
            text = stored.message.text.strip()
            if text in texts or stored.message.id in seen or not _is_quotable(stored.message):
                continue
            # Counted as a line of another thread, which is the longer one.
            cost = count_tokens(Message.user(dump_line(describe_message(stored.message, 1))))
            if tokens + cost <= self._recall.tokens:
                tokens += cost
                texts.add(text)
                chosen.append(stored)
        return _join_lines(chosen, thread_id) if chosen else None


def _join_lines(chosen: list[StoredMessage], thread_id: str) -> Recollection:
    """Returns the memo that quotes these recalled messages, in the order of their times. Other
    threads are numbered in it, since their ids are nothing for a model."""
    # Never by score: it differs with each prompt, and the text must not.
    chosen.sort(key=_sort_key)
    other_threads = dict.fromkeys(stored.thread_id for stored in chosen)
    other_threads.pop(thread_id, None)
    numbers = {thread_id: 0, **{name: number for number, name in enumerate(other_threads, 1)}}
    lines = [
        dump_line(describe_message(stored.message, numbers[stored.thread_id])) for stored in chosen
    ]
    memo = make_memo(lines, [stored.message.id or "" for stored in chosen])
    return Recollection(memo, tuple(chosen))


def _list_seen(messages: Sequence[Message]) -> set[str]:
    """Returns the ids of messages that need no recall, and of those that memos among them quote."""
    seen = {message.id for message in messages if message.id is not None}
    for message in messages:
        quoted = if_list(message.metadata.get(RECALLED))
        seen.update(name for name in quoted if isinstance(name, str))
    return seen


def _list_texts(messages: Sequence[Message]) -> set[str]:
    """Returns the texts that need no recall: those of messages, and those that memos among them
    quote."""
    texts = {message.text.strip() for message in messages}
    for message in messages:
        if RECALLED in message.metadata:
            texts.update(text.strip() for text in read_texts(message))
    return texts


def _is_quotable(message: Message) -> bool:
    """True for what the user or the model said in words."""
    is_talk = message.role in (Role.USER, Role.MODEL) and not is_memo(message)
    return is_talk and bool(message.text.strip())


def _sort_key(stored: StoredMessage) -> tuple[int, str, int]:
    time = stored.message.created_at or _EARLIEST
    return to_microseconds(time), stored.thread_id, stored.position
