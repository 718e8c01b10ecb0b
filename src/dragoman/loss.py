"""What a wire or its target cannot hold: the record of what was left out or changed, and the
refusal to go on without it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from dragoman.errors import InvalidRequestError

__all__ = ["Loss", "Lost", "refusal_error"]


class Lost(StrEnum):
    """What a wire or its target cannot hold. Those of pieces of content are the kinds of pieces."""

    text = "text"
    """A text, such as a blank one."""
    data = "data"
    """A file by its bytes; `which` names it."""
    link = "link"
    """A file by its URL."""
    file = "file"
    """A file that another provider holds."""
    tool_call = "tool call"
    """A call where none may stand, or that a provider ran."""
    tool_result = "tool result"
    """A result where none may stand, or that a provider's tool gave, or that repair made up or
    dropped."""
    thinking = "thinking"
    """Thinking, signed or not."""
    provider = "provider"
    """A block that only another provider understands."""
    arguments = "arguments"
    """The arguments of a call that was cut or is invalid: it is sent as one without any."""
    signature = "signature"
    """The signature of a piece that itself is sent."""
    field = "field"
    """A field that one format alone has; `which` names it, or several."""
    is_error = "is_error"
    """That a tool failed; its result is sent."""
    media = "media"
    """That files stood inside a result; they are sent elsewhere."""
    file_name = "name"
    """A file's name."""
    order = "order"
    """The order of pieces; all are sent."""
    texts = "texts"
    """That texts stood apart; they are joined."""
    message = "message"
    """A message as a whole."""
    system_message = "system message"
    """That a message was the system's; its text is sent."""
    prefix = "prefix"
    """That the request begins as the one before: its system text or tools have changed; `which`
    names them."""
    beginning = "beginning"
    """Nothing of the conversation: a placeholder stands before it."""
    tool = "tool"
    """A tool that the provider would run; `which` names it."""
    setting = "setting"
    """A setting; `which` names it."""
    output_schema = "output_schema"
    """The schema of the answer, or a part of it."""
    option = "option"
    """An option of another wire; `which` names it."""
    candidate = "candidate"
    """An alternative answer; `which` is its number."""


_MINOR = (Lost.field, Lost.file_name, Lost.order, Lost.texts, Lost.prefix)


class Loss(msgspec.Struct, frozen=True):
    """Something that a wire or its target cannot hold."""

    message: int | None
    """Position of the message in the conversation; `None`: the request as a whole, such as a
    setting."""
    part: int | None
    """Position of the piece in its content; `None`: the message as a whole."""
    what: Lost
    """What is left out or changed."""
    why: str
    """The reason, in words for people."""
    which: str = ""
    """Which one, in words for people, where `what` alone does not say it: a setting's name, a
    file's."""

    @property
    def is_minor(self) -> bool:
        """Returns whether no model would miss the lost thing: the name of a picture, the order of
        pieces, texts that are joined, what one format alone knows of a piece that is sent. A minor
        loss is recorded, but neither refused nor warned of."""
        return self.what in _MINOR

    def __str__(self) -> str:
        """Returns the loss as one line for people."""
        if self.message is None:
            where = ""
        else:
            where = f" of message {self.message}"
        return f"{self.which or self.what}{where}: {self.why}"


def refusal_error(losses: Iterable[Loss]) -> InvalidRequestError | None:
    """Returns the error that names the losses, where nothing may be left out; `None`: there is
    nothing but minor losses."""
    refused = dict.fromkeys(str(loss) for loss in losses if not loss.is_minor)
    if not refused:
        return None
    return InvalidRequestError(
        f"the request cannot be sent whole. {'; '.join(refused)}. "
        'Take it out, choose another model, or let it be left out with on_loss="tell"'
    )
