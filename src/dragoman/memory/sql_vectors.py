"""Vectors in the tables of a message store, in SQLite and Postgres alike.

The flag `embedded` of a body is 0 when a message brings the body, in the message's own transaction,
and becomes 1 in the transaction that writes its vectors (2: it has nothing to embed). So no text is ever forgotten, and of two
processes that embed it one writes. Vectors go with their body, by their foreign key.

A search reads the sign codes of all vectors in its scope, from an index that holds nothing else, and
then the vectors of the nearest (`sign_codes`). It needs no extension of the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, insert, literal_column, select, update

from dragoman.memory.sign_codes import (
    compare,
    find_bodies,
    make_sign_code,
    pack_vector,
    unpack_vector,
)
from dragoman.memory.sql_tables import bodies, embedding, messages, threads, vectors
from dragoman.memory.vectors import Embedded, Unembedded, VectorMatch, VectorQuery
from dragoman.sql.database import Database
from dragoman.sql.engine import DIALECTS

__all__ = ["SqlVectors"]

_Selection = Select[Any, Any]
"""A statement that reads two columns."""
_PAGE_SIZE = 500
"""Sign codes that are read at once."""
_MOST_COPIES = 8
"""Messages of one content that a search returns."""


class _Model(NamedTuple):
    """What the stored vectors were made with."""

    model: str
    dimensions: int
    """0 until the first vector is stored."""


class SqlVectors:
    """A `VectorStore` beside a `SqlStore`, in the same database."""

    def __init__(self, database: Database) -> None:
        """Creates the vector store in an SQL database. `database`: the message store's."""
        self._database = database
        self.vectors_read = 0
        """Number of vectors that searches have compared exactly."""

    async def missing(self, model: str, *, limit: int) -> list[Unembedded]:
        """Returns by SQL the contents without vectors, as `VectorStore.missing`."""
        stored = await self._database.read(_select_embedding)
        if stored is None or stored.model != model:
            await self._database.write(lambda connection: _use_model(connection, model))
        return await self._database.read(lambda connection: _select_missing(connection, limit))

    async def upsert(self, model: str, embedded: Sequence[Embedded]) -> None:
        """As `VectorStore.upsert`."""
        packed = [(item.key, _pack_all(item.vectors)) for item in embedded]
        await self._database.write(lambda connection: _write_vectors(connection, model, packed))

    async def query(self, query: VectorQuery) -> list[VectorMatch]:
        """Searches the vectors in SQL, as `VectorStore.query`."""
        vector = pack_vector(query.vector)
        if vector is None:
            return []
        return await self._database.read(
            lambda connection: self._select_matches(connection, query, vector)
        )

    async def delete(self, model: str) -> int:
        """Deletes vectors by SQL, as `VectorStore.delete`."""
        stored = await self._database.read(_select_embedding)
        if stored is None or stored.model != model:
            return 0
        return await self._database.write(_delete_vectors)

    async def close(self) -> None:
        """Does nothing: the message store closes the database."""

    def _select_matches(
        self, connection: Connection, query: VectorQuery, vector: bytes
    ) -> list[VectorMatch]:
        """Returns by SQL the messages whose vectors are nearest."""
        stored = _select_embedding(connection)
        if stored is None or (stored.model, stored.dimensions) != (query.model, len(vector) // 4):
            return []
        scope = {
            name: value
            for name in ("resource_id", "thread_id")
            if (value := getattr(query, name)) is not None
        }
        with connection.execute(_code_selection(frozenset(scope)), scope) as result:
            assert result.cursor is not None
            pages = iter(partial(result.cursor.fetchmany, _PAGE_SIZE), [])
            # Sorted, so that rows are read in the order in which they are stored.
            ids = sorted(find_bodies(make_sign_code(vector), pages))
        scores: dict[int, float] = {}
        rows = _fetch(connection, _SELECT_VECTORS, {"ids": ids}) if ids else ()
        self.vectors_read += len(rows)
        numbers = unpack_vector(vector).tolist()
        for body_id, packed in rows:
            score = compare(numbers, packed)
            scores[body_id] = max(score, scores.get(body_id, score))
        return _find_messages(connection, query, scope, scores)


def _pack_all(several: Iterable[Sequence[float]]) -> list[bytes]:
    """Returns vectors as they are stored, without those that have no direction."""
    return [packed for vector in several if (packed := pack_vector(vector)) is not None]


def _fetch(connection: Connection, statement: _Selection, values: Any) -> Sequence[Any]:
    """Returns the rows of an SQL statement for vectors as the driver's own tuples, which cost a
    third of SQLAlchemy's rows."""
    with connection.execute(statement, values) as result:
        assert result.cursor is not None
        return result.cursor.fetchall()


def _select_embedding(connection: Connection) -> _Model | None:
    """Returns the model and the dimensions of the stored vectors."""
    row = connection.execute(select(embedding.c.model, embedding.c.dimensions)).first()
    return None if row is None else _Model(*row)


def _select_missing(connection: Connection, limit: int) -> list[Unembedded]:
    """Selects bodies without vectors, newest first, by the index of those."""
    statement = (
        select(bodies.c.body_id, bodies.c.text)
        .where(bodies.c.embedded == literal_column("0"))
        .order_by(bodies.c.body_id.desc())
        .limit(limit)
    )
    return [Unembedded(body_id, text) for body_id, text in connection.execute(statement)]


def _write_vectors(
    connection: Connection, model: str, packed: Sequence[tuple[Any, Sequence[bytes]]]
) -> None:
    """Writes the vectors of bodies, unless another model is used by now."""
    lengths = [len(vector) for _, several in packed for vector in several]
    stored = _select_embedding(connection)
    if stored is None or stored.model != model:
        return
    if not lengths:
        lengths = [4 * stored.dimensions]
    if stored.dimensions != lengths[0] // 4:
        # The provider gives vectors of another length under the same name.
        if stored.dimensions:
            _delete_vectors(connection)
        connection.execute(update(embedding).values(dimensions=lengths[0] // 4))
    for body_id, several in packed:
        # Locks the body: one that is deleted meanwhile, or embedded by another process, is left.
        flagged = connection.execute(_FLAG, {"_body_id": body_id}).first()
        if flagged is None:
            continue
        rows = [
            {"body_id": body_id, "chunk": number, "sign": make_sign_code(vector), "vector": vector}
            for number, vector in enumerate(several)
            if len(vector) == lengths[0]
        ]
        if rows:
            connection.execute(insert(vectors), rows)


def _use_model(connection: Connection, model: str) -> None:
    """Deletes by SQL the vectors of another model."""
    stored = _select_embedding(connection)
    if stored is not None and stored.model == model:
        return
    _delete_vectors(connection)
    connection.execute(delete(embedding))
    # Another process may claim the database at the same time; one of them asks again.
    statement = DIALECTS[connection.dialect.name].insert(embedding).on_conflict_do_nothing()
    connection.execute(statement, {"number": 1, "model": model, "dimensions": 0})


def _delete_vectors(connection: Connection) -> int:
    """Deletes all vectors by SQL, and notes that their bodies have none."""
    count = connection.execute(delete(vectors)).rowcount
    connection.execute(update(bodies).where(bodies.c.embedded == 1).values(embedded=0))
    return count


_FLAG = (
    update(bodies)
    .where(bodies.c.body_id == bindparam("_body_id"), bodies.c.embedded == 0)
    .values(embedded=1)
    .returning(bodies.c.body_id)
)
_SELECT_VECTORS = select(vectors.c.body_id, vectors.c.vector).where(
    vectors.c.body_id.in_(bindparam("ids", expanding=True))
)


@cache
def _code_selection(names: frozenset[str]) -> _Selection:
    """Returns the statement that finds the sign codes of a scope, each with its body's id.
    `names`: of the parameters."""
    statement = select(vectors.c.body_id, vectors.c.sign)
    if names:
        statement = _in_scope(
            statement.join(messages, messages.c.body_id == vectors.c.body_id), names
        )
    return statement


@cache
def _message_selection(names: frozenset[str]) -> _Selection:
    """Returns the SQL statement that finds, for a vector, the messages of a body in a scope, newest
    first."""
    statement = select(messages.c.thread_id, messages.c.message_id)
    return (
        _in_scope(statement, names)
        .where(messages.c.body_id == bindparam("body_id"))
        .order_by(messages.c.made_at.desc(), messages.c.thread_id, messages.c.position)
        .limit(_MOST_COPIES)
    )


def _in_scope(statement: _Selection, names: frozenset[str]) -> _Selection:
    """Returns the SQL statement for vectors, for messages of one owner or thread alone."""
    if "thread_id" in names:
        statement = statement.where(messages.c.thread_id == bindparam("thread_id"))
    if "resource_id" in names:
        statement = statement.join(threads, threads.c.thread_id == messages.c.thread_id).where(
            threads.c.resource_id == bindparam("resource_id")
        )
    return statement


def _find_messages(
    connection: Connection, query: VectorQuery, scope: dict[str, str], scores: dict[int, float]
) -> list[VectorMatch]:
    """Returns the messages of the bodies with the best vectors, as many bodies as the query
    wants."""
    statement = _message_selection(frozenset(scope))
    matches: list[VectorMatch] = []
    count = 0
    for body_id in sorted(scores, key=lambda key: (-scores[key], key)):
        rows = _fetch(connection, statement, {**scope, "body_id": body_id})
        several = [
            VectorMatch(thread_id, message_id, scores[body_id])
            for thread_id, message_id in rows
            if message_id not in query.exclude
        ]
        matches += several
        count += bool(several)
        if count == query.limit:
            break
    return matches
