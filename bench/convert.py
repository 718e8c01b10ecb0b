"""What a stored history costs: µs a message to read each wire's list of messages, and to write it,
for chats of 20 messages.

`make bench` shows it last. Each chat asks, calls two tools at a time and answers; best of several
rounds. Then plain messages, one text each, beside a loop that makes the list of Chat of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from dragoman import wires
from dragoman.message import Message, Role, TextPart, ToolCallPart, ToolResultPart

__all__ = ["chat", "plain_table", "table"]

ROUNDS, SECONDS = 7, 0.1
QUESTION = "Compare the weather in San Francisco and Amsterdam for the coming weekend, and say which trip you would plan."
ANSWER = "San Francisco stays dry at about 21 degrees while Amsterdam expects showers on Saturday; plan San Francisco."


def chat(exchanges: int = 5) -> list[Message]:
    """A question, two calls, their results, an answer: four messages an exchange."""
    return [message for number in range(exchanges) for message in _exchange(number)]


def _exchange(number: int) -> Iterator[Message]:
    calls = [
        ToolCallPart(
            f"call_{number}_{place}", "get_weather", {"city": city, "unit": "celsius", "days": 3}
        )
        for place, city in enumerate(("San Francisco, CA", "Amsterdam, NL"))
    ]
    yield Message.user(f"{QUESTION} ({number})")
    yield Message.model(TextPart("Let me look both of them up."), *calls)
    yield Message.user(
        *[ToolResultPart(call.id, call.name, "Sunny, 21 degrees, wind 12 km/h.") for call in calls]
    )
    yield Message.model(f"{ANSWER} ({number})")


def best(work: Callable[[], object]) -> float:
    """Seconds of CPU of one call, the best of several rounds."""
    rounds: list[float] = []
    for _ in range(ROUNDS):
        times, began = 0, time.process_time()
        while time.process_time() - began < SECONDS:
            work()
            times += 1
        rounds.append((time.process_time() - began) / times)
    return min(rounds)


def table(chosen: Iterable[str]) -> None:
    """Prints a row for our own stored form, and one for each wire."""
    messages = chat()
    unit = 1e6 / len(messages)
    stored = [message.to_json() for message in messages]
    columns = (
        lambda: [Message.from_json(one) for one in stored],
        lambda: [message.to_json() for message in messages],
    )
    print(f"\n{'µs a message':<24}{'read':>10}{'write':>10}")
    print(
        f"{'stored':<24}" + "".join(f"{best(work) * unit:>10.2f}" for work in columns), flush=True
    )
    for name in chosen:
        wire = wires.get(name)
        payload = wire.dump_messages(messages)
        columns = (partial(wire.load_messages, payload), partial(wire.dump_messages, messages))
        print(
            f"{name:<24}" + "".join(f"{best(work) * unit:>10.2f}" for work in columns), flush=True
        )


def plain_table(chosen: Iterable[str], lengths: Sequence[int] = (1000, 10000)) -> None:
    """Prints a row for each wire."""
    head = "".join(f"{f'{n}: read, µs':>16}{'write, µs':>11}{'÷ loop':>8}" for n in lengths)
    print(f"\n{'µs a plain message':<24}{head}")
    for name in chosen:
        wire, row = wires.get(name), f"{name:<24}"
        for length in lengths:
            messages = [
                (Message.user, Message.model)[n % 2](f"{ANSWER} ({n})") for n in range(length)
            ]
            payload, unit = wire.dump_messages(messages), 1e6 / length
            loop, write, read = (
                best(work) * unit
                for work in (
                    partial(_by_loop, messages),
                    partial(wire.dump_messages, messages),
                    partial(wire.load_messages, payload),
                )
            )
            row += f"{read:>16.2f}{write:>11.2f}{write / loop:>8.1f}"
        print(row, flush=True)


def _by_loop(messages: Iterable[Message]) -> list[dict[str, str]]:
    return [
        {"role": "user" if message.role is Role.USER else "assistant", "content": piece.text}
        for message in messages
        if isinstance(piece := message.content[0], TextPart)
    ]
