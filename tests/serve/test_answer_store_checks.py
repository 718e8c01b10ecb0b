"""Our stores of answers do what every store must: the checks of the kit; and each check notices a
store that does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import testing
from dragoman.serve.store.answer_store import NoAnswers
from dragoman.serve.store.memory_answers import MemoryAnswers, open_answers

pytestmark = pytest.mark.mend("4.6")
NAMES = [check.name for check in testing.ANSWER_STORE_CHECKS]


def run_check(make: Callable[[], Any], name: str) -> None:
    next(check for check in testing.answer_store_checks(make, name="mine") if check.name == name)()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_every_store(kind: str, name: str, tmp_path: Path) -> None:
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path}/answers.db"
    run_check(lambda: open_answers(url), name)


class Shared(MemoryAnswers):
    """Forgets whose an answer is."""

    async def get(self, owner: str, id: str) -> Any:
        for share in list(self._shares):
            if (found := await super().get(share, id)) is not None:
                return found
        return None


class Reversed(MemoryAnswers):
    """Tells a conversation from its end."""

    async def chain(self, owner: str, id: str, *, most_bytes: int | None = None) -> Any:
        return (await super().chain(owner, id))[::-1]


class Eager(MemoryAnswers):
    """Forgets nothing, and says that it did."""

    async def prune(self, before: Any) -> int:
        return 1


@pytest.mark.parametrize(
    ("store", "name"),
    [
        (Shared, "an_answer_is_visible_only_to_its_owner"),
        (Reversed, "a_conversation_lists_the_oldest_answer_first"),
        (Eager, "prune_keeps_answers_that_others_continue"),
        *[(NoAnswers, name) for name in NAMES],
    ],
)
def test_a_store_that_does_not_is_noticed(store: Callable[[], Any], name: str) -> None:
    with pytest.raises(testing.CheckFailed):
        run_check(store, name)
