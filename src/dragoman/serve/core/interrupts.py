"""What an agent's run waits for, as the client of a model's API gets it, and the client's answers
to it.

An API may have pieces of its own for it (`Api.dump_interrupt`). Else it is a call of a reserved
tool, which the model does not know, and the answer is that tool's result. A conversation of which
the server kept nothing has the calls that were asked about only in the client's copy:
`restore_asked_calls` puts them back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.marks import read_interrupt
from dragoman.errors import InvalidRequestError
from dragoman.interrupt import Interrupt, Reason, Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.orchestration.interrupts import WaitingCall, count_seen_messages
from dragoman.repair import OpenCall
from dragoman.serve.core.call import Api

__all__ = [
    "RESERVED",
    "answer_asked_calls",
    "dump_interrupt",
    "load_interrupt",
    "unknown_interrupt_error",
    "split_resumes",
    "sign_resume",
    "select_waiting",
    "restore_asked_calls",
    "remove_interrupts",
]

RESERVED: Mapping[Reason, str] = {
    "approval": "request_approval",
    "input": "request_answer",
    "auth": "request_sign_in",
    "doubt": "request_decision",
}
"""What a run waits for → name of the tool whose call says so. Calls of the client's own tools wait
by themselves."""
_MOST_OPTIONS = 100
"""Alternatives of a schema that are looked at."""
_REASONS: Mapping[str, Reason] = {name: reason for reason, name in RESERVED.items()}


def dump_interrupt(interrupt: Interrupt, api: Api) -> Content:
    """Returns what the client is given of something that a run waits for."""
    piece = api.dump_interrupt(interrupt)
    if piece is not None:
        return piece
    call, expires_at = interrupt.call, interrupt.expires_at
    fields: Json = {
        "tool": call and call.name,
        "arguments": call and dict(call.arguments),
        "message": interrupt.message,
        "schema": interrupt.schema,
        "url": interrupt.metadata.get("url"),
        "editable": interrupt.editable or None,
        "expires_at": expires_at and expires_at.isoformat(),
        # Clients of some formats make call ids of their own: what is signed is known by this one.
        "id": interrupt.id if interrupt.signature else None,
        "signature": interrupt.signature,
    }
    arguments = {name: value for name, value in fields.items() if value is not None}
    return ToolCallPart(interrupt.id, RESERVED[interrupt.reason], arguments, run_by="client")


def load_interrupt(piece: Content, api: Api) -> Interrupt | None:
    """Returns what a piece, as a client sends it back, says that is waited for; None if it is
    another piece. Nobody has checked it."""
    if isinstance(piece, ProviderPart):
        return api.load_interrupt(piece)
    if not isinstance(piece, ToolCallPart) or (reason := _REASONS.get(piece.name)) is None:
        return None
    fields = piece.arguments
    interrupt_id = if_text(fields.get("id")) or piece.id
    arguments = dict(if_object(fields.get("arguments")))
    return Interrupt(
        interrupt_id,
        reason,
        call=ToolCallPart(interrupt_id, if_text(fields.get("tool")), arguments),
        message=if_text(fields.get("message")) or None,
        schema=if_object(fields.get("schema")) or None,
        signature=if_text(fields.get("signature")) or None,
    )


def sign_resume(resume: Resume, interrupt: Interrupt) -> Resume:
    """Returns an answer to an interrupt with the signature and the data of what was asked, which
    the client's format may have no room for."""
    return msgspec.structs.replace(
        resume,
        signature=resume.signature or interrupt.signature,
        metadata=resume.metadata or interrupt.metadata,
    )


def unknown_interrupt_error(interrupt_id: str) -> InvalidRequestError:
    """Returns the error for an answer to what does not wait."""
    return InvalidRequestError(
        f"nothing waits under the id {interrupt_id!r:.100}, or it is answered already"
    )


def select_waiting(pending: Sequence[Interrupt]) -> dict[str, Interrupt]:
    """Returns what a client is asked beside its tools, by the id that its answer has."""
    return {interrupt.id: interrupt for interrupt in pending if interrupt.reason in RESERVED}


