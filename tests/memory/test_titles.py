"""Titles of threads that a model makes: rule R-20."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, tool
from dragoman.errors import OverloadedError, SettingsError
from dragoman.event import RunFinished
from dragoman.memory import Memory, Titles, WorkingMemory, titles
from dragoman.memory.titles import clean_title
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Writer:
    """A model that answers "Answer." and gives titles."""

    def __init__(self, *made: Any) -> None:
        self.made = list(made)
        self.asked: list[ModelRequest] = []
        self.model = ScriptedModel(self.answer)

    async def answer(self, request: ModelRequest) -> Any:
        if "title" not in request.messages[0].text.lower():
            return "Answer."
        self.asked.append(request)
        title = self.made.pop(0)
        return await title() if callable(title) else title


async def title_of(memory: Memory, thread_id: str = "t") -> str:
    thread = await memory.thread(thread_id)
    assert thread is not None
    return thread.title


async def test_r20_a_title_is_made_of_the_first_exchange(url: str) -> None:
    """R-20: once, where there is none; `send` returns when it is there."""
    writer = Writer("Rivers of Norway")
    async with Memory(url, titles=True) as memory, Agent(writer.model, memory=memory) as agent:
        await agent.send("Name a river.", thread_id="t", resource_id="ann")
        assert await title_of(memory) == "Rivers of Norway"
        await agent.send("Another?", thread_id="t", resource_id="ann")
        (request,) = writer.asked
        assert request.messages[1].text == "user: Name a river.\n\nmodel: Answer."
        assert request.tools == ()


async def test_r20_by_default_there_is_none() -> None:
    writer = Writer()
    memory = Memory()
    await Agent(writer.model, memory=memory).send("Hi.", thread_id="t")
    assert (await title_of(memory), writer.asked) == ("", [])


async def test_r20_another_model_and_other_instructions() -> None:
    other = ScriptedModel(["Fleuves"])
    memory = Memory(titles=Titles(model=other, instructions="Un titre, s'il vous plaît."))
    await Agent(Writer().model, memory=memory).send("Hi.", thread_id="t")
    assert await title_of(memory) == "Fleuves"
    assert other.requests[0].messages[0].text == "Un titre, s'il vous plaît."


@pytest.mark.parametrize("names", [{"threads": {"generateTitle": True}}, {"generateTitle": True}])
def test_r20_the_option_of_threads_has_been_moved(names: Any) -> None:
    with pytest.raises(SettingsError, match=r"threads\.generateTitle has been moved"):
        Memory(**names)
    with pytest.raises(TypeError, match="takes no argument 'title'"):
        Memory(title=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="titles must be bool or Titles"):
        Memory(titles="yes")  # type: ignore[arg-type]


async def test_r20_the_title_of_a_person_wins(url: str) -> None:
    """Whether it was there before, or was written while the model made one."""
    async with Memory(url, titles=True) as memory:

        async def meanwhile() -> str:
            await memory.update_thread("t", title="Mine")
            return "Its own"

        writer = Writer(meanwhile)
        agent = Agent(writer.model, memory=memory)
        await agent.send("Hi.", thread_id="t")
        assert await title_of(memory) == "Mine"
        await memory.save_thread("u", title="Before")
        await agent.send("Hi.", thread_id="u")
        assert await title_of(memory, "u") == "Before"
        assert len(writer.asked) == 1


@pytest.mark.parametrize("failing", ["error", "no text", "hangs", "deleted", "no such model"])
async def test_r20_a_title_that_fails_fails_no_run(
    failing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next run of the thread makes it."""
    monkeypatch.setattr(titles, "_SECONDS", 0.05)
    memory = Memory(titles=Titles(model="nobody:x") if failing == "no such model" else True)

    async def hang() -> str:
        await asyncio.sleep(60)
        return "Late"

    async def delete() -> str:
        await memory.delete_thread("t")
        return "Gone"

    answers = {
        "error": OverloadedError("busy"),
        "no text": " \n ",
        "hangs": hang,
        "deleted": delete,
    }
    writer = Writer(answers.get(failing), "Second")
    agent = Agent(writer.model, memory=memory)
    result = await agent.send("Hi.", thread_id="t")
    assert result.output == "Answer."
    if failing != "no text":
        assert "no title was made for the thread t" in caplog.text
    if failing == "no such model":
        return
    await agent.send("Hi.", thread_id="t")
    assert await title_of(memory) == "Second"


