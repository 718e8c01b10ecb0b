"""Says how surely one JSON message is of a format of the family."""

from __future__ import annotations

from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.json_bytes import Json
from dragoman.wires.chat.record import DialectRecord

__all__ = ["votes"]


def votes(chat: DialectRecord, message: Any) -> int:
    """Returns how surely a message is of this format: 0 impossible, 1 possible, 2 likely, 3 almost
    certain. Never raises."""
    fields = if_object(message)
    role = if_text(fields.get("role"))
    if role != "assistant" and role not in chat.roles and role not in chat.result_roles:
        return 0
    # UI messages have `parts`, items of Responses another `type`.
    if "parts" in fields or fields.get("type", "message") != "message":
        return 0
    piece_votes = _collect_votes(chat, fields, role)
    if 0 in piece_votes:
        return 0
    return max(piece_votes)


def _collect_votes(chat: DialectRecord, fields: Json, role: str) -> list[int]:
    """Returns the vote of each piece of a message. A single 0 rules the format out."""
    piece_votes = [chat.evidence.get(role, 1)]
    if role in chat.result_roles:
        # A result without an id answers by its tool's name.
        has_name = bool(if_text(fields.get("name")))
        piece_votes.append(_id_votes(chat, fields.get("tool_call_id"), else_=int(has_name)))
    if not isinstance(fields.get("content"), str):
        piece_votes += _collect_content_votes(chat, fields, role)
    if role == "assistant":
        piece_votes += [_call_votes(chat, call) for call in if_list(fields.get(chat.calls))]
        piece_votes += [chat.evidence[field] for field in chat.evidence.keys() & fields.keys()]
    return piece_votes


def _collect_content_votes(chat: DialectRecord, fields: Json, role: str) -> list[int]:
    """Returns the vote of each block of a message's content that is no text, which all formats
    have."""
    content = fields.get("content")
    if isinstance(content, list):
        return [_block_votes(chat, block) for block in cast("list[Any]", content)]
    if content is None and role == "assistant":
        # An answer without content has one of the fields that may stand alone.
        return [int("content" in fields or not fields.keys().isdisjoint({chat.calls, *chat.alone}))]
    return [0]


def _block_votes(chat: DialectRecord, block: Any) -> int:
    """Returns how surely a block is of this format, from 0 to 3."""
    fields = if_object(block)
    type_name = if_text(fields.get("type"))
    if type_name == "text":
        return int(isinstance(fields.get("text"), str))
    reader = chat.readers.get(type_name)
    if reader is None or reader(chat, type_name, fields) is None:
        return 0
    return chat.evidence.get(type_name, 1)


def _call_votes(chat: DialectRecord, call: Any) -> int:
    """Returns how surely a tool call is of this format, from 0 to 3."""
    fields = if_object(call)
    call_type = if_text(fields.get("type", "function"))
    if call_type not in chat.inputs or not isinstance(fields.get("id"), str | None):
        return 0
    body = if_object(fields.get(call_type))
    if not if_text(body.get("name")) or not isinstance(body.get(chat.inputs[call_type]), str):
        return 0
    return _id_votes(chat, fields.get("id"), else_=1)


def _id_votes(chat: DialectRecord, call_id: Any, *, else_: int) -> int:
    if isinstance(call_id, str) and call_id:
        return chat.call_votes(call_id)
    return else_
