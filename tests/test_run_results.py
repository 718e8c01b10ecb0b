"""Whole results and whole streams, one for each kind of run: what `send` gives and what the chunks
of `send_stream` hold."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

import msgspec
import pytest

from dragoman import (
    Agent,
    Capability,
    Message,
    ServerTool,
    Settings,
    Tool,
    ToolCallPart,
    ToolResultPart,
    Usage,
    tool,
)
from dragoman.errors import DragomanError, InvalidRequestError, ProviderError, TypedOutputError
from dragoman.event import MessageStarted, OpenText, PartDelta, PartStarted, RunError
from dragoman.loss import Loss
from dragoman.message import FinishReason, Origin, ProviderPart, Role, TextPart, ThinkingPart
from dragoman.repair import INTERRUPTED
from dragoman.request import ToolSpec
from dragoman.result import ChatResult, sum_usage
from support.model import FORCING, PROVIDER, agent, call, says, waiting, waits_for

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]}
APART = msgspec.structs.replace(
    PROVIDER, capabilities=PROVIDER.capabilities - {Capability.typed_output_with_tools}
)
TYPED = {"output_schema": SCHEMA}
JSON = '{"z":1}'
WRONG = (
    "That is not a valid answer: z: should be integer, got 'x'\nAnswer again, with valid JSON only."
)
USE_TOOL = "Give your answer by calling the tool return_result."
ASKED = Message.user("hi")


@tool
async def t(x: int = 0) -> int:
    """Adds one."""
    return x + 1


def returned(id: str = "r", **arguments: Any) -> ToolCallPart:
    return ToolCallPart(id, "return_result", arguments)


def noted(message: Message, **response: Any) -> Message:
    """A message around which its provider said something."""
    origin = Origin("scripted", served_model="m-1", response_id="r1")
    return message.replace(native={"openai_chat:notes": {"response": response}}, origin=origin)


def tokens(count: int) -> Usage:
    return Usage(input_tokens=0, output_tokens=count, total_tokens=count)


def made(number: int, message: Message) -> Message:
    """A scripted message as the run has it."""
    return message.replace(id=f"m{number}")


def whole(number: int, message: Message, **more: Any) -> ChatResult[str]:
    """The chunk that brings a model's message."""
    return ChatResult(
        "", (made(number, message),), message.finish_reason, message.usage, id=f"m{number}", **more
    )


def mine(number: int, message: Message, **more: Any) -> ChatResult[str]:
    """The chunk that brings a message of the run's own, after a model's."""
    return ChatResult("", (message,), id=f"m{number}", **more)


def out(number: int, text: str) -> ChatResult[str]:
    return ChatResult(text, id=f"m{number}")


def besides(number: int, **metadata: Any) -> ChatResult[str]:
    return ChatResult("", metadata=metadata, id=f"m{number}")


def thought(number: int, text: str) -> ChatResult[str]:
    return ChatResult("", thinking=text, metadata={"thinking": text}, id=f"m{number}")


def back(number: int, text: str) -> ChatResult[str]:
    return ChatResult("", retracted=text, id=f"m{number}")


class Case(NamedTuple):
    """A kind of run."""

    answers: list[Any]
    how: dict[str, Any]
    options: dict[str, Any]
    result: ChatResult[str]
    """Without its messages: those of the chunks."""
    chunks: list[ChatResult[str]]
    """After the one with the prompt."""


def text() -> Case:
    answer = noted(
        says(ThinkingPart("hm"), "A", ThinkingPart("so"), usage=3), systemFingerprint="f"
    )
    notes = {"system_fingerprint": "f", "model": "m-1", "response_id": "r1"}
    return Case(
        [answer],
        {},
        {},
        ChatResult(
            "A", (), FinishReason.stop, tokens(3), "hmso", {**notes, "thinking": "hmso"}, "m1"
        ),
        [thought(1, "hm"), out(1, "A"), thought(1, "so"), besides(1, **notes), whole(1, answer)],
    )


def tools() -> Case:
    first = says(ThinkingPart("a"), "A", call("t", x=1), usage=1)
    second = says(ThinkingPart("b"), "B", "C", reason=FinishReason.length, usage=2)
    return Case(
        [first, second],
        {"tools": [t]},
        {},
        ChatResult("A\nBC", (), FinishReason.length, tokens(3), "ab", {"thinking": "ab"}, "m2"),
        [
            *[
                thought(1, "a"),
                out(1, "A"),
                whole(1, first),
                mine(1, Message.user(ToolResultPart("c1", "t", 2))),
            ],
            *[thought(2, "b"), out(2, "\nB"), out(2, "C"), whole(2, second)],
        ],
    )


