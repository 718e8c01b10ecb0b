"""Statements that are compiled once: what they return, refuse and leave to SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    insert,
    select,
)
from sqlalchemy.exc import IntegrityError, OperationalError

from dragoman.sql.engine import open_engine
from dragoman.sql.prepared import PreparedStatement

_RIVERS = Table(
    "rivers",
    MetaData(),
    Column("name", String, primary_key=True),
    Column("length", Integer, nullable=False),
)
_BY_NAME = select(_RIVERS).where(_RIVERS.c.name == bindparam("name"))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    engine = open_engine(f"sqlite:///{tmp_path}/rivers.db", connections=1, writes=True)
    with engine.begin() as connection:
        _RIVERS.create(connection)
        yield connection
    engine.dispose()


def test_rows_have_the_columns_as_attributes(connection: Connection) -> None:
    fill = PreparedStatement(insert(_RIVERS), columns=("name", "length"))
    assert fill.write(connection, [{"name": "Po", "length": 652}]) == 1
    lengths = {"Ebro": 930, "Tiber": 405}
    rows = [{"name": name, "length": length} for name, length in lengths.items()]
    assert fill.write(connection, rows) == 2
    by_name = PreparedStatement(_BY_NAME)
    for _ in range(2):
        row = by_name.row(connection, {"name": "Ebro"})
        assert row is not None
        assert (row.name, row.length) == ("Ebro", 930)
    assert by_name.row(connection, {"name": "Don"}) is None


def test_a_limit_without_an_offset_has_its_own_values(connection: Connection) -> None:
    PreparedStatement(insert(_RIVERS), columns=("name", "length")).write(
        connection, [{"name": name, "length": 1} for name in "abc"]
    )
    first = PreparedStatement(select(_RIVERS.c.name).limit(bindparam("most", type_=Integer)))
    assert [row.name for row in first.rows(connection, {"most": 2})] == ["a", "b"]


def test_a_list_is_left_to_sqlalchemy(connection: Connection) -> None:
    PreparedStatement(insert(_RIVERS), columns=("name", "length")).write(
        connection, [{"name": name, "length": 1} for name in "abc"]
    )
    is_named = _RIVERS.c.name.in_(bindparam("names", expanding=True))
    some = PreparedStatement(select(_RIVERS.c.name).where(is_named))
    for names in (["a"], ["a", "c"], []):
        assert [row.name for row in some.rows(connection, {"names": names})] == names


def test_what_the_driver_refuses_is_an_error_of_sqlalchemy(connection: Connection) -> None:
    """Callers tell conflicts and lost connections from other errors by its class."""
    fill = PreparedStatement(insert(_RIVERS), columns=("name", "length"))
    fill.write(connection, [{"name": "Po", "length": 652}])
    with pytest.raises(IntegrityError, match="UNIQUE") as caught:
        fill.write(connection, [{"name": "Po", "length": 1}])
    assert caught.value.orig is not None
    _RIVERS.drop(connection)
    with pytest.raises(OperationalError, match="no such table"):
        PreparedStatement(_BY_NAME).rows(connection, {"name": "Po"})


def test_the_values_of_a_call_are_not_in_an_error(connection: Connection) -> None:
    fill = PreparedStatement(insert(_RIVERS), columns=("name", "length"))
    secret = {"name": "what a user wrote", "length": 1}
    fill.write(connection, [secret])
    with pytest.raises(IntegrityError) as caught:
        fill.write(connection, [secret])
    assert "what a user wrote" not in str(caught.value)
