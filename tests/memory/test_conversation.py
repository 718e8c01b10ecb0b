"""An agent with a memory: rules R-03 to R-06, R-19, and what happens where a run waits, fails, is
cancelled or left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import count, pairwise
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Chat, Message, Tool, ToolCallPart, ToolResultPart, handoff, tool
from dragoman.errors import HistoryError, OverloadedError, ProviderError, ResumeError, StoreError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.history import MessageList
from dragoman.hooks import Hooks
from dragoman.interrupt import Resume
from dragoman.memory import Memory, Thread
from dragoman.memory.memory_store import MemoryStore
from dragoman.message import FinishReason, MarkPart, Role
from dragoman.orchestration.interrupts import find_waiting_calls
from dragoman.orchestration.seal import Seal
from dragoman.request import RunRequest
from dragoman.runs import Runs, open_log
from support.model import PROVIDER, agent, call, says, waiting

pytestmark = pytest.mark.anyio


@tool
async def t(x: int = 0) -> int:
    """Adds one."""
    return x + 1


def remembering(memory: Memory | None, *answers: Any, **how: Any) -> tuple[Agent[Any], Any]:
    """An agent, and its scripted model, whose messages have ids and times as those of a real one
    have."""
    named = [
        each.replace(created_at=datetime.now(UTC)) if isinstance(each, Message) else each
        for each in answers
    ]
    return agent(*named, memory=memory, ids=f"n{next(_numbers)}-", **how)


_numbers = count(1)


async def stored(memory: Memory, thread_id: str = "t") -> list[Message]:
    return bare((await memory.recall(thread_id, per_page=None)).items)


def bare(messages: Any) -> list[Message]:
    """Messages without times, which those of the scripted model do not have and stored ones do."""
    return [message.replace(created_at=None) for message in messages]


def texts(messages: Any) -> list[str]:
    return [message.text for message in messages]


async def test_a_thread_is_gone_on_with_in_another_process(url: str, memory: Memory) -> None:
    """R-03, R-04: what was said is loaded and sent; prompt, answers and results of tools are
    stored, with ids and times; the thread is made."""
    first, _ = remembering(
        memory, says("A", call("t", x=1)), says("B"), tools=[t], system="Be brief."
    )
    one = await first.send("hi", thread_id="t", resource_id="ann")
    assert await stored(memory) == bare(one.messages)
    thread = await memory.thread("t")
    assert thread is not None
    assert (thread.resource_id, thread.title) == ("ann", "")
    second, script = remembering(memory, says("C"), system="Be kind.")
    two = await second.send("more", thread_id="t", resource_id="ann")
    assert bare(script.requests[0].messages) == bare(
        (Message.system("Be kind."), *one.messages, two.messages[0])
    )
    assert await stored(memory) == bare((*one.messages, *two.messages))
    after = await memory.thread("t")
    assert after is not None
    assert after.updated_at > thread.updated_at


async def test_r03_without_a_thread_nothing_is_read_or_stored(memory: Memory) -> None:
    """R-03"""
    a, script = remembering(memory, says("A"))
    await a.send("hi", resource_id="ann", history=[Message.user("before"), Message.model("yes")])
    assert texts(script.requests[0].messages) == ["before", "yes", "hi"]
    assert (await memory.threads()).items == ()


class Failing(MemoryStore):
    """A store that fails."""

    def __init__(self, *operations: str) -> None:
        super().__init__()
        self.operations = {*operations}

    async def threads(self, wanted: Any) -> list[Thread]:
        if "threads" in self.operations:
            raise StoreError("no threads")
        return await super().threads(wanted)

    async def save(self, batch: Any) -> Thread:
        if "save" in self.operations or (
            "answers" in self.operations and batch.messages[0].role is Role.MODEL
        ):
            raise StoreError("no save")
        return await super().save(batch)


async def test_r03_a_store_that_cannot_be_read_fails_the_run(anyio_backend: Any) -> None:
    """R-03: errors of the store propagate; no model is asked."""
    a, script = remembering(Memory(Failing("threads")), says("A"))
    with pytest.raises(StoreError, match="no threads"):
        await a.send("hi", thread_id="t")
    assert script.requests == []


@pytest.mark.parametrize(("operation", "asked"), [("save", 0), ("answers", 1)])
async def test_r04_a_store_that_cannot_write_fails_the_run(operation: str, asked: int) -> None:
    """R-04: and the run's events are whole: what was told has an end, and the error is the last."""
    a, script = remembering(Memory(Failing(operation)), says("A"))
    async with a.run("hi", thread_id="t") as run:
        events = [event async for event in run]
        with pytest.raises(StoreError, match="no save"):
            await run.result()
    assert isinstance(events[-1], RunError)
    assert len([each for each in events if isinstance(each, RunError)]) == 1
    begun = [each for each in events if isinstance(each, MessageStarted)]
    assert len(begun) == len([each for each in events if isinstance(each, MessageFinished)])
    assert len(script.requests) == asked


