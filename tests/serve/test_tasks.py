"""A2A's endpoints: tasks of runs, by a method's name and by paths, for clients of 1.0 and of
0.3."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoman import fold, wires
from dragoman.message import Role
from dragoman.serve.core import webhooks
from dragoman.transport import AddressPolicy
from dragoman.transport.fetching import PostResult
from support.asgi import Exchange, exchange
from support.protocols import PAID, events_of, posted, served_agent

pytestmark = pytest.mark.anyio

KEYS = ("own-secret-key", "other-secret-key")


def message(text: str, id: str = "u1", **more: Any) -> dict[str, Any]:
    return {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}], **more}


async def rpc(app: Any, method: str, params: Any, key: str = "", **more: Any) -> dict[str, Any]:
    """The answer of JSON-RPC."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    answer = await exchange(
        app,
        "POST",
        "/a2a",
        {"jsonrpc": "2.0", "id": 7, "method": method, "params": params, **more},
        headers=headers,
    )
    assert answer.status == 200, answer.body
    assert answer.json["id"] == 7
    return answer.json


async def sent(app: Any, text: str, id: str = "u1", key: str = "", **more: Any) -> dict[str, Any]:
    """The task of a message."""
    return (await rpc(app, "SendMessage", {"message": message(text, id, **more)}, key))["result"][
        "task"
    ]


def state(task: dict[str, Any]) -> str:
    return task["status"]["state"].removeprefix("TASK_STATE_")


def frames(answer: Exchange) -> list[dict[str, Any]]:
    assert answer.status == 200, answer.body
    return [
        json.loads(each.removeprefix("data: "))
        for each in answer.body.decode().split("\n\n")
        if each
    ]


async def test_a_message_is_answered_by_its_task() -> None:
    async with served_agent() as app:
        task = await sent(app, "Please roll.", contextId="trip")
        assert (state(task), task["contextId"]) == ("COMPLETED", "trip")
        assert [artifact["name"] for artifact in task["artifacts"]] == [
            "response",
            "tool-call",
            "tool-result",
            "response",
        ]
        assert task["history"][0]["parts"] == [{"text": "Please roll."}]
        got = (await rpc(app, "GetTask", {"id": task["id"]}))["result"]
        assert got == task
        assert (
            "history"
            not in (await rpc(app, "GetTask", {"id": task["id"], "historyLength": 0}))["result"]
        )
        assert b"scripted" not in json.dumps(task).encode()
        assert b"c2lnbmVk" not in json.dumps(task).encode()


async def test_the_stream_says_what_the_task_is() -> None:
    """Law 7: the aggregate of the stream is the whole."""
    async with served_agent() as app:
        answer = await exchange(
            app, "POST", "/a2a/message:stream", {"message": message("Please roll.")}
        )
        objects = frames(answer)
        wire: Any = wires.get("a2a")
        whole = wire.aggregate_task(objects)
        assert next(iter(objects[0])) == "task"
        got = await exchange(app, "GET", f"/a2a/tasks/{whole['id']}")
        assert (got.json["artifacts"], state(got.json)) == (whole["artifacts"], "COMPLETED")
        decoder = wire.decoder()
        events = [*decoder.feed(answer.body), *decoder.close()]
        assert [each.text for each in fold(events) if each.role is Role.MODEL] == [
            "Let me.",
            "Seen 3.",
        ]


async def test_each_state_says_when_it_was_reached() -> None:
    """Each had the time of the request, however long the task had taken."""
    times = [datetime(2026, 1, 2, tzinfo=UTC) + timedelta(minutes=at) for at in range(100)]
    async with served_agent() as app:
        app.state.service.clock = iter(times).__next__
        answer = await exchange(
            app, "POST", "/a2a/message:stream", {"message": message("Please roll.")}
        )
        shown: list[Any] = [each.get("task") or each.get("statusUpdate") for each in frames(answer)]
        stamps: list[str] = [each["status"]["timestamp"] for each in shown if each]
        assert stamps == sorted(set(stamps))
        kept = (await rpc(app, "GetTask", {"id": frames(answer)[0]["task"]["id"]}))["result"][
            "status"
        ]["timestamp"]
        assert stamps[0] < kept <= stamps[-1]


