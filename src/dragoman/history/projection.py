"""What a format makes of stored messages: which of their pieces its reader sees, and as what.

A client's copy is never compared with what is stored, but with what the client was shown of it: texts may be joined there, a system
message may be the user's, a failed result may be any result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman import formats
from dragoman.codec.digest import neutral
from dragoman.codec.turns import only_answers
from dragoman.errors import DragomanError
from dragoman.history.alignment import aligned, joined
from dragoman.message import (
    Content,
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
    "Piece",
    "Place",
    "Shown",
    "is_shared",
    "key",
    "letters",
    "merges_answers",
    "pieces",
    "projected",
    "spans",
]

Place = tuple[int, int]
"""Position of a message, and place of a piece in its content."""


class Piece(NamedTuple):
    """A piece that was said, as alignment sees it."""

    place: Place
    """Where it stands."""
    key: str
    """Equal for equal pieces of one role."""
    part: Content
    """Itself."""
    role: Role
    """Of its message."""


class Shown(NamedTuple):
    """A piece as the format's reader sees it."""

    key: str
    """As that of `Piece`."""
    sources: tuple[Place, ...]
    """The stored pieces that it shows; of what the format made up: those of what stands before it."""


def is_shared(piece: Content) -> bool:
    """Whether a client's copy of a message is expected to have it: no thinking, nothing that only a provider or a UI understands."""
    if isinstance(piece, ThinkingPart | ProviderPart | MarkPart):
        return False
    return not isinstance(piece, ToolCallPart | ToolResultPart) or piece.run_by != "provider"


def key(message: Message) -> str:
    """Equal for messages of one role that say the same."""
    content = message.content
    if len(content) == 1 and type(content[0]) is TextPart:
        return f"{message.role}: {content[0].text}"  # no digest, which is hexadecimal
    shared = [piece for piece in content if is_shared(piece)]
    if len(shared) == len(content):
        return neutral(message)
    return key(Message(message.role, tuple(shared)))


def pieces(messages: Sequence[Message], positions: Iterable[int]) -> list[Piece]:
    """The pieces that these messages say, in order."""
    return [
        Piece((at, place), key(Message(messages[at].role, (piece,))), piece, messages[at].role)
        for at in positions
        for place, piece in enumerate(messages[at].content)
        if is_shared(piece)
    ]


def spans(messages: Sequence[Message], ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of messages, which rise, widened so that each begins with a question, or with the first message, and ends before one."""
    starts = [
        at
        for at, message in enumerate(messages)
        if message.role is Role.USER and not only_answers(message)
    ]
    begins, at = [0, *starts], 0
    found: list[tuple[int, int]] = []
    for first, end in ranges:
        while at + 1 < len(begins) and begins[at + 1] <= first:
            at += 1
        ahead = at
        while ahead < len(begins) and begins[ahead] < end:
            ahead += 1
        stop = begins[ahead] if ahead < len(begins) else len(messages)
        if found and begins[at] < found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((begins[at], stop))
    return found


def projected(messages: Sequence[Message], start: int, end: int, format: str) -> list[Shown]:  # noqa: A002 what it is called everywhere
    """What the reader of a format sees of the messages of a span."""
    own = pieces(messages, range(start, end))
    codec = formats.get(format)
    try:
        copy = codec.load_messages(codec.dump_messages(list(messages[start:end])))
    except DragomanError:
        return [Shown(piece.key, (piece.place,)) for piece in own]
    shown = pieces(copy, range(len(copy)))
    sources: dict[int, tuple[Place, ...]] = {}
    free = dict(enumerate(own))
    pairs = aligned([piece.key for piece in own], [piece.key for piece in shown])
    for a, b in [*pairs, *_unordered(own, shown, pairs)]:
        sources[b] = (free.pop(a).place,)
    i = j = 0
    for a, b in [*pairs, (len(own), len(shown))]:
        _assign(range(i, a), [n for n in range(j, b) if n not in sources], free, shown, sources)
        i, j = a + 1, b + 1
    _assign(list(free), [n for n in range(len(shown)) if n not in sources], free, shown, sources)
    found: list[Shown] = []
    for n, piece in enumerate(shown):
        found.append(Shown(piece.key, sources.get(n) or (found[-1].sources if found else ())))
    return found


def _unordered(
    own: Sequence[Piece], shown: Sequence[Piece], pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Pieces that the format has in another order."""
    used, placed = {a for a, _ in pairs}, {b for _, b in pairs}
    by_key: dict[str, deque[int]] = {}
    for at, piece in enumerate(own):
        if at not in used:
            by_key.setdefault(piece.key, deque()).append(at)
    return [
        (places.popleft(), n)
        for n, piece in enumerate(shown)
        if n not in placed and (places := by_key.get(piece.key))
    ]


def _assign(
    own: Iterable[int],
    places: Sequence[int],
    free: dict[int, Piece],
    shown: Sequence[Piece],
    sources: dict[int, tuple[Place, ...]],
) -> None:
    """Pieces that the format changed: texts that it joined or split; those of one kind one by one where there are as many of them, else all
    for all; of one role first."""
    own = list(own)
    for role in (*Role, None):
        for kind in ("call", "result", "content", "file", "text", "rest"):
            these = [at for at in own if at in free and _is(free[at], kind, role)]
            those = [n for n in places if n not in sources and _is(shown[n], kind, role)]
            if kind == "text" and len(these) != len(those):
                for a, b in joined(
                    [letters(free[at]) for at in these], [letters(shown[n]) for n in those]
                ):
                    from_ = tuple([free.pop(these[at]).place for at in a])
                    sources.update(dict.fromkeys([those[n] for n in b], from_))
                these = [at for at in these if at in free]
                those = [n for n in those if n not in sources]
            if these and those and (kind != "content" or len(these) == len(those)):
                all_ = [free.pop(at).place for at in these]
                for number, n in enumerate(those):
                    sources[n] = (all_[number],) if len(all_) == len(those) else tuple(all_)


def _is(piece: Piece, kind: str, role: Role | None) -> bool:
    own = _kind(piece.part)
    return (role is None or piece.role is role) and (
        own == kind or (kind in ("content", "rest") and own in ("file", "text"))
    )


def letters(piece: Piece) -> str:
    """A text without white space."""
    return "".join(piece.part.text.split()) if isinstance(piece.part, TextPart) else ""


def _kind(piece: Content) -> str:
    if isinstance(piece, ToolCallPart):
        return "call"
    if isinstance(piece, ToolResultPart):
        return "result"
    return "text" if isinstance(piece, TextPart) else "file"


def merges_answers(format: str) -> bool:  # noqa: A002 what it is called everywhere
    """Whether two answers that stand beside each other are one in this format."""
    codec = formats.get(format)
    answers = [Message.user("a"), Message.model("b"), Message.model("c")]
    return len(codec.load_messages(codec.dump_messages(answers))) < len(answers)
