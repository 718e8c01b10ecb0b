"""Our stores do what every store must: the checks of the kit."""

from __future__ import annotations

import pytest

from dragoman import testing
from dragoman.memory import Store, VectorStore, open_store
from dragoman.memory.memory_store import MemoryStore
from dragoman.memory.sql_store import SqlStore

CHECKS = [check.name for check in testing.STORE_CHECKS]


def checked(url: str, name: str) -> None:
    maker = {
        check.name: check
        for check in testing.store_checks(
            lambda: open_store(url), name="ours", shared=url != "memory:"
        )
    }
    maker[name]()


VECTOR_CHECKS = [check.name for check in testing.VECTOR_STORE_CHECKS]


@pytest.mark.parametrize("name", VECTOR_CHECKS)
def test_every_vector_store(name: str, url: str) -> None:
    def opened() -> tuple[Store, VectorStore]:
        store = open_store(url)
        assert isinstance(store, MemoryStore | SqlStore)
        return store, store.vectors

    checks = testing.vector_store_checks(opened, name="ours")
    {check.name: check for check in checks}[name]()


@pytest.mark.parametrize("name", CHECKS)
def test_every_store(name: str, url: str) -> None:
    checked(url, name)
