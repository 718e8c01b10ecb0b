"""The metadata field `canonical_type`, by which older agents tell which event of AG-UI a message is, and what it means for a history:
chunks that hold the text as far as it had come, calls whose arguments came in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.message import Message, Role
from dragoman.wires.a2a.quirks import EXTENSION
from dragoman.wires.a2a.seed_values import field, role_name, text_in, tool_calls_of, tool_results_of
from dragoman.wires.a2a.tools import TOOL_CALLS_KEY

__all__ = [
    "CHUNK",
    "END",
    "Kept",
    "ARGS",
    "CONTENT",
    "RESULT",
    "START",
    "canonical_type",
    "compacted",
    "get_agui_event_type_from_a2a_message",
    "kept",
]

CONTENT = "TextMessageContentEvent"
CHUNK = "TextMessageChunkEvent"
END = "TextMessageEndEvent"
START = "ToolCallStartEvent"
ARGS = "ToolCallArgsEvent"
RESULT = "ToolCallResultEvent"

Calls = Sequence[tuple[str, Any]]
"""Id of each call, and its arguments."""


class Kept(NamedTuple):
    """An entry that stays."""

    place: int
    ends: bool
    """It is a chunk behind which no end came: the text as far as it was said."""
    arguments: dict[str, dict[str, Any]]
    """Id of a call → its arguments as they came last, where they came later."""


def canonical_type(message: Message) -> str:
    """Which event a message is."""
    if message.role is Role.MODEL:
        return START if message.tool_calls else END
    return RESULT if message.tool_results else CONTENT


def get_agui_event_type_from_a2a_message(message: Any) -> str:
    """The canonical type of a message: what its metadata says, else by its role and its parts."""
    named = field(field(message, "metadata"), "canonical_type")
    if isinstance(named, str) and named:
        return named
    role = role_name(message)
    has_text = text_in(message) is not None
    if role == "user" and tool_results_of(message) is not None:
        return RESULT
    if role == "agent" and tool_calls_of(message) is not None:
        return START
    return END if role == "agent" and has_text else CONTENT


def kept(kinds: Sequence[str], calls: Sequence[Calls]) -> list[Kept]:
    """Which entries of a stream stay, once it is over: of chunks the last where no end follows, of calls the one that holds them all."""
    out: list[Kept] = []
    after_call = False
    """Whether nothing but arguments came since the last call that stays."""
    for at, kind in enumerate(kinds):
        following = kinds[at + 1] if at + 1 < len(kinds) else ""
        if kind == CHUNK:
            after_call = False
            if following not in (CHUNK, END):
                out.append(Kept(at, ends=True, arguments={}))
        elif kind == ARGS:
            if after_call:
                more = {id_: if_object(given) for id_, given in calls[at] if isinstance(given, dict)}
                out[-1].arguments.update(more)
        else:
            if kind == START and after_call and calls[out[-1].place]:
                before = {id_ for id_, _ in calls[out[-1].place]}
                if before <= {id_ for id_, _ in calls[at]}:
                    out.pop()
            out.append(Kept(at, ends=False, arguments={}))
            after_call = kind == START
    return out


def compacted(entries: Sequence[Any]) -> list[tuple[int, Any]]:
    """The messages that stay of a list, with their places in it. One in which nothing came in pieces is left as it is."""
    if not any(_named_kind(entry) in (CHUNK, ARGS) or _calls(entry) for entry in entries):
        return list(enumerate(entries))
    kinds = [get_agui_event_type_from_a2a_message(entry) if _is_old(entry) else "" for entry in entries]
    stay = kept(kinds, [_calls(entry) for entry in entries])
    return [(each.place, _with_arguments(entries[each.place], each.arguments)) for each in stay]


def _named_kind(entry: Any) -> str:
    return if_text(if_object(if_object(entry).get("metadata")).get("canonical_type"))


def _is_old(entry: Any) -> bool:
    return isinstance(entry, dict) and EXTENSION not in if_object(if_object(entry).get("metadata"))


def _calls(entry: Any) -> Calls:
    found = [call for part in if_list(if_object(entry).get("parts")) for call in _listed(part)]
    return [(if_text(call.get("call_id")), call.get("arguments")) for call in map(if_object, found)]


def _listed(part: Any) -> list[Any]:
    fields = if_object(part)
    data = if_object(fields.get("data", if_object(fields.get("root")).get("data")))
    return if_list(data.get(TOOL_CALLS_KEY))


def _with_arguments(entry: Any, arguments: Mapping[str, dict[str, Any]]) -> Any:
    if not arguments:
        return entry

    def call(each: Any) -> Any:
        id_ = if_text(if_object(each).get("call_id"))
        return {**if_object(each), "arguments": arguments[id_]} if id_ in arguments else each

    def part(each: Any) -> Any:
        if not _listed(each):
            return each
        inner = if_object(if_object(each).get("root")) or if_object(each)
        data = if_object(inner["data"])
        return {**inner, "data": {**data, TOOL_CALLS_KEY: [call(one) for one in if_list(data[TOOL_CALLS_KEY])]}}

    return {**if_object(entry), "parts": [part(each) for each in if_list(if_object(entry)["parts"])]}
