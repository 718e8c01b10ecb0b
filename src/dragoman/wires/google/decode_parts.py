"""The parts of one candidate as they come: text and thinking in deltas, calls whole or in pieces.

Arguments of a call that are streamed in pieces (Vertex, `streamFunctionCallArguments`) are values
by their JSON paths.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, cast

from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import if_list, if_object, read_extra_fields
from dragoman.errors import DecodeError, DragomanError
from dragoman.event import OpenText
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, ThinkingPart, ToolCallPart
from dragoman.wires.google.content import load_block
from dragoman.wires.google.tools import Pairing

__all__ = ["CandidateState"]

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]{1,6})\]|\[(?:'([^']*)'|\"([^\"]*)\")\]")
_VALUES = ("stringValue", "numberValue", "boolValue")
# Elements of a list; a larger index is no index.
_MOST = 10_000
# Elements that a path may leave out.
_GAP = 100


class CandidateState:
    """One candidate, as far as it is known.

    The first part of a chunk goes on with the text (or thinking) that is open; every further one,
    and every part with something more to it, is a part of its own. So separate parts stay separate,
    and signed parts are never merged.
    """

    def __init__(self, out: Emitter) -> None:
        """Starts a Gemini candidate. `out`: receives its events."""
        self.out = out
        # The text or thinking that more may come for.
        self.open: OpenPart | None = None
        # It is thinking.
        self.thinks = False
        self.reason: str | int | None = None
        # Of the candidate beside its content.
        self.fields: Json = {}
        self._pairing = Pairing(out.new_id)
        self._partial: _PartialCall | None = None
        # Texts so far.
        self._count = 0

    def add_text(self, text: str, *, thinks: bool, joins: bool) -> None:
        """Adds text or thinking. `joins`: it continues the open Gemini part, if that has the same
        type."""
        if not text:
            return
        if self.open is None or self.thinks != thinks or not joins:
            self.close()
            self.open = self.out.ensure_part(self._count, ThinkingPart() if thinks else OpenText())
            self.thinks = thinks
            self._count += 1
        self.out.add(self.open, text)

    def add_part(self, part: JsonMap, *, joins: bool) -> None:
        """Adds a part of a Gemini chunk. `joins` as for `add_text`.

        Raises:
            DecodeError: a call in pieces that is not of this format.
        """
        if part.keys() <= {"text", "thought"} and isinstance(text := part.get("text"), str):
            self.add_text(text, thinks=part.get("thought") is True, joins=joins)
            return
        call = part.get("functionCall")
        if isinstance(call, dict) and self._partial is not None and "name" not in call:
            if not self._partial.add(part):
                self.close()
            return
        self.close()
        if isinstance(call, dict) and ("willContinue" in call or "partialArgs" in call):
            self._partial = _PartialCall(part, self._pairing)
            if not if_object(call).get("willContinue"):
                self.close()
        elif part and call != {}:
            self.out.add_whole_part(load_block(part, self._pairing))

    def close(self, *, cut: bool = False) -> None:
        """Closes the open parts of a Gemini candidate. `cut`: a call whose arguments are still
        coming is incomplete."""
        if self.open is not None:
            self.out.close(self.open)
            self.open = None
        if self._partial is not None:
            self.out.add_whole_part(self._partial.call(cut=cut))
            self._partial = None

    def fail(self, error: DragomanError) -> None:
        """Ends the Gemini candidate with an error, which carries what there was of it."""
        if self._partial is not None:
            self.out.add_whole_part(self._partial.call(cut=True))
        self.out.fail(error)


class _PartialCall:
    """A call whose arguments are still coming."""

    def __init__(self, part: JsonMap, pairing: Pairing) -> None:
        """Begins a Gemini call whose arguments come in pieces. Raises `DecodeError` if it has no
        name."""
        name = part["functionCall"].get("name")
        if not name or not isinstance(name, str):
            raise DecodeError("a call has no name")
        self._part = dict(part)
        self._pairing = pairing
        self._arguments: Json = {}
        self.add(part)

    def add(self, part: JsonMap) -> bool:
        """Adds more of a Gemini call's arguments. True if yet more is to come.

        Raises:
            DecodeError: a path that is none, or a value that is none.
        """
        call = if_object(part["functionCall"])
        self._arguments |= if_object(call.get("args"))
        for piece in map(if_object, if_list(call.get("partialArgs"))):
            self._put_argument(piece)
        self._part |= read_extra_fields(part, "functionCall")
        return bool(call.get("willContinue"))

    def call(self, *, cut: bool = False) -> Content:
        """Returns the Gemini call, with the arguments that have come; what is no call alone stays
        the provider's."""
        inner = {
            **read_extra_fields(self._part["functionCall"], "partialArgs", "willContinue"),
            "args": self._arguments,
        }
        whole = load_block({**self._part, "functionCall": inner}, self._pairing)
        if not cut or not isinstance(whole, ToolCallPart):
            return whole
        return replace(
            whole, arguments={}, raw=json_bytes.encode(self._arguments).decode(), state="cut"
        )

    def _put_argument(self, piece: JsonMap) -> None:
        """Puts a value of `partialArgs` at its path in the arguments of a Gemini call. It is
        appended to a text that is there already."""
        path = str(piece.get("jsonPath", ""))
        steps = [
            int(m[2]) if m[2] else m[1] or m[3] or m[4] or ""
            for m in _STEP.finditer(path.removeprefix("$"))
        ]
        if not steps or not isinstance(steps[0], str) or len(steps) >= json_bytes.MOST_DEPTH:
            raise DecodeError(f"{path!r} is no path into a call's arguments")
        container: Any = self._arguments
        for step, following in pairwise(steps):
            container = _value_at_step(container, step, [] if isinstance(following, int) else {})
        value = next((piece[key] for key in _VALUES if key in piece), None)
        if isinstance(value, (dict, list)):
            raise DecodeError(f"what stands at {path!r} of a call's arguments is no value")
        before = _value_at_step(container, steps[-1], None)
        if isinstance(before, str) and isinstance(value, str):
            container[steps[-1]] = before + value
        else:
            container[steps[-1]] = value


def _value_at_step(container: Any, step: str | int, empty: Any) -> Any:
    """Returns the value at a step of an argument's path in a Gemini call; if there is none yet,
    puts `empty` there."""
    if (
        isinstance(step, int)
        and isinstance(container, list)
        and step < min(_MOST, len(container := cast("list[Any]", container)) + _GAP)
    ):
        container.extend([None] * (step + 1 - len(container)))
        if container[step] is None:
            container[step] = empty
        return container[step]
    if isinstance(step, str) and isinstance(container, dict):
        container = cast("Json", container)
        if container.get(step) is None:
            container[step] = empty
        return container[step]
    raise DecodeError(f"a path of a call's arguments does not fit what is there at {step!r}")
