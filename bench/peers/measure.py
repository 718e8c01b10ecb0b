"""How every contestant of `bench/goals.py` measures, and the history that all of them convert.

Each runs in a process and an environment of its own, so nothing but the standard library is here.
"""

from __future__ import annotations

import gc
import json
import resource
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["ADDED", "CITIES", "PROMPT", "best", "best_async", "chat_history", "spent", "tell"]

ROUNDS, SECONDS = 7, 0.1
PROMPT = "Tell me."
CITIES = ("San Francisco, CA", "Amsterdam, NL")
QUESTION = "Compare the weather in San Francisco and Amsterdam for the coming weekend, and say which trip you would plan."
ANSWER = "San Francisco stays dry at about 21 degrees while Amsterdam expects showers on Saturday; plan San Francisco."
ADDED = (QUESTION, ANSWER)
"""What a turn of a memory saves."""


def chat_history(rounds: int = 200) -> list[dict[str, Any]]:
    """Returns messages of Chat Completions: a question, two calls, two results and an answer in
    each round, so 1,000 messages as a rule."""
    return [message for number in range(rounds) for message in _round(number)]


def _round(number: int) -> list[dict[str, Any]]:
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {
                "name": "get_weather",
                "arguments": json.dumps({"city": city, "unit": "celsius", "days": 3}),
            },
        }
        for place, city in enumerate(CITIES)
    ]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "Sunny, 21 degrees, wind 12 km/h."}
        for call in calls
    ]
    return [
        {"role": "user", "content": f"{QUESTION} ({number})"},
        {"role": "assistant", "content": "Let me look both of them up.", "tool_calls": calls},
        *results,
        {"role": "assistant", "content": f"{ANSWER} ({number})"},
    ]


def spent() -> float:
    """Returns the seconds of CPU, user and system, that this process took in all its threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def best(work: Callable[[], object]) -> float:
    """Returns the milliseconds of CPU of one call, the least of several rounds."""
    work()
    return min(_round_of(work) for _ in range(ROUNDS))


def _round_of(work: Callable[[], object]) -> float:
    gc.collect()
    times, began = 0, spent()
    while spent() - began < SECONDS:
        work()
        times += 1
    return (spent() - began) / times * 1e3


async def best_async(work: Callable[[], Awaitable[object]]) -> float:
    """Returns the milliseconds of CPU of one awaited call, the least of several rounds."""
    for _ in range(3):
        await work()
    found: list[float] = []
    for _ in range(ROUNDS):
        gc.collect()
        times, began = 0, spent()
        while spent() - began < SECONDS:
            await work()
            times += 1
        found.append((spent() - began) / times * 1e3)
    return min(found)


def tell(row: str, amount: float) -> None:
    """Prints a number of a row for `bench/goals.py`."""
    print(json.dumps({"row": row, "amount": amount}), flush=True)
