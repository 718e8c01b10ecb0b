"""Runs of an agent with a working memory: when a memo shows it, and how the model changes it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, tool
from dragoman.codec.memos import is_memo
from dragoman.errors import StoreError, ThreadNotFoundError
from dragoman.memory import Memory, Recall, Slot, SlotText, WorkingMemory
from dragoman.memory.memory_store import MemoryStore
from dragoman.memory.window import count_tokens
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ANN = {"resource_id": "ann"}


def update(memory: Any, call_id: str = "c") -> Message:
    return Message.model(ToolCallPart(call_id, "updateWorkingMemory", {"memory": memory}))


def agent_of(memory: Memory, *answers: Any, **how: Any) -> tuple[Agent[None], ScriptedModel]:
    model = ScriptedModel([*answers])
    return Agent(model, memory=memory, **how), model


def shape(messages: Any) -> list[str]:
    """What each message is, in a word or two."""
    return [_describe(message) for message in messages]


def _describe(message: Message) -> str:
    if is_memo(message):
        return f"memo {message.metadata['working_memory']}"
    return message.text or f"{message.role.value} tools"


async def stored(memory: Memory, thread_id: str = "t") -> list[str]:
    return shape((await memory.recall(thread_id, per_page=None)).items)


def sent(request: ModelRequest) -> list[str]:
    """The same of a request as the provider has it, which knows of no memos."""
    return ["memo" if "<working_memory_data>" in text else text for text in shape(request.messages)]


async def test_r12_a_memo_stands_where_the_thread_begins(url: str) -> None:
    """R-12: the system text stays as it is; the memo is stored once, before the prompt."""
    async with Memory(url, working=WorkingMemory()) as memory:
        agent, model = agent_of(memory, "Hi.", "Still.", "New.", system="Be brief.")
        for prompt in ("one", "two"):
            await agent.send(prompt, thread_id="t", **ANN)
        assert await stored(memory) == ["memo 0", "one", "Hi.", "two", "Still."]
        assert "# User Information" in model.requests[0].messages[1].text
        assert [request.messages[0].text for request in model.requests] == ["Be brief."] * 2
        await agent.send("three", thread_id="u", **ANN)
        assert await stored(memory, "u") == ["memo 0", "three", "New."]


async def test_r02_the_order_of_what_goes_before_a_prompt() -> None:
    """R-02: incoming, working memory, window, prompt. What is incoming is known first, so that the
    window does not repeat it; the memo is behind the window, where it was stored."""
    memory = Memory(working=WorkingMemory())
    agent, model = agent_of(memory, "A.", "B.", system="Be brief.")
    await agent.send("a", thread_id="t", **ANN)
    await memory.set_working("# B", version=0, **ANN)
    incoming = [
        Message.user("a"),
        Message.model("A."),
        Message.user("b"),
        Message.model("From elsewhere."),
    ]
    await agent.send("c", history=incoming, thread_id="t", **ANN)
    talk = ["memo", "a", "A.", "From elsewhere.", "memo", "c"]
    assert sent(model.requests[1]) == ["Be brief.", *talk]
    assert await stored(memory) == ["memo 0", "a", "A.", "From elsewhere.", "memo 1", "c", "B."]


async def test_r02_the_budget_comes_last() -> None:
    """R-02: the memo counts, and the window gives way to it. If that cuts the part of the window
    that showed the working memory, the memo comes again."""
    memory = Memory(working=WorkingMemory(), tokens=400, remove_tokens=0)
    agent, model = agent_of(memory, *["Yes. " * 20] * 8)
    for number in range(4):
        await agent.send(f"q{number} " * 20, thread_id="t", **ANN)
    for number in range(4):
        await memory.merge_working(f"# Facts {number}\n" + "- ate fish\n" * 50, **ANN)
        await agent.send(f"r{number}", thread_id="t", **ANN)
        request = model.requests[-1]
        memos = [m.text for m in request.messages if "<working_memory_data>" in m.text]
        assert f"# Facts {number}" in memos[-1]
        assert count_tokens(*request.messages) <= 420


async def test_a_memo_that_recall_pushes_out_of_the_window_comes_again() -> None:
    memory = Memory(
        working=WorkingMemory(),
        recall=Recall(WordEmbedder(), around=0, scope="resource"),
        tokens=220,
        remove_tokens=0,
    )
    agent, model = agent_of(memory, *["Yes."] * 9)
    await memory.set_working("# Facts\n- fish", version=0, **ANN)
    await memory.save([Message.user("boiler " * 60)], "u", resource_id="ann")
    for prompt in ("hello", "more", "boiler"):
        await agent.send(prompt, thread_id="t", **ANN)
        assert "- fish" in "".join([message.text for message in model.requests[-1].messages])
    assert "boiler boiler" in "".join([message.text for message in model.requests[-1].messages])


async def test_r13_within_a_thread_the_call_is_the_newest_state(url: str) -> None:
    """R-13, R-14: the call and its result stay in what is stored, and no memo repeats them."""
    async with Memory(url, working=WorkingMemory()) as memory:
        agent, _ = agent_of(memory, update("# Facts\n- Ann"), "Noted.", "Ann.", "You are Ann.")
        await agent.send("I am Ann.", thread_id="t", **ANN)
        await agent.send("Who am I?", thread_id="t", **ANN)
        talk = ["memo 0", "I am Ann.", "model tools", "user tools", "Noted.", "Who am I?", "Ann."]
        assert await stored(memory) == talk
        await agent.send("And I?", thread_id="u", **ANN)
        memo = (await memory.recall("u")).items[0]
        assert memo.metadata == {"working_memory": 1}
        assert "- Ann" in memo.text


async def test_a_memo_stands_where_another_thread_changed_it(url: str) -> None:
    async with Memory(url, working=WorkingMemory()) as memory:
        agent, _ = agent_of(memory, "A.", update("# B"), "B.", "C.", "D.")
        await agent.send("a", thread_id="t", **ANN)
        await agent.send("b", thread_id="u", **ANN)
        await agent.send("c", thread_id="t", **ANN)
        await agent.send("d", thread_id="t", **ANN)
        assert await stored(memory) == ["memo 0", "a", "A.", "memo 1", "c", "C.", "d", "D."]
        first, later = [m.text for m in (await memory.recall("t")).items if is_memo(m)]
        assert "updateWorkingMemory" in first
        assert later.startswith("Your working memory was changed outside of this conversation.")
        assert "# B" in later


async def test_a_change_by_fields_says_the_state_only_to_who_knows_the_one_before() -> None:
    """The model of a thread gives a patch for a state that another thread has changed meanwhile."""
    memory = Memory(working=WorkingMemory(schema={"type": "object"}))

    async def change_elsewhere(request: ModelRequest) -> Any:
        await memory.merge_working({"elsewhere": 1}, resource_id="ann")
        return update({"here": 1})

    agent, _ = agent_of(memory, update({"a": 1}), "A.", change_elsewhere, "B.", "C.", "D.")
    for prompt in "abcd":
        await agent.send(prompt, thread_id="t", **ANN)
    assert await stored(memory) == [
        *["memo 0", "a", "model tools", "user tools", "A."],
        *["b", "model tools", "user tools", "B."],
        *["memo 3", "c", "C.", "d", "D."],
    ]
    memo = (await memory.recall("t")).items[9]
    assert '{"a":1,"elsewhere":1,"here":1}' in memo.text


async def test_calls_of_one_round_are_merged_one_after_the_other() -> None:
    memory = Memory(working=WorkingMemory(schema={"type": "object"}))
    calls = [
        ToolCallPart(f"c{n}", "updateWorkingMemory", {"memory": {f"k{n}": n}}) for n in range(4)
    ]
    agent, _ = agent_of(memory, Message.model(*calls), "Done.", "Yes.")
    result = await agent.send("go", thread_id="t", **ANN)
    versions = [part.result["version"] for part in result.messages[2].tool_results]
    assert versions == [1, 2, 3, 4]
    await agent.send("more", thread_id="t", **ANN)
    assert "memo 4" not in await stored(memory)


async def test_a_memo_comes_again_when_the_window_has_left_it() -> None:
    memory = Memory(working=WorkingMemory(), last_messages=4)
    agent, model = agent_of(memory, *["Yes."] * 6)
    for number in range(6):
        await agent.send(f"q{number}", thread_id="t", **ANN)
    for request in model.requests:
        assert "memo" in sent(request)
    assert (await stored(memory)).count("memo 0") < 6


async def test_a_run_without_its_ids_has_none() -> None:
    """Neither memo nor tool: without a thread nothing is stored, and without a resource it is
    nobody's."""
    memory = Memory(working=WorkingMemory())
    agent, model = agent_of(memory, "a", "b", "c")
    await agent.send("x", **ANN)
    await agent.send("x", thread_id="t")
    per_thread, other = agent_of(Memory(working=WorkingMemory(scope="thread")), "d")
    await per_thread.send("x", thread_id="t")
    assert [len(request.tools) for request in (*model.requests, *other.requests)] == [0, 0, 1]
    assert [sent(request)[0] for request in (*model.requests, *other.requests)] == [
        "x",
        "x",
        "memo",
    ]


