"""The same streamed tool conversation against servers that nobody here wrote: aimock, with its
faults, and llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import Agent, Message, Role, fold, tool
from dragoman.errors import (
    DecodeError,
    DragomanError,
    ProviderConnectionError,
    ProviderError,
    RateLimitError,
    StreamCutError,
)
from dragoman.transport import AiohttpTransport, Retry
from support.aimock import Aimock, aimock

pytestmark = [pytest.mark.anyio, pytest.mark.service]

MODELS = (
    "openai:gpt-4o",
    "openai-responses:gpt-5",
    "anthropic:claude-sonnet-4-6",
    "google:gemini-3.5-flash",
    "ollama:qwen3",
    "cohere:command-a-03-2025",
)
VERSIONS = {"google": "v1beta", "ollama": "", "cohere": "v2"}


@pytest.fixture(scope="module")
def server() -> Iterator[Aimock]:
    with aimock() as running:
        yield running


@tool
async def get_weather(location: str) -> str:
    """Tells the weather.

    Args:
        location: A town.
    """
    return f"sunny in {location}"


def agent(server: Aimock, model: str, **how: Any) -> Agent[Any]:
    version = VERSIONS.get(model.partition(":")[0], "v1")
    if model.startswith("openai-responses:"):
        how["options"] = {
            "store": False
        }  # aimock takes previous_response_id and knows nothing of it
    return Agent(
        model, base_url=f"{server.url}/{version}", api_key="test", tools=[get_weather], **how
    )


def retrying(server: Aimock, waits: list[float]) -> Retry:
    """A transport that waits no time, and notes how long it should have; the faults end with the
    first wait."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        server.chaos()

    return Retry(AiohttpTransport(), sleep=sleep)


@pytest.mark.parametrize("model", MODELS)
async def test_a_streamed_conversation_with_parallel_tools(server: Aimock, model: str) -> None:
    server.chaos()
    async with agent(server, model) as a, a.run("What is the weather?") as run:
        events = [event async for event in run]
        result = await run.result()
    assert [m.role for m in result.messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert [r.result for r in result.messages[2].tool_results] == [
        "sunny in Oakland",
        "sunny in Bergen",
    ]
    assert result.output == "It is sunny, 72F."
    assert tuple(fold(events)) == result.messages


@pytest.mark.parametrize("model", MODELS)
async def test_a_conversation_goes_on_with_another_provider(server: Aimock, model: str) -> None:
    server.chaos()
    other = MODELS[MODELS.index(model) - 1]
    async with agent(server, model) as a, agent(server, other) as b:
        history = (await a.send("What is the weather?")).messages
        assert (await b.send("hello", history=history)).output == "Hello there, friend!"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", [{"dropRate": 1}, {"disconnectRate": 1}, {"rateLimitRate": 1}])
async def test_d87_faults_before_the_answer_are_tried_again_whatever_the_provider(
    server: Aimock, model: str, fault: dict[str, float]
) -> None:
    waits: list[float] = []
    server.chaos(**fault)
    transport = retrying(server, waits)
    async with agent(server, model, transport=transport) as a:
        assert (await a.send("hello")).output == "Hello there, friend!"
    await transport.close()
    assert len(waits) == 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"dropRate": 1}, ProviderError),
        ({"disconnectRate": 1}, ProviderConnectionError),
        ({"rateLimitRate": 1}, RateLimitError),
        ({"malformedRate": 1}, DecodeError),
    ],
)
async def test_faults_that_last_are_errors_that_say_what_they_are(
    server: Aimock, model: str, fault: dict[str, float], kind: type[DragomanError]
) -> None:
    server.chaos(**fault)
    transport = AiohttpTransport()
    async with agent(server, model, transport=transport) as a:
        with pytest.raises(kind) as caught:
            await a.send("hello")
    await transport.close()
    server.chaos()
    assert caught.value.provider == model.partition(":")[0]
    if isinstance(caught.value, RateLimitError):
        assert caught.value.retry_after


@pytest.mark.parametrize("model", MODELS)
async def test_an_answer_that_is_cut_keeps_what_came(server: Aimock, model: str) -> None:
    server.chaos()
    async with agent(server, model) as a:
        with pytest.raises(StreamCutError) as caught:
            await a.send("cut")
    assert isinstance(caught.value.partial, Message)
    answer = "This answer is never finished, because the line goes dead long before its end, which nobody will ever read."
    assert answer.startswith(caught.value.partial.text)
    assert caught.value.partial.text


@pytest.mark.parametrize("model", MODELS)
async def test_a_slow_first_byte_is_waited_for(server: Aimock, model: str) -> None:
    server.chaos(latencyMs=300)
    async with agent(server, model) as a:
        assert (await a.send("hello")).output == "Hello there, friend!"
    server.chaos()


@pytest.mark.parametrize("model", ["openai", "openai-responses", "ollama", "cohere"])
async def test_texts_become_vectors_and_faults_are_tried_again(server: Aimock, model: str) -> None:
    waits: list[float] = []
    server.chaos(rateLimitRate=1)
    transport = retrying(server, waits)
    async with agent(server, f"{model}:m", transport=transport) as a:
        single = await a.embed_query("a fox")
        texts = ["a fox", "and another fox"]
        several = await a.embed_documents(
            texts, batch_size=1
        )  # aimock's Ollama gives one vector a request
    await transport.close()
    assert single.embeddings == pytest.approx([0.6, 0.0, -0.8])
    assert several.embeddings == [single.embeddings] * 2
    assert single.usage and single.usage.input_tokens is not None
    assert len(waits) == 1
