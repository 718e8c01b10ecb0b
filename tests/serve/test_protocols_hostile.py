"""Bodies as nobody means them, at every place of the agent protocols: no fault of the server, no
hang, nothing left."""

from __future__ import annotations

import asyncio
import gc
import json
from random import Random
from typing import Any

import pytest

from dragoman import Message, ToolCallPart, wires
from dragoman.codec.json_values import if_list, if_object
from dragoman.serve.core import webhooks
from dragoman.serve.http.limits import ServerLimits
from dragoman.serve.store.answer_store import TaskQuery
from dragoman.testing.mutation import mutate_bytes
from dragoman.transport import AddressPolicy
from dragoman.transport.fetching import PostResult
from support.asgi import exchange
from support.protocols import served_agent

pytestmark = pytest.mark.anyio

OURS = json.dumps(
    {
        "run_id": "r",
        "tools": [{"name": "look", "description": "Looks.", "input_schema": {}}],
        "context": [{"description": "a", "value": "b"}],
        "state": {"a": 1},
        "settings": {"temperature": 1},
    }
)
TALK = [
    Message.user("Please roll.").replace(id="u1"),
    Message.model("Hm.", ToolCallPart("c1", "look", {"at": "home"})).replace(id="a1"),
]
LAST = Message.user("Please roll and pay.").replace(id="u5")
CONTEXT = [{"description": "a", "value": "b"}]
RESUME = [{"interruptId": "x", "status": "resolved", "payload": {"approved": True}, "metadata": {}}]


HOOK = {
    "taskId": "TASK",
    "id": "c",
    "url": "https://hooks.example.org/",
    "token": "t",
    "authentication": {"scheme": "Bearer", "credentials": "x"},
}
POLICY = AddressPolicy(["hooks.example.org"])


def ag_ui() -> list[dict[str, Any]]:
    dump = wires.get("ag_ui").dump_messages
    body: dict[str, Any] = {
        "threadId": "t", "runId": "r", "parentRunId": "x", "protocolVersion": "1.0", "state": {"a": 1}, "context": CONTEXT,
        "tools": [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}], "forwardedProps": {"a": 1, "dragoman": OURS},
        "messages": dump([LAST]),
    }  # fmt: skip
    result = {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "x"}
    picture = {
        "type": "image",
        "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"},
    }
    asked = {
        "id": "u2",
        "role": "user",
        "content": [{"type": "text", "text": "Please roll."}, picture],
    }
    return [body, {**body, "messages": [*dump(TALK), result, asked]}, {**body, "resume": RESUME}]


def ai_sdk() -> list[dict[str, Any]]:
    dump = wires.get("ai_sdk").dump_messages
    body: dict[str, Any] = {
        "id": "t", "trigger": "submit-message", "messageId": "x", "messages": dump([LAST]), "state": {"a": 1}, "context": CONTEXT,
        "tools": [{"name": "look", "description": "Looks.", "inputSchema": {}}],
    }  # fmt: skip
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGk="}
    asked = {
        "id": "u2",
        "role": "user",
        "parts": [{"type": "text", "text": "Please roll."}, picture],
    }
    again = {**body, "trigger": "regenerate-message"}
    return [body, {**body, "messages": [*dump(TALK), asked]}, again, {**body, "resume": RESUME}]


def a2a() -> list[dict[str, Any]]:
    extension = "https://dragoman.dev/a2a/ext/conversation/v1"
    answer = {"data": {"type": "resume", "interruptId": "x", "status": "resolved", "payload": "{}"}}
    files = [{"raw": "aGk=", "mediaType": "image/png", "filename": "a"}, {"data": {"a": [1]}}]
    message: dict[str, Any] = {
        "messageId": "m1", "role": "ROLE_USER", "contextId": "t", "parts": [{"text": "Please roll and pay."}],
        "metadata": {extension: {"run": OURS}, "a": 1}, "extensions": [extension], "referenceTaskIds": ["x"],
    }  # fmt: skip
    how = {
        "acceptedOutputModes": ["text"],
        "historyLength": 2,
        "returnImmediately": False,
        "taskPushNotificationConfig": HOOK,
    }
    sent = {"message": message, "configuration": how, "metadata": {"a": 1}, "tenant": "t"}
    more = {**sent, "message": {**message, "parts": [*message["parts"], *files, answer]}}
    goes_on = {
        **sent,
        "message": {
            "messageId": "m2",
            "role": "ROLE_USER",
            "taskId": "TASK",
            "parts": [{"text": "yes"}],
        },
    }
    page = {
        "pageSize": 3,
        "pageToken": "YQ==",
        "contextId": "t",
        "status": "TASK_STATE_COMPLETED",
        "historyLength": 1,
        "includeArtifacts": True,
        "statusTimestampAfter": "2026-01-02T03:04:05Z",
    }
    one = {"id": "TASK", "historyLength": 1}
    methods = {"ListTasks": page, "GetTask": one, "CancelTask": one, "SubscribeToTask": one, "tasks/get": one, "GetExtendedAgentCard": {},
        "CreateTaskPushNotificationConfig": HOOK, "ListTaskPushNotificationConfigs": {"taskId": "TASK"}, "GetTaskPushNotificationConfig": HOOK,
        "DeleteTaskPushNotificationConfig": HOOK}  # fmt: skip
    asks = [
        (name, params)
        for name in ("SendMessage", "SendStreamingMessage", "message/send", "message/stream")
        for params in (sent, more, goes_on)
    ]
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": name, "params": params}
        for name, params in [*asks, *methods.items()]
    ]
    old = {
        "request": {
            "messageId": "m",
            "role": "ROLE_USER",
            "content": [{"text": "Please roll."}, {"file": {"fileWithBytes": "aGk="}}],
        }
    }
    return [*calls, sent, more, old]


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def post(*_: object) -> PostResult:
        return PostResult(200)

    monkeypatch.setattr(webhooks, "post", post)


