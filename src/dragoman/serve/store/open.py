"""A store of answers by its URL."""

from __future__ import annotations

from dragoman.arguments import wrong
from dragoman.serve.store.answers import AnswerStore, NoAnswers
from dragoman.sql.address import check_address

__all__ = ["open_answers"]


def open_answers(store: str | AnswerStore | None) -> AnswerStore:
    """The store of a URL: `memory:`, `sqlite:///file` or `postgresql://…`; a store is itself; `None`: one that keeps nothing.

    Raises:
        SettingsError: the URL is of another kind, or a package is missing.
        TypeError: it is no store.
    """
    if store is None:
        return NoAnswers()
    if not isinstance(store, str):
        if not callable(getattr(store, "chain", None)):
            raise wrong(
                "store",
                store,
                "the URL of a database, or a store of answers",
                'give "memory:" or "sqlite:///FILE"',
            )
        return store
    if store == "memory:":
        from dragoman.serve.store.memory_answers import MemoryAnswers

        return MemoryAnswers()
    check_address(store, "store of answers", "store of answers")
    from dragoman.serve.store.sql_answers import SqlAnswers

    return SqlAnswers(store)
