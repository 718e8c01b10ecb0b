"""What a run waits for ⇄ the message of a task that waits (INPUT_REQUIRED, AUTH_REQUIRED), and the
answers to it.

A client that ignores dragoman's data parts answers with text: `answer_from_words` makes that the
answer to the one question there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.json_values import drop_none, if_list, if_object, if_text
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import MarkPart, Message, Role, TextPart
from dragoman.request import RunRequest
from dragoman.wires.a2a.content import dump_data
from dragoman.wires.a2a.quirks import EXTENSION, json_of, read_carried, text_of
from dragoman.wires.a2a.tools import dump_call, load_call

__all__ = [
    "ANSWER",
    "QUESTION",
    "answer_from_words",
    "dump_pending",
    "dump_resume",
    "load_pending",
    "load_resume",
    "waiting_state",
]

QUESTION = "interrupt"
"""Type of a data part that asks a question."""
ANSWER = "resume"
"""Type of a data part that answers one."""
_YES = frozenset(["yes", "y", "ok", "approve", "approved", "allow"])
_NO = frozenset(["no", "n", "deny", "denied", "reject", "rejected"])
_DEFAULT: Mapping[str, str] = {
    "tool": "Run the tool {name} and send its result.",
    "approval": "May the tool {name} be run?",
    "input": "The agent needs an answer.",
    "auth": "Sign in so that the agent can go on.",
    "doubt": "Nobody knows whether the tool {name} was run. May it be run again?",
}


def waiting_state(pending: Sequence[Interrupt]) -> str:
    """Returns the state of an A2A task that waits for these interrupts."""
    if pending and all(interrupt.reason == "auth" for interrupt in pending):
        return "TASK_STATE_AUTH_REQUIRED"
    return "TASK_STATE_INPUT_REQUIRED"


def dump_pending(pending: Sequence[Interrupt], message_id: str, *, extras: bool = True) -> Json:
    """Returns the A2A status message that asks for what a run waits for: each question in words,
    and as a data part."""
    parts: list[Json] = []
    for interrupt in pending:
        name = ""
        if interrupt.call is not None:
            name = interrupt.call.name
        # A client that knows no data parts of ours shows the words, and sends words back (see
        # `answer_from_words`).
        question = interrupt.message or _DEFAULT[interrupt.reason].format(name=name)
        parts += [{"text": question}, dump_data(_dump_question(interrupt))]
    message: Json = {
        "messageId": message_id,
        "role": "ROLE_AGENT",
        "parts": parts or [{"text": "The agent waits."}],
    }
    if extras:
        carried = {"type": QUESTION, "pending": text_of(msgspec.to_builtins(pending))}
        message |= {"extensions": [EXTENSION], "metadata": {EXTENSION: carried}}
    return message


def _dump_question(interrupt: Interrupt) -> Json:
    """Returns the value of the A2A data part that asks one question."""
    expires_at = interrupt.expires_at
    fields = {
        "type": QUESTION,
        "interruptId": interrupt.id,
        "reason": interrupt.reason,
        "call": None if interrupt.call is None else dump_call(interrupt.call),
        "message": interrupt.message,
        "responseSchema": _text_of(interrupt.schema),
        "expiresAt": None if expires_at is None else expires_at.isoformat(),
        "editable": interrupt.editable or None,
        "signature": interrupt.signature,
        "metadata": _text_of(interrupt.metadata or None),
    }
    return drop_none(fields)


def load_pending(message: Any, state: str) -> tuple[Interrupt, ...]:
    """Returns the interrupts in the A2A message of a waiting task.

    The message of another agent is one question, in the words of its text.

    Args:
        message: the message of the task's status.
        state: the task's state.
    """
    fields = if_object(message)
    carried = _load_carried(fields)
    if carried is not None:
        return carried
    parts = [if_object(part) for part in if_list(fields.get("parts"))]
    if pending := _load_questions(parts):
        return pending
    texts = [if_text(part.get("text")) for part in parts]
    reason = "input"
    if state == "TASK_STATE_AUTH_REQUIRED":
        reason = "auth"
    id_ = if_text(fields.get("messageId")) or reason
    return (Interrupt(id_, reason, message="\n".join(filter(None, texts)) or None),)


def _load_questions(parts: Sequence[Json]) -> tuple[Interrupt, ...]:
    """Returns the interrupts in A2A data parts that ask."""
    data = [if_object(part.get("data")) for part in parts]
    questions = [_load_question(value) for value in data if value.get("type") == QUESTION]
    return tuple([question for question in questions if question is not None])


def _load_carried(message: Json) -> tuple[Interrupt, ...] | None:
    """Returns the interrupts that a message carries under the A2A extension, or None."""
    carried = read_carried(message.get("metadata"))
    if "pending" not in carried:
        return None
    try:
        return msgspec.convert(json_of(carried["pending"]), tuple[Interrupt, ...])
    except (ValueError, TypeError, RecursionError):
        return None


def _load_question(data: JsonMap) -> Interrupt | None:
    """Returns the interrupt in an A2A data part, or None if its fields are invalid."""
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
        interrupt = msgspec.convert(fields, Interrupt)
    except (ValueError, TypeError, RecursionError):
        return None
    call = if_object(data.get("call"))
    if call:
        return msgspec.structs.replace(interrupt, call=load_call(call))
    return interrupt


def dump_resume(resume: Resume) -> Json:
    """Returns the A2A data part that answers an interrupt."""
    fields = {
        "type": ANSWER,
        "interruptId": resume.interrupt_id,
        "status": resume.status,
        "payload": _text_of(resume.payload),
        "signature": resume.signature,
        "metadata": _text_of(resume.metadata or None),
    }
    return dump_data(drop_none(fields))


def _text_of(value: Any) -> str | None:
    """Returns the JSON text of a value, or None for None."""
    return None if value is None else text_of(value)


def load_resume(part: Any) -> Resume | None:
    """Returns the A2A answer in a data part, or None. Its payload may be JSON or the text of
    JSON."""
    data = if_object(if_object(part).get("data"))
    id_ = data.get("interruptId")
    if data.get("type") != ANSWER or not isinstance(id_, str):
        return None
    payload = data.get("payload")
    # Clients of dragoman send the text of JSON, which no peer changes; others send JSON itself.
    loaded = json_of(payload)
    return Resume(
        id_,
        "cancelled" if data.get("status") == "cancelled" else "resolved",
        payload if loaded is None and payload != "null" else loaded,
        if_text(data.get("signature")) or None,
        if_object(json_of(data.get("metadata"))),
    )


def answer_from_words(request: RunRequest, pending: Sequence[Interrupt]) -> RunRequest:
    """Returns an A2A request whose last message is replaced by the answer that its words give.

    A question or sign-in takes any text, an approval takes a yes or a no. The request stays
    unchanged if it has answers already, or if not exactly one question waits.
    """
    questions = [interrupt for interrupt in pending if interrupt.reason != "tool"]
    if request.resume or len(questions) != 1 or not request.messages:
        return request
    text = _read_words(request.messages[-1])
    resume = None
    if text:
        resume = _answer_from_text(questions[0], text)
    if resume is None:
        return request
    return request.replace(messages=request.messages[:-1], resume=(resume,))


def _read_words(message: Message) -> str:
    """Returns what a user's A2A message says in answer to an interrupt, if it is nothing but
    words."""
    is_words = all(isinstance(piece, TextPart | MarkPart) for piece in message.content)
    if is_words and message.role is Role.USER:
        return message.text.strip()
    return ""


def _answer_from_text(question: Interrupt, text: str) -> Resume | None:
    """Returns the A2A answer that a text gives to a question, or None if it gives none."""
    if question.reason not in ("approval", "doubt"):
        return question.answer(text)
    # What is neither a yes nor a no is a message of its own, and the task goes on waiting.
    spoken = text.casefold().rstrip(".!")
    if spoken in _YES:
        return question.approve()
    if spoken in _NO:
        return question.deny()
    return None
