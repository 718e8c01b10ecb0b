"""What a run's requests had to leave out is on the run (decision 25); names that were made fit come
back as they were."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec
import pytest

from dragoman import (
    Agent,
    Chat,
    DataPart,
    Message,
    Provider,
    Settings,
    ToolCallPart,
    ToolResultPart,
    fold,
    tool,
    wires,
)
from dragoman.codec.fit_ids import NameRule
from dragoman.errors import InvalidRequestError, RateLimitError, SettingsError
from dragoman.event import Event, MessageStarted, StepFinished, event_from_json, event_to_json
from dragoman.loss import Loss
from dragoman.message import FinishReason, Role, ThinkingPart
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import StreamingIterationResult, StreamingState
from dragoman.repair import INTERRUPTED
from dragoman.request import HttpRequest, ModelRequest, ServerTool, ToolSpec
from dragoman.testing.server import ScriptedServer
from dragoman.transport import Response
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

CLIP = DataPart(bytes(range(256)), "video/x-acme", "clip.acme")


def scripted(wire: str, *replies: Any, **how: Any) -> tuple[Agent[Any], ScriptedServer]:
    """An agent of the wire's own provider, and the server that answers it."""
    provider: Provider = msgspec.structs.replace(
        how.pop("provider", PROVIDERS[wire]), base_url="https://kit.invalid", auth=None
    )
    left = list(replies or ("Done.",))

    def reply(_: ModelRequest) -> Any:
        said = left.pop(0) if len(left) > 1 else left[0]
        return Message.model(said) if isinstance(said, str) else said

    server = ScriptedServer(wires.get(wire), reply, base_url="https://kit.invalid")
    return Agent(provider, transport=server, api_key="none", **how), server


@pytest.mark.parametrize("wire", PROVIDERS)
async def test_decision_25_a_run_names_what_it_left_out(wire: str) -> None:
    part = (
        CLIP
        if not wire.startswith("google")
        else DataPart(CLIP.data, "application/x-acme", "clip.acme")
    )
    a, _ = scripted(wire)
    result = await a.send("See.", attachments=[part])
    assert result.output == "Done."
    assert [(loss.message, loss.part) for loss in result.losses if loss.what != "texts"] == [(0, 1)]
    assert all(loss.why for loss in result.losses)


@pytest.mark.parametrize("wire", PROVIDERS)
async def test_decision_25_on_loss_refuses_before_anything_is_sent(wire: str) -> None:
    part = (
        CLIP
        if not wire.startswith("google")
        else DataPart(CLIP.data, "application/x-acme", "clip.acme")
    )
    a, server = scripted(wire, on_loss="error")
    with pytest.raises(InvalidRequestError, match="on_loss") as caught:
        await a.send("See.", attachments=[part])
    assert part.mime_type in str(caught.value)
    assert server.sent == []
    assert (await a.send("See.")).losses == ()
    assert (await a.send("See.", attachments=[part], on_loss="tell")).losses
    b, _ = scripted(wire)
    with pytest.raises(InvalidRequestError):
        await b.send("See.", attachments=[part], on_loss="error")


