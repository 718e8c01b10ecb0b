"""Each provider's own client, streaming: what the layer is compared with. A client is made once, as
its users would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import Any

__all__ = ["STREAMS"]

Texts = AsyncIterator[str]
PROMPT: Any = [{"role": "user", "content": "Tell me."}]


@cache
def _openai(url: str) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=url, api_key="k")


@cache
def _anthropic(url: str) -> Any:
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(base_url=url, api_key="k")


@cache
def _google(url: str) -> Any:
    from google import genai

    return genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=url))


@cache
def _mistral(url: str) -> Any:
    from mistralai.client import Mistral

    return Mistral(api_key="k", server_url=url)


@cache
def _cohere(url: str) -> Any:
    from cohere import AsyncClientV2

    return AsyncClientV2("k", base_url=url)


@cache
def _ollama(url: str) -> Any:
    from ollama import AsyncClient

    return AsyncClient(url)


async def openai_chat(url: str) -> Texts:
    async for chunk in await _openai(url).chat.completions.create(
        model="m", messages=PROMPT, stream=True
    ):
        if chunk.choices and (text := chunk.choices[0].delta.content):
            yield text


async def openai_responses(url: str) -> Texts:
    async for event in await _openai(url).responses.create(model="m", input=PROMPT, stream=True):
        if event.type == "response.output_text.delta":
            yield event.delta


async def anthropic(url: str) -> Texts:
    stream = await _anthropic(url).messages.create(
        model="m", max_tokens=1024, messages=PROMPT, stream=True
    )
    async for event in stream:
        if event.type == "content_block_delta":
            yield event.delta.text


async def google(url: str) -> Texts:
    async for chunk in await _google(url).aio.models.generate_content_stream(
        model="m", contents="Tell me."
    ):
        if chunk.text:
            yield chunk.text


async def mistral(url: str) -> Texts:
    async for event in await _mistral(url).chat.stream_async(model="m", messages=PROMPT):
        if text := event.data.choices[0].delta.content:
            yield text


async def cohere(url: str) -> Texts:
    async for event in _cohere(url).chat_stream(model="m", messages=PROMPT):
        if event.type == "content-delta":
            yield event.delta.message.content.text


async def ollama(url: str) -> Texts:
    async for part in await _ollama(url).chat(model="m", messages=PROMPT, stream=True):
        if part.message.content:
            yield part.message.content


STREAMS = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic,
    "google": google,
    "mistral": mistral,
    "cohere": cohere,
    "ollama": ollama,
}