async def test_a_task_that_waits_is_answered_in_words_and_pays_once() -> None:
    async with served_agent() as app:
        asked = await sent(app, "Now pay.")
        assert (state(asked), PAID) == ("INPUT_REQUIRED", [])
        assert "pay" in asked["status"]["message"]["parts"][0]["text"]
        done = await sent(app, "Yes", "u2", taskId=asked["id"])
        assert (state(done), PAID, done["id"], done["contextId"]) == (
            "COMPLETED",
            [3],
            asked["id"],
            asked["contextId"],
        )
        got = (await rpc(app, "GetTask", {"id": asked["id"]}))["result"]
        assert got == done
        assert [
            each["parts"][0]["text"] for each in got["history"] if each["role"] == "ROLE_USER"
        ] == [
            "Now pay.",
            "Yes",
        ]
        again = await rpc(app, "SendMessage", {"message": message("Yes", "u3", taskId=asked["id"])})
        assert again["error"]["code"] == -32004
        assert PAID == [3]


async def test_a_task_that_waits_is_denied_or_cancelled() -> None:
    async with served_agent() as app:
        first = await sent(app, "Now pay.", "u1")
        assert state(await sent(app, "No.", "u2", taskId=first["id"])) == "COMPLETED"
        second = await sent(app, "Now pay.", "u3")
        cancelled = (await rpc(app, "CancelTask", {"id": second["id"]}))["result"]
        assert (state(cancelled), PAID) == ("CANCELED", [])
        assert (await rpc(app, "CancelTask", {"id": second["id"]}))["error"]["code"] == -32002
        assert state((await rpc(app, "GetTask", {"id": second["id"]}))["result"]) == "CANCELED"


async def test_an_approval_that_waits_in_a_task_is_answered_by_another_protocol() -> None:
    async with served_agent() as app:
        asked = await sent(app, "Now pay.", contextId="trip")
        kept = await app.state.service.answers.find("anonymous", ["thread:trip"])
        resume = [
            {"interruptId": kept.pending[0].id, "status": "resolved", "payload": {"approved": True}}
        ]
        events = events_of("ag_ui", await posted(app, "ag_ui", "trip", [], resume=resume))
        assert PAID == [3]
        assert [each.text for each in fold(events) if each.role is Role.MODEL][-1].startswith(
            "Seen"
        )
        last = await sent(app, "And?", "u9", contextId="trip")
        assert last["id"] != asked["id"]
        assert last["artifacts"][-1]["parts"] == [{"text": "Seen 5."}]


async def test_tasks_are_listed_a_page_at_a_time() -> None:
    async with served_agent() as app:
        made = [
            (await sent(app, f"{at}", f"u{at}", contextId="even" if at % 2 == 0 else "odd"))["id"]
            for at in range(5)
        ]
        first = (await rpc(app, "ListTasks", {"pageSize": 2}))["result"]
        assert ([task["id"] for task in first["tasks"]], first["totalSize"], first["pageSize"]) == (
            made[:2:-1],
            5,
            2,
        )
        assert "artifacts" not in first["tasks"][0]
        found, token = list(first["tasks"]), first["nextPageToken"]
        while token:
            page = (await rpc(app, "ListTasks", {"pageSize": 2, "pageToken": token}))["result"]
            found, token = [*found, *page["tasks"]], page["nextPageToken"]
        assert [task["id"] for task in found] == made[::-1]
        only = (await exchange(app, "GET", "/a2a/tasks?contextId=odd&includeArtifacts=true")).json
        assert [task["id"] for task in only["tasks"]] == [made[3], made[1]]
        assert only["tasks"][0]["artifacts"]
        for wrong in (
            {"pageSize": 0},
            {"pageSize": 101},
            {"pageSize": "x"},
            {"pageToken": "é"},
            {"pageToken": "bm9uZQ=="},
        ):
            assert (await rpc(app, "ListTasks", wrong))["error"]["code"] == -32602, wrong


