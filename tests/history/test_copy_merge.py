"""A client whose format takes other ids answers the calls that are kept."""

from __future__ import annotations

import pytest

from dragoman import Message, ToolCallPart, ToolResultPart, formats
from dragoman.history import put


@pytest.mark.parametrize("rounds", [1, 2])
def test_results_by_ids_of_the_clients_format_answer_the_stored_calls(rounds: int) -> None:
    stored, sent = [Message.user("Look.")], [Message.user("Look.")]
    for number in range(rounds):
        calls = [ToolCallPart(f"call_{number}_{name}", "look", {"at": name}) for name in ("a", "b")]
        results = [ToolResultPart(call.id, "look", f"done {call.id}") for call in reversed(calls)]
        model = Message.model(f"Answer {number}.", *calls)
        sent += [model, Message.user(*results)]
        stored += [model] if number == rounds - 1 else [model, Message.user(*results)]
    payload = formats.get("mistral").dump_messages(sent)
    assert "call_0_a" not in [call["id"] for call in payload[1]["tool_calls"]], (
        "otherwise the test proves nothing"
    )
    changes = put(stored, "mistral", payload, answers=True, results=True)
    ids = [f"call_{rounds - 1}_{name}" for name in ("a", "b")]
    answered = {each.id: each.result for each in changes.messages[-1].tool_results}
    assert answered == {each: f"done {each}" for each in ids}
    assert list(changes.messages[: len(stored)]) == stored
