"""A scripted model: what a test says comes out of an agent, by every wire, and what the agent asked
is there to look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import anyio
import anyio.lowlevel
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import (
    Agent,
    Capability,
    Chat,
    FinishReason,
    Limits,
    Message,
    ModelRequest,
    Origin,
    Role,
    RunRequest,
    Settings,
    TextPart,
    ThinkingPart,
    Tool,
    ToolCallPart,
    Usage,
    errors,
    fold,
    providers,
    unfold,
    wires,
)
from dragoman.event import PartDelta, StepStarted
from dragoman.message import Content
from dragoman.model.fallbacks import fallback
from dragoman.run import Run
from dragoman.runs import Runs, open_log
from dragoman.testing import (
    Answer,
    ScriptedModel,
    ScriptError,
    answer_with,
    assert_calls,
    call,
    collect_events,
    format_transcript,
)
from dragoman.testing.wire.bench import SIGNATURE, make_signed_thinking
from dragoman.transport import Exchange, Retry

pytestmark = pytest.mark.anyio

WIRES = [(wire, stream) for wire in wires.names("model") for stream in (True, False)]
each_wire = pytest.mark.parametrize(("wire", "stream"), WIRES, ids=lambda value: str(value))


def get_weather(city: str) -> str:
    """Tells the weather."""
    return f"rain in {city}"


@each_wire
async def test_text_and_calls_in_order(wire: str, stream: bool) -> None:
    model = ScriptedModel([call("get_weather", city="Oslo"), "It rains."], wire=wire, stream=stream)
    result = await Agent(model, tools=[get_weather]).send("How is it in Oslo?")
    model.assert_exhausted()
    assert result.output == "It rains."
    assert [format_transcript(request.messages) for request in model.requests] == [
        ["user: How is it in Oslo?"],
        [
            "user: How is it in Oslo?",
            'model calls get_weather {"city":"Oslo"}',
            'get_weather gives "rain in Oslo"',
        ],
    ]
    assert result.usage and result.usage.total_tokens and result.usage.total_tokens > 20


@each_wire
async def test_a_generator_says_it_piece_by_piece(wire: str, stream: bool) -> None:
    async def speak(request: ModelRequest) -> AsyncIterator[object]:
        yield "one "
        yield "two"
        yield call("get_weather", city="Oslo")
        yield call("get_weather", city="Bergen")

    model = ScriptedModel([speak, "Rain."], wire=wire, stream=stream)
    result = await Agent(model, tools=[get_weather]).send("How?")
    assert [
        each.arguments["city"] for message in result.messages for each in message.tool_calls
    ] == ["Oslo", "Bergen"]
    assert result.output == "one two\nRain."


@each_wire
async def test_typed_output(wire: str, stream: bool) -> None:
    assert (
        await Agent(ScriptedModel([answer_with(42)], wire=wire, stream=stream)).send_for("?", int)
    ).output == 42


@each_wire
async def test_a_refusal_is_the_error_that_was_said(wire: str, stream: bool) -> None:
    model = ScriptedModel(
        [errors.RateLimitError("slower", retry_after=3)], wire=wire, stream=stream
    )
    with pytest.raises(errors.RateLimitError, match="slower") as caught:
        await Agent(model).send("?")
    assert (caught.value.status, caught.value.retry_after, caught.value.provider) == (
        429,
        3,
        "scripted",
    )


@each_wire
async def test_a_cut(wire: str, stream: bool) -> None:
    model = ScriptedModel([Answer(content="abc " * 30, cut=True)], wire=wire, stream=stream)
    with pytest.raises(errors.StreamCutError) as caught:
        await Agent(model).send("?")
    if stream:
        assert caught.value.partial is not None
        assert 0 < len(caught.value.partial.text) < 120


async def test_a_script_that_is_at_its_end_says_so_and_shows_what_was_asked() -> None:
    agent = Agent(model := ScriptedModel(["Hello."]))
    await agent.send("Hi!")
    with pytest.raises(
        AssertionError, match=r"request 2 has no answer: the script has 1[^$]*user: And now\?"
    ):
        await agent.send("And now?")
    with pytest.raises(ScriptError, match="1 requests got no answer"):
        model.assert_exhausted()


async def test_what_was_not_asked_for_is_an_error() -> None:
    model = ScriptedModel(["One.", "Two.", "Three."])
    agent = Agent(model)
    assert (await agent.send("?")).output == "One."
    with pytest.raises(ScriptError, match=r"2 answers were not asked for; the next is 'Two\.'"):
        model.assert_exhausted()
    assert [(await agent.send("?")).output for _ in range(2)] == ["Two.", "Three."]
    model.assert_exhausted()
    assert repr(model) == "ScriptedModel(scripted:scripted-1, openai_chat, 3 requests)"


async def test_an_answer_may_be_written_in_many_ways() -> None:
    said = Message.model("A message.")
    exchange = Exchange(
        body=b'data: {"choices":[{"index":0,"delta":{"content":"An exchange."}}]}\n\ndata: [DONE]\n\n',
        chunks=3,
    )

    async def asynchronous(request: ModelRequest) -> str:
        return f"You said {request.messages[-1].text}"

    answers = [
        "Text.",
        TextPart("A part."),
        [ThinkingPart("Hm."), "Two ", TextPart("parts.")],
        said,
        unfold([said.replace(id="m1", finish_reason=FinishReason.length)]),
        asynchronous,
        lambda request: lambda request: "A function's function.",
        exchange,
        exchange.body,
        Answer(content="An answer.", headers={"x-request-id": "r7"}),
    ]
    model = ScriptedModel(answers)
    agent = Agent(model)
    results = [await agent.send("Hi") for _ in answers]
    model.assert_exhausted()
    assert [result.output for result in results] == [
        "Text.",
        "A part.",
        "Two parts.",
        "A message.",
        "A message.",
        "You said Hi",
        "A function's function.",
        "An exchange.",
        "An exchange.",
        "An answer.",
    ]
    assert results[2].thinking == "Hm."
    assert results[4].finish_reason is FinishReason.length


async def test_calls_have_ids_that_are_the_same_each_time() -> None:
    def speak(request: ModelRequest) -> Iterator[object]:
        yield call("b")
        yield call("b")

    model = ScriptedModel([[call("a"), ToolCallPart("mine", "a"), call("a")], speak, "Done."])
    result = await Agent(model).send("?")
    ids = [
        [each.id for each in message.tool_calls]
        for message in result.messages
        if message.tool_calls
    ]
    assert ids == [["call_1_1", "mine", "call_1_3"], ["call_2_1", "call_2_2"]]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", ["anthropic", "google"])
async def test_thinking_is_signed_and_goes_back(wire: str, stream: bool) -> None:
    thought = make_signed_thinking(wire)
    model = ScriptedModel(
        [[thought, call("get_weather", city="Oslo")], "Rain."], wire=wire, stream=stream
    )
    await Agent(model, tools=[get_weather]).send("How?")
    assert SIGNATURE in str(model.bodies[1])
    assert model.requests[1].messages[1].thinking == thought.text


async def test_one_answer_alone_and_answers_without_end() -> None:
    assert (await Agent(ScriptedModel("Alone.")).send("?")).output == "Alone."
    model = ScriptedModel(repeat("Always."))
    agent = Agent(model)
    assert [(await agent.send("?")).output for _ in range(3)] == ["Always."] * 3
    model.assert_exhausted()
    assert (
        await Agent(ScriptedModel(lambda request: request.messages[-1].text)).send("Echo.")
    ).output == "Echo."


@pytest.mark.parametrize("answer", [1, [1], errors.RateLimitError, None])
async def test_what_a_model_cannot_say_is_told_when_it_is_made(answer: object) -> None:
    with pytest.raises(TypeError, match="a scripted model cannot say"):
        ScriptedModel(["Hello.", answer])  # type: ignore[list-item]


async def test_an_error_that_a_function_raises_is_the_answer() -> None:
    def refuse(request: ModelRequest) -> str:
        raise errors.RateLimitError("slower", retry_after=3)

    with pytest.raises(errors.RateLimitError, match="slower") as caught:
        await Agent(ScriptedModel(refuse, wire="anthropic")).send("?")
    assert caught.value.body is not None and caught.value.retry_after == 3


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", "google", "openai_responses"])
async def test_as_members_of_a_fallback(wire: str) -> None:
    one = ScriptedModel(
        [Answer(content="abc " * 30, cut=True), errors.OverloadedError("no")], wire=wire, name="one"
    )
    two = ScriptedModel([call("get_weather", city="Oslo"), "Rain."], wire=wire, name="two")
    three = ScriptedModel(["Not asked."], name="three")
    result = await Agent(
        fallback(one, two, three), tools=[get_weather], limits=Limits(model_calls=9)
    ).send("How?")
    assert result.output.endswith("Rain.")
    assert [message.origin.provider for message in result.messages if message.origin] == [
        "two",
        "two",
    ]
    assert not three.requests


async def test_a_stored_response_that_it_does_not_know_is_refused_as_the_provider_does() -> None:
    first = await Agent(ScriptedModel("One.", wire="openai_responses")).send("a")
    model = ScriptedModel("Two.", wire="openai_responses")
    await Agent(model).send("b", history=first.messages)
    assert [body.get("previous_response_id") for body in model.bodies] == ["kit-1", None]
    assert format_transcript(model.requests[0]) == ["user: a", "model: One.", "user: b"]


async def test_the_request_is_as_the_wire_wrote_it_and_as_http_had_it() -> None:
    model = ScriptedModel(["Hello."], wire="anthropic")
    agent = Agent(
        model,
        system="Be brief.",
        tools=[get_weather],
        settings=Settings(temperature=0.5, max_tokens=9),
    )
    await agent.send("Hi")
    (request,), (sent,) = model.requests, model.sent
    assert (request.settings.temperature, request.settings.max_tokens, request.stream) == (
        0.5,
        9,
        True,
    )
    assert [tool.name for tool in request.tools] == ["get_weather"]
    assert format_transcript(request) == ["system: Be brief.", "user: Hi"]
    assert sent.path == "http://scripted.invalid/v1/messages"
    assert (model.bodies[0]["max_tokens"], model.bodies[0]["system"]) == (9, "Be brief.")


@pytest.mark.parametrize("wire", wires.names("model"))
async def test_a_conversation_is_whole_in_each_request_also_where_it_is_linked(wire: str) -> None:
    agent = Agent(model := ScriptedModel(["One.", "Two.", "Three."], wire=wire), system="Be brief.")
    chat = Chat(agent)
    for prompt in ("a", "b", "c"):
        await chat.send(prompt)
    assert format_transcript(model.requests[-1]) == [
        "system: Be brief.", "user: a", "model: One.", "user: b", "model: Two.", "user: c",
    ]  # fmt: skip


async def test_conversations_have_answers_of_their_own() -> None:
    model = ScriptedModel(
        {"Oslo": [call("get_weather", city="Oslo"), "Rain."], "Rome": ["Sun.", "Still sun."]},
        wire="google",
    )
    agent = Agent(model, tools=[get_weather])
    results: dict[str, str] = {}

    async def ask(city: str) -> None:
        results[city] = (await agent.send(city)).output

    async with anyio.create_task_group() as tasks:
        for city in ("Rome", "Oslo"):
            tasks.start_soon(ask, city)
    assert results == {"Oslo": "Rain.", "Rome": "Sun."}
    with pytest.raises(
        ScriptError, match="1 answers of the conversation 'Rome' were not asked for"
    ):
        model.assert_exhausted()
    with pytest.raises(ScriptError, match="no conversation 'Paris'; it has 'Oslo', 'Rome'"):
        await agent.send("Paris")


def test_threads_and_event_loops_may_share_a_model() -> None:
    model = ScriptedModel([str(number) for number in range(40)])
    agent = Agent(model)
    with ThreadPoolExecutor(4) as threads:
        outputs = list(threads.map(lambda _: asyncio.run(_send(agent)), range(40)))
    assert sorted(map(int, outputs)) == list(range(40))
    model.assert_exhausted()


async def _send(agent: Agent[None]) -> str:
    return (await agent.send("?")).output


@each_wire
async def test_a_gate_holds_an_answer_back_until_it_opens(wire: str, stream: bool) -> None:
    gate = anyio.Event()
    model = ScriptedModel(
        [Answer(content="abc " * 30, gate=gate, share=0.8)], wire=wire, stream=stream
    )
    async with Agent(model).run("?") as run:
        async for event in run:
            if isinstance(event, StepStarted if not stream else PartDelta):
                gate.set()
        assert (await run.result()).output == "abc " * 30


@each_wire
async def test_a_run_is_cancelled_while_the_model_is_silent(wire: str, stream: bool) -> None:
    model = ScriptedModel(
        [Answer(content="abc " * 30, gate=anyio.Event())], wire=wire, stream=stream
    )
    async with Agent(model).run("?") as run, anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_when_asked, model, run)
        assert (await run.result()).finish_reason is FinishReason.cancelled
    assert model.server is not None and model.server.open == 0


async def _cancel_when_asked(model: ScriptedModel, run: Run[str]) -> None:
    while not model.requests:
        await anyio.lowlevel.checkpoint()
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
    run.cancel()


async def test_a_generator_that_is_left_ends() -> None:
    ended: list[str] = []

    async def speak(request: ModelRequest) -> AsyncIterator[str]:
        try:
            yield "one "
            await anyio.sleep_forever()
        finally:
            ended.append("ended")

    async with Agent(ScriptedModel([speak])).run("?") as run:
        async for event in run:
            if isinstance(event, PartDelta) and event.delta == "one ":
                break
    assert ended == ["ended"]


@each_wire
async def test_what_a_generator_raises(wire: str, stream: bool) -> None:
    def breaks(request: ModelRequest) -> Iterator[str]:
        yield "one two three four five six"
        raise errors.ProviderConnectionError("gone")

    def fails(request: ModelRequest) -> Iterator[str]:
        yield "one two three four five six"
        raise errors.OverloadedError("no capacity")

    agent = Agent(ScriptedModel([breaks, fails], wire=wire, stream=stream))
    with pytest.raises(errors.ProviderConnectionError):
        await agent.send("?")
    with pytest.raises(
        errors.OverloadedError if stream else errors.ProviderError, match="no capacity"
    ):
        await agent.send("?")


@pytest.mark.parametrize("wire", wires.names("model"))
@pytest.mark.parametrize(
    "error", [errors.AuthenticationError, errors.ContextLengthError, errors.ModelNotFoundError]
)
async def test_refusals_have_the_status_that_they_are_given(
    wire: str, error: type[errors.ProviderError]
) -> None:
    with pytest.raises(error):
        await Agent(ScriptedModel([error("no")], wire=wire)).send("?")
    with pytest.raises(errors.ProviderTimeoutError, match="too late"):
        await Agent(ScriptedModel([errors.ProviderTimeoutError("too late")], wire=wire)).send("?")
    with pytest.raises(errors.OverloadedError) as caught:
        await Agent(ScriptedModel([errors.OverloadedError("no", status=529)], wire=wire)).send("?")
    assert caught.value.status == 529


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", "google", "openai_responses"])
async def test_a_message_says_who_served_it_and_what_it_took(wire: str, stream: bool) -> None:
    usage = Usage(input_tokens=50, output_tokens=20, total_tokens=70)
    said = Message.model("Hi.").replace(origin=Origin("p", served_model="snapshot-7"), usage=usage)
    result = await Agent(ScriptedModel(said, wire=wire, stream=stream)).send("?")
    origin = result.messages[-1].origin
    assert origin is not None and result.usage is not None
    assert (origin.model, origin.served_model) == ("scripted-1", "snapshot-7")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (50, 20)


@pytest.mark.parametrize("wire", wires.names("model"))
async def test_answers_that_are_a_proxys(wire: str) -> None:
    page = Answer(body=b"<html>Bad gateway</html>", status=502, headers={"x-request-id": "r7"})
    with pytest.raises(errors.ProviderError) as caught:
        await Agent(ScriptedModel([page], wire=wire)).send("?")
    assert (caught.value.status, caught.value.body, caught.value.request_id) == (
        502,
        page.body,
        "r7",
    )


async def test_refusals_are_tried_again_where_a_transport_around_it_does_that() -> None:
    model = ScriptedModel(
        [errors.RateLimitError("slower"), errors.OverloadedError("full"), "At last."]
    )
    patient = msgspec.structs.replace(model, transport=Retry(model.server, base=0.001))
    assert (await Agent(patient).send("?")).output == "At last."
    assert len(model.requests) == 3 and model.requests is patient.requests


class Holder(pydantic.BaseModel):
    result: int


class Weather(pydantic.BaseModel):
    city: str
    degrees: int


CAN = Capability.chat, Capability.tools, Capability.parallel_tools
MODES = {
    "with tools": (*CAN, Capability.typed_output, Capability.typed_output_with_tools),
    "two phases": (*CAN, Capability.typed_output),
    "by a forced tool": (*CAN, Capability.forced_tools),
    "by a tool": CAN,
    "constrained": (Capability.chat, Capability.typed_output),
}


@pytest.mark.parametrize(
    "value",
    [Weather(city="Oslo", degrees=7), 42, [Weather(city="Rome", degrees=30)], {"result": 1}],
)
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "constrained"])
@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", "google", "openai_responses"])
async def test_typed_output_in_each_of_a_providers_modes(
    wire: str, mode: str, value: object
) -> None:
    kind = list[Weather] if isinstance(value, list) else type(value)
    aside = ["Done."] if mode == "two phases" else []  # what the first phase ends with
    model = ScriptedModel(
        [call("get_weather", city="Oslo"), *aside, answer_with(value)],
        wire=wire,
        capabilities=frozenset(MODES[mode]),
    )
    assert (await Agent(model, tools=[get_weather]).send_for("?", kind)).output == value
    model.assert_exhausted()


async def test_a_model_in_the_place_of_a_real_one_has_its_name_and_quirks() -> None:
    model = ScriptedModel.like("openai:gpt-5", ["Hello."])
    result = await Agent(model, settings=Settings(max_tokens=9)).send("Hi")
    origin = result.messages[-1].origin
    assert origin is not None
    assert (origin.provider, origin.endpoint, origin.model) == (
        "openai",
        "https://api.openai.com/v1",
        "gpt-5",
    )
    assert model.bodies[0]["max_completion_tokens"] == 9


@pytest.mark.parametrize("name", [provider.name for provider in providers.REGISTRY.providers()])
async def test_every_provider_has_its_like(name: str) -> None:
    model = ScriptedModel.like(name, ["Hello."])
    assert (await Agent(model).send("Hi")).output == "Hello."
    value = Weather(city="Oslo", degrees=7)
    result = await Agent("local").send_for(
        "Hi", Weather, model=ScriptedModel.like(name, [answer_with(value)])
    )
    assert result.output == value


async def test_a_run_is_said_again() -> None:
    answers = [[ThinkingPart("Hm."), call("get_weather", city="Oslo")], "It rains."]
    agent = Agent(ScriptedModel(answers), tools=[get_weather])
    events = await collect_events(agent.run("How?"))
    for again in (
        ScriptedModel.from_run(events),
        ScriptedModel.from_run(fold(events), wire="anthropic"),
    ):
        result = await Agent(again, tools=[get_weather]).send("How?")
        assert format_transcript(result) == format_transcript(events)
        again.assert_exhausted()
    async with open_log("memory:") as log:
        async with Runs(log) as runs:
            run_id = await runs.start(
                Agent(ScriptedModel(answers), tools=[get_weather]),
                RunRequest([Message.user("How?")]),
            )
            async for _ in runs.attach(run_id):
                pass
        again = await ScriptedModel.from_log(log, run_id)
    assert (await Agent(again, tools=[get_weather]).send("How?")).output == "It rains."


async def test_calls_are_asserted_by_name_and_arguments() -> None:
    result = await Agent(ScriptedModel([[call("a", x=1), call("b")], "Done."])).send("?")
    assert_calls(result, call("a", x=1), call("b"))
    assert_calls(result.messages, call("b"), call("a", x=1), any_order=True)
    with pytest.raises(
        AssertionError, match=r'the calls are\n  a {"x":1}\n  b {}\nand must be\n  a {"x":2}'
    ):
        assert_calls(result, call("a", x=2))


@pytest.mark.parametrize("wire", [wire for wire in wires.names("model") if wires.embeddings(wire)])
async def test_texts_have_vectors_and_take_no_answers(wire: str) -> None:
    model = ScriptedModel(["Hello."], wire=wire)
    agent = Agent(model)
    one, two = (await agent.embed_documents(["one", "two"])).embeddings
    assert (
        one == pytest.approx((await agent.embed_query("one")).embeddings, rel=1e-5) and one != two
    )
    assert (await agent.send("?")).output == "Hello."
    own = Agent(ScriptedModel(wire=wire, vectors=lambda text: [float(len(text)), 0.5]))
    assert (await own.embed_query("four")).embeddings == [4.0, 0.5]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
words = st.text(min_size=1)
calls = st.builds(
    lambda arguments: ToolCallPart("", "echo", arguments),
    st.dictionaries(st.text(), json_values, max_size=3),
)
says = st.lists(words.map(TextPart) | words.map(ThinkingPart), max_size=3)
rounds = st.lists(
    st.builds(lambda before, made: [*before, *made], says, st.lists(calls, min_size=1, max_size=3)),
    max_size=2,
)


@each_wire
@settings(max_examples=20)
@given(rounds=rounds, last=words, chunks=st.integers(1, 200))
@pytest.mark.slow
def test_any_conversation_comes_back_as_it_was_said(
    wire: str, stream: bool, rounds: list[list[Content]], last: str, chunks: int
) -> None:
    async def run() -> None:
        model = ScriptedModel([*rounds, last], wire=wire, stream=stream, chunks=chunks)
        echo = Tool("echo", "Says it again.", lambda **arguments: arguments, {"type": "object"})
        result = await Agent(model, tools=[echo]).send("?")
        model.assert_exhausted()
        said = [message for message in result.messages if message.role is Role.MODEL]
        assert [facts_of(message.content) for message in said] == [
            facts_of(each) for each in (*rounds, [TextPart(last)])
        ]

    asyncio.run(run())


def facts_of(content: Sequence[Content]) -> tuple[str, str, list[object]]:
    """What no wire loses: all of the text, all of the thinking, all calls in order."""
    text = "".join(piece.text for piece in content if isinstance(piece, TextPart))
    thinking = "".join(piece.text for piece in content if isinstance(piece, ThinkingPart))
    return text, thinking, [piece.arguments for piece in content if isinstance(piece, ToolCallPart)]


def test_two_lists_of_answers_are_told_how_one_is_written() -> None:
    with pytest.raises(TypeError, match=r"takes one list of answers, but 2 arguments came"):
        ScriptedModel(["a"], ["b"])  # pyright: ignore
    assert ScriptedModel(answers=["a"]).answers == ["a"]