def pending() -> Case:
    first = says("A", call("t", x=1), waiting(id="c2"), usage=1)
    waits, why = (waits_for(first, waiting(id="c2")),), FinishReason.tool_calls
    results = Message.user(ToolResultPart("c1", "t", 2))
    return Case(
        [first],
        {"tools": [t, Tool("ask")]},
        {},
        ChatResult("A", (), why, tokens(1), id="m1", pending=waits),
        [out(1, "A"), whole(1, first), mine(1, results, finish_reason=why, pending=waits)],
    )


def pending_alone() -> Case:
    first = says(waiting())
    waits, why = (waits_for(first, waiting()),), FinishReason.tool_calls
    return Case(
        [first],
        {"tools": [t, Tool("ask")]},
        TYPED,
        ChatResult("", (), why, id="m1", pending=waits),
        [whole(1, first), ChatResult("", (), why, id="m1", pending=waits)],
    )


def corrected() -> Case:
    wrong, right = says('{"z":"x"}', usage=1), says(JSON, usage=2)
    return Case(
        [wrong, right],
        {},
        TYPED,
        ChatResult(JSON, (), FinishReason.stop, tokens(3), id="m2"),
        [
            *[out(1, '{"z":"x"}'), whole(1, wrong), mine(1, Message.user(WRONG))],
            *[back(1, '{"z":"x"}'), out(2, JSON), whole(2, right)],
        ],
    )


def by_a_tool() -> Case:
    first, wrong = says("so", call("t"), usage=1), says("x", returned(z="1"), usage=2)
    right = says("y", returned("r2", z=1), call("t", id="c3"), returned("r3", z=2), usage=4)
    error = ToolResultPart(
        "r", "return_result", {"error": "z: should be integer, got '1'"}, is_error=True
    )
    second = ToolResultPart(
        "r3", "return_result", {"error": "only the first answer counts"}, is_error=True
    )
    ok = ToolResultPart("r2", "return_result", "ok")
    metadata = {"toolId": "r2", "toolName": "return_result", "suppressedText": "soxy"}
    return Case(
        [first, wrong, right],
        {"tools": [t], "provider": FORCING},
        TYPED,
        ChatResult(JSON, (), FinishReason.stop, tokens(7), None, metadata, "m3"),
        [
            *[whole(1, first), mine(1, Message.user(ToolResultPart("c1", "t", 1)))],
            *[
                out(2, '{"z":"1"}'),
                whole(2, wrong),
                mine(2, Message.user(error)),
                back(2, '{"z":"1"}'),
            ],
            *[out(3, JSON), whole(3, right), besides(3, **metadata)],
            mine(
                3,
                Message.user(ok, ToolResultPart("c3", "t", 1), second),
                finish_reason=FinishReason.stop,
            ),
        ],
    )


def by_a_tool_without_text() -> Case:
    right = says(returned(z=1))
    metadata = {"toolId": "r", "toolName": "return_result"}
    ok = Message.user(ToolResultPart("r", "return_result", "ok"))
    return Case(
        [right],
        {"provider": FORCING},
        TYPED,
        ChatResult(JSON, (), FinishReason.stop, None, None, metadata, "m1"),
        [
            out(1, JSON),
            whole(1, right),
            besides(1, **metadata),
            mine(1, ok, finish_reason=FinishReason.stop),
        ],
    )


def by_a_tool_that_was_not_used() -> Case:
    wrong, right = says("no"), says(returned(z=1))
    metadata = {"toolId": "r", "toolName": "return_result", "suppressedText": "no"}
    ok = Message.user(ToolResultPart("r", "return_result", "ok"))
    return Case(
        [wrong, right],
        {"provider": FORCING},
        TYPED,
        ChatResult(JSON, (), FinishReason.stop, None, None, metadata, "m2"),
        [
            *[whole(1, wrong), mine(1, Message.user(USE_TOOL))],
            *[
                out(2, JSON),
                whole(2, right),
                besides(2, **metadata),
                mine(2, ok, finish_reason=FinishReason.stop),
            ],
        ],
    )


