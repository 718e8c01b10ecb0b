"""Approvals of calls. UI messages have them at the call, model messages in parts of their own: each
as the other has it, and the answers that a conversation holds to calls that still wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, if_text, pick
from dragoman.codec.marks import collect_part_types
from dragoman.interrupt import Resume
from dragoman.loss import Loss
from dragoman.message import MarkPart, Message, Role, ToolCallPart, ToolResultPart
from dragoman.repair import OpenCall, Source, find_open_calls, trace_repair
from dragoman.wires.ai_sdk_messages.notes import OWN, Fields, Part, Parts, join_native, present

__all__ = ["approval_parts", "approvals", "dump_moved", "has_parts", "mended"]

_REQUEST, _RESPONSE = "tool-approval-request", "tool-approval-response"
"""Types of the parts of model messages, and kinds of their marks."""
_KINDS = (_REQUEST, _RESPONSE)
_OF_REQUEST, _OF_RESPONSE = ("isAutomatic", "signature"), ("approved", "reason")
_Approvals = dict[str, Part]
"""Call id → its approval, as UI messages write it."""


def approvals(messages: Sequence[Message]) -> list[Resume]:
    """Returns the AI SDK answers to approvals in a conversation, for calls without a result.

    Pass them as `resume=` of a run.
    """
    if has_parts(messages):
        in_parts = _approvals_in_parts(messages)
    else:
        in_parts = {}
    answers: list[Resume] = []
    for waiting in find_open_calls(messages):
        approval = _approval_of(waiting.call) or in_parts.get(waiting.call.id, {})
        if isinstance(approval.get("approved"), bool):
            answers.append(_answer_to(waiting, approval, messages))
    return answers


def _answer_to(waiting: OpenCall, approval: Fields, messages: Sequence[Message]) -> Resume:
    """Returns the AI SDK answer in an approval. Its id names the message too if several calls share
    an id."""
    id_, message = waiting.call.id, messages[waiting.position]
    calls = chain.from_iterable(
        message.tool_calls for message in messages if message.role is Role.MODEL
    )
    # An id that several calls have is told apart by its message.
    if message.id and sum(call.id == id_ for call in calls) != 1:
        id_ = f"{id_}@{message.id}"
    reason = if_text(approval.get("reason")) or None
    payload = present(approved=approval["approved"], reason=reason)
    signature = if_text(approval.get("signature")) or None
    return Resume(id_, payload=payload, signature=signature)


def mended(
    messages: Sequence[Message],
) -> tuple[Sequence[Message], list[Loss], Sequence[Source] | None]:
    """Returns a conversation as `streamText` accepts it, the losses, and the sources as in
    `repair.trace_repair`.

    The last round stays as it is if its calls were just approved or denied: the AI SDK runs it
    itself.
    """
    start = _find_answered_round(messages)
    if start is None:
        return trace_repair(messages)
    head, losses, sources = trace_repair(messages[:start])
    last_round = messages[start:]
    if sources is not None:
        as_they_stand = [
            _source_of(start + index, message) for index, message in enumerate(last_round)
        ]
        sources = [*sources, *as_they_stand]
    return [*head, *last_round], losses, sources


def _find_answered_round(messages: Sequence[Message]) -> int | None:
    """Returns the index where the last round begins, or None if no AI SDK approval in it was
    answered."""
    if not approvals(messages):
        return None
    start = find_open_calls(messages)[0].position
    # Several model messages may follow each other in one round.
    while start and messages[start - 1].role is Role.MODEL:
        start -= 1
    answering = [message for message in messages[start:] if message.role is not Role.MODEL]
    later = chain.from_iterable(message.content for message in answering)
    if all(isinstance(piece, MarkPart | ToolResultPart) for piece in later):
        return start
    return None


def _source_of(position: int, message: Message) -> Source:
    """Returns the source of a message that repair leaves unchanged."""
    return Source(position, tuple([(position, index) for index in range(len(message.content))]))


def _approval_of(call: ToolCallPart) -> Fields:
    """Returns the AI SDK approval noted at a call, or an empty object."""
    if call.native:
        return if_object(OWN.fields(call.native).get("approval"))
    return {}


def approval_parts(message: Message) -> tuple[_Approvals, Parts]:
    """Returns the approvals noted at the calls of an AI SDK model message as parts of model
    messages.

    The first value maps a call id to its request, the second lists the responses.
    """
    requests: _Approvals = {}
    responses: Parts = []
    for call in message.content:
        if not isinstance(call, ToolCallPart):
            continue
        approval = _approval_of(call)
        if not isinstance(approval.get("id"), str):
            continue
        named = {"approvalId": approval["id"]}
        fields = pick(approval, _OF_REQUEST)
        requests[call.id] = {
            "type": _REQUEST,
            **named,
            "toolCallId": call.id,
            **fields,
        }
        if isinstance(approval.get("approved"), bool):
            responses.append(
                {
                    "type": _RESPONSE,
                    **named,
                    **pick(approval, _OF_RESPONSE),
                }
            )
    return requests, responses


def has_parts(messages: Iterable[Message]) -> bool:
    """True if a conversation has approvals as AI SDK parts of their own."""
    if MarkPart not in collect_part_types(messages):
        return False
    return any(
        type(piece) is MarkPart and piece.kind in _KINDS
        for message in messages
        for piece in message.content
    )


def _move_to_calls(messages: Sequence[Message]) -> tuple[list[Message], list[int]]:
    """Returns a conversation with its AI SDK approvals at their calls, and each message's former
    index.

    A message that held only responses is left out.
    """
    in_parts = _approvals_in_parts(messages)
    moved: list[Message] = []
    positions: list[int] = []
    for position, message in enumerate(messages):
        content = [
            _with_approval(piece, in_parts) if isinstance(piece, ToolCallPart) else piece
            for piece in message.content
            if not (isinstance(piece, MarkPart) and piece.kind in _KINDS)
        ]
        if not content and message.content:
            continue
        is_same = content == list(message.content)
        moved.append(message if is_same else message.replace(content=tuple(content)))
        positions.append(position)
    return moved, positions


def dump_moved(
    messages: Sequence[Message],
    losses: list[Loss],
    dump: Callable[[Sequence[Message], list[Loss]], Parts],
) -> Parts:
    """Returns what `dump` writes of an AI SDK conversation whose approvals were moved to their
    calls.

    Args:
        messages: the conversation.
        losses: grows with the losses, which name indexes of this conversation.
        dump: writes a conversation.
    """
    moved, positions = _move_to_calls(messages)
    lost: list[Loss] = []
    written = dump(moved, lost)
    original_positions: dict[int | None, int | None] = {None: None, **dict(enumerate(positions))}
    losses += [replace(loss, message=original_positions[loss.message]) for loss in lost]
    return written


def _approvals_in_parts(messages: Iterable[Message]) -> _Approvals:
    """Returns the AI SDK approvals that are parts of their own, by call id."""
    calls: dict[str, str] = {}
    approvals_: _Approvals = {}
    for piece in chain.from_iterable(message.content for message in messages):
        if not isinstance(piece, MarkPart) or piece.kind not in _KINDS:
            continue
        fields = OWN.fields(piece.native)
        id_ = if_text(fields.get("approvalId"))
        if piece.kind == _REQUEST:
            calls[id_] = if_text(fields.get("toolCallId"))
            approvals_[calls[id_]] = {"id": id_, **pick(fields, _OF_REQUEST)}
        elif id_ in calls:
            approvals_[calls[id_]] |= pick(fields, _OF_RESPONSE)
    return approvals_


def _with_approval(call: ToolCallPart, in_parts: _Approvals) -> ToolCallPart:
    """Returns a call with the approval that an AI SDK part of its own has for it."""
    if call.id not in in_parts or _approval_of(call):
        return call
    # As before, what was noted of the call's form stays.
    note = OWN.note({**OWN.fields(call.native), "approval": in_parts[call.id]})
    return replace(call, native=join_native(call.native, note))
