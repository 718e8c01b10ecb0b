"""Reads and writes the mirrors of Mastra's rows (V2): the texts, calls, thinking and files of the parts again, in fields
beside them.

Each field repeats the parts in one of several ways (`_WAYS`); which one is noted of a row that does
not have the usual fields. What a field says and no part repeats is read as a piece of its own,
which is noted to stand `alone` in that field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from dragoman.codec.json_values import drop_empty, if_object, if_objects, if_text, pick
from dragoman.codec.media import Media
from dragoman.message import MarkPart, Native, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.ai_sdk_messages.files import load_row_attachment
from dragoman.wires.ai_sdk_messages.notes import OWN, Fields, Part, Parts
from dragoman.wires.ai_sdk_messages.read_parts import ATTACHMENT, STEP, Reading
from dragoman.wires.ai_sdk_messages.tool_invocations import INVOCATION, load_inner

__all__ = [
    "MIRRORS",
    "Contents",
    "alone_in",
    "are_usual",
    "contents_of",
    "load_before",
    "load_behind",
    "mirror_parts",
    "put_beside",
    "split_alone",
    "ways_of",
]

_ALONE = "alone"
"""Type of a part that goes into a field beside the parts, and the way of such a field."""
_ATTACHED = "experimental_attachments"
_KNOWN = ("result", "call", "partial-call")
"""States of calls that Mastra repeats."""


class Contents(NamedTuple):
    """What the parts of a row say, grouped by the field that repeats it."""

    texts: list[str]
    """The texts."""
    thoughts: list[str]
    """The texts of its thinking."""
    calls: Parts
    """The invocations."""
    files: list[Fields]
    """The files."""


def contents_of(parts: Sequence[Fields]) -> Contents:
    """Returns what a Mastra row's parts say, grouped by the field that repeats (mirrors) it."""
    contents = Contents([], [], [], [])
    for part in parts:
        type_ = part["type"]
        if type_ == "text":
            contents.texts.append(if_text(part.get("text")))
        elif type_ == INVOCATION:
            contents.calls.append(if_object(part.get("toolInvocation")))
        elif type_ == "reasoning":
            contents.thoughts.append(if_text(part.get("reasoning")))
        elif type_ == "file":
            contents.files.append(part)
    return contents


def _mirrored_call(call: Fields, state: str) -> Part:
    """Returns a call as Mastra repeats it, which leaves fields out."""
    keys = ("args", "toolCallId", "toolName")
    if state == "result":
        keys = ("args", "result", "toolCallId", "toolName")
    return {**pick(call, keys), "state": state}


def _usual_calls(contents: Contents) -> Parts:
    """Returns the calls as Mastra repeats them: those in a usual state."""
    return [
        _mirrored_call(call, call["state"])
        for call in contents.calls
        if call.get("state") in _KNOWN
    ]


def _open_calls(contents: Contents) -> Parts:
    """Returns the calls of a Mastra row, where those that failed or were denied count as open."""
    is_result = [call.get("state") == "result" for call in contents.calls]
    states = ["result" if has_result else "call" for has_result in is_result]
    return [_mirrored_call(call, state) for call, state in zip(contents.calls, states, strict=True)]


_WAYS: Mapping[str, Mapping[str, Callable[[Contents], Any]]] = {
    "content": {
        "joined": lambda contents: "".join(contents.texts),
        "last": lambda contents: "".join(contents.texts[-1:]),
    },
    "toolInvocations": {
        "usual": _usual_calls,
        "same": lambda contents: contents.calls,
        "open": _open_calls,
        "results": lambda contents: [
            call for call in contents.calls if call.get("state") == "result"
        ],
    },
    "reasoning": {
        "lines": lambda contents: "\n".join(contents.thoughts),
        "joined": lambda contents: "".join(contents.thoughts),
    },
    _ATTACHED: {
        "files": lambda contents: [
            {"url": file.get("data"), "contentType": file.get("mimeType")}
            for file in contents.files
        ]
    },
}
"""Field → the ways in which it repeats the parts."""
MIRRORS = frozenset(_WAYS)
"""The fields that repeat the parts."""
_USUAL: Mapping[str, str] = {
    "content": "joined",
    "toolInvocations": "usual",
    "reasoning": "lines",
}
"""Field → its way in rows that Mastra writes today."""


