"""What clients do to their copies of a conversation before they send them back, and what must not
get lost by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from dragoman.history.pieces import shared_key as key
from dragoman.message import Content, Message, Role, TextPart, ThinkingPart

__all__ = ["EDITS", "Edit", "distinct", "lacking", "stripped"]

Edit = tuple[list[Message], set[int]]
"""The copy, and the positions in what was stored of the messages that the edit touched."""


def _nothing(_: Any, messages: Sequence[Message]) -> Edit:
    return list(messages), set()


def _drop(draw: Any, messages: Sequence[Message]) -> Edit:
    at = draw(st.integers(0, len(messages) - 1))
    return [*messages[:at], *messages[at + 1 :]], {at}


def _insert(draw: Any, messages: Sequence[Message]) -> Edit:
    at = draw(st.integers(0, len(messages)))
    return [*messages[:at], Message.user("a new message"), *messages[at:]], set()


def _add(_: Any, messages: Sequence[Message]) -> Edit:
    return [*messages, Message.user("a new message")], set()


def _swap(draw: Any, messages: Sequence[Message]) -> Edit:
    pairs = [
        at
        for at, pair in enumerate(pairwise(messages))
        if all(one.role is not Role.SYSTEM for one in pair)
    ]
    if not pairs:
        return list(messages), set()
    at = draw(st.sampled_from(pairs))
    copy = list(messages)
    copy[at : at + 2] = copy[at + 1], copy[at]
    return copy, set()


def _split(draw: Any, messages: Sequence[Message]) -> Edit:
    at = draw(st.integers(0, len(messages) - 1))
    message = messages[at]
    place = next(
        (
            n
            for n, p in enumerate(message.content)
            if isinstance(p, TextPart) and len(p.text.strip()) > 1
        ),
        None,
    )
    if place is None or message.role is Role.SYSTEM:
        return list(messages), set()
    text = message.content[place].text.strip()  # pyright: ignore[reportAttributeAccessIssue]
    first = message.replace(content=(*message.content[:place], TextPart(text[:1])))
    second = message.replace(content=(TextPart(text[1:]), *message.content[place + 1 :]), id=None)
    return [*messages[:at], first, second, *messages[at + 1 :]], {at}


def _regenerate(draw: Any, messages: Sequence[Message]) -> Edit:
    asked = [at for at, message in enumerate(messages) if message.role is Role.USER]
    if not asked:
        return list(messages), set()
    at = draw(st.sampled_from(asked))
    return list(messages[: at + 1]), set(range(at + 1, len(messages)))


def _edit(draw: Any, messages: Sequence[Message]) -> Edit:
    asked = [
        at for at, message in enumerate(messages) if message.role is Role.USER and message.text
    ]
    if not asked:
        return list(messages), set()
    at = draw(st.sampled_from(asked))
    copy = list(messages)
    copy[at] = messages[at].replace(
        content=(
            *(p for p in messages[at].content if not isinstance(p, TextPart)),
            TextPart("edited"),
        )
    )
    if draw(st.booleans()):
        return copy, {at}
    return copy[: at + 1], set(range(at, len(messages)))


EDITS: dict[str, Callable[[Any, Sequence[Message]], Edit]] = {
    "nothing": _nothing,
    "add": _add,
    "drop": _drop,
    "insert": _insert,
    "swap": _swap,
    "split": _split,
    "regenerate": _regenerate,
    "edit": _edit,
}


def stripped(
    messages: Iterable[Message], *, ids: bool, thinking: bool, native: bool
) -> list[Message]:
    """The messages as a client has them that cannot hold all."""
    found: list[Message] = []
    for message in messages:
        content: tuple[Content, ...] = message.content
        if thinking:
            content = tuple(piece for piece in content if not isinstance(piece, ThinkingPart))
        if native:
            content = tuple(_plain(piece) for piece in content)
        own = {"id": None, "turn": None} if ids else {}
        found.append(
            message.replace(content=content, **({"origin": None} if native else {}), **own)
        )
    return found


def distinct(messages: Iterable[Message]) -> list[Message]:
    """The messages with no text twice, and no message without one."""
    found: list[Message] = []
    for at, message in enumerate(messages):
        content = tuple(
            TextPart(f"{p.text} {at}.{n}") if isinstance(p, TextPart) else p
            for n, p in enumerate(message.content)
        )
        if message.role is Role.MODEL and not message.text and not message.tool_calls:
            content = (*content, TextPart(f"answer {at}"))
        found.append(message.replace(content=content))
    return found


def _plain(piece: Content) -> Content:
    import msgspec

    return msgspec.structs.replace(piece, native=None)


def lacking(
    stored: Sequence[Message], merged: Sequence[Message], touched: set[int]
) -> list[Message]:
    """The stored messages that should be in the merged conversation, as the very same objects, and
    are not. Where several say the same any of them is meant."""
    kept = {id(message) for message in merged}
    expected = Counter(key(message) for at, message in enumerate(stored) if at not in touched)
    found = Counter(key(message) for message in stored if id(message) in kept)
    missed = expected - found
    return [
        message for at, message in enumerate(stored) if at not in touched and missed[key(message)]
    ]
