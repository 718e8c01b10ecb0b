"""Tool calls and results as ShareGPT's dialects have them: an object of JSON, or of Python's
notation, in a text ⇄ our parts; and which call a result answers where neither has an id: the first
of the round that is not answered and has the result's name.

An object's text that is not the one which we would write is noted in the wire form (`inner`), and
written again for as long as it says what the part says.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from dragoman import json_bytes
from dragoman.codec.json_values import check_depth, if_object, if_text, read_extra_fields
from dragoman.codec.native import WireNative
from dragoman.errors import HistoryError
from dragoman.fold import parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import ToolCallPart, ToolResultPart

__all__ = [
    "OWN",
    "Called",
    "OpenCalls",
    "call_object",
    "dump_json",
    "load_call",
    "load_result",
    "object_of",
    "result_object",
    "same_json",
]

OWN = WireNative("sharegpt")
"""The format's part of `native`."""
_NOTATION = re.compile(r"""(?:[^\\]|\\[\\'"bfnrtux])*""")
"""A text in Python's notation whose escapes are known."""
_READ = ("id", "name", "arguments")
_READ_RESULT = ("tool_call_id", "name", "content")


def object_of(text: str) -> Any:
    """Returns the value that the text of a ShareGPT tool call or result is, as JSON or as Python
    writes it; `None`: it is no object and no list."""
    text = text.strip()
    if text[:1] not in ("{", "["):
        return None
    try:
        return json_bytes.decode(text)
    except ValueError:
        return _parse_python_literal(text)


def _parse_python_literal(text: str) -> Any:
    """Parses an object or list in Python's notation, as some ShareGPT tool calls have it, or
    returns None."""
    if _NOTATION.fullmatch(text) is None:
        return None
    try:
        json_bytes.check_depth(text.replace("'", '"'))
        value = check_depth(ast.literal_eval(text))
        if isinstance(value, (dict, list)) and json_bytes.decode(json_bytes.encode(value)) == value:
            return cast("Any", value)
    except (
        ArithmeticError,
        ValueError,
        TypeError,
        SyntaxError,
        RecursionError,
        MemoryError,
        HistoryError,
    ):
        pass
    return None


def dump_json(value: object, *tags: str) -> str:
    """Returns a value as JSON for a ShareGPT tool call or result, in which none of these tags
    stands."""
    text = json.dumps(value, ensure_ascii=False)
    if any(tag in text for tag in tags):
        return text.replace("<", "\\u003c")
    return text


def same_json(value: object, other: object) -> bool:
    """True if two values are the same as JSON, where `1` is not `true`."""
    return json_bytes.encode(value) == json_bytes.encode(other)


def load_call(value: object) -> ToolCallPart | None:
    """Returns a ShareGPT object with name and arguments as a tool call, with its own id or an empty
    one, or None if it is no call."""
    fields = if_object(value)
    name, arguments = if_text(fields.get("name")), fields.get("arguments", {})
    if (
        not name
        or not isinstance(arguments, (dict, str))
        or not isinstance(fields.get("id", ""), str)
    ):
        return None
    call = ToolCallPart(
        fields.get("id", ""), name, native=OWN.note(read_extra_fields(fields, *_READ))
    )
    if isinstance(arguments, str):
        return parse_call(call, arguments)
    return ToolCallPart(call.id, name, cast("Json", arguments), native=call.native)


def call_object(call: ToolCallPart, call_id: str | None) -> Json:
    """Returns a tool call as ShareGPT's object. `call_id`: the id to write in it."""
    if call.state == "complete":
        arguments = call.arguments
    else:
        arguments = call.raw or ""
    return {
        **({"id": call_id} if call_id else {}),
        "name": call.name,
        "arguments": arguments,
        **OWN.fields(call.native),
    }


def load_result(value: object) -> ToolResultPart | None:
    """Returns a ShareGPT object with the content of a result as a tool result, with its own id and
    name or empty ones, or None if it is none."""
    fields = if_object(value)
    call_id, name = fields.get("tool_call_id", ""), fields.get("name", "")
    if "content" not in fields or not isinstance(call_id, str) or not isinstance(name, str):
        return None
    return ToolResultPart(
        call_id, name, fields["content"], native=OWN.note(read_extra_fields(fields, *_READ_RESULT))
    )


def result_object(part: ToolResultPart, result: object, call_id: str | None) -> Json:
    """Returns a tool result as ShareGPT's object. `result`: what it says, as a JSON value.
    `call_id`: the id to write in it."""
    named = part.name and "nameless" not in OWN.form(part.native)
    names: JsonMap = {}
    if named:
        names = {"name": part.name}
    return {
        **({"tool_call_id": call_id} if call_id else {}),
        **names,
        "content": result,
        **OWN.fields(part.native),
    }


class Called(NamedTuple):
    """A call, as far as pairing needs it."""

    id: str
    """Its own, or one that was minted."""
    name: str
    """Of the tool."""
    position: int = 0
    """Of its message."""
    place: int = 0
    """In the content of the message."""


class OpenCalls:
    """Knows the calls of the last round that are not answered yet. A round ends when anybody but
    the model speaks."""

    def __init__(self) -> None:
        self._open: list[Called] = []
        self._seen: set[str] = set()
        self._ended = False

    def call(self, called: Called) -> None:
        """Adds the next tool call to the open calls of the ShareGPT conversation."""
        if self._ended:
            self._open, self._ended = [], False
        self._open.append(called)
        self._seen.add(called.id)

    def end(self) -> None:
        """Ends the round: the next call begins another one."""
        self._ended = True

    def find(self, call_id: str, name: str) -> Called | None:
        """Returns the tool call that a result of the ShareGPT conversation answers. `call_id`,
        `name`: empty where the result has none."""
        if call_id:
            return next((called for called in self._open if called.id == call_id), None)
        return next((called for called in self._open if name in ("", called.name)), None)

    def answer(self, called: Called) -> None:
        """Removes a call that is answered."""
        self._open.remove(called)

    def fresh(self, ids: Iterator[str]) -> str:
        """Returns the next id that no call has."""
        return next(id_ for id_ in ids if id_ not in self._seen)
