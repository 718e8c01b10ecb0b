"""Pieces of messages, and where they are: what copies of a conversation, and of a turn, are
compared by.

A turn is laid flat into its pieces in order, where a call and its result are one (`lay_flat`), and
made of pieces again (`join_pieces`). A client's copy is compared by what it says alone
(`shared_pieces`), since its format may have no room for anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman.codec.digest import neutral_digest
from dragoman.codec.json_values import if_object
from dragoman.history.format_fields import STEP, approval_of
from dragoman.json_bytes import JsonMap
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

__all__ = [
    "APPROVED",
    "Flat",
    "Piece",
    "Place",
    "is_shared",
    "is_step",
    "key_of",
    "lay_flat",
    "join_pieces",
    "rank",
    "result_of",
    "shared_key",
    "shared_pieces",
]

APPROVED = 3
"""Rank of a call whose approval was answered."""
_END = 1 << 30
Place = tuple[int, int]
"""Position of a message, and place of a piece in its content."""


class Piece(NamedTuple):
    """A piece of content, and where it is."""

    part: Content
    """Itself; of a call and its result, the call."""
    home: int
    """Which message it is in."""
    place: int = _END
    """Where in that; of a new piece behind all others."""
    answer: Piece | None = None
    """Of a call that is laid flat: its result."""
    key: str = ""
    """What it says, for comparison with what is stored: equal for equal pieces of one role."""
    role: Role = Role.MODEL
    """Of its message."""

    @property
    def location(self) -> Place:
        """Returns the place of the piece: its message and its index there."""
        return self.home, self.place


# what is said


def is_shared(piece: Content) -> bool:
    """True if a client's copy of a message is expected to have this piece: no thinking, nothing
    that only a provider or a UI understands."""
    if isinstance(piece, ThinkingPart | ProviderPart | MarkPart):
        return False
    return not isinstance(piece, ToolCallPart | ToolResultPart) or piece.run_by != "provider"


def shared_key(message: Message) -> str:
    """Returns a key, by their pieces, that is equal for messages of one role that say the same."""
    content = message.content
    if len(content) == 1 and type(content[0]) is TextPart:
        return f"{message.role}: {content[0].text}"  # no digest, which is hexadecimal
    shared = [piece for piece in content if is_shared(piece)]
    if len(shared) == len(content):
        return neutral_digest(message)
    return shared_key(Message(message.role, tuple(shared)))


def shared_pieces(messages: Sequence[Message], positions: Iterable[int]) -> list[Piece]:
    """Returns the pieces that these messages say, in order."""
    return [
        Piece(part, home, part_index, None, shared_key(Message(role, (part,))), role)
        for home in positions
        for role in (messages[home].role,)
        for part_index, part in enumerate(messages[home].content)
        if is_shared(part)
    ]


# a turn, laid flat


class Flat(NamedTuple):
    """A turn as pieces."""

    pieces: tuple[Piece, ...]
    """In order."""
    homes: tuple[Message, ...]
    """The messages that they are in, with what these have beside their content."""

    def with_piece(self, index: int, piece: Piece) -> Flat:
        """Returns the turn with another piece in the place of one."""
        return self._replace(pieces=(*self.pieces[:index], piece, *self.pieces[index + 1 :]))


def lay_flat(messages: Sequence[Message]) -> Flat:
    """Returns the messages of a turn as pieces, laid flat."""
    pieces: list[Piece] = []
    open_calls: dict[str, list[int]] = {}
    for home, message in enumerate(messages):
        is_model = message.role is Role.MODEL
        for part_index, part in enumerate(message.content):
            if is_model:
                piece = Piece(part, home)
            else:
                piece = Piece(part, home, part_index)
            if isinstance(part, ToolResultPart) and not is_model and open_calls.get(part.id):
                index = open_calls[part.id].pop(0)
                pieces[index] = pieces[index]._replace(answer=piece)
                continue
            if isinstance(part, ToolCallPart) and is_model and part.run_by != "provider":
                open_calls.setdefault(part.id, []).append(len(pieces))
            pieces.append(piece)
    return Flat(tuple(pieces), tuple(messages))


def join_pieces(flat: Flat) -> list[Message]:
    """Returns the messages that pieces are: the same objects where their content is the same. One
    that was cut in two is a message without an id from there on."""
    making = _Making(flat.homes)
    for piece in flat.pieces:
        making.add(piece)
    return making.end()


class _Making:
    """Messages, as they are made of pieces. Results wait until the message of their calls is
    whole."""

    def __init__(self, homes: Sequence[Message]) -> None:
        """Starts to make messages of pieces. `homes`: the stored messages that the pieces come
        from."""
        self._homes = homes
        self._used: set[int] = set()
        self._home: int | None = None
        self._parts: list[Content] = []
        self._answers: dict[int, list[Piece]] = {}
        self._messages: list[Message] = []

    def add(self, piece: Piece) -> None:
        """Adds the next piece to the messages that are being made."""
        home = piece.home
        if self._homes[home].role is not Role.MODEL:
            self._answers.setdefault(home, []).append(piece)
            return
        if home != self._home:
            self._close_messages()
            self._home = home
        self._parts.append(piece.part)
        if piece.answer is not None:
            self._answers.setdefault(piece.answer.home, []).append(piece.answer)

    def end(self) -> list[Message]:
        """Returns all messages made of the pieces."""
        self._close_messages()
        self._add_empty(len(self._homes))
        return self._messages

    def _add_empty(self, stop: int) -> None:
        """Adds the messages before `stop` that have no pieces and never had a content."""
        for home in range(stop):
            if home not in self._used and not self._homes[home].content:
                self._used.add(home)
                self._messages.append(self._homes[home])

    def _close_messages(self) -> None:
        """Adds the pieces collected so far as messages, the results behind their calls."""
        if self._home is not None:
            self._add_message(self._home, self._parts)
        for home, answers in self._answers.items():
            ordered = sorted(answers, key=lambda piece: piece.place)
            self._add_message(home, [piece.part for piece in ordered])
        self._home, self._parts, self._answers = None, [], {}

    def _add_message(self, home: int, content: list[Content]) -> None:
        """Adds a message made of these pieces; unchanged if it has all of its own."""
        message = self._homes[home]
        self._add_empty(home)
        if home in self._used:
            self._messages.append(Message(message.role, tuple(content), origin=message.origin))
            return
        self._used.add(home)
        is_same = len(content) == len(message.content) and all(
            part is old_part for part, old_part in zip(content, message.content, strict=True)
        )
        self._messages.append(message if is_same else message.replace(content=tuple(content)))


def rank(piece: Piece) -> int:
    """Returns how far the call of a piece has come: cut, whole, approval asked for, approval
    answered, answered."""
    call = piece.part
    if piece.answer is not None:
        return 4
    if not isinstance(call, ToolCallPart) or call.state == "cut":
        return 0
    approval = approval_of(call)
    if approval is None:
        return 1
    if isinstance(approval.get("approved"), bool):
        return APPROVED
    return 2


def result_of(piece: Piece) -> ToolResultPart | None:
    """Returns the tool result that belongs to the call in a piece, or None."""
    part = None if piece.answer is None else piece.answer.part
    if isinstance(part, ToolResultPart):
        return part
    return None


def is_step(piece: Content) -> bool:
    """True if a step begins here."""
    return isinstance(piece, MarkPart) and piece.kind == STEP


def key_of(piece: Piece) -> tuple[Any, ...]:
    """Returns that by which a piece is known again in another copy of its turn."""
    part = piece.part
    match part:
        case ToolCallPart():
            return "call", part.id, part.name
        case ToolResultPart():
            return "result", part.id
        case TextPart():
            return "text", part.text, _item_id(part.native)
        case ThinkingPart():
            item_id = _item_id(part.native)
            return (
                "thinking",
                part.text,
                item_id if part.text or item_id else _native_text(part.native),
            )
        case MarkPart():
            return "mark", part.kind, None if part.kind == STEP else _native_text(part.native)
        case DataPart():
            return "data", part.data, part.mime_type
        case LinkPart():
            return "link", part.url
        case FilePart():
            return "file", part.id
        case ProviderPart():
            return "provider", part.kind, _native_text(part.native)


def _native_text(native: JsonMap | None) -> str:
    """Returns the native fields of a piece as a text for comparison."""
    try:
        return json.dumps(msgspec.to_builtins(native), sort_keys=True)
    except (TypeError, ValueError):
        return repr(native)


def _item_id(native: JsonMap | None) -> str | None:
    """Returns the provider's id of a piece."""
    for wire_fields in (native or {}).values():
        fields = if_object(wire_fields)
        for name in ("id", "itemId", "item_id"):
            if isinstance(fields.get(name), str):
                return fields[name]
    return None