async def test_nobody_has_anothers_task() -> None:
    own, other = KEYS
    async with served_agent(auth=KEYS, webhooks=AddressPolicy(["*"])) as app:
        mine = await sent(app, "Now pay.", key=own, contextId="trip")
        for method, params in {
            "GetTask": {"id": mine["id"]},
            "CancelTask": {"id": mine["id"]},
            "SubscribeToTask": {"id": mine["id"]},
            "SendMessage": {"message": message("Yes", taskId=mine["id"])},
            "SendStreamingMessage": {"message": message("Yes", taskId=mine["id"])},
            "CreateTaskPushNotificationConfig": {
                "taskId": mine["id"],
                "url": "https://example.org/",
            },
            "ListTaskPushNotificationConfigs": {"taskId": mine["id"]},
        }.items():
            theirs = await rpc(app, method, params, other)
            nobodys = await rpc(
                app, method, json.loads(json.dumps(params).replace(mine["id"], "x" * 32)), other
            )
            assert theirs["error"]["code"] == -32001, method
            assert json.dumps(theirs).replace(mine["id"], "x" * 32) == json.dumps(nobodys), method
        assert (await rpc(app, "ListTasks", {}, other))["result"]["tasks"] == []
        assert (await sent(app, "Hi.", key=other, contextId="trip"))["artifacts"][-1]["parts"] == [
            {"text": "Seen 1."}
        ]
        assert PAID == []
        assert (
            state((await rpc(app, "GetTask", {"id": mine["id"]}, own))["result"])
            == "INPUT_REQUIRED"
        )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32700),
        (b"{}", -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "Nope"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": 5}}, -32001),
        ({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}, -32602),
        (
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "SendMessage",
                "params": {"message": {"role": "ROLE_AGENT"}},
            },
            -32602,
        ),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}, -32007),
        (
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "ListTaskPushNotificationConfigs",
                "params": {"taskId": "x"},
            },
            -32003,
        ),
    ],
    ids=range(14),
)
async def test_what_is_wrong_is_an_answer_of_json_rpc(body: Any, code: int) -> None:
    async with served_agent() as app:
        answer = await exchange(
            app, "POST", "/a2a", body, headers={"content-type": "application/json"}
        )
        assert (answer.status, answer.json["error"]["code"]) == (200, code), answer.body


async def test_a_version_that_is_not_spoken_is_refused() -> None:
    async with served_agent() as app:
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
        for version, wrong in (("1.0", False), ("", False), ("0.3", False), ("7.1", True)):
            answer = await exchange(app, "POST", "/a2a", body, headers={"a2a-version": version})
            assert ("error" in answer.json) is wrong, version
        refused = await exchange(app, "GET", "/a2a/tasks", headers={"a2a-version": "7.1"})
        assert (refused.status, refused.json["error"]["details"][0]["reason"]) == (
            400,
            "VERSION_NOT_SUPPORTED",
        )


