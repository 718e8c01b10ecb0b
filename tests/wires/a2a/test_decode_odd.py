"""Objects of agents that send what they like: each is read, or refused with an error of ours."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

import pytest

from dragoman import fold, json_bytes
from dragoman.errors import DragomanError, HistoryError
from dragoman.event import RunError
from dragoman.wires import a2a

Json = dict[str, Any]
ODD: tuple[Any, ...] = (
    None,
    True,
    1,
    1.5,
    "",
    "x",
    [],
    [1],
    [None],
    [[]],
    {},
    {"a": 1},
    [{}],
    {"state": {}},
    "\ud800",
)
INPUTS = 4000

_PARTS: list[Json] = [
    {"kind": "text", "text": "Hi", "metadata": {"adk_thought": True}},
    {"text": "Hi"},
    {
        "kind": "data",
        "data": {"tool_calls": [{"call_id": "a", "name": "f", "arguments": {"x": 1}}]},
    },
    {"data": {"tool_results": [{"call_id": "a", "name": "f", "output": "ok"}]}},
    {"data": {"type": "tool-call", "toolCallId": "a", "toolCallName": "f", "arguments": "{}"}},
    {"data": {"type": "tool-result", "toolCallId": "a", "content": "x", "isError": True}},
    {
        "data": {
            "type": "interrupt",
            "interruptId": "i",
            "reason": "input",
            "responseSchema": "{}",
            "call": {},
        }
    },
    {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "n"}},
    {"root": {"kind": "text", "text": "Hi"}},
    {"raw": "aGk=", "mediaType": "text/plain", "filename": "n"},
    {"url": "http://h/x", "mediaType": "image/png"},
]
_STATES = (
    "submitted",
    "working",
    "completed",
    "failed",
    "canceled",
    "input-required",
    "auth-required",
    "TASK_STATE_WORKING",
)
_KINDS = (
    "TextMessageChunkEvent",
    "TextMessageEndEvent",
    "ToolCallStartEvent",
    "ToolCallArgsEvent",
    "NoSuchEvent",
)


def _message(rng: random.Random) -> Json:
    message: Json = {
        "messageId": rng.choice("mno"),
        "role": rng.choice(["agent", "ROLE_AGENT", "user"]),
    }
    message["parts"] = [deepcopy(rng.choice(_PARTS)) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.5:
        message["metadata"] = {"canonical_type": rng.choice(_KINDS)}
    return message


def _object(rng: random.Random) -> Json:
    artifact: Json = {
        "artifactId": rng.choice(["a", "state", "result"]),
        "name": rng.choice(["a", "state"]),
    }
    artifact["parts"] = [deepcopy(rng.choice(_PARTS)) for _ in range(rng.randint(0, 3))]
    status: Json = {"state": rng.choice(_STATES), "message": _message(rng)}
    history = [_message(rng) for _ in range(rng.randint(0, 2))]
    task: Json = {
        "id": "t",
        "contextId": "c",
        "status": status,
        "history": history,
        "artifacts": [artifact],
    }
    update: Json = {"taskId": "t", "contextId": "c", "status": status, "final": True}
    piece: Json = {
        "taskId": "t",
        "contextId": "c",
        "artifact": artifact,
        "append": rng.random() < 0.5,
        "lastChunk": True,
    }
    bodies: dict[str, Json] = {
        "task": task,
        "statusUpdate": update,
        "artifactUpdate": piece,
        "message": _message(rng),
    }
    name = rng.choice([*bodies])
    kinds = {"statusUpdate": "status-update", "artifactUpdate": "artifact-update"}
    return rng.choice([{name: bodies[name]}, {"kind": kinds.get(name, name), **bodies[name]}])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each holder in a value, and a key or an index of it."""
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        entries = [*cast("Json", value).items()]
    elif isinstance(value, list):
        entries = [*enumerate(cast("list[Any]", value))]
    for key, inner in entries:
        yield value, key
        yield from _places(inner)


def _bend(value: Json, rng: random.Random) -> Json:
    for _ in range(rng.randint(1, 3)):
        places = [*_places(value)]
        if places:
            holder, key = rng.choice(places)
            holder[key] = deepcopy(rng.choice(ODD))
    return value


def _objects(seed: int) -> list[Json]:
    rng = random.Random(seed)
    return [_bend(_object(rng), rng) for _ in range(rng.randint(1, 4))]


def _read(objects: list[Json]) -> None:
    decoder = a2a.decoder()
    events = [
        *decoder.feed(b"".join(b"data: " + _bytes(one) + b"\n\n" for one in objects)),
        *decoder.close(),
    ]
    assert events
    fold(events)


def _bytes(value: Any) -> bytes:
    """JSON in which half a character is escaped, as a peer can write it."""
    return json.dumps(value).encode()


TASKS: list[Json] = [
    {"history": [1]},
    {"history": [None, "x", []]},
    {"history": [{"messageId": {}}]},
    {"status": {"state": "completed", "message": {"messageId": {}, "role": "agent", "parts": []}}},
    {"artifacts": [{"artifactId": {}, "parts": [{"text": "x"}]}]},
]


@pytest.mark.mend("1.12")
@pytest.mark.parametrize("task", TASKS)
def test_a_task_whose_fields_are_of_other_kinds_is_read_or_refused(task: Json) -> None:
    whole: Json = {
        "id": "t",
        "status": {"state": "completed"},
        "artifacts": [{"artifactId": "a", "parts": []}],
        **task,
    }
    _read([{"task": whole}])
    a2a.load_response(json_bytes.encode({"task": whole}))
    with contextlib.suppress(HistoryError):
        a2a.load_messages(whole)


@pytest.mark.mend("1.12")
def test_objects_of_random_shape_are_read_or_refused() -> None:
    for seed in range(INPUTS):
        objects = _objects(seed)
        try:
            _read(objects)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {objects!r}") from error


@pytest.mark.mend("1.12")
def test_histories_of_random_shape_are_read_or_refused() -> None:
    for seed in range(INPUTS):
        rng = random.Random(seed)
        history = [_bend(_message(rng), rng) for _ in range(rng.randint(1, 4))]
        task = next(iter(_objects(seed)[0].values()))
        for given in (history, task, {"id": "t", "history": history}):
            try:
                a2a.load_messages(given)
            except DragomanError:
                pass
            except Exception as error:
                raise AssertionError(f"seed {seed}: {given!r}") from error


def test_an_object_that_is_none_is_an_error_of_ours() -> None:
    objects: tuple[Any, ...] = ([], 1, "x", None, {"kind": {}}, {"kind": "task"})
    for odd in objects:
        decoder = a2a.decoder()
        events = [*decoder.feed(b"data: " + json_bytes.encode(odd) + b"\n\n"), *decoder.close()]
        assert isinstance(events[-1], RunError)