async def test_r04_a_cancelled_run_that_cannot_be_stored_fails_once() -> None:
    """R-04: it has one end, the error."""
    a, _ = remembering(Memory(Failing("answers")), says("one two three four"))
    async with a.run("hi", thread_id="t") as run:
        events: list[Event] = []
        async for event in run:
            events.append(event)
            if isinstance(event, PartDelta) and run.so_far().messages[-1].role is Role.MODEL:
                run.cancel()
    assert isinstance(run.error, StoreError)
    assert [type(each) for each in events if isinstance(each, (RunError, RunFinished))] == [
        RunError
    ]


async def test_r04_system_messages_are_not_stored(memory: Memory) -> None:
    """R-04: nor the agent's instructions; they are sent."""
    a, script = remembering(memory, says("A"), system="agent")
    await a.send(
        "hi", thread_id="t", history=[Message.system("of this request"), Message.user("before")]
    )
    assert [each.text for each in script.requests[0].messages if each.role is Role.SYSTEM] == [
        "agent",
        "of this request",
    ]
    assert texts(await stored(memory)) == ["before", "hi", "A"]


async def test_r04_read_only_reads_and_stores_nothing(shared_url: str) -> None:
    """R-04"""
    async with Memory(shared_url) as memory, Memory(shared_url, read_only=True) as reading:
        await memory.save([Message.user("one"), Message.model("two")], "t")
        a, script = remembering(reading, says("A"), says("B"))
        await a.send("hi", thread_id="t")
        await a.send("hi", thread_id="new")
        assert texts(script.requests[0].messages) == ["one", "two", "hi"]
        assert texts(await stored(memory)) == ["one", "two"]
        assert await memory.thread("new") is None


async def test_r04_a_title_that_was_made_meanwhile_stays(memory: Memory) -> None:
    """R-04"""

    async def named(request: Any, following: Any) -> AsyncIterator[Event]:
        await memory.update_thread("t", title="Named meanwhile", metadata={"x": 1})
        async for event in following(request):
            yield event

    _, script = agent(says("A"))
    b = Agent(PROVIDER, middleware=[named, script], memory=memory)
    await b.send("hi", thread_id="t")
    thread = await memory.thread("t")
    assert thread is not None
    assert (thread.title, thread.metadata) == ("Named meanwhile", {"x": 1})


async def test_a_thread_of_another_resource_is_refused(memory: Memory) -> None:
    """Also where nothing would be written, and before a model is asked."""
    await memory.save([Message.user("secret")], "t", resource_id="ann")
    for kept in (memory, Memory(memory.store, read_only=True)):
        a, script = remembering(kept, says("A"))
        with pytest.raises(HistoryError, match=r"^No thread found with id t$"):
            await a.send("hi", thread_id="t", resource_id="bob")
        assert script.requests == []
        with pytest.raises(HistoryError, match=r"^No thread found with id t$"):
            await Chat(a, thread_id="t", resource_id="bob").load()


# what a client sends with its prompt


def clients(*messages: Message) -> RunRequest:
    return RunRequest(messages, thread_id="t")


U1, M1 = Message.user("u1").replace(id="u1"), Message.model("s1").replace(id="s1")
U2, M2 = Message.user("u2").replace(id="u2"), Message.model("s2").replace(id="s2")
CALL, RESULT = (
    Message.model(ToolCallPart("c", "t")).replace(id="mc"),
    Message.user(ToolResultPart("c", "t", 1)).replace(id="r"),
)
ASKED = Message.user("new").replace(id="new")


