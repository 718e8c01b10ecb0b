"""What coding agents do that other clients do not: system texts between messages, arguments that they
fill in, a field that the model they name refuses (issue R)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, ToolCallPart, serve
from dragoman.message import Role
from dragoman.request import HttpRequest, ModelRequest
from dragoman.serve.core.model_api_turn import _put_system
from dragoman.serve.store.stored_answer import latest_keys
from dragoman.testing import ScriptedModel
from support.gateway import AsgiTransport
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

TOOL = {
    "name": "edit",
    "input_schema": {
        "type": "object",
        "properties": {"old": {"type": "string"}, "all": {"type": "boolean"}},
        "required": ["old"],
    },
}


def answer(request: ModelRequest) -> Message:
    number = sum(message.role is Role.MODEL for message in request.messages)
    return Message.model(f"Step {number}.", ToolCallPart(f"call_{number}", "edit", {"old": "a b"}))


class ClaudeCode:
    """A client of Anthropic's API that puts a system text behind its first message, and fills in
    the arguments of calls."""

    def __init__(self, wire: str, *, fills_in: bool) -> None:
        self.upstream = ScriptedModel(answer, wire=wire)
        self.transport = AsgiTransport(serve.app(gateway=serve.Gateway({"m": self.upstream})))
        self.fills_in = fills_in
        self.messages: list[Any] = [
            {"role": "user", "content": "Edit it."},
            {"role": "system", "content": "# Environment\nThe folder is /work."},
        ]

    async def ask(self) -> None:
        body = {
            "model": "m",
            "max_tokens": 99,
            "system": "You edit.",
            "tools": [TOOL],
            "messages": self.messages,
        }
        headers = {"content-type": "application/json", "authorization": "Bearer none"}
        response = await self.transport.send(HttpRequest("http://h/v1/messages", headers, body))

        given_ = msgspec.json.decode(await response.read())
        assert response.status == 200, given_
        content = given_["content"]
        [call] = [block for block in content if block["type"] == "tool_use"]
        if self.fills_in:
            call["input"] = {"all": False, **call["input"]}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "done"}
        self.messages += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": [result]},
        ]


LISTS = {"openai_chat": "messages", "openai_responses": "input", "google": "contents"}


@pytest.mark.parametrize("fills_in", [False, True], ids=["as-given", "filled-in"])
@pytest.mark.parametrize("wire", list(LISTS))
async def test_a_system_text_between_messages_stays_and_each_request_begins_with_the_one_before(
    wire: str, fills_in: bool
) -> None:
    client = ClaudeCode(wire, fills_in=fills_in)
    for turn in range(4):
        if turn == 2:
            client.messages.append({"role": "system", "content": "# Later\nThe tests fail."})
        await client.ask()
    bodies = [body[LISTS[wire]] for body in client.upstream.bodies]
    assert all(str(body).count("# Environment") == 1 for body in bodies)
    assert [str(body).count("# Later") for body in bodies] == [0, 0, 1, 1]
    for before, after in pairwise(bodies):
        assert after[: len(before)] == before


async def test_arguments_that_the_client_filled_in_go_to_the_provider() -> None:
    client = ClaudeCode("openai_chat", fills_in=True)
    await client.ask()
    await client.ask()
    assert '"all":false' in str(client.upstream.bodies[-1]).replace(" ", "")


def test_a_call_is_known_by_its_id_and_name_behind_all_that_was_said() -> None:
    before = [Message.user("Edit it."), Message.model("What?"), Message.user("That.")]

    def keys(before: list[Message], *calls: ToolCallPart) -> set[str]:
        return set(latest_keys([*before, Message.model(*calls)], "scope"))

    given_ = keys(before, ToolCallPart("call_0", "edit", {"old": "a"}))
    assert given_ & keys(before, ToolCallPart("call_0", "edit", {"old": "a", "all": False}))
    assert not given_ & keys(before, ToolCallPart("call_1", "edit", {"old": "b"}))
    assert not given_ & keys(before, ToolCallPart("call_0", "write", {"old": "b"}))
    # Many providers number the calls of each conversation.
    assert not given_ & keys(before[1:], ToolCallPart("call_0", "edit", {"old": "b"}))


MESSAGES = st.lists(
    st.sampled_from([Message.user("hi"), Message.model("hello"), Message.system("be kind")]),
    max_size=12,
)


@given(MESSAGES)
def test_system_texts_go_back_to_where_they_were(copy: list[Message]) -> None:
    spoken = [message for message in copy if message.role is not Role.SYSTEM]
    assert _put_system(spoken, copy) == copy


@given(MESSAGES, MESSAGES)
def test_no_message_is_lost_or_moved(messages: list[Message], copy: list[Message]) -> None:
    put = _put_system(messages, copy)
    is_system = [message.role is Role.SYSTEM for message in put]
    assert sum(is_system) == sum(message.role is Role.SYSTEM for message in copy)
    assert [message for message, system in zip(put, is_system, strict=True) if not system] == [
        message for message in messages if message.role is not Role.SYSTEM
    ]


@pytest.mark.parametrize(
    ("model", "sent", "got"),
    [
        ("gpt-5", {"max_tokens": 50}, {"max_completion_tokens": 50}),
        ("gpt-5", {"max_tokens": 50, "max_completion_tokens": 60}, {"max_completion_tokens": 60}),
        ("gpt-4o", {"max_tokens": 50}, {"max_tokens": 50}),
    ],
)
async def test_a_field_that_the_named_model_refuses_goes_by_its_newer_name(
    model: str, sent: dict[str, Any], got: dict[str, Any]
) -> None:

    record = msgspec.structs.replace(PROVIDERS["openai_chat"], chat_model=model)
    upstream = ScriptedModel.like(record, ["Hi."], key_required=False)
    app = serve.app(gateway=serve.Gateway({model: upstream}))
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **sent}
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    transport = AsgiTransport(app)
    response = await transport.send(HttpRequest("http://h/v1/chat/completions", headers, body))
    assert response.status == 200
    names = ("max_tokens", "max_completion_tokens")
    assert {name: upstream.bodies[-1][name] for name in names if name in upstream.bodies[-1]} == got
    assert "dragoman-loss" not in transport.headers[-1]
