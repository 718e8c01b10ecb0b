"""The rows of `bench/goals.py` by hand: what each job costs with msgspec, sqlite3 and aiohttp alone.

python bench/peers/rows_by_hand.py BASE_URL
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import measure
import msgspec
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1]))
import by_hand

CHUNKS = 1000
decode, encode = msgspec.json.decode, msgspec.json.encode


class Called(Struct):
    name: str
    arguments: str


class Call(Struct):
    id: str
    function: Called


class Said(Struct):
    role: str
    content: str
    tool_calls: list[Call] = []
    tool_call_id: str = ""


def to_chat(messages: list[Said]) -> list[dict[str, Any]]:
    """Returns messages of Chat Completions."""
    found: list[dict[str, Any]] = []
    for each in messages:
        made: dict[str, Any] = {"role": each.role, "content": each.content}
        if each.tool_calls:
            made["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in each.tool_calls
            ]
        if each.tool_call_id:
            made["tool_call_id"] = each.tool_call_id
        found.append(made)
    return found


def to_responses(messages: list[Said]) -> list[dict[str, Any]]:
    """Returns input items of Responses."""
    found: list[dict[str, Any]] = []
    for each in messages:
        if each.tool_call_id:
            found.append(
                {
                    "type": "function_call_output",
                    "call_id": each.tool_call_id,
                    "output": each.content,
                }
            )
            continue
        found.append({"role": each.role, "content": each.content})
        found += [
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.function.name,
                "arguments": call.function.arguments,
            }
            for call in each.tool_calls
        ]
    return found


def to_anthropic(messages: list[Said]) -> list[dict[str, Any]]:
    """Returns messages of Anthropic: the results of a round are one message."""
    found: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for each in messages:
        if each.tool_call_id:
            if not results:
                results = []
                found.append({"role": "user", "content": results})
            results.append(
                {
                    "type": "tool_result",
                    "tool_use_id": each.tool_call_id,
                    "content": each.content,
                }
            )
            continue
        results = []
        if not each.tool_calls:
            found.append({"role": each.role, "content": each.content})
            continue
        content: list[dict[str, Any]] = [{"type": "text", "text": each.content}]
        content += [
            {
                "type": "tool_use",
                "id": call.id,
                "name": call.function.name,
                "input": decode(call.function.arguments),
            }
            for call in each.tool_calls
        ]
        found.append({"role": each.role, "content": content})
    return found


def to_google(messages: list[Said]) -> list[dict[str, Any]]:
    """Returns contents of Gemini: the results of a round are one content."""
    found: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    results: list[dict[str, Any]] = []
    for each in messages:
        if each.tool_call_id:
            if not results:
                results = []
                found.append({"role": "user", "parts": results})
            answer = {"id": each.tool_call_id, "name": names[each.tool_call_id]}
            results.append({"functionResponse": {**answer, "response": {"result": each.content}}})
            continue
        results = []
        parts: list[dict[str, Any]] = [{"text": each.content}]
        for call in each.tool_calls:
            names[call.id] = call.function.name
            asked = {"id": call.id, "name": call.function.name}
            parts.append({"functionCall": {**asked, "args": decode(call.function.arguments)}})
        found.append({"role": "model" if each.role == "assistant" else "user", "parts": parts})
    return found


def convert(source: Path, target: Path) -> None:
    """Converts a file of chats into one of Anthropic's, line by line."""
    chat = msgspec.json.Decoder(list[Said]).decode
    with source.open("rb") as lines, target.open("wb") as out:
        for line in lines:
            out.write(encode(to_anthropic(chat(line))) + b"\n")


def memory_turn(folder: Path) -> partial[None]:
    """Returns one turn of a memory: reads the newest 10 messages, saves two."""
    connection = sqlite3.connect(folder / "by_hand.db", isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=normal")
    connection.execute(
        "create table messages (thread text, number integer, body blob, primary key (thread, number))"
    )
    rows = [("t", at, encode(each)) for at, each in enumerate(measure.chat_history())]
    connection.executemany("insert into messages values (?, ?, ?)", rows)
    return partial(_turn, connection)


def _turn(connection: sqlite3.Connection) -> None:
    newest = connection.execute(
        "select number, body from messages where thread = ? order by number desc limit 10", ("t",)
    ).fetchall()
    last = newest[0][0]
    assert all("role" in decode(body) for _, body in newest)
    added = [
        {"role": role, "content": text}
        for role, text in zip(("user", "assistant"), measure.ADDED, strict=True)
    ]
    rows = [("t", last + 1 + at, encode(each)) for at, each in enumerate(added)]
    connection.execute("begin immediate")
    connection.executemany("insert into messages values (?, ?, ?)", rows)
    connection.execute("commit")


async def over_http(base: str) -> None:
    """Measures what goes over HTTP."""
    async with aiohttp.ClientSession() as session:

        async def count(wire: str, kind: str) -> int:
            stream = by_hand.stream(session, wire, f"{base}/{wire}/{kind}")
            return len([text async for text in stream])

        for wire in ("openai_chat", "anthropic", "openai_responses", "google"):
            each = await measure.best_async(partial(count, wire, "text"))
            measure.tell(f"chunk {wire}", each * 1e3 / CHUNKS)
        measure.tell("short", await measure.best_async(partial(count, "openai_chat", "short")))
        once = partial(by_hand.tool_round, session, f"{base}/openai_chat/tool")
        measure.tell("tool round", await measure.best_async(once))


def main(base: str) -> None:
    messages = msgspec.convert(measure.chat_history(), list[Said])
    for row, to in (
        ("openai_chat", to_chat),
        ("openai_responses", to_responses),
        ("google", to_google),
    ):
        assert len(to(messages)) >= 800
        measure.tell(f"dump {row}", measure.best(partial(to, messages)))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        turn = memory_turn(folder)
        measure.tell("memory turn", measure.best(turn))
        source = folder / "chats.jsonl"
        line = json.dumps(measure.chat_history(4)) + "\n"
        source.write_text(line * (20_000_000 // len(line)))
        began = time.perf_counter()
        convert(source, folder / "out.jsonl")
        measure.tell("convert 1", source.stat().st_size / 1e6 / (time.perf_counter() - began))
    asyncio.run(over_http(base))


if __name__ == "__main__":
    main(sys.argv[1])
