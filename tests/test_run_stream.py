"""D-08 and decision 24: what is streamed, joined as the stream itself says, is what `send` gives,
in every mode."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import Agent, Capability, DataPart, TextPart, ToolCallPart, tool
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.message import FinishReason, Role, ThinkingPart
from support.model import FORCING, PROVIDER, Script, agent, call, says

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]}
APART = msgspec.structs.replace(
    PROVIDER, capabilities=PROVIDER.capabilities - {Capability.typed_output_with_tools}
)


@tool
async def t(x: int = 0) -> int:
    """Adds one."""
    return x + 1


def returned(**arguments: Any) -> ToolCallPart:
    return ToolCallPart("r", "return_result", arguments)


def told(m: str, text: str, *, ends: bool = True) -> list[Any]:
    end = (
        [PartFinished(m, 0, TextPart(text)), MessageFinished(m, FinishReason.stop)] if ends else []
    )
    return [
        MessageStarted(m, Role.MODEL),
        PartStarted(m, 0, OpenText()),
        PartDelta(m, 0, text),
        *end,
    ]


TYPED = {"output_schema": SCHEMA}
MODES: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any], str]] = {
    "text": ([says("A")], {}, {}, "A"),
    "tools": ([says("A", call("t")), says("B")], {"tools": [t]}, {}, "A\nB"),
    "nothing before tools": ([says(call("t")), says("B")], {"tools": [t]}, {}, "B"),
    "several rounds": (
        [says(call("t")), says("B", call("t")), says(call("t")), says("C")],
        {"tools": [t]},
        {},
        "B\nC",
    ),
    "typed": ([says('{"z":1}')], {}, TYPED, '{"z":1}'),
    "typed after tools": ([says(call("t")), says('{"z":1}')], {"tools": [t]}, TYPED, '{"z":1}'),
    "typed after text and tools": (
        [says("Let me see", call("t")), says('{"z":1}')],
        {"tools": [t]},
        TYPED,
        '{"z":1}',
    ),
    "corrected": ([says("Sure! Here it is: name is Ada"), says('{"z":1}')], {}, TYPED, '{"z":1}'),
    "corrected to nearly the same": ([says('{"z":"1"}'), says('{"z":1}')], {}, TYPED, '{"z":1}'),
    "by a tool": ([says("so", returned(z=1))], {"provider": FORCING}, TYPED, '{"z":1}'),
    "by a tool, corrected": (
        [says(returned(z="x")), says(returned(z=1))],
        {"provider": FORCING},
        TYPED,
        '{"z":1}',
    ),
    "by a tool, called twice": (
        [says(returned(z=1), ToolCallPart("s", "return_result", {"z": 2}))],
        {"provider": FORCING},
        TYPED,
        '{"z":1}',
    ),
    "by a tool, after tools": (
        [says(call("t")), says(returned(z=1))],
        {"provider": FORCING, "tools": [t]},
        TYPED,
        '{"z":1}',
    ),
    "two phases": (
        [says("so"), says('{"z":1}')],
        {"provider": APART, "tools": [t]},
        TYPED,
        '{"z":1}',
    ),
    "two phases, corrected": (
        [says("so"), says("no"), says('{"z":1}')],
        {"provider": APART, "tools": [t]},
        TYPED,
        '{"z":1}',
    ),
    "thinking alone": (
        [says(call("t")), says(ThinkingPart("hm")), says("B")],
        {"tools": [t]},
        {},
        "B",
    ),
    "taken back": (
        [[*told("a", "bad start", ends=False), MessageDropped("a"), *told("b", "good")]],
        {},
        {},
        "good",
    ),
    "taken back and the same": (
        [[*told("a", "go", ends=False), MessageDropped("a"), *told("b", "good")]],
        {},
        {},
        "good",
    ),
    "told whole": (
        [
            [
                MessageStarted("a", Role.MODEL),
                PartStarted("a", 0, OpenText()),
                *told("a", "all of it")[3:],
            ]
        ],
        {},
        {},
        "all of it",
    ),
    "other in the end": (
        [
            [
                *told("a", "al", ends=False),
                PartFinished("a", 0, TextPart("other")),
                MessageFinished("a", FinishReason.stop),
            ]
        ],
        {},
        {},
        "other",
    ),
}


@pytest.mark.parametrize("mode", MODES)
async def test_d08_the_stream_joined_is_sends_output(mode: str) -> None:
    answers, how, options, expected = MODES[mode]
    a, _ = agent(*answers, **how)
    joined = ""
    async for chunk in a.send_stream("hi", **options):
        assert not (chunk.output and chunk.retracted)
        assert joined.endswith(chunk.retracted)
        joined = chunk.joined(joined)
    a, _ = agent(*answers, **how)
    result = await a.send("hi", **options)
    assert (joined, result.output) == (expected, expected)


async def test_decision_24_what_is_void_is_taken_back_by_a_chunk_of_its_own_before_anything_else_is_shown() -> (
    None
):
    a, _ = agent(
        says("Sure! name is Ada"),
        says('{"z":1}'),
    )
    chunks = [chunk async for chunk in a.send_stream("hi", output_schema=SCHEMA)]
    (place,) = [n for n, chunk in enumerate(chunks) if chunk.retracted]
    assert (
        chunks[place].retracted
        == "".join(chunk.output for chunk in chunks[:place])
        == "Sure! name is Ada"
    )
    assert "".join(chunk.output for chunk in chunks[place:]) == '{"z":1}'
    assert (chunks[place].messages, chunks[place].usage) == ((), None)


async def test_decision_24_runs_without_void_text_take_nothing_back() -> None:
    a, _ = agent(says("A", call("t")), says("B"), tools=[t])
    assert not [chunk for chunk in [c async for c in a.send_stream("hi")] if chunk.retracted]


async def test_d25_a_message_that_comes_whole_is_accumulated_and_shown_like_one_in_pieces() -> None:
    """What a provider tells without any delta stands in the message, in the output and in the
    stream."""
    parts = [TextPart("A"), call("t", x=1)]
    events = [
        MessageStarted("a", Role.MODEL),
        *[
            event
            for n, part in enumerate(parts)
            for event in (PartStarted("a", n, part), PartFinished("a", n, part))
        ],
        MessageFinished("a", FinishReason.tool_calls),
    ]
    a, _ = agent(events, says("B"), tools=[t])
    result = await a.send("hi")
    assert result.messages[1].content == tuple(parts)
    assert result.output == "A\nB"


async def test_d141r_text_that_was_streamed_is_not_repeated_by_the_closing_chunk() -> None:
    a, _ = agent(says("A picture", DataPart(b"x", "image/png")))
    chunks = [chunk async for chunk in a.send_stream("hi")]
    assert "".join(chunk.output for chunk in chunks) == "A picture"
    assert chunks[-1].output == ""
    assert chunks[-1].messages[0].content == (TextPart("A picture"), DataPart(b"x", "image/png"))
    assert sum(len(chunk.messages) for chunk in chunks) == 2


async def test_d142r_a_typed_run_by_return_result_ends_with_stop() -> None:
    a, _ = agent(says(returned(z=1)), provider=FORCING)
    result = await a.send("hi", output_schema=SCHEMA)
    assert result.finish_reason is FinishReason.stop
    chunks = [chunk async for chunk in a.send_stream("hi", output_schema=SCHEMA)]
    assert chunks[-1].finish_reason is FinishReason.stop


async def test_d31_decision_32_two_calls_of_one_id_are_two_calls_and_results_pair_by_position() -> (
    None
):
    a, script = agent(says(call("t", x=1), call("t", x=2)), says("done"), tools=[t])
    result = await a.send("hi")
    assert [(part.id, part.result) for part in result.messages[2].tool_results] == [
        ("c1", 2),
        ("c1", 3),
    ]
    assert script.requests[1].messages[-1].tool_results == result.messages[2].tool_results


async def test_decision_32_two_calls_of_one_id_can_wait_and_are_answered_apart() -> None:
    from dragoman import Message, Origin, Tool, ToolResultPart, wires

    a, script = agent(says(call("ask", q=1), call("ask", q=2)), says("done"), tools=[Tool("ask")])
    first = await a.send("hi")
    assert [each.call and each.call.arguments for each in first.pending] == [{"q": 1}, {"q": 2}]
    answers = Message.user(ToolResultPart("c1", "ask", "one"), ToolResultPart("c1", "ask", "two"))
    assert (await a.send(answers, history=first.messages)).output == "done"
    sent = wires.get("openai_chat").dump_messages(
        script.requests[1].messages, target=Origin("other")
    )
    calls = [each["id"] for each in sent[1]["tool_calls"]]
    assert len(set(calls)) == 2
    assert [(each["tool_call_id"], each["content"]) for each in sent[2:]] == [
        (calls[0], "one"),
        (calls[1], "two"),
    ]


async def test_a_schema_holds_for_its_answer_as_a_type_does() -> None:
    a, script = agent(says('{"wrong":"x"}'), says('{"z":1}'))
    assert (await a.send("hi", output_schema=SCHEMA)).output == '{"z":1}'
    assert "z: is required" in script.requests[1].messages[-1].text
    a = Agent(FORCING, middleware=[Script(says(returned(wrong="x")), says(returned(z=1)))])
    assert (await a.send("hi", output_schema=SCHEMA)).output == '{"z":1}'
