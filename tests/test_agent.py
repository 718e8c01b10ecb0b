"""The agent's call: rules D-01…D-20 of the seeds, with the decisions that change them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic import BaseModel

from dragoman import Agent, Chat, DataPart, Message, TextPart, ToolCallPart, ToolResultPart, tool
from dragoman.errors import (
    InvalidRequestError,
    ProviderError,
    SettingsError,
    ToolError,
    TypedOutputError,
)
from dragoman.message import FinishReason, Role, ThinkingPart, Usage
from dragoman.providers import Provider
from support.model import FORCING, PROVIDER, Script, agent, call, says

pytestmark = pytest.mark.anyio


@tool
async def t(x: int = 0) -> int:
    """Adds one."""
    return x + 1


async def chunks(a: Agent[Any], prompt: Any = "hi", **how: Any) -> list[Any]:
    return [chunk async for chunk in a.send_stream(prompt, **how)]


async def test_d01_the_first_chunk_shows_the_prompt_before_any_output() -> None:
    a, _ = agent(says("yes"))
    first = (await chunks(a))[0]
    assert (first.id, first.output, first.finish_reason) == ("", "", FinishReason.unspecified)
    assert [(m.role, m.text) for m in first.messages] == [(Role.USER, "hi")]


async def test_d02_d03_prompt_first_then_attachments_in_order_texts_stay_apart() -> None:
    a, script = agent(says("ok"))
    picture, more = DataPart(b"x", "image/png"), TextPart("more")
    await a.send("look", attachments=[picture, more])
    assert script.requests[0].messages[0].content == (TextPart("look"), picture, more)


async def test_d04_history_is_copied_and_never_changed_nor_rejected() -> None:
    a, script = agent(says("ok"))
    history = [Message.user("a"), Message.user("b"), Message.system("s")]
    await a.send("c", history=history)
    assert [m.text for m in history] == ["a", "b", "s"]
    assert [m.text for m in script.requests[0].messages] == ["a", "b", "s", "c"]


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
async def test_d05_only_new_messages_in_order(schema: Any) -> None:
    a, _ = agent(says("A", call("t")), says("{}"), tools=[t])
    result = await a.send(
        "hi", history=[Message.user("old"), Message.model("older")], output_schema=schema
    )
    assert [m.role for m in result.messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert result.messages[0].text == "hi"


async def test_d06_a_model_call_is_closed_when_the_consumer_stops_early() -> None:
    a, script = agent(says("a long answer"))
    stream = a.send_stream("hi")
    async for chunk in stream:
        if chunk.output:
            break
    await stream.aclose()
    assert script.closed == 1


async def test_d07_a_missing_key_is_told_when_sending_not_when_constructing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    a = Agent("openai")
    with pytest.raises(ProviderError, match="OPENAI_API_KEY"):
        await a.send("hi")


async def test_d08_text_and_its_message_never_share_a_chunk_and_outputs_join_to_the_text() -> None:
    a, _ = agent(says("one two three", usage=3))
    got = await chunks(a)
    assert all(not (c.output and c.messages) for c in got)
    assert "".join(c.output for c in got) == "one two three"
    assert len([c for c in got if c.output]) > 3


async def test_d09_send_joins_the_output_of_all_turns() -> None:
    a, _ = agent(says(ThinkingPart("hm"), "A", call("t")), says(ThinkingPart("ok"), "B"), tools=[t])
    result = await a.send("hi")
    assert result.output == "A\nB"
    assert result.thinking == "hmok" == result.metadata["thinking"]
    assert result.finish_reason is FinishReason.stop
    assert result.id == result.messages[-1].id


async def test_d10_usage_is_told_once_for_each_model_call_and_summed_by_send() -> None:
    a, _ = agent(says("A", call("t"), usage=10), says("B", usage=20), tools=[t])
    assert [c.usage.total_tokens for c in await chunks(a) if c.usage] == [10, 20]
    a, _ = agent(says("A", call("t"), usage=10), says("B", usage=20), tools=[t])
    result = await a.send("hi")
    assert result.usage == Usage(input_tokens=0, output_tokens=30, total_tokens=30)
    assert "usage" not in result.metadata


async def test_d11_without_tools_usage_stands_in_the_last_chunk_alone() -> None:
    a, _ = agent(says("A", usage=10))
    got = await chunks(a)
    assert [c.usage is not None for c in got] == [False] * (len(got) - 1) + [True]


async def test_d12_decision_32_two_tools_of_one_name_are_an_error() -> None:
    @tool(name="t")
    def later() -> str:
        return "later"

    with pytest.raises(ToolError, match="two tools are named 't'"):
        agent(says("done"), tools=[t, later])


async def test_d14_the_id_is_that_of_the_models_message_also_on_chunks() -> None:
    a, _ = agent(says("hello"))
    got = await chunks(a)
    final = got[-1].messages[0]
    assert {c.id for c in got[1:]} == {final.id}


async def test_d15_with_a_schema_the_output_is_the_json_alone() -> None:
    a, script = agent(says("Let me look", call("t")), says('{"a": 1}'), tools=[t])
    result = await a.send("hi", output_schema={"type": "object"})
    assert result.output == '{"a": 1}'
    assert script.requests[0].output_schema == {"type": "object"}


class Town(BaseModel):
    name: str
    people: int


async def test_d20_send_for_gives_the_value() -> None:
    a, _ = agent(says(ThinkingPart("hm"), '{"name": "Oslo", "people": 7}'))
    result = await a.send_for("hi", Town)
    assert result.output == Town(name="Oslo", people=7)
    assert result.thinking == "hm"


async def test_d20_empty_output_is_a_typed_output_error() -> None:
    a, _ = agent(says())
    with pytest.raises(TypedOutputError, match="No JSON output found in response"):
        await a.send_for("hi", Town)


async def test_decision_10_a_wrong_output_goes_back_to_the_model_once_with_the_validators_words() -> (
    None
):
    a, script = agent(says('{"name": "Oslo"}'), says('{"name": "Oslo", "people": 7}'))
    result = await a.send_for("hi", Town)
    assert result.output.people == 7
    assert "people" in script.requests[1].messages[-1].text
    assert [m.role for m in result.messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    a, script = agent(says("{}"))
    with pytest.raises(TypedOutputError, match="people") as caught:
        await a.send_for("hi", Town)
    assert len(script.requests) == 2
    assert str(caught.value).startswith("the answer is not of the type that was asked for: ")
    assert "simpler type, or take a more able model" in str(caught.value)
    assert caught.value.output == "{}"
    assert caught.value.partial is not None


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        (int | str, '{"result": 3}', 3),
        (list[int], '{"result": [1]}', [1]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
    ],
)
async def test_send_for_takes_anything_that_pydantic_adapts(
    kind: Any, answer: str, value: Any
) -> None:
    a, script = agent(says(answer))
    assert (await a.send_for("hi", kind)).output == value
    schema = script.requests[0].output_schema
    assert schema is not None
    assert schema["type"] == "object"


async def test_names_are_what_was_given_and_the_model_string_is_complete() -> None:
    a = Agent("CLAUDE:some-model")
    assert (a.provider_name, a.chat_model_name, a.embeddings_model_name) == (
        "claude",
        "some-model",
        None,
    )
    assert a.display_name == "Anthropic"
    assert Agent("openai").model.startswith("openai")
    assert "gpt-4o" in Agent("openai").model
    assert Agent("openai", display_name="Me").display_name == "Me"


def test_d76_an_unknown_provider_is_told_at_construction() -> None:
    with pytest.raises(SettingsError, match="nobody"):
        Agent("nobody:x")


def test_the_default_model_is_the_environments_else_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_MODEL", raising=False)
    assert Agent().provider_name == "local"
    monkeypatch.setenv("DRAGOMAN_MODEL", "anthropic:x")
    assert Agent().model == "anthropic:x"


async def test_the_system_prompt_heads_the_request_and_is_no_message_of_the_run() -> None:
    a, script = agent(says("ok"), system="Be brief.")
    result = await a.send("hi")
    assert [m.role for m in script.requests[0].messages] == [Role.SYSTEM, Role.USER]
    assert [m.role for m in result.messages] == [Role.USER, Role.MODEL]
    await a.send("more", history=[Message.system("Be brief."), *result.messages])
    assert [m.role for m in script.requests[1].messages].count(Role.SYSTEM) == 1


async def test_none_continues_a_history_and_nothing_to_send_is_an_error() -> None:
    a, script = agent(says("ok"))
    result = await a.send(None, history=[Message.user("question")])
    assert [m.role for m in result.messages] == [Role.MODEL]
    for prompt, history in ((None, []), (None, [Message.model("x")]), ("", []), ([], [])):
        with pytest.raises(InvalidRequestError):
            await a.send(prompt, history=history)
    assert len(script.requests) == 1


async def test_a_prompt_may_be_a_message_or_parts() -> None:
    a, script = agent(says("ok"))
    result = await a.send(Message.user("m").replace(id="mine"))
    assert result.messages[0].id == "mine"
    await a.send(["a", DataPart(b"x", "image/png")])
    assert len(script.requests[1].messages[0].content) == 2


async def test_ids_are_the_same_in_stream_and_history() -> None:
    from dragoman import fold

    a, _ = agent(says("A", call("t")), says("B"), tools=[t])
    events = [event async for event in a.send_events("hi")]
    folded = fold(events)
    assert [m.role for m in folded] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert all(m.id for m in folded)
    assert len({m.id for m in folded}) == 4
    async with Agent(PROVIDER, middleware=[Script(says("A", call("t")), says("B"))], tools=[t]).run(
        "hi"
    ) as run:
        seen = [event async for event in run]
        result = await run.result()
    assert tuple(fold(seen)) == result.messages


async def test_settings_of_a_call_go_before_the_agents_and_options_are_passed_on() -> None:
    from dragoman import Settings

    a, script = agent(says("ok"), settings=Settings(temperature=1.0, seed=1), options={"user": "u"})
    await a.send("hi", settings=Settings(temperature=0.0))
    request = script.requests[0]
    assert (request.settings.temperature, request.settings.seed) == (0.0, 1)
    assert request.options == {"user": "u"}
    assert request.stream


async def test_client_side_tools_end_the_run_pending_and_their_results_go_on_with_it() -> None:
    from dragoman import Tool

    ask = Tool("ask", "asks the user")
    a, script = agent(says(call("ask", id="1"), call("t", id="2")), says("thanks"), tools=[ask, t])
    result = await a.send("hi")
    assert [c.id for c in result.pending] == ["1"]
    assert result.finish_reason is FinishReason.tool_calls
    assert result.messages[-1].tool_results[0].id == "2"
    answer = Message.user(ToolResultPart("1", "ask", "blue"))
    final = await a.send(answer, history=result.messages)
    assert final.output == "thanks"
    assert script.requests[1].messages[-1].tool_results[0].result == "blue"


async def test_tools_that_need_approval_are_pending() -> None:
    @tool(requires_approval=True)
    def delete() -> str:
        raise AssertionError("must not run")

    a, _ = agent(says(call("delete")), tools=[delete])
    assert [each.call and each.call.name for each in (await a.send("hi")).pending] == ["delete"]


async def test_an_error_is_raised_unwrapped_and_told_as_an_event() -> None:
    from dragoman.event import RunError

    error = ProviderError("broken")
    a, _ = agent(error)
    with pytest.raises(ProviderError) as caught:
        await a.send("hi")
    assert caught.value is error
    async with a.run("hi") as run:
        events = [event async for event in run]
        assert isinstance(events[-1], RunError)
        with pytest.raises(ProviderError):
            await run.result()
    with pytest.raises(ProviderError):
        await chunks(a)


async def test_per_call_model_takes_one_send_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    a, script = agent(says("ok"))
    other = Provider(
        name="other",
        display_name="Other",
        wire="openai_chat",
        base_url="http://127.0.0.1:9/v1",
        chat_model="big",
    )
    await a.send("hi", model=other)
    await a.send("hi")
    assert len(script.requests) == 2


async def test_d115_typed_output_through_a_tool_where_a_provider_takes_no_schema() -> None:
    a, script = agent(
        says("let me see", call("t", id="1")),
        says("so", ToolCallPart("2", "return_result", {"name": "Oslo", "people": 7})),
        tools=[t],
        provider=FORCING,
    )
    result = await a.send_for("hi", Town)
    assert result.output == Town(name="Oslo", people=7)
    assert [spec.name for spec in script.requests[0].tools] == ["t", "return_result"]
    assert script.requests[0].output_schema is None
    assert script.requests[0].settings.tool_choice == "required"
    assert [m.role for m in result.messages] == [
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
        Role.USER,
    ]
    assert result.metadata["toolName"] == "return_result"
    assert result.metadata["toolId"] == "2"
    assert result.metadata["suppressedText"] == "let me seeso"


async def test_d116_the_json_streams_and_the_text_does_not() -> None:
    a, _ = agent(
        says("hidden", ToolCallPart("2", "return_result", {"name": "Oslo"})), provider=FORCING
    )
    got = await chunks(
        a, output_schema={"type": "object", "properties": {"name": {"type": "string"}}}
    )
    assert "".join(c.output for c in got) == '{"name":"Oslo"}'
    assert len([c for c in got if c.output]) > 2


async def test_d115_a_tool_of_the_users_named_return_result_is_refused() -> None:
    @tool
    def return_result() -> str:
        return ""

    a, _ = agent(says("x"), tools=[return_result], provider=FORCING)
    with pytest.raises(SettingsError, match="return_result"):
        await a.send_for("hi", Town)


async def test_d117_a_failed_return_result_goes_on() -> None:
    a, script = agent(
        says(ToolCallPart("1", "return_result", {"name": "Oslo"})),
        says(ToolCallPart("2", "return_result", {"name": "Oslo", "people": 7})),
        provider=FORCING,
    )
    result = await a.send_for("hi", Town)
    assert result.output.people == 7
    assert script.requests[1].messages[-1].tool_results[0].is_error


async def test_typed_output_that_is_impossible_is_told() -> None:
    bare = Provider(
        name="bare",
        display_name="Bare",
        wire="openai_chat",
        base_url="http://127.0.0.1:9",
        chat_model="m",
    )
    with pytest.raises(SettingsError, match="typed output"):
        await Agent(bare).send_for("hi", Town)


@pytest.mark.parametrize(
    ("model", "field"),
    [("openai:o3", "reasoning_effort"), ("anthropic:claude-sonnet-4-6", "thinking")],
)
async def test_d77_reasoning_is_asked_for_where_the_seeds_refused_it(
    model: str, field: str
) -> None:
    """Decision 11: what was an error for OpenAI and others is a field of their requests today."""
    from dragoman import Settings
    from dragoman.transport import Exchange, Player

    player = Player([Exchange(status=400, body=b"{}")])
    with pytest.raises(ProviderError):
        await Agent(model, api_key="k", transport=player).send(
            "hi", settings=Settings(reasoning="high")
        )
    assert field in player.requests[0].body


@pytest.mark.parametrize("unknown", ["base_url", "api_key", "temprature"])
async def test_an_argument_that_nobody_knows_is_refused(unknown: str) -> None:
    a, script = agent(says("ok"))
    with pytest.raises(TypeError, match=f"takes no argument {unknown}; it takes history, model"):
        await a.send("hi", **{unknown: "x"})  # what RunOptions does not have
    with pytest.raises(TypeError, match=unknown):
        a.run("hi", **{unknown: "x"})
    assert not script.requests


def test_everything_that_an_agent_does_can_be_done_without_an_event_loop() -> None:
    a, _ = agent(says("one"), says("two"), says("three"))
    with a as same:
        assert same is a
        chat = Chat(a)
        assert chat.send_sync("1").output == "one"
        assert "".join(chunk.output for chunk in chat.send_stream_sync("2")) == "two"
        assert chat.send_for_sync("3", str).output == "three"
        assert [message.text for message in chat.history] == ["1", "one", "2", "two", "3", "three"]
    a.close_sync()


@pytest.mark.parametrize(
    "method",
    [
        *[Agent.send, Agent.send_for, Agent.send_stream, Agent.embed_query, Agent.embed_documents],
        *[
            Agent.list_models,
            Agent.download,
            Agent.close,
            Chat.send,
            Chat.send_for,
            Chat.send_stream,
        ],
    ],
)
def test_a_synchronous_twin_is_named_and_described_as_itself_and_takes_the_same(
    method: Any,
) -> None:
    owner: Any = Chat if method.__qualname__.startswith("Chat") else Agent
    twin = getattr(owner, f"{method.__name__}_sync")
    assert (twin.__name__, twin.__qualname__) == (
        f"{method.__name__}_sync",
        f"{method.__qualname__}_sync",
    )
    assert inspect.signature(twin).parameters == inspect.signature(method).parameters
    assert twin.__doc__ not in (None, method.__doc__)
    assert not inspect.iscoroutinefunction(twin)


def test_models_are_listed_without_an_event_loop() -> None:
    with Agent(Provider(name="p", display_name="P", wire="openai_chat", models=lambda: ["m"])) as a:
        assert [model.name for model in a.list_models_sync()] == ["m"]