@pytest.mark.parametrize("wire", PROVIDERS)
async def test_the_name_of_a_picture_is_no_reason_to_refuse_or_to_warn(
    wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    picture = DataPart(b"\x89PNG\r\n\x1a\n", "image/png", "a.png")
    a, server = scripted(wire, on_loss="error")
    result = await a.send("See.", attachments=[picture])
    assert {loss.what for loss in result.losses} <= {"name", "order"}
    assert (len(server.sent), caplog.records) == (1, [])


async def test_on_loss_is_checked_where_it_is_given() -> None:
    wrong: Any = "refuse"
    with pytest.raises(SettingsError, match="on_loss"):
        scripted("openai_chat", on_loss=wrong)
    a, _ = scripted("openai_chat")
    with pytest.raises(SettingsError, match="on_loss"):
        a.run("See.", on_loss=wrong)


@tool
async def look() -> str:
    """Looks."""
    return "seen"


async def test_decision_25_each_loss_is_told_by_the_step_that_met_it_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    a, _ = scripted(
        "openai_chat", Message.model(ToolCallPart("c1", "look", {})), "Done.", tools=[look]
    )
    with caplog.at_level(logging.WARNING, "dragoman"):
        async with a.run(["See.", CLIP]) as run:
            steps = [event async for event in run if isinstance(event, StepFinished)]
            result = await run.result()
    assert [len(step.losses) for step in steps] == [1, 0]
    assert steps[0].losses == result.losses
    assert [record.getMessage() for record in caplog.records] == [
        f"run {run.id}: left out {result.losses[0]}"
    ]
    assert event_from_json(event_to_json(steps[0])) == steps[0]


async def test_decision_25_chunks_of_a_stream_name_them_too() -> None:
    a, _ = scripted("openai_chat")
    chunks = [chunk async for chunk in a.send_stream(["See.", CLIP])]
    assert [loss.which for chunk in chunks for loss in chunk.losses] == ["video/x-acme clip.acme"]
    assert "".join(chunk.output for chunk in chunks) == "Done."


async def test_decision_25_settings_and_tools_that_the_api_has_not_are_losses_of_the_run() -> None:
    a, _ = scripted(
        "cohere",
        server_tools=[ServerTool("web_search")],
        settings=Settings(parallel_tool_calls=True),
    )
    losses = (await a.send("Go.")).losses
    assert {(loss.what, loss.which) for loss in losses} == {
        ("tool", "web_search"),
        ("setting", "parallel_tool_calls"),
    }


async def test_d144r_file_search_without_stores_is_a_loss_of_the_run_and_no_empty_list_is_sent() -> (
    None
):
    a, server = scripted("openai_responses", server_tools=[ServerTool("file_search")])
    assert [loss.which for loss in (await a.send("Find it.")).losses] == ["file_search"]
    assert isinstance(body := server.sent[0].body, dict)
    assert "tools" not in body


async def test_a_chat_that_switches_names_what_the_other_provider_cannot_read() -> None:
    signed = Message.model(ThinkingPart("Hm.", {"anthropic": {"signature": "x"}}), "So.")
    _, first = scripted("anthropic", signed)
    _, other = scripted("mistral")

    class Both:
        async def send(self, request: HttpRequest) -> Response:
            return await (other if request.path.endswith("/chat/completions") else first).send(
                request
            )

        async def close(self) -> None: ...

    one, two = (
        msgspec.structs.replace(PROVIDERS[wire], base_url="https://kit.invalid")
        for wire in ("anthropic", "mistral")
    )
    chat = Chat(
        Agent(one, transport=Both(), api_key="none", environment={"MISTRAL_API_KEY": "none"})
    )
    assert (await chat.send("Think.")).losses == ()
    result = await chat.send("Go on.", model=two)
    assert [(loss.message, loss.what) for loss in result.losses] == [(1, "thinking")]


async def test_middleware_that_replays_or_retracts_keeps_losses() -> None:
    async def again(request: ModelRequest, following: Any) -> AsyncIterator[Event]:
        events = [event async for event in following(request)]
        assert any(isinstance(event, MessageStarted) and event.losses for event in events)
        for event in events:
            yield event

    a, _ = scripted("openai_chat", middleware=[again])
    assert len((await a.send(["See.", CLIP])).losses) == 1


async def test_losses_of_a_failed_run_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    cut = Message.model("Half").replace(finish_reason=FinishReason.error)
    a, _ = scripted("openai_chat", cut, limits=None)
    with caplog.at_level(logging.WARNING, "dragoman"):
        await a.send(["See.", CLIP])
    assert sum("left out" in record.getMessage() for record in caplog.records) == 1


def test_an_answers_losses_are_the_events_alone() -> None:
    start = MessageStarted("m", Role.MODEL, losses=(Loss(None, None, "top_k", "why"),))
    assert fold([start]) == fold([msgspec.structs.replace(start, losses=())])


# names


FITTING = [
    wire
    for wire in PROVIDERS
    if hasattr(PROVIDERS[wire].quirks or wires.get(wire).Quirks(), "names")
]  # type: ignore[attr-defined]


@pytest.mark.parametrize("wire", FITTING)
async def test_decision_15_a_call_comes_back_under_its_own_name_whatever_the_rule(
    wire: str,
) -> None:
    """The names are those that the wire sent: nobody fits them again by another rule."""
    rule = NameRule(letters="a-z0-9_", most=40, first="a-z_")
    quirks = msgspec.structs.replace(PROVIDERS[wire].quirks or wires.get(wire).Quirks(), names=rule)  # type: ignore[attr-defined]
    provider = msgspec.structs.replace(PROVIDERS[wire], quirks=quirks)
    own = "look-up.Città"
    seen: list[str] = []

    @tool(name=own)
    async def look_up(city: str) -> str:
        """Looks."""
        seen.append(city)
        return "seen"

    def reply(request: ModelRequest) -> Message:
        (spec,) = [each for each in request.tools if isinstance(each, ToolSpec)]
        assert rule.fits(spec.name)
        done = any(message.tool_results for message in request.messages)
        return (
            Message.model("Done.")
            if done
            else Message.model(ToolCallPart("call00001", spec.name, {"city": "Oslo"}))
        )

    server = ScriptedServer(wires.get(wire), reply, base_url="https://kit.invalid")
    provider = msgspec.structs.replace(provider, base_url="https://kit.invalid", auth=None)
    result = await Agent(provider, transport=server, api_key="none", tools=[look_up]).send("Look.")
    assert seen == ["Oslo"]
    assert [call.name for message in result.messages for call in message.tool_calls] == [own]


# append-only


def texts(request: ModelRequest) -> list[Any]:
    return [
        (
            str(message.role),
            [each.result if isinstance(each, ToolResultPart) else each for each in message.content],
        )
        for message in request.messages
    ]


@pytest.mark.parametrize("wire", PROVIDERS)
async def test_rule_6_decision_15_a_late_result_rewrites_nothing_that_was_sent(wire: str) -> None:
    call = ToolCallPart("call00001", "look", {})
    a, server = scripted(wire, options={"store": False} if wire == "openai_responses" else None)
    chat = Chat(a, [Message.user("Look."), Message.model(call)])
    await chat.send("Never mind.")
    made_up = [part for message in chat.history for part in message.tool_results]
    assert [(part.id, part.result, part.is_error) for part in made_up] == [
        ("call00001", {"error": INTERRUPTED}, True)
    ]
    assert chat.history[2].id is not None
    chat.history.append(Message.user(ToolResultPart("call00001", "look", "late")))
    await chat.send("And now?")
    first, second = (sent.body for sent in server.sent)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    (field,) = first.keys() & {"messages", "contents", "input"}
    assert second[field][: len(first[field])] == first[field]


async def test_decision_15_what_was_made_up_is_a_loss_and_may_be_refused() -> None:
    history = [Message.user("Look."), Message.model(ToolCallPart("c1", "look", {}))]
    a, server = scripted("openai_chat")
    result = await a.send("Never mind.", history=history)
    assert [(loss.message, loss.part, loss.what) for loss in result.losses] == [
        (1, 0, "tool result")
    ]
    assert [message.role.value for message in result.messages] == ["user", "user", "model"]
    assert (await a.send("So?", history=[*history, *result.messages])).losses == ()
    with pytest.raises(InvalidRequestError, match="tool result"):
        await a.send("Never mind.", history=history, on_loss="error")
    assert len(server.sent) == 2


async def test_decision_15_a_prompt_that_answers_some_of_the_calls_carries_the_rest() -> None:
    calls = Message.model(ToolCallPart("c1", "look", {}), ToolCallPart("c2", "look", {}))
    a, server = scripted("openai_chat")
    chat = Chat(a, [Message.user("Look."), calls])
    await chat.send(Message.user(ToolResultPart("c2", "look", "seen"), "Go on without the other."))
    assert [[part.id for part in message.tool_results] for message in chat.history] == [
        [],
        [],
        ["c2", "c1"],
        [],
    ]
    chat.history.append(Message.user(ToolResultPart("c1", "look", "late")))
    await chat.send("And now?")
    assert texts(server.requests[1])[:3] == texts(server.requests[0])[:3]


async def test_an_error_before_an_answer_is_raised_as_it_is() -> None:
    a, _ = scripted("openai_chat", RateLimitError("slow down"))
    with pytest.raises(RateLimitError):
        await a.send(["See.", CLIP])


async def test_decision_25_a_request_that_is_refused_names_its_losses() -> None:
    """No message begins, so none can tell them: the step's end and the error's result do."""
    a, _ = scripted("openai_chat", RateLimitError("slow down", status=429))
    async with a.run(["See.", CLIP]) as run:
        steps = [event async for event in run if isinstance(event, StepFinished)]
        with pytest.raises(RateLimitError) as caught:
            await run.result()
    assert [loss.which for loss in steps[0].losses] == ["video/x-acme clip.acme"]
    assert caught.value.result is not None
    assert caught.value.result.losses == steps[0].losses


class Plain:
    """An orchestrator from the protocol alone."""

    provider_hint = "plain"

    async def initialize(self, state: StreamingState) -> None: ...

    async def finalize(self, state: StreamingState) -> None: ...

    async def process_iteration(
        self, model: ChatModel, state: StreamingState, _schema: Any = None
    ) -> AsyncGenerator[StreamingIterationResult, None]:
        texts = [chunk.output.text async for chunk in model.send_stream(state.conversation_history)]
        message = Message.model("".join(texts))
        yield StreamingIterationResult(
            output=message.text, messages=[message], should_continue=False
        )


async def test_decision_25_an_orchestrator_of_the_users_has_its_losses_told() -> None:
    a, _ = scripted("openai_chat", orchestrator=Plain)
    result = await a.send(["See.", CLIP])
    assert (result.output, [loss.which for loss in result.losses]) == (
        "Done.",
        ["video/x-acme clip.acme"],
    )
