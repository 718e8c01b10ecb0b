"""Answers on their way into the store. A store that fails, or is slow, takes no answer from anybody."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from dragoman.logs import logger
from dragoman.serve.answers import AnswerStore
from dragoman.serve.records import Answered

__all__ = ["keep_answer"]

_LOG = logger("serve")


async def keep_answer(store: AnswerStore, answered: Answered, keys: Sequence[str], *, seconds: float | None) -> bool:
    """Keeps an answer → whether it is kept. `seconds`: so long it is waited for; a store that is slower may keep it yet."""
    try:
        with anyio.fail_after(seconds):
            await store.save(answered, keys)
    except TimeoutError:
        _LOG.warning("an answer is not kept after %g seconds: the store is slow, or locked by another process", seconds)
        return False
    except Exception as failure:  # noqa: BLE001 - a store of the user's raises what it likes
        _LOG.warning("an answer could not be kept: %s", failure)
        return False
    return True
