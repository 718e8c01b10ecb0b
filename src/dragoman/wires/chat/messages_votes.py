"""How surely one JSON message is of a format of the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.json_bytes import Json
from dragoman.wires.chat.record import DialectRecord

__all__ = ["votes"]


def votes(chat: DialectRecord, message: Any) -> int:
    """How surely an element of a conversation is of this format: 0: it cannot be; 1: it could; 2:
    it likely is; 3: it is hardly anything else. Never raises."""
    fields = if_object(message)
    if (
        if_text(fields.get("role")) not in (*chat.roles, *chat.result_roles, "assistant")
        or "parts" in fields
    ):
        return 0
    if fields.get("type", "message") != "message":
        return 0
    piece_votes = list(_votes(chat, fields))
    return max(piece_votes) if all(piece_votes) else 0


def _votes(chat: DialectRecord, fields: Json) -> Iterator[int]:
    """What each piece of a message says of its format."""
    role, content, calls = fields["role"], fields.get("content"), fields.get(chat.calls)
    yield chat.evidence.get(role, 1)
    if role in chat.result_roles:
        yield _id_votes(
            chat, fields.get("tool_call_id"), else_=1 if if_text(fields.get("name")) else 0
        )
    if isinstance(content, list):
        yield from (_block_votes(chat, block) for block in cast("list[Any]", content))
    elif content is None and role == "assistant":
        yield 1 if "content" in fields or {chat.calls, *chat.alone} & fields.keys() else 0
    elif not isinstance(content, str):
        yield 0
    if role == "assistant":
        yield from (_call_votes(chat, call) for call in if_list(calls))
        yield from (chat.evidence.get(field, 1) for field in fields)


def _block_votes(chat: DialectRecord, block: Any) -> int:
    fields = if_object(block)
    type_name = if_text(fields.get("type"))
    if type_name == "text":
        return 1 if isinstance(fields.get("text"), str) else 0
    reader = chat.readers.get(type_name)
    return (
        chat.evidence.get(type_name, 1)
        if reader and reader(chat, type_name, fields) is not None
        else 0
    )


def _call_votes(chat: DialectRecord, call: Any) -> int:
    fields = if_object(call)
    call_type = if_text(fields.get("type", "function"))
    called = if_object(fields.get(call_type))
    readable = (
        call_type in chat.inputs
        and if_text(called.get("name"))
        and isinstance(called.get(chat.inputs[call_type]), str)
    )
    readable = readable and isinstance(fields.get("id"), str | None)
    return _id_votes(chat, fields.get("id"), else_=1) if readable else 0


def _id_votes(chat: DialectRecord, call_id: Any, *, else_: int) -> int:
    return chat.call_votes(call_id) if isinstance(call_id, str) and call_id else else_