def split_resumes(
    messages: Sequence[Message], waiting: Mapping[str, Interrupt], api: Api
) -> tuple[list[Message], list[Resume]]:
    """Returns the messages without the client's answers to interrupts, and these answers.
    `waiting`: by the id that the answer has.

    Raises:
        InvalidRequestError: one cannot be understood.
    """
    resumes: list[Resume] = []
    remaining: list[Message] = []
    for message in messages:
        if message.role is not Role.USER:
            remaining.append(message)
            continue
        content: list[Content] = []
        for piece in message.content:
            resume = _load_resume(piece, waiting, api)
            if resume is None:
                content.append(piece)
            else:
                resumes.append(resume)
        remaining += _replace_content(message, content)
    return remaining, resumes


def answer_asked_calls(
    messages: Sequence[Message], before: Sequence[Message], api: Api
) -> Sequence[Message]:
    """Returns a gateway's client's messages, with its answers to the interrupts of the provider's
    last answer as results of the calls. `before`: ends with that answer."""
    calls = {call.id: call for message in before[-1:] for call in message.tool_calls}
    open_calls = {name: call for name, call in calls.items() if read_interrupt(call) is not None}
    if not open_calls:
        return messages
    return [
        message.replace(
            content=tuple(
                [api.answer_call(piece, open_calls) or piece for piece in message.content]
            )
        )
        for message in messages
    ]


def remove_interrupts(messages: Sequence[Message], api: Api) -> list[Message]:
    """Returns the messages without what was asked, and without the answers to it."""
    ids: set[str] = set()
    remaining: list[Message] = []
    for message in messages:
        ids |= _collect_interrupts(message, api).keys()
        content = [
            piece
            for piece in message.content
            if load_interrupt(piece, api) is None and not _is_answer(piece, ids, api)
        ]
        remaining += _replace_content(message, content)
    return remaining


def restore_asked_calls(
    messages: Sequence[Message], api: Api
) -> tuple[list[Message], list[Resume]]:
    """Returns the conversation with the calls that interrupts of the last answer asked about, and
    what the client answered. All of it may be made up.

    Raises:
        InvalidRequestError: an answer cannot be understood.
    """
    end = count_seen_messages(messages)
    if end:
        waiting = _collect_interrupts(messages[end - 1], api)
    else:
        waiting = {}
    tail, resumes = split_resumes(messages[end:], waiting, api)
    if not waiting:
        return [*remove_interrupts(messages[:end], api), *tail], []
    answered = {resume.interrupt_id for resume in resumes}
    content: list[Content] = []
    marks: list[Content] = []
    for piece in messages[end - 1].content:
        interrupt = load_interrupt(piece, api)
        if interrupt is None:
            content.append(piece)
        elif interrupt.id in answered and interrupt.call is not None:
            # An approval follows from the call alone.
            if interrupt.reason != "approval":
                open_call = OpenCall(0, len(content), 0, interrupt.call)
                marks.append(WaitingCall(open_call, (interrupt,)).mark())
            content.append(interrupt.call)
    if content:
        model = [messages[end - 1].replace(content=tuple(content))]
    else:
        model = []
    notes = [Message.user(*marks)] if marks else []
    return [*remove_interrupts(messages[: end - 1], api), *model, *notes, *tail], resumes


def _replace_content(message: Message, content: Sequence[Content]) -> list[Message]:
    """Returns the message, without its interrupts, with what remains of its content; nothing if
    nothing remains."""
    if len(content) == len(message.content):
        return [message]
    if content:
        return [message.replace(content=tuple(content))]
    return []


def _collect_interrupts(message: Message, api: Api) -> dict[str, Interrupt]:
    """Returns what a message says that is waited for, by the id that the client's answer has."""
    interrupts: dict[str, Interrupt] = {}
    for piece in message.content:
        interrupt = load_interrupt(piece, api)
        if interrupt is not None:
            if isinstance(piece, ToolCallPart):
                answer_id = piece.id
            else:
                answer_id = interrupt.id
            interrupts[answer_id] = interrupt
    return interrupts


