"""What one format alone knows of a piece that is sent (`native`): which of it a target does not
hold.

A field is held if what is written of its piece is another without it. That is tried once for each
kind of field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman import wires
from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.signature_check import name_part_type
from dragoman.history.target import Target
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import (
    NOTES,
    OURS,
    Content,
    MarkPart,
    Message,
    Native,
    ProviderPart,
    TextPart,
    ToolResultPart,
)

__all__ = ["Known", "find_lost_fields"]

Known = Collection[tuple[int | None, int | None, Lost]]
"""Position of a message, place of a piece, and what of it is lost."""
_SEALS = frozenset({"signature", "thoughtSignature", "encrypted_content", "data"})
"""Fields that hold what a provider signed or encrypted."""
_CARRIAGE = frozenset(
    {
        *(
            "id",
            "call_id",
            "item_id",
            "index",
            "type",
            "status",
            "role",
            "format",
            "closed",
            "function",
            "caller",
        ),
        *("cache_control", "prompt_cache_breakpoint", "prefix", "logprobs"),
    }
)
"""Fields that say how a piece is carried, and nothing of what it says: ids, places, marks for a
cache."""


_CITED = ("citations", "annotations")
"""Fields that hold the sources of a text."""


class _FieldOwner(NamedTuple):
    """A message or a piece whose `native` holds fields that only some format has."""

    part: int | None
    """Index of the piece in the message; None for the message itself."""
    piece: Content | None
    native: JsonMap
    inside: ToolResultPart | None = None
    """The result that the piece stands in."""


class _Kind(NamedTuple):
    """What fields have in common that are either all held by a target or none of them."""

    wire: str
    field: str
    owner: type | None
    state: str
    inside: bool
    role: str
    provider: str | None
    unreadable: bool
    formats: tuple[str, ...]
    """Those that have fields in the message: some write one signature, or one provider's name, for
    all of it."""


def find_lost_fields(messages: Sequence[Message], target: Target, known: Known) -> list[Loss]:
    """Returns the fields and signatures of what is sent that the target does not hold. `known`:
    what is lost besides."""
    losses: list[Loss] = []
    # The wires of models tell lost citations themselves.
    if not target.wire and target.name not in wires.names("model"):
        losses += _find_lost_citations(messages, target, known)
    unreadable: Sequence[str | None] | None = None
    is_written: dict[_Kind, bool] = {}
    for position, message in enumerate(messages):
        formats: tuple[str, ...] | None = None
        for owner, what, wire, field, value in _find_doubtful_fields(position, message, known):
            # What costs time is found out at the first such field: many conversations have none.
            if unreadable is None:
                unreadable = target.unreadable(messages)
            if formats is None:
                formats = _formats(message)
            why = unreadable[position]
            group = _kind(wire, field, owner, message, why, formats)
            if group not in is_written:
                is_written[group] = _is_held(message, owner, group, target)
            if not is_written[group]:
                reason = why or f"{wire} alone has it"
                losses.append(Loss(position, owner.part, what, reason, _which(field, value)))
    return losses


def _find_lost_citations(messages: Sequence[Message], target: Target, known: Known) -> list[Loss]:
    """Returns the citations of texts that a format does not hold: without them the same is
    written."""
    losses: list[Loss] = []
    for position, message in enumerate(messages):
        for part, piece in enumerate(message.content):
            if not isinstance(piece, TextPart) or not piece.citations:
                continue
            alone = message.replace(content=(piece,), native=None)
            bare = alone.replace(content=(TextPart(piece.text, piece.native),))
            is_told = (position, part, Lost.field) in known
            if not is_told and target.dump([alone], []) == target.dump([bare], []):
                why = f"{target.name} has no place for them"
                losses.append(Loss(position, part, Lost.field, why, "citations"))
    return losses


def _find_doubtful_fields(
    position: int, message: Message, known: Known
) -> Iterator[tuple[_FieldOwner, Lost, str, str, Any]]:
    """Yields the fields of a message that may be lost, and are not lost already: whose each is,
    what is lost with it, its format, name and value."""
    for owner in _field_owners(message):
        if _is_lost_whole(position, owner, known):
            continue
        for wire, field, value in _fields(owner.native):
            if field in _SEALS:
                what = Lost.signature
            else:
                what = Lost.field
            is_told = field in _CITED and _is_cited(message, owner)
            if (position, owner.part, what) not in known and not is_told:
                yield owner, what, wire, field, value


def _is_cited(message: Message, owner: _FieldOwner) -> bool:
    """True if the sources in a field are citations too, so that they are told as such."""
    pieces = message.content if owner.piece is None else (owner.piece,)
    return any(isinstance(piece, TextPart) and piece.citations for piece in pieces)


def _field_owners(message: Message) -> Iterator[_FieldOwner]:
    """Yields the message and its pieces, those within tool results too, whose native fields may be
    lost."""
    if message.native:
        yield _FieldOwner(None, None, message.native)
    for part, piece in enumerate(message.content):
        if piece.native and not isinstance(piece, MarkPart | ProviderPart):
            yield _FieldOwner(part, piece, piece.native)
        if isinstance(piece, ToolResultPart) and piece.is_content:
            for part_of_result in piece.result:
                if part_of_result.native:
                    yield _FieldOwner(part, part_of_result, part_of_result.native, piece)


def _is_lost_whole(position: int, owner: _FieldOwner, known: Known) -> bool:
    """True if the message or piece is reported as lost as a whole, so that its fields need no report
    of their own.

    Args:
        position: index of the message in the conversation.
        owner: the message or piece.
        known: the losses so far, each as position, index of the piece and what is lost.
    """
    if (position, None, Lost.message) in known:
        return True
    if owner.piece is None:
        return (position, None, Lost.system_message) in known
    return any(
        (position, owner.part, name_part_type(piece)) in known
        for piece in (owner.piece, owner.inside)
        if piece is not None
    )


def _fields(native: JsonMap) -> Iterator[tuple[str, str, Any]]:
    """Yields format, name and value of each native field that may be lost: one that says something
    of its owner."""
    for wire, fields in native.items():
        if wire != OURS and not wire.endswith(NOTES):
            for name, value in if_object(fields).items():
                if value and name not in _CARRIAGE:
                    yield wire, name, value


def _formats(message: Message) -> tuple[str, ...]:
    """Returns the formats whose fields in a message may be lost."""
    return tuple(
        sorted({wire for owner in _field_owners(message) for wire, _, _ in _fields(owner.native)})
    )


def _kind(
    wire: str,
    field: str,
    owner: _FieldOwner,
    message: Message,
    why: str | None,
    formats: tuple[str, ...],
) -> _Kind:
    """Returns what a native field that may be lost has in common with others that a target holds or
    loses alike."""
    return _Kind(
        wire,
        field,
        None if owner.piece is None else type(owner.piece),
        f"{getattr(owner.piece, 'state', '')} {getattr(owner.piece, 'run_by', '')}",
        owner.inside is not None,
        message.role.value,
        None if message.origin is None else message.origin.provider,
        why is not None,
        formats,
    )


def _is_held(message: Message, owner: _FieldOwner, group: _Kind, target: Target) -> bool:
    """True if a field is not lost: what is written of a message or piece is another without a
    field, or with another value of it: the usual one may be written anyway."""
    fields = if_object(owner.native[group.wire])
    other_fields, value = read_extra_fields(fields, group.field), fields[group.field]
    if (
        message.origin is not None
    ):  # as it stands in the conversation, whose digests are not those of one message
        origin = msgspec.structs.replace(
            message.origin, prefix="another" if group.unreadable else None
        )
        message = message.replace(origin=origin)
    if len(group.formats) > 1:
        message_with = _message_with
    else:
        message_with = _message_with_only

    def written(fields: JsonMap) -> Any:
        return target.dump([message_with(message, owner, {**owner.native, group.wire: fields})], [])

    is_ = written(fields)
    return is_ != written(other_fields) or is_ != written({**fields, group.field: _alter(value)})


def _alter(value: object) -> Any:
    """Returns another value of a field, to test whether it is lost: whether a target writes it."""
    if isinstance(value, str):
        return f"{value}?"
    if isinstance(value, bool) or not isinstance(value, int | float | dict):
        if isinstance(value, bool):
            return not value
        return value
    if isinstance(value, dict):
        return {name: _alter(field) for name, field in if_object(value).items()}
    return value + 1


def _message_with_only(message: Message, owner: _FieldOwner, native: Native) -> Message:
    """Returns a message that holds nothing but the owner of these fields, to see if they are lost,
    so that large files beside it cost nothing."""
    if owner.piece is None:
        return message.replace(content=(TextPart("?"),), native=native)
    return message.replace(content=(_change_piece(owner, native, alone=True),), native=None)


def _message_with(message: Message, owner: _FieldOwner, native: Native) -> Message:
    """Returns a message with these fields in the place of its own or of those of a piece, to see
    which are lost."""
    if owner.part is None:
        return message.replace(native=native)
    piece = _change_piece(owner, native)
    return message.replace(
        content=(*message.content[: owner.part], piece, *message.content[owner.part + 1 :])
    )


def _change_piece(owner: _FieldOwner, native: Native, *, alone: bool = False) -> Any:
    """Returns a piece of content with other native fields, within its tool result if it is in one,
    to see which are lost."""
    replace: Callable[..., Any] = msgspec.structs.replace
    piece, inside = replace(owner.piece, native=native), owner.inside
    if inside is None:
        return piece
    if alone:
        return replace(inside, result=(piece,), native=None)
    return replace(
        inside,
        result=tuple(
            [piece if result_part is owner.piece else result_part for result_part in inside.result]
        ),
    )


def _which(field: str, value: object) -> str:
    """Returns the name of a field; where it is an object, of the fields in it."""
    return ", ".join([f"{field}.{name}" for name in if_object(value)]) or field
