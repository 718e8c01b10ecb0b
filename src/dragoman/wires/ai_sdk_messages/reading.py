"""What the parts of one message become: pieces of the model's (or of whoever speaks), results behind them, and where a step ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

import msgspec

from dragoman.errors import HistoryError
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Native,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.carriage import with_carried
from dragoman.wires.ai_sdk_messages.own import OWN, UI, joined, noted
from dragoman.wires.ai_sdk_messages.signatures import lifted

__all__ = [
    "IMPLIED",
    "OLD",
    "STEP",
    "Fields",
    "Loader",
    "Reading",
    "Step",
    "fault",
    "load_mark",
    "load_parts",
    "says_behind_answers",
    "text_field",
]

Fields = Mapping[str, Any]
STEP = "step-start"
"""Type of the part that begins a step, and kind of its mark."""
IMPLIED = "implied"
"""Noted with the mark of a step that its format begins without one."""
OLD = frozenset(["v4", "mastra_v2"])
"""Dialects with parts as ai 4 has them."""
_NONE: dict[str, Any] = {}
_BARE = MarkPart(STEP)
Step = tuple[list[Content], list[ToolResultPart], str | None]
"""Pieces of one message of the model's, the results behind it, who answered."""


class Reading:
    """The parts of one message as they are read."""

    def __init__(self, dialect: str, role: Role) -> None:
        self.number = 0
        """Of the step, from 0."""
        self.dialect, self.role = dialect, role
        self.is_model = role is Role.MODEL
        self.pieces: list[Content] = []
        """Pieces of the message that is open."""
        self.answers: list[ToolResultPart] = []
        """Results that stand behind it."""
        self.provider: str | None = None
        """Who answered in this step, where it is named."""
        self.steps: list[Step | Message] = []
        """Those that are closed, and what the user said between them."""
        self.item: str | None = None
        """Id of OpenAI's item that the text before is of."""
        self.arguments: dict[tuple[str, str], dict[str, Any]] = {}
        """Id and tool of each call so far → its arguments, for formats that repeat them with the result and may leave them out."""
        self.implies_steps = self.is_model and dialect in OLD
        """Whether what the model says behind an answered call is another step, also without a mark of one."""
        self._mark: MarkPart | None = None

    def add(self, piece: Content) -> None:
        """A piece of the message."""
        if is_said(piece):
            self._begin_implied_step()
        if self._mark is not None:
            self._split()
        self.pieces.append(piece)

    def step(self, mark: MarkPart) -> None:
        """A step begins. Behind answered calls that is another message of the model's."""
        self.number += bool(self.pieces or self.steps or self.answers)
        if self._mark is not None:
            first = self._mark
            self._split()
            self.pieces += (first, mark) if first.native is None else (mark,)
        elif self.answers and self.is_model:
            self._mark = mark
        else:
            self.pieces.append(mark)

    def end(self) -> list[Step | Message]:
        """All steps."""
        if self._mark is not None:
            self.pieces.append(self._mark)
        if self.pieces or self.answers or not self.steps:
            self.steps.append((self.pieces, self.answers, self.provider))
        return self.steps

    def opens(self, *, says: bool = True) -> None:
        """Something follows that belongs to the step that is begun, if one is. `says`: it is no call and no mark."""
        if says:
            self._begin_implied_step()
        if self._mark is not None:
            self._split()

    def _begin_implied_step(self) -> None:
        if self._mark is None and self.answers and self.implies_steps:  # M-83
            self.step(MarkPart(STEP, OWN.note(None, {"in": self.dialect, IMPLIED: True})))

    def _split(self) -> None:
        mark, self._mark = self._mark, None
        self.steps.append((self.pieces, self.answers, self.provider))
        self.pieces, self.answers, self.provider, self.item = (
            ([mark] if mark and mark.native else []),
            [],
            None,
            None,
        )

    def read(
        self,
        piece: Content,
        part: Fields,
        made: Callable[[Any], Fields],
        kind: str = "",
        key: str = "providerMetadata",
        form: Mapping[str, Any] = {},
        extra: Mapping[str, Any] = {},
    ) -> Any:
        """A piece with what its part says beyond it. `made`: what would be written for it; `kind`: of its metadata, which stands under
        `key`; `form`: what is noted beside."""
        native: Native = None
        left: Mapping[str, Any] = {}
        if isinstance(part.get(key), dict):
            metadata = lifted(kind, part[key])
            if kind == "text" and metadata.native and self._goes_on(metadata.native):
                metadata = lifted("", part[key])
            self.provider = self.provider or (metadata.provider if self.is_model else None)
            native, left, form = metadata.native or None, metadata.left, {**form, **metadata.form}
            if metadata.ours is not None:
                piece = with_carried(piece, metadata.ours)
        native = joined(joined(piece.native, native), extra)
        held = OWN.note(None, form, left=left)
        as_made = _with(piece, joined(native, held))
        return _with(piece, noted(part, made(as_made), self.dialect, native, form, left))

    def _goes_on(self, native: Mapping[str, Any]) -> bool:
        """Whether a text is of the same item as the one before it."""
        item = native.get("openai_responses:notes", {}).get("item", {}).get("id")
        same, self.item = item is not None and item == self.item, item
        return same


