"""A run that waits, and goes on with nothing but its history: over the public names, on four wires,
streamed and whole."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import permutations
from typing import Any

import msgspec
import pytest

from dragoman import (
    Agent,
    Chat,
    Interrupt,
    Message,
    Resume,
    RunRequest,
    Tool,
    ToolResultPart,
    dump_messages,
    fold,
    load_messages,
    repair,
    tool,
)
from dragoman.errors import InvalidRequestError, ResumeError
from dragoman.message import FinishReason, Role
from dragoman.result import ChatResult
from dragoman.testing import ScriptedModel
from support.model import agent, call, says
from support.net import NAMES as WIRES

pytestmark = pytest.mark.anyio


def again(result: ChatResult[Any], *before: Message) -> list[Message]:
    """The history as another process has it."""
    return load_messages(dump_messages([*before, *result.messages]))


def moved(*interrupts: Interrupt) -> list[Interrupt]:
    """Interrupts as a client has them that got JSON."""
    return [msgspec.json.decode(msgspec.json.encode(one), type=Interrupt) for one in interrupts]


@tool(requires_approval=True)
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is deleted"


@tool(requires_approval=True, editable=True)
def move(source: str, target: str = "trash") -> str:
    """Moves a file."""
    return f"{source} is in {target}"


@tool
def look(path: str) -> str:
    """Looks."""
    return f"saw {path}"


ASK = Tool("ask", "Asks the user")
CALLS = says(
    "Well.",
    call("look", id="a", path="x"),
    call("delete", id="b", path="y"),
    call("ask", id="c"),
    call("move", id="d", source="z"),
)
TOOLS = [look, delete, ASK, move]


def served(wire: str, *answers: Message, **how: Any) -> tuple[Agent[Any], ScriptedModel]:
    """An agent whose provider is a script that speaks the wire."""
    model = ScriptedModel.like(f"{WIRES[wire]}:model", answers)
    return Agent(model, **how), model


async def test_an_approved_call_is_run_in_another_process_and_the_model_goes_on() -> None:
    a, _ = agent(says("A", call("delete", path="x")), tools=[delete])
    first = await a.send("Delete x.")
    assert [(one.reason, one.id, one.call) for one in first.pending] == [
        ("approval", "c1", call("delete", path="x"))
    ]
    (interrupt,) = moved(*first.pending)
    b, script = agent(says("Done."), tools=[delete])
    second = await b.send(None, history=again(first), resume=[interrupt.approve()])
    assert second.output == "Done."
    assert not second.pending
    assert [message.role for message in second.messages] == [Role.USER, Role.MODEL]
    assert script.requests[0].messages[-1].tool_results == (
        ToolResultPart("c1", "delete", "x is deleted"),
    )


async def test_a_denial_is_a_marked_error_that_the_model_sees() -> None:
    a, script = agent(says(call("delete", path="x")), says("Fine."), tools=[delete])
    first = await a.send("Delete x.")
    second = await a.send(None, history=again(first), resume=[first.pending[0].deny("it is mine")])
    result = ToolResultPart(
        "c1", "delete", {"error": "denied: it is mine"}, is_error=True, denied=True
    )
    assert second.messages[0].tool_results == (result,)
    assert script.requests[1].messages[-1].tool_results == (result,)
    assert load_messages(dump_messages(second.messages)) == list(second.messages)


async def test_what_is_cancelled_is_told_as_interrupted() -> None:
    a, script = agent(says(call("ask")), says("Fine."), tools=[ASK])
    first = await a.send("hi")
    await a.send(None, history=first.messages, resume=[first.pending[0].cancel()])
    assert script.requests[1].messages[-1].tool_results[0].result == {
        "error": "interrupted: the call was not answered"
    }


async def test_without_answers_what_is_pending_comes_back_and_no_model_is_asked() -> None:
    a, script = agent(CALLS, tools=TOOLS)
    first = await a.send("hi")
    assert [one.id for one in first.pending] == ["b", "c", "d"]
    second = await a.send(None, history=again(first))
    assert second.pending == first.pending
    assert (second.messages, second.output, second.finish_reason) == (
        (),
        "",
        FinishReason.tool_calls,
    )
    assert len(script.requests) == 1


async def test_answers_for_some_leave_the_others_and_no_model_is_asked() -> None:
    a, script = agent(CALLS, says("Done."), tools=TOOLS)
    first = await a.send("hi")
    b, c, d = first.pending
    second = await a.send(
        None, history=first.messages, resume=[c.answer({"colour": "blue"}), d.approve()]
    )
    assert second.pending == (b,)
    third = await a.send(None, history=[*first.messages, *second.messages], resume=[b.approve()])
    assert third.output == "Done."
    assert len(script.requests) == 2


async def test_results_alone_are_answers_and_leave_the_others_pending() -> None:
    a, script = agent(CALLS, says("Done."), tools=TOOLS)
    first = await a.send("hi")
    second = await a.send([ToolResultPart("c", "ask", "blue")], history=first.messages)
    assert [one.id for one in second.pending] == ["b", "d"]
    assert len(script.requests) == 1
    history = [*first.messages, *second.messages]
    third = await a.send(None, history=history, resume=[one.deny() for one in second.pending])
    assert third.output == "Done."


async def test_a_prompt_without_answers_goes_on_and_what_waited_is_told_as_interrupted() -> None:
    a, script = agent(says(call("delete", path="x")), says("Well."), tools=[delete])
    first = await a.send("Delete x.")
    second = await a.send("Never mind.", history=first.messages)
    assert second.output == "Well."
    assert script.requests[1].messages[-2].tool_results[0].is_error
    with pytest.raises(ResumeError, match="'c1' is answered already"):
        await a.send(
            None, history=[*first.messages, *second.messages], resume=[first.pending[0].approve()]
        )


async def test_answers_go_before_a_prompt_and_the_rest_is_told_as_interrupted() -> None:
    a, script = agent(CALLS, says("Done."), tools=TOOLS)
    first = await a.send("hi")
    second = await a.send("And hurry.", history=first.messages, resume=[first.pending[0].approve()])
    assert second.output == "Done."
    *_, results, prompt = repair(script.requests[1].messages)
    assert [(part.id, part.is_error) for part in results.tool_results] == [
        ("a", False),
        ("b", False),
        ("c", True),
        ("d", True),
    ]
    assert prompt.text == "And hurry."


async def test_edited_arguments_leave_the_call_and_the_result_tells_what_was_run() -> None:
    a, script = agent(says(call("move", source="x")), says("Done."), tools=[move])
    first = await a.send("Move x.")
    assert first.pending[0].editable
    second = await a.send(
        None,
        history=first.messages,
        resume=[first.pending[0].approve({"source": "x", "target": "attic"})],
    )
    sent = script.requests[1].messages
    assert sent[-2].tool_calls == (call("move", source="x"),)
    result = second.messages[0].tool_results[0].result
    assert (result["arguments"], result["result"]) == (
        {"source": "x", "target": "attic"},
        "x is in attic",
    )


REFUSED: list[tuple[str, Any, str]] = [
    (
        "unknown",
        lambda p: [Resume("nobody", payload={"approved": True})],
        "nothing waits under the id 'nobody'",
    ),
    ("twice", lambda p: [p["b"].approve(), p["b"].deny()], "'b' is answered twice"),
    ("not editable", lambda p: [p["b"].approve({"path": "other"})], "delete does not allow"),
    (
        "edited badly",
        lambda p: [p["d"].approve({"source": 1})],
        "do not fit: invalid arguments: source",
    ),
    (
        "no object",
        lambda p: [Resume("d", payload={"approved": True, "arguments": [1]})],
        "no JSON object",
    ),
    ("no verdict", lambda p: [Resume("b", payload={"approved": "yes"})], "waits for an approval"),
    ("a value", lambda p: [p["b"].answer(True)], "waits for an approval"),
    ("an approval", lambda p: [p["c"].approve()], "waits for a value"),
    ("no payload", lambda p: [Resume("b")], "no payload"),
    ("no JSON", lambda p: [p["c"].answer(object())], "no JSON value"),
    (
        "another message",
        lambda p: [msgspec.structs.replace(p["b"].approve(), metadata={"message_id": "m9"})],
        "of another",
    ),
]


@pytest.mark.parametrize(
    ("answers", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
async def test_an_answer_that_does_not_fit_is_refused_and_nothing_is_run(
    answers: Any, words: str
) -> None:
    ran: list[str] = []

    def noted(name: str) -> Tool:
        whole = {each.name: each for each in TOOLS}[name]
        handler = whole.handler
        assert handler is not None

        def run(**arguments: Any) -> Any:
            ran.append(name)
            return handler(**arguments)

        return msgspec.structs.replace(whole, handler=run)

    a, script = agent(CALLS, tools=[look, noted("delete"), ASK, noted("move")])
    first = await a.send("hi")
    pending = {one.id: one for one in first.pending}
    good = (
        [pending["d"].approve()]
        if words.find("do not fit") < 0 and "no JSON object" not in words
        else []
    )
    with pytest.raises(ResumeError, match=words) as caught:
        await a.send(None, history=first.messages, resume=[*good, *answers(pending)])
    assert isinstance(caught.value, InvalidRequestError)
    assert not ran
    assert len(script.requests) == 1


async def test_a_tool_that_is_gone_cannot_be_approved_but_denied() -> None:
    a, _ = agent(says(call("delete", path="x")), tools=[delete])
    first = await a.send("hi")
    history = again(first)
    mark = first.pending[0]
    b, script = agent(says("Fine."))
    with pytest.raises(ResumeError, match="'c1' waits for a value"):
        await b.send(None, history=history, resume=[mark.approve()])
    assert (await b.send(None, history=history, resume=[mark.deny()])).output == "Fine."
    assert script.requests[0].messages[-1].tool_results[0].denied


async def test_a_run_request_says_the_same() -> None:
    a, _ = agent(says(call("delete", path="x")), says("Done."), tools=[delete])
    first = await a.send("hi")
    result = await a.send(RunRequest(first.messages, resume=(first.pending[0].approve(),)))
    assert result.output == "Done."
    assert result.messages[0].tool_results[0].result == "x is deleted"


def splits(count: int) -> list[list[tuple[int, ...]]]:
    """Every way to give so many answers in one or several sends, in any order."""
    found: list[list[tuple[int, ...]]] = []
    for order in permutations(range(count)):
        for cuts in range(2 ** (count - 1)):
            groups: list[tuple[int, ...]] = [(order[0],)]
            for place, number in enumerate(order[1:]):
                if cuts >> place & 1:
                    groups.append((number,))
                else:
                    groups[-1] = (*groups[-1], number)
            if all(list(group) == sorted(group) for group in groups):
                found.append(groups)
    return found


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("twins", [False, True], ids=["ids", "one id"])
async def test_any_split_of_the_answers_sends_what_answering_at_once_sends(
    wire: str, twins: bool
) -> None:
    one = (
        CALLS
        if not twins
        else says(*[msgspec.structs.replace(each, id="same") for each in CALLS.tool_calls])
    )

    async def bodies(groups: list[tuple[int, ...]]) -> list[Any]:
        a, model = served(
            wire,
            one,
            says("Done."),
            says("Yes."),
            tools=TOOLS,
            id_factory=iter(map(str, range(99))).__next__,
        )
        result = await a.send("hi")
        history = again(result)
        b, c, d = result.pending
        answers = [
            b.approve(),
            c.answer({"colour": "blue"}),
            d.approve({"source": "z", "target": "attic"}),
        ]
        for group in groups:
            result = await a.send(
                None, history=history, resume=[answers[number] for number in group]
            )
            history = again(result, *history)
        assert result.output == "Done."
        await a.send("More?", history=history)
        return model.bodies

    at_once = await bodies([(0, 1, 2)])
    assert len(at_once) == 3
    for groups in splits(3):
        assert await bodies(groups) == at_once, groups


def test_splits_are_all_of_them() -> None:
    assert len(splits(3)) == 13  # the ordered set partitions of three
    assert json.dumps(splits(2)) == "[[[0, 1]], [[0], [1]], [[1], [0]]]"


SECOND_PROCESS = """
import asyncio, sys
import msgspec
from dragoman import Agent, Resume, load_messages, tool
from dragoman.testing import ScriptedModel

