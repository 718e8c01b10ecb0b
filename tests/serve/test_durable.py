"""Servers whose runs outlive them: what one began, another ends, shows and keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from dragoman import Agent, Message, serve, tool
from dragoman.errors import SettingsError
from dragoman.message import ToolCallPart
from dragoman.runs import open_log
from dragoman.serve.core import webhooks
from dragoman.testing import ScriptedModel
from dragoman.transport import AddressPolicy
from support.asgi import exchange
from support.durable_serving import KEY, OTHER, WORDS, Server, Servers, Speaker, serving, speaking

pytestmark = pytest.mark.anyio
ALL = "".join(WORDS)


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncGenerator[Servers]:
    async with serving(f"sqlite:///{tmp_path}/server.db") as servers:
        yield servers


async def said(server: Server, response: str, text: str) -> None:
    """Waits until the log has that."""
    spoken = ""
    async for _, event in server.service.runs.attach(response.removeprefix("resp_")):
        spoken += str(getattr(event, "delta", ""))
        if text in spoken:
            return


async def streamed(one: openai.AsyncOpenAI, response: str, **how: Any) -> list[dict[str, Any]]:
    stream = await one.responses.retrieve(response, stream=True, **how)
    return [event.to_dict() async for event in stream]


async def begun(server: Server, key: str = KEY) -> str:
    answer = await server.client(key).responses.create(model="m", input="Hi.", background=True)
    return answer.id


async def ended(server: Server, response: str) -> Any:
    """The answer once it is over."""
    async with asyncio.timeout(20):
        while True:
            found = await server.client().responses.retrieve(response)
            if found.status not in ("queued", "in_progress"):
                return found
            await asyncio.sleep(0.05)


async def test_an_answer_is_made_kept_and_gone_on_from(servers: Servers) -> None:
    speaker = Speaker()
    server = await servers.start(speaking(speaker))
    speaker.permit(8)
    answer = await server.client().responses.create(model="m", input="Hi.")
    assert (answer.status, answer.output_text) == ("completed", ALL)
    assert (await server.client().responses.retrieve(answer.id)).output_text == ALL
    later = await server.client().responses.create(
        model="m", input="And?", previous_response_id=answer.id
    )
    assert later.output_text == ALL
    states = [(run.agent, run.state) for run in await server.service.log.runs()]
    assert states == [("scripted", "success"), ("dragoman.keep", "success")] * 2


async def test_what_a_killed_server_began_another_ends(servers: Servers) -> None:
    dying, living = Speaker(), Speaker()
    first = await servers.start(speaking(dying))
    created = await first.client().responses.create(model="m", input="Hi.", background=True)
    assert created.status == "queued"
    dying.permit(2)
    await said(first, created.id, "two ")
    second = await servers.start(speaking(living))
    assert (await second.client().responses.retrieve(created.id)).status == "in_progress"
    events: list[dict[str, Any]] = []
    async with await second.client().responses.retrieve(created.id, stream=True) as before:
        async for event in before:
            events.append(event.to_dict())
            if event.type == "response.output_text.delta":
                break
    await first.kill()
    living.permit()
    last = events[-1]["sequence_number"]
    rest = await streamed(second.client(), created.id, starting_after=last)
    numbers = [event["sequence_number"] for event in [*events, *rest]]
    assert numbers == list(range(len(numbers)))
    assert rest[-1]["type"] == "response.completed"
    # What was cut is not in the answer.
    final = rest[-1]["response"]
    assert [block["text"] for item in final["output"] for block in item["content"]] == [ALL]
    found = await second.client().responses.retrieve(created.id)
    assert (found.status, found.output_text) == ("completed", ALL)
    assert (dying.asked, living.asked) == (1, 1)
    assert await streamed(second.client(), created.id) == [*events, *rest]


async def test_an_answer_that_nobody_drives_is_queued_and_can_be_cancelled(
    servers: Servers,
) -> None:
    server = await servers.start(speaking(Speaker()), drives=False)
    response = await begun(server)
    assert (await server.client().responses.retrieve(response)).status == "queued"
    assert (await server.client().responses.cancel(response)).status == "cancelled"
    assert (await server.client().responses.retrieve(response)).status == "cancelled"


async def test_a_server_drives_what_another_enqueues(servers: Servers) -> None:
    speaker = Speaker()
    front = await servers.start({"support": speaking(Speaker())}, drives=False)
    response = await front.client().responses.create(model="support", input="Hi.", background=True)
    await servers.start({"support": speaking(speaker)})
    speaker.permit()
    assert (await ended(front, response.id)).output_text == ALL


async def test_a_server_without_the_agent_shows_it_and_drives_nothing(servers: Servers) -> None:
    first, other = Speaker(), Speaker()
    one = await servers.start({"a": speaking(first)}, drives=False)
    two = await servers.start({"b": speaking(other)})
    response = await one.client().responses.create(model="a", input="Hi.", background=True)
    await asyncio.sleep(0.4)
    assert (await two.client().responses.retrieve(response.id)).status == "queued"
    assert other.asked == 0


async def test_a_run_is_cancelled_from_another_server(servers: Servers) -> None:
    speaker = Speaker()
    one = await servers.start(speaking(speaker))
    response = await begun(one)
    speaker.permit(1)
    await said(one, response, "One ")
    two = await servers.start(speaking(Speaker()), drives=False)
    assert (await two.client().responses.cancel(response)).status == "cancelled"
    assert (await one.client().responses.retrieve(response)).status == "cancelled"


async def test_what_is_deleted_on_another_server_does_not_come_back(servers: Servers) -> None:
    speaker = Speaker()
    one = await servers.start(speaking(speaker))
    response = await begun(one)
    speaker.permit(1)
    await said(one, response, "One ")
    two = await servers.start(speaking(Speaker()), drives=False)
    await two.client().responses.delete(response)
    await asyncio.sleep(0.3)
    for server in (one, two):
        with pytest.raises(openai.NotFoundError):
            await server.client().responses.retrieve(response)


async def test_a_server_that_ends_hands_its_runs_over(servers: Servers) -> None:
    one_model, two_model = Speaker(), Speaker()
    one = await servers.start(speaking(one_model))
    response = await begun(one)
    one_model.permit(1)
    await said(one, response, "One ")
    two = await servers.start(speaking(two_model))
    reading = asyncio.create_task(streamed(two.client(), response))
    await one.stop()
    two_model.permit()
    events = await reading
    assert events[-1]["type"] == "response.completed"
    assert (await ended(two, response)).output_text == ALL
    status = await two.service.runs.status(response.removeprefix("resp_"))
    assert status.lost == 0


async def test_a_run_that_takes_too_long_is_cancelled_wherever_it_is(servers: Servers) -> None:
    limits = serve.ServerLimits(run_seconds=0.7)
    driving = await servers.start(speaking(Speaker()), limits=limits)
    driven = await begun(driving)
    assert (await ended(driving, driven)).status == "cancelled"
    await driving.stop()
    idle = await servers.start(speaking(Speaker()), limits=limits, drives=False)
    queued = await begun(idle)
    assert (await ended(idle, queued)).status == "cancelled"


async def test_the_queue_is_limited_over_all_servers(servers: Servers) -> None:
    limits = serve.ServerLimits(open_calls=2)
    one = await servers.start(speaking(Speaker()), limits=limits, drives=False)
    two = await servers.start(speaking(Speaker()), limits=limits, drives=False)
    for server in (one, one):
        await begun(server)
    with pytest.raises(openai.InternalServerError, match="as many"):
        await begun(two)
    run = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "?"}]}
    assert (await two.ask("POST", "/ag-ui", run)).status_code == 503


async def test_an_application_that_was_not_started_makes_no_runs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/server.db"
    app = serve.app(speaking(Speaker()), store=url, durable=True)
    asked = await exchange(app, "POST", "/v1/responses", {"model": "m", "input": "Hi."})
    assert (asked.status, "not started" in asked.json["error"]["message"]) == (503, True)
    await app.state.service.log.close()


async def test_nothing_of_a_callers_keys_is_stored(servers: Servers, tmp_path: Path) -> None:
    speaker = Speaker()
    server = await servers.start(speaking(speaker))
    speaker.permit(12)
    await server.client().responses.create(model="m", input="Hi.", background=True)
    secrets = {"cookie": "session=crumbs-of-a-cookie", "x-api-key": KEY}
    run = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "?"}]}
    assert (await server.ask("POST", "/ag-ui", run, **secrets)).status_code == 200
    await server.stop()
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())  # noqa: ASYNC240
    assert b"dragoman.keep" in data
    assert KEY.encode() not in data
    assert b"crumbs-of-a-cookie" not in data


AG_UI = {"threadId": "t", "runId": "r1", "messages": [{"id": "u", "role": "user", "content": "?"}]}


def frames(body: str) -> list[tuple[int | None, Any]]:
    """Numbers and objects of an AG-UI stream."""
    found: list[tuple[int | None, Any]] = []
    for frame in body.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in frame.splitlines() if not line.startswith(":")
        )
        if "data" in fields:
            number = int(fields["id"]) if "id" in fields else None
            found.append((number, json.loads(fields["data"])))
    return found


async def test_a_client_of_ag_ui_reads_on_elsewhere(servers: Servers) -> None:
    dying, living = Speaker(), Speaker()
    policy = serve.AgentPolicy(on_disconnect="detach")
    one = await servers.start(speaking(dying), policy=policy)
    dying.permit(2)
    asking = asyncio.create_task(one.ask("POST", "/ag-ui", AG_UI))
    async with asyncio.timeout(10):
        while not (runs := await one.service.runs.list(state="running", agent="scripted")):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await said(one, runs[0].run_id, "two ")
    asking.cancel()
    two = await servers.start(speaking(living), policy=policy)
    await one.kill()
    living.permit()
    whole = frames((await two.ask("GET", "/ag-ui/r1/stream")).text)
    assert whole[-1][1]["type"] == "RUN_FINISHED"
    place = next(place for place, (number, _) in enumerate(whole) if number and place > 3)
    after = {"last-event-id": str(whole[place][0])}
    rest = frames((await two.ask("GET", "/ag-ui/r1/stream", **after)).text)
    assert [(number, told["type"]) for number, told in rest] == [
        (number, told["type"]) for number, told in whole[place + 1 :]
    ]
    answers = [
        await two.ask("GET", "/ag-ui/r1/stream", key=OTHER),
        await two.ask("GET", "/ag-ui/t/stream", key=OTHER),
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    # The conversation goes on from it.
    living.permit()
    more = {**AG_UI, "runId": "r2", "messages": [{"id": "v", "role": "user", "content": "And?"}]}
    assert (await two.ask("POST", "/ag-ui", more)).status_code == 200


def message(text: str, **fields: Any) -> dict[str, Any]:
    return {
        "message": {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}], **fields}
    }


async def test_a_task_is_submitted_works_and_ends_elsewhere(servers: Servers) -> None:
    dying, living = Speaker(), Speaker()
    front = await servers.start({"a": speaking(Speaker())}, drives=False)
    body = {**message("Hi."), "configuration": {"returnImmediately": True}}
    sent = (await front.ask("POST", "/a2a/message:send", body)).json()["task"]
    assert sent["status"]["state"] == "TASK_STATE_SUBMITTED"
    path = f"/a2a/tasks/{sent['id']}"
    shown = (await front.ask("GET", path)).json()
    assert (shown["id"], shown["status"]["state"]) == (sent["id"], "TASK_STATE_SUBMITTED")
    for method, place in (("GET", path), ("POST", f"{path}:cancel"), ("GET", f"{path}:subscribe")):
        assert (await front.ask(method, place, key=OTHER)).status_code == 404, place
    one = await servers.start({"a": speaking(dying)})
    dying.permit(2)
    await said(one, sent["id"], "two ")
    assert (await front.ask("GET", path)).json()["status"]["state"] == "TASK_STATE_WORKING"
    following = asyncio.create_task(front.ask("GET", f"{path}:subscribe"))
    await asyncio.sleep(0.2)
    await servers.start({"a": speaking(living)})
    await one.kill()
    living.permit()
    assert '"TASK_STATE_COMPLETED"' in (await following).text
    task = (await front.ask("GET", path)).json()
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    texts = [part["text"] for artifact in task["artifacts"] for part in artifact["parts"]]
    assert ALL in texts
    listed = (await front.ask("GET", "/a2a/tasks?status=TASK_STATE_COMPLETED")).json()
    assert [found["id"] for found in listed["tasks"]] == [sent["id"]]


async def test_a_client_runs_its_tools_and_answers_what_waits(servers: Servers) -> None:
    def reply(request: Any) -> Any:
        if any(message.tool_results for message in request.messages):
            return "It is sunny."
        return Message.model(ToolCallPart("c1", "weather", {"city": "Rome"}))

    server = await servers.start(speaking(reply))
    tools: Any = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]
    asked = await server.client().responses.create(model="m", input="Weather?", tools=tools)
    [call] = [item for item in asked.output if item.type == "function_call"]
    result: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    answer = await server.client().responses.create(
        model="m", input=result, tools=tools, previous_response_id=asked.id
    )
    assert answer.output_text == "It is sunny."


async def test_what_was_admitted_goes_on_under_another_policy(servers: Servers) -> None:
    def reply(request: Any) -> Any:
        return ", ".join(tool.name for tool in request.tools) or "no tools"

    tools: Any = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]
    front = await servers.start(speaking(reply), drives=False)
    queued = await front.client().responses.create(
        model="m", input="Hi.", tools=tools, background=True
    )
    strict = await servers.start(speaking(reply), policy=serve.AgentPolicy(tools="refuse"))
    assert (await ended(front, queued.id)).output_text == "weather"
    with pytest.raises(openai.BadRequestError, match="takes no tools"):
        await strict.client().responses.create(model="m", input="Hi.", tools=tools)


async def test_an_approval_counts_once_over_servers(servers: Servers) -> None:
    paid: list[str] = []

    @tool(requires_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(str(amount))
        return "paid"

    def reply(request: Any) -> Any:
        if any(message.tool_results for message in request.messages):
            return "Done."
        return Message.model(ToolCallPart("c1", "pay", {"amount": 5}))

    one = await servers.start(speaking(reply, tools=[pay]))
    two = await servers.start(speaking(reply, tools=[pay]))
    asked = await one.client().responses.create(model="m", input="Pay 5.")
    [request] = [item for item in asked.output if item.type == "mcp_approval_request"]
    approval: Any = [
        {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    ]
    answers = await asyncio.gather(
        *[
            server.client().responses.create(
                model="m", input=approval, previous_response_id=asked.id
            )
            for server in (one, two)
        ],
        return_exceptions=True,
    )
    assert paid == ["5"]
    assert any(not isinstance(answer, BaseException) for answer in answers)


async def test_an_error_has_its_status_and_leaves_nothing(servers: Servers) -> None:
    def reply(request: Any) -> Any:
        raise openai.OpenAIError("no")

    server = await servers.start(speaking(reply))
    with pytest.raises(openai.APIStatusError):
        await server.client().responses.create(model="m", input="Hi.")
    with pytest.raises(openai.BadRequestError):
        await server.client().responses.create(model="m", input=[])
    failed = await begun(server)
    assert (await ended(server, failed)).status == "failed"


async def test_a_client_that_leaves_cancels_its_run(servers: Servers) -> None:
    speaker = Speaker()
    server = await servers.start(speaking(speaker))
    speaker.permit(1)
    stream = await server.client().responses.create(model="m", input="Hi.", stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    async with asyncio.timeout(10):
        while not await server.service.runs.list(state="cancelled"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"durable": True}, "in a database"),
        ({"durable": True, "store": None}, "in a database"),
        ({"drives": False, "store": "sqlite:///x.db"}, "--no-drive needs --durable"),
        (
            {"durable": True, "store": "sqlite:///x.db", "log": open_log("memory:")},
            "in a database",
        ),
    ],
)
async def test_what_cannot_be_is_said_in_a_line(how: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        serve.app(Agent(ScriptedModel("x")), **how)


async def test_notifications_go_on_on_another_server(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    async def post(url: str, policy: Any, item: Any, headers: Any) -> Any:
        sent.append(item)
        return SimpleNamespace(status=200)

    monkeypatch.setattr(webhooks, "post", post)
    dying, living = Speaker(), Speaker()
    how: dict[str, Any] = {"webhooks": AddressPolicy(["hooks.example.org"])}
    one = await servers.start(speaking(dying), **how)
    config = {"url": "https://hooks.example.org/x", "token": "t"}
    options = {"returnImmediately": True, "taskPushNotificationConfig": config}
    body = {**message("Hi."), "configuration": options}
    task = (await one.ask("POST", "/a2a/message:send", body)).json()["task"]
    dying.permit(2)
    await said(one, task["id"], "two ")
    deaf = await servers.start(speaking(Speaker()), drives=False)
    two = await servers.start(speaking(living), **how)
    await one.kill()
    living.permit()
    async with asyncio.timeout(20):
        while not any("TASK_STATE_COMPLETED" in json.dumps(item) for item in sent):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    jobs = await two.service.log.runs(queue="dragoman.server")
    assert {job.agent for job in jobs} == {"dragoman.keep", "dragoman.notify"}
    async with asyncio.timeout(20):
        while not all(job.is_over for job in await deaf.service.log.runs()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert {job.state for job in await two.service.log.runs()} == {"success"}
    # The second server goes on where the first one stopped; one may have been sent twice.
    states = [item["statusUpdate"]["status"]["state"] for item in sent if "statusUpdate" in item]
    assert states[-1] == "TASK_STATE_COMPLETED"
    assert sum("task" in item for item in sent) <= 2
