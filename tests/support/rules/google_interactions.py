"""What Google's Interactions API takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.genai._gaos.types.interactions import CreateModelInteractionParam

from support.rules.pairing import misnamed
from support.rules.typed import faults

_OF_USER = ("user_input", "function_result")


def problems(body: dict[str, Any]) -> Iterator[str]:
    yield from faults(_typed(body), CreateModelInteractionParam, "body")
    steps = body["input"] if isinstance(body["input"], list) else []
    calls = [step for step in steps if step["type"] == "function_call"]
    yield from misnamed("the id", [call["id"] for call in calls], "[a-zA-Z0-9_-]{1,64}")
    declared = [tool["name"] for tool in body.get("tools", []) if tool["type"] == "function"]
    names = [call["name"] for call in calls]
    yield from misnamed("the name", [*declared, *names], "[a-zA-Z0-9_-]{1,64}")
    yield from (f"{name} is called and not declared" for name in names if name not in declared)
    yield from _unpaired(steps)
    for place, step in enumerate(steps):
        content = step.get("content", "-")
        if not content or any(block.get("text") == "" for block in content if content != "-"):
            yield f"[{place}]: it is empty"


def _unpaired(steps: list[dict[str, Any]]) -> Iterator[str]:
    waiting: list[str] = []
    for place, step in enumerate(steps):
        if step["type"] == "function_call":
            if step["id"] in waiting:
                yield f"[{place}]: the id {step['id']!r} waits for an answer already"
            waiting.append(step["id"])
        elif step["type"] == "function_result":
            if step["call_id"] not in waiting:
                yield f"[{place}]: the result {step['call_id']!r} has no call"
            else:
                waiting.remove(step["call_id"])
        elif waiting and step["type"] in _OF_USER:
            yield f"[{place}]: {waiting} are not answered before it"
            waiting = []
    if waiting:
        yield f"at the end: {waiting} are not answered"


def _typed(body: dict[str, Any]) -> dict[str, Any]:
    """The same without the schemas of answers, which the client names in another way, and without
    what is in a result that is an object, of which its types say nothing."""
    body = {name: value for name, value in body.items() if name != "response_format"}
    if isinstance(body["input"], list):
        body["input"] = [
            {**step, "result": {}} if isinstance(step.get("result"), dict) else step
            for step in body["input"]
        ]
    return body
