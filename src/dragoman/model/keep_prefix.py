"""Keeps what a conversation began with: a changed system text or tool is said at its end.

Prompt caches live on an unchanged beginning, and some models bind their thinking to it. So each
request begins with the system text and the tools of the conversation's first one (`Opening`). What
has changed since follows the newest user message as a system message, and the answer notes it, so
that later requests have it at the same place. A model that takes no system message there gets the
change at the beginning, which voids what it signed: `readable` says so of each block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

import msgspec

from dragoman.codec.opening import (
    Began,
    Change,
    Note,
    Opening,
    Tools,
    count_system_messages,
    digest_system,
    digest_tools,
    find_opening,
)
from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Origin, Role
from dragoman.model_profile import ModelProfile
from dragoman.request import ModelRequest
from dragoman.wires.wire import Wire

__all__ = ["KeptRequest", "drop_mismatches", "find_unread_thinking", "keep_prefix"]

_MISMATCH = re.compile(r"bound to a different conversation")
_DROPPED = Loss(
    None,
    None,
    Lost.thinking,
    "the provider found some bound to another conversation; it is asked to drop that",
)


class _ChangingWire(Protocol):
    """A wire that can say in the middle of a conversation what has changed."""

    def load_change(self, text: str, added: Tools, removed: Sequence[str]) -> Message | None:
        """Returns the system message that reports a change, or None if the wire cannot express
        it."""
        ...


class KeptRequest(NamedTuple):
    """A request that begins as the conversation did."""

    request: ModelRequest
    """What is sent."""
    target: Origin
    """Who reads it, with the digests of its system text and tools."""
    note: Note
    """What the answer notes for the requests that follow."""
    places: Sequence[int] | None = None
    """For each message that is sent the position of the given one; `None`: they are the same."""
    losses: tuple[Loss, ...] = ()
    """What the provider is asked to leave out."""


def keep_prefix(
    request: ModelRequest,
    target: Origin,
    find_profile: Callable[[str | None], ModelProfile],
    wire: Wire,
) -> KeptRequest:
    """Returns the request with the system text and tools that the conversation began with.

    Args:
        request: what is asked, with the system text and tools of now. With `prefix="break"` they
            are sent in their places.
        target: the model that is asked.
        find_profile: endpoint → the profile of the same model. It is asked for one only where that
            matters: the first one of a process reads the table.
        wire: writes the request.
    """
    kept = KeptRequest(request, target, Note())
    can_change = hasattr(wire, "load_change")
    if not can_change and next(_own_origins(request.messages, target), None) is None:
        return kept
    profile = find_profile(target.endpoint)
    # A client of the same API says itself what its conversation is.
    if can_change and not request.as_sent and request.messages:
        opening = find_opening(request.messages, target)
        if profile.midsys:
            kept = _keep_request_prefix(kept, opening, cast("_ChangingWire", wire))
        kept = _mark_drops(kept, opening)
    target = _bind_target(target, kept.request, profile)
    losses = (
        *kept.losses,
        *_find_break(kept.request.messages, target),
        *find_unread_thinking(request.messages, target, profile),
    )
    return kept._replace(target=target, losses=losses)


def find_unread_thinking(
    messages: Sequence[Message], target: Origin, profile: ModelProfile
) -> list[Loss]:
    """Returns the thinking of the provider's other models in the prefix that this model does not
    read. It is sent all the same, since leaving it out would void what follows; the provider drops
    it.

    Args:
        messages: the conversation.
        target: the model that reads it.
        profile: of the model; without `reads` nothing is known.
    """
    if profile.reads is None:
        return []
    losses: list[Loss] = []
    for position, message in enumerate(messages):
        origin = message.origin
        if origin is None or origin.provider != target.provider or not message.thinking:
            continue
        model = origin.model or ""
        if model != target.model and not model.startswith(profile.reads):
            why = f"{target.model} does not read the thinking of {model}; the provider drops it"
            losses.append(Loss(position, None, Lost.thinking, why))
    return losses


def drop_mismatches(request: ModelRequest, error: DragomanError) -> ModelRequest | None:
    """Returns the request, without what its prefix no longer fits, to send in place of one whose
    thinking the provider found bound to another conversation; `None`: that is not what was
    refused."""
    is_mismatch = isinstance(error, InvalidRequestError) and _MISMATCH.search(error.message)
    if not is_mismatch or request.prefix == "drop" or request.as_sent or request.on_loss == "error":
        return None
    return request.replace(prefix="drop")


def _bind_target(target: Origin, request: ModelRequest, profile: ModelProfile) -> Origin:
    """Returns the target with the prefix digests that its signed thinking is bound to in this
    request."""
    if profile.binds is None:
        return target
    system = request.messages[: count_system_messages(request.messages)]
    return msgspec.structs.replace(
        target,
        binds=profile.binds,
        system=digest_system(system),
        tools=digest_tools(request.tools),
    )


def _find_break(messages: Sequence[Message], target: Origin) -> list[Loss]:
    """Returns a loss for what breaks the prefix: what differs from the opening of the last request,
    which counts the messages whose thinking it voids."""
    newest = next((origin for origin in _own_origins(messages, target)), None)
    if newest is None:
        return []
    changed = [
        name
        for name, before, now in (
            ("system", newest.system, target.system),
            ("tools", newest.tools, target.tools),
        )
        if before is not None and before != now
    ]
    if not changed:
        return []
    void = sum(1 for origin in _own_origins(messages, target) if origin.binds == "prefix")
    why = f"changed since the last request; the thinking of {void} messages is void for it"
    return [Loss(None, None, Lost.prefix, why, " and ".join(changed))]


def _own_origins(messages: Sequence[Message], target: Origin) -> Iterator[Origin]:
    """Yields the origins of the target's own answers, which note their prefix, the newest first."""
    for message in reversed(messages):
        if message.origin is not None and message.origin.provider == target.provider:
            yield message.origin


