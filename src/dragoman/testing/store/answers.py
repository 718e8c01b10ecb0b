"""The checks that every store of a server's answers must pass, one function per behaviour.

A store (`dragoman.serve.store.answer_store.AnswerStore`) keeps each answer for its owner alone. The
checks use random owners and delete what they save, so they may run against a database in use.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from dragoman.errors import ContextLengthError
from dragoman.message import Message
from dragoman.request import ModelRequest
from dragoman.serve.store.answer_store import AnswerStore, TaskQuery
from dragoman.serve.store.stored_answer import Answered
from dragoman.testing.check import (
    Bench,
    Check,
    CheckFailed,
    StoreFactory,
    check_maker,
    require,
    require_equal,
)

__all__ = ["CHECKS", "AnswerStoreBench"]

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
"""The time of the first answer."""


class AnswerStoreBench(Bench):
    """Opens answer stores for the checks.

    Args:
        factory: makes a store.
    """

    def __init__(self, factory: StoreFactory[AnswerStore]) -> None:
        self.factory, self.name = factory, factory.name

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[_Shelf]:
        """Opens a store with two new owners, and deletes their answers after the check."""
        store = self.factory.make()
        shelf = _Shelf(store, f"kit-{uuid4().hex}", f"kit-{uuid4().hex}")
        try:
            yield shelf
        finally:
            for owner, answer_id in shelf.saved:
                await store.delete(owner, answer_id)
            await store.close()


class _Shelf:
    """A store, two owners, and the answers that were saved for them."""

    def __init__(self, store: AnswerStore, owner: str, other: str) -> None:
        self.store, self.owner, self.other = store, owner, other
        self.saved: list[tuple[str, str]] = []

    async def save(
        self, answer_id: str, *keys: str, owner: str = "", seconds: int = 0, **fields: Any
    ) -> Answered:
        """Saves an answer whose text is its id."""
        answered = Answered(
            id=answer_id,
            owner=owner or self.owner,
            wire="openai_responses",
            created_at=START + timedelta(seconds=seconds),
            request=ModelRequest("m", (Message.user(f"question of {answer_id}"),)),
            output=(Message.model(answer_id).replace(id=f"m-{answer_id}"),),
            **fields,
        )
        self.saved.append((answered.owner, answer_id))
        await self.store.save(answered, keys)
        return answered


_answer_check = check_maker(AnswerStoreBench, "answer store ")


@_answer_check(look="AnswerStore.save")
async def an_answer_comes_back_equal(bench: AnswerStoreBench) -> None:
    """An answer is found by its id with all fields. Saving it again replaces it."""
    async with bench.open() as shelf:
        saved = await shelf.save("a", error={"code": 1}, state="failed", thread_id="t")
        require_equal(await shelf.store.get(shelf.owner, "a"), saved, "the answer")
        again = await shelf.save("a", state="completed")
        require_equal(
            await shelf.store.get(shelf.owner, "a"), again, "the answer that was saved again"
        )
        require_equal(
            await shelf.store.get(shelf.owner, "missing"), None, "an answer that is not there"
        )


@_answer_check(look="AnswerStore.delete")
async def a_deleted_answer_is_never_returned(bench: AnswerStoreBench) -> None:
    """A cached read of a deleted answer is never returned for a later answer, of any owner, also
    after many rounds."""
    async with bench.open() as shelf:
        for number in range(3):
            await shelf.save("a", "key")
            await shelf.store.get(shelf.owner, "a")
            await shelf.store.chain(shelf.owner, "a")
            await shelf.store.delete(shelf.owner, "a")
            theirs = await shelf.save(f"b{number}", owner=shelf.other)
            require_equal(
                await shelf.store.get(shelf.other, theirs.id),
                theirs,
                "an answer after another one was deleted",
            )
            await shelf.store.delete(shelf.other, theirs.id)


@_answer_check(look="AnswerStore.get")
async def an_answer_is_visible_only_to_its_owner(bench: AnswerStoreBench) -> None:
    """No function finds another owner's answer, and two owners may use the same id."""
    async with bench.open() as shelf:
        store, other = shelf.store, shelf.other
        saved = await shelf.save("a", "key", task_id="k")
        require_equal(await store.get(other, "a"), None, "another owner's answer by its id")
        require_equal(await store.find(other, ["key"]), None, "another owner's answer by its key")
        require_equal(await store.chain(other, "a"), [], "another owner's conversation")
        require_equal(await store.task(other, "k"), [], "another owner's task")
        require_equal(
            (await store.tasks(other, TaskQuery())).total, 0, "the number of another owner's tasks"
        )
        require_equal(await store.delete(other, "a"), False, "whether another owner deleted it")
        theirs = await shelf.save("a", "key", owner=other)
        require_equal(await store.get(shelf.owner, "a"), saved, "the first owner's answer")
        require_equal(
            await store.find(other, ["key"]), theirs, "the other owner's answer of that id"
        )


