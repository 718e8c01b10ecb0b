"""pydantic-ai's models as clients; runs where those are installed. pydantic_ai_client.py URL KEY
KIND … → one JSON object a line."""

import asyncio
import base64
import json
import sys

from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent

URL, KEY, *KINDS = sys.argv[1:]
KIND = ""
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Person(BaseModel):
    name: str
    age: int


def model(key=KEY):
    if KIND in ("openai", "responses"):
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=f"{URL}/v1", api_key=key)
        return (OpenAIResponsesModel if KIND == "responses" else OpenAIChatModel)(
            "m", provider=provider
        )
    if KIND == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel("m", provider=AnthropicProvider(base_url=URL, api_key=key))
    if KIND == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel("m", provider=GoogleProvider(base_url=URL, api_key=key))
    if KIND == "mistral":
        from pydantic_ai.models.mistral import MistralModel
        from pydantic_ai.providers.mistral import MistralProvider

        return MistralModel("m", provider=MistralProvider(base_url=f"{URL}/mistral", api_key=key))
    from cohere import AsyncClientV2
    from pydantic_ai.models.cohere import CohereModel
    from pydantic_ai.providers.cohere import CohereProvider

    return CohereModel(
        "m", provider=CohereProvider(cohere_client=AsyncClientV2(api_key=key, base_url=URL))
    )


def agent(**how):
    made = Agent(model(), **how)
    calls = []

    @made.tool_plain
    def get_weather(location: str) -> str:
        """The weather somewhere."""
        calls.append(location)
        return f"Sunny in {location}"

    return made, calls


async def whole():
    result = await Agent(model()).run("Say hello.")
    return {"text": result.output, "usage": result.usage.output_tokens > 0}


async def stream():
    async with Agent(model()).run_stream("Say hello.") as result:
        return {"text": "".join([piece async for piece in result.stream_text(delta=True)])}


async def tools():
    made, calls = agent()
    result = await made.run("Two places?")
    return {"calls": calls, "text": result.output}


async def tools_streamed():
    made, calls = agent()
    async with made.run_stream("Two places?") as result:
        text = await result.get_output()
    return {"calls": calls, "text": text}


async def image():
    return {
        "text": (
            await Agent(model()).run(["See.", BinaryContent(PIXEL, media_type="image/png")])
        ).output
    }


async def wrong_key():
    try:
        await Agent(model("another-wrong-key")).run("x")
    except Exception as error:
        return {"failed": True, "secret": KEY in str(error)}
    return {"failed": False}


async def main():
    global KIND
    for KIND in KINDS:
        for check in (whole, stream, tools, tools_streamed, image, wrong_key):
            try:
                result = await check()
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}"[:500]}
            print(json.dumps({"kind": KIND, "check": check.__name__, **result}), flush=True)


asyncio.run(main())
