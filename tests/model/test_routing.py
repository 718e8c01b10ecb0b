"""A middleware routes: a request with another model string goes to that model, with what its
provider needs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Capability, Message, ModelRequest, RunError, ServerTool, TextPart
from dragoman.errors import InvalidRequestError, SettingsError
from dragoman.event import Event
from dragoman.model import ChatModel
from dragoman.model.middleware import BatchMiddleware, Destination, Middleware, Next
from dragoman.providers import Provider
from dragoman.transport import Player
from support.model import PROVIDER
from support.net import FOUR, NAMES, Net, agent, whole

pytestmark = pytest.mark.anyio


def to(model: str) -> Middleware:
    async def layer(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
        async for event in following(request.replace(model=model)):
            yield event

    return layer


@pytest.mark.parametrize("layers", [[], [whole]], ids=["streamed", "whole"])
@pytest.mark.parametrize("target", FOUR)
@pytest.mark.parametrize("source", FOUR)
async def test_another_model_answers_and_origin_says_so(
    source: str, target: str, layers: list[Any]
) -> None:
    net = Net(**{wire: Message.model(f"I am {wire}.") for wire in FOUR})
    async with agent(net, NAMES[source], middleware=[to(f"{NAMES[target]}:other"), *layers]) as one:
        result = await one.send("Who are you?")
    assert result.output == f"I am {target}."
    origin = result.messages[-1].origin
    assert origin is not None
    assert (origin.provider, origin.model) == (NAMES[target], "other")
    assert net.asked == [target]
    assert net.sent(target).model == "other"


async def test_the_users_middlewares_see_a_request_once() -> None:
    seen: list[str] = []

    async def look(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
        seen.append(request.model)
        async for event in following(request):
            yield event

    net = Net(anthropic=Message.model("a"), openai_chat=Message.model("b"))
    async with agent(net, "openai:gpt-4o", middleware=[look, to("anthropic:x"), look]) as one:
        await one.send("Hi")
    assert seen == ["openai:gpt-4o", "anthropic:x"]


async def test_a_model_that_nobody_knows_is_an_error_of_the_run() -> None:
    async with agent(Net(), "openai", middleware=[to("nobody:x")]) as one:
        with pytest.raises(SettingsError, match="nobody"):
            await one.send("Hi")
        events = [event async for event in one.run("Hi")]
    assert isinstance(events[-1], RunError)


async def test_a_model_by_itself_knows_no_others() -> None:
    one = ChatModel(PROVIDER, transport=Player([]), middleware=[to("openai:x")])
    [event] = [event async for event in one.stream(ModelRequest("", (Message.user("Hi"),)))]
    assert isinstance(event, RunError)
    assert "openai:x is another model than scripted:m" in event.error.message
    assert one.target(ModelRequest("openai:x")) is None


async def test_a_record_that_is_not_registered_is_found_by_its_name() -> None:
    net = Net(openai_chat=Message.model("b"))
    record = Provider(
        name="acme",
        display_name="Acme",
        wire="openai_chat",
        base_url="https://api.openai.com/v1",
        chat_model="large",
        capabilities=frozenset({Capability.chat}),
    )
    async with Agent(record, transport=net, middleware=[to("acme:small")]) as one:
        result = await one.send("Hi")
    assert net.sent("openai_chat").model == "small"
    assert result.messages[-1].origin is not None
    assert result.messages[-1].origin.provider == "acme"


async def test_what_each_provider_needs_is_around_its_own_models_alone() -> None:
    """The tools of a model that has none are asked for by constrained decoding, those of another
    are sent."""
    poor = msgspec.structs.replace(
        PROVIDER,
        name="poor",
        base_url="https://api.anthropic.com/v1",
        wire="anthropic",
        capabilities=frozenset({Capability.chat, Capability.typed_output}),
    )

    def lookup(place: str) -> str:
        """Looks."""
        return place

    net = Net(anthropic=Message.model('"none"'), openai_chat=Message.model("b"))
    async with agent(net, poor, tools=[lookup], middleware=[to("openai:x")]) as one:
        await one.send("Hi")
    assert net.asked == ["openai_chat"]
    assert [tool.name for tool in net.sent("openai_chat").tools] == ["lookup"]


async def test_losses_of_the_other_model_are_the_runs() -> None:
    net = Net(openai_chat=Message.model("b"), anthropic=Message.model("c"))
    how: dict[str, Any] = {
        "server_tools": [ServerTool("nothing_of_the_kind")],
        "options": {"service_tier": "flex"},
    }
    async with agent(net, "openai", middleware=[to("anthropic")], **how) as one:
        result = await one.send("Hi")
    assert {loss.what for loss in result.losses} >= {"option"}
    assert net.sent("anthropic").options == {}


async def test_options_for_the_other_model_say_whose_they_are() -> None:
    async def layer(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
        changed = request.replace(
            model="anthropic:x", options={"service_tier": "auto"}, wire="anthropic"
        )
        async for event in following(changed):
            yield event

    net = Net(anthropic=Message.model("c"))
    async with agent(net, "openai", middleware=[layer]) as one:
        result = await one.send("Hi")
    assert result.losses == ()
    assert net.sent("anthropic").options == {"service_tier": "auto"}


async def test_losses_are_the_runs_also_where_the_other_model_refuses() -> None:
    net = Net(anthropic=InvalidRequestError("no"))
    async with agent(
        net, "openai", middleware=[to("anthropic")], options={"service_tier": "flex"}
    ) as one:
        with pytest.raises(InvalidRequestError) as failed:
            await one.send("Hi")
    assert failed.value.result is not None
    assert [loss.what for loss in failed.value.result.losses] == ["option"]


async def test_a_batch_middleware_gets_reads_as_they_are_and_knows_where_they_go() -> None:
    sizes: list[int] = []
    targets: list[Destination | None] = []

    class Look:
        async def batches(self, request: ModelRequest, following: Any, target: Any) -> Any:
            targets.append(target(request))
            targets.append(target(request.replace(model="anthropic:x")))
            targets.append(target(request.replace(model="nobody")))
            async for events in following(request):
                sizes.append(len(events))
                yield events

    assert isinstance(Look(), BatchMiddleware)
    net = Net(openai_chat=Message.model(TextPart("word " * 100)))
    net.servers["openai_chat"]._piece = 10_000
    async with agent(
        net, "openai:m", middleware=[Look()], base_url="https://api.openai.com/v1/"
    ) as one:
        result = await one.send("Hi")
    assert result.output == "word " * 100
    assert max(sizes) > 1
    assert [to and (to.provider, to.endpoint, to.model, to.wire) for to in targets] == [
        ("openai", "https://api.openai.com/v1", "m", "openai_chat"),
        ("anthropic", "https://api.anthropic.com/v1", "x", "anthropic"),
        None,
    ]
