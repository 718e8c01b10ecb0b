"""A task is kept as its client reads it, and is the same where it is made anew of what its runs
left in the log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Message
from dragoman.serve.apis import a2a_tasks
from dragoman.serve.store.memory_answers import open_answers
from dragoman.serve.store.stored_answer import Answered
from support.asgi import exchange
from support.protocols import PAID, posted, reply, served_agent

pytestmark = pytest.mark.anyio


async def rpc(app: Any, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return (await exchange(app, "POST", "/a2a", body)).json["result"]


async def send(app: Any, text: str, id: str, **more: Any) -> dict[str, Any]:
    message = {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}], **more}
    return (await rpc(app, "SendMessage", message=message))["task"]


async def runs_of(app: Any, task_id: str) -> list[Answered]:
    return await app.state.service.answers.task("anonymous", task_id)


async def forget_task(app: Any, task_id: str) -> None:
    """Makes the records of a task's runs those of a server that kept no tasks."""
    for run in await runs_of(app, task_id):
        await app.state.service.answers.save(msgspec.structs.replace(run, task=None))


async def check_made_anew(app: Any, task_id: str) -> dict[str, Any]:
    """Returns a task, after comparing it with what is made of its runs alone."""
    kept = await rpc(app, "GetTask", id=task_id)
    await forget_task(app, task_id)
    assert await rpc(app, "GetTask", id=task_id) == kept
    return kept


async def test_a_kept_task_is_what_its_runs_make() -> None:
    async with served_agent() as app:
        rolled = await send(app, "Please roll.", "u1")
        assert (await runs_of(app, rolled["id"]))[-1].task == rolled
        assert await check_made_anew(app, rolled["id"]) == rolled
        waiting = await send(app, "Now pay.", "u2")
        assert await check_made_anew(app, waiting["id"]) == waiting


@pytest.mark.parametrize("kept", [True, False])
async def test_a_task_goes_on_from_what_is_kept_of_it(*, kept: bool) -> None:
    async with served_agent() as app:
        task_id = (await send(app, "Now pay.", "u1"))["id"]
        if not kept:
            await forget_task(app, task_id)
        done = await send(app, "Yes", "u2", taskId=task_id)
        assert (done["status"]["state"], PAID) == ("TASK_STATE_COMPLETED", [3])
        said = [
            part["text"] for each in done["history"] for part in each["parts"] if "text" in part
        ]
        assert [text for text in said if text in ("Now pay.", "Yes")] == ["Now pay.", "Yes"]
        assert await check_made_anew(app, task_id) == done


async def test_a_cancelled_task_is_cancelled_either_way() -> None:
    async with served_agent() as app:
        task_id = (await send(app, "Now pay.", "u1"))["id"]
        cancelled = await rpc(app, "CancelTask", id=task_id)
        assert await check_made_anew(app, task_id) == cancelled
        assert cancelled["status"]["state"] == "TASK_STATE_CANCELED"


async def test_what_another_protocol_does_with_a_task_is_in_it() -> None:
    async with served_agent() as app:
        waiting = await send(app, "Now pay.", "u1", contextId="trip")
        pending = (await runs_of(app, waiting["id"]))[-1].pending
        resume = [
            {"interruptId": pending[0].id, "status": "resolved", "payload": {"approved": True}}
        ]
        await posted(app, "ag_ui", "trip", [], resume=resume)
        done = await check_made_anew(app, waiting["id"])
        assert done["status"]["state"] == "TASK_STATE_COMPLETED"
        assert len(done["artifacts"]) > len(waiting["artifacts"])


async def test_a_large_task_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a2a_tasks, "_MOST_TASK_BYTES", 1000)

    def say_much(request: Any) -> Message:
        return Message.model("word " * 300)

    async with served_agent(say_much) as app:
        task = await send(app, "Hi.", "u1")
        assert (await runs_of(app, task["id"]))[-1].task is None
        assert await rpc(app, "GetTask", id=task["id"]) == task


async def test_getting_a_task_reads_the_store_once(tmp_path: Path) -> None:
    store = open_answers(f"sqlite:///{tmp_path}/answers.db")
    finds: list[list[str]] = []
    find = store.find

    async def noted(owner: str, keys: Iterable[str]) -> Answered | None:
        finds.append(list(keys))
        return await find(owner, finds[-1])

    store.find = noted
    async with served_agent(reply, store=store) as app:
        task = await send(app, "Please roll.", "u1")
        finds.clear()
        app.state.service.log.read = None  # nothing is read of the log
        assert await rpc(app, "GetTask", id=task["id"]) == task
        assert finds == [[f"task:{task['id']}"]]
