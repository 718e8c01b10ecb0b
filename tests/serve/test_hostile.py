"""Bodies as nobody means them, at every endpoint: no 500, no hang, nothing left, and no word of
ours."""

from __future__ import annotations

import asyncio
import gc
import json
from random import Random
from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, serve, tool, wires
from dragoman.serve.http.limits import ServerLimits
from dragoman.testing import ScriptedModel
from dragoman.testing.mutation import mutate_bytes
from support.asgi import Exchange, exchange
from support.serving import ASKS

pytestmark = pytest.mark.anyio

PICTURE = "data:image/png;base64,iVBORw0KGgo="
WEATHER = {"type": "object", "properties": {"at": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "look", "parameters": WEATHER}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "home"}'}}
CHAT = {
    "model": "m", "tools": [FUNCTION], "tool_choice": "auto", "temperature": 0.5, "stop": ["x"], "n": 1, "stream_options": {"include_usage": True},
    "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": WEATHER}},
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "image_url", "image_url": {"url": PICTURE}}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ],
}  # fmt: skip
RICH: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [CHAT],
    "mistral": [CHAT],
    "cohere": [CHAT],
    "ollama": [{"model": "m", "tools": [FUNCTION], "options": {"temperature": 1}, "format": WEATHER, "keep_alive": "5m", "messages": [
        {"role": "user", "content": "Hi.", "images": ["iVBORw0KGgo="]}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"at": "home"}}}]},
        {"role": "tool", "tool_name": "look", "content": "done"}]}],
    "anthropic": [{"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}], "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tools": [{"name": "look", "input_schema": WEATHER}], "tool_choice": {"type": "any"}, "messages": [
        {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}, {"type": "text", "text": "Hi."}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "home"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done", "is_error": False}]}]}],
    "google": [{"systemInstruction": {"parts": [{"text": "Be brief."}]}, "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": WEATHER}]}],
        "generationConfig": {"temperature": 1, "responseMimeType": "application/json", "responseJsonSchema": WEATHER}, "contents": [
        {"role": "user", "parts": [{"text": "Hi."}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "home"}}, "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "done"}}}]}]}],
    "openai_responses": [{"model": "m", "instructions": "Be brief.", "previous_response_id": None, "store": True, "metadata": {"a": "b"}, "include": ["reasoning.encrypted_content"], "text": {"format": {"type": "text"}},
        "tools": [{"type": "function", "name": "look", "parameters": WEATHER, "strict": False}], "reasoning": {"effort": "low"}, "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Hi."}, {"type": "input_image", "image_url": PICTURE, "detail": "auto"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c1", "output": "done"},
        {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}]}],
    "google_interactions": [{"model": "m", "system_instruction": "Be brief.", "tools": [{"type": "function", "name": "look", "parameters": WEATHER}],
        "generation_config": {"temperature": 1}, "response_format": WEATHER, "input": [
        {"type": "user_input", "content": [{"type": "text", "text": "Hi."}, {"type": "image", "mime_type": "image/png", "data": "iVBORw0KGgo="}]},
        {"type": "thought", "signature": "c2ln"}, {"type": "function_call", "id": "c1", "name": "look", "arguments": {"at": "home"}},
        {"type": "function_result", "call_id": "c1", "name": "look", "result": "done"}]}],
    "bedrock_converse": [{"system": [{"text": "Be brief."}], "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": WEATHER}}}], "toolChoice": {"any": {}}},
        "inferenceConfig": {"maxTokens": 9, "temperature": 1}, "messages": [
        {"role": "user", "content": [{"text": "Hi."}, {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}]},
        {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}, {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": "home"}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "done"}]}}]}]}],
}  # fmt: skip
SECRETS = (b"upstream-key", b"in-the-system-text", b"Traceback", b"/dragoman/")


@tool
def roll() -> int:
    """Rolls a die."""
    return 4


def replies(request: Any) -> Any:
    """Calls a tool of the agent's or of the client's now and then."""
    if request.output_schema is not None:
        return '{"at": "home"}'
    names = [spec.name for spec in request.tools if hasattr(spec, "input_schema")]
    if names and len(request.messages) % 3 == 1:
        return Message.model("Well.", ToolCallPart("c9", names[0], {}))
    return "Done."


def apps() -> dict[str, Any]:
    model = ScriptedModel(replies, wire="anthropic")
    agent = Agent(
        model,
        tools=[roll],
        system="in-the-system-text",
        transport=model.transport,
        api_key="upstream-key",
    )
    gateway = serve.Gateway({"m": ScriptedModel(replies, wire="google")}, seal_key=b"k" * 32)
    limits = ServerLimits(run_seconds=20)
    return {
        "agent": serve.app(agent, limits=limits),
        "gateway": serve.app(gateway=gateway, limits=limits),
    }


async def asked(app: Any, wire: str, body: bytes, chance: Random) -> Exchange:
    """Sends a body to one of the places of a wire."""
    posts = [route for route in wires.get(wire).routes if route.method == "POST"]
    route = chance.choice(posts)
    path = route.path.replace("{model}", "m").replace("{id}", "resp_" + "0" * 32)
    return await asyncio.wait_for(exchange(app, "POST", f"/{wire}{path}", body), 30)


async def put_through(wire: str, count: int, seed: int) -> list[int]:
    """So many bodies, mutated → the statuses. None of them is a fault of the server, and nothing of
    them is left."""
    chance, both = Random(seed), apps()
    seeds = [
        *RICH[wire],
        {"model": "m", **ASKS[wire][1]},
        {"model": "m", "input": ["Hi."], "prompt": "Hi.", "texts": ["a"], "input_type": "x"},
    ]
    statuses: list[int] = []
    for at in range(count):
        value = dict(chance.choice(seeds))
        if at % 2:
            value["stream"] = True
        body = (
            mutate_bytes(chance, json.dumps(value).encode())
            if at % 3
            else json.dumps(changed(chance, value)).encode()
        )
        app = both["agent" if at % 5 < 2 else "gateway"]
        one = await asked(app, wire, body, chance)
        text = one.body
        assert one.is_complete, body
        unmet = (
            b"no answer of the form that was asked for" in text
        )  # a schema that the scripted model does not satisfy
        assert one.status < 500 or unmet, (one.status, text, body)
        assert not [secret for secret in SECRETS if secret in text], (text, body)
        statuses.append(one.status)
    for app in both.values():
        assert app.state.service.gate.open == 0
    return statuses


def changed(chance: Random, value: Any) -> Any:
    """A JSON value with one of its values of another type."""
    odd: list[Any] = [
        None,
        True,
        -1,
        1e308,
        2**70,
        "",
        "\ud800",
        "x" * 5000,
        [],
        [[]],
        {},
        {"a": {}},
        ["a", 1],
        {"type": "text"},
    ]
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        return {**value, key: changed(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        return [*value[:at], changed(chance, value[at]), *value[at + 1 :]]
    return chance.choice(odd)


@pytest.mark.parametrize("wire", sorted(ASKS))
async def test_whatever_body_comes_the_server_answers_in_its_words(wire: str) -> None:
    statuses = await put_through(wire, 60, 1)
    assert {200, 400} <= set(statuses)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("wire", sorted(ASKS))
async def test_ten_thousand_bodies_leave_nothing(wire: str) -> None:
    """Nor tasks, nor memory beyond what the store of answers may hold."""
    await put_through(wire, 200, 2)
    gc.collect()
    tasks = len(asyncio.all_tasks())
    await put_through(wire, 10_000, 3)
    gc.collect()
    assert len(asyncio.all_tasks()) == tasks
