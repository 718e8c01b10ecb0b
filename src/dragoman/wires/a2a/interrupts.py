"""What a run waits for ⇄ the message of a task that waits (INPUT_REQUIRED, AUTH_REQUIRED), and the answers to it.

A client that knows no data parts of ours answers with text: `answered` makes that the answer to the one question there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.interrupt import Interrupt, Resume
from dragoman.message import MarkPart, Role, TextPart, ToolResultPart
from dragoman.request import RunRequest
from dragoman.wires.a2a.content import dump_data
from dragoman.wires.a2a.quirks import EXTENSION, extras, json_of, text_of
from dragoman.wires.a2a.tools import dump_call, load_call

__all__ = [
    "ANSWER",
    "QUESTION",
    "answered",
    "dump_pending",
    "dump_resume",
    "load_pending",
    "load_resume",
    "waiting_state",
]

QUESTION = "interrupt"
"""Type of a data part that asks."""
ANSWER = "resume"
"""Type of one that answers."""
_YES = frozenset(["yes", "y", "ok", "approve", "approved", "allow"])
_NO = frozenset(["no", "n", "deny", "denied", "reject", "rejected"])
_DEFAULT: Mapping[str, str] = {
    "tool": "Run the tool {name} and send its result.",
    "approval": "May the tool {name} be run?",
    "input": "The agent needs an answer.",
    "auth": "Sign in so that the agent can go on.",
}


def waiting_state(pending: Sequence[Interrupt]) -> str:
    """The state of a task that waits for these."""
    only_auth = bool(pending) and all(each.reason == "auth" for each in pending)
    return "TASK_STATE_AUTH_REQUIRED" if only_auth else "TASK_STATE_INPUT_REQUIRED"


def dump_pending(
    pending: Sequence[Interrupt], message_id: str, *, extras: bool = True
) -> dict[str, Any]:
    """What is waited for → the message of the task's state: the question in words, and a data part each."""
    parts: list[dict[str, Any]] = []
    for each in pending:
        name = each.call.name if each.call is not None else ""
        parts += [
            {"text": each.message or _DEFAULT[each.reason].format(name=name)},
            dump_data(_question(each)),
        ]
    message: dict[str, Any] = {
        "messageId": message_id,
        "role": "ROLE_AGENT",
        "parts": parts or [{"text": "The agent waits."}],
    }
    if extras:
        held = {"type": QUESTION, "pending": text_of(msgspec.to_builtins(pending))}
        message |= {"extensions": [EXTENSION], "metadata": {EXTENSION: held}}
    return message


def _question(interrupt: Interrupt) -> dict[str, Any]:
    data: dict[str, Any] = {
        "type": QUESTION,
        "interruptId": interrupt.id,
        "reason": interrupt.reason,
    }
    if interrupt.call is not None:
        data["call"] = dump_call(interrupt.call)
    if interrupt.message is not None:
        data["message"] = interrupt.message
    if interrupt.schema is not None:
        data["responseSchema"] = text_of(interrupt.schema)
    if interrupt.expires_at is not None:
        data["expiresAt"] = interrupt.expires_at.isoformat()
    if interrupt.editable:
        data["editable"] = True
    if interrupt.signature is not None:
        data["signature"] = interrupt.signature
    if interrupt.metadata:
        data["metadata"] = text_of(interrupt.metadata)
    return data


def load_pending(message: Any, state: str) -> tuple[Interrupt, ...]:
    """The inverse. A task of others that waits asks one question, in the words of its message."""
    fields = if_object(message)
    held = extras(fields.get("metadata"))
    if "pending" in held:
        try:
            return msgspec.convert(json_of(held["pending"]), tuple[Interrupt, ...])
        except (ValueError, TypeError, RecursionError):
            pass
    parts = [if_object(part) for part in if_list(fields.get("parts"))]
    datas = [
        data for part in parts if (data := if_object(part.get("data"))).get("type") == QUESTION
    ]
    if found := tuple(each for data in datas if (each := _load_question(data)) is not None):
        return found
    words = "\n".join([text for part in parts if (text := if_text(part.get("text")))]) or None
    reason = "auth" if state == "TASK_STATE_AUTH_REQUIRED" else "input"
    return (Interrupt(if_text(fields.get("messageId")) or reason, reason, message=words),)


def _load_question(data: Mapping[str, Any]) -> Interrupt | None:
    call = if_object(data.get("call"))
    fields = {
        "id": data.get("interruptId"),
        "reason": data.get("reason", "input"),
        "message": data.get("message"),
        "schema": json_of(data.get("responseSchema")),
        "expires_at": data.get("expiresAt"),
        "editable": data.get("editable") is True,
        "signature": data.get("signature"),
        "metadata": if_object(json_of(data.get("metadata"))),
    }
    try:
        read = msgspec.convert(fields, Interrupt)
    except (ValueError, TypeError, RecursionError):
        return None
    return msgspec.structs.replace(read, call=load_call(call)) if call else read


def dump_resume(resume: Resume) -> dict[str, Any]:
    """An answer → a data part."""
    data: dict[str, Any] = {
        "type": ANSWER,
        "interruptId": resume.interrupt_id,
        "status": resume.status,
    }
    if resume.payload is not None:
        data["payload"] = text_of(resume.payload)
    if resume.signature is not None:
        data["signature"] = resume.signature
    if resume.metadata:
        data["metadata"] = text_of(resume.metadata)
    return dump_data(data)


def load_resume(part: Any) -> Resume | None:
    """The inverse; `None`: the part answers nothing. The payload may be JSON or the text of it."""
    data = if_object(if_object(part).get("data"))
    if data.get("type") != ANSWER or not isinstance(id_ := data.get("interruptId"), str):
        return None
    payload = data.get("payload")
    read = json_of(payload)
    return Resume(
        id_,
        "cancelled" if data.get("status") == "cancelled" else "resolved",
        payload if read is None and payload != "null" else read,
        if_text(data.get("signature")) or None,
        if_object(json_of(data.get("metadata"))),
    )


def answered(request: RunRequest, pending: Sequence[Interrupt]) -> RunRequest:
    """A request whose words answer what its task waits for, with the answer in the place of the words. A question (or a sign-in) takes
    any text, an approval takes a yes or a no; where several wait, or the request answers already, it is left as it is."""
    open_ = [each for each in pending if each.reason != "tool"]
    if request.resume or len(open_) != 1 or not request.messages:
        return request
    last, question = request.messages[-1], open_[0]
    text = last.text.strip()
    if (
        last.role is not Role.USER
        or any(isinstance(p, ToolResultPart) for p in last.content)
        or not text
    ):
        return request
    is_plain = all(isinstance(piece, TextPart | MarkPart) for piece in last.content)
    if question.reason == "approval":
        word = text.casefold().rstrip(".!")
        if not is_plain or word not in _YES | _NO:
            return request
        resume = question.approve() if word in _YES else question.deny()
    elif is_plain:
        resume = question.answer(text)
    else:
        return request
    return request.replace(messages=request.messages[:-1], resume=(resume,))
