"""The rows of `bench/goals.py` that dragoman is measured by.

python bench/peers/rows_ours.py BASE_URL
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import measure

sys.path.insert(0, str(Path(__file__).parents[1]))
import canned
from canned_transport import CannedTransport

from dragoman import Agent, Memory, Message, formats, tool, wires
from dragoman.history import MessageList

CHUNKS = 1000
PROVIDERS = {"openai_chat": "openai", "openai_responses": "openai-responses"}


@tool
async def look(place: str, number: int) -> str:
    """Looks."""
    return f"{place} {number}"


def convert(source: Path, processes: int) -> float:
    """Returns MB a second of the command, its start included."""
    target = source.with_suffix(".out.jsonl")
    command = [sys.executable, "-m", "dragoman", "convert", str(source), "-o", str(target)]
    command += ["--from", "openai_chat", "--to", "anthropic", "-j", str(processes)]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return source.stat().st_size / 1e6 / (time.perf_counter() - began)


async def with_memory(folder: Path) -> None:
    """Measures a turn of a memory, and a run with and without one."""
    async with Memory(f"sqlite:///{folder}/ours.db") as memory:
        messages = formats.get("openai_chat").load_messages(measure.chat_history())
        await memory.save(messages, "t")
        await memory.save(messages, "run")

        async def turn() -> None:
            page = await memory.recall("t", per_page=10, newest_first=True)
            assert len(page.items) == 10
            question, answer = measure.ADDED
            await memory.save([Message.user(question), Message.model(answer)], "t")

        measure.tell("memory turn", await measure.best_async(turn))
        transport = CannedTransport(b"".join(canned.openai_chat(canned.words(3))))
        how: Any = {"transport": transport, "environment": {}, "api_key": "k"}
        plain, remembering = Agent("openai:m", **how), Agent("openai:m", memory=memory, **how)
        measure.tell("run", await measure.best_async(lambda: plain.send(measure.ADDED[0])))
        run = partial(remembering.send, measure.ADDED[0], thread_id="run")
        measure.tell("memory run", await measure.best_async(run))


async def over_http(base: str) -> None:
    """Measures what goes over HTTP."""

    def agent(wire: str, kind: str, **how: Any) -> Agent[None]:
        name = PROVIDERS.get(wire, wire)
        return Agent(f"{name}:m", base_url=f"{base}/{wire}/{kind}", api_key="k", **how)

    async def count(asked: Agent[None]) -> int:
        return len([1 async for chunk in asked.send_stream(measure.PROMPT) if chunk.output])

    async def measured(row: str, asked: Agent[None], expected: int, unit: float) -> None:
        assert await count(asked) == expected
        measure.tell(row, await measure.best_async(partial(count, asked)) * unit)
        await asked.close()

    for wire in ("openai_chat", "anthropic", "openai_responses", "google"):
        await measured(f"chunk {wire}", agent(wire, "text"), CHUNKS, 1e3 / CHUNKS)
    await measured("short", agent("openai_chat", "short"), 3, 1)
    await measured("tool round", agent("openai_chat", "tool", tools=[look]), 50, 1)


def of_histories() -> None:
    """Measures what only converts."""
    messages = formats.get("openai_chat").load_messages(measure.chat_history())
    for name in ("openai_chat", "openai_responses", "google"):
        measure.tell(f"dump {name}", measure.best(partial(wires.get(name).dump_messages, messages)))
    ui = MessageList().add(messages).to_ui_messages()
    measure.tell("ui in", measure.best(lambda: MessageList().add(ui, "memory")))
    held = MessageList().add(ui, "memory")
    measure.tell("ui out", measure.best(held.to_ui_messages))
    for name in ("langchain", "ag_ui"):
        format_ = formats.get(name)
        written = format_.dump_messages(messages)
        measure.tell(f"{name} load", measure.best(partial(format_.load_messages, written)))
        measure.tell(f"{name} dump", measure.best(partial(format_.dump_messages, messages)))


def main(base: str) -> None:
    of_histories()
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "chats.jsonl"
        line = json.dumps(measure.chat_history(4)) + "\n"
        source.write_text(line * (60_000_000 // len(line)))
        for processes in (1, 2):
            measure.tell(f"convert {processes}", convert(source, processes))
        asyncio.run(with_memory(Path(place)))
    asyncio.run(over_http(base))


if __name__ == "__main__":
    main(sys.argv[1])