@_answer_check(look="AnswerStore.find")
async def the_latest_answer_under_the_first_key_is_found(bench: AnswerStoreBench) -> None:
    """Keys are tried in order, and the latest answer of a key is found. Saving again adds keys."""
    async with bench.open() as shelf:
        await shelf.save("a", "k1", "k2")
        latest = await shelf.save("b", "k1", seconds=1)
        first = await shelf.save("c", "k0", seconds=2)
        require_equal(await shelf.store.find(shelf.owner, ["k1"]), latest, "the latest under a key")
        require_equal(
            await shelf.store.find(shelf.owner, ["missing", "k0", "k1"]),
            first,
            "the first key that there is",
        )
        require_equal(await shelf.store.find(shelf.owner, []), None, "what is found without a key")
        await shelf.save("b", "k9", seconds=3)
        for key in ("k1", "k9"):
            answer = await shelf.store.find(shelf.owner, [key])
            require_equal(
                answer and answer.id, "b", f"an answer that was saved again, by its key {key}"
            )


@_answer_check(look="AnswerStore.chain")
async def a_conversation_lists_the_oldest_answer_first(bench: AnswerStoreBench) -> None:
    """`chain` returns the stored answers of a conversation, oldest first. It refuses a conversation
    of more than `most_bytes`."""
    async with bench.open() as shelf:
        await shelf.save("a")
        await shelf.save("b", parent="a", seconds=1)
        await shelf.save("c", parent="b", seconds=2)
        require_equal(
            [answer.id for answer in await shelf.store.chain(shelf.owner, "c")],
            ["a", "b", "c"],
            "the conversation",
        )
        await shelf.save("e", parent="gone", seconds=3)
        require_equal(
            [answer.id for answer in await shelf.store.chain(shelf.owner, "e")],
            ["e"],
            "one whose beginning is gone",
        )
        require_equal(await shelf.store.chain(shelf.owner, "missing"), [], "one that is not there")
        try:
            await shelf.store.chain(shelf.owner, "c", most_bytes=10)
        except ContextLengthError:
            return
        raise CheckFailed(
            "no ContextLengthError is raised for a conversation of more than most_bytes"
        )


@_answer_check(look="AnswerStore.delete")
async def a_deleted_answer_is_gone(bench: AnswerStoreBench) -> None:
    """`delete` returns whether the answer existed. Afterwards neither its id nor its keys find
    it."""
    async with bench.open() as shelf:
        await shelf.save("a", "key")
        require_equal(
            await shelf.store.delete(shelf.owner, "a"),
            True,
            "whether there was an answer to delete",
        )
        require_equal(await shelf.store.get(shelf.owner, "a"), None, "a deleted answer")
        require_equal(
            await shelf.store.find(shelf.owner, ["key"]), None, "a deleted answer by its key"
        )
        require_equal(
            await shelf.store.delete(shelf.owner, "a"), False, "whether it is there to delete twice"
        )


