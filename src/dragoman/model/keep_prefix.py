"""Keeps what a conversation began with: a changed system text or tool is said at its end.

Prompt caches live on an unchanged beginning, and some models bind their thinking to it. So each
request begins with the system text and the tools of the conversation's first one (`Opening`). What
has changed since follows the newest user message as a system message, and the answer notes it, so
that later requests have it at the same place. A model that takes no system message there gets the
change at the beginning, which voids what it signed: `readable` says so of each block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, cast

import msgspec

from dragoman.codec import digest
from dragoman.codec.opening import (
    Change,
    Opening,
    Tools,
    digest_system,
    digest_tools,
    find_opening,
    head_length,
    note_change,
)
from dragoman.message import Message, Native, Origin
from dragoman.model_profile import ModelProfile
from dragoman.request import ModelRequest, ServerTool, ToolSpec
from dragoman.wires.wire import Wire

__all__ = ["KeptRequest", "keep_prefix"]


class _ChangingWire(Protocol):
    """A wire that can say in the middle of a conversation what has changed."""

    def load_change(self, text: str, added: Tools, removed: tuple[str, ...]) -> Message | None:
        """The system message that says so; `None`: the wire has no room for such tools."""
        ...


class KeptRequest(NamedTuple):
    """A request that begins as the conversation did."""

    request: ModelRequest
    """What is sent."""
    target: Origin
    """Who reads it, with the digests of its system text and tools."""
    note: Native
    """What the answer notes for the requests that follow."""


def keep_prefix(
    request: ModelRequest, target: Origin, profile: ModelProfile, wire: Wire
) -> KeptRequest:
    """Returns the request with the system text and tools that the conversation began with.

    Args:
        request: what is asked, with the system text and tools of now. With `prefix="break"` they
            are sent in their places.
        target: the model that is asked.
        profile: of the same model.
        wire: writes the request.
    """
    can_say = bool(profile.midsys) and hasattr(wire, "load_change") and not request.as_sent
    note: Native = None
    if can_say and request.messages:
        request, note = _keep(request, target, cast("_ChangingWire", wire))
    if profile.binds is not None:
        target = msgspec.structs.replace(target, binds=profile.binds)
    if profile.binds == "prefix":
        system = request.messages[: head_length(request.messages)]
        target = msgspec.structs.replace(
            target, system=digest_system(system), tools=digest_tools(request.tools)
        )
    return KeptRequest(request, target, note)


def _keep(
    request: ModelRequest, target: Origin, wire: _ChangingWire
) -> tuple[ModelRequest, Native]:
    """The request as it is sent, and what its answer notes."""
    messages = request.messages
    system = messages[: head_length(messages)]
    opening = find_opening(messages, target)
    if opening is None:
        return request, Opening(system, request.tools).note()
    change = None
    if not _is_current(opening, system, request.tools):
        change = _describe_change(opening, system, request.tools, wire)
        if change is None or request.prefix == "break":
            return request, Opening(system, request.tools).note()
    elif not opening.changes and request.tools == opening.tools:
        return request, None
    kept = (*opening.system, *opening.restore(messages))
    if change is not None:
        kept = (*kept, change.message)
    request = request.replace(messages=kept, tools=opening.tools)
    return request, None if change is None else note_change(change)


def _is_current(opening: Opening, system: tuple[Message, ...], tools: Tools) -> bool:
    """True if the model knows of this system text and these tools already."""
    known_system, known_tools = opening.latest
    return digest_system(system) == digest_system(known_system) and _by_name(tools) == _by_name(
        known_tools
    )


def _describe_change(
    opening: Opening, system: tuple[Message, ...], tools: Tools, wire: _ChangingWire
) -> Change | None:
    """What has changed since the model was last told; `None`: the wire cannot say it."""
    known_system, known_tools = opening.latest
    text = ""
    if digest_system(system) != digest_system(known_system):
        text = "\n\n".join([message.text for message in system if message.text])
        if not text:
            text = "The instructions so far no longer apply."
    known, current = _by_name(known_tools), _by_name(tools)
    added = tuple([tool for tool in tools if known.get(tool.name) != current[tool.name]])
    removed = tuple([name for name in known if known[name] != current.get(name)])
    message = wire.load_change(text, added, removed)
    return None if message is None else Change(message, system, tools)


def _by_name(tools: Tools) -> Mapping[str, str]:
    """Name of each tool → the digest of its description for the model."""
    return {tool.name: _digest_tool(tool) for tool in tools}


def _digest_tool(tool: ToolSpec | ServerTool) -> str:
    return digest.of_value(msgspec.structs.replace(tool, native=None))
