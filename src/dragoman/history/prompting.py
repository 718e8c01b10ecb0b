"""What a model is sent of a list: its conversation with every call answered, without what is for people alone."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codec.marks import unmarked
from dragoman.history.exchanges import cuts
from dragoman.history.rows import Rows
from dragoman.message import Message, Role, TextPart
from dragoman.repair import repair

__all__ = ["Prompts", "sanitized"]

_BEGINNING = Message.user(".")
"""What stands before an answer that begins a conversation, since most models demand a question."""
_LEAST = 64
"""Messages from which on what was made is kept."""


def sanitized(message: Message) -> Message | None:
    """A message without marks and blank texts; `None` where nothing is left of it. A model's blank text stays where it is all there is."""
    bare = unmarked(message)
    if any(isinstance(piece, TextPart) and not piece.text.strip() for piece in bare.content):
        content = tuple(
            [
                piece
                for piece in bare.content
                if not isinstance(piece, TextPart) or piece.text.strip()
            ]
        )
        if content or bare.role is not Role.MODEL:
            bare = bare.replace(content=content)
    return bare if bare.content or not message.content else None


class Prompts:
    """What was made of a conversation the last time, so that a turn costs what is new in it."""

    def __init__(self) -> None:
        self._changes, self._upto = -1, 0
        self._made: list[Message] = []
        self.worked = 0
        """How many messages were looked at, all in all."""

    def of(self, rows: Rows) -> list[Message]:
        """The conversation of rows, repaired. Messages stay the same objects where nothing was to be done."""
        if self._changes != rows.changes or self._upto > len(rows):
            self._changes, self._upto, self._made = rows.changes, 0, []
        new = [row.message for row in rows.between(self._upto, len(rows))]
        self.worked += len(new)
        made = [*self._made, *_mended(new)]
        if len(new) >= _LEAST and (
            settled := cuts(new)[-1]
        ):  # nothing that comes later changes what stands before a question
            self._made += _mended(new[:settled])
            self._upto += settled
        return [_BEGINNING, *made] if made and made[0].role is Role.MODEL else made


def _mended(messages: Sequence[Message]) -> list[Message]:
    return repair([bare for message in messages if (bare := sanitized(message)) is not None])
