"""The checks of a store's threads and their branches."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dragoman.memory.store import MessageQuery, Store, ThreadQuery
from dragoman.memory.thread import Thread
from dragoman.testing.check import demand, same
from dragoman.testing.samples import TEXT
from dragoman.testing.store.bench import (
    START,
    StoreBench,
    change_thread,
    expect_refusal,
    save_texts,
    store_check,
    texts,
)

__all__ = [
    "a_branch_begins_where_others_follow",
    "a_branch_is_shown_again",
    "a_thread_is_deleted_whole",
    "a_thread_is_made_once",
    "a_thread_is_one_resources",
    "threads_are_changed_field_by_field",
    "threads_are_found",
]

_SAVE = "Store.save"


@store_check(look=_SAVE)
async def a_thread_is_made_once(bench: StoreBench) -> None:
    """A thread is made where it is missing, unless it must be there; one that must be new is
    refused where it is there."""
    async with bench.thread() as (store, thread_id):
        await expect_refusal(
            save_texts(store, thread_id, "a", make="never"),
            "a thread that is not there",
            [thread_id],
        )
        thread = await save_texts(store, thread_id, "a", make="new")
        same(thread, Thread(id=thread_id, created_at=START, updated_at=START), "a new thread")
        await expect_refusal(
            save_texts(store, thread_id, "b", make="new"), "a thread that is there", [thread_id]
        )
        later = await save_texts(store, thread_id, "c", make="never", seconds=7)
        same(later.created_at, START, "when it was made")
        same(later.updated_at, START + timedelta(seconds=7), "when it was changed")
        same(await texts(store, thread_id), ["a", "c"], "the thread")
        same(
            await store.threads(ThreadQuery(ids=(thread_id,))), [later], "the thread as it is read"
        )


@store_check(look=_SAVE)
async def a_thread_is_one_resources(bench: StoreBench) -> None:
    """A thread takes the resource that is named first by a change without messages, and is refused
    to any other, which is not told whose it is."""
    async with bench.thread() as (store, thread_id):
        same(
            (await change_thread(store, thread_id)).resource_id,
            None,
            "the resource of a thread that is nobody's",
        )
        same(
            (await change_thread(store, thread_id, resource_id="ann")).resource_id,
            "ann",
            "the resource",
        )
        error = await expect_refusal(
            change_thread(store, thread_id, resource_id="bob", title="x"), "another's thread"
        )
        demand("ann" not in str(error), f"the error for another's thread names its owner: {error}")
        same((await change_thread(store, thread_id)).title, "", "the title, which was refused")


@store_check(look=_SAVE)
async def threads_are_changed_field_by_field(bench: StoreBench) -> None:
    """A change leaves what it does not name; metadata is merged at its top; the boundary of a token
    budget moves only forward."""
    async with bench.thread() as (store, thread_id):
        await change_thread(
            store, thread_id, title=TEXT, metadata={"a": {"x": 1}, "b": [TEXT, None]}, trimmed=5
        )
        await change_thread(store, thread_id, 3, metadata={"a": {"y": 2}, "c": False}, trimmed=3)
        threads = await store.threads(ThreadQuery(ids=(thread_id,)))
        thread = Thread(
            id=thread_id,
            title=TEXT,
            metadata={"a": {"y": 2}, "b": [TEXT, None], "c": False},
            created_at=START,
            updated_at=START + timedelta(seconds=3),
            trimmed=5,
        )
        same(threads, [thread], "the thread")


@store_check(look="Store.threads")
async def threads_are_found(bench: StoreBench) -> None:
    """`ids`, `resource_id`, `metadata` (all fields, each by its value and its type), the order by
    change, `offset` and `limit` each do what they say."""
    async with bench.thread() as (store, a), bench.thread() as (_, b), bench.thread() as (_, c):
        await change_thread(
            store,
            a,
            1,
            resource_id=a,
            metadata={"n": 1, "s": "x", "t": True, "z": None, "q'\".$": 1},
        )
        await change_thread(store, b, 3, resource_id=a, metadata={"n": 2, "s": "x", "t": False})
        await change_thread(store, c, 2, metadata={"n": "1", "s": ["x"], "t": 1})
        names = {a: "a", b: "b", c: "c"}

        async def found(**query: Any) -> str:
            return "".join(
                [names.get(thread.id, "") for thread in await store.threads(ThreadQuery(**query))]
            )

        three = (a, b, c)
        for wanted, query in (
            ("bca", {"ids": three}),
            ("acb", {"ids": three, "newest_first": False}),
            ("c", {"ids": three, "offset": 1, "limit": 1}),
            ("", {"ids": ()}),
            ("ba", {"resource_id": a}),
            ("a", {"resource_id": a, "metadata": {"n": 1}}),
            ("ba", {"ids": three, "metadata": {"s": "x"}}),
            ("b", {"ids": three, "metadata": {"s": "x", "n": 2.0}}),
            ("c", {"ids": three, "metadata": {"n": "1"}}),
            ("a", {"ids": three, "metadata": {"t": True}}),
            ("c", {"ids": three, "metadata": {"t": 1}}),
            ("a", {"ids": three, "metadata": {"z": None}}),
            ("", {"ids": three, "metadata": {"missing": None}}),
            ("a", {"ids": three, "metadata": {"q'\".$": 1}}),
        ):
            same(await found(**query), wanted, f"what {query} finds")


@store_check(look="Store.delete_thread")
async def a_thread_is_deleted_whole(bench: StoreBench) -> None:
    """A deleted thread is gone with its messages and branches, and one of its id begins anew."""
    async with bench.thread() as (store, thread_id):
        await save_texts(store, thread_id, "a", "b")
        await save_texts(store, thread_id, "c", after="a")
        same(await store.delete_thread(thread_id), True, "whether there was one")
        same(await store.delete_thread(thread_id), False, "whether there was one, the second time")
        same(await store.messages(MessageQuery(thread_id=thread_id)), [], "its messages")
        same(await store.branches(thread_id), [], "its branches")
        same(await store.threads(ThreadQuery(ids=(thread_id,))), [], "the thread")
        same((await save_texts(store, thread_id, "d")).branch, 0, "the branch of the new one")
        same(await texts(store, thread_id), ["d"], "the new one")


@store_check(look=f"{_SAVE}: after")
async def a_branch_begins_where_others_follow(bench: StoreBench) -> None:
    """What follows the last message is no branch; what follows another one is, and is shown; the
    messages that it left are still there. An id may stand in several branches, and what is written
    next goes into the one that is shown."""
    async with bench.thread() as (store, thread_id):
        await save_texts(store, thread_id, "a", after="")
        await save_texts(store, thread_id, "b", "c", after="a")
        same(await store.branches(thread_id), [], "the branches of a thread that only went on")
        await save_texts(store, thread_id, "B", "c", after="a", seconds=4)
        await save_texts(store, thread_id, "D")
        same(await texts(store, thread_id), ["a", "B", "c", "D"], "the branch")
        same(await texts(store, thread_id, branch=0), ["a", "b", "c"], "what it left")
        await save_texts(store, thread_id, "E", after="a")
        await save_texts(store, thread_id, "F", after="")
        same(await texts(store, thread_id), ["F"], "a branch from the beginning")
        same(await texts(store, thread_id, branch=2), ["a", "E"], "the branch before")
        branches = await store.branches(thread_id)
        same(
            [(branch.number, branch.parent) for branch in branches],
            [(1, 0), (2, 0), (3, 0)],
            "numbers and parents",
        )
        same(
            (branches[0].created_at, branches[2].position),
            (START + timedelta(seconds=4), 0),
            "time and position",
        )


@store_check(look=f"{_SAVE}: ThreadChange.branch")
async def a_branch_is_shown_again(bench: StoreBench) -> None:
    """A thread goes on in the branch that it is told to show, and branches of branches hold what
    those had when they began."""
    async with bench.thread() as (store, thread_id):
        await save_texts(store, thread_id, "a", "b")
        await save_texts(store, thread_id, "c", "d", after="a")
        await save_texts(store, thread_id, "e", after="c")
        same(await texts(store, thread_id), ["a", "c", "e"], "a branch of a branch")
        same(
            (await change_thread(store, thread_id, branch=0)).branch, 0, "the branch that is shown"
        )
        await save_texts(store, thread_id, "f")
        same(await texts(store, thread_id), ["a", "b", "f"], "the first branch, gone on with")
        await change_thread(store, thread_id, branch=2)
        await save_texts(store, thread_id, "g")
        same(
            await texts(store, thread_id),
            ["a", "c", "e", "g"],
            "the branch of a branch, gone on with",
        )
        same(await texts(store, thread_id, branch=1), ["a", "c", "d"], "the branch between")
        await expect_refusal(
            change_thread(store, thread_id, branch=9), "a branch that is not there", ["9"]
        )
        await expect_refusal(
            _messages(store, thread_id, 9), "reading a branch that is not there", ["9"]
        )


async def _messages(store: Store, thread_id: str, branch: int) -> object:
    return await store.messages(MessageQuery(thread_id=thread_id, branch=branch))