async def test_the_stream_of_an_answer_does_not_wait_for_the_title() -> None:
    """The title is made beside it; closing the agent or the memory waits for it."""
    go_on = asyncio.Event()

    async def wait() -> str:
        await go_on.wait()
        return "Made"

    memory = Memory(titles=True)
    agent = Agent(Writer(wait).model, memory=memory)
    async with agent.run("Hi.", thread_id="t") as run:
        events = [event async for event in run]
    assert isinstance(events[-1], RunFinished)
    assert await title_of(memory) == ""
    closing = asyncio.create_task(agent.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    go_on.set()
    await closing
    assert await title_of(memory) == "Made"


async def test_a_send_that_is_cancelled_leaves_its_title_to_the_memory() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        asked.set()
        await go_on.wait()
        return "Made"

    memory = Memory(titles=True)
    agent = Agent(Writer(wait).model, memory=memory)
    sending = asyncio.create_task(agent.send("Hi.", thread_id="t"))
    await asked.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    go_on.set()
    await memory.close()
    assert await title_of(memory) == "Made"
    assert not [task for task in asyncio.all_tasks() if "title" in task.get_name()]


def test_a_synchronous_send_has_its_title(tmp_path: Any) -> None:
    memory = Memory(f"sqlite:///{tmp_path}/chats.db", titles=True)
    with Agent(Writer("Made", "Too").model, memory=memory) as agent:
        agent.send_sync("Hi.", thread_id="t")
        for _ in agent.send_stream_sync("Hi.", thread_id="u"):
            pass
    names = asyncio.run(_titles(memory))
    assert names == {"t": "Made", "u": "Too"}


async def _titles(memory: Memory) -> dict[str, str]:
    async with memory:
        return {thread.id: thread.title for thread in (await memory.threads()).items}


async def test_memos_and_calls_are_no_part_of_the_first_exchange() -> None:
    calls = [ToolCallPart("c", "updateWorkingMemory", {"memory": "# A"})]
    model = ScriptedModel(
        [Message.model(*calls), "Hello <working_memory>x</working_memory>", "Greeting"]
    )
    memory = Memory(titles=True, working=WorkingMemory())
    await Agent(model, memory=memory).send("Hi.", thread_id="t", resource_id="ann")
    assert model.requests[-1].messages[1].text == "user: Hi.\n\nmodel: Hello "
    assert await title_of(memory) == "Greeting"


async def test_a_run_that_waits_has_no_title_yet() -> None:
    @tool(requires_approval=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    model = ScriptedModel([Message.model(ToolCallPart("p", "pay", {})), "Paid.", "Payment"])
    memory = Memory(titles=True)
    agent = Agent(model, memory=memory, tools=[pay])
    waiting = await agent.send("Pay.", thread_id="t")
    assert await title_of(memory) == ""
    await agent.send(None, thread_id="t", resume=[waiting.pending[0].approve()])
    assert await title_of(memory) == "Payment"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"A title"', "A title"),
        ("\n## **A title**\nBecause.", "A title"),
        ("“Fleuves”", "Fleuves"),
        ("a\x00b\u202ec", "a b c"),
        ("", None),
        (' "" \n\t', None),
        ("word " * 100, "word " * 14 + "word…"),
        ("x" * 1000, "x" * 79 + "…"),
    ],
)
def test_a_title_is_one_short_line(text: str, title: str | None) -> None:
    assert clean_title(text) == title
