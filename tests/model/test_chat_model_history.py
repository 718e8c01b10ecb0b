"""A chat model remembers its conversations: the same is sent as by a model that sees them first,
and new messages alone are dumped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Chat, wires
from dragoman.codec import dump_pieces
from dragoman.codec.signature_check import find_unreadable
from dragoman.message import Message
from dragoman.model.chat_model import ChatModel
from dragoman.request import HttpRequest
from support.model import PROVIDER

pytestmark = pytest.mark.anyio

ANSWER = b'data: {"choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Answer:
    status = 200
    headers: Mapping[str, str] = {"content-type": "text/event-stream"}

    def __init__(self) -> None:
        self.left = [ANSWER]

    async def read(self) -> bytes:
        return self.left.pop() if self.left else b""

    async def close(self) -> None:
        pass


class Sent:
    """A transport that answers all alike, and keeps the bodies."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def send(self, request: HttpRequest) -> Answer:
        self.bodies.append(
            request.body if isinstance(request.body, bytes) else msgspec.json.encode(request.body)
        )
        return Answer()

    async def close(self) -> None:
        pass


def agent() -> tuple[Agent[Any], Sent]:
    transport = Sent()
    return Agent(
        PROVIDER, transport=transport, system="Be brief.", environment={}, api_key="k"
    ), transport


def said(exchanges: int) -> list[Message]:
    return [
        message
        for n in range(exchanges)
        for message in (Message.user(f"Question {n}?"), Message.model(f"Answer {n}."))
    ]


async def test_a_chat_goes_on_with_its_new_messages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    dumped: list[int] = []

    def counting(messages: Sequence[Message], *rest: Any) -> list[str | None]:
        dumped.append(len(messages))
        return find_unreadable(messages, *rest)

    monkeypatch.setattr(dump_pieces, "find_unreadable", counting)
    remembering, transport = agent()
    chat = Chat(remembering, said(200))
    await chat.send("Go on.")
    assert sum(dumped) == 402
    for turn in range(3):
        dumped.clear()
        history = list(chat.history)
        await chat.send(f"And {turn}?")
        assert dumped == [2]
        forgetful, plain = agent()
        await forgetful.send(f"And {turn}?", history=history)
        assert plain.bodies == transport.bodies[-1:]


async def test_a_wire_may_lack_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = wires.get("openai_chat")

    class Simple:
        def __getattr__(self, name: str) -> Any:
            return getattr(chat, name)

        def dump_http(
            self, request: Any, *, target: Any = None, quirks: Any = None, losses: Any = None
        ) -> HttpRequest:
            return chat.dump_http(request, target=target, quirks=quirks, losses=losses)

    def simple_wire(_: str) -> Simple:
        return Simple()

    known, transport = agent()
    await known.send("Go on.", history=said(20))
    monkeypatch.setattr(wires, "get", simple_wire)
    simple, plain = agent()
    assert isinstance(ChatModel(PROVIDER, transport=plain).wire, Simple)
    await simple.send("Go on.", history=said(20))
    assert plain.bodies == transport.bodies
