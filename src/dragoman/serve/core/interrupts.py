"""What an agent's run waits for, as the client of a model's API gets it, and the client's answers to it.

An API may have pieces of its own for it (`Api.dump_interrupt`). Else it is a call of a reserved tool,
which the model does not know, and the answer is that tool's result. A conversation of which the
server kept nothing has the calls that were asked about only in the client's copy: `with_asked_calls`
puts them back.
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
from dragoman.orchestration.interrupts import WaitingCall
from dragoman.repair import OpenCall
from dragoman.serve.core.call import Api

__all__ = [
    "RESERVED",
    "dump_interrupt",
    "interrupts_in",
    "nothing_waits",
    "resumes_in",
    "sign",
    "waiting_in",
    "with_asked_calls",
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


def dump_interrupt(interrupt: Interrupt, api: Api) -> Content:
    """What the client is given of something that a run waits for."""
    own = api.dump_interrupt(interrupt)
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


def sign(resume: Resume, interrupt: Interrupt) -> Resume:
    """Returns an answer with the signature and the data of what was asked, which the client's format
    may have no room for."""
    return msgspec.structs.replace(
        resume,
        signature=resume.signature or interrupt.signature,
        metadata=resume.metadata or interrupt.metadata,
    )


def nothing_waits(interrupt_id: str) -> InvalidRequestError:
    """Returns the error for an answer to what does not wait."""
    return InvalidRequestError(
        f"nothing waits under the id {interrupt_id!r:.100}, or it is answered already"
    )


def interrupts_in(message: Message, api: Api) -> dict[str, Interrupt]:
    """What a message, as a client sends it back, says that is waited for, by the id that the client's answer has. Nobody has checked it."""
    return {
        piece.id if isinstance(piece, ToolCallPart) else interrupt.id: interrupt
        for piece in message.content
        if (interrupt := _interrupt_of(piece, api)) is not None
    }


def waiting_in(pending: Sequence[Interrupt]) -> dict[str, Interrupt]:
    """What a client is asked for beside its tools, by the id that its answer has."""
    return {interrupt.id: interrupt for interrupt in pending if interrupt.reason in RESERVED}


def resumes_in(
    messages: Sequence[Message], waiting: Mapping[str, Interrupt], api: Api
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
            resume = _resume(piece, waiting, api)
            if resume is None:
                kept.append(piece)
            else:
                found.append(resume)
        if message.role is not Role.USER or len(kept) == len(message.content):
            left.append(message)
        elif kept:
            left.append(message.replace(content=tuple(kept)))
    return left, found


def without_interrupts(messages: Sequence[Message], api: Api) -> list[Message]:
    """The messages without what was asked so, and without the answers to it."""
    ids: set[str] = set()
    left: list[Message] = []
    for message in messages:
        ids |= interrupts_in(message, api).keys()
        kept = [
            piece
            for piece in message.content
            if not _is_interrupt(piece, api) and not _answers(piece, ids, api)
        ]
        if len(kept) == len(message.content):
            left.append(message)
        elif kept:
            left.append(message.replace(content=tuple(kept)))
    return left


def with_asked_calls(messages: Sequence[Message], api: Api) -> tuple[list[Message], list[Resume]]:
    """The conversation with the calls that were asked about in the last answer, and what the client said to them. All of it may be made up.

    Raises:
        InvalidRequestError: an answer cannot be understood.
    """
    last = max(
        (at for at, message in enumerate(messages) if message.role is Role.MODEL), default=None
    )
    waiting = {} if last is None else interrupts_in(messages[last], api)
    end = 0 if last is None else last + 1
    tail, resumes = resumes_in(messages[end:], waiting, api)
    if last is None or not waiting:
        return [*without_interrupts(messages[:end], api), *tail], []
    answered = {resume.interrupt_id for resume in resumes}
    content: list[Content] = []
    marks: list[Content] = []
    for piece in messages[last].content:
        interrupt = next(
            iter(interrupts_in(messages[last].replace(content=(piece,)), api).values()), None
        )
        if interrupt is None:
            content.append(piece)
        elif interrupt.id in answered and interrupt.call is not None:
            if interrupt.reason != "approval":
                marks.append(_waiting_for(interrupt, interrupt.call, len(content)).mark())
            content.append(interrupt.call)
    noted = [Message.user(*marks)] if marks else []
    model = [messages[last].replace(content=tuple(content))] if content else []
    return [*without_interrupts(messages[:last], api), *model, *noted, *tail], resumes


def _waiting_for(interrupt: Interrupt, call: ToolCallPart, place: int) -> WaitingCall:
    return WaitingCall(OpenCall(0, place, 0, call), (interrupt,))


def _is_interrupt(piece: Content, api: Api) -> bool:
    return _interrupt_of(piece, api) is not None


def _answers(piece: Content, ids: set[str], api: Api) -> bool:
    if isinstance(piece, ToolResultPart):
        return piece.id in ids
    own = _own_resume(piece, api)
    return own is not None and own.interrupt_id in ids


def _interrupt_of(piece: Content, api: Api) -> Interrupt | None:
    if isinstance(piece, ProviderPart):
        return api.load_interrupt(piece)
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


def _resume(piece: Content, waiting: Mapping[str, Interrupt], api: Api) -> Resume | None:
    if (own := _own_resume(piece, api)) is not None:
        if (interrupt := waiting.get(own.interrupt_id)) is None:
            raise nothing_waits(own.interrupt_id)
        return sign(own, interrupt)
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


def _own_resume(piece: Content, api: Api) -> Resume | None:
    return api.load_resume(piece) if isinstance(piece, ProviderPart) else None


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
