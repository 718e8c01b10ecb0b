"""A chat keeps what was shown, however a send ended, and goes on from there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from dragoman import (
    Agent,
    Chat,
    Message,
    Origin,
    ToolContext,
    ToolExecutor,
    dump_messages,
    load_messages,
    tool,
    wires,
)
from dragoman.errors import ProviderError, ResumeError
from dragoman.event import Event, MessageStarted, OpenText, PartDelta, PartStarted, RunError
from dragoman.message import FinishReason, Role, ThinkingPart, ToolCallPart
from dragoman.request import ModelRequest
from support.model import PROVIDER, agent, call, says

pytestmark = pytest.mark.anyio

HALF: list[Event] = [
    MessageStarted("m", Role.MODEL),
    PartStarted("m", 0, OpenText()),
    PartDelta("m", 0, "half"),
]


def texts(chat: Chat) -> list[str]:
    return [message.text for message in chat.history]


async def test_breaking_out_of_a_stream_keeps_prompt_and_partial_answer() -> None:
    a, script = agent(says("a long answer"), says("two"))
    chat = Chat(a)
    async for chunk in chat.send_stream("1"):
        if chunk.output == "on":
            break
        if chunk.output == "a l":
            assert texts(chat) == ["1", "a l"]
    assert chat.history[1].text.startswith("a l")
    await chat.send("2")
    assert [message.text for message in script.requests[1].messages] == [*texts(chat)[:2], "2"]
    assert [message.role for message in chat.history] == [
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
    ]


async def test_breaking_out_at_the_first_piece_goes_on_at_once() -> None:
    a, script = agent(says("a long answer"), says("two"))
    chat = Chat(a)
    async for chunk in chat.send_stream("1"):
        if chunk.output:
            break
    await chat.send("2")
    assert [message.text for message in script.requests[1].messages] == ["1", "a l", "2"]
    await anyio.sleep(0.01)
    assert texts(chat) == ["1", "a l", "2", "two"]
    assert chat.history[1].finish_reason is FinishReason.cancelled
    assert script.closed == 2


async def test_a_send_that_is_cancelled_keeps_what_had_come() -> None:
    class Hanging:
        async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
            for event in HALF:
                yield event
            await anyio.sleep_forever()

    chat = Chat(Agent(PROVIDER, middleware=[Hanging()]))
    with anyio.move_on_after(0.02):
        await chat.send("1")
    assert texts(chat) == ["1", "half"]


async def test_errors_keep_what_had_come_also_rounds_of_tools() -> None:
    @tool
    def t() -> int:
        return 1

    a, script = agent(
        says("A", call("t")), [*HALF, RunError(ProviderError("gone"))], says("well"), tools=[t]
    )
    chat = Chat(a)
    with pytest.raises(ProviderError):
        await chat.send("1")
    assert texts(chat) == ["1", "A", "", "half"]
    await chat.send("2")
    assert [message.text for message in script.requests[2].messages] == ["1", "A", "", "half", "2"]


async def test_a_prompt_that_was_never_answered_is_kept_too() -> None:
    a, _ = agent(ProviderError("down"), says("well"))
    chat = Chat(a)
    with pytest.raises(ProviderError):
        async for _ in chat.send_stream("1"):
            pass
    assert texts(chat) == ["1"]
    await chat.send("2")
    assert texts(chat) == ["1", "2", "well"]


def test_a_stream_that_is_left_from_outside_an_event_loop() -> None:
    a, _ = agent(says("a long answer"), says("two"))
    chat = Chat(a)
    for chunk in chat.send_stream_sync("1"):
        if chunk.output:
            break
    assert texts(chat) == ["1", "a l"]
    assert chat.send_sync("2").output == "two"
    assert texts(chat) == ["1", "a l", "2", "two"]
    a.close_sync()


async def test_two_sends_at_once_do_not_lose_each_others_messages() -> None:
    a, _ = agent(says("a long answer"), says("two"))
    chat = Chat(a)
    async with anyio.create_task_group() as group:
        group.start_soon(chat.send, "1")
        group.start_soon(chat.send, "2")
    assert sorted(texts(chat)) == ["1", "2", "a long answer", "two"]


PARTIALS = {
    "text": Message.model("half"),
    "thinking alone": Message.model(ThinkingPart("hm")),
    "a call that is cut": Message.model("so", ToolCallPart("c1", "t", raw='{"x"', state="cut")),
    "nothing": None,
}


@pytest.mark.parametrize("partial", PARTIALS)
@pytest.mark.parametrize(
    "name", [name for name in wires.names("model") if name != "ollama_generate"]
)
def test_what_a_broken_off_answer_leaves_can_be_sent_on_every_wire(name: str, partial: str) -> None:
    from dragoman import repair

    left = PARTIALS[partial]
    origin = Origin("p", "http://x", "m")
    history = [
        Message.user("1"),
        *([left.replace(origin=origin, finish_reason=FinishReason.cancelled)] if left else []),
    ]
    wire = wires.get(name)
    payload = wire.dump_messages(repair([*history, Message.user("2")]), target=origin)
    loaded = wire.load_messages(payload)
    assert loaded[-1].text.endswith("2")
    assert all(message.content or message.role is Role.MODEL for message in loaded)


async def test_two_streams_at_once_stand_one_after_the_other_at_every_moment() -> None:
    """And a third that begins when the first is done, also where the history was replaced in
    between."""
    a, _ = agent(says("aaabbb"), says("cccddd"), says("eee"), says("fff"))
    chat = Chat(a, [Message.user("0")])
    one, two = chat.send_stream("1"), chat.send_stream("2")
    seen: list[list[str]] = []
    for stream in (one, one, two, one, two, two, two, one):
        await anext(stream)
        seen.append(texts(chat))
    assert seen == [
        *[["0", "1"], ["0", "1", "aaa"], ["0", "1", "aaa", "2"], ["0", "1", "aaabbb", "2"]],
        *[["0", "1", "aaabbb", "2", "ccc"], ["0", "1", "aaabbb", "2", "cccddd"]],
        *[["0", "1", "aaabbb", "2", "cccddd"], ["0", "1", "aaabbb", "2", "cccddd"]],
    ]
    assert [chunk async for chunk in one] == []
    await chat.send("3")
    assert [chunk async for chunk in two] == []
    assert texts(chat) == ["0", "1", "aaabbb", "2", "cccddd", "3", "eee"]
    chat.history = [Message.user("new")]
    await chat.send("4")
    assert texts(chat) == ["new", "4", "fff"]
    assert chat.display_name == a.display_name == "Scripted"


async def test_a_history_that_is_given_is_copied_and_how_cannot_replace_it() -> None:
    given = [Message.user("0")]
    a, script = agent(says("one"))
    chat = Chat(a, given)
    await chat.send("1", history=[Message.user("other")])
    assert (len(given), texts(chat)) == (1, ["0", "1", "one"])
    assert [message.text for message in script.requests[0].messages] == ["0", "1"]
    with pytest.raises(TypeError, match=r"history\[0\] must be Message, not str"):
        chat.history = ["x"]


async def test_sends_side_by_side_stand_in_the_order_in_which_they_began() -> None:
    a, _ = agent(says("a long answer"), says("two more"))
    chat = Chat(a)
    one, two = chat.send_stream("1"), chat.send_stream("2")
    await anext(one)
    await anext(two)
    assert texts(chat) == ["1", "2"]
    async for _ in one:
        pass
    assert texts(chat) == ["1", "a long answer", "2"]
    async for _ in two:
        pass
    assert texts(chat) == ["1", "a long answer", "2", "two more"]


@tool(requires_approval=True)
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is deleted"


async def test_a_chat_says_what_it_waits_for_without_a_request_and_goes_on_with_answers() -> None:
    a, script = agent(says("A", call("delete", path="x")), says("Done."), tools=[delete])
    chat = Chat(a)
    assert chat.pending == ()
    first = await chat.send("Delete x.")
    assert chat.pending == first.pending
    assert [interrupt.reason for interrupt in chat.pending] == ["approval"]
    assert len(script.requests) == 1
    second = await chat.send(None, resume=[chat.pending[0].approve()])
    assert (second.output, chat.pending, len(script.requests)) == ("Done.", (), 2)
    assert texts(chat) == ["Delete x.", "A", "", "Done."]


async def test_marks_stay_in_the_history_and_go_on_in_another_process() -> None:
    @tool
    def book(context: ToolContext[Any], city: str) -> str:
        """Books a room."""
        nights = context.ask(f"How many nights in {city}?", {"type": "integer"})
        return f"{nights} nights in {city}"

    a, _ = agent(says(call("book", city="Oslo")), tools=[book])
    chat = Chat(a)
    first = await chat.send("Book a room.")
    b, script = agent(says("Booked."), tools=[book])
    later = Chat(b, load_messages(dump_messages(chat.history)))
    (question,) = later.pending
    assert (question.message, later.pending) == ("How many nights in Oslo?", first.pending)
    with pytest.raises(ResumeError, match="not what was asked for"):
        await later.send(None, resume=[question.answer("many")])
    assert later.pending == first.pending
    await later.send(None, resume=[question.answer(3)])
    assert script.requests[0].messages[-1].tool_results[0].result == "3 nights in Oslo"
    assert later.pending == ()


async def test_nothing_is_pending_once_something_else_was_said() -> None:
    a, _ = agent(says(call("delete", path="x")), ProviderError("down"), tools=[delete])
    chat = Chat(a)
    await chat.send("Delete x.")
    with pytest.raises(ProviderError):
        await chat.send("Never mind.")
    assert chat.pending == ()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_send_that_is_cancelled_while_it_goes_on_keeps_what_was_run(stream: bool) -> None:
    """The call whose tool had not ended waits still; the one that had its result is not run
    again."""
    runs: list[str] = []
    began = anyio.Event()

    @tool(requires_approval=True)
    async def hang() -> str:
        """Hangs, the first time."""
        runs.append("hang")
        if runs.count("hang") == 1:
            began.set()
            await anyio.sleep_forever()
        return "well"

    @tool(requires_approval=True)
    def quick() -> str:
        """Is done at once."""
        runs.append("quick")
        return "done"

    a, script = agent(
        says(call("quick", id="a"), call("hang", id="b")),
        says("Well."),
        tools=[quick, hang],
        executor=ToolExecutor(),
    )
    chat = Chat(a)
    first = await chat.send("Go.")

    async def go_on() -> None:
        answers = [interrupt.approve() for interrupt in first.pending]
        if not stream:
            await chat.send(None, resume=answers)
            return
        async with aclosing(chat.send_stream(None, resume=answers)) as chunks:
            async for _ in chunks:
                pass

    async with anyio.create_task_group() as group:
        group.start_soon(go_on)
        await began.wait()
        group.cancel_scope.cancel()
    assert [result.id for message in chat.history for result in message.tool_results] == ["a"]
    (left,) = chat.pending
    assert left.id == "b"
    assert (await chat.send(None, resume=[left.approve()])).output == "Well."
    assert runs == ["quick", "hang", "hang"]
    results = [
        result for message in script.requests[-1].messages for result in message.tool_results
    ]
    assert [(result.id, result.result) for result in results] == [("a", "done"), ("b", "well")]


async def test_a_send_that_fails_after_it_went_on_keeps_what_was_run() -> None:
    a, _ = agent(
        says(call("delete", path="x")), ProviderError("down"), says("Done."), tools=[delete]
    )
    chat = Chat(a)
    await chat.send("Delete x.")
    with pytest.raises(ProviderError):
        await chat.send("And hurry.", resume=[chat.pending[0].approve()])
    assert chat.history[2].tool_results[0].result == "x is deleted"
    assert (texts(chat)[3], chat.pending) == ("And hurry.", ())
    assert (await chat.send(None)).output == "Done."


async def test_a_chat_is_one_thread() -> None:
    seen: list[tuple[str, str | None]] = []

    @tool
    def who(context: ToolContext[Any]) -> str:
        """Notes whose run it is."""
        seen.append((context.thread_id, context.resource_id))
        return ""

    answers = [says(call("who")), says("A."), says(call("who")), says("B.")]
    for given in (None, "t"):
        a, _ = agent(*answers, tools=[who])
        chat = Chat(a, thread_id=given, resource_id="ada")
        await chat.send("1")
        await chat.send("2")
        assert seen == [(chat.thread_id, "ada")] * 2
        seen.clear()
    assert chat.thread_id == "t"
    assert Chat(a).thread_id != Chat(a).thread_id
    with pytest.raises(TypeError, match="thread_id must be str or None, not int"):
        Chat(a, thread_id=1)  # pyright: ignore[reportArgumentType]


async def test_what_a_send_says_for_itself_goes_before_the_ids_of_the_chat() -> None:
    seen: list[tuple[str, str | None]] = []

    @tool
    def who(context: ToolContext[Any]) -> str:
        """Notes whose run it is."""
        seen.append((context.thread_id, context.resource_id))
        return ""

    a, _ = agent(says(call("who")), says("A."), tools=[who])
    await Chat(a, thread_id="t", resource_id="ada").send("1", thread_id="u", resource_id=None)
    assert seen == [("u", "ada")]


@pytest.mark.parametrize(("given", "refused"), [(None, False), ("t", True)])
async def test_an_id_that_was_made_up_is_no_part_of_a_signature(
    given: str | None, refused: bool
) -> None:
    """Else nobody could go on in another process with the history alone."""
    key = "a key of thirty-two bytes or more"
    a, _ = agent(says(call("delete", path="x")), says("Done."), tools=[delete], approval_key=key)
    chat = Chat(a, thread_id=given)
    (interrupt,) = (await chat.send("Delete x.")).pending
    assert chat.pending == (interrupt,)
    other = Chat(a, chat.history, thread_id=given and "another")
    if refused:
        with pytest.raises(ResumeError, match="another conversation"):
            await other.send(None, resume=[interrupt.approve()])
    else:
        assert (await other.send(None, resume=[interrupt.approve()])).output == "Done."
