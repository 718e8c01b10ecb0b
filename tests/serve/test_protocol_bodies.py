"""The OpenAPI document says what clients of agent protocols send: what is answered fits it, and
what is refused for its form does not."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from dragoman import Message, wires
from support.asgi import exchange
from support.protocols import BODIES, served_agent

pytestmark = pytest.mark.anyio

MESSAGE = {"messageId": "u1", "role": "ROLE_USER", "parts": [{"text": "Hi."}]}
METHODS: dict[str, dict[str, Any]] = {
    "SendMessage": {"message": MESSAGE, "configuration": {"historyLength": 2, "returnImmediately": True}},
    "SendStreamingMessage": {"message": {**MESSAGE, "parts": [{"raw": "aGk=", "mediaType": "text/plain"}, {"data": {"a": 1}}]}},
    "GetTask": {"id": "TASK"},
    "CancelTask": {"id": "TASK"},
    "SubscribeToTask": {"id": "TASK"},
    "ListTasks": {"pageSize": 3, "status": "TASK_STATE_COMPLETED", "statusTimestampAfter": "2026-01-02T03:04:05Z"},
    "CreateTaskPushNotificationConfig": {"taskId": "TASK", "url": "https://hooks.example.org/"},
    "GetTaskPushNotificationConfig": {"taskId": "TASK", "id": "c"},
    "ListTaskPushNotificationConfigs": {"taskId": "TASK"},
    "DeleteTaskPushNotificationConfig": {"taskId": "TASK", "id": "c"},
    "GetExtendedAgentCard": {},
}  # fmt: skip


async def schemas(app: Any) -> dict[str, Any]:
    """Path → JSON Schema of what is posted there."""
    paths = (await exchange(app, "GET", "/openapi.json")).json["paths"]
    return {
        path: each["post"]["requestBody"]["content"]["application/json"]["schema"]
        for path, each in paths.items()
        if "post" in each
    }


def fits(schema: Any, body: Any) -> bool:
    validator: Any = jsonschema.Draft202012Validator(schema)
    return validator.is_valid(body)


async def test_each_method_of_json_rpc_has_its_parameters() -> None:
    async with served_agent() as app:
        schema = (await schemas(app))["/a2a"]
        assert {each["properties"]["method"]["const"] for each in schema["anyOf"]} == METHODS.keys()
        for method, params in METHODS.items():
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            assert fits(schema, body), method
            answer = (await exchange(app, "POST", "/a2a", body)).body
            assert b"-32602" not in answer, method
            assert b"-32600" not in answer, method
        good: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": METHODS["SendMessage"],
        }
        wrongs: dict[str, Any] = {
            "jsonrpc": "1.0",
            "method": "Nope",
            "params": {"message": {}},
            "id": [],
        }
        for field, value in wrongs.items():
            assert not fits(schema, {**good, field: value}), field
            assert "error" in (await exchange(app, "POST", "/a2a", {**good, field: value})).json, (
                field
            )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/a2a/message:send", {"message": MESSAGE}),
        (
            "/a2a/v1/message:send",
            {"request": {"messageId": "u", "role": "ROLE_USER", "content": [{"text": "Hi."}]}},
        ),
        (
            "/ag-ui",
            BODIES["ag_ui"][1](
                "t", [Message.user("Hi.").replace(id="u1")], state={"a": 1}, tools=[]
            ),
        ),
        ("/ai-sdk", BODIES["ai_sdk"][1]("t", [Message.user("Hi.").replace(id="u1")])),
    ],
    ids=range(4),
)
async def test_what_is_answered_fits_and_a_body_without_its_message_does_not(
    path: str, body: dict[str, Any]
) -> None:
    async with served_agent() as app:
        schema = (await schemas(app))[path]
        assert fits(schema, body)
        assert (await exchange(app, "POST", path, body)).status == 200
        for field in schema["required"]:
            assert not fits(schema, {name: value for name, value in body.items() if name != field})
            broken = {**body, field: 5}
            assert not fits(schema, broken)
            answer = await exchange(app, "POST", path, json.dumps(broken).encode())
            assert (answer.status, b"Traceback" in answer.body) == (400, False), field


@pytest.mark.parametrize("wire", ["a2a", "ag_ui", "ai_sdk"])
def test_every_schema_is_one_and_of_a_place(wire: str) -> None:
    made: Any = wires.get(wire)
    places = {route.path for route in made.routes if route.method == "POST"}
    assert made.bodies.keys() <= places
    for schema in made.bodies.values():
        jsonschema.Draft202012Validator.check_schema(schema)
