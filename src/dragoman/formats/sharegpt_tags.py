"""The texts (`value`) of ShareGPT's turns ⇄ pieces of content: thinking, calls and results stand
between tags in them.

Every character of a text is in a piece or in a wire form, so that what was read is written as it
was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from dragoman.codec.json_values import if_list
from dragoman.formats.sharegpt_tools import (
    OWN,
    call_object,
    dump_json,
    load_call,
    load_result,
    object_of,
    result_object,
    same_json,
)
from dragoman.json_bytes import Json
from dragoman.message import TextPart, ThinkingPart, ToolCallPart, ToolResultPart

__all__ = [
    "TAGS",
    "Held",
    "dump_answer",
    "dump_function_call",
    "dump_results",
    "load_answer",
    "load_function_call",
    "load_results",
]

Held = TextPart | ThinkingPart | ToolCallPart
"""The pieces of an answer."""
TAGS = re.compile(r"<(/?)(think|tool_call)>")
"""The tags of an answer."""
_CALL, _CALL_END = "<tool_call>", "</tool_call>"
_RESULT, _RESULT_END = "<tool_response>", "</tool_response>"


class _Tag(NamedTuple):
    """A piece between tags."""

    start: int
    end: int
    piece: Any


# ------------------------------------------------------------------ answers


def load_answer(value: str) -> list[Held]:
    """Reads the text of a model's turn as pieces, calls with their own ids or empty ones."""
    return _load_turn_value(value, list(_answer_tags(value)))


def dump_answer(pieces: Sequence[Held], call_id: Callable[[ToolCallPart], str | None]) -> str:
    """Returns pieces as the value of a ShareGPT turn. `call_id`: returns the id to write for a
    call, or `None`."""

    def tagged(piece: Any) -> str:
        if isinstance(piece, ThinkingPart):
            return f"<think>{_dump_thinking_tags(piece)}</think>"
        return _dump_call_tags(piece, call_id(piece))

    return _dump_turn_value(pieces, tagged)


def _answer_tags(value: str) -> Iterator[_Tag]:
    """Yields the thinking and the calls of a ShareGPT answer. Linear: each tag is looked at
    once."""
    tags = list(TAGS.finditer(value))
    last = {tag[2]: tag.start() for tag in tags if tag[1]}
    opened: re.Match[str] | None = None
    for tag in tags:
        if not tag[1]:
            # Without an end behind it, a tag is text.
            if _may_open(tag[2], opened) and tag.start() < last.get(tag[2], -1):
                opened = tag
        elif opened is not None and tag[2] == opened[2]:
            piece = _load_tagged(tag[2], value[opened.end() : tag.start()])
            if piece is not None:
                yield _Tag(opened.start(), tag.end(), piece)
            opened = None


def _may_open(tag_name: str, opened: re.Match[str] | None) -> bool:
    """True if a piece may begin with a tag of that name after the tag `opened`, which has no end
    yet. A second call begins anew; all else inside of a piece is its text."""
    return opened is None or opened[2] == tag_name == "tool_call"


def _load_tagged(tag_name: str, inner: str) -> ThinkingPart | ToolCallPart | None:
    """Returns the piece between two ShareGPT tags of that name; `None`: it is no call."""
    if tag_name == "think":
        return _load_thinking(inner)
    return _load_call(inner)


def _load_thinking(inner: str) -> ThinkingPart:
    if len(inner) > 1 and inner[0] == inner[-1] == "\n":
        return ThinkingPart(inner[1:-1], OWN.note(mark=len(inner) == 2))
    return ThinkingPart(inner, OWN.note(form={"tight": True}))


def _dump_thinking_tags(part: ThinkingPart) -> str:
    """Returns the text between ShareGPT's thinking tags, with the line breaks around it."""
    text = part.text
    lined = len(text) > 1 and text[0] == text[-1] == "\n"
    if "tight" in OWN.form(part.native) and not lined:
        return text
    return f"\n{text}\n"


def _load_call(inner: str) -> ToolCallPart | None:
    """Reads the text between ShareGPT's call tags as a call, or returns None."""
    call = load_call(object_of(inner))
    if call is None:
        return None
    form: Json = {"id": True} if call.id else {}
    usual = f"\n{dump_json(call_object(call, call.id), _CALL, _CALL_END)}\n"
    if inner != usual:
        form["inner"] = inner
    if form:
        return replace(call, native=OWN.with_form(call.native, **form))
    return call