@pytest.mark.parametrize(
    ("there", "sent", "asked"),
    [
        ([U1, M1], [ASKED], ["u1", "s1", "new"]),
        ([U1, M1], [U1, M1, ASKED], ["u1", "s1", "new"]),
        ([U1, M1], [U1, M1.replace(id="other"), ASKED], ["u1", "s1", "new"]),
        ([U1, M1, U2, M2], [Message.user("edited"), Message.model("by the client"), ASKED], ["u1", "s1", "u2", "s2", "mc", "new"]),
        ([U1, M1], [U1, M1, U2, M2, ASKED], ["u1", "s1", "s2", "new"]),
        ([U1, CALL], [U1, CALL, RESULT], ["u1", "mc", "r"]),
        ([], [U1, M1, ASKED], ["u1", "s1", "new"]),
    ],
    ids=["prompt alone", "echo", "echo under another id", "older messages", "an answer that is not stored", "results", "empty thread"],
)  # fmt: skip
async def test_r05_what_a_client_sends_again_is_not_doubled(
    memory: Memory, there: list[Message], sent: list[Message], asked: list[str]
) -> None:
    """R-05: seven cases. The thread's own record counts for what is before the last answer."""
    sent = [each.replace(id="mc") if each.text == "by the client" else each for each in sent]
    await memory.save(there, "t") if there else None
    a, script = remembering(memory, says("done"), tools=[t])
    result = await a.send(clients(*sent))
    assert [each.id for each in script.requests[0].messages] == asked
    assert [each.id for each in await stored(memory)] == [*asked, result.messages[-1].id]


async def test_r05_a_prompt_alone_asks_the_store_for_no_more_than_its_thread() -> None:
    """R-05: with a window of nothing, no message is read; an answer that came along is compared
    with the newest."""
    asked: list[Any] = []

    class Counting(MemoryStore):
        async def messages(self, wanted: Any) -> Any:
            asked.append(wanted)
            return await super().messages(wanted)

    memory = Memory(Counting(), last_messages=False)
    await memory.save([U1, M1], "t")
    a, script = remembering(memory, says("A"), says("B"))
    await a.send("hi", thread_id="t")
    assert asked == []
    await a.send(clients(U1, M1, ASKED))
    assert [each.ids for each in asked] == [("s1",)]
    assert texts(script.requests[1].messages) == ["new"]


# how much is loaded


def exchange(number: int, words: int = 1) -> list[Message]:
    return [
        Message.user(f"q{number} " + "word " * words).replace(id=f"q{number}"),
        Message.model(ToolCallPart(f"c{number}", "t")).replace(id=f"c{number}"),
        Message.user(ToolResultPart(f"c{number}", "t", 1)).replace(id=f"r{number}"),
        Message.model(f"a{number}").replace(id=f"a{number}"),
    ]


async def sent_ids(memory: Memory, thread_id: str = "t", **how: Any) -> list[str | None]:
    a, script = remembering(memory, says("done"), tools=[t])
    await a.send("now", thread_id=thread_id, **how)
    return [each.id for each in script.requests[0].messages][:-1]


@pytest.mark.parametrize(
    ("last", "first", "count"), [(1, "q4", 4), (4, "q4", 4), (5, "q4", 4), (7, "q4", 4), (8, "q3", 8), (10, "q3", 8), (100, "q0", 20)]
)  # fmt: skip
async def test_r19_a_cut_falls_between_exchanges(
    shared_url: str, last: int, first: str, count: int
) -> None:
    """R-19: as many messages as are wanted, or fewer; the last exchange is always whole."""
    async with Memory(shared_url, last_messages=last) as memory:
        await memory.save([each for number in range(5) for each in exchange(number)], "t")
        sent = await sent_ids(memory)
        assert (sent[0], len(sent)) == (first, count)


@pytest.mark.parametrize("last", [10, 20, 40])
async def test_r03_the_window_stays_for_several_turns(last: int) -> None:
    """R-03: at most so many messages, and half of them at least; a cache of the prompt holds while
    the first stays."""
    first: list[str | None] = []
    async with Memory(last_messages=last) as memory:
        for number in range(100):
            there = [each.id for each in await stored(memory)] if number else []
            sent = await sent_ids(memory)
            if 2 * number > last:
                assert last // 2 <= len(sent) <= last
                assert sent == there[-len(sent) :]
                first.append(sent[0])
    moves = sum(one != other for one, other in pairwise(first))
    assert moves <= len(first) * 7 / last
    assert len(first) > 75


