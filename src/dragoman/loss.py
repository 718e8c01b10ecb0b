"""What a wire or its target cannot hold: the record of what was left out or changed, and the refusal to go on without it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.errors import InvalidRequestError

__all__ = ["Loss", "refusal"]

_MINOR = ("name", "order", "texts")


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

    @property
    def is_minor(self) -> bool:
        """Whether no model would miss it: the name of a picture, the order of pieces, texts that are joined. It is
        recorded, but neither refused nor warned of."""
        return self.what in _MINOR

    def __str__(self) -> str:
        where = "" if self.message is None else f" of message {self.message}"
        return f"{self.what}{where}: {self.why}"


def refusal(losses: Iterable[Loss]) -> InvalidRequestError | None:
    """The error that names what cannot be sent, where nothing may be left out; `None`: there is nothing but minor losses."""
    refused = dict.fromkeys(str(loss) for loss in losses if not loss.is_minor)
    if not refused:
        return None
    return InvalidRequestError(
        f"the request cannot be sent whole. {'; '.join(refused)}. "
        'Take it out, choose another model, or let it be left out with on_loss="tell"'
    )
