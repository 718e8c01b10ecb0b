"""Statements that are compiled once and run on the driver's own cursor.

SQLAlchemy looks a statement up, binds its parameters and makes a result for each call: several
times the work of a short query. A `PreparedStatement` keeps what SQLAlchemy compiles of it for a
database, and does only what is left.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from dragoman.json_bytes import JsonMap

__all__ = ["PreparedStatement"]


class _Compiled(NamedTuple):
    """A statement in the words of one database."""

    text: str
    """The SQL."""
    order: tuple[str, ...] | None
    """The names of the parameters, for a driver that wants them by position."""
    defaults: Mapping[str, Any]
    """Parameters that the statement itself gives."""
    has_lists: bool
    """True if the SQL depends on the length of a list."""

    def bind(self, values: JsonMap) -> Any:
        """Returns the values of a call as the driver of the database wants them."""
        named = {**self.defaults, **values}
        return named if self.order is None else [named[name] for name in self.order]


class PreparedStatement:
    """A statement of SQLAlchemy that is run often. One with a list among its parameters is left to
    SQLAlchemy, because its SQL depends on the length of the list."""

    def __init__(self, statement: Any, *, columns: Collection[str] = ()) -> None:
        """Prepares a statement. Compiles nothing yet. `columns`: those that an INSERT without values
        fills."""
        self.statement = statement
        """The statement of SQLAlchemy."""
        self._columns = [*columns]
        self._compiled: dict[str, _Compiled] = {}
        self._make_row: Callable[[Sequence[Any]], Any] | None = None

    def rows(self, connection: Connection, values: JsonMap) -> list[Any]:
        """Runs the statement with these parameters. Returns its rows, with the columns as
        attributes.

        Raises:
            SQLAlchemyError: the driver refused it.
        """
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        if compiled.has_lists:
            return [*connection.execute(self.statement, values)]
        cursor = self._run(connection, compiled, [values])
        if self._make_row is None:
            names = [column[0] for column in cursor.description]
            row_type = namedtuple("Row", names)  # noqa: PYI024 # pyright: ignore[reportUntypedNamedTuple] - only the database knows
            self._make_row = row_type._make
        found = [self._make_row(row) for row in cursor.fetchall()]
        cursor.close()
        return found

    def row(self, connection: Connection, values: JsonMap) -> Any | None:
        """Runs the statement and returns its first row, or None. See `rows`."""
        found = self.rows(connection, values)
        return found[0] if found else None

    def write(self, connection: Connection, rows: Sequence[JsonMap]) -> int:
        """Runs the statement once for each of these parameters. Returns how many rows of the
        database it changed.

        Raises:
            SQLAlchemyError: the driver refused it.
        """
        compiled = self._compiled.get(connection.dialect.name) or self._compile(connection.dialect)
        cursor = self._run(connection, compiled, rows)
        changed = cursor.rowcount
        cursor.close()
        return changed

    def _run(self, connection: Connection, compiled: _Compiled, rows: Sequence[JsonMap]) -> Any:
        """Runs the statement by the driver for each of these parameters and returns the cursor."""
        driver = connection.dialect.loaded_dbapi
        cursor = connection.connection.cursor()
        try:
            if len(rows) == 1:
                cursor.execute(compiled.text, compiled.bind(rows[0]))
            else:
                cursor.executemany(compiled.text, [compiled.bind(row) for row in rows])
        except driver.Error as error:
            cursor.close()
            # As SQLAlchemy tells it, so that callers know one kind of error.
            raise DBAPIError.instance(
                compiled.text,
                None,
                error,
                driver.Error,  # pyright: ignore[reportArgumentType] - it is the driver's class
                dialect=connection.dialect,
            ) from error
        return cursor

    def _compile(self, dialect: Any) -> _Compiled:
        """Compiles the statement for a database and keeps that."""
        compiled = self.statement.compile(
            dialect=dialect,
            column_keys=self._columns or None,
            # Otherwise an INSERT asks for the keys that it makes.
            for_executemany=True,
        )
        defaults = {name: value for name, value in compiled.params.items() if value is not None}
        order = None if compiled.positiontup is None else tuple(compiled.positiontup)
        made = _Compiled(str(compiled), order, defaults, bool(compiled.post_compile_params))
        self._compiled[dialect.name] = made
        return made