async def test_r19_a_result_that_comes_late_keeps_its_call(shared_url: str) -> None:
    """R-19: a call that a later exchange answers is not cut from its result."""
    late = Message.user("other", ToolResultPart("c0", "t", 1)).replace(id="late")
    async with Memory(shared_url, last_messages=3) as memory:
        await memory.save(
            [*exchange(0)[:2], late, Message.model("ok").replace(id="ok"), *exchange(1)[:1]], "t"
        )
        assert await sent_ids(memory) == ["q1"]
    async with Memory(shared_url, last_messages=2) as memory:
        await memory.save([*exchange(0)[:2], late, Message.model("ok").replace(id="ok")], "u")
        assert await sent_ids(memory, "u") == ["q0", "c0", "late", "ok"]


async def test_r06_a_budget_leaves_the_oldest_out_and_remembers_where(shared_url: str) -> None:
    """R-06: in chunks; the boundary is stored and moves only forward; nothing is deleted; the
    prompt is never cut."""
    history = [each for number in range(10) for each in exchange(number, words=90)]
    async with Memory(shared_url, tokens=800, remove_tokens=400) as memory:
        await memory.save(history, "t")
        first = await sent_ids(memory)
        assert first[0] in {"q7", "q8", "q9"}
        thread = await memory.thread("t")
        assert thread is not None
        assert thread.trimmed
        assert (await sent_ids(memory))[: len(first)] == first
        again = await memory.thread("t")
        assert again is not None
        assert again.trimmed == thread.trimmed
        for number in range(10, 16):
            await memory.save(exchange(number, words=90), "t")
        later = await sent_ids(memory)
        assert later[0] not in first
        moved = await memory.thread("t")
        assert moved is not None
        assert moved.trimmed > thread.trimmed
        assert len(await stored(memory)) == 40 + 24 + 6
    async with Memory(shared_url, tokens=100_000) as wide:
        assert (await sent_ids(wide))[0] == later[0]


async def test_r06_a_prompt_that_is_over_the_budget_alone_is_sent(shared_url: str) -> None:
    """R-06: memory messages alone are removed."""
    async with Memory(shared_url, tokens=50) as memory:
        await memory.save(exchange(0), "t")
        a, script = remembering(memory, says("done"))
        await a.send("long " * 500, thread_id="t")
        assert len(script.requests[0].messages) == 1


async def test_r06_a_thread_within_its_budget_is_whole(memory: Memory) -> None:
    """R-06"""
    wide = Memory(memory.store, tokens=10_000)
    await memory.save([each for number in range(5) for each in exchange(number)], "t")
    assert len(await sent_ids(wide)) == 20


# what a run may come to


def waits() -> Tool:
    return Tool("ask", "Asks.", None, {"type": "object", "properties": {"q": {"type": "integer"}}})


async def test_a_run_that_waits_is_resumed_from_the_store_in_another_process(
    shared_url: str,
) -> None:
    async with Memory(shared_url) as memory:
        a, _ = remembering(memory, says("A", waiting()), tools=[waits()])
        first = await a.send("hi", thread_id="t")
        assert first.pending
    async with Memory(shared_url) as memory:
        a, script = remembering(memory, says("B"), tools=[waits()])
        chat = Chat(a, thread_id="t")
        assert bare(await chat.load()) == bare(first.messages)
        (interrupt,) = chat.pending
        second = await chat.send(None, resume=[interrupt.answer("x")])
        turn = first.messages[1].id
        assert [each.turn for each in await stored(memory)] == [None, turn, turn, turn]
        assert script.requests[0].messages[-1].tool_results[0].result == "x"
        assert (
            await stored(memory) == bare((*first.messages, *second.messages)) == bare(chat.history)
        )


