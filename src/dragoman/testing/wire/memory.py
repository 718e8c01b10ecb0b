"""The check of what a wire dumps for a model that remembers its earlier requests."""

from __future__ import annotations

from inspect import signature
from typing import Any, cast

import msgspec

from dragoman.codec.digest import compute_prefix
from dragoman.codec.dump_cache import History
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Message, Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest
from dragoman.testing.check import Skipped, require_equal
from dragoman.testing.samples import CONVERSATION, PARTS, TOOLS
from dragoman.testing.wire.bench import ORIGIN, WireBench, round_trip_json, wire_check

__all__ = ["memory_changes_nothing"]


@wire_check(
    "conversation",
    "request",
    look="dump_http: history=, and what codec.dump_with_history.Way is given",
)
def memory_changes_nothing(bench: WireBench) -> None:
    """A growing conversation is sent the same with and without the memory of earlier requests
    (`history=`), with the same losses, at every length. So the dump of a message depends on nothing
    outside its segment."""
    if "history" not in signature(bench.wire.dump_http).parameters:
        raise Skipped(f"the wire {bench.name} has no history=")
    messages = _make_conversation(bench)
    for length in (1, 2, 5):
        history = History(least=1, segment=length)
        for end in range(1, len(messages) + 1):
            # A request ends with a user message or results, which are in one too.
            if messages[end - 1].role is not Role.USER:
                continue
            request = ModelRequest("kit-model-1", messages[:end], TOOLS)
            remembered, wanted = (
                _dump_http(bench, request, history),
                _dump_http(bench, request, None),
            )
            where = f"of {end} messages, remembered in segments of {length},"
            for what in wanted:
                require_equal(remembered[what], wanted[what], f"the {what} of a request {where}")


def _dump_http(bench: WireBench, request: ModelRequest, history: History | None) -> Json:
    """Returns everything that a request with or without memory sends, with its losses, by name."""
    losses: list[Loss] = []
    options: Json = {}
    if history is not None:
        turn = history.turn(request.messages, request.tools, ORIGIN, bench.name)
        if turn is not None:
            options["history"] = turn
    http = bench.wire.dump_http(request, target=ORIGIN, losses=losses, **options)
    body = round_trip_json(http.body, "dump_http")
    fields = list(cast("Json", body)) if isinstance(body, dict) else []
    return {
        "path": http.path, "headers": dict(http.headers), "body": body, "order of fields": fields,
        "names": dict(http.names), "losses": losses,
    }  # fmt: skip


def _make_conversation(bench: WireBench) -> tuple[Message, ...]:
    """Returns a conversation for requests with and without memory: rounds of tool calls, every type
    of part from both roles, and signed answers, of which the provider has stored the last."""
    out = [CONVERSATION[0]]
    for number in range(3):
        for message in CONVERSATION[1:]:
            out.append(
                message.replace(
                    content=tuple([_number_ids(piece, number) for piece in message.content])
                )
            )
        response_id = f"resp_{number}" if number == 2 else None
        signed = msgspec.structs.replace(
            ORIGIN, prefix=compute_prefix(out, bench.name), response_id=response_id
        )
        out.append(Message.model(bench.signed, f"Number {number}.").replace(origin=signed))
        for part in PARTS[number::3]:
            prompt = Message.user(TextPart("See?"), part)
            out += [prompt, Message.model(TextPart("Here."), part)]
        out.append(Message.user("And now?"))
    return tuple(out)


def _number_ids(piece: Any, number: int) -> Any:
    """Returns a call or result of the memory check's conversation with a number in its id, so that
    ids differ between rounds."""
    if isinstance(piece, ToolCallPart | ToolResultPart):
        return msgspec.structs.replace(piece, id=f"{piece.id}_{number}")
    return piece
