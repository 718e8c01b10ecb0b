"""Reads and writes approvals as the Responses API has them: the item `mcp_approval_request`, and
the client's `mcp_approval_response`."""

from __future__ import annotations

from dragoman.codec.json_values import if_object, if_text
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import Json, decode, encode
from dragoman.message import Content, ProviderPart, ToolCallPart
from dragoman.wires.openai_responses.quirks import OWN

__all__ = ["dump_interrupt", "load_interrupt", "load_resume"]

_REQUEST, _RESPONSE = "mcp_approval_request", "mcp_approval_response"
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
        "type": _REQUEST,
        "id": f"{_PREFIX}{interrupt.id}{seal}",
        "server_label": _SERVER,
        "name": call.name,
        "arguments": encode(call.arguments).decode(),
    }
    return ProviderPart(_REQUEST, OWN.note(item, mark=True))


def load_interrupt(piece: Content) -> Interrupt | None:
    """Returns the approval that a Responses item of a client's conversation asks for, or None."""
    item = _approval_item(piece, _REQUEST)
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


def _approval_item(piece: Content, item_type: str) -> Json | None:
    """Returns the Responses item of a piece if it is of that type, else None."""
    if not isinstance(piece, ProviderPart) or piece.kind != item_type:
        return None
    return if_object(OWN.fields(piece.native))


def _split(text: str) -> tuple[str, str | None]:
    """Splits an item's id into the interrupt's id and the signature."""
    interrupt_id, _, signature = text.removeprefix(_PREFIX).partition(_SEALED)
    return interrupt_id, signature or None
