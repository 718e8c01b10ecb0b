"""Opens the sealed tokens in a conversation that a client sends back: puts what they hold into its
messages again, and removes every token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.loss import Loss, Lost
from dragoman.message import Content, Message, Role, ToolCallPart, ToolResultPart
from dragoman.serve.seals.token_content import is_sealed, restore, restore_calls, split_id, unpack
from dragoman.wires.serving import get_serving
from dragoman.wires.wire import Wire

if TYPE_CHECKING:
    from dragoman.serve.seals.token_encryption import Sealer

__all__ = ["open_messages"]

_WHY = "what was sealed for it does not open, or the message was changed"


def open_messages(
    messages: Sequence[Message], wire: Wire, sealer: Sealer | None, owner: str = ""
) -> tuple[tuple[Message, ...], list[Loss]]:
    """Opens the tokens in a client's conversation. Returns its messages as the providers made them,
    and the losses for tokens that do not open. No token is left in it, nor what is left of one, so
    that none goes to a provider. Without a `sealer` none opens. Where a message has a token and its
    calls have too, the message's counts, which holds all."""
    opened: list[Message] = []
    losses: list[Loss] = []
    for position, message in enumerate(messages):
        taken = _take_tokens(wire, message)
        if taken is None:
            opened.append(message)
            continue
        if message.role is not Role.MODEL:
            opened += [taken.message] if taken.message.content else []
            continue
        whole = _open_message(taken, sealer, owner)
        if whole is None:
            losses.append(Loss(position, taken.position, Lost.signature, _WHY))
        if whole is not None or taken.message.content:
            opened.append(whole or taken.message)
    return tuple(opened), losses


class _TokenlessMessage(msgspec.Struct, frozen=True):
    """A message without its tokens, and the tokens that were taken out of it."""

    message: Message
    position: int
    """Index of the first piece that held a token."""
    message_tokens: Sequence[str]
    """Tokens of the whole message."""
    call_tokens: Sequence[str]
    """Tokens of its calls, in order."""


def _take_tokens(wire: Wire, message: Message) -> _TokenlessMessage | None:
    """Takes the tokens out of a message. Returns None if there is none in it."""
    form = get_serving(wire).seal
    load, load_call = form.load, form.load_call
    content: list[Content] = []
    positions: list[int] = []
    message_tokens: list[str] = []
    call_tokens: list[str] = []
    for index, piece in enumerate(message.content):
        remaining: Content | None = piece
        if isinstance(piece, ToolCallPart | ToolResultPart):
            remaining, piece_tokens = _take_call_tokens(load_call, piece)
            call_tokens += piece_tokens if isinstance(piece, ToolCallPart) else ()
        # A piece that only carries a token disappears with it.
        elif load is not None and isinstance(token := load(piece), str) and is_sealed(token):
            remaining = None
            message_tokens.append(token)
        if remaining is not piece:
            positions.append(index)
        if remaining is not None:
            content.append(remaining)
    if positions:
        return _TokenlessMessage(
            message.replace(content=tuple(content)), positions[0], message_tokens, call_tokens
        )
    return None


def _take_call_tokens(
    load_call: Any, piece: ToolCallPart | ToolResultPart
) -> tuple[Content, list[str]]:
    """Returns a call, or its result, without the tokens in it, and these."""
    tokens: list[str] = []
    if isinstance(piece, ToolCallPart) and load_call is not None:
        loaded = load_call(piece)
        if loaded is not None and is_sealed(loaded[0]):
            tokens.append(loaded[0])
            piece = loaded[1]
    if split := split_id(piece.id):
        tokens.append(split[1])
        piece = msgspec.structs.replace(piece, id=split[0])
    return piece, tokens


def _open_message(taken: _TokenlessMessage, sealer: Sealer | None, owner: str) -> Message | None:
    """Returns the message as its provider made it, or None if its tokens do not open or it was
    changed. A token of the whole message wins over those of its calls."""
    if sealer is None:
        return None
    # Each gateway on the way adds its token at the end of the message. So the last token is from the
    # gateway next to the client.
    for token in reversed(taken.message_tokens):
        sealed = _unseal(sealer, token, owner)
        if sealed is not None and (whole := restore(taken.message, sealed)) is not None:
            return whole
    if taken.message_tokens:
        # None opens or fits, as when the client changed the message. The tokens of calls must not decide
        # instead: they do not hold what follows the last call, and would let a change there pass.
        return None
    opened_tokens = [_unseal(sealer, token, owner) for token in taken.call_tokens]
    readable = [sealed for sealed in opened_tokens if sealed is not None]
    if readable and len(readable) == len(opened_tokens):
        return restore_calls(taken.message, readable)
    return None


def _unseal(sealer: Sealer, token: str, owner: str) -> Any:
    content = sealer.open(token, owner)
    return None if content is None else unpack(content)
