"""Reading each wire by hand: a split, and msgspec for just the fields that are needed. The floor
beneath any layer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import aiohttp
import canned
import msgspec
from msgspec import Struct, field

__all__ = ["READERS", "Reader", "stream", "tool_round"]


class Function(Struct):
    arguments: str = ""


class Call(Struct):
    index: int
    function: Function


class Delta(Struct):
    content: str | None = None
    tool_calls: list[Call] = []


class Choice(Struct):
    delta: Delta


class Chunk(Struct):
    choices: list[Choice] = []


chunk = msgspec.json.Decoder(Chunk).decode


def of_chat(data: bytes) -> str | None:
    choices = chunk(data).choices if data != b"[DONE]" else ()
    return choices[0].delta.content if choices else None


class Told(Struct):
    type: str
    delta: str = ""


told = msgspec.json.Decoder(Told).decode


def of_responses(data: bytes) -> str | None:
    read = told(data)
    return read.delta if read.type == "response.output_text.delta" else None


class Block(Struct):
    text: str = ""


class BlockEvent(Struct):
    delta: Block | None = None


block_event = msgspec.json.Decoder(BlockEvent).decode


def of_anthropic(data: bytes) -> str | None:
    delta = block_event(data).delta
    return delta.text if delta else None


class Content(Struct):
    parts: list[Block] = []


class Candidate(Struct):
    content: Content


class Generated(Struct):
    candidates: list[Candidate]


generated = msgspec.json.Decoder(Generated).decode


def of_google(data: bytes) -> str | None:
    return generated(data).candidates[0].content.parts[0].text


class Spoken(Struct):
    content: Block | list[Any] | None = None


class SpokenDelta(Struct):
    message: Spoken | None = None


class SpokenEvent(Struct):
    delta: SpokenDelta | None = None


spoken = msgspec.json.Decoder(SpokenEvent).decode


def of_cohere(data: bytes) -> str | None:
    delta = spoken(data).delta if data != b"[DONE]" else None
    content = delta.message.content if delta and delta.message else None
    return content.text if isinstance(content, Block) else None


class Line(Struct):
    said: Delta = field(name="message")


line = msgspec.json.Decoder(Line).decode


def of_ollama(data: bytes) -> str | None:
    return line(data).said.content


class Reader(Struct):
    """How a wire's pieces are told apart, and the text of one."""

    text: Callable[[bytes], str | None]
    separator: bytes = b"\n\n"

    def texts(self, pieces: list[bytes]) -> Iterator[str]:
        for piece in pieces:
            if text := self.text(
                piece[piece.index(b"data: ") + 6 :] if piece[:1] != b"{" else piece
            ):
                yield text


READERS = {
    "openai_chat": Reader(of_chat),
    "openai_responses": Reader(of_responses),
    "anthropic": Reader(of_anthropic),
    "google": Reader(of_google, b"\r\n\r\n"),
    "mistral": Reader(of_chat),
    "cohere": Reader(of_cohere),
    "ollama": Reader(of_ollama, b"\n"),
}


async def pieces(
    session: aiohttp.ClientSession, url: str, body: Any, separator: bytes
) -> AsyncIterator[list[bytes]]:
    async with session.post(url, data=msgspec.json.encode(body)) as response:
        rest = b""
        async for data in response.content.iter_any():
            *complete, rest = (rest + data).split(separator)
            yield complete


async def stream(session: aiohttp.ClientSession, wire: str, url: str) -> AsyncIterator[str]:
    """A streamed answer → its texts."""
    reader = READERS[wire]
    body = {"model": "m", "messages": [{"role": "user", "content": "Tell me."}], "stream": True}
    async for complete in pieces(session, url, body, reader.separator):
        for text in reader.texts(complete):
            yield text


async def look(place: str, number: int) -> str:
    return f"{place} {number}"


SCHEMA = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "number": {"type": "integer"}},
    "required": ["place", "number"],
}
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA},
}


async def tool_round(session: aiohttp.ClientSession, url: str) -> int:
    """Calls, tools, answer (openai_chat) → how many texts there were."""
    messages: list[Any] = [{"role": "user", "content": "Tell me."}]
    while True:
        seen, found = 0, dict[int, list[str]]()
        body = {"model": "m", "messages": messages, "tools": [TOOL], "stream": True}
        async for complete in pieces(session, url, body, b"\n\n"):
            for piece in complete:
                for choice in chunk(piece[6:]).choices if piece != b"data: [DONE]" else ():
                    seen += bool(choice.delta.content)
                    for call in choice.delta.tool_calls:
                        found.setdefault(call.index, []).append(call.function.arguments)
        if not found:
            return seen
        arguments = ["".join(told) for told in found.values()]
        calls = [
            {"id": str(i), "type": "function", "function": {"name": "look", "arguments": text}}
            for i, text in enumerate(arguments)
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        values = await asyncio.gather(*[look(**msgspec.json.decode(text)) for text in arguments])
        messages += [
            {"role": "tool", "tool_call_id": str(i), "content": value}
            for i, value in enumerate(values)
        ]
        assert len(calls) == len(canned.CALLS)