async def test_a_read_only_memory_shows_it_and_gives_no_tool() -> None:
    store = MemoryStore()
    await Memory(store, working=WorkingMemory()).set_working("# Ann", version=0, **ANN)
    agent, model = agent_of(Memory(store, working=WorkingMemory(), read_only=True), "Yes.")
    await agent.send("x", thread_id="t", **ANN)
    assert sent(model.requests[0]) == ["memo", "x"]
    assert "updateWorkingMemory" not in model.requests[0].messages[0].text
    assert model.requests[0].tools == ()


async def test_a_foreign_thread_is_refused_before_anything_is_read() -> None:
    memory = Memory(working=WorkingMemory())
    await memory.set_working("# Secret", version=0, resource_id="bob")
    await memory.save_thread("t", resource_id="bob")
    agent, model = agent_of(memory, "Yes.")
    with pytest.raises(ThreadNotFoundError):
        await agent.send("x", thread_id="t", **ANN)
    assert model.requests == []


class BrokenSlots(MemoryStore):
    """A store whose working memories cannot be read."""

    async def read_slot(self, slot: Slot) -> SlotText:
        raise self.error

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


@pytest.mark.parametrize("error", [StoreError("gone"), RuntimeError("broken")])
async def test_r12_a_store_that_fails_leaves_the_memo_out(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """R-12: the run goes on unchanged. A failed call of the tool is told to the model."""
    memory = Memory(BrokenSlots(error), working=WorkingMemory())
    agent, _ = agent_of(memory, update("# A"), "Yes.")
    result = await agent.send("x", thread_id="t", **ANN)
    assert result.output == "Yes."
    assert result.messages[2].tool_results[0].is_error
    assert await stored(memory) == ["x", "model tools", "user tools", "Yes."]
    assert "the working memory is left out" in caplog.text


async def test_the_memo_stands_before_a_question_that_ends_the_history() -> None:
    memory = Memory(working=WorkingMemory())
    agent, model = agent_of(memory, "Yes.", "No.")
    history = [Message.user("old"), Message.model("Old."), Message.user("new")]
    await agent.send(None, history=history, thread_id="t", **ANN)
    assert sent(model.requests[0]) == ["old", "Old.", "memo", "new"]
    assert await stored(memory) == ["old", "Old.", "memo 0", "new", "Yes."]


async def test_no_memo_comes_between_a_call_and_its_result() -> None:
    """A run that waits is gone on with as it is; a question in its place has the memo behind the
    results."""

    @tool(requires_approval=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    memory = Memory(working=WorkingMemory())
    calling = Message.model(ToolCallPart("p", "pay", {}))
    agent, model = agent_of(memory, calling, "Paid.", calling, "Else.", tools=[pay])
    waiting = await agent.send("pay", thread_id="t", **ANN)
    await memory.set_working("# B", version=0, **ANN)
    await agent.send(None, thread_id="t", resume=[waiting.pending[0].approve()], **ANN)
    assert await stored(memory) == ["memo 0", "pay", "model tools", "user tools", "Paid."]
    await agent.send("again", thread_id="t", **ANN)
    await memory.set_working("# C", version=1, **ANN)
    await agent.send("else", thread_id="t", **ANN)
    last = model.requests[-1].messages
    assert sent(model.requests[-1])[-4:] == ["model tools", "user tools", "memo", "else"]
    assert last[-3].tool_results[0].id == "p"


async def test_extracted_from_an_answer(url: str) -> None:
    """Without a tool: the first `<working_memory>` of an answer is merged, and what is stored keeps
    it; one that does not end, or does not fit, is none."""
    async with Memory(url, working=WorkingMemory(extract=True)) as memory:
        answers = [
            "Hi. <working_memory># Ann</working_memory>",
            "Yes.",
            "<working_memory># Bob",
            "<working_memory>" + "x" * 40_000 + "</working_memory>",
        ]
        agent, model = agent_of(memory, *answers)
        for number in range(4):
            result = await agent.send(f"q{number}", thread_id="t", **ANN)
            assert result.output == answers[number]
            assert (await memory.working(resource_id="ann")).text == "# Ann"
        talk = [text for n, answer in enumerate(answers) for text in (f"q{n}", answer)]
        assert await stored(memory) == ["memo 0", *talk]
        assert all(request.tools == () for request in model.requests)
        assert (
            "between <working_memory> and </working_memory>" in model.requests[0].messages[0].text
        )


async def test_extracted_by_a_schema() -> None:
    memory = Memory(working=WorkingMemory(schema={"type": "object"}, extract=True))
    agent, _ = agent_of(
        memory,
        '<working_memory>{"a": 1}</working_memory>',
        '<working_memory>{"b": 2, "a": null}</working_memory>',
        "<working_memory>{</working_memory>",
    )
    for prompt in "abc":
        await agent.send(prompt, thread_id="t", **ANN)
    assert (await memory.working(resource_id="ann")).text == '{"b":2}'
    assert (await stored(memory)).count("memo 0") == 1