def _mark_drops(kept: KeptRequest, opening: Opening) -> KeptRequest:
    """Returns the request, whose prefix changed, with the option that lets the provider drop
    thinking that does not fit, if it needed that before or needs it now."""
    if opening.drops and kept.request.prefix != "drop":
        return kept._replace(request=kept.request.replace(prefix="drop"))
    if kept.request.prefix == "drop" and not opening.drops:
        note = msgspec.structs.replace(kept.note, drops=True)
        return kept._replace(note=note, losses=(_DROPPED,))
    return kept


def _keep_request_prefix(kept: KeptRequest, opening: Opening, wire: _ChangingWire) -> KeptRequest:
    """Returns the request with the opening's system text and tools, the note for its answer, and
    where its messages stood."""
    request, messages = kept.request, kept.request.messages
    head = count_system_messages(messages)
    now = Began(messages[:head], request.tools)
    began = opening.began
    if began is None:
        return kept._replace(note=Note(began=now))
    change = None
    latest = opening.changes[-1][1].now if opening.changes else began
    if not _says_the_same(latest, now):
        # A system message has its place behind one of the user's.
        if request.prefix != "break" and messages[-1].role is Role.USER:
            change = _describe_change(latest, now, wire)
        if change is None:
            return kept._replace(note=Note(began=now))
    restored, places = opening.restore(messages)
    if change is not None:
        restored, places = (*restored, change.message), [*places, len(messages) - 1]
    heads = [max(0, min(position, head - 1)) for position in range(len(began.system))]
    return kept._replace(
        request=request.replace(messages=(*began.system, *restored), tools=began.tools),
        note=Note(change=change),
        places=[*heads, *places],
    )


def _says_the_same(before: Began, now: Began) -> bool:
    """True if the prefix is kept: the model knows of this system text and these tools already."""
    return digest_system(before.system) == digest_system(now.system) and _digest_by_name(
        before.tools
    ) == _digest_by_name(now.tools)


def _describe_change(before: Began, now: Began, wire: _ChangingWire) -> Change | None:
    """Returns the change of the prefix's system text or tools since the model was last told, or
    None if the wire cannot express it."""
    text = ""
    if digest_system(before.system) != digest_system(now.system):
        text = "\n\n".join([message.text for message in now.system if message.text])
        text = text or "The instructions so far no longer apply."
    known, current = _digest_by_name(before.tools), _digest_by_name(now.tools)
    added = tuple([tool for tool in now.tools if known.get(tool.name) != current[tool.name]])
    removed = [name for name in known if known[name] != current.get(name)]
    message = wire.load_change(text, added, removed)
    return None if message is None else Change(message, now)


def _digest_by_name(tools: Tools) -> Mapping[str, str]:
    """Returns the digest of each tool by its name."""
    return {tool.name: digest_tools((tool,)) for tool in tools}
