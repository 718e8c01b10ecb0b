"""The agent's call by the seeds' rules, each test one rule by its own number."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import (
    Agent,
    ChatResult,
    FinishReason,
    Message,
    ModelRequest,
    TextPart,
    Usage,
    providers,
    tool,
)
from dragoman.errors import AuthenticationError, SettingsError, ToolError
from dragoman.message import ToolCallPart
from dragoman.model.resolve_model import parse_model_string
from dragoman.orchestration import DefaultStreamingOrchestrator, MessageAccumulator, StreamingState
from dragoman.testing import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.mend("3.10")]

CALLS = (ToolCallPart("a", "look", {"city": "Rome"}), ToolCallPart("b", "look", {"city": "Oslo"}))


@tool
def look(city: str) -> str:
    """Looks."""
    return f"rain in {city}"


def scripted(*answers: Any, requests: list[ModelRequest] | None = None) -> ScriptedModel:
    """A model with these answers, one a request."""
    left = iter(answers)

    def answer(request: ModelRequest) -> Any:
        if requests is not None:
            requests.append(request)
        return next(left)

    return ScriptedModel(answer)


async def test_the_prompt_comes_first_and_attachments_follow() -> None:
    """D-02."""
    result = await Agent(scripted("yes")).send(
        "one", attachments=[TextPart("two"), TextPart("three")]
    )

    assert result.messages[0].content == (TextPart("one"), TextPart("two"), TextPart("three"))


async def test_a_history_is_sent_as_it_is_and_never_changed() -> None:
    """D-04: a system message anywhere, two users in a row."""
    requests: list[ModelRequest] = []
    history = [Message.user("a"), Message.user("b"), Message.system("late"), Message.model("c")]
    before = list(history)

    await Agent(scripted("yes", requests=requests)).send("d", history=history)

    assert history == before
    assert [message.text for message in requests[0].messages] == ["a", "b", "late", "c", "d"]


@pytest.mark.parametrize("typed", [False, True])
async def test_only_this_calls_messages_are_returned_in_order(typed: bool) -> None:
    """D-05: with an output schema as without one."""
    agent = Agent(scripted(["looking", *CALLS], '{"a": 1}'), tools=[look])
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}} if typed else None

    result = await agent.send(
        "Rome?", history=[Message.user("x"), Message.model("y")], output_schema=schema
    )

    assert [message.role for message in result.messages] == ["user", "model", "user", "model"]


async def test_a_missing_key_is_reported_when_sending() -> None:
    """D-07, D-72: not when the agent is made; the message names the variable and the provider."""
    agent = Agent("mistral", environment={}, environment_only=True)

    with pytest.raises(AuthenticationError, match=r"MISTRAL_API_KEY is required for Mistral"):
        await agent.send("x")


async def test_a_missing_key_of_mistral_is_reported_like_the_others() -> None:
    """D-74."""
    errors = []
    for name in ("mistral", "openai"):
        with pytest.raises(AuthenticationError) as caught:
            await Agent(name, environment={}, environment_only=True).send("x")
        errors.append(str(caught.value).lower().replace(name, "*"))

    assert errors[0] == errors[1]


async def test_an_empty_key_falls_back_to_the_environment() -> None:
    """D-71: an empty text is no key."""
    with pytest.raises(AuthenticationError, match="OPENAI_API_KEY is required"):
        await Agent("openai", api_key="", environment={}, environment_only=True).send("x")


async def test_a_result_joins_the_outputs_of_all_messages() -> None:
    """D-09, D-15: text before a call is part of the output; with a schema the output is the JSON
    alone."""
    agent = Agent(scripted(["looking", CALLS[0]], "done"), tools=[look])
    assert (await agent.send("x")).output == "looking\ndone"

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert (await Agent(scripted('{"a": 1}')).send("x", output_schema=schema)).output == '{"a": 1}'


async def test_usage_comes_once_for_each_model_call() -> None:
    """D-11: without tools in one chunk, and its total is no less than its parts."""
    answer = Message.model("done").replace(
        usage=Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    )
    usages = [
        chunk.usage
        async for chunk in Agent(scripted(answer)).send_stream("x")
        if chunk.usage is not None
    ]

    assert usages == [Usage(input_tokens=3, output_tokens=4, total_tokens=7)]


def test_two_tools_of_one_name_are_refused() -> None:
    """D-12, by decision an error: the later one does not win in silence."""

    def other(city: str) -> str:
        return city

    with pytest.raises(ToolError, match="two tools are named 'look'"):
        Agent("local", tools=[look, tool(name="look")(other)])


async def test_a_result_has_the_id_of_the_models_message() -> None:
    """D-14."""
    result = await Agent(scripted("done")).send("x")

    assert result.id == result.messages[-1].id
    assert result.id


async def test_text_and_its_message_never_come_in_one_chunk() -> None:
    """D-22, D-23: a chunk with text has no message and no usage, and no chunk is empty."""
    agent = Agent(scripted(["looking", *CALLS], "done"), tools=[look])
    chunks: list[ChatResult[str]] = [chunk async for chunk in agent.send_stream("x")]

    assert all(not chunk.messages and chunk.usage is None for chunk in chunks if chunk.output)
    assert all(chunk.output or chunk.messages or chunk.usage or chunk.metadata for chunk in chunks)


async def test_the_last_message_ends_the_run_with_its_reason() -> None:
    """D-27, D-30: without calls the run stops, whatever the reason."""
    requests: list[ModelRequest] = []
    cut = Message.model("so f").replace(finish_reason=FinishReason.length)

    result = await Agent(scripted(cut, requests=requests), tools=[look]).send("x")

    assert (result.finish_reason, len(requests)) == (FinishReason.length, 1)


async def test_all_results_stand_in_one_user_message_in_call_order() -> None:
    """D-28: and the model is asked again with it."""
    requests: list[ModelRequest] = []
    agent = Agent(scripted([*CALLS], "done", requests=requests), tools=[look])

    result = await agent.send("x")

    answer = result.messages[2]
    assert answer.role == "user"
    assert [(part.id, part.result) for part in answer.tool_results] == [
        ("a", "rain in Rome"),
        ("b", "rain in Oslo"),
    ]
    assert requests[1].messages[-1].content == answer.content


def test_a_call_that_is_there_is_merged() -> None:
    """D-34: name and arguments win where they are not empty; a call without id is appended."""
    accumulate = MessageAccumulator().accumulate
    first = Message.model(ToolCallPart("a", "look", {"city": "Rome"}))

    assert accumulate(first, Message.model(ToolCallPart("a", "", {}))).content == first.content
    changed = accumulate(first, Message.model(ToolCallPart("a", "", {"city": "Oslo"}))).tool_calls
    assert changed == (ToolCallPart("a", "look", {"city": "Oslo"}),)
    nameless = accumulate(first, Message.model(ToolCallPart("", "look", {})))
    assert len(accumulate(nameless, Message.model(ToolCallPart("", "look", {}))).tool_calls) == 3


def test_other_parts_are_appended_and_metadata_is_merged() -> None:
    """D-35: the chunk's metadata wins, the first role stays."""
    first = Message.model("a").replace(metadata={"x": 1, "y": 1})
    more = Message.user("b").replace(metadata={"y": 2})

    merged = MessageAccumulator().accumulate(first, more)

    assert (merged.role, merged.metadata) == ("model", {"x": 1, "y": 2})
    assert merged.content == (TextPart("a"), TextPart("b"))


