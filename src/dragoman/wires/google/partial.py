"""Arguments of a call that are streamed in pieces (Vertex, `streamFunctionCallArguments`): values by their JSON paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object
from dragoman.errors import DecodeError
from dragoman.message import Content, ToolCallPart
from dragoman.wires.google.pairing import Pairing
from dragoman.wires.google.parts import load_part

__all__ = ["PartialCall"]

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]{1,6})\]|\[(?:'([^']*)'|\"([^\"]*)\")\]")
_VALUES = ("stringValue", "numberValue", "boolValue")
_MOST = 10_000  # elements of a list; a larger index is no index
_GAP = 100  # elements that a path may leave out


class PartialCall:
    """A call whose arguments are still coming."""

    def __init__(self, part: Mapping[str, Any], pairing: Pairing) -> None:
        """Raises `DecodeError` where the call has no name."""
        name = part["functionCall"].get("name")
        if not name or not isinstance(name, str):
            raise DecodeError("a call has no name")
        self._part = dict(part)
        self._pairing = pairing
        self._arguments: dict[str, Any] = {}
        self.add(part)

    def add(self, part: Mapping[str, Any]) -> bool:
        """More of the arguments. Tells whether yet more is to come.

        Raises:
            DecodeError: a path that is none, or a value that is none.
        """
        call = if_object(part["functionCall"])
        self._arguments |= if_object(call.get("args"))
        for piece in map(if_object, if_list(call.get("partialArgs"))):
            self._put(piece)
        self._part |= {key: value for key, value in part.items() if key != "functionCall"}
        return bool(call.get("willContinue"))

    def call(self, *, cut: bool = False) -> Content:
        """The call, with the arguments that have come; what is no call alone stays the provider's."""
        told = cast("dict[str, Any]", self._part["functionCall"])
        inner = {key: value for key, value in told.items() if key not in ("partialArgs", "willContinue")}
        whole = load_part({**self._part, "functionCall": {**inner, "args": self._arguments}}, self._pairing)
        if not cut or not isinstance(whole, ToolCallPart):
            return whole
        text = json_bytes.encode(self._arguments).decode()
        return msgspec.structs.replace(whole, arguments={}, raw=text, state="cut")

    def _put(self, piece: Mapping[str, Any]) -> None:
        """A value at its path; a text that stands there already grows."""
        path = str(piece.get("jsonPath", ""))
        steps = [int(m[2]) if m[2] else m[1] or m[3] or m[4] or "" for m in _STEP.finditer(path.removeprefix("$"))]
        if not steps or not isinstance(steps[0], str) or len(steps) >= json_bytes.MOST_DEPTH:
            raise DecodeError(f"{path!r} is no path into a call's arguments")
        held: Any = self._arguments
        for step, following in pairwise(steps):
            held = _at(held, step, [] if isinstance(following, int) else {})
        value = next((piece[key] for key in _VALUES if key in piece), None)
        if isinstance(value, (dict, list)):
            raise DecodeError(f"what stands at {path!r} of a call's arguments is no value")
        before = _at(held, steps[-1], None)
        held[steps[-1]] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _at(held: Any, step: str | int, empty: Any) -> Any:
    """What stands at a step; `empty` where nothing does yet, which is put there."""
    if (
        isinstance(step, int)
        and isinstance(held, list)
        and step < min(_MOST, len(held := cast("list[Any]", held)) + _GAP)
    ):
        held.extend([None] * (step + 1 - len(held)))
        if held[step] is None:
            held[step] = empty
        return held[step]
    if isinstance(step, str) and isinstance(held, dict):
        held = cast("dict[str, Any]", held)
        if held.get(step) is None:
            held[step] = empty
        return held[step]
    raise DecodeError(f"a path of a call's arguments does not fit what is there at {step!r}")
