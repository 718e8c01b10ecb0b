"""What a wire or its target cannot hold: the record of what was left out or changed, and the refusal to go on without it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.errors import InvalidRequestError

__all__ = ["Loss", "refusal"]


class Loss(msgspec.Struct, frozen=True):
    """Something that a wire or its target cannot hold."""

    message: int | None
    """Position of the message in the conversation; `None`: the request as a whole, such as a setting."""
    part: int | None
    """Position of the piece in its content; `None`: the message as a whole."""
    what: str
    """What is left out or changed, such as `thinking`."""
    why: str
    """The reason, in words for people."""

    def __str__(self) -> str:
        where = "" if self.message is None else f" of message {self.message}"
        return f"{self.what}{where}: {self.why}"


def refusal(losses: Iterable[Loss]) -> InvalidRequestError:
    """The error that names what cannot be sent, where nothing may be left out."""
    return InvalidRequestError(
        f"the request cannot be sent whole. {'; '.join(map(str, dict.fromkeys(losses)))}. "
        'Take it out, choose another model, or let it be left out with on_loss="tell"'
    )
