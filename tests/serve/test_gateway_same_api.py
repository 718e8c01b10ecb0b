"""A gateway from an API to the same API: what a client sends goes on as it is (decision 36)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Message, ToolCallPart, providers, serve, wires
from dragoman.errors import OverloadedError
from dragoman.message import ThinkingPart
from dragoman.request import HttpRequest, ModelRequest, Settings
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.testing import ScriptedModel
from dragoman.wires.serving import get_serving
from support.gateway import AsgiTransport
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "google": "/v1beta/models/{model}:generateContent",
    "mistral": "/mistral/v1/chat/completions",
    "ollama": "/api/chat",
    "cohere": "/v2/chat",
}
BETA = "fine-grained-tool-streaming-2025-05-14,interleaved-thinking-2025-05-14"
CACHE = {"cache_control": {"type": "ephemeral"}}


class Behind:
    """A gateway with one provider of a wire, and a client that posts bodies."""

    def __init__(
        self, wire: str, answers: Any, *, named: bool = True, upstream: Any = None, **how: Any
    ) -> None:
        self.wire = wire
        self.upstream = upstream or ScriptedModel.like(PROVIDERS[wire], answers, key_required=False)
        self.model = str(self.upstream.chat_model) if named else "alias"
        self.app = serve.app(gateway=serve.Gateway({self.model: self.upstream}, **how))
        self.transport = AsgiTransport(self.app)

    async def post(self, body: Mapping[str, Any], **headers: str) -> dict[str, Any]:
        """Sends a body → the answer."""
        path = PATHS[self.wire].replace("{model}", self.model)
        if "{model}" not in PATHS[self.wire]:
            body = {**body, "model": self.model}
        request = HttpRequest(
            f"http://127.0.0.1{path}",
            {"content-type": "application/json", "authorization": "Bearer none", **headers},
            body,
        )
        response = await self.transport.send(request)
        data = b"".join([piece async for piece in _pieces(response)])
        is_json = response.headers["content-type"] == "application/json"
        return {
            **(msgspec.json.decode(data) if is_json and data[:1] == b"{" else {}),
            "status": response.status,
        }

    @property
    def losses(self) -> str:
        """The header of the last answer that tells them."""
        return self.transport.headers[-1].get("dragoman-loss", "")

    @property
    def body(self) -> dict[str, Any]:
        """What the provider got last."""
        return self.upstream.bodies[-1]


async def _pieces(response: Any) -> Any:
    while data := await response.read():
        yield data


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in a body."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)


def faults(body: Mapping[str, Any], signed: Mapping[str, str]) -> list[str]:
    """Why the Messages API answers a request with status 400. `signed`: signature → the thinking
    that it was given for."""
    found: list[str] = []
    if sum("cache_control" in each for each in objects(dict(body))) > 4:
        found.append("A maximum of 4 blocks with cache_control may be provided")
    thinking = body.get("thinking", {})
    if thinking.get("type") == "enabled":
        if thinking["budget_tokens"] >= body["max_tokens"]:
            found.append("max_tokens must be greater than thinking.budget_tokens")
        if body.get("temperature", 1) != 1 or "top_k" in body or body.get("top_p", 1) < 0.95:
            found.append("thinking with a temperature, top_k or top_p")
        for message in body["messages"]:
            blocks = message["content"] if isinstance(message["content"], list) else []
            calls = message["role"] == "assistant" and any(
                block["type"] == "tool_use" for block in blocks
            )
            if calls and blocks[0]["type"] != "thinking":
                found.append("Expected `thinking`, found `tool_use`")
    if "temperature" in body and "top_p" in body:
        found.append("`temperature` and `top_p` cannot both be specified for this model")
    for block in objects(dict(body)):
        if (
            block.get("type") == "thinking"
            and signed.get(block.get("signature", "")) != block["thinking"]
        ):
            found.append("Invalid `signature` in `thinking` block")
    return found


def worker(request: ModelRequest) -> Message:
    """Thinks, and calls a tool, each round another."""
    number = len(request.messages)
    thought = ThinkingPart(
        f"Thought {number}.", native={"anthropic": {"signature": f"sig-{number}"}}
    )
    return Message.model(
        thought,
        f"Step {number}.",
        ToolCallPart(f"toolu_{number}", "bash", {"command": f"ls {number}"}),
    )


def moved(body: dict[str, Any]) -> dict[str, Any]:
    """The request as Claude Code sends it: marks on both system texts, and one on the last block of
    the last message."""
    body = copy.deepcopy(body)
    for message in body["messages"]:
        for block in message["content"]:
            block.pop("cache_control", None)
    body["messages"][-1]["content"][-1] |= CACHE
    return body


def coding() -> dict[str, Any]:
    return {
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": "You code.", **CACHE}, {"type": "text", "text": "Here is the project.", **CACHE}],
        "tools": [{"name": "bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}],
        "thinking": {"type": "enabled", "budget_tokens": 31_999},
        "metadata": {"user_id": "user_1"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Look."}]}],
    }  # fmt: skip


async def rounds(
    there: Behind, body: dict[str, Any], count: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """A conversation of tool rounds → the next request, and what was signed. Each request of it
    arrived as it was."""
    signed: dict[str, str] = {}
    for number in range(count):
        body = moved(body)
        answer = await there.post(body, **{"anthropic-beta": BETA})
        assert answer["status"] == 200
        assert there.body == {**body, "model": there.upstream.chat_model}
        assert there.upstream.sent[-1].headers["anthropic-beta"] == BETA
        assert not faults(there.body, signed), number
        assert there.losses == ""
        blocks = answer["content"]
        signed |= {
            block["signature"]: block["thinking"] for block in blocks if block["type"] == "thinking"
        }
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        body["messages"] += [
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": results},
        ]
    return body, signed


@pytest.mark.mend("2.1")
@pytest.mark.parametrize("named", [True, False])
async def test_marks_that_a_client_moved_do_not_stay_in_their_old_places(named: bool) -> None:
    there = Behind("anthropic", worker, named=named)
    body, signed = await rounds(there, coding(), 10)
    await there.post(moved(body))
    assert not faults(there.body, signed)
    assert len(signed) == 10


@pytest.mark.mend("2.1")
async def test_marks_that_a_client_moved_do_not_pile_up_in_an_agents_conversation() -> None:
    """The agent asks for the cache as a whole, and what was thought comes back."""
    model = ScriptedModel(worker, wire="anthropic")
    agent = Agent(model, transport=model.transport, api_key="k")
    there = Behind("anthropic", None, upstream=model)
    there.transport.app, there.model = serve.app({"agent": agent}), "agent"
    body = coding()
    for number in range(1, 7):
        body = moved(body)
        answer = await there.post(body)
        assert answer["status"] == 200
        assert [*objects(there.body)].count(there.body) == 1
        assert sum("cache_control" in each for each in objects(there.body)) == 1
        assert there.body["cache_control"] == {"type": "ephemeral"}
        thoughts = [
            each
            for each in objects(there.body)
            if each.get("type") == "thinking" and "signature" in each
        ]
        assert len(thoughts) == number - 1
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
            for block in answer["content"]
            if block["type"] == "tool_use"
        ]
        body["messages"] += [
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": results},
        ]


@pytest.mark.mend("2.1")
@pytest.mark.parametrize("named", [True, False])
async def test_an_edit_of_an_earlier_message_leaves_later_thinking_as_it_is(named: bool) -> None:
    there = Behind("anthropic", worker, named=named)
    body, signed = await rounds(there, coding(), 3)
    body["messages"][1]["content"][1]["text"] = "Step, shortened."
    body["messages"][1]["content"][2]["input"] = {"command": "…"}
    body["messages"][2]["content"][0]["content"] = "cut"
    body = moved(body)
    await there.post(body)
    assert there.body["messages"] == body["messages"]
    assert not faults(there.body, signed)


@pytest.mark.mend("2.1")
async def test_thinking_that_a_client_removed_stays_away() -> None:
    there = Behind("anthropic", worker)
    body, _ = await rounds(there, coding(), 2)
    del body["thinking"]
    for message in body["messages"]:
        message["content"] = [block for block in message["content"] if block["type"] != "thinking"]
    body = moved(body)
    await there.post(body)
    assert there.body == {**body, "model": there.upstream.chat_model}

    def thinks(_: ModelRequest) -> Message:
        return Message.model(ThinkingPart("Hm.", native={"google": {"thought": True}}), "Yes.")

    there = Behind("google", thinks)
    contents = [{"role": "user", "parts": [{"text": "Really?"}]}]
    answer = await there.post({"contents": contents})
    parts = [
        part for part in answer["candidates"][0]["content"]["parts"] if not part.get("thought")
    ]
    assert parts
    contents += [{"role": "model", "parts": parts}, {"role": "user", "parts": [{"text": "Sure?"}]}]
    await there.post({"contents": contents})
    assert there.body == {"contents": contents}


@pytest.mark.mend("2.1")
@pytest.mark.parametrize("named", [True, False])
async def test_no_beta_is_added_for_a_client_of_the_api(named: bool) -> None:
    """D-114 adds them for those who ask by the library."""
    edits = {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}
    for how in ({}, {"settings": Settings(temperature=0.5)}):
        there = Behind("anthropic", "Hello.", named=named, **how)
        await there.post(
            {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}], **edits}
        )
        assert "anthropic-beta" not in there.upstream.sent[-1].headers
        assert there.body["context_management"] == edits["context_management"]


@pytest.mark.mend("2.1")
async def test_a_model_that_is_named_gets_what_the_api_refuses_and_another_does_not() -> None:
    asked = {
        "max_tokens": 8000, "temperature": 0.3, "top_p": 0.5, "top_k": 3,
        "thinking": {"type": "enabled", "budget_tokens": 16_000}, "messages": [{"role": "user", "content": "Hi."}],
    }  # fmt: skip
    there = Behind("anthropic", "Hello.")
    await there.post(asked)
    assert there.body == {**asked, "model": there.upstream.chat_model}
    assert faults(there.body, {})
    there = Behind("anthropic", "Hello.", named=False)
    await there.post(asked)
    assert not faults(there.body, {})
    assert {
        f'setting;which="{name}"' for name in ("temperature", "top_p", "top_k", "reasoning")
    } == {each.strip() for each in there.losses.split(",")}


@pytest.mark.mend("2.1")
@pytest.mark.parametrize("wire", sorted({*PATHS} - {"openai_responses"}))
async def test_where_clients_have_all_there_is_nothing_is_kept(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Behind(wire, "Hello.")
    asked = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
    if wire != "google":
        asked = {"messages": [{"role": "user", "content": "Hi."}], "stream": False}
    kept: list[Any] = []
    monkeypatch.setattr(MemoryAnswers, "save", lambda *args: kept.append(args))
    monkeypatch.setattr(MemoryAnswers, "find", lambda *args: kept.append(args))
    await there.post(asked)
    assert not kept
    assert there.body == (
        asked if wire == "google" else {**asked, "model": there.upstream.chat_model}
    )


@pytest.mark.mend("2.1")
async def test_what_chats_libraries_do_not_carry_comes_back_to_a_vendor_that_demands_it() -> None:
    def thinks(request: ModelRequest) -> Message:
        number = len(request.messages)
        thought = ThinkingPart(f"Thought {number}.", native={"openai_chat": {}})
        return Message.model(thought, ToolCallPart(f"call_{number}", "look", {"at": "home"}))

    deepseek = ScriptedModel.like(providers.get("deepseek"), thinks, key_required=False)
    there = Behind("openai_chat", None, upstream=deepseek)
    tools = [
        {
            "type": "function",
            "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
        }
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
    for _ in range(3):
        answer = await there.post({"messages": messages, "tools": tools})
        message = {
            key: value
            for key, value in answer["choices"][0]["message"].items()
            if key in ("role", "content", "tool_calls")
        }
        call = message["tool_calls"][0]["id"]
        messages += [message, {"role": "tool", "tool_call_id": call, "content": "done"}]
    thoughts = [
        each.get("reasoning_content")
        for each in there.body["messages"]
        if each["role"] == "assistant"
    ]
    assert thoughts == ["Thought 1.", "Thought 3."]
    messages[1]["tool_calls"][0]["function"]["arguments"] = '{"at": "work"}'
    await there.post({"messages": messages, "tools": tools})
    thoughts = [
        each.get("reasoning_content")
        for each in there.body["messages"]
        if each["role"] == "assistant"
    ]
    assert thoughts == [None, "Thought 3.", "Thought 5."]


@pytest.mark.mend("2.1")
async def test_what_another_provider_thought_is_told_and_left_out() -> None:
    """A client that changes the model in the middle has another provider's thinking in its copy."""
    first = ScriptedModel.like(
        PROVIDERS["google"],
        lambda _: Message.model(ThinkingPart("Hm."), "Yes."),
        key_required=False,
    )
    second = ScriptedModel.like(PROVIDERS["anthropic"], "No.", key_required=False)
    app = serve.app(gateway=serve.Gateway({"first": first, str(second.chat_model): second}))
    there = Behind("anthropic", None, upstream=second)
    there.transport.app = app
    body = {"max_tokens": 99, "messages": [{"role": "user", "content": "Really?"}]}
    there.model = "first"
    answer = await there.post(body)
    assert answer["content"][0]["type"] == "thinking"
    there.model = str(second.chat_model)
    body["messages"] += [
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": "Sure?"},
    ]
    await there.post(body)
    assert not faults(there.body, {})
    assert there.losses.startswith("thinking")


