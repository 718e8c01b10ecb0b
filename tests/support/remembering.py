"""Requests of a model that remembers, beside those of one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.codec import dump_pieces, dump_with_history
from dragoman.codec.digest import compute_prefix
from dragoman.codec.dump_cache import History
from dragoman.codec.signature_check import find_unreadable
from dragoman.errors import DragomanError
from dragoman.loss import Loss
from dragoman.message import Message, Origin, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.providers.provider import Provider
from dragoman.repair import repair_with_losses
from dragoman.request import ModelRequest, ToolSpec

__all__ = ["TOOLS", "Sent", "answered", "chat", "dumped", "request_of", "sent", "target_of"]

Sent = tuple[str, dict[str, str], bytes, dict[str, str], list[Loss], str] | str
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"place": {"type": "string"}}})
TOOLS = [(), (LOOK,), (LOOK, ToolSpec("1st")), (ToolSpec("a b"), LOOK)]


def target_of(provider: Provider, model: str = "m") -> Origin:
    return Origin(provider.name, str(provider.base_url), model)


def sent(
    provider: Provider, request: ModelRequest, history: History | None, target: Origin
) -> Sent:
    """What goes out; of a request that is refused the words."""
    wire = wires.get(provider.wire)
    losses: list[Loss] = []
    turn = (
        None
        if history is None
        else history.turn(request.messages, request.tools, target, wire.name)
    )
    try:
        if turn is None:
            mended, losses = repair_with_losses(request.messages)
            before, request = (
                compute_prefix(mended, wire.name),
                request.replace(messages=tuple(mended)),
            )
            http = wire.dump_http(request, target=target, quirks=provider.quirks, losses=losses)
        else:
            http = wire.dump_http(
                request, target=target, quirks=provider.quirks, losses=losses, history=turn
            )
            before = turn.prefix
        body = msgspec.json.encode(http.body)
    except (DragomanError, UnicodeEncodeError) as error:
        return f"{type(error)} {error}"
    return http.path, dict(http.headers), body, dict(http.names), losses, before


def request_of(
    messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **how: Any
) -> ModelRequest:
    return ModelRequest(str(how.pop("model", "m")), tuple(messages), tuple(tools), **how)


def answered(
    number: int, origin: Origin | None, before: Sequence[Message], wire: str
) -> list[Message]:
    """A question, a call and its result, an answer that is signed."""
    asked = [*before, Message.user(f"Question {number}?")]
    call = ToolCallPart(f"call_{number}", "look", {"place": f"p{number}"})
    for content in (
        [TextPart("Let me look."), call],
        [ThinkingPart("Hm."), TextPart(f"Answer {number}.")],
    ):
        said = Message.model(*content)
        if origin is not None:
            response = f"resp_{number}_{len(asked)}"
            said = said.replace(
                origin=msgspec.structs.replace(
                    origin, prefix=compute_prefix(asked, wire), response_id=response
                )
            )
        asked.append(said)
        if said.tool_calls:
            asked.append(Message.user(ToolResultPart(call.id, call.name, {"sun": number})))
    return asked[len(before) :]


def chat(exchanges: int, origin: Origin | None = None, wire: str = "openai_chat") -> list[Message]:
    messages = [Message.system("Be brief.")]
    for number in range(exchanges):
        messages += answered(number, origin, messages, wire)
    return messages


@pytest.fixture
def dumped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The messages of each segment that is dumped."""
    counted: list[int] = []

    def counting(messages: Sequence[Message], *rest: Any) -> list[str | None]:
        counted.append(len(messages))
        return find_unreadable(messages, *rest)

    for each in (dump_with_history, dump_pieces):
        monkeypatch.setattr(each, "find_unreadable", counting)
    return counted
