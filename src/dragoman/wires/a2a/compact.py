"""A stream of older agents, reduced to what stays once it is over: nothing that was said is lost,
and nothing is said twice.

A chunk holds the text of its answer so far. It goes where a later chunk, the end of the answer or
its call says the same text and more; an answer that was cut stays as its last chunk. Arguments that
came in pieces, before or behind their call, are merged into it. An answer ends, for both, where the
user says something or a tool answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import chain
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Message, Role
from dragoman.wires.a2a.quirks import CANONICAL, EXTENSION
from dragoman.wires.a2a.tools import CALL, TOOL_CALLS_KEY, TOOL_RESULTS_KEY
from dragoman.wires.a2a.tools import RESULT as RESULT_PART

__all__ = [
    "ARGS",
    "CHUNK",
    "CONTENT",
    "END",
    "Entry",
    "KINDS",
    "RESULT",
    "Remaining",
    "START",
    "canonical_type",
    "compact_messages",
    "new_text",
    "read_field",
    "get_agui_event_type_from_a2a_message",
    "continues_text",
    "merge_arguments",
    "parts_of",
    "reduce_entries",
    "role_name",
    "find_text",
    "tool_calls_of",
    "tool_results_of",
]

Calls = Sequence[tuple[str, Any]]
"""The id and the arguments of each call."""
_TRIES = 20
"""Bound of the work: at most this many cut answers may precede one whose chunks hold only new
text."""
CONTENT = "TextMessageContentEvent"
CHUNK = "TextMessageChunkEvent"
END = "TextMessageEndEvent"
START = "ToolCallStartEvent"
ARGS = "ToolCallArgsEvent"
RESULT = "ToolCallResultEvent"

KINDS = (CONTENT, CHUNK, END, START, ARGS, RESULT)
"""All canonical types of messages."""


class Entry(msgspec.Struct, frozen=True):
    """One event of a stream, reduced to what compaction needs."""

    event_type: str
    """Canonical type. An unknown one is passed through."""
    text: str = ""
    calls: Calls = ()


class Remaining:
    """An entry that stays after compaction."""

    __slots__ = ("arguments", "index", "is_text")

    def __init__(self, index: int, *, is_text: bool = False) -> None:
        """Keeps an A2A entry that stays after compaction."""
        self.index = index
        self.is_text = is_text
        """True if only its text stays: a chunk without an end, or the text of a call that was
        repeated without it."""
        self.arguments: dict[str, Json] = {}
        """Call id → its merged arguments, if they arrived in pieces."""


def reduce_entries(entries: Sequence[Entry]) -> list[Remaining]:
    """Returns the A2A entries that stay after compaction, in stream order (T-20 to T-28)."""
    compaction = _Compaction(entries)
    for index, entry in enumerate(entries):
        compaction.add(index, entry)
    return compaction.end()


class _Compaction:
    """The state of one compaction: the entries so far, and which of them stay."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        """Starts the compaction of an A2A stream."""
        self._entries = entries
        self._remaining: dict[int, Remaining] = {}
        self._chunks: list[int] = []
        """Indexes of chunks whose text no later entry repeats yet."""
        self._repeatable: dict[str, Remaining] = {}
        """Call id → the entry that stays, while the same answer may repeat the call."""
        self._calls: dict[str, Remaining] = {}
        """Call id → the entry that stays, while more of its arguments may arrive."""
        self._early: dict[str, Json] = {}
        """Id of a call that has not arrived → its arguments."""

    def add(self, index: int, entry: Entry) -> None:
        """Adds the next entry of the A2A stream."""
        if entry.event_type == CHUNK:
            self._add_chunk(index, entry.text)
        elif entry.event_type == ARGS:
            self._add_arguments(entry.calls)
        else:
            if entry.event_type in (START, END):
                self._drop_repeated(entry.text)
            if entry.event_type in (CONTENT, RESULT):
                self._begin_turn(keeps_early=entry.event_type == RESULT)
            remaining = self._remaining[index] = Remaining(index)
            if entry.event_type == START:
                self._add_start(remaining, entry)
            elif entry.event_type == END:
                self._repeatable.clear()

    def end(self) -> list[Remaining]:
        """Ends the stream. Returns the entries that stay."""
        self._keep_cut(self._chunks)
        return [self._remaining[index] for index in sorted(self._remaining)]

    def _add_chunk(self, index: int, text: str) -> None:
        """Adds an A2A chunk. It replaces the chunk before it if it repeats that text and goes
        on."""
        if self._chunks and continues_text(text, self._entries[self._chunks[-1]].text):
            self._chunks.pop()
        self._chunks.append(index)

    def _drop_repeated(self, text: str) -> None:
        """Drops the A2A chunks that a complete answer repeats, and keeps the others as answers that
        were cut.

        Chunks may hold the text so far, or each only the new text: both are recognized.
        """
        texts = [self._entries[index].text for index in self._chunks]
        # Some agents send only what is new in each chunk. Which chunk such an answer began with is
        # tried from the oldest on.
        starts = range(min(len(texts), _TRIES))
        matches = (start for start in starts if continues_text(text, "".join(texts[start:])))
        earlier = self._chunks[: next(matches, len(texts))]
        self._keep_cut(
            [index for index in earlier if not continues_text(text, self._entries[index].text)]
        )
        self._chunks.clear()

    def _keep_cut(self, chunks: Sequence[int]) -> None:
        """Keeps chunks as A2A answers that were cut, unless they are empty."""
        for index in chunks:
            if self._entries[index].text:
                self._remaining[index] = Remaining(index, is_text=True)

    def _begin_turn(self, *, keeps_early: bool) -> None:
        """Ends the current answer of the compacted events, because the user spoke or a tool
        answered."""
        self._keep_cut(self._chunks)
        self._chunks.clear()
        self._repeatable.clear()
        self._calls.clear()
        if not keeps_early:
            self._early.clear()

    def _add_arguments(self, calls: Calls) -> None:
        """Merges a piece of arguments into its call while events are compacted, or stores it until
        the call arrives."""
        for id_, arguments in calls:
            if not isinstance(arguments, dict):
                continue
            # Arguments may come before the call that they are of.
            if id_ in self._calls:
                target = self._calls[id_].arguments
            else:
                target = self._early
            target.setdefault(id_, {}).update(if_object(arguments))

    def _add_start(self, start: Remaining, entry: Entry) -> None:
        """Adds to the compacted events one with calls, merged with earlier pieces of their
        arguments."""
        pieces = self._take_back_repeated(entry)
        for id_, arguments in entry.calls:
            # Later pieces win, and the call's own arguments win over both.
            merged = {**pieces.get(id_, {}), **self._early.pop(id_, {})}
            if isinstance(arguments, dict):
                merged |= if_object(arguments)
            takes_pieces = isinstance(arguments, dict) or not arguments
            if merged and takes_pieces and merged != arguments:
                start.arguments[id_] = merged
            self._calls[id_] = self._repeatable[id_] = start

    def _take_back_repeated(self, entry: Entry) -> dict[str, Json]:
        """Drops earlier compacted events that a new event with the same calls repeats. Returns
        their arguments by call id.

        An earlier event stays for its text alone if the new event does not contain that text.
        """
        # Several calls of the entry may stand in one earlier event, which counts once.
        earlier = {
            id(start): start for id_, _ in entry.calls if (start := self._repeatable.get(id_))
        }
        pieces: dict[str, Json] = {}
        for start in earlier.values():
            if not self._is_repeated(start, entry):
                continue
            for id_, arguments in self._entries[start.index].calls:
                pieces[id_] = merge_arguments(arguments, start.arguments.get(id_, {}))
            if continues_text(entry.text, self._entries[start.index].text):
                del self._remaining[start.index]
            else:
                start.is_text, start.arguments = True, {}
        return pieces

    def _is_repeated(self, earlier: Remaining, entry: Entry) -> bool:
        """True if an A2A entry contains every call of an earlier one, so that it continues it
        (T-25)."""
        before = {id_ for id_, _ in self._entries[earlier.index].calls}
        return bool(before) and "" not in before and before <= {id_ for id_, _ in entry.calls}


def merge_arguments(arguments: Any, pieces: Json | None) -> Any:
    """Returns an A2A call's arguments in compacted events, updated by the pieces that arrived apart
    from it (T-24)."""
    if pieces is None:
        return arguments
    return {**if_object(arguments), **pieces}


def continues_text(text: str, earlier: str) -> bool:
    """True if `text` of an A2A event continues `earlier`. White space at both ends is ignored,
    since many agents trim it at the end."""
    trimmed = text.strip()
    return (
        text.startswith(earlier)
        or trimmed.startswith(earlier.lstrip())
        or trimmed == earlier.strip()
    )


def new_text(text: str, earlier: str) -> str:
    """Returns the part of an A2A event's `text` that is new since `earlier`, which it continues
    (see `continues_text`)."""
    if text.startswith(earlier):
        return text[len(earlier) :]
    return text.strip()[len(earlier.lstrip()) :]


def compact_messages(messages: Sequence[Any]) -> list[tuple[int, Any]]:
    """Returns the A2A messages that stay after compaction, each with its index in the list.

    A list without chunks and tool calls is returned unchanged.
    """
    if not any(
        _canonical_type_in(message) in (CHUNK, ARGS) or _find_calls(message) for message in messages
    ):
        return list(enumerate(messages))
    entries = reduce_entries([_load_entry(message) for message in messages])
    return [(entry.index, _reduce_message(messages[entry.index], entry)) for entry in entries]


def _load_entry(message: Any) -> Entry:
    """Returns a message as an entry of a compaction. A message that carries the extension is passed
    through."""
    if not isinstance(message, dict) or EXTENSION in if_object(if_object(message).get("metadata")):
        return Entry("")
    event_type = get_agui_event_type_from_a2a_message(message)
    return Entry(
        event_type if event_type in KINDS else CONTENT,
        find_text(message) or "",
        _find_calls(message),
    )


def _canonical_type_in(message: Any) -> str:
    """Returns the canonical type in a message's metadata, or an empty text."""
    return if_text(if_object(if_object(message).get("metadata")).get(CANONICAL))


