"""What a server keeps of conversations, and how it is put where a client has its copy."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, serve, tool
from dragoman.fold import fold
from dragoman.request import ModelRequest, ToolSpec
from dragoman.testing import ScriptedModel
from support.gateway import MODEL, answered, client_of

pytestmark = pytest.mark.anyio
WIRES = ["openai_chat", "openai_responses", "anthropic", "google", "mistral", "ollama", "cohere"]
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


def asked(*messages: Message, stream: bool = False, **options: Any) -> ModelRequest:
    return ModelRequest(MODEL, messages, (LOOK,), stream=stream, options=options)


@tool
def roll() -> int:
    """Rolls a die."""
    return 4


def rolling(request: ModelRequest) -> Message | str:
    """Rolls once for each question, in a round of the agent's own, then answers with how many
    messages there were."""
    if not request.messages[-1].tool_results:
        return Message.model(ToolCallPart(f"roll_{len(request.messages)}", "roll", {}))
    return f"Seen {len(request.messages)}."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_an_agents_own_rounds_are_hidden_and_there_in_the_next_request(
    wire: str, stream: bool
) -> None:
    """The client sends back what it has; the model behind the agent gets the calls and results that
    the client never saw."""
    model = ScriptedModel(rolling, wire="anthropic")
    client, _ = client_of(
        wire, serve.app(Agent(model, tools=[roll], transport=model.transport, api_key="k"))
    )
    talk = [Message.user("One.")]
    for count in (3, 7):
        [message] = fold(await answered(client, asked(*talk, stream=stream)))
        assert (message.text, message.tool_calls) == (f"Seen {count}.", ())
        talk += [message, Message.user("Two.")]


@pytest.mark.parametrize("wire", WIRES)
async def test_what_another_key_answers_is_not_put_into_a_conversation(wire: str) -> None:
    model = ScriptedModel(rolling, wire="anthropic")
    app = serve.app(
        Agent(model, tools=[roll], transport=model.transport, api_key="k"),
        auth=["first-secret", "other-secret"],
    )
    talk = [Message.user("One.")]
    first, _ = client_of(wire, app, key="first-secret")
    [message] = fold(await answered(first, asked(*talk)))
    other, _ = client_of(wire, app, key="other-secret")
    [message] = fold(await answered(other, asked(*talk, message, Message.user("Two."))))
    assert message.text == "Seen 5."
