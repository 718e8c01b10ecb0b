"""What a client sends, taken apart: the messages, and what the body around them says of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman import formats
from dragoman.codec.json_values import bounded, if_object, if_text
from dragoman.formats.detection import payload_of
from dragoman.formats.registry import layout
from dragoman.message import Message, Role

__all__ = ["Received", "received"]

_LISTS = ("messages", "contents", "input", "conversations")


class Received(NamedTuple):
    """What a client has sent."""

    messages: list[Message]
    """Its copy of the conversation, or the end of it."""
    after: str = ""
    """Id of the response that they follow; empty: it names none."""
    regenerates: bool = False
    """What stands behind them is to be made anew."""
    until: str = ""
    """Id of the answer that is to be made anew, or of its question, where the client named one."""


def received(payload: Any, format: str) -> Received:  # noqa: A002 what it is called everywhere
    """A conversation, the body of a request that holds one, one message, or a text of the user's.

    Raises:
        HistoryError: it is nothing of the format.
        SettingsError: no format has that name.
    """
    codec = formats.get(format)
    if payload is None or isinstance(payload, str):
        return Received([Message.user(payload)] if payload else [])
    body = if_object(bounded(payload))
    if (
        isinstance(body.get("message"), dict)
        and "role" not in body
        and not any(field in body for field in _LISTS)
    ):
        body = {**body, "messages": [body["message"]]}
    value = body or payload
    messages = codec.load_messages(payload_of(value, format)) if value else []
    fields = layout(format)
    follows = if_text(body.get(fields.follows)) if fields.follows else ""
    asked = fields.regeneration
    if asked is None or body.get(asked.field) != asked.value:
        return Received(messages, follows)
    message_id = if_text(body.get(asked.message_id))
    return Received(_until(messages, message_id), follows, regenerates=True, until=message_id)


def _until(messages: list[Message], message_id: str) -> list[Message]:
    """The messages up to that which is to be answered anew."""
    at = next(
        (
            at
            for at, message in enumerate(messages)
            if message_id and message_id in (message.id, message.turn)
        ),
        None,
    )
    if at is None:
        at = len(messages)
        while at and messages[at - 1].role is Role.MODEL:
            at -= 1
        return messages[:at]
    return messages[: at if messages[at].role is Role.MODEL else at + 1]