def _find_calls(message: Any) -> Calls:
    """Returns the id and the arguments of each call in an A2A message."""
    calls = [
        call for part in if_list(if_object(message).get("parts")) for call in _calls_of_part(part)
    ]
    return [(if_text(call.get("call_id")), call.get("arguments")) for call in map(if_object, calls)]


def _calls_of_part(part: Any) -> list[Any]:
    """Returns the list of calls in an A2A part of an older agent."""
    fields = if_object(part)
    data = if_object(fields.get("data", if_object(fields.get("root")).get("data")))
    return if_list(data.get(TOOL_CALLS_KEY))


def _reduce_message(message: Any, remaining: Remaining) -> Any:
    """Returns an A2A message as compaction left it: without its calls, or with merged arguments."""
    if not remaining.arguments and not remaining.is_text:
        return message
    parts = if_list(if_object(message)["parts"])
    if remaining.is_text:
        return {**if_object(message), "parts": [part for part in parts if not _calls_of_part(part)]}
    return {
        **if_object(message),
        "parts": [_merge_part(part, remaining.arguments) for part in parts],
    }


def _merge_part(part: Any, arguments: Mapping[str, Json]) -> Any:
    """Returns an A2A part whose calls have their merged arguments."""
    if not _calls_of_part(part):
        return part
    inner = if_object(if_object(part).get("root")) or if_object(part)
    data = if_object(inner["data"])
    calls = [_merge_call(call, arguments) for call in if_list(data[TOOL_CALLS_KEY])]
    return {**inner, "data": {**data, TOOL_CALLS_KEY: calls}}