def ways_of(content: Fields, alone: set[str], contents: Contents) -> dict[str, str]:
    """Returns the way of each mirrored Mastra field that can be written again from what was read.

    Args:
        content: the row's content.
        alone: fields that say what no part repeats.
        contents: what the parts say.
    """
    ways = dict.fromkeys(alone, _ALONE)
    for key, makers in _WAYS.items():
        if key not in content or key in alone:
            continue
        way = next((way for way, make in makers.items() if make(contents) == content[key]), None)
        if way is not None:
            ways[key] = way
    return ways


def are_usual(ways: Mapping[str, str], contents: Contents) -> bool:
    """True if these ways are the usual ones for the AI SDK parts."""
    says = {
        "content": any(contents.texts),
        "toolInvocations": any(call.get("state") in _KNOWN for call in contents.calls),
        "reasoning": len(contents.thoughts) > 1 or any(contents.thoughts),
    }
    return ways == {key: _USUAL[key] for key, has_words in says.items() if has_words}


def mirror_parts(parts: Parts, ways: Any) -> Part:
    """Returns the fields that repeat the AI SDK parts. `ways` maps each to its way; anything else
    means the usual ones."""
    contents = contents_of(parts)
    if not isinstance(ways, dict):
        return drop_empty({key: _WAYS[key][way](contents) for key, way in _USUAL.items()})
    fields: Part = {}
    for key, way in cast("Part", ways).items():
        make = None
        if isinstance(way, str):
            make = _WAYS.get(key, {}).get(way)
        if make is not None:
            fields[key] = make(contents)
    return fields


# what stands in a field alone


def load_before(
    content: Fields,
    contents: Contents,
    reading: Reading,
    where: str,
) -> set[str]:
    """Reads what fields say that no part repeats, before the AI SDK parts. Returns the names of
    these fields."""
    read: set[str] = set()
    text = content.get("reasoning")
    if text and not contents.thoughts and isinstance(text, str):
        reading.add(ThinkingPart(text, OWN.note(None, {"as": "reasoning"})))
        read.add("reasoning")
    if contents.calls:
        calls = []
    else:
        calls = if_objects(content.get("toolInvocations"))
    for number, call in enumerate(calls):
        path, form = f"{where}.toolInvocations[{number}]", {"as": "toolInvocations"}
        load_inner(call, {"type": INVOCATION}, reading, path, form)
        read.add("toolInvocations")
    return read


def load_behind(
    content: Fields,
    contents: Contents,
    parts: Parts,
    reading: Reading,
) -> set[str]:
    """Reads what fields say that no part repeats, behind the AI SDK parts. Returns the names of
    these fields."""
    read: set[str] = set()
    text = content.get("content")
    if text and not contents.texts and isinstance(text, str):
        # Words behind answered calls are another step, which a text beside the parts cannot say
        # itself.
        has_step = bool(reading.answers) and not (parts and parts[-1].get("type") == STEP)
        if has_step:
            reading.step(MarkPart(STEP))
        reading.add(TextPart(text, OWN.note(None, {"as": "content", "step": has_step})))
        read.add("content")
    files = if_objects(content.get(_ATTACHED))
    are_read = all(isinstance(file.get("url"), str) for file in files)
    if files and are_read and not contents.files:
        read.add(_ATTACHED)
        for file in files:
            load_row_attachment(file, reading)
    return read


def alone_in(native: Native) -> str | None:
    """Returns the field beside the AI SDK parts in which a piece stands, or None."""
    field = None
    if native:
        field = OWN.form(native).get("as")
    if field == ATTACHMENT:
        return _ATTACHED
    return field if isinstance(field, str) else None


def put_beside(
    piece: TextPart | ThinkingPart | Media | ToolCallPart, part: Part, value: Any
) -> Part:
    """Returns the part of a piece, or, where the piece stands in a field beside the AI SDK parts,
    one that holds its value there."""
    field = alone_in(piece.native)
    if field is None:
        return part
    beside: Part = {"type": _ALONE, "field": field, "value": value}
    if OWN.form(piece.native).get("step") is True:
        beside["step"] = True
    return beside


def split_alone(written: Parts) -> tuple[Parts, Part]:
    """Returns the AI SDK parts, and the fields beside them of what stands alone. A step that begins
    with nothing but that is none."""
    parts: Parts = []
    values: dict[str, list[Any]] = {}
    for part in written:
        if part["type"] != _ALONE:
            parts.append(part)
            continue
        values.setdefault(if_text(part["field"]), []).append(part["value"])
        # The step that was made for such a text when it was read is none of the row's.
        if part.get("step") and parts and parts[-1] == {"type": STEP}:
            parts.pop()
    fields: Part = {}
    for field, listed in values.items():
        fields[field] = "".join(listed) if field in ("content", "reasoning") else listed
    return parts, fields