@pytest.mark.parametrize("text", ["", "a//b", "a/b/c"])
def test_a_malformed_model_string_is_refused_with_its_text(text: str) -> None:
    """D-66."""
    with pytest.raises(SettingsError) as caught:
        parse_model_string(text)
    assert f'"{text}"' in str(caught.value)


@pytest.mark.parametrize(
    "text", ["openai", "openai:gpt-4o", "ollama:qwen2.5:7b-instruct", "openai?chat=a&embeddings=b"]
)
def test_a_model_string_is_written_as_it_was_read(text: str) -> None:
    """D-68."""
    assert str(parse_model_string(text)) == text
    assert parse_model_string(str(parse_model_string(text))) == parse_model_string(text)


async def test_a_run_that_is_left_early_is_finalized() -> None:
    """D-06: when the consumer stops."""
    seen: list[str] = []

    class Watched(DefaultStreamingOrchestrator):
        async def finalize(self, state: StreamingState) -> None:
            seen.append("finalized")

    stream = Agent(scripted("a long answer"), orchestrator=Watched).send_stream("x")
    async for chunk in stream:
        if chunk.output:
            break
    await stream.aclose()
    assert seen == ["finalized"]


async def test_a_text_may_follow_the_prompt_as_a_part_of_its_own() -> None:
    """D-03, by decision: a message may hold several texts, and none is refused or joined."""
    requests: list[ModelRequest] = []

    await Agent(scripted("yes", requests=requests)).send("one", attachments=[TextPart("two")])

    assert requests[0].messages[0].content == (TextPart("one"), TextPart("two"))


async def test_what_the_provider_ran_is_told_once_in_metadata() -> None:
    """D-147, D-148: a call that the provider ran stands in the metadata of one chunk, and is no
    call to answer."""
    ran = ToolCallPart("s", "web_search", {"query": "rain"}, run_by="provider")
    agent = Agent(scripted([ran, "it rains"]))

    chunks = [chunk async for chunk in agent.send_stream("x")]

    assert len([chunk for chunk in chunks if "web_search" in chunk.metadata]) == 1
    last = next(chunk.messages[-1] for chunk in reversed(chunks) if chunk.messages)
    assert (last.tool_calls, "web_search" in last.metadata) == ((), False)


def test_cohere_is_asked_by_its_own_api() -> None:
    """D-133, by decision: not the compatible URL, which lacks citations and the plan of tools."""
    assert providers.get("cohere").wire == "cohere"
