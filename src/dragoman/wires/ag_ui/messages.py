"""Messages, both ways. One message is a group of AG-UI messages: reasoning, each text with the
calls behind it, and each result are messages of their own. What the protocol has no field for
stands in their metadata (`extras`), where `of` names the group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import check_depth, if_object, if_objects, if_text
from dragoman.codec.memos import load_from_client, select_visible
from dragoman.codec.serving import Problem, note_problem
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ag_ui.messages_dump import DumpedNames, dump_group
from dragoman.wires.ag_ui.messages_load import ACTIVITY, ROLES, AguiMessage, load_group, open_entry
from dragoman.wires.ag_ui.quirks import load_extras, rename_message

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
    distinctive=frozenset(
        ["threadId", "runId", "forwardedProps", "parentRunId", "protocolVersion"]
    ),
)
"""Where the messages are in the body of a request."""

_Group = list[AguiMessage]
"""AG-UI messages that are one message."""
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
"""Role → its fields beside those of `_ANY`."""
_ALONE: Mapping[str, tuple[str, ...]] = {
    "tool": ("toolCallId",),
    "reasoning": ("content",),
    "activity": ("activityType",),
}
"""Role that no other format has in this form → its text fields."""
_JOINS: Mapping[str, frozenset[str]] = {
    "tool": frozenset(["tool"]),
    "reasoning": frozenset(["reasoning", "assistant"]),
}
"""Last role of a foreign group → roles that continue it."""


def votes(message: Any) -> int:
    """See `Wire.votes`. AG-UI has roles and fields of its own."""
    fields = if_object(message)
    role = if_text(fields.get("role"))
    if role not in _FIELDS or not isinstance(fields.get("id"), str):
        return 0
    if not fields.keys() <= _FIELDS[role] | _ANY:
        return 0
    if role in _ALONE:
        if all(isinstance(fields.get(name), str) for name in _ALONE[role]):
            return 3
        return 0
    is_calling = role == "assistant" and _has_calls(fields.get("toolCalls"))
    if is_calling or load_extras(fields.get("metadata")):
        return 3
    if isinstance(fields.get("content", ""), str | list):
        return 1
    return 0


def _has_calls(calls: Any) -> bool:
    """True if a list holds calls with a `function`."""
    entries = if_objects(calls)
    return bool(entries) and all(isinstance(call.get("function"), dict) for call in entries)


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Returns the messages in a list of AG-UI messages.

    Args:
        payload: the list.
        origin: for model messages that bring none.
        problems: takes what cannot be read; None to raise.

    Raises:
        HistoryError: it is no list of objects, or a message cannot be read and `problems` is None.
    """
    if not isinstance(payload, list):
        raise HistoryError("the messages of AG-UI are a list of objects")
    groups = _Groups()
    for index, entry in enumerate(cast("list[Any]", payload)):
        try:
            opened = open_entry(index, _load_entry(entry, problems))
        except HistoryError as error:
            note_problem(error, problems, index, "role" if isinstance(entry, dict) else None)
            continue
        is_retracted = opened.group_extras.get("void") is True
        # the tool's result already says what a run within a tool said
        if not is_retracted and not if_text(opened.fields.get("subagentRunId")):
            groups.add(opened)
    names: dict[str, str] = {}
    return load_from_client(
        message for group in groups.listed for message in load_group(group, origin, names, problems)
    )


def _load_entry(entry: Any, problems: list[Problem] | None) -> Json:
    """Returns an AG-UI message under the protocol's names.

    Raises:
        HistoryError: it is no object, or its role is unknown.
    """
    if not isinstance(entry, dict):
        raise HistoryError("the messages of AG-UI are a list of objects")
    fields = rename_message(cast("Json", entry))
    role = fields.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise HistoryError(f"AG-UI has no role {role!r:.100}; it has {', '.join(ROLES)}")
    if problems is None:
        return fields
    return check_depth(fields)


class _Groups:
    """The groups of AG-UI messages that are one message each."""

    def __init__(self) -> None:
        self.listed: list[_Group] = []
        self._by_key: dict[str, _Group] = {}

    def add(self, entry: AguiMessage) -> None:
        """Adds an AG-UI message to the group that it continues, or starts a group."""
        group = self._find_noted(entry)
        # only foreign messages are grouped by their order; dragoman's own name their group
        if group is None and not entry.group_extras and self.listed:
            group = self._find_last(entry)
        if group is None:
            group = self._by_key[entry.group_key] = []
            self.listed.append(group)
        group.append(entry)

    def _find_noted(self, entry: AguiMessage) -> _Group | None:
        """Returns the group that an AG-UI message names, or None. Others may stand between, since
        clients put results behind their calls."""
        key = entry.group_key
        group = self._by_key.get(key) if key else None
        if group is None:
            return None
        is_noted = isinstance(entry.group_extras.get("of"), str)
        if is_noted or group[0].group_extras.get("of") == key:
            return group
        return None

    def _find_last(self, entry: AguiMessage) -> _Group | None:
        """Returns the last group of AG-UI messages if a foreign message continues it, or None."""
        last = self.listed[-1]
        role = entry.fields["role"]
        if role == ACTIVITY:
            return last
        if last[0].group_extras:
            return None
        roles = [other.fields["role"] for other in last if other.fields["role"] != ACTIVITY]
        if roles and role in _JOINS.get(roles[-1], ()):
            return last
        return None


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Returns the messages in a list of AG-UI messages. With `problems`, unreadable ones are
    skipped and noted there.

    Raises:
        HistoryError: it is no list of AG-UI messages.
    """
    return load_conversation(
        check_depth(payload) if problems is None else payload, origin, problems
    )


def dump_conversation(
    messages: Iterable[Message], *, extras: bool = True, parts: bool = True
) -> list[Json]:
    """Returns messages as AG-UI messages.

    Args:
        messages: the conversation.
        extras: False to leave out what the protocol has no field for.
        parts: True if the peer reads tool results that are lists of parts.
    """
    group = DumpedNames(extras=extras, parts=parts)
    return [
        entry
        for position, message in select_visible(messages)
        for entry in dump_group(message, position, group)
    ]


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 nothing is signed for one peer and not for another
    losses: list[Loss] | None = None,  # noqa: ARG001 nothing is lost
) -> list[Json]:
    """Returns messages as AG-UI messages, which `load_messages` reads back unchanged."""
    return dump_conversation(messages)