@_answer_check(look="AnswerStore.tasks")
async def tasks_are_paged_latest_first(bench: AnswerStoreBench) -> None:
    """A task lists its runs, oldest first. A page of tasks, latest first, has the total and whether
    more follow."""
    async with bench.open() as shelf:
        for number in range(3):
            await shelf.save(
                f"r{number}", f"task:k{number}", task_id=f"k{number}", thread_id="t", seconds=number
            )
        await shelf.save("r3", "task:k0", task_id="k0", thread_id="t", seconds=3)
        require_equal(
            [run.id for run in await shelf.store.task(shelf.owner, "k0")],
            ["r0", "r3"],
            "the runs of a task",
        )
        page = await shelf.store.tasks(shelf.owner, TaskQuery(most=2))
        require_equal(
            (page.total, page.more), (3, True), "how many tasks there are, and whether more follow"
        )
        next_page = await shelf.store.tasks(shelf.owner, TaskQuery(most=2, after=page.runs[-1][0]))
        seen = [run.task_id for _, run in (*page.runs, *next_page.runs)]
        require_equal(seen, ["k0", "k2", "k1"], "the tasks, page by page")
        require_equal(
            (await shelf.store.tasks(shelf.owner, TaskQuery(thread="u"))).total,
            0,
            "tasks of another conversation",
        )
        require_equal(
            (await shelf.store.tasks(shelf.owner, TaskQuery(stages=("working",)))).total,
            0,
            "tasks that are at work",
        )


@_answer_check(look="AnswerStore.save_push")
async def push_configs_are_stored_by_id(bench: AnswerStoreBench) -> None:
    """A push configuration with a known id replaces the earlier one. Only its owner sees it."""
    async with bench.open() as shelf:
        store, owner = shelf.store, shelf.owner
        await shelf.save("r", "task:k", task_id="k")
        await store.save_push(owner, "k", {"id": "a", "url": "https://a.example"})
        await store.save_push(owner, "k", {"id": "b", "url": "https://b.example"})
        await store.save_push(owner, "k", {"id": "a", "url": "https://c.example"})
        urls = {config["id"]: config["url"] for config in await store.push_configs(owner, "k")}
        require_equal(
            urls, {"a": "https://c.example", "b": "https://b.example"}, "where notifications go"
        )
        require_equal(await store.push_configs(shelf.other, "k"), [], "another owner's")
        await store.delete_push(owner, "k", "a")
        await store.delete_push(shelf.other, "k", "b")
        require_equal(
            [config["id"] for config in await store.push_configs(owner, "k")],
            ["b"],
            "those that are left",
        )


@_answer_check(look="AnswerStore.prune")
async def prune_keeps_answers_that_others_continue(bench: AnswerStoreBench) -> None:
    """`prune` returns the number of deleted answers and keeps those that a later answer
    continues."""
    async with bench.open() as shelf:
        # Older than anything else that the store may hold.
        past = -40 * 365 * 24 * 3600
        await shelf.save("old", seconds=past)
        await shelf.save("kept", seconds=past)
        await shelf.save("new", parent="kept")
        count = await shelf.store.prune(START + timedelta(seconds=past + 1))
        require(count >= 1, f"prune says that it forgot {count} answers")
        require_equal(await shelf.store.get(shelf.owner, "old"), None, "an old answer")
        require_equal(
            [answer.id for answer in await shelf.store.chain(shelf.owner, "new")],
            ["kept", "new"],
            "a conversation that goes on",
        )


CHECKS: tuple[Check[Any], ...] = (
    an_answer_comes_back_equal,
    a_deleted_answer_is_never_returned,
    an_answer_is_visible_only_to_its_owner,
    the_latest_answer_under_the_first_key_is_found,
    a_conversation_lists_the_oldest_answer_first,
    a_deleted_answer_is_gone,
    tasks_are_paged_latest_first,
    push_configs_are_stored_by_id,
    prune_keeps_answers_that_others_continue,
)
"""All checks of an answer store, in the order of a report."""