def _is_answer(piece: Content, ids: set[str], api: Api) -> bool:
    """Returns whether a piece of content answers one of these interrupts."""
    if isinstance(piece, ToolResultPart):
        return piece.id in ids
    if isinstance(piece, ProviderPart):
        resume = api.load_resume(piece)
    else:
        resume = None
    return resume is not None and resume.interrupt_id in ids


def _load_resume(piece: Content, waiting: Mapping[str, Interrupt], api: Api) -> Resume | None:
    """Returns the client's answer to an interrupt, if a piece is one."""
    if isinstance(piece, ProviderPart):
        resume = api.load_resume(piece)
        if resume is None:
            return None
        if resume.interrupt_id not in waiting:
            raise unknown_interrupt_error(resume.interrupt_id)
        return sign_resume(resume, waiting[resume.interrupt_id])
    if not isinstance(piece, ToolResultPart) or piece.id not in waiting:
        return None
    return _answer_by_result(waiting[piece.id], piece)


def _answer_by_result(interrupt: Interrupt, result: ToolResultPart) -> Resume:
    """Returns the answer to an interrupt that a client gave as the result of a tool call."""
    # The client has no such tool, or nobody answered.
    if result.is_error:
        return interrupt.cancel()
    # Clients send the answer as plain text or as JSON in a text; both forms are tried.
    text, value = _read_result(result.result)
    if if_object(value).get("cancelled") is True:
        return interrupt.cancel()
    is_verdict = "approved" in if_object(value)
    if interrupt.reason == "approval" or (interrupt.reason == "doubt" and is_verdict):
        return _load_approval(interrupt, value)
    if interrupt.schema is None or not isinstance(text, str) or _takes_text(interrupt.schema):
        return interrupt.answer(text)
    return interrupt.answer(value)


def _takes_text(schema: JsonMap) -> bool:
    """True if the answer to an interrupt may be a text, as far as the top of the schema says. The
    schema may be one that the client made up, so it is not evaluated here: what was signed is
    checked when the run goes on."""
    types = schema.get("type")
    if types is None and ("enum" in schema or "const" in schema):
        choices = [*if_list(schema.get("enum"))[:_MOST_OPTIONS], schema.get("const")]
        return any(isinstance(choice, str) for choice in choices)
    if types is None:
        options = if_list(schema.get("anyOf"))[:_MOST_OPTIONS]
        types = [if_object(option).get("type", "string") for option in options] or "string"
    return "string" in (types if isinstance(types, list) else [types])


def _load_approval(interrupt: Interrupt, value: Any) -> Resume:
    """Returns the answer to an interrupt (approval) from a boolean or an object. Raises
    `InvalidRequestError` if invalid."""
    fields: JsonMap = if_object(value)
    if isinstance(value, bool):
        fields = {"approved": value}
    approved, reason, arguments = map(fields.get, ("approved", "reason", "arguments"))
    is_understood = (
        isinstance(approved, bool)
        and isinstance(reason, str | None)
        and isinstance(arguments, dict | None)
    )
    if not is_understood:
        raise InvalidRequestError(
            f"the result of {RESERVED['approval']} {interrupt.id!r:.100} cannot be understood; give the JSON "
            '{"approved": true} or {"approved": false, "reason": "…"}'
        )
    if not approved:
        return interrupt.deny(reason)
    return interrupt.approve(None if arguments is None else if_object(arguments))


def _read_result(result: Any) -> tuple[Any, Any]:
    """Returns a result that answers an interrupt as it is, and as the JSON that its text says."""
    if isinstance(result, tuple):
        pieces = cast("tuple[Content, ...]", result)
        result = "".join([piece.text for piece in pieces if isinstance(piece, TextPart)])
    if not isinstance(result, str):
        return result, result
    try:
        return result, json.loads(result)
    except (ValueError, RecursionError):
        return result, result
