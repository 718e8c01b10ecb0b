"""What an agent's run waits for, as the client of a model's endpoint gets it, and the client's answers to it.

A wire may have forms of its own: `dump_interrupt`, `load_interrupt` and `load_resume` in its room `serving`. Else it is a call of a
reserved tool, which the model does not know, and the answer is that tool's result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import InvalidRequestError
from dragoman.interrupt import Interrupt, Reason, Resume
from dragoman.message import (
    Content,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.serving import serving
from dragoman.wires.wire import Wire

__all__ = [
    "RESERVED",
    "dump_interrupt",
    "interrupts_in",
    "resumes_in",
    "waiting_in",
    "without_interrupts",
]

RESERVED: Mapping[Reason, str] = {
    "approval": "request_approval",
    "input": "request_answer",
    "auth": "request_sign_in",
}
"""What is waited for → name of the tool whose call says so. What the client's own tools are called stands with them."""
_OPTIONS = 100
"""Alternatives of a schema that are looked at."""
_REASONS: Mapping[str, Reason] = {name: reason for reason, name in RESERVED.items()}


def dump_interrupt(interrupt: Interrupt, wire: Wire) -> Content:
    """What the client is given of something that a run waits for."""
    dump = serving(wire).dump_interrupt
    own = None if dump is None else dump(interrupt)
    if own is not None:
        return own
    call = interrupt.call
    expires = interrupt.expires_at
    fields: dict[str, Any] = {
        "tool": call and call.name,
        "arguments": call and dict(call.arguments),
        "message": interrupt.message,
        "schema": interrupt.schema,
        "url": interrupt.metadata.get("url"),
        "editable": interrupt.editable or None,
        "expires_at": expires and expires.isoformat(),
        "id": interrupt.id
        if interrupt.signature
        else None,  # clients of some formats make call ids of their own
        "signature": interrupt.signature,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return ToolCallPart(interrupt.id, RESERVED[interrupt.reason], given, run_by="client")


def interrupts_in(message: Message, wire: Wire) -> dict[str, Interrupt]:
    """What a message, as a client sends it back, says that is waited for, by the id that the client's answer has. Nobody has checked it."""
    return {
        piece.id if isinstance(piece, ToolCallPart) else interrupt.id: interrupt
        for piece in message.content
        if (interrupt := _interrupt_of(piece, wire)) is not None
    }


def waiting_in(pending: Sequence[Interrupt]) -> dict[str, Interrupt]:
    """What a client is asked for beside its tools, by the id that its answer has."""
    return {interrupt.id: interrupt for interrupt in pending if interrupt.reason in RESERVED}


def resumes_in(
    messages: Sequence[Message], waiting: Mapping[str, Interrupt], wire: Wire
) -> tuple[list[Message], list[Resume]]:
    """The client's answers to what is waited for, and the messages without them. `waiting`: by the id that the answer has.

    Raises:
        InvalidRequestError: one cannot be understood.
    """
    found: list[Resume] = []
    left: list[Message] = []
    for message in messages:
        kept: list[Content] = []
        for piece in message.content if message.role is Role.USER else ():
            resume = _resume(piece, waiting, wire)
            if resume is None:
                kept.append(piece)
            else:
                found.append(resume)
        if message.role is not Role.USER or len(kept) == len(message.content):
            left.append(message)
        elif kept:
            left.append(message.replace(content=tuple(kept)))
    return left, found


def without_interrupts(messages: Sequence[Message], wire: Wire) -> list[Message]:
    """The messages without what was asked so, and without the answers to it."""
    ids: set[str] = set()
    left: list[Message] = []
    for message in messages:
        ids |= interrupts_in(message, wire).keys()
        kept = [
            piece
            for piece in message.content
            if not _is_interrupt(piece, wire) and not _answers(piece, ids, wire)
        ]
        if len(kept) == len(message.content):
            left.append(message)
        elif kept:
            left.append(message.replace(content=tuple(kept)))
    return left


def _is_interrupt(piece: Content, wire: Wire) -> bool:
    return _interrupt_of(piece, wire) is not None


def _answers(piece: Content, ids: set[str], wire: Wire) -> bool:
    if isinstance(piece, ToolResultPart):
        return piece.id in ids
    own = _own_resume(piece, wire)
    return own is not None and own.interrupt_id in ids


def _interrupt_of(piece: Content, wire: Wire) -> Interrupt | None:
    if isinstance(piece, ProviderPart):
        load = serving(wire).load_interrupt
        return None if load is None else load(piece)
    if not isinstance(piece, ToolCallPart) or (reason := _REASONS.get(piece.name)) is None:
        return None
    fields = piece.arguments
    call = ToolCallPart(
        if_text(fields.get("id")) or piece.id,
        if_text(fields.get("tool")),
        dict(if_object(fields.get("arguments"))),
    )
    schema = if_object(fields.get("schema")) or None
    signature, message = (
        if_text(fields.get("signature")) or None,
        if_text(fields.get("message")) or None,
    )
    interrupt_id = if_text(fields.get("id")) or piece.id
    return Interrupt(
        interrupt_id, reason, call=call, message=message, schema=schema, signature=signature
    )


def _resume(piece: Content, waiting: Mapping[str, Interrupt], wire: Wire) -> Resume | None:
    if (own := _own_resume(piece, wire)) is not None:
        if (interrupt := waiting.get(own.interrupt_id)) is None:
            raise InvalidRequestError(
                f"nothing waits under the id {own.interrupt_id!r:.100}, or it is answered already"
            )
        signature = own.signature or interrupt.signature
        return msgspec.structs.replace(own, signature=signature, metadata=interrupt.metadata)
    if not isinstance(piece, ToolResultPart) or (interrupt := waiting.get(piece.id)) is None:
        return None
    if piece.is_error:  # the client has no such tool, or nobody answered
        return interrupt.cancel()
    text, value = _values(piece.result)
    if if_object(value).get("cancelled") is True:
        return interrupt.cancel()
    if interrupt.reason == "approval":
        return _approval(interrupt, value)
    if interrupt.schema is None or not isinstance(text, str):
        return interrupt.answer(text)
    return interrupt.answer(text if _takes_text(interrupt.schema) else value)


def _takes_text(schema: Mapping[str, Any]) -> bool:
    """True if an answer may be a text, as far as the top of the schema says. The schema may be one that the client
    made up, so it is not evaluated here: what was signed is checked when the run goes on."""
    types = schema.get("type")
    if types is None and ("enum" in schema or "const" in schema):
        choices = [*if_list(schema.get("enum"))[:_OPTIONS], schema.get("const")]
        return any(isinstance(choice, str) for choice in choices)
    if types is None:
        options = if_list(schema.get("anyOf"))[:_OPTIONS]
        types = [if_object(option).get("type", "string") for option in options] or "string"
    return "string" in (types if isinstance(types, list) else [types])


def _own_resume(piece: Content, wire: Wire) -> Resume | None:
    load = serving(wire).load_resume
    return None if load is None or not isinstance(piece, ProviderPart) else load(piece)


def _approval(interrupt: Interrupt, value: Any) -> Resume:
    fields = {"approved": value} if isinstance(value, bool) else if_object(value)
    approved, reason, arguments = (
        fields.get("approved"),
        fields.get("reason"),
        fields.get("arguments"),
    )
    given = None if arguments is None else if_object(arguments)
    if (
        not isinstance(approved, bool)
        or not isinstance(reason, str | None)
        or not isinstance(arguments, dict | None)
    ):
        raise InvalidRequestError(
            f"the result of {RESERVED['approval']} {interrupt.id!r:.100} cannot be understood; give the JSON "
            '{"approved": true} or {"approved": false, "reason": "…"}'
        )
    return interrupt.approve(given) if approved else interrupt.deny(reason)


def _values(result: Any) -> tuple[Any, Any]:
    """A result as it is, and as the JSON that its text says."""
    if isinstance(result, tuple):
        pieces = cast("tuple[Content, ...]", result)
        result = "".join([piece.text for piece in pieces if isinstance(piece, TextPart)])
    if not isinstance(result, str):
        return result, result
    try:
        return result, json.loads(result)
    except (ValueError, RecursionError):
        return result, result