@pytest.mark.mend("2.6")
@pytest.mark.parametrize("client", ["anthropic", "openai_chat", "google"])
async def test_openai_keeps_nothing_of_other_apis_clients(client: str) -> None:
    for how, store in (({}, False), ({"provider_store": True}, None)):
        upstream = ScriptedModel.like(PROVIDERS["openai_responses"], "Hello.", key_required=False)
        there = Behind(client, None, upstream=upstream, **how)
        asked = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
        if client != "google":
            asked = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 9}
        answer = await there.post(asked)
        assert answer["status"] == 200
        assert there.body.get("store") is store
        assert ("reasoning.encrypted_content" in there.body.get("include", [])) is (store is False)
        assert "previous_response_id" not in there.body


@pytest.mark.mend("2.6")
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"store": True},
        {"store": False},
        {"store": False, "include": ["reasoning.encrypted_content"]},
    ],
)
async def test_what_a_client_of_responses_says_of_storing_counts(more: dict[str, Any]) -> None:
    there = Behind("openai_responses", "Hello.")
    asked = {"input": [{"role": "user", "content": "Hi."}], **more}
    await there.post(asked)
    assert there.body == {**asked, "model": there.upstream.chat_model}


@pytest.mark.mend("2.6")
def test_what_runs_in_the_background_runs_here() -> None:
    body = {
        "model": "alias",
        "input": "Hi.",
        "background": True,
        "previous_response_id": None,
        "store": True,
    }
    forward = get_serving(wires.get("openai_responses")).forward
    assert forward is not None
    sent = forward(ModelRequest("gpt-5"), body, None).body
    assert sent == {"model": "gpt-5", "input": "Hi.", "previous_response_id": None, "store": True}


