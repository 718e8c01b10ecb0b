"""Checks of a store's threads and their branches.

They are registered and run like those of messages. Threads are written through the same method
`Store.save` as messages, so most checks write a batch, with or without messages, and compare the
thread that comes back with what a query finds. A refused write must change nothing, and its
error must not say who owns the thread.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dragoman.memory.store import MessageQuery, Store, ThreadQuery
from dragoman.memory.thread import Thread
from dragoman.testing.check import require, require_equal
from dragoman.testing.samples import TEXT
from dragoman.testing.store.bench import (
    START,
    StoreBench,
    change_thread,
    expect_refusal,
    read_texts,
    save_texts,
    store_check,
)

__all__ = [
    "an_edit_starts_a_branch",
    "a_branch_can_be_selected",
    "a_thread_is_deleted_completely",
    "a_thread_is_created_once",
    "a_thread_belongs_to_one_resource",
    "threads_are_changed_field_by_field",
    "thread_queries_select",
]

_SAVE = "Store.save"


@store_check(look=_SAVE)
async def a_thread_is_created_once(bench: StoreBench) -> None:
    """A thread is created if it does not exist, unless `make="never"`. With `make="new"` an
    existing thread is refused."""
    async with bench.thread() as (store, thread_id):
        await expect_refusal(
            save_texts(store, thread_id, "a", make="never"),
            "a thread that is not there",
            [thread_id],
        )
        thread = await save_texts(store, thread_id, "a", make="new")
        require_equal(
            thread, Thread(id=thread_id, created_at=START, updated_at=START), "a new thread"
        )
        await expect_refusal(
            save_texts(store, thread_id, "b", make="new"), "a thread that is there", [thread_id]
        )
        later = await save_texts(store, thread_id, "c", make="never", seconds=7)
        require_equal(later.created_at, START, "when it was made")
        require_equal(later.updated_at, START + timedelta(seconds=7), "when it was changed")
        require_equal(await read_texts(store, thread_id), ["a", "c"], "the thread")
        require_equal(
            await store.threads(ThreadQuery(ids=(thread_id,))), [later], "the thread as it is read"
        )


@store_check(look=_SAVE)
async def a_thread_belongs_to_one_resource(bench: StoreBench) -> None:
    """A thread belongs to the resource that a change without messages names first. It is refused to
    any other resource, and the error does not name its owner."""
    async with bench.thread() as (store, thread_id):
        require_equal(
            (await change_thread(store, thread_id)).resource_id,
            None,
            "the resource of a thread without an owner",
        )
        require_equal(
            (await change_thread(store, thread_id, resource_id="ann")).resource_id,
            "ann",
            "the resource",
        )
        error = await expect_refusal(
            change_thread(store, thread_id, resource_id="bob", title="x"), "another's thread"
        )
        require("ann" not in str(error), f"the error for another's thread names its owner: {error}")
        require_equal(
            (await change_thread(store, thread_id)).title, "", "the title, which was refused"
        )


@store_check(look=_SAVE)
async def threads_are_changed_field_by_field(bench: StoreBench) -> None:
    """A change leaves the fields that it does not name. Metadata is merged at the top level, and
    the boundary of a token budget only moves forward. A title may be for a thread without one."""
    async with bench.thread() as (store, thread_id):
        titled = await change_thread(store, thread_id, title_if_empty="first")
        require_equal(titled.title, "first", "the title of a thread without one")
        await change_thread(
            store, thread_id, title=TEXT, metadata={"a": {"x": 1}, "b": [TEXT, None]}, trimmed=5
        )
        # The boundary goes back, and `a` is replaced: merging is not deep.
        await change_thread(store, thread_id, 3, metadata={"a": {"y": 2}, "c": False}, trimmed=3)
        # It has a title, so this one is not written.
        await change_thread(store, thread_id, 3, title_if_empty="other")
        threads = await store.threads(ThreadQuery(ids=(thread_id,)))
        thread = Thread(
            id=thread_id,
            title=TEXT,
            metadata={"a": {"y": 2}, "b": [TEXT, None], "c": False},
            created_at=START,
            updated_at=START + timedelta(seconds=3),
            trimmed=5,
        )
        require_equal(threads, [thread], "the thread")


@store_check(look="Store.threads")
async def thread_queries_select(bench: StoreBench) -> None:
    """`ids`, `resource_id`, `metadata` (all fields, by value and type), the order by change,
    `offset` and `limit` select threads."""
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
            require_equal(await found(**query), wanted, f"what {query} finds")


@store_check(look="Store.delete_thread")
async def a_thread_is_deleted_completely(bench: StoreBench) -> None:
    """A deleted thread is gone with its messages and branches, and a new one may have its id."""
    async with bench.thread() as (store, thread_id):
        await save_texts(store, thread_id, "a", "b")
        await save_texts(store, thread_id, "c", after="a")
        require_equal(await store.delete_thread(thread_id), True, "whether there was one")
        require_equal(
            await store.delete_thread(thread_id), False, "whether there was one, the second time"
        )
        require_equal(await store.messages(MessageQuery(thread_id=thread_id)), [], "its messages")
        require_equal(await store.branches(thread_id), [], "its branches")
        require_equal(await store.threads(ThreadQuery(ids=(thread_id,))), [], "the thread")
        require_equal(
            (await save_texts(store, thread_id, "d")).branch, 0, "the branch of the new one"
        )
        require_equal(await read_texts(store, thread_id), ["d"], "the new one")


@store_check(look=f"{_SAVE}: after")
async def an_edit_starts_a_branch(bench: StoreBench) -> None:
    """A message after the last one continues the branch. A message after an earlier one starts a
    branch, which becomes the current one; the old messages remain. Several branches may have the
    same message id, and new messages go to the current branch."""
    async with bench.thread() as (store, thread_id):
        await save_texts(store, thread_id, "a", after="")
        await save_texts(store, thread_id, "b", "c", after="a")
        require_equal(
            await store.branches(thread_id), [], "the branches of a thread that only went on"
        )
        await save_texts(store, thread_id, "B", "c", after="a", seconds=4)
        await save_texts(store, thread_id, "D")
        require_equal(await read_texts(store, thread_id), ["a", "B", "c", "D"], "the branch")
        require_equal(await read_texts(store, thread_id, branch=0), ["a", "b", "c"], "what it left")
        await save_texts(store, thread_id, "E", after="a")
        await save_texts(store, thread_id, "F", after="")
        require_equal(await read_texts(store, thread_id), ["F"], "a branch from the beginning")
        require_equal(await read_texts(store, thread_id, branch=2), ["a", "E"], "the branch before")
        branches = await store.branches(thread_id)
        require_equal(
            [(branch.number, branch.parent) for branch in branches],
            [(1, 0), (2, 0), (3, 0)],
            "numbers and parents",
        )
        require_equal(
            (branches[0].created_at, branches[2].position),
            (START + timedelta(seconds=4), 0),
            "time and position",
        )


@store_check(look=f"{_SAVE}: ThreadChange.branch")
async def a_branch_can_be_selected(bench: StoreBench) -> None:
    """`ThreadChange.branch` selects the branch that continues. A branch of a branch has the
    messages that its parent had when it started."""
    async with bench.thread() as (store, thread_id):
        await save_texts(store, thread_id, "a", "b")
        await save_texts(store, thread_id, "c", "d", after="a")
        await save_texts(store, thread_id, "e", after="c")
        require_equal(await read_texts(store, thread_id), ["a", "c", "e"], "a branch of a branch")
        require_equal(
            (await change_thread(store, thread_id, branch=0)).branch, 0, "the branch that is shown"
        )
        await save_texts(store, thread_id, "f")
        require_equal(
            await read_texts(store, thread_id), ["a", "b", "f"], "the first branch, gone on with"
        )
        await change_thread(store, thread_id, branch=2)
        await save_texts(store, thread_id, "g")
        require_equal(
            await read_texts(store, thread_id),
            ["a", "c", "e", "g"],
            "the branch of a branch, gone on with",
        )
        require_equal(
            await read_texts(store, thread_id, branch=1), ["a", "c", "d"], "the branch between"
        )
        await expect_refusal(
            change_thread(store, thread_id, branch=9), "a branch that is not there", ["9"]
        )
        await expect_refusal(
            _read_messages(store, thread_id, 9), "reading a branch that is not there", ["9"]
        )


async def _read_messages(store: Store, thread_id: str, branch: int) -> object:
    return await store.messages(MessageQuery(thread_id=thread_id, branch=branch))