def _merge_call(call: Any, arguments: Mapping[str, Json]) -> Any:
    """Returns a call in compacted events of an older A2A agent with its merged arguments."""
    fields = if_object(call)
    pieces = arguments.get(if_text(fields.get("call_id")))
    if pieces is None:
        return call
    return {**fields, "arguments": merge_arguments(fields.get("arguments"), pieces)}


def canonical_type(message: Message) -> str:
    """Returns the canonical type under which an A2A message is written."""
    if message.role is Role.MODEL:
        return START if message.tool_calls else END
    return RESULT if message.tool_results else CONTENT


def get_agui_event_type_from_a2a_message(message: Any) -> str:
    """Returns the canonical type of a message: from its metadata, else from its role and parts."""
    event_type = read_field(read_field(message, "metadata"), CANONICAL)
    if isinstance(event_type, str) and event_type:
        return event_type
    role = role_name(message)
    has_text = find_text(message) is not None
    if role == "user" and tool_results_of(message) is not None:
        return RESULT
    if role == "agent" and tool_calls_of(message) is not None:
        return START
    if role == "agent" and has_text:
        return END
    return CONTENT


def read_field(value: Any, *names: str) -> Any:
    """Returns the first of these fields that a dictionary or an A2A object has, or None."""
    value = _to_dict(value)
    for name in names:
        if isinstance(value, Mapping):
            if name in value:
                return cast("JsonMap", value)[name]
        elif hasattr(value, name):
            return getattr(value, name)
    return None


