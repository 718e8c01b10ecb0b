"""What a turn of a long chat costs: CPU of `Agent.send` down to the bytes for the transport, as a
multiple of `json.dumps` of the body.

`make bench` shows it last. A turn adds the last answer and a new question; the answer is canned and
short. *first*: a chat that this agent has not sent before. *stored*: the provider holds its
answers, so that a request names the last one and has what follows it alone; the multiple is that of
the whole conversation all the same.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Sequence

import canned
import convert
import msgspec
from canned_transport import CannedTransport

from dragoman import Agent, wires
from dragoman.codec.digest import chain_signature_digests
from dragoman.message import Message, Role
from dragoman.tools import Tool

__all__ = ["table"]

ROUNDS = 9


async def _turns(
    wire: str, provider: str, messages: Sequence[Message], *, stored: bool
) -> tuple[float, float, float]:
    """Milliseconds of CPU: the first turn, one of those that follow, `json.dumps` of all that it
    says."""
    transport = CannedTransport(b"".join(canned.WIRES[wire](canned.words(3))))
    agent = Agent(provider, transport=transport, environment={}, api_key="k")
    origin = (await agent.send("Hi.")).messages[-1].origin
    history, times = list(messages), list[float]()
    if stored and origin is not None:
        digests = chain_signature_digests(messages, wire)
        history = [
            one.replace(origin=msgspec.structs.replace(origin, prefix=before))
            if one.role is Role.MODEL
            else one
            for one, before in zip(messages, digests, strict=False)
        ]
    for number in range(ROUNDS):
        began = time.process_time()
        result = await agent.send("And the day after?", history=history)
        times.append(time.process_time() - began)
        answer = result.messages[-1] if stored else Message.model(f"Much the same ({number}).")
        history += [*result.messages[:1], answer]
    body, dumps = json.loads(transport.body), list[float]()
    if stored:
        body = wires.get(wire).dump_messages(history)
    for _ in range(ROUNDS):
        began = time.process_time()
        json.dumps(body)
        dumps.append(time.process_time() - began)
    return times[0] * 1e3, min(times[1:]) * 1e3, min(dumps) * 1e3


async def _tools(wire: str, provider: str, number: int) -> float:
    """Milliseconds of CPU of a turn with so many tools, beyond one without."""
    transport = CannedTransport(b"".join(canned.WIRES[wire](canned.words(3))))
    schema = {
        "type": "object",
        "properties": {"place": {"type": "string"}, "number": {"type": "integer"}},
    }
    tools = [
        Tool(name=f"tool_{n}", description="Looks.", input_schema=schema, handler=None)
        for n in range(number)
    ]
    best: list[float] = []
    for some in ([], tools):
        agent = Agent(provider, transport=transport, environment={}, api_key="k", tools=some)
        times: list[float] = []
        for _ in range(ROUNDS):
            began = time.process_time()
            await agent.send("Hi.")
            times.append(time.process_time() - began)
        best.append(min(times[1:]))
    return (best[1] - best[0]) * 1e3


def table(
    chosen: Iterable[str], providers: dict[str, str], lengths: Sequence[int] = (1000, 10000)
) -> None:
    """Prints a row for each wire."""
    head = "".join(f"{f'{n} first, ms':>16}{'turn, ms':>10}{'÷ dumps':>9}" for n in lengths)
    print(f"\n{'a turn of a chat of n messages':<34}{head}{'1,000 tools, ms':>17}")
    for wire in chosen:
        provider = providers.get(wire, wire)
        for stored in (False, True) if wire == "openai_responses" else (False,):
            row = f"{wire + ', stored' if stored else wire:<34}"
            for length in lengths:
                first, turn, dumps = asyncio.run(
                    _turns(wire, provider, convert.chat(length // 4), stored=stored)
                )
                row += f"{first:>16.1f}{turn:>10.2f}{turn / dumps:>9.2f}"
            print(f"{row}{asyncio.run(_tools(wire, provider, 1000)):>17.2f}", flush=True)
