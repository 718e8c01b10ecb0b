"""A turn as it is stored, and the copy of it that a client still holds: what is stored stands, the client adds what calls came to."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dragoman.history.flat import Flat, laid_flat, messages_of, rank
from dragoman.history.merging import matched, merged_native, with_fields
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart

__all__ = ["layered", "layered_user"]

_APPROVED = 3


def layered(stored: Sequence[Message], held: Sequence[Message]) -> list[Message]:
    """The stored turn of a model's, with the outcomes that a client's copy has of calls that are open in it: results, and answers to approvals.
    Of calls that a provider runs, answers to approvals alone."""
    first, second = laid_flat(stored), laid_flat(held)
    items, homes = list(first.items), list(first.homes)
    ids = {message.id for message in homes}
    moved: dict[int, int] = {}
    for at, place in matched(first, second).items():
        known, added = items[place], second.items[at]
        call = known.piece
        if not isinstance(call, ToolCallPart) or known.answer is not None:
            continue
        is_result = isinstance(added.piece, ToolResultPart)
        answer = added.piece if isinstance(added.piece, ToolResultPart) else added.answer
        if (
            rank(added) == _APPROVED
            and rank(known) < _APPROVED
            and not is_result
            and isinstance(added.piece, ToolCallPart)
        ):
            items[place] = known._replace(
                piece=replace(call, native=merged_native(call.native, added.piece.native))
            )
        elif answer is not None and call.run_by != "provider":
            home = added.home if is_result else added.answer_home
            if home not in moved:
                message = second.homes[home]
                moved[home] = len(homes)
                homes.append(
                    Message(
                        Role.USER,
                        id=None if message.id in ids else message.id,
                        created_at=message.created_at,
                    )
                )
            items[place] = known._replace(answer=answer, answer_home=moved[home], place=added.place)
    return messages_of(Flat(tuple(items), tuple(homes)))


def layered_user(stored: Message, held: Message) -> Message:
    """A stored message of a user's, with the metadata that the copy at hand has beside it: that goes before."""
    return with_fields(stored, Message(Role.USER, metadata=held.own_metadata))
