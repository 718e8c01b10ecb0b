"""The rows of `bench/goals.py` that pydantic-ai has.

PYTHON bench/peers/rows_pydantic_ai.py BASE_URL      PYTHON: one that has pydantic-ai-slim[openai,google] and ag-ui-protocol
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import measure
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.ui.ag_ui import AGUIAdapter

CHUNKS = 1000


async def look(place: str, number: int) -> str:
    """Looks."""
    return f"{place} {number}"


def history() -> list[Any]:
    """Returns the messages as pydantic-ai's."""
    found: list[Any] = []
    rest = iter(measure.chat_history())
    for question, calls, *results, answer in zip(rest, rest, rest, rest, rest, strict=True):
        found += [
            ModelRequest([UserPromptPart(question["content"])]),
            ModelResponse(
                [
                    TextPart(calls["content"]),
                    *[
                        ToolCallPart(
                            call["function"]["name"], call["function"]["arguments"], call["id"]
                        )
                        for call in calls["tool_calls"]
                    ],
                ]
            ),
            ModelRequest(
                [
                    ToolReturnPart("get_weather", each["content"], each["tool_call_id"])
                    for each in results
                ]
            ),
            ModelResponse([TextPart(answer["content"])]),
        ]
    return found


async def of_histories() -> None:
    """Measures what only converts: each model's own function that makes a request's messages."""
    messages, none = history(), ModelRequestParameters()
    openai = OpenAIProvider(api_key="k")
    chat = OpenAIChatModel("gpt-5", provider=openai)
    responses = OpenAIResponsesModel("gpt-5", provider=openai)
    google = GoogleModel("gemini-3-flash", provider=GoogleProvider(api_key="k"))
    rows: dict[str, Callable[[], Any]] = {
        "dump openai_chat": lambda: chat._map_messages(messages, none),
        "dump openai_responses": lambda: responses._map_messages(messages, {}, none),
        "dump google": lambda: google._map_messages(messages, none),
    }
    for row, work in rows.items():
        measure.tell(row, await measure.best_async(work))
    written = AGUIAdapter.dump_messages(messages)
    measure.tell("ag_ui load", measure.best(lambda: AGUIAdapter.load_messages(written)))
    measure.tell("ag_ui dump", measure.best(lambda: AGUIAdapter.dump_messages(messages)))


async def over_http(base: str) -> None:
    """Measures what goes over HTTP."""

    def openai(wire: str, kind: str) -> OpenAIProvider:
        return OpenAIProvider(base_url=f"{base}/{wire}/{kind}", api_key="k")

    async def count(agent: Agent[Any, Any]) -> int:
        async with agent.run_stream(measure.PROMPT) as run:
            texts = run.stream_text(delta=True, debounce_by=None)
            return len([text async for text in texts])

    async def measured(row: str, agent: Agent[Any, Any], unit: float) -> None:
        measure.tell(row, await measure.best_async(lambda: count(agent)) * unit)

    google = GoogleProvider(api_key="k", base_url=f"{base}/google/text")
    anthropic = AnthropicProvider(api_key="k", base_url=f"{base}/anthropic/text")
    models = {
        "openai_chat": OpenAIChatModel("gpt-5", provider=openai("openai_chat", "text")),
        "anthropic": AnthropicModel("claude-sonnet-5", provider=anthropic),
        "openai_responses": OpenAIResponsesModel(
            "gpt-5", provider=openai("openai_responses", "text")
        ),
        "google": GoogleModel("gemini-3-flash", provider=google),
    }
    for wire, model in models.items():
        await measured(f"chunk {wire}", Agent(model), 1e3 / CHUNKS)
    asked = Agent(OpenAIChatModel("gpt-5", provider=openai("openai_chat", "short")))
    measure.tell("short", await measure.best_async(lambda: asked.run(measure.PROMPT)))
    tools = OpenAIChatModel("gpt-5", provider=openai("openai_chat", "tool"))
    await measured("tool round", Agent(tools, tools=[look]), 1)


async def main(base: str) -> None:
    await of_histories()
    await over_http(base)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
