"""What a UI message has before a run goes on with it, as chunks: a client that reads the run's stream again has nothing else of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile
from typing import Any

from dragoman.fold import unfold
from dragoman.message import Message, Role
from dragoman.request import RunRequest
from dragoman.wires.ai_sdk.encode_run import RunChunks, is_of_turn
from dragoman.wires.ai_sdk.quirks import Quirks

__all__ = ["chunks_before"]

_ENDS = ("start", "finish")
"""Types of the chunks of a whole stream, not of its message's parts."""


def chunks_before(request: RunRequest | None, quirks: Quirks) -> list[dict[str, Any]]:
    """The last answer in a request's conversation: its parts, and its metadata; `[]`: there is none."""
    messages = _last_answer(request.messages if request is not None else ())
    if not messages:
        return []
    run = RunChunks(None, quirks)
    chunks = [dict(chunk) for event in unfold(messages) for chunk in run.objects(event)]
    described = [
        {"type": "message-metadata", "messageMetadata": chunk["messageMetadata"]}
        for chunk in run.close()
        if "messageMetadata" in chunk
    ]
    return [*(chunk for chunk in chunks if chunk["type"] not in _ENDS), *described]


def _last_answer(messages: Sequence[Message]) -> list[Message]:
    last = next((message for message in reversed(messages) if message.role is Role.MODEL), None)
    turn = None if last is None else last.turn or last.id
    if turn is None:
        return []
    found = dropwhile(
        lambda message: message.role is not Role.MODEL or turn not in (message.turn, message.id),
        messages,
    )
    return [message for message in found if is_of_turn(message)]
