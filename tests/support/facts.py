"""What a conversation says, fact by fact, so that two of them can be compared across formats."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from dragoman.codec.fit_ids import fit_names
from dragoman.codec.media import describe_as_text, read_media_text
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = ["Fact", "facts", "unexplained"]

Fact = tuple[int, int | None, tuple[Any, ...]]
"""Position of the message, place of the piece in it, and what it says."""

_TYPE = re.compile(r"\[media: [^\]]*\]")


def facts(messages: Sequence[Message]) -> list[Fact]:
    """Every fact. A link's media type is a hint and none; white space between the texts of a result
    is none either."""
    told: list[Fact] = []
    order: dict[tuple[int, int], int] = {}
    waiting: dict[str, list[int]] = {}
    before: Role | None = None
    for position, message in enumerate(messages):
        if message.role is Role.MODEL and before is not Role.MODEL:
            waiting = {}
        before = message.role
        if not message.content and message.role is not Role.SYSTEM:
            told.append((position, None, ("empty message", message.role.value)))
        for place, piece in enumerate(message.content):
            if isinstance(piece, ToolCallPart) and piece.run_by != "provider":
                order[position, place] = len(order)
                waiting.setdefault(piece.id, []).append(order[position, place])
            number = order.get((position, place), -1)
            if isinstance(piece, ToolResultPart) and piece.run_by != "provider":
                queue = waiting.get(piece.id) or [-1]
                number = queue.pop(0) if len(queue) > 1 else queue[0]
            told += [(position, place, fact) for fact in _facts(piece, message.role, number)]
    return told


def _facts(piece: Content, role: Role, number: int) -> Iterator[tuple[Any, ...]]:
    """What a piece says; `number`: which of the conversation's calls it is, or answers."""
    piece = _as_said(piece)
    if isinstance(piece, TextPart):
        yield "text", role.value, _TYPE.sub("[media]", piece.text)
    elif isinstance(piece, (DataPart, LinkPart, FilePart)):
        yield from _media(piece, "")
    elif isinstance(piece, ThinkingPart):
        yield "thinking", piece.text
    elif isinstance(piece, ProviderPart):
        yield "block", piece.kind
    elif piece.run_by == "provider":
        yield "run by the provider", type(piece).__name__, piece.name
    elif isinstance(piece, ToolCallPart):
        arguments = json.dumps(piece.arguments, sort_keys=True)
        yield "call", number, fit_names([piece.name])[piece.name], arguments
        if piece.state != "complete":
            yield "call that was not whole", number
    else:
        parts = tuple(map(_as_said, piece.result)) if piece.is_content else ()
        for part in parts:
            if not isinstance(part, TextPart):
                yield from _media(part, f"in result {number}: ")
        layout = "".join(
            kind
            for kind, _ in groupby("t" if isinstance(part, TextPart) else "m" for part in parts)
        )
        if len(layout) > 1:
            yield "layout of result", number, layout
        text = "".join([part.text for part in parts if isinstance(part, TextPart)])
        value = _value(text if piece.is_content else piece.result)
        told = isinstance(value, dict) and set(value) == {"error"}
        value = value["error"] if told else value
        yield (
            "result",
            number,
            "".join(_TYPE.sub("[media]", value).split())
            if isinstance(value, str)
            else json.dumps(value, sort_keys=True),
        )
        if piece.is_error or told:
            yield "failed", number


def _as_said(piece: Any) -> Any:
    """A file of text says the same as the text that stands for it (decision 25), whatever its
    type."""
    return (
        TextPart(describe_as_text(piece))
        if isinstance(piece, DataPart) and read_media_text(piece) is not None
        else piece
    )


def _media(part: DataPart | LinkPart | FilePart, where: str) -> Iterator[tuple[Any, ...]]:
    if isinstance(part, DataPart):
        yield f"{where}data", part.mime_type, part.data
    else:
        yield f"{where}{type(part).__name__}", part.url if isinstance(part, LinkPart) else part.id
    if part.name:
        yield f"{where}name", part.name


def _value(result: Any) -> Any:
    """A result as JSON, whether it was told as such or as a text."""
    try:
        return (
            json.loads(result)
            if isinstance(result, str)
            else json.loads(msgspec.json.encode(result))
        )
    except ValueError:
        return result


def unexplained(
    before: Sequence[Message], after: Sequence[Message], losses: Sequence[Loss]
) -> list[str]:
    """What is missing in `after`, or new in it, and told by no loss; and what is told and not
    so."""
    was, is_ = facts(before), facts(after)
    # Some formats demand a name of a file, and make one up where it has none.
    made_up = {f for *_, f in is_ if f[0].endswith("name") and f[1] == "file.pdf"}
    made_up -= {f for *_, f in was}
    is_ = [each for each in is_ if each[2] not in made_up]
    kept = Counter(fact for _, _, fact in is_)
    missing: set[tuple[int, int | None]] = set()
    out: list[str] = []
    told = {(loss.message, loss.part) for loss in losses}
    for position, place, fact in was:
        if kept[fact]:
            kept[fact] -= 1
            continue
        missing |= {(position, place), (position, None)}
        if not {(position, place), (position, None)} & told:
            out.append(f"{fact} of [{position}][{place}] is missing and told by no loss")
    new = +kept
    if new and not losses:
        out.append(f"{list(new)} is new and told by no loss")
    moved = [fact for _, _, fact in was] != [fact for _, _, fact in is_]
    for loss in losses:
        so = moved if loss.what in ("order", "beginning") else (loss.message, loss.part) in missing
        so = so or _has_native(before[loss.message or 0], loss.part)
        if not so:
            out.append(f"{loss} is told, and nothing is missing there")
    if moved and not losses:
        out.append("the order is another and told by no loss")
    return out


def _has_native(message: Message, place: int | None) -> bool:
    """Whether a wire's own fields are there, which are no facts."""
    return (message if place is None else message.content[place]).native is not None
