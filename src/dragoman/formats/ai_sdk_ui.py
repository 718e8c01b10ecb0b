"""UI messages of Vercel's AI SDK, what `useChat` sends and shows, both ways. The conversation is a
list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dragoman.codec.format_layout import Layout, Regeneration
from dragoman.codec.json_values import if_list, if_object, read_extra_fields
from dragoman.codec.serving import Problem
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import MarkPart, Message, Origin, Role, TextPart, ToolCallPart
from dragoman.wires.ai_sdk_messages.approvals import approvals
from dragoman.wires.ai_sdk_messages.conversation import dump_ui, load_conversation
from dragoman.wires.ai_sdk_messages.detection import ui_votes as votes
from dragoman.wires.ai_sdk_messages.notes import MESSAGE_FIELDS, OURS

__all__ = [
    "approvals",
    "dump_messages",
    "dump_shown",
    "fields",
    "layout",
    "load_messages",
    "name",
    "versions",
    "votes",
]

name = "ai_sdk_ui"
fields = MESSAGE_FIELDS
"""Its own fields that a history acts on."""
layout = Layout(
    fields=("messages",),
    distinctive=frozenset(["trigger", "messageId"]),
    regeneration=Regeneration("trigger", "regenerate-message", "messageId"),
)
"""Where its messages stand in what `useChat` sends."""
versions = ("v4", "v5", "v6", "v7")
"""Releases of the library."""
_STEP = "step-start"
"""Kind of the mark at which a step begins."""


def load_messages(
    payload: object, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Reads a list of UI messages. `origin` is given to the model's where they do not say whose
    they are. With `problems`, a message that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    return load_conversation(payload, origin, problems)


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
    version: Literal["v4", "v5", "v6", "v7"] | None = None,
) -> list[Json]:
    """Writes messages as a list of UI messages. `version`: those of that release of the library;
    `None`: as each was read, else as the newest has them. What they cannot hold is added to
    `losses`."""
    return dump_ui(messages, losses, version)


def dump_shown(
    messages: Iterable[Message],
    *,
    version: Literal["v4", "v5", "v6", "v7"] | None = None,
    metadata: bool = False,
) -> list[Json]:
    """Writes messages as a list of UI messages as a browser shows them: the answers of one turn are
    one message. `metadata`: they keep what the format has no room for, under a key of dragoman's
    own."""
    written = dump_ui(_by_turn(messages), None, version, carries=metadata)
    if metadata:
        return written
    return [_without_own_metadata(message) for message in written]


def _by_turn(messages: Iterable[Message]) -> list[Message]:
    """Returns the messages, of which those of the model's that stand beside each other in one turn
    are one. Between a call and a text a step begins."""
    shown_messages: list[Message] = []
    for message in messages:
        last = shown_messages[-1] if shown_messages else None
        if last is None or not _is_one_turn(last, message):
            shown_messages.append(message)
            continue
        ends, begins = last.content[-1:], message.content[:1]
        begins_step = isinstance(next(iter(ends), None), ToolCallPart) and isinstance(
            next(iter(begins), None), TextPart
        )
        step = (MarkPart(_STEP),) if begins_step else ()
        shown_messages[-1] = last.replace(
            content=(*last.content, *step, *message.content),
            metadata={**last.own_metadata, **message.own_metadata},
            finish_reason=message.finish_reason,
        )
    return shown_messages


def _is_one_turn(last: Message, message: Message) -> bool:
    both_model = last.role is Role.MODEL and message.role is Role.MODEL
    return both_model and last.turn is not None and last.turn == message.turn


def _without_own_metadata(message: Json) -> Json:
    """Returns a UI message without what dragoman notes in it for itself: in its metadata, or, in ai
    4, behind its annotations."""
    bare = dict(message)
    if OURS in if_object(message.get("metadata")):
        bare["metadata"] = read_extra_fields(message["metadata"], OURS)
        if not bare["metadata"]:
            del bare["metadata"]
    annotations = if_list(message.get("annotations"))
    if annotations and if_object(annotations[-1]).keys() == {OURS}:
        bare["annotations"] = annotations[:-1]
        if not bare["annotations"]:
            del bare["annotations"]
    return bare
