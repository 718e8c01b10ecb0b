"""Bytes as nobody means them over gRPC: never a fault of the server, no hang, nothing left."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from dragoman import serve
from dragoman.codec.json_values import if_list, if_object
from dragoman.serve.apis.a2a_grpc import load_methods
from dragoman.serve.core import webhooks
from dragoman.serve.http.limits import ServerLimits
from dragoman.serve.store.answer_store import TaskQuery
from dragoman.testing.mutation import mutate_bytes
from dragoman.transport import AddressPolicy
from dragoman.transport.fetching import PostResult
from support.protocols import served_agent

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(600)]

SERVICE, METHODS = load_methods()
FAULTS = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED}
PARTS = [
    {"text": "Please roll and pay."},
    {"raw": "aGk=", "mediaType": "image/png"},
    {"data": {"a": [1, None, {"b": 1e300}]}},
    {"url": "https://example.org/"},
]
SENT = {
    "message": {"messageId": "m", "role": "ROLE_USER", "contextId": "t", "parts": PARTS, "metadata": {"a": {"b": [1]}}, "extensions": ["x"]},
    "configuration": {"historyLength": 2, "returnImmediately": False, "taskPushNotificationConfig": {"url": "https://hooks.example.org/", "token": "t"}},
    "metadata": {"a": True},
}  # fmt: skip
REPLY = {
    "message": {"messageId": "m", "role": "ROLE_USER", "taskId": "TASK", "parts": [{"text": "yes"}]}
}
PAGE = {
    "pageSize": 3,
    "contextId": "t",
    "status": "TASK_STATE_COMPLETED",
    "historyLength": 1,
    "includeArtifacts": True,
    "statusTimestampAfter": "2026-01-02T03:04:05Z",
}
HOOK = {
    "taskId": "TASK",
    "id": "c",
    "url": "https://hooks.example.org/",
    "authentication": {"scheme": "Bearer", "credentials": "x"},
}
ONE = {"id": "TASK", "historyLength": 1}
ASKS: dict[str, list[dict[str, Any]]] = {
    "SendMessage": [SENT, REPLY], "SendStreamingMessage": [SENT, REPLY], "GetTask": [ONE], "CancelTask": [{"id": "TASK", "metadata": {"a": 1}}],
    "ListTasks": [PAGE, {}], "SubscribeToTask": [{"id": "TASK"}], "CreateTaskPushNotificationConfig": [HOOK],
    "GetTaskPushNotificationConfig": [{"taskId": "TASK", "id": "c"}], "ListTaskPushNotificationConfigs": [{"taskId": "TASK"}],
    "DeleteTaskPushNotificationConfig": [{"taskId": "TASK", "id": "c"}], "GetExtendedAgentCard": [{}],
}  # fmt: skip
ODD: list[Any] = [
    "",
    "x" * 3000,
    "\0",
    0,
    -1,
    2**31 - 1,
    float("nan"),
    float("inf"),
    [],
    {},
    None,
    True,
    "é\U0001f600",
    "9999-12-31T23:59:59Z",
]


def changed(chance: Random, value: Any) -> Any:
    fields, items = if_object(value), if_list(value)
    if fields and chance.random() < 0.9:
        key = chance.choice(list(fields))
        return {**fields, key: changed(chance, fields[key])}
    if items and chance.random() < 0.9:
        at = chance.randrange(len(items))
        return [*items[:at], changed(chance, items[at]), *items[at + 1 :]]
    return chance.choice(ODD)


def request_of(chance: Random, name: str, task: str) -> bytes:
    """The bytes of a request, of which something is not as it should be."""
    value = json.loads(json.dumps(chance.choice(ASKS[name])).replace("TASK", task))
    message = METHODS[name].request_type()
    kind = chance.randrange(4)
    try:
        json_format.ParseDict(
            changed(chance, value) if kind == 1 else value, message, ignore_unknown_fields=True
        )
    except (json_format.Error, ValueError, TypeError, OverflowError):
        message = METHODS[name].request_type()
    data = message.SerializeToString()
    if kind == 2 and data:
        return mutate_bytes(chance, data)
    if kind == 3 and data:
        flipped = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            flipped[chance.randrange(len(flipped))] = chance.randrange(256)
        return bytes(flipped)
    return data


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[Any, Any]]:
    policy = AddressPolicy(["hooks.example.org"])
    async with (
        served_agent(limits=ServerLimits(run_seconds=20), webhooks=policy) as app,
        serve.serve_grpc(app, grace_seconds=0.1) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield app, channel


async def status_of(chance: Random, channel: Any, name: str, data: bytes) -> Any:
    """The status with which a call ends; `None`: its client left."""
    path = f"/{SERVICE}/{name}"
    if not METHODS[name].streams:
        try:
            await channel.unary_unary(path)(data, timeout=10)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK
    call = channel.unary_stream(path)(data, timeout=10)
    leaves = (
        name == "SubscribeToTask" or chance.random() < 0.1
    )  # a task that waits is shown as long as it waits
    try:
        async for _ in call:
            if leaves:
                call.cancel()
                return None
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def put_through(app: Any, channel: Any, count: int, seed: int) -> set[Any]:
    chance, found = Random(seed), set[Any]()
    for _ in range(count):
        page = await app.state.service.answers.tasks("anonymous", TaskQuery(most=9))
        known = [each.task_id for _, each in page.runs]
        name = chance.choice(list(METHODS))
        data = request_of(chance, name, chance.choice([*known, "none"]))
        status = await status_of(chance, channel, name, data)
        assert status not in FAULTS, (name, data)
        found.add(status)
    await app.state.service.runs.idle()
    return found


async def taken(*_: object) -> PostResult:
    return PostResult(200)


async def test_ten_thousand_calls_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected() as (app, channel):
        monkeypatch.setattr(webhooks, "post", taken)
        found = await put_through(app, channel, 200, 1)
        assert {
            grpc.StatusCode.OK,
            grpc.StatusCode.INVALID_ARGUMENT,
            grpc.StatusCode.NOT_FOUND,
        } <= found
        gc.collect()
        tasks = len(asyncio.all_tasks())
        await put_through(app, channel, 10_000, 2)
        gc.collect()
        assert len(asyncio.all_tasks()) <= tasks + 1
        assert app.state.service.gate.open == 0


@pytest.mark.parametrize(
    "data", [b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a" * 5000, b"\x0b" * 3000], ids=range(4)
)
async def test_bytes_that_are_no_message_are_the_clients_fault(data: bytes) -> None:
    async with connected() as (_, channel):
        for name in METHODS:
            if name != "GetExtendedAgentCard":
                status = await status_of(Random(1), channel, name, data)
                assert status is grpc.StatusCode.INVALID_ARGUMENT, name
