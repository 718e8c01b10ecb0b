"""Going on from stored responses, from the agent down to the wire: D-134, D-135, and what happens
when they are gone."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from dragoman import Agent, Message, ModelRequest, tool
from dragoman.errors import InvalidRequestError, ModelNotFoundError, RateLimitError
from dragoman.model.call import unlink_request
from dragoman.providers.azure import PROVIDER as AZURE
from dragoman.providers.azure_responses import PROVIDER as AZURE_RESPONSES

GONE = {
    "error": {
        "message": "Previous response with id 'resp_1' not found.",
        "code": "previous_response_not_found",
    }
}


class Response:
    def __init__(self, status, body):
        self.status, self.headers, self._body = status, {}, json.dumps(body).encode()

    async def read(self):
        body, self._body = self._body, b""
        return body

    async def close(self):
        pass


class Api:
    """Answers like the Responses API, one response after the other; forgets them when told to."""

    def __init__(self, *outputs):
        self.outputs = list(outputs)
        self.bodies = []
        self.requests = []
        self.forgets = False

    async def send(self, request):
        self.requests.append(request)
        self.bodies.append(request.body)
        if self.forgets and request.body.get("previous_response_id"):
            return Response(400, GONE)
        number = len(self.bodies)
        body = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5-x",
            "status": "completed",
        }
        return Response(200, {**body, "output": self.outputs.pop(0)})

    async def close(self):
        pass


def said(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return [
        {
            "type": "message",
            "id": f"msg_{text}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    ]


CALL = [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "add",
        "arguments": '{"a":1}',
        "status": "completed",
    },
]


@tool
def add(a: int) -> int:
    """Adds one."""
    return a + 1


def agent(api, **how):
    return Agent("openai-responses", transport=api, api_key="k", **how)


def test_a_tool_loop_and_the_next_turn_send_only_what_is_new():
    api = Api(CALL, said("2"), said("bye"))

    async def main():
        speaker = agent(api, tools=[add], system="be")
        first = await speaker.send("1+1?")
        stored = [Message.from_json(message.to_json()) for message in first.messages]
        return first, await speaker.send("thanks", history=stored)

    first, second = asyncio.run(main())
    assert (first.output, second.output) == ("2", "bye")  # D-24, decision 24
    assert [body.get("previous_response_id") for body in api.bodies] == [None, "resp_1", "resp_2"]
    assert api.bodies[1]["input"] == [
        {"type": "function_call_output", "call_id": "call_1", "output": "2"}
    ]
    assert api.bodies[2]["input"] == [{"role": "user", "content": "thanks"}]
    assert all(body["instructions"] == "be" and body["tools"] for body in api.bodies)


def test_a_forgotten_response_is_gone_on_without():
    """The whole conversation is sent instead, without ids that nobody knows any more."""
    api = Api(CALL, said("2"), said("bye"))

    async def main():
        speaker = agent(api, tools=[add])
        first = await speaker.send("1+1?")
        api.forgets = True
        return await speaker.send("thanks", history=first.messages)

    result = asyncio.run(main())
    assert result.output == "bye"
    assert api.bodies[2]["previous_response_id"] == "resp_2"
    assert api.bodies[3] == {
        "model": "gpt-5",
        "input": [
            {"role": "user", "content": "1+1?"},
            {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a":1}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "2"},
            {"role": "assistant", "content": "2"},
            {"role": "user", "content": "thanks"},
        ],
        "tools": api.bodies[0]["tools"],
        "stream": True,
        "previous_response_id": None,
    }


def test_without_a_store_every_request_holds_the_conversation():
    encrypted = [{**CALL[0], "encrypted_content": "gAAA"}, CALL[1]]
    api = Api(encrypted, said("2"))
    asyncio.run(agent(api, tools=[add], options={"store": False}).send("1+1?"))
    assert api.bodies[1]["include"] == ["reasoning.encrypted_content"]
    assert [item.get("type") for item in api.bodies[1]["input"]] == [
        None,
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert api.bodies[1]["input"][1] == encrypted[0]


def test_what_the_response_says_of_itself_is_metadata():
    result = asyncio.run(agent(Api(said("x"))).send("x"))
    assert result.metadata == {
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5-x",
        "response_id": "resp_1",
    }


REQUEST = ModelRequest("m", options={"a": 1})


@pytest.mark.parametrize("kind", [InvalidRequestError, ModelNotFoundError])
def test_a_refused_link_is_taken_out(kind):
    again = unlink_request(REQUEST, kind("Previous response with id 'resp_1' not found."))
    assert again is not None and again.options == {"a": 1, "previous_response_id": None}
    assert unlink_request(again, kind("previous_response_not_found")) is None


@pytest.mark.parametrize(
    "error",
    [InvalidRequestError("no such parameter"), RateLimitError("previous response was too fast")],
)
def test_other_errors_are_none_of_the_links(error):
    assert unlink_request(REQUEST, error) is None


def test_a_link_of_the_callers_own_is_his_to_mend():
    mine = REQUEST.replace(options={"previous_response_id": "resp_9"})
    assert (
        unlink_request(mine, InvalidRequestError("Previous response with id 'resp_9' not found."))
        is None
    )


@pytest.mark.parametrize(
    ("record", "path"), [(AZURE, "/chat/completions"), (AZURE_RESPONSES, "/responses")]
)
def test_azure_is_found_by_its_endpoint_and_sent_its_key(record, path):
    api = Api(said("x"))
    environment = {
        "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/",
        "AZURE_OPENAI_API_KEY": "k",
    }
    speaker = Agent(f"{record.name}:my-deployment", transport=api, environment=environment)

    async def main():
        async for _ in speaker.send_events("x"):
            pass

    try:
        asyncio.run(main())
    except Exception as error:
        assert record is AZURE, error
    (request,) = api.requests
    assert request.path == f"https://mine.openai.azure.com/openai/v1{path}"
    assert request.headers["api-key"] == "k" and "authorization" not in request.headers
    assert request.body["model"] == "my-deployment"


def test_azure_takes_a_token_of_entra_id_too():
    api = Api(said("x"))
    speaker = Agent(
        msgspec.structs.replace(AZURE_RESPONSES, chat_model="d"),
        transport=api,
        api_key="eyJ0",
        base_url="https://x/openai/v1",
    )
    asyncio.run(speaker.send("x"))
    assert api.requests[0].headers["authorization"] == "Bearer eyJ0"