@tool(requires_approval=True)
def delete(path: str) -> str:
    'Deletes a file.'
    return f"{path} is deleted"

async def main():
    name, history, resume = sys.argv[1:]
    agent = Agent(model := ScriptedModel.like(name, "Done."), tools=[delete])
    await agent.send(None, history=load_messages(history), resume=msgspec.json.decode(resume, type=list[Resume]))
    sys.stdout.buffer.write(msgspec.json.encode(model.bodies[0]))

asyncio.run(main())
"""


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.slow
async def test_another_process_goes_on_with_the_stored_history_alone(wire: str) -> None:
    one = says("Well.", call("delete", path="x"))
    a, model = served(wire, one, says("Done."), tools=[delete])
    first = await a.send("Delete x.")
    history = dump_messages(first.messages)
    resume = msgspec.json.encode([first.pending[0].approve()])
    await a.send(None, history=first.messages, resume=[first.pending[0].approve()])
    there = subprocess.run(  # noqa: ASYNC221
        [
            sys.executable,
            "-c",
            SECOND_PROCESS,
            f"{WIRES[wire]}:model",
            history.decode(),
            resume.decode(),
        ],
        capture_output=True,
        check=True,
    ).stdout
    assert there == msgspec.json.encode(model.bodies[1])


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["send", "send_stream", "send_events", "chat"])
async def test_a_run_goes_on_the_same_however_it_is_read(wire: str, way: str) -> None:
    a, model = served(wire, CALLS, says("Done."), tools=TOOLS)
    chat = Chat(a)
    first = await chat.send("hi") if way == "chat" else await a.send("hi")
    b, c, d = first.pending
    how: dict[str, Any] = {
        "resume": [b.deny("no"), c.answer(["blue"]), d.approve()],
        **({} if way == "chat" else {"history": again(first)}),
    }
    if way == "send_stream":
        chunks = [chunk async for chunk in a.send_stream(None, **how)]
        messages = [message for chunk in chunks for message in chunk.messages]
        assert "".join(chunk.output for chunk in chunks) == "Done."
    elif way == "send_events":
        messages = fold([event async for event in a.send_events(None, **how)])
    else:
        messages = list((await (chat if way == "chat" else a).send(None, **how)).messages)
    results = messages[0].tool_results
    assert [(part.id, part.result, part.denied) for part in results] == [
        (b.call.id if b.call else "", {"error": "denied: no"}, True),
        (c.call.id if c.call else "", ["blue"], False),
        (d.call.id if d.call else "", "z is in trash", False),
    ]
    assert messages[1].text == "Done."
    sent = model.requests[1].messages
    assert [message.role for message in sent] == [Role.USER, Role.MODEL, Role.USER]
    assert len(sent[-1].tool_results) == 4
    if way == "chat":
        assert [message.role for message in chat.history] == [
            Role.USER,
            Role.MODEL,
            Role.USER,
            Role.USER,
            Role.MODEL,
        ]


async def test_where_nothing_waits_and_nothing_is_new_there_is_nothing_to_send() -> None:
    a, _ = agent(says("ok"), tools=[look])
    with pytest.raises(InvalidRequestError, match="nothing to send"):
        await a.send(None, history=[says(call("look", path="x"))])
    with pytest.raises(ResumeError, match="what waits: nothing"):
        await a.send("hi", resume=[Resume("c1", payload={"approved": True})])
    with pytest.raises(TypeError, match="resume"):
        await a.send("hi", resume=[{"interrupt_id": "c1"}])  # pyright: ignore[reportArgumentType]