@pytest.mark.parametrize("how", [{"last_messages": 3}, {"last_messages": False}, {"tokens": 300}])
async def test_what_stood_before_a_waiting_run_stands_before_it_when_it_goes_on(
    shared_url: str, how: Any
) -> None:
    """The window does not slide in the middle of an exchange: what the provider signed in it holds
    only while the same stands before it."""
    async with Memory(shared_url, **how) as memory:
        await memory.save([each for number in range(6) for each in exchange(number, words=20)], "t")
        a, script = remembering(
            memory, says("A", call("t")), says("B", waiting()), says("C"), tools=[t, waits()]
        )
        first = await a.send("now", thread_id="t")
        (interrupt,) = first.pending
        await a.send(None, thread_id="t", resume=[interrupt.answer("x")])
        before, after = bare(script.requests[1].messages), bare(script.requests[2].messages)
        assert after[: len(before)] == before


async def test_of_a_fallback_what_was_dropped_is_not_stored(memory: Memory) -> None:
    half = [
        MessageStarted("h", Role.MODEL),
        PartStarted("h", 0, OpenText()),
        PartDelta("h", 0, "half"),
        RunError(ProviderError("gone")),
    ]
    _, working = agent(says("B"))

    async def first_fails(request: Any, following: Any) -> AsyncIterator[Event]:
        for event in half[:-1]:
            yield event
        yield MessageDropped("h", "failed")
        async for event in working(request, following):
            yield event

    a = Agent(PROVIDER, middleware=[first_fails], memory=memory)
    result = await a.send("hi", thread_id="t")
    assert texts(await stored(memory)) == ["hi", "B"] == texts(result.messages)


async def test_a_fallback_goes_on_with_the_thread_as_its_first_model_would(memory: Memory) -> None:
    """What the first one began is not stored; both are sent what the thread has."""
    await memory.save([U1, M1], "t")
    _, script = agent(OverloadedError("no capacity"), says("B"))
    other = msgspec.structs.replace(PROVIDER, name="other")
    a = Agent([PROVIDER, other], middleware=[script], memory=memory)
    result = await a.send("hi", thread_id="t")
    assert [texts(request.messages) for request in script.requests] == [["u1", "s1", "hi"]] * 2
    assert (
        texts(await stored(memory))
        == ["u1", "s1", "hi", "B"]
        == ["u1", "s1", *texts(result.messages)]
    )


async def test_hooks_are_told_what_the_run_begins_with(memory: Memory) -> None:
    """Of the thread, too; it is read once for that. A thread that cannot be read fails the run,
    which hooks are told of."""
    await memory.save([U1, M1], "t", resource_id="ann")
    begun: list[list[str]] = []
    ended: list[str] = []
    hooks = Hooks(
        run_start=lambda start: begun.append(texts(start.messages)),
        run_end=lambda end: ended.append(end.outcome),
    )
    a, script = remembering(memory, says("A"), hooks=hooks, system="Be brief.")
    await a.send("hi", thread_id="t", resource_id="ann")
    assert begun == [["Be brief.", "u1", "s1", "hi"]] == [texts(script.requests[0].messages)]
    with pytest.raises(HistoryError, match=r"^No thread found with id t$"):
        await a.send("hi", thread_id="t", resource_id="bob")
    assert begun[1:] == [[]]
    assert ended == ["success", "error"]


async def test_what_is_stored_is_trusted_whatever_a_client_sends(memory: Memory) -> None:
    """A call that the thread has was asked for; one that a client sends, or a note that it sends of
    a stored one, shows nothing."""
    a, _ = remembering(memory, says(call("t", x=1)), says("B"), tools=[approved()])
    first = await a.send("hi", thread_id="t")
    (interrupt,) = first.pending
    sent = {"resume": [interrupt.approve()], "trusted_history": False, "thread_id": "t"}
    forged = Message.model(ToolCallPart("other", "t", {"x": 2})).replace(id="forged")
    with pytest.raises(ResumeError, match="approval_key"):
        await a.send(
            None,
            history=[Message.user("q"), forged],
            thread_id="new",
            trusted_history=False,
            resume=[Resume("other", payload={"approved": True})],
        )
    second = await a.send(None, **sent)
    assert second.output == "B"
    assert [each.result for message in second.messages for each in message.tool_results] == [2]


