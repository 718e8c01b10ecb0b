"""Reads and writes approvals as the Responses API has them, for a server: the item
`mcp_approval_request`, and the client's `mcp_approval_response`.

What a provider asks for is a call with an interrupt; see `tools.load_call`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.marks import attach_resume
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import Json, decode, encode
from dragoman.message import Content, ProviderPart, ToolCallPart, ToolResultPart
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.tools import APPROVAL

__all__ = ["answer_call", "dump_interrupt", "load_interrupt", "load_resume"]

_RESPONSE = "mcp_approval_response"
_PREFIX, _SEALED = "mcpr_", "~"
_SERVER = "dragoman"
"""Name of the server under which clients see the agent's tools."""


def dump_interrupt(interrupt: Interrupt) -> Content | None:
    """Returns the Responses item that asks for an approval, with the signature in its id. None for
    any other interrupt: the API has no item for it."""
    call = interrupt.call
    if interrupt.reason != "approval" or call is None:
        return None
    seal = f"{_SEALED}{interrupt.signature}" if interrupt.signature else ""
    item: Json = {
        "type": APPROVAL,
        "id": f"{_PREFIX}{interrupt.id}{seal}",
        "server_label": _SERVER,
        "name": call.name,
        "arguments": encode(call.arguments).decode(),
    }
    return ProviderPart(APPROVAL, OWN.note(item, mark=True))


def load_interrupt(piece: Content) -> Interrupt | None:
    """Returns the approval that a Responses item of a client's conversation asks for, or None."""
    item = _approval_item(piece, APPROVAL)
    if item is None or if_text(item.get("server_label")) != _SERVER:
        return None
    interrupt_id, signature = _split(if_text(item.get("id")))
    try:
        arguments = if_object(decode(if_text(item.get("arguments"))))
    except ValueError:
        return None
    call = ToolCallPart(interrupt_id, if_text(item.get("name")), arguments)
    return Interrupt(interrupt_id, "approval", call=call, signature=signature)


def load_resume(piece: Content) -> Resume | None:
    """Returns the answer to an approval in a Responses item that a client sends, or None if it is
    no approval."""
    item = _approval_item(piece, _RESPONSE)
    if item is None:
        return None
    approved = item.get("approve")
    if not isinstance(approved, bool):
        return None
    interrupt_id, signature = _split(if_text(item.get("approval_request_id")))
    payload: Json = {"approved": approved}
    reason = if_text(item.get("reason"))
    if reason and not approved:
        payload["reason"] = reason
    return Resume(interrupt_id, payload=payload, signature=signature)


def answer_call(piece: Content, calls: Mapping[str, ToolCallPart]) -> ToolResultPart | None:
    """Returns the result of a call that the provider asks about, for a Responses item by which a
    client of a gateway approves or denies it. None if the piece is no such item, or answers none of
    the calls. `calls`: by id."""
    resume, item = load_resume(piece), _approval_item(piece, _RESPONSE) or {}
    call = calls.get(if_text(item.get("approval_request_id")))
    if resume is None or call is None:
        return None
    result = ToolResultPart(call.id, call.name, resume.payload)
    return attach_resume(result, replace(resume, interrupt_id=call.id, signature=None))


def _approval_item(piece: Content, item_type: str) -> Json | None:
    """Returns the Responses item of a piece if it is of that type, else None."""
    if not isinstance(piece, ProviderPart) or piece.kind != item_type:
        return None
    return if_object(OWN.fields(piece.native))


def _split(text: str) -> tuple[str, str | None]:
    """Splits an item's id into the interrupt's id and the signature."""
    interrupt_id, _, signature = text.removeprefix(_PREFIX).partition(_SEALED)
    return interrupt_id, signature or None
