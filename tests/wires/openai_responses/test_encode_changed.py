"""Parts that end as another kind than they began as, such as a call that turns out to be text (fuzz
seeds 771001, 771002)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import fold
from dragoman.message import (
    Content,
    DataPart,
    FinishReason,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import openai_responses as wire

BEGINNINGS: dict[str, Any] = {
    "text": OpenText(),
    "thinking": ThinkingPart(),
    "call": ToolCallPart("c", "f"),
}
ENDS: dict[str, Content] = {
    "text": TextPart("Hey."),
    "thinking": ThinkingPart("Hm."),
    "call": ToolCallPart("c", "f", {"a": 1}),
    "result": ToolResultPart("c", "f", "x"),
    "data": DataPart(b"x", "image/png"),
}


def stream(begun: Any, ended: Content) -> list[Event]:
    return [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, begun),
        PartDelta("m", 0, '{"a"'),
        PartFinished("m", 0, ended),
        PartStarted("m", 1, OpenText()),
        PartDelta("m", 1, "More."),
        PartFinished("m", 1, TextPart("More.")),
        MessageFinished("m", FinishReason.stop),
    ]


@pytest.mark.mend("4.6")
@pytest.mark.parametrize("ended", ENDS)
@pytest.mark.parametrize("begun", BEGINNINGS)
def test_what_began_ends_and_what_came_is_written(begun: str, ended: str) -> None:
    events = stream(BEGINNINGS[begun], ENDS[ended])
    encoder = wire.encoder()
    written = b"".join(map(encoder.feed, events)) + encoder.close()
    decoder = wire.decoder()
    [message] = fold([*decoder.feed(written), *decoder.close()])
    assert message.text.endswith("More.")
    assert message.finish_reason is not FinishReason.error
    if ended == "text":
        assert "Hey." in message.text
    if ended == "call":
        assert [call.arguments for call in message.tool_calls if call.state == "complete"] == [
            {"a": 1}
        ]
    if begun == "call" and ended != "call":  # it is never run
        assert all(call.state != "complete" for call in message.tool_calls)
    items: Any = wire.dump_response(events)["output"]
    assert [item["id"] for item in items] == list(dict.fromkeys(item["id"] for item in items))
