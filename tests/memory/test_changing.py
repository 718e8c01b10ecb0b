"""A thread is its owner's: every function that takes a thread's id checks the owner, and none tells
whose a thread is."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Message
from dragoman.errors import DragomanError, HistoryError, ThreadNotFoundError
from dragoman.memory import Memory
from dragoman.testing import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.mend("1.13")]

QUESTION = Message.user("secret").replace(id="m1")

REFUSED = {
    "recall": lambda memory, owner: memory.recall("t", resource_id=owner),
    "update_thread": lambda memory, owner: memory.update_thread(
        "t", resource_id=owner, title="mine"
    ),
    "save_thread": lambda memory, owner: memory.save_thread("t", resource_id=owner, title="mine"),
    "clone_thread": lambda memory, owner: memory.clone_thread("t", resource_id=owner),
    "show_branch": lambda memory, owner: memory.show_branch("t", 0, resource_id=owner),
    "save": lambda memory, owner: memory.save([Message.user("mine")], "t", resource_id=owner),
    "update_messages": lambda memory, owner: memory.update_messages(
        [QUESTION], "t", resource_id=owner
    ),
}
NOTHING: dict[str, tuple[Any, Any]] = {
    "thread": (lambda memory, owner: memory.thread("t", resource_id=owner), None),
    "delete_thread": (lambda memory, owner: memory.delete_thread("t", resource_id=owner), False),
    "delete_messages": (
        lambda memory, owner: memory.delete_messages(["m1"], "t", resource_id=owner),
        0,
    ),
    "branches": (lambda memory, owner: memory.branches("t", resource_id=owner), []),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_another_resource_finds_no_thread(memory: Memory, name: str) -> None:
    await memory.save([QUESTION], "t", resource_id="ann-owner")
    with pytest.raises(ThreadNotFoundError) as refused:
        await REFUSED[name](memory, "bob")
    assert "ann-owner" not in str(refused.value)
    assert isinstance(refused.value, HistoryError)
    assert (
        (await memory.recall("t", resource_id="ann-owner")).items
        == ((await memory.recall("t")).items)
        != ()
    )
    assert (await memory.thread("t")).title == ""  # pyright: ignore
    await REFUSED[name](memory, "ann-owner")


@pytest.mark.parametrize("name", NOTHING)
async def test_another_resource_sees_and_deletes_nothing(memory: Memory, name: str) -> None:
    await memory.save([QUESTION], "t", resource_id="ann-owner")
    work, nothing = NOTHING[name]
    assert await work(memory, "bob") == nothing
    assert len((await memory.recall("t")).items) == 1
    assert await work(memory, "ann-owner") != nothing or name == "branches"


async def test_the_same_error_is_raised_for_a_thread_that_is_not_there(memory: Memory) -> None:
    await memory.save([QUESTION], "theirs", resource_id="ann")
    for name in ("theirs", "missing"):
        with pytest.raises(ThreadNotFoundError, match=f"^No thread found with id {name}$"):
            await memory.recall(name, resource_id="bob")


async def test_a_thread_of_nobody_is_given_an_owner_by_save_thread_alone(memory: Memory) -> None:
    """Whoever wrote into it first took it over."""
    await memory.save([QUESTION], "t")
    agent = Agent(ScriptedModel("Hello."), memory=memory)
    for work in (
        memory.save([Message.user("mine")], "t", resource_id="bob"),
        memory.update_thread("t", resource_id="bob", title="mine"),
        agent.send("mine", thread_id="t", resource_id="bob"),
    ):
        with pytest.raises(DragomanError):
            await work
    thread = await memory.thread("t")
    assert thread is not None
    assert (thread.resource_id, thread.title) == (None, "")
    assert len((await memory.recall("t")).items) == 1
    await memory.save_thread("t", resource_id="bob")
    await memory.save([Message.user("mine")], "t", resource_id="bob")
    with pytest.raises(ThreadNotFoundError):
        await memory.recall("t", resource_id="ann")


async def test_a_copy_is_the_owners_unless_another_is_named(memory: Memory) -> None:
    await memory.save([QUESTION], "t", resource_id="ann")
    assert (await memory.clone_thread("t", resource_id="ann")).resource_id == "ann"
    assert (
        await memory.clone_thread("t", resource_id="ann", new_resource_id="bob")
    ).resource_id == "bob"
