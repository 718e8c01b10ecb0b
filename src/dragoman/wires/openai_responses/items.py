"""An item of a conversation → the pieces that it is, and the side that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object, rest
from dragoman.message import Content, Native, ProviderPart, Role, TextPart, ToolCallPart
from dragoman.wires.openai_responses.calls import KINDS, load_call
from dragoman.wires.openai_responses.content import load_block
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.results import ANSWERS, load_provider_result
from dragoman.wires.openai_responses.thinking import load_reasoning

__all__ = [
    "ABSENT",
    "Calls",
    "ROLES",
    "begun_item",
    "is_plain",
    "load_content",
    "load_item",
    "load_said",
    "sendable",
    "side_of",
]

ABSENT = "absent"
"""Spelling: the field was not there at all."""
Calls = dict[str, ToolCallPart]
"""The calls so far by id."""
ROLES = {"user": Role.USER, "system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.MODEL}
_FROM_CLIENT = ("mcp_approval_response", "compaction_trigger", "configuration_update")
_UNSENT = {"reasoning": ("status",), "custom_tool_call": ("status",), "output_text": ("logprobs",)}
"""Type of an item or block → its fields that a response has and a request may not have."""
_NEVER_SENT = ("created_by", "async", "item_id", "output_index", "obfuscation")
"""The same, of any type."""


def side_of(item: Mapping[str, Any], calls: Calls) -> Role:
    """Who an item of a request comes from."""
    if "role" in item:
        return ROLES.get(str(item["role"]), Role.USER)
    if item.get("type") in ANSWERS:
        call = calls.get(str(item.get("call_id")))
        by_provider = item.get("execution") == "server" or (call is not None and call.run_by == "provider")
        return Role.MODEL if by_provider else Role.USER
    return Role.USER if item.get("type") in _FROM_CLIENT else Role.MODEL


def sendable(block: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a response's item or block that a request may have, and those others that say anything."""
    unsent = (*_NEVER_SENT, *_UNSENT.get(str(block.get("type")), ()))
    return rest(block, *unsent), {key: block[key] for key in unsent if block.get(key) not in ([], None)}


def load_item(
    item: Mapping[str, Any], calls: Calls, unsent: Mapping[str, Any] | None = None, *, images: int = 0
) -> list[Content]:
    """An item of the model's side → its pieces. A call is added to `calls`.

    `unsent`: its fields that a response tells and no request may; `None`: it stands in a request, which is kept to the
    letter. `images`: how many were made before it.
    """
    type_ = str(item.get("type", "message"))
    pieces: list[Content] = []
    if type_ in KINDS:
        pieces = load_call(item, unsent, images=images)
        calls.update({piece.id: piece for piece in pieces if isinstance(piece, ToolCallPart)})
    elif type_ == "reasoning":
        pieces = [load_reasoning(item, unsent or {})]
    elif type_ in ANSWERS:
        pieces = [load_provider_result(item, calls, unsent or {})]
    elif item.get("role") == "assistant":
        pieces = load_said(item, from_response=unsent is not None)
    return pieces or [ProviderPart(type_, OWN.note(item, response=unsent))]


def load_said(item: Mapping[str, Any], *, from_response: bool) -> list[Content]:
    """A message item of the model's → its pieces, the first of which holds the item's fields. Nothing said: nothing."""
    own, full = rest(item, "role", "content"), "id" in item
    pieces, how = load_content(item.get("content"), "output_text", full=full, from_response=from_response)
    if not any(isinstance(piece, TextPart) for piece in pieces):
        return []
    first = pieces[0]
    if how:
        first = msgspec.structs.replace(first, native=OWN.with_form(first.native, **how))
    return [msgspec.structs.replace(first, native=OWN.with_notes(first.native, item=own)), *pieces[1:]]


def load_content(
    content: Any, usual: str, *, full: bool = False, from_response: bool = False
) -> tuple[list[Content], dict[str, Any]]:
    """The content of a message item → its pieces, and how it was spelled. `usual`: how text is spelled there.

    `full`: the item is one of a response's, and so says `annotations` of each text.
    """
    if isinstance(content, str) and content:
        return [TextPart(content)], {"content": "string"} if full else {}
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in cast("list[Any]", content)):
        return [], {"content": content}
    blocks = cast("list[dict[str, Any]]", content)
    if not blocks:
        return [], {"content": []}
    pieces = [_block(block, usual, full=full, from_response=from_response) for block in blocks]
    return pieces, {"content": "list"} if not full and is_plain(blocks) else {}


def is_plain(blocks: list[dict[str, Any]]) -> bool:
    """Whether blocks are a single text that says nothing but itself."""
    return (
        len(blocks) == 1 and set(blocks[0]) == {"type", "text"} and blocks[0]["type"] in ("input_text", "output_text")
    )


def _block(block: Mapping[str, Any], usual: str, *, full: bool, from_response: bool) -> Content:
    sent, unsent = sendable(block) if from_response else (dict(block), {})
    how: dict[str, Any] = {}
    if full and block.get("type") == "output_text":
        if "annotations" not in sent:
            how["annotations"] = "absent"
        elif sent["annotations"] == []:
            del sent["annotations"]
    piece = load_block(sent, usual)
    if how:
        piece = msgspec.structs.replace(piece, native=OWN.with_form(piece.native, **how))
    if unsent:
        piece = msgspec.structs.replace(piece, native=OWN.with_notes(piece.native, response=unsent))
    return piece


def begun_item(native: Native) -> Mapping[str, Any] | None:
    """Fields of the message item that begins with this piece; `None`: it begins none."""
    notes = OWN.notes(native)
    return if_object(notes["item"]) if "item" in notes else None
