"""D-129: typed output of providers that answer by a schema, but not together with tools."""

import msgspec
import pytest
from pydantic import BaseModel

from dragoman import Agent, Capability, Message, Role, fold, tool
from dragoman.errors import ProviderError, SettingsError, TypedOutputError
from dragoman.event import MessageDropped
from dragoman.orchestration import TwoPhaseStreamingOrchestrator, choose_orchestrator
from support.model import FORCING, PROVIDER, Script, agent, call, says

pytestmark = pytest.mark.anyio

APART = msgspec.structs.replace(
    PROVIDER,
    capabilities=PROVIDER.capabilities - {Capability.typed_output_with_tools}
    | {Capability.forced_tools},
)
JSON = '{"name":"Oslo","people":7}'


class Town(BaseModel):
    name: str
    people: int


@tool
def t() -> str:
    """A tool."""
    return "a result"


def noting(message, **response):
    return message.replace(native={"openai_chat:notes": {"response": response}})


async def test_d129_tools_first_and_then_the_schema_alone():
    a, script = agent(
        says("let me see", call("t")),
        noting(says("it is Oslo", usage=5), grounds="a map"),
        noting(says(JSON, usage=7), created=1),
        tools=[t],
        provider=APART,
    )
    result = await a.send_for("which town?", Town)
    assert result.output == Town(name="Oslo", people=7)
    assert [bool(request.tools) for request in script.requests] == [True, True, False]
    assert [request.output_schema is not None for request in script.requests] == [
        False,
        False,
        True,
    ]
    assert (
        script.requests[2].messages == script.requests[1].messages
    )  # what was set aside is not in the history
    assert [m.role for m in result.messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert [m.text for m in result.messages if m.role is Role.MODEL] == ["let me see", JSON]
    assert result.metadata == {"grounds": "a map", "created": 1, "suppressedText": "it is Oslo"}
    assert result.usage.output_tokens == 12


async def test_d129_only_the_json_streams_and_what_was_set_aside_is_dropped():
    a, _ = agent(says("it is Oslo"), says(JSON), tools=[t], provider=APART)
    schema = Town.model_json_schema()
    got = [chunk async for chunk in a.send_stream("which town?", output_schema=schema)]
    assert "".join(chunk.output for chunk in got) == JSON
    assert len([chunk for chunk in got if chunk.output]) > 2

    a, _ = agent(says("it is Oslo"), says(JSON), tools=[t], provider=APART)
    events = [event async for event in a.send_events("which town?", output_schema=schema)]
    assert [event.message_id for event in events if isinstance(event, MessageDropped)] == ["m1"]
    assert [message.text for message in fold(events)] == ["which town?", JSON]


async def test_a_forced_tool_is_forced_in_the_first_phase_only():
    a, script = agent(says("no"), says(JSON), tools=[t], provider=APART)
    await a.send_for("which town?", Town, settings=_forced())
    assert [request.settings.tool_choice for request in script.requests] == ["required", None]
    assert [request.settings.parallel_tool_calls for request in script.requests] == [True, None]


def _forced():
    from dragoman import Settings

    return Settings(tool_choice="required", parallel_tool_calls=True)


async def test_a_wrong_answer_is_told_and_asked_again_without_tools():
    a, script = agent(says("Oslo"), says("{}"), says(JSON), tools=[t], provider=APART)
    assert (await a.send_for("which town?", Town)).output.people == 7
    assert [bool(request.tools) for request in script.requests] == [True, False, False]
    a, _ = agent(says("Oslo"), says("{}"), says("{}"), tools=[t], provider=APART)
    with pytest.raises(TypedOutputError):
        await a.send_for("which town?", Town)


async def test_a_failure_between_the_phases_leaves_no_half_message():
    a, _ = agent(says("it is Oslo"), ProviderError("down"), tools=[t], provider=APART)
    async with a.run("which town?", output_type=Town) as run:
        events = [event async for event in run]
    assert [message.text for message in fold(events)] == ["which town?"]


async def test_an_empty_message_after_tools_is_set_aside_too():
    a, script = agent(says(call("t")), says(), says(JSON), tools=[t], provider=APART)
    result = await a.send_for("which town?", Town)
    assert len(script.requests) == 3
    assert "suppressedText" not in result.metadata
    assert Message.user("which town?").text == result.messages[0].text


def test_chosen_by_capabilities():
    choose = choose_orchestrator
    assert isinstance(choose(APART, typed=True, tools=True), TwoPhaseStreamingOrchestrator)
    assert choose(APART, typed=True, tools=False).provider_hint == "default"
    assert choose(APART, typed=False, tools=True).provider_hint == "default"
    assert choose(PROVIDER, typed=True, tools=True).provider_hint == "default"


@pytest.mark.parametrize(
    ("capabilities", "hints"),
    [
        ("typed_output typed_output_with_tools tools", "default default"),
        ("typed_output tools", "default two_phase"),
        ("typed_output", "default default"),  # tools go through constrained decoding there
        ("typed_output typed_output_with_tools", "default default"),
        ("tools", "return_result return_result"),
        ("tools forced_tools", "return_result return_result"),
    ],
)
def test_the_orchestrator_of_a_typed_run_without_tools_and_with_them(capabilities: str, hints: str):
    provider = msgspec.structs.replace(
        PROVIDER,
        capabilities=frozenset(Capability[name] for name in f"chat {capabilities}".split()),
    )
    chosen = [
        choose_orchestrator(provider, typed=True, tools=tools).provider_hint
        for tools in (False, True)
    ]
    assert chosen == hints.split()
    assert choose_orchestrator(provider, typed=False, tools=True).provider_hint == "default"


@pytest.mark.parametrize(
    ("first", "second", "hints"),
    [
        (
            "typed_output typed_output_with_tools tools",
            "typed_output typed_output_with_tools tools",
            "default default",
        ),
        ("typed_output typed_output_with_tools tools", "typed_output tools", "default two_phase"),
        ("typed_output tools", "typed_output", "default two_phase"),
        ("typed_output tools", "tools", "return_result return_result"),
    ],
)
def test_of_several_providers_the_means_is_one_that_all_have(first: str, second: str, hints: str):
    providers = [
        msgspec.structs.replace(PROVIDER, capabilities=frozenset(map(Capability, names.split())))
        for names in (first, second)
    ]
    for each in (providers, providers[::-1]):
        chosen = [
            choose_orchestrator(*each, typed=True, tools=tools).provider_hint
            for tools in (False, True)
        ]
        assert chosen == hints.split()


async def test_a_call_is_forced_where_all_can_be_forced():
    free = msgspec.structs.replace(FORCING, name="free", capabilities=frozenset({Capability.tools}))
    for second, choice in ((FORCING, "required"), (free, None)):
        script = Script(says(call("return_result", name="Bonn", people=3)))
        models = [FORCING] if second is FORCING else [FORCING, second]
        assert (
            await Agent(models, middleware=[script]).send_for("which town?", Town)
        ).output.name == "Bonn"
        assert script.requests[0].settings.tool_choice == choice


def test_a_provider_that_can_give_no_typed_output_says_so():
    provider = msgspec.structs.replace(PROVIDER, capabilities=frozenset({Capability.chat}))
    with pytest.raises(SettingsError) as caught:
        choose_orchestrator(provider, typed=True, tools=False)
    assert "Scripted can give no typed output; use a provider that can" in str(caught.value)
    assert caught.value.provider == "scripted"
    assert choose_orchestrator(provider, typed=False, tools=True).provider_hint == "default"
