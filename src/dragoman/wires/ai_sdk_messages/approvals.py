"""Approvals: UI messages have them at the call, model messages in parts of their own. Each as the other has it, and the answers that a
conversation holds to calls that still wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.interrupt import Resume
from dragoman.loss import Loss
from dragoman.message import MarkPart, Message, Role, ToolCallPart, ToolResultPart
from dragoman.repair import Source, open_calls, traced
from dragoman.wires.ai_sdk_messages.own import OWN, joined

__all__ = [
    "REQUEST",
    "RESPONSE",
    "approval_of",
    "approval_parts",
    "approvals",
    "at_calls",
    "has_parts",
    "mended",
]

REQUEST, RESPONSE = "tool-approval-request", "tool-approval-response"
"""Types of the parts of model messages, and kinds of their marks."""
_KINDS = (REQUEST, RESPONSE)
_ANSWER = ("approved", "reason")


def approvals(messages: Sequence[Message]) -> list[Resume]:
    """The answers to approvals that a conversation holds, of calls that have no result yet: what `resume=` of a run takes."""
    held = _of_parts(messages) if has_parts(messages) else {}
    found: list[Resume] = []
    for one in open_calls(messages):
        call = one.call
        approval = approval_of(call) or held.get(call.id, {})
        if not isinstance(approval.get("approved"), bool):
            continue
        message = messages[one.position]
        alone = sum(1 for each in _calls(messages) if each.id == call.id) == 1
        id_ = call.id if alone or not message.id else f"{call.id}@{message.id}"
        reason = if_text(approval.get("reason"))
        payload = {"approved": approval["approved"], **({"reason": reason} if reason else {})}
        found.append(
            Resume(id_, payload=payload, signature=if_text(approval.get("signature")) or None)
        )
    return found


def mended(
    messages: Sequence[Message],
) -> tuple[Sequence[Message], list[Loss], Sequence[Source] | None]:
    """A conversation as `streamText` takes it: repaired, but for a last round whose calls were approved or denied just now, which the AI SDK
    runs itself. As `repair.traced`."""
    start = _answered_round(messages)
    if start is None:
        return traced(messages)
    head, losses, sources = traced(messages[:start])
    left = messages[start:]
    if sources is not None:
        sources = [
            *sources,
            *(_as_it_stands(start + at, message) for at, message in enumerate(left)),
        ]
    return [*head, *left], losses, sources


def _answered_round(messages: Sequence[Message]) -> int | None:
    """Where the last round begins, if it ends the conversation and an approval in it was answered; `None`: it does not."""
    if not approvals(messages):
        return None
    start = open_calls(messages)[0].position
    while start and messages[start - 1].role is Role.MODEL:
        start -= 1
    later = (
        piece
        for message in messages[start:]
        if message.role is not Role.MODEL
        for piece in message.content
    )
    return start if all(isinstance(piece, MarkPart | ToolResultPart) for piece in later) else None


def _as_it_stands(position: int, message: Message) -> Source:
    return Source(position, tuple([(position, place) for place in range(len(message.content))]))


def approval_of(call: ToolCallPart) -> Mapping[str, Any]:
    """The approval that stands at a call; empty where none does."""
    return if_object(OWN.fields(call.native).get("approval")) if call.native else {}


def approval_parts(message: Message) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """The approvals at the calls of a model's message, as parts: id of a call → the request, and the responses in order."""
    requests: dict[str, dict[str, Any]] = {}
    responses: list[dict[str, Any]] = []
    for call in message.content:
        if not isinstance(call, ToolCallPart):
            continue
        approval = approval_of(call)
        if not isinstance(approval.get("id"), str):
            continue
        own = {key: approval[key] for key in ("isAutomatic", "signature") if key in approval}
        requests[call.id] = {
            "type": REQUEST,
            "approvalId": approval["id"],
            "toolCallId": call.id,
            **own,
        }
        if isinstance(approval.get("approved"), bool):
            answer = {key: approval[key] for key in _ANSWER if key in approval}
            responses.append({"type": RESPONSE, "approvalId": approval["id"], **answer})
    return requests, responses


def has_parts(messages: Iterable[Message]) -> bool:
    """Whether approvals stand in a conversation as parts of their own."""
    return any(
        type(piece) is MarkPart and piece.kind in _KINDS
        for message in messages
        for piece in message.content
    )


def at_calls(messages: Sequence[Message]) -> tuple[list[Message], list[int]]:
    """A conversation with its approvals at the calls, and where each message stood: one of responses alone is left out."""
    held = _of_parts(messages)
    out: list[Message] = []
    positions: list[int] = []
    for position, message in enumerate(messages):
        content = [
            _with(piece, held) if isinstance(piece, ToolCallPart) else piece
            for piece in message.content
        ]
        kept = [
            piece for piece in content if not (isinstance(piece, MarkPart) and piece.kind in _KINDS)
        ]
        if kept or not content:
            out.append(
                message if kept == list(message.content) else message.replace(content=tuple(kept))
            )
            positions.append(position)
    return out, positions


def _of_parts(messages: Iterable[Message]) -> dict[str, dict[str, Any]]:
    """Id of a call → its approval, of those that are parts."""
    calls: dict[str, str] = {}
    held: dict[str, dict[str, Any]] = {}
    for message in messages:
        for piece in message.content:
            if not isinstance(piece, MarkPart) or piece.kind not in _KINDS:
                continue
            fields = OWN.fields(piece.native)
            id_ = if_text(fields.get("approvalId"))
            if piece.kind == REQUEST:
                calls[id_] = if_text(fields.get("toolCallId"))
                own = {key: fields[key] for key in ("isAutomatic", "signature") if key in fields}
                held[calls[id_]] = {"id": id_, **own}
            elif id_ in calls:
                held[calls[id_]] |= {key: fields[key] for key in _ANSWER if key in fields}
    return held


def _with(call: ToolCallPart, held: Mapping[str, dict[str, Any]]) -> ToolCallPart:
    if call.id not in held or approval_of(call):
        return call
    own = OWN.note({**OWN.fields(call.native), "approval": held[call.id]}) or {}
    return msgspec.structs.replace(call, native=joined(call.native, own))


def _calls(messages: Iterable[Message]) -> Iterator[ToolCallPart]:
    return (
        call for message in messages if message.role is Role.MODEL for call in message.tool_calls
    )