def _to_dict(value: Any) -> Any:
    """Returns an A2A protobuf message as a dictionary, and any other value unchanged."""
    if not hasattr(value, "DESCRIPTOR"):
        return value
    to_dict: Any = import_module("google.protobuf.json_format").MessageToDict
    return to_dict(value)


def role_name(message: Any) -> str:
    """Returns `user` or `agent` for any A2A version's name of the role, any other name unchanged,
    or an empty text."""
    role = read_field(message, "role")
    name = if_text(role) or if_text(getattr(role, "value", None))
    if name.startswith("ROLE_"):
        return name.removeprefix("ROLE_").lower()
    return name


def parts_of(message: Any) -> list[Any]:
    """Returns the A2A parts of a message, without the wrapper `root` of older libraries."""
    parts = read_field(message, "parts")
    if not isinstance(parts, list | tuple):
        return []
    listed = list(cast("list[Any]", parts))
    roots = [read_field(part, "root") for part in listed]
    return [part if root is None else root for part, root in zip(listed, roots, strict=True)]


def find_text(message: Any) -> str | None:
    """Returns the text of all A2A parts joined without a separator, or None if no part has text."""
    texts = [
        text for part in parts_of(message) if isinstance(text := read_field(part, "text"), str)
    ]
    return "".join(texts) if texts else None


def tool_calls_of(message: Any) -> list[Any] | None:
    """Returns the calls of all parts, or None if no part has a list of calls."""
    return _find_tools(message, TOOL_CALLS_KEY, CALL)


def tool_results_of(message: Any) -> list[Any] | None:
    """Returns the results of all parts, or None if no part has a list of results."""
    return _find_tools(message, TOOL_RESULTS_KEY, RESULT_PART)


def _find_tools(message: Any, key: str, data_type: str) -> list[Any] | None:
    """Returns the calls or results in a message: lists of older A2A agents, and data parts of
    today.

    Args:
        message: a dictionary or an object of any version.
        key: key of an older agent's list.
        kind: type of today's data parts.
    """
    data = [if_object(read_field(part, "data")) for part in parts_of(message)]
    matches = [value for value in data if key in value or value.get("type") == data_type]
    entries = [if_list(value[key]) if key in value else [value] for value in matches]
    if matches:
        return [*chain.from_iterable(entries)]
    return None