@pytest.mark.mend("2.1")
@pytest.mark.parametrize("asked", ["first", "second"])
async def test_each_model_of_a_fallback_gets_what_is_its_own(asked: str) -> None:
    """The client's API has what the client sent; another has the conversation as the server knows
    it."""

    def fails(_: ModelRequest) -> Message:
        raise OverloadedError("busy")

    own = ScriptedModel.like(
        PROVIDERS["anthropic"], fails if asked == "second" else worker, key_required=False
    )
    other = ScriptedModel.like(
        PROVIDERS["google"], fails if asked == "first" else "Hello.", key_required=False
    )
    models = [own, other] if asked == "second" else [other, own]
    there = Behind("anthropic", None, upstream=own)
    there.model = "either"
    there.transport.app = serve.app(gateway=serve.Gateway({"either": models}))
    body = coding()
    answer = await there.post(body)
    assert answer["status"] == 200
    assert own.bodies[-1] == {**body, "model": own.chat_model}
    assert other.bodies[-1]["contents"][0]["parts"] == [{"text": "Look."}]


async def test_google_gets_a_result_once_that_the_client_has_twice() -> None:
    """Gemini CLI sends those of a session that it resumes twice, and Google refuses more results
    than there were calls."""

    def result(id_: str, text: str) -> dict[str, Any]:
        return {"functionResponse": {"id": id_, "name": "read", "response": {"output": text}}}

    def call(id_: str) -> dict[str, Any]:
        return {"functionCall": {"id": id_, "name": "read", "args": {}}}

    once = [result("a", "x"), result("b", "x"), {"text": "Go on."}, {"text": "Go on."}]
    contents: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [call("a"), call("b")]},
        {"role": "user", "parts": once},
    ]
    behind = Behind("google", ["Hello."] * 2)
    await behind.post({"contents": contents})
    assert behind.upstream.bodies[-1]["contents"] == contents
    twice = [result("a", "x"), result("a", "x"), result("b", "x"), result("b", "x"), *once[2:]]
    await behind.post({"contents": [*contents[:2], {"role": "user", "parts": twice}]})
    assert behind.upstream.bodies[-1]["contents"] == contents
