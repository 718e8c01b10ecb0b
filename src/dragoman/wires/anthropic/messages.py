"""The conversation: `{"system": …, "messages": […]}` ↔ messages, exactly and in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from dragoman.codec.ids import NAMES, STANDARD, call_ids, fitted
from dragoman.codec.json_values import bounded, if_objects, if_text
from dragoman.codec.replay import readable
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec
from dragoman.wires.anthropic.blocks import load_block, whole
from dragoman.wires.anthropic.pieces import Writer
from dragoman.wires.anthropic.quirks import OWN, Quirks

__all__ = ["dump_messages", "load_messages", "read_messages", "sent_names", "system_length", "write_conversation"]

_ROLES = {"user": Role.USER, "assistant": Role.MODEL, "system": Role.SYSTEM}
_SENT_ROLES = {role: name for name, role in _ROLES.items()}


class _Sent(NamedTuple):
    """A message of the wire."""

    entry: dict[str, Any]
    writer: Writer
    joins: bool
    """It holds results of tools, which belong to the turn of the user before it."""


def load_messages(payload: Any, *, origin: Origin | None = None) -> list[Message]:
    """The wire's conversation → messages. `origin` is given to the model's messages.

    Raises:
        HistoryError: the payload is no conversation of this format.
    """
    return read_messages(bounded(payload), origin)


def read_messages(payload: Any, origin: Origin | None) -> list[Message]:
    """The same of a payload whose depth is known to be bounded."""
    if not isinstance(payload, Mapping):
        raise HistoryError('the payload must be {"system": …, "messages": […]}, the part of a Messages API request')
    payload = cast("Mapping[str, Any]", payload)
    entries = payload.get("messages", [])
    if not isinstance(entries, list):
        raise HistoryError('"messages" must be a list')
    names: dict[str, str] = {}
    out: list[Message] = []
    if payload.get("system"):
        out.append(_load(Role.SYSTEM, {"content": payload["system"]}, names, "system"))
    for position, entry in enumerate(cast("list[Any]", entries)):
        role = _ROLES.get(str(cast("dict[str, Any]", entry).get("role"))) if isinstance(entry, dict) else None
        if role is None:
            raise HistoryError(f'"messages[{position}]" must be an object whose role is user, assistant or system')
        message = _load(role, cast("dict[str, Any]", entry), names, f"messages[{position}]")
        if role is Role.MODEL:
            message = message.replace(origin=origin)
        elif role is Role.SYSTEM:
            message = message.replace(native=OWN.with_form(message.native, place="messages"))
        elif _would_move(message, out[-1] if position and out else None):
            message = message.replace(native=OWN.with_form(message.native, turn="as is"))
        out.append(message)
    return out


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> dict[str, Any]:
    """Messages → `{"system": …, "messages": […]}` (no `system` where there is none)."""
    messages = list(messages)
    quirks = quirks or Quirks()
    names = sent_names(messages, quirks, target)
    return write_conversation(messages, names, target.model if target else None, target, quirks, losses)


def sent_names(
    messages: Sequence[Message], quirks: Quirks, target: Origin | None, tools: Sequence[ToolSpec] = ()
) -> dict[str, str]:
    """Name of each tool of the request and of the calls in its history → the name to send."""
    calls = [
        p for message in messages for p in message.content if isinstance(p, ToolCallPart) and p.run_by != "provider"
    ]
    as_is = [named.name for named in (*tools, *calls) if _is_kept(named, target)]
    return fitted([named.name for named in (*tools, *calls)], quirks.names, as_is=as_is)


def write_conversation(
    messages: Sequence[Message],
    names: Mapping[str, str],
    model: str | None,
    target: Origin | None,
    quirks: Quirks,
    losses: list[Loss] | None,
) -> dict[str, Any]:
    """As `dump_messages`, with the names of tools and the model that the request tells."""
    losses = [] if losses is None else losses
    ids = call_ids(messages, quirks.ids, as_is=lambda piece: _is_kept(piece, target))
    writers = [
        Writer(quirks, losses, ids, names, position, message.role, why)
        for position, (message, why) in enumerate(zip(messages, readable(messages, target, quirks.reads), strict=True))
    ]
    head = system_length(messages)
    payload: dict[str, Any] = {}
    if system := [
        block
        for writer, message in zip(writers[:head], messages, strict=False)
        for block in writer.blocks(message.content)
    ]:
        payload["system"] = _content(system, messages[0])
    turns: list[list[_Sent]] = []
    for writer, message in zip(writers[head:], messages[head:], strict=True):
        entry = _entry(writer, message, (model or "").startswith(quirks.system_models))
        if entry is not None:
            alone = OWN.form(message.native).get("turn") == "as is"
            _add_turn(turns, _Sent(entry, writer, _has_results(entry) and not alone))
    entries = [turn[0].entry if len(turn) == 1 and not turn[0].joins else _joined(turn) for turn in turns]
    first = next((n for n, entry in enumerate(entries) if entry["role"] != "system"), 0)
    if target is not None and entries and entries[first]["role"] == "assistant":
        losses.append(Loss(head, None, "beginning", "the API wants the user to speak first; a placeholder does"))
        entries.insert(first, {"role": "user", "content": quirks.opening})
    return {**payload, "messages": entries}


def system_length(messages: Sequence[Message]) -> int:
    """How many messages at the head go to `system`."""
    for position, message in enumerate(messages):
        if message.role is not Role.SYSTEM or OWN.form(message.native).get("place") == "messages":
            return position
    return len(messages)


def _load(role: Role, entry: Mapping[str, Any], names: dict[str, str], where: str) -> Message:
    content = entry.get("content")
    own = {key: value for key, value in entry.items() if key not in ("role", "content")}
    pieces: list[Content] = []
    native = OWN.note(own)
    if isinstance(content, str):
        if content.strip():
            pieces.append(TextPart(content))
        else:
            native = OWN.with_form(native, content=content)
    elif isinstance(content, list):
        blocks = cast("list[Any]", content)
        for place, block in enumerate(blocks):
            if not isinstance(block, dict):
                raise HistoryError(f'"{where}.content[{place}]" must be an object, a content block')
            pieces.append(_piece(role, cast("dict[str, Any]", block), names))
        if not blocks:
            native = OWN.with_form(native, content=[])
        elif _is_plain(blocks):
            native = OWN.with_form(native, content="list")
    elif role is Role.SYSTEM and "content" not in entry:  # it only changes settings, in fields of its own
        native = OWN.with_form(native, content="absent")
    else:
        raise HistoryError(f'"{where}.content" must be a string or a list of content blocks')
    return Message(role, tuple(pieces), native=native)


def _piece(role: Role, block: Mapping[str, Any], names: dict[str, str]) -> Content:
    piece = load_block(block, names)
    if role is Role.MODEL and isinstance(piece, (DataPart, LinkPart, FilePart)) and block["type"] != "container_upload":
        return whole(block)
    if isinstance(piece, ToolCallPart):
        repeated, names[piece.id] = piece.id in names, piece.name
        if piece.run_by == "agent" and (repeated or not STANDARD.fits(piece.id) or not NAMES.fits(piece.name)):
            return msgspec.structs.replace(piece, native=OWN.with_form(piece.native, id_or_name="as is"))
    elif isinstance(piece, ToolResultPart) and piece.run_by == "agent" and not STANDARD.fits(piece.id):
        return msgspec.structs.replace(piece, native=OWN.with_form(piece.native, id_or_name="as is"))
    return piece


def _is_kept(named: ToolSpec | ToolCallPart | ToolResultPart, target: Origin | None) -> bool:
    """Whether an id or name that breaks the rules was recorded so, and goes back to where it was recorded."""
    return target is None and OWN.form(named.native).get("id_or_name") == "as is"


def _entry(writer: Writer, message: Message, takes_system: bool) -> dict[str, Any] | None:
    """One message of the wire; `None` where nothing of it can be sent."""
    blocks = writer.blocks(message.content)
    own = {**OWN.fields(message.native), "role": _SENT_ROLES[message.role]}
    empty = OWN.form(message.native).get("content")
    if not blocks and not message.content and (empty == [] or (isinstance(empty, str) and not empty.strip())):
        return {**own, "content": empty}
    if empty == "absent" and not message.content:
        return own
    if not blocks:
        writer.lose(None, "message", "nothing of it can be sent, and the API takes no empty message")
        return None
    if message.role is Role.SYSTEM and not takes_system and OWN.form(message.native).get("place") != "messages":
        writer.lose(
            None, "system message", "the model takes none after the first user message; sent as a marked user text"
        )
        return {"role": "user", "content": f"<system>\n{message.text}\n</system>"}
    return {**own, "content": _content(blocks, message)}


def _add_turn(turns: list[list[_Sent]], sent: _Sent) -> None:
    """Adds a message: one with results of tools to the turn of the user before it, any other as a turn of its own."""
    if sent.joins and turns and turns[-1][0].entry["role"] == "user":
        turns[-1].append(sent)
    else:
        turns.append([sent])


def _joined(turn: Iterable[_Sent]) -> dict[str, Any]:
    """The messages of a turn as one, results of tools first, as the API wants them."""
    entry: dict[str, Any] = {}
    results: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for sent in turn:
        entry |= sent.entry
        moves = False
        for block in _listed(sent.entry):
            is_result = block.get("type") == "tool_result"
            moves = moves or (is_result and bool(others))
            (results if is_result else others).append(block)
        if moves:
            sent.writer.lose(None, "order", "the API wants results of tools before everything else")
    return {**entry, "content": [*results, *others]}


def _would_move(message: Message, before: Message | None) -> bool:
    """Whether dumping would not leave the message where it was, as it was."""
    results = [
        isinstance(piece, ToolResultPart) or (isinstance(piece, ProviderPart) and piece.kind == "tool_result")
        for piece in message.content
    ]
    return any(results) and (
        results != sorted(results, reverse=True) or (before is not None and before.role is Role.USER)
    )


def _has_results(entry: Mapping[str, Any]) -> bool:
    return entry["role"] == "user" and any(block.get("type") == "tool_result" for block in _listed(entry))


def _content(blocks: list[dict[str, Any]], message: Message) -> list[dict[str, Any]] | str:
    """A single text is a string, unless it was spelled otherwise."""
    return blocks[0]["text"] if _is_plain(blocks) and OWN.form(message.native).get("content") != "list" else blocks


def _is_plain(blocks: Sequence[Any]) -> bool:
    return len(blocks) == 1 and blocks[0] == {"type": "text", "text": if_text(blocks[0].get("text")) or None}


def _listed(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a message."""
    content = entry.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else if_objects(content)
