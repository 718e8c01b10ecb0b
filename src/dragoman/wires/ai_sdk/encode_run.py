"""A run, event by event, as chunks: its start and end, its steps, what it waits for, and what is no part of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.encoder import NONE, Objects
from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.turns import turn_after
from dragoman.event import (
    Custom,
    Event,
    InnerRuns,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
)
from dragoman.fold import fold
from dragoman.interrupt import Interrupt
from dragoman.message import FinishReason, Message, Role, ToolCallPart, ToolResultPart
from dragoman.request import RunRequest
from dragoman.wires.ai_sdk.encode_parts import Parts
from dragoman.wires.ai_sdk.quirks import OURS, Quirks
from dragoman.wires.ai_sdk_messages.conversation import dump_ui

__all__ = ["RunChunks", "is_of_turn"]

_REASONS: Mapping[FinishReason, str] = {
    FinishReason.stop: "stop",
    FinishReason.length: "length",
    FinishReason.tool_calls: "tool-calls",
    FinishReason.content_filter: "content-filter",
    FinishReason.refusal: "content-filter",
    FinishReason.recitation: "content-filter",
    FinishReason.error: "error",
}
_PRELIMINARY = "tool_preliminary"
"""Name of the event that holds what a tool gave before its result."""


class RunChunks:
    """Feed it a run's events; it gives the chunks."""

    def __init__(
        self, request: RunRequest | None, quirks: Quirks, again: Sequence[dict[str, Any]] = ()
    ) -> None:
        """`again`: the chunks of the message that the run may go on with, for a client that has none of it."""
        self._quirks, self._again = quirks, again
        self._before = request.messages if request is not None else ()
        self._inner = InnerRuns()
        self._parts = Parts(self._before)
        self._kept: list[Event] = []
        """All of the response but deltas."""
        self._taken: set[str] = set()
        """Ids of the messages that are told."""
        self._results: set[str] = set()
        """Ids of those that hold results."""
        self._role: Role | None = None
        """Of the message that was told last."""
        self._step = ""
        """Id of the message that the step is of."""
        self._started = self._over = self._goes_on = False
        self._reason: FinishReason | None = None

    def delta_bytes(self, event: PartDelta) -> bytes | None:
        """The most frequent event, the shortest way; `None`: it is no usual one."""
        return self._parts.delta_bytes(event)

    def objects(self, event: Event) -> Objects:
        """One event → its chunks."""
        if self._over:
            return NONE
        if type(event) is PartDelta:
            return self._parts.delta(event)
        if self._inner.has(event):
            return NONE
        if isinstance(event, MessageStarted):
            return self._message(event)
        if isinstance(event, PartStarted | PartFinished | MessageFinished | MessageDropped):
            return self._of_message(event) if event.message_id in self._taken else NONE
        if isinstance(event, RunFinished):
            return self._finished(event)
        if isinstance(event, RunError):
            return self._failed(event.error.message)
        if isinstance(event, Custom):
            return self._custom(event)
        if isinstance(event, StateSnapshot):
            return [
                *self._start(),
                {"type": "data-state", "id": "state", "data": event.state, "transient": True},
            ]
        if isinstance(event, StateDelta):
            changes = [dict(each) for each in event.operations]
            return [
                *self._start(),
                {"type": "data-state-delta", "data": changes, "transient": True},
            ]
        return self._start() if isinstance(event, RunStarted) and self._parts.waits else NONE

    def close(self) -> Objects:
        """The end of the events → what ends the stream, where nothing did."""
        if self._over:
            return NONE
        self._over = True
        return [
            *self._start(),
            *self._parts.cut(),
            *self._finish("other" if self._reason is None else None),
        ]

    def _start(self, turn: str | None = None) -> list[dict[str, Any]]:
        if self._started:
            return []
        self._started = True
        answered = [one for one in self._before if one.role is Role.MODEL]
        self._goes_on = turn_after(self._before) is not None or bool(
            answered and turn is not None and turn in (answered[-1].turn, answered[-1].id)
        )
        if turn is None and self._goes_on:
            turn = answered[-1].turn or answered[-1].id
        return [
            {"type": "start", **({"messageId": turn} if turn else {})},
            *(self._again if self._goes_on else ()),
        ]

    def _message(self, event: MessageStarted) -> Objects:
        results = event.role is Role.USER and (
            self._role is Role.MODEL or self._parts.waits or self._started
        )
        if event.candidate or not (event.role is Role.MODEL or results):
            return NONE
        self._taken.add(event.message_id)
        self._kept.append(event)
        if event.role is not Role.MODEL:
            self._results.add(event.message_id)
            return NONE
        chunks = self._start(event.turn or event.message_id)
        again = self._goes_on if self._role is None else True
        self._role, self._step = Role.MODEL, event.message_id
        return [*chunks, {"type": "start-step"}] if again and not self._parts.is_reset else chunks

    def _of_message(
        self, event: PartStarted | PartFinished | MessageFinished | MessageDropped
    ) -> Objects:
        if isinstance(event, PartStarted):
            return self._parts.started(event)
        self._kept.append(event)
        if isinstance(event, PartFinished):
            if isinstance(event.part, ToolResultPart):
                return [*self._start(), *self._parts.result(event.part)]
            return self._parts.finished(event)
        if isinstance(event, MessageDropped):
            return self._dropped(event)
        if event.message_id in self._results:
            return NONE
        self._reason = event.finish_reason or self._reason
        return [*self._parts.cut(event.message_id), *self._parts.end_of_step()]

    def _dropped(self, event: MessageDropped) -> Objects:
        self._taken.discard(event.message_id)
        shown = self._parts.drop(event.message_id)
        if not shown:
            return NONE
        if (
            not self._quirks.resets or event.message_id != self._step
        ):  # a step behind another cannot be taken back
            return self._failed("the answer broke off; send the request again")
        return [{"type": "reset-step"}]

    def _custom(self, event: Custom) -> Objects:
        value = if_object(event.value)
        if event.name == _PRELIMINARY and self._parts.knows(if_text(value.get("call_id"))):
            output = {
                "toolCallId": value["call_id"],
                "output": value.get("result"),
                "preliminary": True,
            }
            return [{"type": "tool-output-available", **output}]
        if event.name.startswith("data-") and len(event.name) > len("data-"):
            return [*self._start(), {"type": event.name, "data": event.value}]
        name = event.name.replace("_", "-")
        return [*self._start(), {"type": f"data-{name}", "data": event.value, "transient": True}]

    def _finished(self, event: RunFinished) -> Objects:
        self._over = True
        if event.outcome == "cancelled":
            return [*self._start(), *self._parts.cut(), {"type": "abort", "reason": "cancelled"}]
        asks = [chunk for each in event.pending for chunk in self._interrupt(each)]
        reason = "tool-calls" if event.pending else None
        return [*self._start(), *self._parts.cut(), *asks, *self._finish(reason)]

    def _interrupt(self, interrupt: Interrupt) -> list[dict[str, Any]]:
        if interrupt.reason == "tool":
            return []
        call_id = next(
            (each for each in (*interrupt.parent, interrupt.call and interrupt.call.id) if each), ""
        )
        if interrupt.reason == "approval" and self._parts.knows(call_id):
            more = {"reason": interrupt.message, "signature": interrupt.signature}
            given = {name: value for name, value in more.items() if value is not None}
            return [
                {
                    "type": "tool-approval-request",
                    "approvalId": interrupt.id,
                    "toolCallId": call_id,
                    **given,
                }
            ]
        fields: dict[str, Any] = {
            "id": interrupt.id,
            "reason": interrupt.reason,
            "message": interrupt.message,
            "schema": interrupt.schema and dict(interrupt.schema),
            "toolCallId": call_id or None,
            "expiresAt": interrupt.expires_at and interrupt.expires_at.isoformat(),
            "signature": interrupt.signature,
            "metadata": dict(interrupt.metadata) or None,
        }
        known = {name: value for name, value in fields.items() if value is not None}
        return [{"type": "data-interrupt", "id": interrupt.id, "data": known, "transient": True}]

    def _failed(self, message: str) -> Objects:
        self._over = True
        chunks = [*self._start(), *self._parts.cut(), {"type": "error", "errorText": message}]
        return [*chunks, {"type": "finish", "finishReason": "error"}]

    def _finish(self, reason: str | None) -> list[dict[str, Any]]:
        reason = reason or _REASONS.get(self._reason or FinishReason.unspecified, "other")
        metadata = self._metadata()
        return [
            {
                "type": "finish",
                "finishReason": reason,
                **({"messageMetadata": metadata} if metadata else {}),
            }
        ]

    def _metadata(self) -> dict[str, Any]:
        """What the UI message has of its messages beside its parts, where it has all of them."""
        if self._goes_on or not self._kept:
            return {}
        messages = [message for message in fold(self._kept) if is_of_turn(message)]
        shown = dump_ui(messages, [], "v7")
        metadata = dict(if_object(shown[0].get("metadata"))) if len(shown) == 1 else {}
        if not self._quirks.extras:
            metadata.pop(OURS, None)
        return metadata


def is_of_turn(message: Message) -> bool:
    """Whether a message is part of an answer: one of the model's, or of results alone."""
    return message.role is Role.MODEL or all(
        isinstance(piece, ToolResultPart | ToolCallPart) for piece in message.content
    )