def _dump_call_tags(call: ToolCallPart, call_id: str | None) -> str:
    """Writes a call between its ShareGPT tags, as it was read if it still says the same."""
    inner = OWN.form(call.native).get("inner")
    if not isinstance(inner, str) or not _same_call(load_call(object_of(inner)), call, call_id):
        inner = f"\n{dump_json(call_object(call, call_id), _CALL, _CALL_END)}\n"
    return f"{_CALL}{inner}{_CALL_END}"


def _same_call(read: ToolCallPart | None, call: ToolCallPart, call_id: str | None) -> bool:
    """True if a text between ShareGPT's call tags, read again, says what the call does. `call_id`:
    that which is to be written for it."""
    return (
        read is not None
        and (read.id, read.name, read.state) == (call_id or "", call.name, call.state)
        and same_json(read.arguments, call.arguments)
        and (call.state == "complete" or read.raw == call.raw)
        and same_json(OWN.fields(read.native), OWN.fields(call.native))
    )


# ------------------------------------------------------------------ function_call


def load_function_call(value: str) -> list[ToolCallPart] | None:
    """Reads the value (text) of ShareGPT's turn `function_call`, an object or a list of them, as
    calls, or returns None."""
    value_found = object_of(value)
    objects = if_list(value_found) or [value_found]
    calls = [call for call_object in objects if (call := load_call(call_object)) is not None]
    if not calls or len(calls) < len(objects):
        return None
    return [
        replace(call, native=OWN.with_form(call.native, id=True)) if call.id else call
        for call in calls
    ]


def dump_function_call(
    calls: Sequence[ToolCallPart], original: object, call_id: Callable[[ToolCallPart], str | None]
) -> str:
    """Returns calls as the value of ShareGPT's `function_call` turn. `original`: the text as it was
    read, if it was not the usual one."""
    if isinstance(original, str):
        read = load_function_call(original) or []
        if len(read) == len(calls) and all(
            _same_call(read_call, call, call_id(call))
            for read_call, call in zip(read, calls, strict=True)
        ):
            return original
    objects = [call_object(call, call_id(call)) for call in calls]
    return dump_json(objects[0] if len(objects) == 1 else objects)


# ------------------------------------------------------------------ results


def load_results(value: str) -> list[ToolResultPart]:
    """Reads the value (text) of ShareGPT's tool turn as results, with their own ids and names or
    empty ones."""
    tags = list(_result_tags(value))
    if not tags or tags[-1].piece is None:
        return [ToolResultPart("", "", value, native=OWN.note(form={"plain": True}))]
    return _load_turn_value(value, tags)


def dump_results(
    parts: Sequence[ToolResultPart],
    result_of: Callable[[ToolResultPart], Any],
    call_id: Callable[[ToolResultPart], str | None],
) -> str:
    """Writes results that stand in one ShareGPT turn as its text. `result_of`: returns what a
    result says, as a JSON value. `call_id`: returns the id to write for it."""
    first = parts[0]
    if (
        len(parts) == 1
        and "plain" in OWN.form(first.native)
        and call_id(first) is None
        and isinstance(result_of(first), str)
    ):
        return result_of(first)
    return _dump_turn_value(
        parts,
        lambda part: (
            f"{_RESULT}{_dump_result_tags(part, result_of(part), call_id(part))}{_RESULT_END}"
        ),
    )


def _result_tags(value: str) -> Iterator[_Tag]:
    """Writes results between ShareGPT's result tags, with nothing between them; an empty piece ends
    them where it is otherwise."""
    end = 0
    while True:
        start = value.find(_RESULT, end)
        if start >= 0:
            close = value.find(_RESULT_END, start)
        else:
            close = -1
        if close >= 0:
            between = value[end:start]
        else:
            between = value[end:]
        if between.strip():
            yield _Tag(end, end, None)
        if close < 0 or between.strip():
            return
        inner, begun = value[start + len(_RESULT) : close], start
        end = close + len(_RESULT_END)
        yield _Tag(begun, end, _load_result(inner))


def _load_result(inner: str) -> ToolResultPart:
    """Reads the text between ShareGPT's result tags as a result: an object, or a bare text."""
    part = load_result(object_of(inner))
    form: Json = {}
    if part is None:
        lined = len(inner) > 1 and inner[0] == inner[-1] == "\n"
        return ToolResultPart(
            "",
            "",
            inner[1:-1] if lined else inner,
            native=OWN.note(form={"bare": lined or "tight"}),
        )
    if not part.name:
        form["nameless"] = True
    if part.id:
        form["id"] = True
    named = replace(part, native=OWN.with_form(part.native, **form))
    if (
        inner
        != f"\n{dump_json(result_object(named, part.result, part.id), _RESULT, _RESULT_END)}\n"
    ):
        form["inner"] = inner
    if form:
        return replace(part, native=OWN.with_form(part.native, **form))
    return part


