"""Results of tools ⇄ messages of the role `tool`. They name their tool; newer servers also read the id of the call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import if_text, merged, rest, says_error
from dragoman.errors import HistoryError
from dragoman.message import TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.ollama.calls import is_unnamed
from dragoman.wires.ollama.images import load_images
from dragoman.wires.ollama.quirks import OWN
from dragoman.wires.ollama.said import Lose, Said

__all__ = ["Waiting", "dump_result", "load_result"]


class Waiting:
    """The calls of a message, until their results come."""

    def __init__(self, calls: Sequence[ToolCallPart] = ()) -> None:
        self._calls = calls
        self._left = set(range(len(calls)))
        self._all = deque(range(len(calls)))
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        for place, call in enumerate(calls):
            self._by_id.setdefault(call.id, deque()).append(place)
            self._by_name.setdefault(call.name, deque()).append(place)

    def take(self, call_id: str, name: str) -> ToolCallPart | None:
        """The first that still waits of those with the id, where one is given, else the name, else of all."""
        places = self._by_id.get(call_id) if call_id else self._by_name.get(name) if name else self._all
        while places:
            if (place := places.popleft()) in self._left:
                self._left.remove(place)
                return self._calls[place]
        return None


def load_result(entry: Mapping[str, Any], waiting: Waiting, fresh_id: Callable[[], str]) -> ToolResultPart:
    """A tool message → the result. Without an id it answers the first of the calls `waiting` that has its tool's name."""
    name, given = if_text(entry.get("tool_name")), if_text(entry.get("tool_call_id"))
    call = waiting.take(given, name)
    spelled: dict[str, Any] = {} if name else {"tool_name": entry.get("tool_name", "absent")}
    content = entry.get("content")
    if not isinstance(content, str):
        if content is not None:
            raise HistoryError(f"the content of an Ollama tool message is a text, not {content!r}")
        spelled["content"] = None if "content" in entry else "absent"
    read = ["role", "content", "tool_name", *(["tool_call_id"] if given else [])]
    result: Any = content
    if images := load_images(entry):
        result = (*images, *([TextPart(content)] if content else []))
        read.append("images")
    return ToolResultPart(
        given or (call.id if call else fresh_id()),
        name or (call.name if call else ""),
        result,
        native=OWN.note({**({} if given else {"id": None}), **rest(entry, *read)}, form=spelled),
    )


def dump_result(
    part: ToolResultPart, call_id: str, place: int, call: ToolCallPart | None, lose: Lose
) -> dict[str, Any]:
    """A result → its tool message, under that id. `call`: the one that it answers; where that had no id, none is told."""
    spelled = OWN.form(part.native)
    body: dict[str, Any] = {"role": "tool", **_content(part, place, lose)}
    if "tool_name" not in spelled and part.name:
        body["tool_name"] = part.name
    elif spelled.get("tool_name", "absent") != "absent":
        body["tool_name"] = spelled["tool_name"]
    if not is_unnamed(part.native) and not (call and is_unnamed(call.native)):
        body["tool_call_id"] = call_id
    if part.is_error and not says_error(part.result):
        lose(place, "is_error", "this format has no mark for a failed tool")
    return merged(body, rest(OWN.fields(part.native), "id"))


def _content(part: ToolResultPart, place: int, lose: Lose) -> dict[str, Any]:
    """Text as it is, images in a field of their own, anything else as JSON."""
    empty = OWN.form(part.native).get("content", "")
    if part.result is None and empty != "":
        return {} if empty == "absent" else {"content": None}
    if not part.is_content:
        return {"content": part.result if isinstance(part.result, str) else json_bytes.encode(part.result).decode()}
    said = Said(lose, joined=True)
    for piece in part.result or ():
        said.add_piece(place, piece)
    return said.fields if "content" in said.fields or empty == "absent" else {"content": "", **said.fields}
