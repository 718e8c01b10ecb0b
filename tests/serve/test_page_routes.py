"""What the page asks of its server: conversations, runs, plans and calls."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from dragoman.errors import RateLimitError
from dragoman.event import (
    Event,
    MessageFinished,
    RunError,
    RunFinished,
    ToolStarted,
    event_from_json,
)
from dragoman.fold import fold
from dragoman.message import Message, ThinkingPart
from dragoman.request import ModelRequest
from support.page import OTHER, OWN, Page, costs, frames, page_app

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[True, False], ids=["memory", "without memory"])
async def page(request: Any) -> Any:
    app = page_app(memory=request.param)
    async with app.router.lifespan_context(app):
        yield Page(app)


def has_memory(page: Page) -> bool:
    return page.app.state.service.backends[0].get_served("a").agent.memory is not None


async def test_agents_say_what_they_are(page: Page) -> None:
    (agent,) = (await page.get("/page/agents"))["agents"]
    assert agent["name"] == "a"
    assert [model["name"] for model in agent["models"]] == [OWN, OTHER]
    assert [tool["name"] for tool in agent["tools"]] == ["pay"]
    assert agent["tools"][0]["approval"] is agent["tools"][0]["editable"] is True
    assert agent["titles"] is has_memory(page)
    assert "image/*" in agent["attachments"]


async def test_a_conversation_begins_goes_on_and_ends(page: Page) -> None:
    assert (await page.get("/page/threads"))["items"] == []
    await page.start("t", text="hello")
    await page.start("t", text="again", model=OTHER)
    (entry,) = (await page.get("/page/threads"))["items"]
    assert entry["id"] == "t"
    assert entry["title"] == ("hello" if has_memory(page) else "again")
    thread = await page.get("/page/threads/t")
    assert [message["role"] for message in thread["messages"]] == ["user", "model"] * 2
    assert thread["messages"][3]["content"] == [{"type": "text", "text": "Seen 3: again"}]
    assert thread["messages"][1]["origin"] == {
        "provider": "anthropic", "model": OWN.partition(":")[2], "served_model": OWN.partition(":")[2],
    }  # fmt: skip
    assert float(thread["messages"][1]["cost"]) > 0
    assert thread["messages"][1]["usage"]["output_tokens"] > 0
    assert "native" not in str(thread["messages"])
    assert (thread["model"], thread["agent"], thread["title"]) == (OTHER, "a", "hello")
    assert thread["run"]["state"] == "success"
    assert (await page("DELETE", "/page/threads/t")).status == 204
    assert (await page.get("/page/threads"))["items"] == []
    assert (await page("GET", "/page/threads/t")).status == 404
    assert (await page("DELETE", "/page/threads/t")).status == 404
    await page.start("t", text="new")
    assert len((await page.get("/page/threads/t"))["messages"]) == 2


async def test_an_approval_is_asked_edited_and_told(page: Page) -> None:
    await page.start("t", text="please pay")
    thread = await page.get("/page/threads/t")
    (waits,) = thread["pending"]
    assert thread["run"]["state"] == "pending"
    assert (waits["reason"], waits["editable"]) == ("approval", True)
    assert waits["call"]["arguments"] == {"sum": 1}
    assert "signature" not in waits
    answer = {"interrupt_id": waits["id"], "approved": True, "arguments": {"sum": 7}}
    run_id = await page.start("t", resume=[answer])
    events = [event for _, event in await page.events(run_id)]
    assert ToolStarted(waits["call"]["id"], "pay", {"sum": 7}) in events
    (tool, model) = (await page.get(f"/page/runs/{run_id}"))["spans"]
    assert (tool["kind"], tool["name"], tool["edited"]) == ("tool", "pay", {"sum": 7})
    assert tool["start"] <= tool["end"] <= model["end"]
    assert (await page.get("/page/threads/t"))["pending"] == []
    again = await page("POST", "/page/threads/t/runs", {"resume": [answer]})
    assert again.status == 400


async def test_an_approval_is_denied_with_a_reason(page: Page) -> None:
    await page.start("t", text="pay")
    (waits,) = (await page.get("/page/threads/t"))["pending"]
    answer = {"interrupt_id": waits["id"], "approved": False, "reason": "too dear"}
    run_id = await page.start("t", resume=[answer])
    events = [event for _, event in await page.events(run_id)]
    results = [result for message in fold(events) for result in message.tool_results]
    assert results[0].denied
    assert "too dear" in str(results[0].result)
    assert not [event for event in events if isinstance(event, ToolStarted)]


async def test_an_answer_is_made_anew_by_its_id(page: Page) -> None:
    await page.start("t", text="one")
    await page.start("t", text="two")
    await page.start("t", text="three")
    before = (await page.get("/page/threads/t"))["messages"]
    await page.start("t", regenerate=before[3]["id"])
    after = (await page.get("/page/threads/t"))["messages"]
    assert [message["id"] for message in after[:3]] == [message["id"] for message in before[:3]]
    assert len(after) == 4
    assert after[3]["id"] != before[3]["id"]
    await page.start("t", regenerate="")
    assert len((await page.get("/page/threads/t"))["messages"]) == 4
    got = await page("POST", "/page/threads/t/runs", {"regenerate": "nothing"})
    assert got.status == 400
    assert "no message or turn has the id" in got.json["error"]["message"]


async def test_files_go_to_the_model() -> None:
    seen: list[ModelRequest] = []

    def reply(request: ModelRequest) -> str:
        seen.append(request)
        return "A picture."

    app = page_app(reply=reply)
    async with app.router.lifespan_context(app):
        page = Page(app)
        file = {"name": "p.png", "media_type": "image/png", "data": "iVBORw0KGgo="}
        await page.start("t", text="what?", files=[file])
        (message, _) = (await page.get("/page/threads/t"))["messages"]
    assert [type(part).__name__ for part in seen[0].messages[0].content] == ["TextPart", "DataPart"]
    assert message["content"][1]["data"] == "iVBORw0KGgo="


async def test_a_run_is_read_from_any_event_on(page: Page) -> None:
    run_id = await page.start("t", text="please pay")
    whole = await page.events(run_id)
    assert whole[-1][0] == (await page.get(f"/page/runs/{run_id}"))["end"]
    for start in range(whole[-1][0] + 2):
        rest = await page.events(run_id, start)
        assert [end for end, _ in rest] == sorted({end for end, _ in rest})
        assert all(end > start for end, _ in rest)
        head = [event for end, event in whole if end <= start]
        # A reload in the middle of joined deltas begins with what is left of them.
        if [end for end, _ in whole if end > start] == [end for end, _ in rest]:
            assert fold([*head, *[event for _, event in rest]]) == fold(
                [event for _, event in whole]
            )


async def test_a_reload_at_any_event_shows_what_no_reload_shows() -> None:
    gate, text = asyncio.Event(), "The answer to everything. " * 20

    async def reply(request: ModelRequest) -> Any:
        for word in text.split(" "):
            yield word + " "
            await asyncio.sleep(0)
        await gate.wait()

    def answer(request: ModelRequest) -> Any:
        return reply(request)

    app = page_app(reply=answer)
    async with app.router.lifespan_context(app):
        page = Page(app)
        got = await page("POST", "/page/threads/t/runs", {"text": "go"})
        run_id = got.json["run_id"]
        reader = asyncio.create_task(page("GET", f"/page/runs/{run_id}/events?from=0"))
        await asyncio.sleep(0.1)
        thread = await page.get("/page/threads/t")
        assert (thread["run"]["run_id"], thread["run"]["state"]) == (run_id, "running")
        assert thread["messages"] == []  # the run tells all of it
        listed = await page.get(f"/page/runs/{run_id}/events?format=json")
        end = listed["items"][-1]["n"] + 1
        later = asyncio.create_task(page("GET", f"/page/runs/{run_id}/events?from={end}"))
        await asyncio.sleep(0.05)
        gate.set()
        whole, rest = await reader, await later
    told = [event for _, event in frames(whole.body)]
    head = _decode(listed["items"])
    assert fold([*head, *[event for _, event in frames(rest.body)]]) == fold(told)
    assert fold(told)[-1].text.split() == text.split()


def _decode(items: list[Any]) -> list[Event]:
    return [event_from_json(msgspec.json.encode(item["event"])) for item in items]


async def test_a_browser_that_lost_the_stream_says_where(page: Page) -> None:
    run_id = await page.start("t", text="hi")
    whole = await page.events(run_id)
    headers = {**page.headers, "last-event-id": str(whole[4][0])}
    got = await Page(page.app, headers)("GET", f"/page/runs/{run_id}/events")
    assert frames(got.body) == whole[5:]
    assert got.body.endswith(b"event: end\ndata: {}\n\n")
    assert got.headers["content-type"] == "text/event-stream"


async def test_costs_follow_the_answers_that_they_are_of(page: Page) -> None:
    run_id = await page.start("t", text="hi")
    got = await page("GET", f"/page/runs/{run_id}/events")
    (cost,) = costs(got.body)
    (end,) = [
        event
        for _, event in await page.events(run_id)
        if isinstance(event, MessageFinished) and event.usage
    ]
    assert cost["message_id"] == end.message_id
    run = await page.get(f"/page/runs/{run_id}")
    assert run["cost"] == cost["cost"]
    assert run["models"] == [OWN]
    assert run["usage"]["output_tokens"] == end.usage.output_tokens


async def test_a_run_is_a_waterfall(page: Page) -> None:
    run_id = await page.start("t", text="please pay")
    run = await page.get(f"/page/runs/{run_id}")
    model, tool = run["spans"]
    assert (model["kind"], model["model"], model["finish_reason"]) == ("model", OWN, "tool_calls")
    assert 0 <= model["start"] <= model["first"] <= model["end"] <= run["seconds"]
    assert (tool["kind"], tool["name"], tool["arguments"]) == ("tool", "pay", {"sum": 1})
    assert tool["asked"] is not None
    assert tool["start"] is tool["end"] is None  # it waits
    assert run["pending"][0]["call"]["name"] == "pay"


async def test_an_error_is_told_with_when_to_try_again() -> None:
    def reply(request: ModelRequest) -> Any:
        raise RateLimitError("slow down", retry_after=12.0)

    app = page_app(reply=reply)
    async with app.router.lifespan_context(app):
        page = Page(app)
        run_id = await page.start("t", text="hi")
        (_, last) = (await page.events(run_id))[-1]
        run = await page.get(f"/page/runs/{run_id}")
    assert isinstance(last, RunError)
    assert isinstance(last.error, RateLimitError)
    assert last.error.retry_after == 12.0
    assert run["state"] == "error"
    assert run["error"]["retry_after"] == 12.0


async def test_a_run_goes_on_alone_and_is_cancelled(page: Page) -> None:
    gate = asyncio.Event()

    async def slow(request: ModelRequest) -> Any:
        yield "Half "
        await gate.wait()

    app = page_app(reply=lambda request: slow(request))
    async with app.router.lifespan_context(app):
        page = Page(app)
        got = await page("POST", "/page/threads/t/runs", {"text": "go"})
        run_id = got.json["run_id"]
        await asyncio.sleep(0.05)
        assert (await page.get("/page/runs"))["items"][0]["state"] == "running"
        assert (await page("POST", f"/page/runs/{run_id}/cancel")).status == 204
        (_, last) = (await page.events(run_id))[-1]
        assert isinstance(last, RunFinished)
        assert last.outcome == "cancelled"
        assert (await page("POST", f"/page/runs/{run_id}/cancel")).status == 204
        got = await page("POST", "/page/threads/u/runs", {"text": "go"})
        assert (await page("DELETE", "/page/threads/u")).status == 204
        assert (await page("GET", "/page/threads/u")).status == 404
        assert (await page.get(f"/page/runs/{got.json['run_id']}"))["state"] == "cancelled"


async def test_a_plan_says_what_another_model_would_lose() -> None:
    def reply(request: ModelRequest) -> Message:
        signed = {"anthropic": {"signature": "c2lnbmVk"}}
        return Message.model(ThinkingPart("hm", native=signed), "Done.")

    app = page_app(reply=reply)
    async with app.router.lifespan_context(app):
        page = Page(app)
        await page.start("t", text="hi")
        body = {"thread_id": "t", "agent": "a", "model": OTHER}
        plan = (await page("POST", "/page/plan", body)).json
        own = (await page("POST", "/page/plan", {**body, "model": OWN})).json
        wrong = await page("POST", "/page/plan", {**body, "model": "openai:gpt-9"})
        missing = await page("POST", "/page/plan", {**body, "thread_id": "x"})
    assert plan["target"] == OTHER
    assert plan["tokens"] > 0
    assert [group["what"] for group in plan["groups"]] == ["thinking"]
    assert plan["groups"][0]["messages"] == [1]
    assert own["groups"] == []
    assert (wrong.status, wrong.json["error"]["field"]) == (400, "model")
    assert missing.status == 404


async def test_lists_have_pages(page: Page) -> None:
    for number in range(31):
        await page.start(f"t{number}", text=f"question {number}")
    first = await page.get("/page/threads")
    second = await page.get("/page/threads?page=1")
    assert (len(first["items"]), first["has_more"]) == (30, True)
    assert (len(second["items"]), second["has_more"]) == (1, False)
    assert {entry["id"] for entry in (*first["items"], *second["items"])} == {
        f"t{number}" for number in range(31)
    }
    assert first["items"][0]["id"] == "t30"
    found = (await page.get("/page/threads?q=QUESTION+17"))["items"]
    assert "t17" in [entry["id"] for entry in found]
    assert (await page.get("/page/threads?q=zebra"))["items"] == []
    runs = await page.get("/page/runs")
    assert len(runs["items"]) == 31
    assert {run["agent"] for run in runs["items"]} == {"a"}
    (run,) = (await page.get("/page/runs?thread_id=t5"))["items"]
    assert run["thread_id"] == "t5"


async def test_a_long_conversation_is_read_by_pages() -> None:
    app = page_app()
    async with app.router.lifespan_context(app):
        page = Page(app)
        memory = app.state.service.backends[0].get_served("a").agent.memory
        messages = [Message.user(f"{number}") for number in range(130)]
        await memory.save(messages, "t", resource_id="anonymous")
        newest = await page.get("/page/threads/t")
        older = await page.get("/page/threads/t?page=1")
    texts = [message["content"][0]["text"] for message in (*older["messages"], *newest["messages"])]
    assert texts == [f"{number}" for number in range(130)]
    assert (newest["has_more"], older["has_more"]) == (True, False)


async def test_a_title_is_given(page: Page) -> None:
    await page.start("t", text="hi")
    got = await page("PATCH", "/page/threads/t", {"title": " My trip "})
    if not has_memory(page):
        assert got.status == 400
        return
    assert got.json == {"id": "t", "title": "My trip"}
    assert (await page.get("/page/threads"))["items"][0]["title"] == "My trip"
    for title in ("", " ", "x" * 201, 7, "a\nb"):
        assert (await page("PATCH", "/page/threads/t", {"title": title})).status == 400


async def test_calls_of_apis_are_listed(page: Page) -> None:
    body = {"model": "a", "messages": [{"role": "user", "content": "hi"}]}
    assert (await page("POST", "/v1/chat/completions", body)).status == 200
    assert (await page("POST", "/v1/chat/completions", {**body, "n": "x"})).status == 400
    await page.get("/page/threads")
    failed, good = (await page.get("/page/calls"))["items"]
    assert (good["api"], good["purpose"], good["model"], good["status"]) == (
        "openai_chat", "chat", "a", 200,
    )  # fmt: skip
    assert good["usage"]["output_tokens"] > 0
    assert good["seconds"] > 0
    assert good["at"].endswith("Z")
    assert failed["status"] == 400
    assert failed["error"].startswith("n must be")
    assert "owner" not in good


@pytest.mark.parametrize(
    "body",
    [
        {}, {"text": ""}, {"text": 7}, {"text": "a", "regenerate": ""}, {"text": "a", "resume": [{"interrupt_id": "x", "approved": True}]},
        {"resume": []}, {"resume": "x"}, {"resume": [7]}, {"resume": [{"interrupt_id": "x"}]}, {"resume": [{"interrupt_id": 7, "approved": True}]},
        {"resume": [{"interrupt_id": "x", "approved": "yes"}]}, {"resume": [{"interrupt_id": "x", "approved": True}] * 101},
        {"files": [7]}, {"files": "x"}, {"files": [{"name": "n", "media_type": "image/png", "data": "%%%"}]},
        {"files": [{"name": "n", "media_type": "x", "data": "aGk="}]}, {"files": [{"data": "aGk=", "media_type": "image/png", "name": "n" * 201}]},
        {"files": [{"media_type": "image/png", "data": "aGk="}] * 21}, {"regenerate": 7}, {"regenerate": "x" * 201}, {"regenerate": "x"},
        {"text": "a", "model": "openai:gpt-9"}, {"text": "a", "model": 7}, {"text": "a", "agent": 7}, {"text": "\ud83d", "model": "x"},
    ],
)  # fmt: skip
async def test_a_mutated_body_is_refused_in_words(page: Page, body: dict[str, Any]) -> None:
    got = await page("POST", "/page/threads/t/runs", json.dumps(body).encode())
    assert got.status in (400, 404)
    assert got.json["error"]["message"]
    assert (await page.get("/page/runs"))["items"] == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/page/threads?page=-1"), ("GET", "/page/threads?page=x"), ("GET", "/page/runs?page=99999"), ("GET", "/page/calls?page=1e3"),
        ("GET", "/page/threads?" + "&".join(f"a{n}=1" for n in range(50))), ("GET", "/page/threads/" + "x" * 201), ("GET", "/page/runs?thread_id=" + "x" * 201),
        ("POST", "/page/plan"), ("POST", "/page/session"),
    ],
)  # fmt: skip
async def test_a_mutated_request_is_refused_in_words(page: Page, method: str, path: str) -> None:
    got = await page(method, path, b"{}" if method == "POST" else b"")
    assert got.status in (400, 404), got.body
    assert got.json["error"]["message"]


@pytest.mark.parametrize("data", [b"{", b"[]", b"7", b"\xff", b"[" * 9000, b'{"text": "a"'])
async def test_a_body_that_is_no_object_is_refused(page: Page, data: bytes) -> None:
    for path in ("/page/threads/t/runs", "/page/plan", "/page/session"):
        got = await page("POST", path, data)
        assert got.status == 400
        assert got.json["error"]["type"] == "invalid_request"


async def test_what_is_not_there_is_not_found(page: Page) -> None:
    for method, path in (
        ("GET", "/page/runs/x"), ("GET", "/page/runs/x/events"), ("POST", "/page/runs/x/cancel"), ("GET", "/page/threads/x"),
        ("PATCH", "/page/threads/x"), ("DELETE", "/page/threads/x"), ("POST", "/page/threads/x/runs"),
    ):  # fmt: skip
        body = (
            {"text": "a", "agent": "nobody", "title": "t"} if method in ("POST", "PATCH") else b""
        )
        got = await page(method, path, body)
        assert (got.status, got.json["error"]["type"]) == (404, "not_found"), path


async def test_a_past_run_of_another_process_has_the_same_waterfall(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/server.db"
    first = page_app(store=store)
    async with first.router.lifespan_context(first):
        run_id = await Page(first).start("t", text="please pay")
        before = await Page(first).get(f"/page/runs/{run_id}")
    second = page_app(store=store)
    async with second.router.lifespan_context(second):
        assert await Page(second).get(f"/page/runs/{run_id}") == before
        assert len((await Page(second).get("/page/runs"))["items"]) == 1
