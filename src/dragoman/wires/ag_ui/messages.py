"""Messages, both ways. One of ours is a group of theirs: reasoning, each text with the calls behind it, and each result are messages of
their own. What the protocol has no field for stands in their metadata (`extras`), where `of` names the group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from dragoman.codec.json_values import bounded, if_object, if_objects, if_text
from dragoman.codec.layout import Layout
from dragoman.codec.serving import Problem, noted
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ag_ui.messages_dump import Group, dump_group
from dragoman.wires.ag_ui.messages_load import ROLES, held_by, key_of, load_group
from dragoman.wires.ag_ui.quirks import renamed_message, unpacked

__all__ = [
    "dump_conversation",
    "dump_messages",
    "layout",
    "load_conversation",
    "load_messages",
    "votes",
]

layout = Layout(
    fields=("messages",),
    own=frozenset(["threadId", "runId", "forwardedProps", "parentRunId", "protocolVersion"]),
)
"""Where the messages stand in the body of a request."""

_Entries = list[tuple[int, dict[str, Any]]]
"""Messages of theirs that are one of ours, with their places."""
_ANY = frozenset(["id", "role", "content", "metadata", "subagentRunId", "encryptedValue"])
_FIELDS: Mapping[str, frozenset[str]] = {
    "system": frozenset(["name"]),
    "developer": frozenset(["name"]),
    "user": frozenset(["name"]),
    "assistant": frozenset(["name", "toolCalls"]),
    "tool": frozenset(["toolCallId", "error"]),
    "reasoning": frozenset(),
    "activity": frozenset(["activityType"]),
}
"""Role → its fields, beside those of `_ANY`."""
_ALONE: Mapping[str, tuple[str, ...]] = {
    "tool": ("toolCallId",),
    "reasoning": ("content",),
    "activity": ("activityType",),
}
"""Role that nobody else writes so → texts that it has."""
_JOINS: Mapping[str, frozenset[str]] = {
    "tool": frozenset(["tool"]),
    "reasoning": frozenset(["reasoning", "assistant"]),
}
"""Role that a foreign group ends in → roles that go on with it."""


def votes(message: Any) -> int:
    """How surely a message is one of AG-UI: its own roles and fields are nobody else's."""
    fields = if_object(message)
    role = fields.get("role")
    if not isinstance(role, str) or role not in _FIELDS or not isinstance(fields.get("id"), str):
        return 0
    if not fields.keys() <= _FIELDS[role] | _ANY:
        return 0
    if role in _ALONE:
        return 3 if all(isinstance(fields.get(name), str) for name in _ALONE[role]) else 0
    if unpacked(fields.get("metadata")) or (
        role == "assistant" and _has_calls(fields.get("toolCalls"))
    ):
        return 3
    return 1 if isinstance(fields.get("content", ""), str | list) else 0


def _has_calls(calls: Any) -> bool:
    return bool(listed := if_objects(calls)) and all(
        isinstance(call.get("function"), dict) for call in listed
    )


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Their messages → ours.

    Raises:
        HistoryError: it is no list of objects, or one cannot be read and no problems are noted.
    """
    if not isinstance(payload, list):
        raise HistoryError("the messages of AG-UI are a list of objects")
    groups: list[_Entries] = []
    by_key: dict[str, _Entries] = {}
    for index, entry in enumerate(cast("list[Any]", payload)):
        try:
            fields = _entry(entry, problems)
        except HistoryError as error:
            noted(error, problems, index, "role" if isinstance(entry, dict) else None)
            continue
        if held_by(fields).get("void") is True or if_text(fields.get("subagentRunId")):
            continue  # retracted, or of a run within a tool, which its result tells of
        group = _group_of(fields, groups, by_key)
        if group is None:
            group = by_key[key_of(fields)] = []
            groups.append(group)
        group.append((index, fields))
    names: dict[str, str] = {}
    return [message for group in groups for message in load_group(group, origin, names, problems)]


def _entry(entry: Any, problems: list[Problem] | None) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise HistoryError("the messages of AG-UI are a list of objects")
    fields = renamed_message(cast("dict[str, Any]", entry))
    role = fields.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise HistoryError(f"AG-UI has no role {role!r:.100}; it has {', '.join(ROLES)}")
    return fields if problems is None else bounded(fields)


def _group_of(
    fields: Mapping[str, Any], groups: Sequence[_Entries], by_key: Mapping[str, _Entries]
) -> _Entries | None:
    """The group that a message goes on with; where it says so itself, others may stand in between, since clients put results behind their calls."""
    held, key = held_by(fields), key_of(fields)
    known = by_key.get(key) if key else None
    if known is not None and (
        isinstance(held.get("of"), str) or held_by(known[0][1]).get("of") == key
    ):
        return known
    if held or not groups:
        return None
    last = groups[-1]
    if fields["role"] == "activity":
        return last
    if held_by(last[0][1]):
        return None
    role = next((each["role"] for _, each in reversed(last) if each["role"] != "activity"), "")
    return last if fields["role"] in _JOINS.get(role, ()) else None


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Their messages → ours; `origin` is given to the model's that bring none of their own. With `problems`, what cannot be read is left out
    and noted there.

    Raises:
        HistoryError: it is no list of messages of AG-UI.
    """
    return load_conversation(bounded(payload) if problems is None else payload, origin, problems)


def dump_conversation(
    messages: Iterable[Message], *, extras: bool = True, parts: bool = True
) -> list[dict[str, Any]]:
    """Messages → theirs. `extras`: with what the protocol has no field for; `parts`: results may be lists of parts."""
    group = Group(extras=extras, parts=parts)
    return [
        entry
        for position, message in enumerate(messages)
        for entry in dump_group(message, position, group)
    ]


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 nothing is signed for one peer and not for another
    losses: list[Loss] | None = None,  # noqa: ARG001 nothing is lost
) -> list[dict[str, Any]]:
    """Messages → theirs, which `load_messages` gives back as they were."""
    return dump_conversation(messages)
