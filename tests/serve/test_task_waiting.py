"""Who waits for a task is woken, in this process and by another over the same store; so are the
addresses of its notifications known to both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import pytest

from dragoman.serve.core import service, webhooks
from dragoman.serve.core.service import Waiters, poll_intervals
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.serve.store.stored_answer import Answered
from dragoman.transport import AddressPolicy
from support.asgi import exchange
from support.protocols import PAID, served_agent

pytestmark = pytest.mark.anyio

HOOKS = AddressPolicy(["hooks.example.org"])
HERE = "https://hooks.example.org/"


class Counting(MemoryAnswers):
    """Counts what is read of tasks."""

    reads = 0

    async def find(self, owner: str, keys: Iterable[str]) -> Answered | None:
        keys = list(keys)
        self.reads += keys[0].startswith("task:")
        return await super().find(owner, keys)

    async def task(self, owner: str, task_id: str) -> list[Answered]:
        self.reads += 1
        return await super().task(owner, task_id)


async def rpc(app: Any, method: str, **params: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    answer = (await exchange(app, "POST", "/a2a", json.dumps(body).encode())).json
    return answer.get("result") or answer.get("error") or {}


async def sent(app: Any, text: str, id: str = "u1", **more: Any) -> dict[str, Any]:
    how = more.pop("configuration", {})
    message = {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}], **more}
    return (await rpc(app, "SendMessage", message=message, configuration=how))["task"]


def state(task: Mapping[str, Any]) -> str:
    return task["status"]["state"].removeprefix("TASK_STATE_")


async def until(is_so: Any) -> None:
    with anyio.fail_after(10):
        while not is_so():  # noqa: ASYNC110 what is waited for sets no event
            await asyncio.sleep(0)


@asynccontextmanager
async def subscribed(app: Any, task_id: str) -> AsyncGenerator[asyncio.Task[Any]]:
    """A client that waits for a task."""
    client = asyncio.create_task(exchange(app, "GET", f"/a2a/tasks/{task_id}:subscribe"))
    await until(lambda: len(app.state.service.waiting))
    try:
        yield client
    finally:
        client.cancel()


@pytest.mark.parametrize("how", ["goes on", "cancelled"])
async def test_who_waits_is_woken_and_reads_no_more_than_he_must(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_FIRST_SECONDS", 3600.0)
    store = Counting()
    async with served_agent(store=store) as app:
        task = await sent(app, "Now pay.")
        async with subscribed(app, task["id"]) as client:
            store.reads = 0
            if how == "cancelled":
                await rpc(app, "CancelTask", id=task["id"])
            else:
                await sent(app, "Yes", "u2", taskId=task["id"])
            by_others = store.reads
            with anyio.fail_after(10):
                answer = await client
        assert (b"TASK_STATE_CANCELED" in answer.body, PAID) == (
            (True, []) if how == "cancelled" else (False, [3])
        )
        assert store.reads - by_others <= 1
        assert len(app.state.service.waiting) == 0


async def test_who_leaves_waits_no_more() -> None:
    async with served_agent() as app:
        task = await sent(app, "Now pay.")
        await exchange(app, "GET", f"/a2a/tasks/{task['id']}:subscribe", leaves_after=1)
        await until(lambda: not len(app.state.service.waiting))


def test_another_process_is_looked_for_ever_less_often() -> None:
    """An hour of waiting is some 250 reads; a look every 0.2 s was 18,000."""
    looks = list(islice(poll_intervals(), 250))
    assert looks == sorted(looks)
    assert (looks[0], looks[-1]) == (0.5, 15.0)
    assert sum(looks) > 3600


def test_what_changed_for_one_wakes_nobody_else() -> None:
    room = Waiters()
    with (
        room.subscribe(("me", "t")) as mine,
        room.subscribe(("me", "t")) as too,
        room.subscribe(("you", "t")) as yours,
    ):
        room.notify(("me", "t"))
        room.notify(("nobody",))
        assert (mine.is_set(), too.is_set(), yours.is_set()) == (True, True, False)
    assert len(room) == 0


async def test_a_task_goes_on_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_FIRST_SECONDS", 0.001)
    store = f"sqlite:///{tmp_path}/answers.db"
    async with served_agent(store=store) as one, served_agent(store=store) as other:
        task = await sent(one, "Now pay.")
        async with subscribed(one, task["id"]) as client:
            await sent(other, "Yes", "u2", taskId=task["id"])
            with anyio.fail_after(20):
                assert b"TASK_STATE_COMPLETED" in (await client).body
    assert PAID == [3]


async def test_another_process_lists_and_sends_notifications_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted: list[tuple[str, str]] = []

    class Taken:
        status = 200

    async def post(url: str, _policy: Any, body: Mapping[str, Any], _headers: Any) -> Taken:
        status = body.get("task", body.get("statusUpdate", {})).get("status")
        posted.append((url, state({"status": status}) if status else "-"))
        return Taken()

    monkeypatch.setattr(webhooks, "post", post)
    store = f"sqlite:///{tmp_path}/answers.db"
    async with (
        served_agent(store=store, webhooks=HOOKS) as one,
        served_agent(store=store, webhooks=HOOKS) as other,
    ):
        first = {"taskPushNotificationConfig": {"id": "first", "url": f"{HERE}first", "token": "t"}}
        task = await sent(one, "Now pay.", configuration=first)
        await until(lambda: (f"{HERE}first", "INPUT_REQUIRED") in posted)
        posted.clear()
        made = await rpc(
            one,
            "CreateTaskPushNotificationConfig",
            taskId=task["id"],
            id="second",
            url=f"{HERE}second",
        )
        listed = (await rpc(other, "ListTaskPushNotificationConfigs", taskId=task["id"]))["configs"]
        assert (len(listed), listed[1], listed[0]["token"]) == (2, made, "t")
        await sent(other, "Yes", "u2", taskId=task["id"])
        await until(lambda: sum(at == "COMPLETED" for _, at in posted) == 2)
        for name in ("first", "second"):
            states = [at for url, at in posted if url == f"{HERE}{name}" and at != "-"]
            assert states.count("COMPLETED") == 1, states
        await rpc(other, "DeleteTaskPushNotificationConfig", taskId=task["id"], id="first")
        assert (await rpc(one, "GetTaskPushNotificationConfig", taskId=task["id"], id="first"))[
            "code"
        ] == -32001
        assert len(await one.state.service.webhooks.list_configs("anonymous", task["id"])) == 1


async def test_an_address_that_takes_nothing_is_forgotten_by_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refused:
        status = 500

    posted: list[str] = []

    async def post(url: str, *_: Any) -> Refused:
        posted.append(url)
        return Refused()

    monkeypatch.setattr(webhooks, "post", post)
    async with served_agent(webhooks=HOOKS) as app:
        both = [{"id": "a", "url": f"{HERE}a"}, {"id": "b", "url": f"{HERE}b"}]
        task = await sent(
            app, "Please roll and pay.", configuration={"pushNotificationConfig": both[0]}
        )
        hooks = app.state.service.webhooks
        await sent(app, "Yes", "u2", taskId=task["id"])
        with anyio.fail_after(10):
            while await hooks.list_configs("anonymous", task["id"]):  # noqa: ASYNC110 the store sets no event
                await asyncio.sleep(0)
        assert len(posted) >= 5


@pytest.mark.parametrize(
    "wrong",
    [{"id": "x" * 201}, {"id": "\0"}, {"token": "x" * 20_000}, {"url": "https://127.0.0.1/"}],
    ids=["long", "unprintable", "large", "address"],
)
async def test_what_no_store_should_hold_is_refused(wrong: dict[str, Any]) -> None:
    async with served_agent(webhooks=HOOKS) as app:
        task = await sent(app, "Now pay.")
        refused = await rpc(
            app, "CreateTaskPushNotificationConfig", **{"taskId": task["id"], "url": HERE, **wrong}
        )
        assert refused["code"] == -32602
        assert (await rpc(app, "ListTaskPushNotificationConfigs", taskId=task["id"]))[
            "configs"
        ] == []


async def test_where_nothing_is_kept_no_notifications_are_offered() -> None:
    async with served_agent(store=None, webhooks=HOOKS) as app:
        card = (await exchange(app, "GET", "/.well-known/agent-card.json")).json
        assert card["capabilities"]["pushNotifications"] is False
        assert (await rpc(app, "ListTaskPushNotificationConfigs", taskId="x"))["code"] == -32003


async def test_tasks_are_listed_by_state_and_time() -> None:
    async with served_agent() as app:
        done, asked = await sent(app, "Hi."), await sent(app, "Now pay.", "u2")
        for status, ids in {
            "TASK_STATE_COMPLETED": [done["id"]], "TASK_STATE_INPUT_REQUIRED": [asked["id"]],
            "TASK_STATE_SUBMITTED": [], "TASK_STATE_UNSPECIFIED": [asked["id"], done["id"]],
        }.items():  # fmt: skip
            assert [
                each["id"] for each in (await rpc(app, "ListTasks", status=status))["tasks"]
            ] == ids
        at = (await rpc(app, "GetTask", id=asked["id"]))["status"]["timestamp"]
        assert asked["id"] in [
            each["id"] for each in (await rpc(app, "ListTasks", statusTimestampAfter=at))["tasks"]
        ]
        assert (await rpc(app, "ListTasks", statusTimestampAfter="9999-12-31T23:59:59Z"))[
            "tasks"
        ] == []
        for time in ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z"):
            assert (await rpc(app, "ListTasks", statusTimestampAfter=time))["totalSize"] == 2
        wrongs: list[dict[str, Any]] = [
            {"status": "COMPLETED"},
            {"status": 3},
            {"status": []},
            {"statusTimestampAfter": "soon"},
            {"statusTimestampAfter": 5},
            {"contextId": {}},
        ]
        for wrong in wrongs:
            assert (await rpc(app, "ListTasks", **wrong))["code"] == -32602, wrong
