"""A turn laid flat: its pieces in order, each call with its result as one item. And a turn made of such items again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from dragoman.history.format_fields import STEP, approval_of
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = ["Flat", "Item", "key_of", "laid_flat", "messages_of", "rank"]

_END = 1 << 30


class Item(NamedTuple):
    """A piece of a turn, and where it stands."""

    piece: Content
    """Itself; of a call and its result, the call."""
    home: int
    """Which message it stands in."""
    answer: ToolResultPart | None = None
    """Of a call: its result."""
    answer_home: int = -1
    """Which message that stands in."""
    place: int = _END
    """Where in the message of results that, or a piece that is no call, stood."""


class Flat(NamedTuple):
    """A turn as items."""

    items: tuple[Item, ...]
    """In order."""
    homes: tuple[Message, ...]
    """The messages that they stand in, with what these have beside their content."""


def laid_flat(messages: Sequence[Message]) -> Flat:
    """The messages of a turn as items."""
    items: list[Item] = []
    open_: dict[str, list[int]] = {}
    for home, message in enumerate(messages):
        is_model = message.role is Role.MODEL
        for place, piece in enumerate(message.content):
            if is_model:
                if isinstance(piece, ToolCallPart) and piece.run_by != "provider":
                    open_.setdefault(piece.id, []).append(len(items))
                items.append(Item(piece, home))
            elif isinstance(piece, ToolResultPart) and open_.get(piece.id):
                at = open_[piece.id].pop(0)
                items[at] = items[at]._replace(answer=piece, answer_home=home, place=place)
            else:
                items.append(Item(piece, home, place=place))
    return Flat(tuple(items), tuple(messages))


def messages_of(flat: Flat) -> list[Message]:
    """The messages that items are: the same objects where their content is the same. One that was cut in two is a message without an id
    from there on."""
    made = _Making(flat.homes)
    for item in flat.items:
        made.add(item)
    return made.end()


class _Making:
    """Messages, as they are made of items."""

    def __init__(self, homes: Sequence[Message]) -> None:
        self._homes = homes
        self._used: set[int] = set()
        self._home: int | None = None
        self._pieces: list[Content] = []
        self._answers: dict[int, list[tuple[int, Content]]] = {}
        self._messages: list[Message] = []

    def add(self, item: Item) -> None:
        home = item.home
        if self._homes[home].role is not Role.MODEL:
            self._answers.setdefault(home, []).append((item.place, item.piece))
            return
        if home != self._home:
            self._close()
            self._home = home
        self._pieces.append(item.piece)
        if item.answer is not None:
            self._answers.setdefault(item.answer_home, []).append((item.place, item.answer))

    def end(self) -> list[Message]:
        self._close()
        self._empty_before(len(self._homes))
        return self._messages

    def _empty_before(self, home: int) -> None:
        """Messages that never had a content stand where they stood."""
        for at in range(home):
            if at not in self._used and not self._homes[at].content:
                self._used.add(at)
                self._messages.append(self._homes[at])

    def _close(self) -> None:
        if self._home is not None:
            self._message(self._home, self._pieces)
        for home, pieces in self._answers.items():
            self._message(home, [piece for _, piece in sorted(pieces, key=lambda each: each[0])])
        self._home, self._pieces, self._answers = None, [], {}

    def _message(self, home: int, content: list[Content]) -> None:
        message = self._homes[home]
        self._empty_before(home)
        if home in self._used:
            self._messages.append(Message(message.role, tuple(content), origin=message.origin))
            return
        self._used.add(home)
        is_same = len(content) == len(message.content) and all(
            one is other for one, other in zip(content, message.content, strict=True)
        )
        self._messages.append(message if is_same else message.replace(content=tuple(content)))


def rank(item: Item) -> int:
    """How far a call has come: cut, whole, approval asked for, approval answered, answered."""
    call = item.piece
    if item.answer is not None:
        return 4
    if not isinstance(call, ToolCallPart) or call.state == "cut":
        return 0
    approval = approval_of(call)
    return 1 if approval is None else 3 if isinstance(approval.get("approved"), bool) else 2


def key_of(item: Item) -> tuple[Any, ...]:
    """By what a piece is known again in another copy of its turn."""
    piece = item.piece
    match piece:
        case ToolCallPart():
            return "call", piece.id, piece.name
        case ToolResultPart():
            return "result", piece.id
        case TextPart():
            return "text", piece.text, _item_id(piece.native)
        case ThinkingPart():
            own = _item_id(piece.native)
            return "thinking", piece.text, own if piece.text or own else _fields(piece.native)
        case MarkPart():
            return "mark", piece.kind, None if piece.kind == STEP else _fields(piece.native)
        case DataPart():
            return "data", piece.data, piece.mime_type
        case LinkPart():
            return "link", piece.url
        case FilePart():
            return "file", piece.id
        case ProviderPart():
            return "provider", piece.kind, _fields(piece.native)


def _fields(native: Mapping[str, Any] | None) -> str:
    try:
        return json.dumps(msgspec.to_builtins(native), sort_keys=True)
    except (TypeError, ValueError):
        return repr(native)


def _item_id(native: Mapping[str, Any] | None) -> str | None:
    """The provider's id of a piece."""
    for own in (native or {}).values():
        fields = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
        for name in ("id", "itemId", "item_id"):
            if isinstance(fields.get(name), str):
                return fields[name]
    return None
