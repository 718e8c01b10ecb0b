"""Databases that an earlier release wrote are read as they were: a log of runs, a memory, and a
server's store."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Message, ThinkingPart, serve, tool
from dragoman.event import event_to_json
from dragoman.memory import Memory, Recall
from dragoman.runs import Runs, open_log
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.embedder import WordEmbedder
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parent / "data"
WRITTEN: dict[str, Any] = json.loads((DATA / "written.json").read_text())
"""What the release that wrote the databases said of them."""


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A copy of a database."""
    path = tmp_path / f"{request.param}.db"
    path.write_bytes(gzip.decompress((DATA / f"{request.param}.db.gz").read_bytes()))
    return f"sqlite:///{path}"


def as_json(messages: Any) -> list[Any]:
    return [json.loads(message.to_json()) for message in messages]


def scripted() -> ScriptedModel:
    return ScriptedModel.like(
        PROVIDERS["anthropic"],
        lambda request: f"{len(request.messages)} messages.",
        key_required=False,
    )


@pytest.mark.parametrize("url", ["runs"], indirect=True)
async def test_a_log_of_runs_is_read_and_goes_on(url: str) -> None:
    async with open_log(url) as log, Runs(log) as runs:
        for run_id, written in WRITTEN["runs"].items():
            events = [event async for _, event in runs.attach(run_id)]
            assert [json.loads(event_to_json(event)) for event in events] == written["events"]
            assert as_json(await runs.messages(run_id)) == written["messages"]
            status = await runs.status(run_id)
            assert (status.state, status.end) == (written["state"], written["end"])
            assert (status.posts, status.thread_id) == (written["posts"], written["thread_id"])
        assert [posted.message for posted in await log.read_posts("run-waits")] == [
            {"type": "note", "text": "seen"}
        ]
        assert await log.claim("thread-2", "call_1", "run-waits")
        assert not await log.claim("thread-2", "call_1", "run-other")
        run_id = await runs.start(Agent(scripted()), "Go on.")
        await runs.idle()
        assert (await runs.status(run_id)).state == "success"


@pytest.mark.parametrize("url", ["runs"], indirect=True)
async def test_runs_of_a_servers_conversations_become_those_of_their_callers(url: str) -> None:
    threads = {"r1": "ann/t", "r2": "f%40h/t", "r3": "plain", "r4": None, "r5": "ann/user/t"}
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
        database.executemany(
            'INSERT INTO dragoman_runs (run_id, thread_id, state, "end", posts, token,'
            " lease_until, started_at) VALUES (?, ?, 'success', 1, 0, 1, 0, 0)",
            threads.items(),
        )
    async with open_log(url) as log:
        statuses = await log.status(threads)
        assert {name: status.caller for name, status in statuses.items()} == {
            "r1": "ann", "r2": "f@h", "r3": None, "r4": None, "r5": "ann"
        }  # fmt: skip
        # What they spent is not known, which is not nothing.
        assert {(s.calls, s.tokens, s.cost) for s in statuses.values()} == {(None, None, None)}
        assert len(await log.runs(callers=["ann"])) == 2


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_threads_of_a_memory_are_read_and_go_on(url: str) -> None:
    @tool(requires_approval=True)
    def delete(what: str) -> str:
        """Deletes."""
        return f"deleted {what}"

    async with Memory(url) as memory:
        for thread in WRITTEN["memory"]:
            stored = await memory.recall(thread["id"], per_page=None)
            assert as_json(stored.items) == thread["messages"]
        messages = [Message.from_json(json.dumps(message)) for message in thread["messages"]]
        (thinking,) = [
            piece
            for message in messages
            for piece in message.content
            if isinstance(piece, ThinkingPart)
        ]
        assert thinking.native == {"anthropic": {"signature": "c2ln"}}
        assert [found.thread_id for found in (await memory.search("around")).items] == ["trip"]
        agent = Agent(scripted(), tools=[delete], memory=memory)
        (interrupt,) = agent.pending(messages)
        result = await agent.send(
            None, thread_id="trip", resource_id="anna", resume=[interrupt.approve()]
        )
        assert result.output == f"{len(messages) + 1} messages."
        assert result.messages[0].tool_results[0].result == "deleted notes"
    async with Memory(url, recall=Recall(WordEmbedder())) as memory:
        found = await memory.similar(messages[0].text, resource_id="anna")
        assert found[0].message == messages[0], "what was stored without vectors is found"
        assert await memory.index() == 0


@pytest.mark.parametrize("url", ["server"], indirect=True)
async def test_the_store_of_a_server_is_read_and_goes_on(url: str) -> None:
    app = serve.app({"m": Agent(scripted())}, store=url)
    headers = {"content-type": "application/json", "a2a-version": "1.0"}
    async with app.router.lifespan_context(app):
        for written in WRITTEN["server"]["responses"]:
            path = f"/v1/responses/{written['id']}"
            assert (await exchange(app, "GET", path)).json == written["body"]
            assert (await exchange(app, "GET", f"{path}/input_items")).json == written[
                "input_items"
            ]
        task = WRITTEN["server"]["task"]
        body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task["id"]}}
        response = await exchange(app, "POST", "/a2a", body, headers=headers)
        assert response.json["result"] == task["body"]
        last = WRITTEN["server"]["responses"][-1]["id"]
        body = {"model": "m", "input": "Go on.", "previous_response_id": last}
        response = await exchange(app, "POST", "/v1/responses", body)
        assert response.status == 200, response.body
        assert response.json["output"][-1]["content"][0]["text"] == "7 messages."
