"""Answers on their way into the store. A store that fails, or is slow, takes no answer from
anybody."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import anyio

from dragoman.errors import ContextLengthError, StoreError
from dragoman.logs import logger
from dragoman.serve.http.limits import ServerLimits
from dragoman.serve.store.answer_store import AnswerStore
from dragoman.serve.store.stored_answer import Answered

__all__ = ["begin_answer", "keep_answer", "find_conversation", "store_deadline"]

_LOG = logger("serve")


async def begin_answer(
    store: AnswerStore, answered: Answered, keys: Sequence[str] = (), *, seconds: float | None
) -> None:
    """Stores an answer that is being made. `seconds`: how long to wait for the store.

    Raises:
        StoreError: it is not kept.
    """
    await _save_answer(store, answered, keys, seconds)


async def keep_answer(
    store: AnswerStore, answered: Answered, keys: Sequence[str], *, seconds: float | None
) -> bool:
    """Stores an answer and returns True if it is stored. `seconds`: how long to wait; a slower
    store may store it yet."""
    try:
        await _save_answer(store, answered, keys, seconds)
    except StoreError as failure:
        _LOG.warning("an answer could not be kept: %s", failure)
        return False
    return True


async def find_conversation(
    store: AnswerStore, owner: str, keys: Sequence[str], limits: ServerLimits
) -> list[Answered]:
    """Returns the conversation under the first of these keys that has one, the oldest answer first.
    If the store fails or is slow there is none: the client has a copy of its own.

    Raises:
        ContextLengthError: it is larger than may be.
    """
    try:
        with anyio.fail_after(limits.keep_seconds):
            last = await store.find(owner, keys)
            if last is None:
                return []
            return await store.chain(owner, last.id, most_bytes=limits.conversation_bytes)
    except ContextLengthError:
        raise
    except Exception as failure:  # noqa: BLE001 - a store of the user's raises what it likes
        _LOG.warning(
            "a conversation goes on from its client's copy, since the store of answers failed: %s",
            _describe_failure(failure),
        )
        return []


@contextmanager
def store_deadline(limits: ServerLimits) -> Generator[None]:
    """Bounds what a client waits for: raises once the server's databases have taken longer than
    `keep_seconds`.

    Raises:
        StoreError: they did.
    """
    try:
        with anyio.fail_after(limits.keep_seconds):
            yield
    except TimeoutError as error:
        raise StoreError(
            f"the server's store did not answer within {limits.keep_seconds:g} seconds: "
            "it is slow, or locked by another process"
        ) from error


async def _save_answer(
    store: AnswerStore, answered: Answered, keys: Sequence[str], seconds: float | None
) -> None:
    """Saves an answer within a time limit. Any failure of the store becomes a `StoreError`."""
    try:
        with anyio.fail_after(seconds):
            await store.save(answered, keys)
    except StoreError:
        raise
    except Exception as failure:
        # A store of the user may raise anything.
        raise StoreError(f"the store of answers failed: {_describe_failure(failure)}") from failure


def _describe_failure(failure: Exception) -> str:
    if isinstance(failure, TimeoutError) and not str(failure):
        return "it is slow, or locked by another process"
    return str(failure) or type(failure).__name__