def by_a_tool_beside_one_that_waits() -> Case:
    right = says("y", returned(z=1), waiting(), usage=4)
    metadata = {"toolId": "r", "toolName": "return_result", "suppressedText": "y"}
    waits, why = (waits_for(right, waiting()),), FinishReason.tool_calls
    ok = Message.user(ToolResultPart("r", "return_result", "ok"))
    return Case(
        [right],
        {"tools": [Tool("ask")], "provider": FORCING},
        TYPED,
        ChatResult(JSON, (), why, tokens(4), None, metadata, "m1", waits),
        [
            *[out(1, JSON), whole(1, right), besides(1, **metadata)],
            mine(1, ok, finish_reason=why, pending=waits),
        ],
    )


def two_phases() -> Case:
    aside, wrong, right = (
        noted(says("aside", usage=1), created=1),
        says('{"z":"x"}'),
        says(JSON, usage=2),
    )
    metadata = {"created": 1, "model": "m-1", "response_id": "r1", "suppressedText": "aside"}
    return Case(
        [aside, wrong, right],
        {"tools": [t], "provider": APART},
        TYPED,
        ChatResult(JSON, (), FinishReason.stop, tokens(3), None, metadata, "m3"),
        [
            ChatResult("", usage=tokens(1), id="m1"),
            *[
                out(2, '{"z":"x"}'),
                besides(2, **metadata),
                whole(2, wrong),
                mine(2, Message.user(WRONG)),
            ],
            *[back(2, '{"z":"x"}'), out(3, JSON), whole(3, right)],
        ],
    )


def by_the_provider() -> Case:
    """D-114, D-128: what it ran itself is told under the tool's name, Google's code execution under
    two."""
    parts = [
        ProviderPart("mark", {"openai_chat": {"a": 1}}),
        *[ToolCallPart("s", "web_search", {"q": "x"}, run_by="provider")],
        *[ToolResultPart("s", "web_search", "f", run_by="provider")],
        *[ToolCallPart("s2", "codeExecution", {"q": "x"}, run_by="provider")],
        *[ToolResultPart("s2", "codeExecution", "f", run_by="provider")],
    ]
    keys = ["mark", "web_search", "web_search", "executable_code", "code_execution_result"]
    told = [{key: [msgspec.to_builtins(part)]} for key, part in zip(keys, parts, strict=True)]
    answer = says(*parts, "A")
    return Case(
        [answer],
        {"tools": [t]},
        {},
        ChatResult(
            "A",
            (),
            FinishReason.stop,
            None,
            None,
            {**told[0], **told[2], **told[3], **told[4]},
            "m1",
        ),
        [*[besides(1, **each) for each in told], out(1, "A"), whole(1, answer)],
    )


def empty_after_tools() -> Case:
    """D-29: asked once more; of the message in which nothing stands the usage alone is told."""
    first, nothing, last = says(call("t")), says(usage=1), says("B")
    return Case(
        [first, nothing, last],
        {"tools": [t]},
        {},
        ChatResult("B", (), FinishReason.stop, tokens(1), id="m3"),
        [
            *[whole(1, first), mine(1, Message.user(ToolResultPart("c1", "t", 1)))],
            *[ChatResult("", usage=tokens(1), id="m1"), out(3, "B"), whole(3, last)],
        ],
    )


CASES = [
    *[
        text,
        tools,
        pending,
        pending_alone,
        corrected,
        by_a_tool,
        by_a_tool_without_text,
        by_a_tool_that_was_not_used,
    ],
    *[by_a_tool_beside_one_that_waits, two_phases, by_the_provider, empty_after_tools],
]


def plain(result: ChatResult[Any]) -> ChatResult[Any]:
    """A result without what no test can know (ids and times of the run's own messages), and without
    calls, whose tokens are its usage."""
    assert sum_usage(result.calls) == result.usage
    own = {message.id: None for message in result.messages if message.role is Role.USER}
    return msgspec.structs.replace(
        result,
        messages=tuple(
            message.replace(id=own.get(message.id, message.id), created_at=None, turn=None)
            for message in result.messages
        ),
        calls=(),
    )