@pytest.mark.parametrize(
    ("kind", "status"),
    [("text/plain", 415), ("multipart/form-data; boundary=x", 415), ("application/a2a+json", 200),
     ("Application/JSON; charset=utf-8", 200), ("", 200)],
    ids=range(5),
)  # fmt: skip
async def test_a_body_of_another_type_is_refused(kind: str, status: int) -> None:
    async with served_agent() as app:
        body = json.dumps({"message": message("Hi.")}).encode()
        headers = {"content-type": kind} if kind else {}
        answer = await exchange(app, "POST", "/a2a/message:send", body, headers=headers)
        assert answer.status == status
        if status == 415:
            assert answer.json["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


async def test_clients_of_0_3_are_served_in_their_words() -> None:
    async with served_agent() as app:
        old = {
            "kind": "message",
            "messageId": "u1",
            "role": "user",
            "parts": [{"kind": "text", "text": "Please roll."}],
        }
        task = (await rpc(app, "message/send", {"message": old}))["result"]
        assert (task["kind"], task["status"]["state"], task["artifacts"][0]["parts"]) == (
            "task", "completed", [{"kind": "text", "text": "Let me."}],
        )  # fmt: skip
        assert (await rpc(app, "tasks/get", {"id": task["id"]}))["result"] == task
        rest = await exchange(
            app,
            "POST",
            "/a2a/v1/message:send",
            {"request": {"messageId": "u2", "role": "ROLE_USER", "content": [{"text": "Hi."}]}},
        )
        assert rest.json["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert rest.json["task"]["history"][0]["content"] == [{"text": "Hi."}]


async def test_the_card_says_where_the_agent_is() -> None:
    async with served_agent() as app:
        card = await exchange(app, "GET", "/.well-known/agent-card.json")
        assert [each["protocolBinding"] for each in card.json["supportedInterfaces"]] == [
            "JSONRPC",
            "HTTP+JSON",
        ]
        assert card.json["protocolVersion"] == "0.3.0"
        assert {skill["id"] for skill in card.json["skills"]} == {"chat", "roll", "pay"}
        current = await exchange(
            app, "GET", "/.well-known/agent-card.json", headers={"a2a-version": "1.0"}
        )
        assert "protocolVersion" not in current.json
        same = await exchange(
            app,
            "GET",
            "/.well-known/agent-card.json",
            headers={"if-none-match": card.headers["etag"]},
        )
        assert (same.status, same.body) == (304, b"")


async def test_who_subscribes_to_a_task_that_waits_sees_it_go_on() -> None:
    async with served_agent() as app:
        asked = await sent(app, "Now pay.")
        subscribed = asyncio.create_task(
            exchange(app, "GET", f"/a2a/tasks/{asked['id']}:subscribe")
        )
        await asyncio.sleep(0.05)
        await sent(app, "Yes", "u2", taskId=asked["id"])
        objects = frames(await subscribed)
        assert state(objects[0]["task"]) == "INPUT_REQUIRED"
        assert (
            state(
                objects[-1]["statusUpdate"]
                if "statusUpdate" in objects[-1]
                else objects[-1]["task"]
            )
            == "COMPLETED"
        )
        over = await exchange(app, "GET", f"/a2a/tasks/{asked['id']}:subscribe")
        assert (over.status, over.json["error"]["details"][0]["reason"]) == (
            400,
            "UNSUPPORTED_OPERATION",
        )


async def test_notifications_go_where_the_policy_lets_them() -> None:
    async with served_agent(webhooks=AddressPolicy(["hooks.example.org"])) as app:
        task = await sent(app, "Now pay.")
        for url in (
            "http://127.0.0.1/",
            "https://other.example.org/",
            "ftp://hooks.example.org/",
            "",
            5,
        ):
            refused = await rpc(
                app, "CreateTaskPushNotificationConfig", {"taskId": task["id"], "url": url}
            )
            assert refused["error"]["code"] == -32602, url
        wanted = {
            "taskId": task["id"],
            "id": "mine",
            "url": "https://hooks.example.org/a",
            "token": "t",
        }
        made = (await rpc(app, "CreateTaskPushNotificationConfig", wanted))["result"]
        assert made == wanted
        assert (await rpc(app, "ListTaskPushNotificationConfigs", {"taskId": task["id"]}))[
            "result"
        ]["configs"] == [made]
        assert (
            await rpc(app, "GetTaskPushNotificationConfig", {"taskId": task["id"], "id": "mine"})
        )["result"] == made
        assert (
            await rpc(app, "DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "mine"})
        )["result"] == {}
        assert (await rpc(app, "ListTaskPushNotificationConfigs", {"taskId": task["id"]}))[
            "result"
        ]["configs"] == []


async def test_clients_of_0_3_name_addresses_in_their_words() -> None:
    async with served_agent(webhooks=AddressPolicy(["hooks.example.org"])) as app:
        task = await sent(app, "Now pay.")
        auth = {"schemes": ["Bearer", "Basic"], "credentials": "secret"}
        config = {
            "id": "c",
            "url": "https://hooks.example.org/a",
            "token": "t",
            "authentication": auth,
        }
        kept = {**config, "authentication": {**auth, "schemes": ["Bearer"]}}
        shown = {"taskId": task["id"], "pushNotificationConfig": kept}
        given = {"taskId": task["id"], "pushNotificationConfig": config}
        method = "tasks/pushNotificationConfig/"
        assert (await rpc(app, f"{method}set", given))["result"] == shown
        assert (await rpc(app, f"{method}list", {"id": task["id"]}))["result"] == [shown]
        for params in ({"id": task["id"]}, {"id": task["id"], "pushNotificationConfigId": "c"}):
            assert (await rpc(app, f"{method}get", params))["result"] == shown
        other = {"id": task["id"], "pushNotificationConfigId": "d"}
        assert (await rpc(app, f"{method}get", other))["error"]["code"] == -32001
        today = (
            await rpc(app, "GetTaskPushNotificationConfig", {"taskId": task["id"], "id": "c"})
        )["result"]
        assert today["authentication"] == {"scheme": "Bearer", "credentials": "secret"}
        gone = {"id": task["id"], "pushNotificationConfigId": "c"}
        assert (await rpc(app, f"{method}delete", gone))["result"] is None
        whole = (await rpc(app, "tasks/get", {"id": task["id"], "historyLength": 0}))["result"]
        assert (
            whole["history"]
            == (await rpc(app, "tasks/get", {"id": task["id"]}))["result"]["history"]
        )


async def test_so_do_those_of_its_rest_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the library of 0.3 sends and reads it."""

    async def post(*_: Any) -> PostResult:
        return PostResult(200)

    monkeypatch.setattr(webhooks, "post", post)
    async with served_agent(webhooks=AddressPolicy(["hooks.example.org"])) as app:
        config = {
            "id": "c",
            "url": "https://hooks.example.org/a",
            "authentication": {"schemes": ["Bearer"], "credentials": "x"},
        }
        asked = {"messageId": "u1", "role": "ROLE_USER", "content": [{"text": "Now pay."}]}
        body = {"request": asked, "configuration": {"pushNotification": {**config, "id": "first"}}}
        task = (await exchange(app, "POST", "/a2a/v1/message:send", body)).json["task"]
        place, name = (
            f"/a2a/v1/tasks/{task['id']}/pushNotificationConfigs",
            f"tasks/{task['id']}/pushNotificationConfigs",
        )
        given = {
            "parent": f"tasks/{task['id']}",
            "configId": "c",
            "config": {"name": f"{name}/c", "pushNotificationConfig": config},
        }
        shown = {"name": f"{name}/c", "pushNotificationConfig": config}
        assert (await exchange(app, "POST", place, given)).json == shown
        assert (await exchange(app, "GET", f"{place}/c")).json == shown
        assert [each["name"] for each in (await exchange(app, "GET", place)).json["configs"]] == [
            f"{name}/first",
            f"{name}/c",
        ]
        assert (await exchange(app, "DELETE", f"{place}/c")).json == {}
        assert (await exchange(app, "GET", f"{place}/c")).status == 404


@pytest.mark.parametrize(
    "wrong",
    [{"token": "a\r\nx: y"}, {"token": "ü"}, {"token": 5}, {"authentication": []}, {"authentication": {"scheme": "Bearer", "credentials": "a\n"}}],
)  # fmt: skip
async def test_what_no_header_can_hold_is_refused_when_it_is_given(wrong: dict[str, Any]) -> None:
    async with served_agent(webhooks=AddressPolicy(["hooks.example.org"])) as app:
        task = await sent(app, "Now pay.")
        config = {"taskId": task["id"], "url": "https://hooks.example.org/a", **wrong}
        assert (await rpc(app, "CreateTaskPushNotificationConfig", config))["error"][
            "code"
        ] == -32602