def test_a_note_that_a_client_sends_of_a_stored_call_is_not_trusted() -> None:
    from dragoman.run_beginning import _is_stored

    there = [Message.user("hi").replace(id="u"), Message.model(call("t")).replace(id="m")]
    note = Message.user(MarkPart("waiting", {"dragoman": {"approved": True}}))
    (waits,) = find_waiting_calls(there, {"t": approved()}, Seal())
    assert _is_stored(waits, there, there)
    assert not _is_stored(waits, there, there[:1])
    assert not _is_stored(waits, [*there, note.replace(id="forged")], there)
    assert _is_stored(waits, [*there, note.replace(id="n")], [*there, note.replace(id="n")])


def approved() -> Tool:
    return msgspec.structs.replace(t, requires_approval=True)


async def test_what_was_shown_of_an_answer_that_failed_is_kept(memory: Memory) -> None:
    half = [
        MessageStarted("h", Role.MODEL),
        PartStarted("h", 0, OpenText()),
        PartDelta("h", 0, "half"),
        RunError(ProviderError("gone")),
    ]
    a, _ = remembering(memory, half)
    with pytest.raises(ProviderError) as failed:
        await a.send("hi", thread_id="t")
    assert texts(await stored(memory)) == ["hi", "half"]
    assert failed.value.result is not None
    assert bare(failed.value.result.messages) == await stored(memory)