BODIES = {"a2a": a2a, "ag_ui": ag_ui, "ai_sdk": ai_sdk}
SECRETS = (b"c2lnbmVk", b"Traceback", b"/dragoman/", b"if it happens again", b"-32603")
ODD: list[Any] = [
    None,
    True,
    -1,
    1e308,
    2**70,
    "",
    "x" * 5000,
    "\0",
    [],
    [[]],
    {},
    {"a": {}},
    ["a", 1],
    {"type": "text"},
    "[" * 900,
]


def changed(chance: Random, value: Any) -> Any:
    """A JSON value with one of its values of another type."""
    fields, items = if_object(value), if_list(value)
    if fields and chance.random() < 0.9:
        key = chance.choice(list(fields))
        return {**fields, key: changed(chance, fields[key])}
    if items and chance.random() < 0.9:
        at = chance.randrange(len(items))
        return [*items[:at], changed(chance, items[at]), *items[at + 1 :]]
    return chance.choice(ODD)


async def put_through(app: Any, wire: str, count: int, seed: int) -> set[int]:
    """So many bodies, mutated → the statuses. None of them is a fault of the server, and nothing of
    them is left."""
    chance, store = Random(seed), app.state.service.answers
    posts = [route.path for route in wires.get(wire).routes if route.method == "POST"]
    statuses: set[int] = set()
    for at in range(count):
        text = json.dumps(chance.choice(BODIES[wire]()))
        known = [
            each.task_id for _, each in (await store.tasks("anonymous", TaskQuery(most=9))).runs
        ]
        task = chance.choice([*known, "none"])
        text = text.replace("TASK", task).replace('"t"', json.dumps(f"t{at % 7}"))
        value = json.loads(text)
        for _ in range(at % 3):
            value = changed(chance, value)
        body = mutate_bytes(chance, text.encode()) if at % 4 == 3 else json.dumps(value).encode()
        path = (
            chance.choice(posts)
            .replace("{model}", "m")
            .replace("{id}", task)
            .replace("{config}", "c")
        )
        stays = (
            b"ubscribe" in body or "subscribe" in path
        )  # a task that waits is shown as long as it waits
        leaves: dict[str, Any] = (
            {"leaves_after": chance.randrange(3)} if stays or chance.random() < 0.05 else {}
        )
        one = await asyncio.wait_for(exchange(app, "POST", path, body, **leaves), 10)
        if leaves:
            continue
        assert one.is_complete, (path, body)
        assert one.status < 500, (path, one.body, body)
        assert not [secret for secret in SECRETS if secret in one.body], (path, one.body, body)
        statuses.add(one.status)
    await app.state.service.runs.idle()
    assert app.state.service.gate.open == 0
    return statuses


@pytest.mark.parametrize("wire", sorted(BODIES))
async def test_whatever_body_comes_the_server_answers_in_its_words(wire: str) -> None:
    async with served_agent(limits=ServerLimits(run_seconds=20), webhooks=POLICY) as app:
        assert {200, 400} <= await put_through(app, wire, 40, 1)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("wire", sorted(BODIES))
async def test_ten_thousand_bodies_leave_nothing(wire: str) -> None:
    async with served_agent(limits=ServerLimits(run_seconds=20), webhooks=POLICY) as app:
        await put_through(app, wire, 100, 2)
        gc.collect()
        tasks = len(asyncio.all_tasks())
        await put_through(app, wire, 10_000, 3)
        gc.collect()
        assert len(asyncio.all_tasks()) == tasks