def _dump_result_tags(part: ToolResultPart, result: object, call_id: str | None) -> str:
    """Writes the text between ShareGPT's result tags, as it was read if it still says the same."""
    form = OWN.form(part.native)
    if "bare" in form and isinstance(result, str) and call_id is None and _RESULT_END not in result:
        if form["bare"] == "tight":
            inner = result
        else:
            inner = f"\n{result}\n"
        if load_result(object_of(inner)) is None and _load_result(inner).result == result:
            return inner
    if isinstance(inner := form.get("inner"), str):
        read = load_result(object_of(inner))
        if _same_result(read, part, result, call_id):
            return inner
    return f"\n{dump_json(result_object(part, result, call_id), _RESULT, _RESULT_END)}\n"


def _same_result(
    read: ToolResultPart | None, part: ToolResultPart, result: object, call_id: str | None
) -> bool:
    """True if a text between ShareGPT's result tags, read again, says what the result does.
    `result`: its value; `call_id`: the id that is to be written for it."""
    tool_name = "" if "nameless" in OWN.form(part.native) else part.name
    return (
        read is not None
        and (read.id, read.name) == (call_id or "", tool_name)
        and same_json([read.result, OWN.fields(read.native)], [result, OWN.fields(part.native)])
    )


# ------------------------------------------------------------------ what stands between


def _load_turn_value(value: str, tags: Sequence[_Tag]) -> list[Any]:
    """Returns the texts and the tagged pieces of the value of a ShareGPT turn. Whatever stands
    between them beyond the usual end of a line is noted in the form of the piece after or before
    it."""
    loading = _Loading()
    end = 0
    for tag in tags:
        between = value[end : tag.start]
        if between.strip():
            loading.add_text(between, is_before_tag=True)
        else:
            usual = "\n" if loading.pieces else ""
            loading.forms.append({} if between == usual else {"before": between})
        loading.pieces.append(tag.piece)
        end = tag.end
    behind = value[end:]
    if tags and not behind.strip():
        if behind:
            loading.forms[-1]["after"] = behind
    elif behind:
        loading.add_text(behind, is_before_tag=False)
    return loading.note_forms()


class _Loading:
    """The pieces of a value that were read so far, each with its form."""

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.forms: list[Json] = []

    def add_text(self, between: str, *, is_before_tag: bool) -> None:
        """Adds a text between the tags of a ShareGPT value, without the ends of lines around it,
        and the form of a tag that follows."""
        gap = _gap_behind_tag(self.pieces[-1]) if self.pieces else ""
        if not between.startswith(gap):
            gap = between[: between.startswith("\n")]
            self.forms[-1]["after"] = gap
        if is_before_tag and between.endswith("\n"):
            line = "\n"
        else:
            line = ""
        self.pieces.append(TextPart(between[len(gap) : len(between) - len(line)]))
        self.forms.append({})
        if is_before_tag:
            self.forms.append({} if line else {"before": ""})

    def note_forms(self) -> list[Any]:
        """Returns the pieces of a ShareGPT value, with the form of each noted in it."""
        return [
            replace(piece, native=OWN.with_form(piece.native, **form)) if form else piece
            for piece, form in zip(self.pieces, self.forms, strict=True)
        ]


def _dump_turn_value(pieces: Sequence[Any], dump_tag: Callable[[Any], str]) -> str:
    """Writes pieces as the text of a ShareGPT turn: tags, and the gaps between them."""
    out: list[str] = []
    before: Any = None
    for piece in pieces:
        form = OWN.form(piece.native)
        if isinstance(piece, TextPart):
            if before is not None:
                gap = _gap_behind_tag(before)
                out.append(
                    gap if piece.text.startswith(gap) else OWN.form(before.native).get("after", gap)
                )
            out.append(piece.text)
        else:
            usual = "" if before is None else "\n"
            lined = isinstance(before, TextPart) and before.text.endswith("\n")
            out += [usual if lined else form.get("before", usual), dump_tag(piece)]
        before = piece
    if before is not None and not isinstance(before, TextPart):
        out.append(OWN.form(before.native).get("after", ""))
    return "".join(out)


def _gap_behind_tag(piece: object) -> str:
    """Returns what in a ShareGPT value stands between a tagged piece and a text behind it."""
    if isinstance(piece, ThinkingPart):
        return "\n\n"
    return "\n"