def scripted(case: Case) -> Agent[Any]:
    a, script = agent(*case.answers, **case.how)
    script.piece = 1000
    return a


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
async def test_a_stream_chunk_by_chunk_and_the_whole_result(make: Any) -> None:
    case = make()
    chunks = [plain(chunk) async for chunk in scripted(case).send_stream("hi", **case.options)]
    assert chunks == [ChatResult("", (ASKED,)), *case.chunks]
    messages = tuple(message for chunk in chunks for message in chunk.messages)
    result = plain(await scripted(case).send("hi", **case.options))
    assert result == msgspec.structs.replace(case.result, messages=messages)
    async with scripted(case).run("hi", **case.options) as run:
        assert plain(run.so_far()) == ChatResult("")
        steps = [step async for step in run.steps()]
        assert plain(run.so_far()) == plain(await run.result()) == result
    assert [plain(chunk) for step in steps for chunk in step.chunks()] == chunks


HALF = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText()), PartDelta("m", 0, "half")]


@pytest.mark.parametrize("error", [ProviderError("gone"), DragomanError("odd")])
async def test_a_failure_after_a_round_of_tools_carries_all_of_it(error: DragomanError) -> None:
    first = says("A", call("t"), usage=1)
    half = Message.model("half").replace(id="m", finish_reason=FinishReason.error)
    results = Message.user(ToolResultPart("c1", "t", 1))
    expected = ChatResult(
        "A\nhalf",
        (ASKED, made(1, first), results, half),
        FinishReason.error,
        tokens(1),
        None,
        {},
        "m",
    )
    a, _ = agent(first, [*HALF, RunError(error)], tools=[t])
    async with a.run("hi") as run:
        with pytest.raises(DragomanError) as caught:
            await run.result()
    assert caught.value is error is run.error is run.exception
    assert plain(caught.value.result) == plain(run.so_far()) == expected


async def test_the_runs_own_messages_have_ids_and_times_of_the_agents_making() -> None:
    """Prompt, results, corrections, and the results that are made up for calls which nobody
    answered (decision 15)."""

    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    made_at = {"created_at": clock()}
    how = {"id_factory": map("own{}".format, count()).__next__, "clock": clock, "tools": [t]}
    answers = says(call("t")), says('{"z":"x"}'), says(JSON)
    a, script = agent(*answers, **how)
    result = await a.send("hi", output_schema=SCHEMA)
    assert result.messages == (
        ASKED.replace(id="own0", **made_at),
        made(1, answers[0]).replace(turn="m1"),
        Message.user(ToolResultPart("c1", "t", 1)).replace(id="own2", turn="m1", **made_at),
        made(2, answers[1]).replace(turn="m1"),
        Message.user(WRONG).replace(id="own3", **made_at),
        made(3, answers[2]).replace(turn="m3"),
    )
    async with a.run("hi") as run:
        assert run.id == "own5"
    stand_in = ToolResultPart("c9", "t", {"error": INTERRUPTED}, is_error=True)
    history = [Message.user("0"), says(call("t", id="c9"))]
    mine = Message.user("hi").replace(id="mine", created_at=datetime(2020, 1, 1, tzinfo=UTC))
    result = await a.send(mine, history=history)
    made_up = Message.user(stand_in).replace(id="own7", **made_at)
    assert result.messages[:2] == (made_up, mine)
    assert script.requests[-1].messages == (*history, made_up, mine)
    assert result.losses == (Loss(1, 0, "tool result", "it never came; an error stands in for it"),)
    other = ToolResultPart("c8", "t", 8)
    history[1] = says(call("t", id="c8"), call("t", id="c9"))
    result = await a.send(Message.user(other, "so"), history=history)
    assert result.messages[0] == Message.user(other, "so", stand_in).replace(id="own8", **made_at)
    result = await a.send([other, "so"], history=history, attachments=[TextPart("b")])
    assert result.messages[0] == Message.user(other, "so", "b", stand_in).replace(
        id="own10", **made_at
    )
    result = await a.send(None, history=[*history, Message.user(other)])
    assert result.messages[0] == Message.user(stand_in).replace(id="own13", **made_at)
    with pytest.raises(DragomanError, match="it never came"):
        await a.send("hi", history=history, on_loss="error")


