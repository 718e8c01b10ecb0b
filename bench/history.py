"""What reading and writing 1,000 messages costs, beside the libraries whose messages they are, in
one run.

python bench/history.py        Mastra, pydantic-ai and LangChain where `make service` has installed them

Rounds are taken in turn and the best of each is shown: times on a shared machine vary, so compare
the ratios.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from dragoman import formats
from dragoman.history import MessageList
from dragoman.message import Message, ToolCallPart, ToolResultPart
from support.ai_sdk import HOME, ai_sdk

COUNT, ROUNDS = 1000, 7
FORMATS = (
    "openai_chat",
    "ai_sdk_ui",
    "ai_sdk_model",
    "mastra_v2",
    "mastra_v1",
    "pydantic_ai",
    "langchain",
)
SCRIPTS = {
    "pydantic_ai": """
from pydantic_ai.messages import ModelMessagesTypeAdapter as adapter
load, dump = adapter.validate_python, lambda messages: adapter.dump_python(messages, mode="json")
""",
    "langchain": """
from langchain_core.messages import messages_from_dict as load, messages_to_dict as dump
""",
}
"""Format → the library's own two functions."""
MEASURE = """
import gc, json, sys, time
given, rounds = json.load(sys.stdin)
best = [1e9, 1e9]
for _ in range(rounds):
    gc.collect()
    start = time.process_time()
    messages = load(given)
    middle = time.process_time()
    dump(messages)
    best = [min(best[0], middle - start), min(best[1], time.process_time() - middle)]
print(json.dumps([1000 * each for each in best]))
"""


def conversation(count: int) -> list[Message]:
    """Questions, calls, results and answers."""
    messages: list[Message] = []
    for number in range(count // 4 + 1):
        call = ToolCallPart(f"call-{number}", "weather", {"city": "Rome", "days": number})
        messages += [
            Message.user(f"How warm is it in Rome on day {number}?").replace(id=f"u{number}"),
            Message.model("I look.", call).replace(id=f"a{number}", turn=f"a{number}"),
            Message.user(ToolResultPart(call.id, call.name, {"celsius": 21})).replace(
                id=f"a{number}:1", turn=f"a{number}"
            ),
            Message.model("It is 21 degrees there.").replace(id=f"a{number}:2", turn=f"a{number}"),
        ]
    return messages[:count]


def payload_of(name: str) -> Any:
    """1,000 messages of the format, as JSON has them, from somewhere else."""
    written = json.loads(json.dumps(formats.get(name).dump_messages(conversation(4 * COUNT))))
    placed = (
        {"createdAt": "2026-03-01T12:00:00.250Z", "threadId": "t", "resourceId": "r"}
        if "mastra" in name
        else {}
    )
    return [{**each, **placed} for each in written[:COUNT]]


def best(work: Callable[[], Any]) -> float:
    """Milliseconds of CPU."""
    found = 1e9
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time()
        work()
        found = min(found, time.process_time() - start)
    return 1000 * found


def library(name: str, payload: Any) -> list[float] | None:
    """The library's milliseconds for reading and for writing; `None`: it is not installed."""
    python = ROOT / ".cache" / name / "bin" / "python"
    if not python.exists():
        return None
    given = json.dumps([payload, ROUNDS])
    ran = subprocess.run(
        [python, "-c", SCRIPTS[name] + MEASURE],
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def mastra(payloads: dict[str, Any]) -> dict[str, list[float]]:
    """Format → milliseconds of Mastra's MessageList for adding and for giving UI messages."""
    if not (HOME / ".done").exists():
        return {}
    found: dict[str, list[float]] = {}
    with ai_sdk() as run:
        for name, source in (
            ("mastra_v2", "memory"),
            ("mastra_v1", "memory"),
            ("ai_sdk_ui", "memory"),
            ("ai_sdk_model", "memory"),
        ):
            made = run("mastra_bench", messages=payloads[name], source=source, repeat=ROUNDS)
            found[name] = [made["add"], made["ui"]]
    return found


def main() -> None:
    """Prints the table."""
    payloads = {name: payload_of(name) for name in FORMATS}
    theirs = {
        **mastra(payloads),
        **{name: made for name in SCRIPTS if (made := library(name, payloads[name]))},
    }
    print(
        f"{COUNT} messages, ms of CPU, best of {ROUNDS}; theirs: Mastra's MessageList, pydantic-ai, LangChain\n"
    )
    print(
        "| | load | dump | add | their load | their dump | load | add | dump |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name in FORMATS:
        ours = costs(name, payloads[name])
        row = f"| `{name}` | " + " | ".join(f"{each:.1f}" for each in ours)
        if name in theirs:
            load, dump = theirs[name]
            row += f" | {load:.1f} | {dump:.1f} | {ours[0] / load:.2f} | {ours[2] / load:.2f} | {ours[1] / dump:.2f} |"
        else:
            row += " | – | – | – | – | – |"
        print(row)


def costs(name: str, payload: Any) -> list[float]:
    """Our milliseconds: reading, writing, adding to a list."""
    format_ = formats.get(name)
    messages = format_.load_messages(payload)
    return [
        best(lambda: format_.load_messages(payload)),
        best(lambda: format_.dump_messages(messages)),
        best(lambda: MessageList().add(payload, "memory", name)),
    ]


if __name__ == "__main__":
    main()
