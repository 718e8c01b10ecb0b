"""Asks each provider by its official client, which finds its URL and key in the environment.

Run as a program: prints one line per client.
"""

from __future__ import annotations

import os
import sys


def ask_openai() -> str:
    from openai import OpenAI

    client = OpenAI(max_retries=0)
    stream = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def ask_anthropic() -> str:
    from anthropic import Anthropic

    client = Anthropic(max_retries=0)
    message = client.messages.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
    )
    return message.content[0].text  # pyright: ignore


def ask_google() -> str:
    from google import genai

    client = genai.Client()
    reply = client.models.generate_content(model="m", contents="Hi")
    return str(reply.text)


def ask_cohere() -> str:
    from cohere import ClientV2

    reply = ClientV2().chat(model="m", messages=[{"role": "user", "content": "Hi"}])  # pyright: ignore
    return reply.message.content[0].text  # pyright: ignore


def ask_ollama() -> str:
    from ollama import Client

    reply = Client().chat(model="m", messages=[{"role": "user", "content": "Hi"}])
    return str(reply.message.content)


def ask_mistral() -> str:
    from mistralai.client import Mistral

    # It reads no variable for its URL.
    client = Mistral(
        api_key=os.environ["MISTRAL_API_KEY"],
        server_url=os.environ["MISTRAL_BASE_URL"].removesuffix("/v1"),
    )
    reply = client.chat.complete(model="m", messages=[{"role": "user", "content": "Hi"}])
    return str(reply.choices[0].message.content)


def ask_dragoman() -> str:
    import asyncio

    from dragoman import Agent

    return str(asyncio.run(Agent("openrouter:m").send("Hi")).output)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, globals()[f"ask_{name}"](), flush=True)
