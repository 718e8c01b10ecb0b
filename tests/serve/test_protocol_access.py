"""Each place of an agent protocol that is about a run, a thread or a task × another's key and
another's id: generated from the routes."""

from __future__ import annotations

import pytest

from dragoman import Message, wires
from support.access import UNKNOWN, Cell, cells, reached
from support.asgi import Exchange, exchange
from support.protocols import PAID, posted, served_agent

pytestmark = pytest.mark.anyio

OWN, OTHER = "own-secret-key", "other-secret-key"
TEXT = "A secret: now pay."


def place(cell: Cell) -> bool:
    return cell.has_id and cell.wire in wires.names("protocol") and cell.method != "HEAD"


async def made(app: object) -> dict[str, str]:
    """What somebody owns, by what it is."""
    await posted(
        app, "ag_ui", "mine-t", [Message.user(TEXT).replace(id="u1")], OWN, runId="mine-run"
    )
    sent = {
        "messageId": "m1",
        "role": "ROLE_USER",
        "parts": [{"text": TEXT}],
        "contextId": "mine-context",
    }
    headers = {"authorization": f"Bearer {OWN}"}
    task = await exchange(app, "POST", "/a2a/message:send", {"message": sent}, headers=headers)
    return {
        "thread": "mine-t",
        "run": "mine-run",
        "context": "mine-context",
        "task": task.json["task"]["id"],
    }


def without(answer: Exchange, name: str) -> tuple[int, bytes]:
    return answer.status, answer.body.replace(name.encode(), b"?")


@pytest.mark.parametrize("wire", wires.names("protocol"))
async def test_what_is_anothers_is_as_if_it_were_not_there(wire: str) -> None:
    async with served_agent(auth=(OWN, OTHER)) as app:
        mine = await made(app)
        places = [cell for cell in cells(app) if place(cell) and cell.wire == wire]
        assert places
        for cell in places:
            nobodys = await reached(app, cell, OTHER, body={})
            assert nobodys.status in (204, 400, 404), (cell, nobodys.body)
            for own in mine.values():
                theirs = await reached(app, cell, OTHER, id=own, body={})
                assert without(theirs, own) == without(nobodys, UNKNOWN), cell
                assert (await reached(app, cell, None, id=own, body={})).status == 401, cell
        for key in (
            "thread:mine-t",
            "run:mine-run",
            "task:mine-context",
        ):  # nor by the store's own names
            for cell in places:
                theirs = await reached(app, cell, OTHER, id=key, body={})
                nobodys = await reached(app, cell, OTHER, body={})
                assert theirs.status == nobodys.status, (cell, key)
                assert b"secret:" not in theirs.body


@pytest.mark.parametrize("wire", wires.names("protocol"))
async def test_the_own_is_reached_after_others_tried(wire: str) -> None:
    async with served_agent(auth=(OWN, OTHER)) as app:
        mine = await made(app)
        places = [cell for cell in cells(app) if place(cell) and cell.wire == wire]
        for cell in places:
            await reached(
                app,
                cell,
                OTHER,
                id=mine["task"] if "tasks" in cell.path else mine["thread"],
                body={},
            )
        assert PAID == []
        read = [
            each
            for each in places
            if each.method == "GET" and each.path.endswith(("/stream", "/tasks/{id}"))
        ]
        assert read
        for cell in read:
            own = await reached(
                app, cell, OWN, id=mine["task"] if "tasks" in cell.path else mine["thread"]
            )
            assert own.status == 200, cell
            assert b"pay" in own.body, cell
