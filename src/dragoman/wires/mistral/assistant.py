"""The model's message ⇄ a message of the role `assistant`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.codec.json_values import if_objects, merged, rest
from dragoman.codec.replay import kind_of
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.mistral.calls import dump_call, is_call, load_call
from dragoman.wires.mistral.chunks import dump_content, load_content
from dragoman.wires.mistral.outgoing import Outgoing
from dragoman.wires.mistral.quirks import OWN

__all__ = ["dump_assistant", "load_assistant"]


def load_assistant(
    message: Mapping[str, Any], origin: Origin | None, fresh_ids: Iterator[str], known: set[str]
) -> Message:
    """A message of the role `assistant` → the model's. `fresh_ids`: ids for calls that came without one; `known`: ids
    of the calls before it, to which its own are added."""
    spelled: dict[str, Any] = {}
    content = load_content(message, spelled)
    calls = if_objects(message.get("tool_calls"))
    read = ("tool_calls",) if calls and all(map(is_call, calls)) else ()
    for entry in calls if read else ():
        call = load_call(entry, fresh_ids, known)
        known.add(call.id)
        content.append(call)
    native = OWN.note(rest(message, "role", "content", *read), spelled)
    return Message(Role.MODEL, tuple(content), origin=origin, native=native)


def dump_assistant(position: int, out: Outgoing) -> dict[str, Any] | None:
    """A model's message → a message of the role `assistant`; `None` where nothing of it is left to say to a target,
    which would refuse it."""
    message = out.messages[position]
    chunks: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for place, piece in enumerate(message.content):
        if (why := _refused(position, piece, out)) is not None:
            out.lose(position, place, kind_of(piece), why)
        elif isinstance(piece, ToolCallPart):
            exact = out.exact(message)
            calls.append(dump_call(piece, out.call_id(position, place, piece), out.name(piece.name), exact=exact))
        elif (chunk := out.chunk(position, place, piece)) is not None:
            if calls:
                out.lose(position, place, "order", "this format has all text before the calls")
            chunks.append(chunk)
    if not chunks and not calls and out.target is not None:
        out.lose(position, None, "message", "it says nothing, and the API takes no empty message of the model's")
        return None
    body = {"role": "assistant", **dump_content(chunks, OWN.form(message.native))}
    if calls:
        body["tool_calls"] = calls
    return merged(body, OWN.fields(message.native))


def _refused(position: int, piece: Content, out: Outgoing) -> str | None:
    """Why a piece of a model's message cannot be sent; `None`: it can."""
    reason, ours = out.reasons[position], OWN.is_ours(piece.native)
    if isinstance(piece, ThinkingPart):
        if not out.quirks.thinking:
            return reason or "the server takes no thinking back"
        return reason or (None if ours or piece.text else "it is signed for another format")
    if isinstance(piece, ProviderPart):
        return reason or (None if ours else "it is a block of another format")
    if isinstance(piece, (ToolCallPart, ToolResultPart)) and piece.run_by == "provider":
        return reason or "this API takes no record of tools that it ran"
    if isinstance(piece, ToolResultPart):
        return "a result stands in a user message"
    if isinstance(piece, (DataPart, LinkPart, FilePart)) and not out.exact(out.messages[position]):
        return "a model's message holds no media in this format"
    return None
