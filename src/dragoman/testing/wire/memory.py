"""The check of what a wire dumps for a model that remembers its earlier requests."""

from __future__ import annotations

from inspect import signature
from typing import Any, cast

import msgspec

from dragoman.codec.digest import compute_prefix
from dragoman.codec.history import History
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Message, Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest
from dragoman.testing.check import Skipped, same
from dragoman.testing.samples import CONVERSATION, PARTS, TOOLS
from dragoman.testing.wire.bench import OWN, WireBench, json_of, wire_check

__all__ = ["memory_changes_nothing"]


@wire_check(
    "conversation", "request", look="dump_http: history=, and what codec.history_dump.Way is given"
)
def memory_changes_nothing(bench: WireBench) -> None:
    """What is sent of a conversation that grows, message by message, is the same with the memory of
    its earlier requests as without, wherever it is cut, and so are the losses: what is dumped of a
    message depends on nothing before its segment or behind it."""
    if "history" not in signature(bench.wire.dump_http).parameters:
        raise Skipped(f"the wire {bench.name} has no history=")
    messages = _conversation(bench)
    for length in (1, 2, 5):
        history = History(least=1, segment=length)
        for end in range(1, len(messages) + 1):
            if messages[end - 1].role is not Role.USER:
                continue
            request = ModelRequest("kit-model-1", messages[:end], TOOLS)
            remembered, wanted = _send(bench, request, history), _send(bench, request, None)
            where = f"of {end} messages, remembered in segments of {length},"
            for what in wanted:
                same(remembered[what], wanted[what], f"the {what} of a request {where}")


def _send(bench: WireBench, request: ModelRequest, history: History | None) -> Json:
    """Returns what goes out, and what is told of it."""
    losses: list[Loss] = []
    turn = (
        None if history is None else history.turn(request.messages, request.tools, OWN, bench.name)
    )
    options: Json = {} if turn is None else {"history": turn}
    http = bench.wire.dump_http(request, target=OWN, losses=losses, **options)
    body = json_of(http.body, "dump_http")
    fields = list(cast("Json", body)) if isinstance(body, dict) else []
    return {
        "path": http.path, "headers": dict(http.headers), "body": body, "order of fields": fields,
        "names": dict(http.names), "losses": losses,
    }  # fmt: skip


def _conversation(bench: WireBench) -> tuple[Message, ...]:
    """Returns rounds of calls, every kind of part from both sides, and answers that are signed; the
    provider may have stored the last ones."""
    out = [CONVERSATION[0]]
    for number in range(3):
        for message in CONVERSATION[1:]:
            out.append(
                message.replace(
                    content=tuple([_number(piece, number) for piece in message.content])
                )
            )
        response_id = f"resp_{number}" if number == 2 else None
        signed = msgspec.structs.replace(
            OWN, prefix=compute_prefix(out, bench.name), response_id=response_id
        )
        out.append(Message.model(bench.signed, f"Number {number}.").replace(origin=signed))
        for part in PARTS[number::3]:
            prompt = Message.user(TextPart("See?"), part)
            out += [prompt, Message.model(TextPart("Here."), part)]
        out.append(Message.user("And now?"))
    return tuple(out)


def _number(piece: Any, number: int) -> Any:
    if isinstance(piece, ToolCallPart | ToolResultPart):
        return msgspec.structs.replace(piece, id=f"{piece.id}_{number}")
    return piece