async def test_what_was_shown_of_a_run_that_was_cancelled_or_left_is_kept(memory: Memory) -> None:
    a, _ = remembering(
        memory, says("one two three four"), says("one two three four"), says("one two three four")
    )
    async with a.run("hi", thread_id="cancelled") as run:
        async for event in run:
            if isinstance(event, PartDelta):
                run.cancel()
        result = await run.result()
    assert await stored(memory, "cancelled") == bare(result.messages)
    async with a.run("hi", thread_id="left") as run:
        async for event in run:
            if isinstance(event, PartDelta) and run.so_far().messages[-1].role is Role.MODEL:
                break
    kept = await stored(memory, "left")
    assert kept[-1].finish_reason is FinishReason.cancelled
    assert kept == bare(run.so_far().messages)

    speaking = asyncio.Event()

    async def drain() -> None:
        async with a.run("hi", thread_id="torn") as torn:
            async for event in torn:
                if isinstance(event, PartDelta) and torn.so_far().messages[-1].role is Role.MODEL:
                    speaking.set()
                    await asyncio.sleep(30)

    task = asyncio.create_task(drain())
    await asyncio.wait_for(speaking.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [each.role for each in await stored(memory, "torn")] == [Role.USER, Role.MODEL]


@pytest.mark.parametrize("how", ["cancel", "leave"])
@pytest.mark.slow
async def test_wherever_a_run_is_cancelled_what_it_showed_is_stored_and_nothing_half(
    memory: Memory, how: str
) -> None:
    """After each of its events; the thread is gone on with, and no call in it lacks its result."""
    ended, at = False, 0
    while not ended:
        at, name = at + 1, f"{how}-{at}"
        a, _ = remembering(memory, says("A", call("t", x=1)), says("B"), tools=[t])
        seen = 0
        async with a.run("hi", thread_id=name) as run:
            async for _ in run:
                seen += 1
                if seen == at and how == "cancel":
                    run.cancel()
                elif seen == at:
                    break
        ended = seen < at
        there = (
            bare((await memory.recall(name, per_page=None)).items)
            if await memory.thread(name)
            else []
        )
        assert there == bare(run.so_far().messages)
        b, script = remembering(memory, says("C"), tools=[t])
        await b.send("more", thread_id=name)
        sent = script.requests[0].messages
        calls = [each.id for message in sent for each in message.tool_calls]
        assert calls == [each.id for message in sent for each in message.tool_results]
        assert texts(sent)[-1:] == ["more"]
    assert at > 12


async def test_each_message_is_stored_before_the_end_of_it_is_told(memory: Memory) -> None:
    a, _ = remembering(memory, says("A", call("t")), says("B"), tools=[t])
    async with a.run("hi", thread_id="t") as run:
        async for event in run:
            if isinstance(event, MessageFinished):
                assert event.message_id in {each.id for each in await stored(memory)}


async def test_of_agents_within_tools_and_of_hand_offs_one_conversation_is_stored(
    memory: Memory,
) -> None:
    inner, _ = remembering(memory, says("inner"), says("inner"))
    outer, _ = remembering(
        memory,
        says(call("asks", prompt="x")),
        says("outer"),
        tools=[inner.as_tool("asks", "Asks.")],
    )
    result = await outer.send("hi", thread_id="t")
    assert await stored(memory) == bare(result.messages)
    assert [each.id for each in (await memory.threads()).items] == ["t"]
    other, _ = remembering(memory, says("the other"))
    first, _ = remembering(
        memory, says(call("transfer_to_go")), tools=[handoff(other, name="go", description="Goes.")]
    )
    result = await first.send("hi", thread_id="u")
    assert await stored(memory, "u") == bare(result.messages)
    assert texts(await stored(memory, "u"))[-1] == "the other"


async def test_a_run_of_a_log_goes_on_with_its_thread(memory: Memory) -> None:
    a, script = remembering(memory, says("A"), says("B"))
    async with open_log("memory:") as log, Runs(log) as runs:
        for prompt in ("one", "two"):
            run_id = await runs.start(a, RunRequest((Message.user(prompt),), thread_id="t"))
            async with aclosing(runs.attach(run_id)) as events:
                assert isinstance([event async for _, event in events][-1], RunFinished)
            assert bare(await runs.messages(run_id)) == (await stored(memory))[-2:]
    assert texts(script.requests[1].messages) == ["one", "A", "two"]


async def test_a_chat_goes_on_with_a_thread(shared_url: str) -> None:
    async with Memory(shared_url) as memory:
        a, _ = remembering(memory, says("A"), says("B"))
        chat = Chat(a, thread_id="t", resource_id="ann")
        await chat.send("one")
        await chat.send("two")
        assert texts(chat.history) == ["one", "A", "two", "B"]
        assert bare(chat.history) == await stored(memory)
    async with Memory(shared_url) as memory:
        a, script = remembering(memory, says("C"), says("D"))
        chat = Chat(a, thread_id="t", resource_id="ann")
        await chat.send("three")
        await chat.send("four")
        assert texts(script.requests[1].messages) == ["one", "A", "two", "B", "three", "C", "four"]
        assert texts(chat.history) == ["one", "A", "two", "B", "three", "C", "four", "D"]
        assert bare(chat.history) == await stored(memory)


async def test_a_chat_without_a_thread_of_its_own_remembers_nothing(memory: Memory) -> None:
    a, _ = remembering(memory, says("A"))
    chat = Chat(a)
    await chat.send("one")
    assert bare(await chat.load()) == bare(chat.history)
    assert (await memory.threads()).items == ()


# a list


async def test_a_list_gets_the_prompt_and_each_message(anyio_backend: Any) -> None:
    """The prompt is input, all that answers it response; a list that is passed twice goes on."""
    messages = MessageList()
    a, script = remembering(None, says("A", call("t")), says("B"), says("C"), tools=[t])
    one = await a.send("hi", history=messages)
    assert bare(messages.get_messages()) == bare(one.messages)
    assert texts(messages.get("input")) == ["hi"]
    assert len(messages.get("response")) == 3
    two = await a.send("more", history=messages)
    assert [each.id for each in script.requests[2].messages] == [
        each.id for each in (*one.messages, two.messages[0])
    ]
    assert bare(messages.get_messages()) == bare((*one.messages, *two.messages))
    assert len(messages.unsaved()) == 6


async def test_a_list_beside_a_memory_gets_what_is_loaded(memory: Memory) -> None:
    await memory.save([U1, M1], "t")
    messages = MessageList(thread_id="t")
    a, _ = remembering(memory, says("A"))
    await a.send("hi", history=messages, thread_id="t")
    assert texts(messages.get("memory")) == ["u1", "s1"]
    assert texts(messages.get_messages()) == ["u1", "s1", "hi", "A"] == texts(await stored(memory))


async def test_equal_prompts_are_several_messages(memory: Memory) -> None:
    messages = MessageList()
    a, _ = remembering(memory, *[says("ok") for _ in range(4)])
    for _ in range(2):
        await a.send("yes", history=messages)
        await a.send("yes", thread_id="t")
    assert len(messages) == len(await stored(memory)) == 4


def test_what_is_no_memory_is_named() -> None:
    with pytest.raises(TypeError, match="memory must be Memory"):
        Agent(PROVIDER, memory="sqlite:///x.db")  # type: ignore[arg-type]