async def test_the_conversation_that_is_sent_is_system_history_and_prompt() -> None:
    system, history = Message.system("s"), [Message.user("0"), says("1")]
    a, script = agent(says("A"), system="s")
    await a.send(mine := ASKED.replace(id="x"), history=history)
    assert script.requests[-1].messages[:-1] == (system, *history)
    assert plain(ChatResult("", script.requests[-1].messages[-1:])).messages == (ASKED,)
    await a.send(mine, history=[system, *history])
    assert [message.text for message in script.requests[-1].messages] == ["s", "0", "1", "hi"]
    await a.send(mine, history=[Message.system("other"), *history])
    assert [message.text for message in script.requests[-1].messages] == [
        "s",
        "other",
        "0",
        "1",
        "hi",
    ]
    await a.send(mine, history=[Message.user("s")])
    assert [message.text for message in script.requests[-1].messages] == ["s", "s", "hi"]
    await a.send(mine)
    assert [message.text for message in script.requests[-1].messages] == ["s", "hi"]


NOTHING: list[tuple[Any, dict[str, Any], str]] = [
    (None, {}, "nothing to send: without a prompt the history must end in a user message or in tool results"),
    (None, {"history": [says("a")]}, "nothing to send: without a prompt the history must end in a user message or in tool results"),
    (None, {"attachments": [TextPart("a")]}, "attachments need a prompt: put them into a message of the history instead"),
    ("", {}, "the prompt is empty: give a text, parts or a message"),
    (["", ""], {}, "the prompt is empty: give a text, parts or a message"),
    (Message.user(), {}, "the prompt is empty: give a text, parts or a message"),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "how", "words"), NOTHING)
async def test_where_there_is_nothing_to_send_it_is_refused(
    prompt: Any, how: dict[str, Any], words: str
) -> None:
    a, script = agent(says("A"))
    with pytest.raises(InvalidRequestError) as caught:
        await a.send(prompt, **how)
    assert str(caught.value) == words
    assert script.requests == []
    await a.send("", attachments=[TextPart("b")])
    assert script.requests[0].messages[-1].content == (TextPart("b"),)


@pytest.mark.parametrize(
    ("answer", "provider", "words"),
    [
        (
            says("no"),
            FORCING,
            "No JSON output found: the model answered without calling return_result",
        ),
        (says("no", returned(z="x")), FORCING, "z: should be integer, got 'x'"),
        (
            says(ToolCallPart("r", "return_result", raw='{"z"', state="cut")),
            FORCING,
            "the arguments are cut, no JSON object",
        ),
        (
            says(ToolCallPart("r", "return_result", raw="[1]", state="invalid")),
            FORCING,
            "the arguments are invalid, no JSON object",
        ),
        (says('{"z":"x"}'), PROVIDER, "z: should be integer, got 'x'"),
        (says('{"z":"x"}'), APART, "z: should be integer, got 'x'"),
        (says(), PROVIDER, "No JSON output found in response. Expected JSON in response.output."),
    ],
)
async def test_decision_10_an_output_that_is_wrong_twice_fails_with_what_is_wrong(
    answer: Message, provider: Any, words: str
) -> None:
    a, script = agent(answer, provider=provider, tools=[t])
    with pytest.raises(TypedOutputError) as caught:
        await a.send("hi", output_schema=SCHEMA)
    error = caught.value
    assert words in str(error)
    assert len(script.requests) == (3 if provider is APART else 2)
    last = [message for message in error.result.messages if message.role is Role.MODEL][-1]
    assert error.partial == last
    calls = last.tool_calls
    assert error.output == ((calls[0].raw or '{"z":"x"}') if calls else last.text)


async def test_how_the_call_of_return_result_is_asked_for() -> None:
    """Forced unless the model is to think first, or the caller says otherwise."""
    cases: list[tuple[Settings, Any, str | None]] = [
        (Settings(), FORCING, "required"),
        (Settings(reasoning="off"), FORCING, "required"),
        (Settings(reasoning="low"), FORCING, None),
        (Settings(tool_choice="auto"), FORCING, "auto"),
        (
            Settings(),
            msgspec.structs.replace(
                FORCING, capabilities=FORCING.capabilities - {Capability.forced_tools}
            ),
            None,
        ),
    ]
    for settings, provider, choice in cases:
        a, script = agent(
            says(returned(z=1)),
            provider=provider,
            tools=[t],
            server_tools=[ServerTool("web_search")],
        )
        await a.send("hi", output_schema=SCHEMA, settings=settings)
        (request,) = script.requests
        assert request.settings == msgspec.structs.replace(settings, tool_choice=choice)
        assert request.output_schema is None
        assert request.tools == (
            t.spec,
            ServerTool("web_search"),
            ToolSpec(
                "return_result",
                "Gives the final answer. Call it once, when you know the answer.",
                SCHEMA,
            ),
        )
