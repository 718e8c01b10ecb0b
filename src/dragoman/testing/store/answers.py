"""What every store of a server's answers must do, one function per behaviour.

A store keeps what a server answered (`dragoman.serve.store.answers.AnswerStore`), each answer for
its owner alone. The checks save answers of owners of their own and delete them behind themselves,
so that they may run against a database that is in use.
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
from dragoman.serve.store.answers import AnswerStore, TaskQuery
from dragoman.serve.store.records import Answered
from dragoman.testing.check import Bench, Check, CheckFailed, Maker, check_maker, demand, same

__all__ = ["CHECKS", "AnswerStoreBench"]

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
"""When the first answer is given."""


class AnswerStoreBench(Bench):
    """A store of answers on the bench.

    Args:
        maker: makes the store.
    """

    def __init__(self, maker: Maker[AnswerStore]) -> None:
        self.maker, self.name = maker, maker.name

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[_Shelf]:
        """Opens a store with two owners that it does not know; what they saved is deleted behind
        the check."""
        store = self.maker.make()
        shelf = _Shelf(store, f"kit-{uuid4().hex}", f"kit-{uuid4().hex}")
        try:
            yield shelf
        finally:
            for owner, answer_id in shelf.saved:
                await store.delete(owner, answer_id)
            await store.close()


class _Shelf:
    """A store, two owners, and what was saved for them."""

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


_check = check_maker(AnswerStoreBench, "answer store ")


@_check(look="AnswerStore.save")
async def an_answer_comes_back_equal(bench: AnswerStoreBench) -> None:
    """An answer is found by its id with all its fields; one that is saved again takes the place of
    the first."""
    async with bench.open() as shelf:
        saved = await shelf.save("a", error={"code": 1}, state="failed", thread_id="t")
        same(await shelf.store.get(shelf.owner, "a"), saved, "the answer")
        again = await shelf.save("a", state="completed")
        same(await shelf.store.get(shelf.owner, "a"), again, "the answer that was saved again")
        same(await shelf.store.get(shelf.owner, "missing"), None, "an answer that is not there")


@_check(look="AnswerStore.delete")
async def an_answer_is_never_taken_for_one_that_was_deleted(bench: AnswerStoreBench) -> None:
    """What was read of a deleted answer is not given for the next one, of whichever owner, also
    after many turns."""
    async with bench.open() as shelf:
        for number in range(3):
            await shelf.save("a", "key")
            await shelf.store.get(shelf.owner, "a")
            await shelf.store.chain(shelf.owner, "a")
            await shelf.store.delete(shelf.owner, "a")
            theirs = await shelf.save(f"b{number}", owner=shelf.other)
            same(
                await shelf.store.get(shelf.other, theirs.id),
                theirs,
                "an answer after another one was deleted",
            )
            await shelf.store.delete(shelf.other, theirs.id)


@_check(look="AnswerStore.get")
async def an_answer_is_seen_by_its_owner_alone(bench: AnswerStoreBench) -> None:
    """To anybody else it is as if it were not there, in every function; two owners may use one
    id."""
    async with bench.open() as shelf:
        store, other = shelf.store, shelf.other
        saved = await shelf.save("a", "key", task_id="k")
        same(await store.get(other, "a"), None, "another owner's answer by its id")
        same(await store.find(other, ["key"]), None, "another owner's answer by its key")
        same(await store.chain(other, "a"), [], "another owner's conversation")
        same(await store.task(other, "k"), [], "another owner's task")
        same(
            (await store.tasks(other, TaskQuery())).total, 0, "the number of another owner's tasks"
        )
        same(await store.delete(other, "a"), False, "whether another owner deleted it")
        theirs = await shelf.save("a", "key", owner=other)
        same(await store.get(shelf.owner, "a"), saved, "the first owner's answer")
        same(await store.find(other, ["key"]), theirs, "the other owner's answer of that id")


@_check(look="AnswerStore.find")
async def the_latest_answer_under_the_first_key_is_found(bench: AnswerStoreBench) -> None:
    """Keys are asked in order; under one key the answer that was saved last counts. Saving again
    adds keys."""
    async with bench.open() as shelf:
        await shelf.save("a", "k1", "k2")
        latest = await shelf.save("b", "k1", seconds=1)
        first = await shelf.save("c", "k0", seconds=2)
        same(await shelf.store.find(shelf.owner, ["k1"]), latest, "the latest under a key")
        same(
            await shelf.store.find(shelf.owner, ["missing", "k0", "k1"]),
            first,
            "the first key that there is",
        )
        same(await shelf.store.find(shelf.owner, []), None, "what is found without a key")
        await shelf.save("b", "k9", seconds=3)
        for key in ("k1", "k9"):
            answer = await shelf.store.find(shelf.owner, [key])
            same(answer and answer.id, "b", f"an answer that was saved again, by its key {key}")


@_check(look="AnswerStore.chain")
async def a_conversation_is_its_answers_the_oldest_first(bench: AnswerStoreBench) -> None:
    """As far as they are kept; one with more bytes than may be is refused."""
    async with bench.open() as shelf:
        await shelf.save("a")
        await shelf.save("b", parent="a", seconds=1)
        await shelf.save("c", parent="b", seconds=2)
        same(
            [answer.id for answer in await shelf.store.chain(shelf.owner, "c")],
            ["a", "b", "c"],
            "the conversation",
        )
        await shelf.save("e", parent="gone", seconds=3)
        same(
            [answer.id for answer in await shelf.store.chain(shelf.owner, "e")],
            ["e"],
            "one whose beginning is gone",
        )
        same(await shelf.store.chain(shelf.owner, "missing"), [], "one that is not there")
        try:
            await shelf.store.chain(shelf.owner, "c", most_bytes=10)
        except ContextLengthError:
            return
        raise CheckFailed(
            "no ContextLengthError is raised for a conversation of more than most_bytes"
        )


@_check(look="AnswerStore.delete")
async def a_deleted_answer_cannot_be_asked_for(bench: AnswerStoreBench) -> None:
    """Deleting says whether it was there; by id and keys it is gone."""
    async with bench.open() as shelf:
        await shelf.save("a", "key")
        same(
            await shelf.store.delete(shelf.owner, "a"),
            True,
            "whether there was an answer to delete",
        )
        same(await shelf.store.get(shelf.owner, "a"), None, "a deleted answer")
        same(await shelf.store.find(shelf.owner, ["key"]), None, "a deleted answer by its key")
        same(
            await shelf.store.delete(shelf.owner, "a"), False, "whether it is there to delete twice"
        )


@_check(look="AnswerStore.tasks")
async def tasks_come_in_pages_the_latest_first(bench: AnswerStoreBench) -> None:
    """A task is its runs, the oldest first; a page says how many there are and whether more
    follow."""
    async with bench.open() as shelf:
        for number in range(3):
            await shelf.save(
                f"r{number}", f"task:k{number}", task_id=f"k{number}", thread_id="t", seconds=number
            )
        await shelf.save("r3", "task:k0", task_id="k0", thread_id="t", seconds=3)
        same(
            [run.id for run in await shelf.store.task(shelf.owner, "k0")],
            ["r0", "r3"],
            "the runs of a task",
        )
        page = await shelf.store.tasks(shelf.owner, TaskQuery(most=2))
        same(
            (page.total, page.more), (3, True), "how many tasks there are, and whether more follow"
        )
        next_page = await shelf.store.tasks(shelf.owner, TaskQuery(most=2, after=page.runs[-1][0]))
        seen = [run.task_id for _, run in (*page.runs, *next_page.runs)]
        same(seen, ["k0", "k2", "k1"], "the tasks, page by page")
        same(
            (await shelf.store.tasks(shelf.owner, TaskQuery(thread="u"))).total,
            0,
            "tasks of another conversation",
        )
        same(
            (await shelf.store.tasks(shelf.owner, TaskQuery(stages=("working",)))).total,
            0,
            "tasks that are at work",
        )


@_check(look="AnswerStore.save_push")
async def notifications_of_a_task_are_kept_by_their_ids(bench: AnswerStoreBench) -> None:
    """One of the same id takes the first one's place; they are the owner's alone."""
    async with bench.open() as shelf:
        store, owner = shelf.store, shelf.owner
        await shelf.save("r", "task:k", task_id="k")
        await store.save_push(owner, "k", {"id": "a", "url": "https://a.example"})
        await store.save_push(owner, "k", {"id": "b", "url": "https://b.example"})
        await store.save_push(owner, "k", {"id": "a", "url": "https://c.example"})
        urls = {config["id"]: config["url"] for config in await store.push_configs(owner, "k")}
        same(urls, {"a": "https://c.example", "b": "https://b.example"}, "where notifications go")
        same(await store.push_configs(shelf.other, "k"), [], "another owner's")
        await store.delete_push(owner, "k", "a")
        await store.delete_push(shelf.other, "k", "b")
        same(
            [config["id"] for config in await store.push_configs(owner, "k")],
            ["b"],
            "those that are left",
        )


@_check(look="AnswerStore.prune")
async def old_answers_are_forgotten_unless_a_later_one_goes_on(bench: AnswerStoreBench) -> None:
    """`prune` counts what it forgets and leaves what a later answer goes on from."""
    async with bench.open() as shelf:
        # Older than anything else that the store may hold.
        past = -40 * 365 * 24 * 3600
        await shelf.save("old", seconds=past)
        await shelf.save("kept", seconds=past)
        await shelf.save("new", parent="kept")
        count = await shelf.store.prune(START + timedelta(seconds=past + 1))
        demand(count >= 1, f"prune says that it forgot {count} answers")
        same(await shelf.store.get(shelf.owner, "old"), None, "an old answer")
        same(
            [answer.id for answer in await shelf.store.chain(shelf.owner, "new")],
            ["kept", "new"],
            "a conversation that goes on",
        )


CHECKS: tuple[Check[Any], ...] = (
    an_answer_comes_back_equal,
    an_answer_is_never_taken_for_one_that_was_deleted,
    an_answer_is_seen_by_its_owner_alone,
    the_latest_answer_under_the_first_key_is_found,
    a_conversation_is_its_answers_the_oldest_first,
    a_deleted_answer_cannot_be_asked_for,
    tasks_come_in_pages_the_latest_first,
    notifications_of_a_task_are_kept_by_their_ids,
    old_answers_are_forgotten_unless_a_later_one_goes_on,
)
"""In the order of a report."""