Loader = Callable[[dict[str, Any], Reading, str], None]
"""(part, reading, where) reads a part."""


def says_behind_answers(messages: Sequence[Message]) -> bool:
    """True if a message says something behind a call of its own that is answered in the turn, with no mark between."""
    answered = {result.id for message in messages for result in message.tool_results}
    for message in messages:
        is_behind = False
        for piece in message.content if message.role is Role.MODEL else ():
            if isinstance(piece, MarkPart) and piece.kind == STEP:
                is_behind = False
            is_behind |= isinstance(piece, ToolCallPart) and piece.id in answered
            if is_behind and is_said(piece):
                return True
    return False


def is_said(piece: Content) -> bool:
    """True for what the model says or shows, or thinks, beside its calls."""
    return isinstance(piece, TextPart | ThinkingPart | DataPart | LinkPart | FilePart)


def load_mark(part: dict[str, Any], it: Reading, where: str) -> None:  # noqa: ARG001 a mark is what it is
    """A part that is there for people, or that nobody knows."""
    own = {key: value for key, value in part.items() if key != "type"}
    form = {} if it.dialect == UI else {"in": it.dialect}
    mark = MarkPart(part["type"], OWN.note(own, form if own else {}, mark=part["type"] != STEP))
    if it.is_model and it.provider is None and isinstance(part.get("providerMetadata"), dict):
        it.opens(says=False)
        it.provider = lifted("", part["providerMetadata"]).provider
    if mark.kind == STEP:
        it.step(mark)
    else:
        it.add(mark)


def load_parts(
    parts: list[Any],
    it: Reading,
    loaders: Mapping[str, Loader],
    prefixed: Mapping[str, Loader],
    where: str,
    start: int = 0,
) -> Reading:
    """The parts of a message, each by the loader of its type, or of its type's beginning. `start`: the number of the first.

    Raises:
        HistoryError: one of them cannot be read.
    """
    for at, given in enumerate(parts, start):
        part = cast("dict[str, Any]", given) if type(given) is dict else _NONE
        type_ = part.get("type")
        if type(type_) is not str:
            fault(f"{where}[{at}] must be an object with a type, a part of a message")
        load = loaders.get(type_)
        if load is None:
            if type_ == STEP and len(part) == 1:
                it.step(_BARE)
                continue
            load = next(
                (each for begin, each in prefixed.items() if type_.startswith(begin)), load_mark
            )
        load(part, it, f"{where}[{at}]")
    return it


def text_field(part: Fields, key: str, where: str) -> str:
    """A field that must be a text."""
    value = part.get(key)
    if not isinstance(value, str):
        fault(f"{where}.{key} must be a string, not {type(value).__name__}")
    return value


def fault(text: str) -> NoReturn:
    """A message cannot be read.

    Raises:
        HistoryError: always.
    """
    raise HistoryError(text)


def _with(piece: Content, native: Native) -> Content:
    if piece.native is None and native is None:
        return piece
    return msgspec.structs.replace(piece, native=native)
