"""The law of formats: what a conversation says survives the way from one format through another and
back, or is a loss of the way there.

Two levels: what was *said* (facts) and *carriage* (ids, times, metadata …), which has a table of
its own in `support.carriage`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from dragoman import formats, wires
from dragoman.codec.fit_ids import fit_names
from dragoman.codec.media import describe_as_text, read_media_text
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.repair import repair

__all__ = ["Fact", "Hop", "broken", "facts", "hop", "missing", "unexplained"]

SEALS = ("signature", "thoughtSignature", "encrypted_content", "data")
"""Fields under which a provider signs, or hides, what its model thought."""


PLACEHOLDER = "file.pdf"
"""The name that some formats demand of a file, where it has none."""
HELD: Mapping[str, frozenset[str]] = {
    **{wire: frozenset([wire]) for wire in wires.names("model")},
    "openai_agents": frozenset(["openai_responses", "anthropic", "google"]),
    "pydantic_ai": frozenset(["openai_responses", "anthropic", "google"]),
    "sharegpt": frozenset(),
}
"""Format → wires whose own fields of a piece it is made to hold; all, where it is not here. Those
of others are told by `plan`."""


_TYPE = re.compile(r"\[media: [^\]]*\]")


Media = (DataPart, LinkPart, FilePart)


class Fact(NamedTuple):
    """Something that a conversation says."""

    message: int
    """Position of the message."""
    part: int | None
    """Place of the piece in its content."""
    says: tuple[Any, ...]
    """What it says; equal where two conversations say the same."""


class Hop(NamedTuple):
    """A conversation in a format."""

    before: list[Message]
    """As it was given, repaired."""
    payload: Any
    """As JSON."""
    after: list[Message]
    """As it is read from that."""
    losses: list[Loss]
    """What the dump told."""


def hop(messages: Sequence[Message], name: str) -> Hop:
    """A conversation, written in a format and read again."""
    format_, losses = formats.get(name), list[Loss]()
    before = repair(messages)
    payload = json.loads(msgspec.json.encode(format_.dump_messages(before, losses=losses)))
    after = format_.load_messages(payload)
    return Hop(before, payload, after, [*losses, *_of_others(before, name, losses)])


def _of_others(messages: Sequence[Message], name: str, losses: Sequence[Loss]) -> Iterator[Loss]:
    """What another format alone knows of a piece that is written, and this format does not hold: no
    dump tells it, as `plan` does."""
    noted = {(loss.message, loss.part) for loss in losses}
    for position, message in enumerate(messages):
        for part, piece in enumerate(message.content):
            fields = set(_foreign(piece, message, name))
            if fields and (position, part) not in noted:
                what = Lost.signature if fields & set(SEALS) else Lost.field
                if (
                    what is Lost.signature
                    and name not in wires.names("model")
                    and getattr(piece, "run_by", "") != "provider"
                ):
                    continue  # these formats tell it themselves
                yield Loss(
                    position, part, what, "the format has no place for what another alone knows"
                )


def _foreign(piece: Content, message: Message, name: str) -> Iterator[str]:
    """The fields of other formats of a piece that this one is not made to hold."""
    held = HELD.get(name)
    ran = getattr(piece, "run_by", "") == "provider"
    for owner, fields in (piece.native or {}).items():
        if held is not None and ":" not in owner and owner != name and (ran or owner not in held):
            yield from fields
        if (
            isinstance(piece, Media)
            and message.role is Role.MODEL
            and name != "dragoman"
            and not owner.startswith(name)
        ):
            yield "place"  # where the model's media stand in its own format is in the notes, which nobody else holds
    if isinstance(piece, ToolResultPart) and ran:  # it goes where its call goes
        for call in message.content:
            if isinstance(call, ToolCallPart) and call.id == piece.id:
                yield from _foreign(call, message, name)


def broken(messages: Sequence[Message], first: str, then: str) -> list[str]:
    """Where the law does not hold of a conversation of the first format that goes to another and
    comes back."""
    there = hop(messages, then)
    back = hop(there.after, first)
    return [
        *(
            f"{first} → {then}: {each}"
            for each in unexplained(there.before, there.after, there.losses)
        ),
        *(
            f"{first} → {then} → {first}: {each}"
            for each in missing(there.before, back.after, there.losses, back.losses)
        ),
    ]


def facts(messages: Sequence[Message]) -> list[Fact]:
    """Every fact. What is no fact: a link's media type, which is a hint; white space between the
    texts of a result; whether a file of text is one or stands there as text."""
    found: list[Fact] = []
    waiting: dict[str, list[str]] = {}
    before: Role | None = None
    for position, message in enumerate(messages):
        if message.role is Role.MODEL and before is not Role.MODEL:
            waiting = {}
        before = message.role
        if not message.content and message.role is not Role.SYSTEM:
            found.append(Fact(position, None, ("empty message", message.role.value)))
        for place, piece in enumerate(message.content):
            call = ""
            if isinstance(piece, ToolCallPart) and piece.run_by != "provider":
                call = _call(piece)
                waiting.setdefault(piece.id, []).append(call)
            elif isinstance(piece, ToolResultPart) and piece.run_by == "provider":
                names = [
                    one.name
                    for one in message.content
                    if isinstance(one, ToolCallPart) and one.id == piece.id
                ]
                call = next(iter(names), "of no call")
            elif isinstance(piece, ToolResultPart):
                queue = waiting.get(piece.id) or ["of no call"]
                call = queue.pop(0) if len(queue) > 1 else queue[0]
            found += [Fact(position, place, says) for says in _facts(piece, message.role, call)]
    return found


def _call(piece: ToolCallPart) -> str:
    return f"{fit_names([piece.name])[piece.name]} {json.dumps(piece.arguments, sort_keys=True)}"


def _facts(piece: Content, role: Role, call: str) -> Iterator[tuple[Any, ...]]:
    """What a piece says; `call`: the one that it is or answers."""
    if role is Role.MODEL:
        yield from _sealed(piece)
    piece = _as_text(piece)
    if isinstance(piece, TextPart):
        text = _TYPE.sub("[media]", piece.text)
        yield "text", role.value, text.rstrip() if text.startswith("[media]") else text
    elif isinstance(piece, Media):
        yield from _media(piece, role.value)
    elif isinstance(piece, ThinkingPart):
        yield "thinking", piece.text
    elif isinstance(piece, ProviderPart):
        yield "block", piece.kind
    elif isinstance(piece, MarkPart):
        return
    elif piece.run_by == "provider":
        yield (
            "run by the provider",
            type(piece).__name__,
            piece.name if isinstance(piece, ToolCallPart) else call,
        )
    elif isinstance(piece, ToolCallPart):
        yield "call", call
        if piece.state != "complete":
            yield "unfinished", call, piece.raw, piece.state
    else:
        yield from _result(piece, call)


def _sealed(piece: Content) -> Iterator[tuple[Any, ...]]:
    for wire, fields in (piece.native or {}).items():
        if ":" not in wire and isinstance(fields, Mapping):
            yield from (
                ("signed", wire, key, seal)
                for key in SEALS
                if isinstance(seal := fields.get(key), str) and seal
            )


def _result(piece: ToolResultPart, call: str) -> Iterator[tuple[Any, ...]]:
    parts = tuple(map(_as_text, piece.result)) if piece.is_content else ()
    for part in parts:
        if not isinstance(part, TextPart):
            yield from _media(part, f"in the result of {call}")
    layout = "".join(
        kind for kind, _ in groupby("t" if isinstance(part, TextPart) else "m" for part in parts)
    )
    if len(layout) > 1:
        yield "layout of the result", call, layout
    text = "".join([part.text for part in parts if isinstance(part, TextPart)])
    value = _value(text if piece.is_content else piece.result)
    failed = isinstance(value, dict) and set(value) == {"error"}
    value = value["error"] if failed else value
    if not piece.is_content or text:
        if isinstance(value, str):
            yield "result", call, "".join(_TYPE.sub("[media]", value).split())
        else:
            yield "result", call, json.dumps(value, sort_keys=True)
    else:
        yield "result", call, "files alone"
    if piece.is_error or failed:
        yield "failed", call


def _as_text(piece: Any) -> Any:
    """A file of text says the same as the text that stands for it, whatever its type."""
    return (
        TextPart(describe_as_text(piece).rstrip())
        if isinstance(piece, DataPart) and read_media_text(piece) is not None
        else piece
    )


def _media(part: DataPart | LinkPart | FilePart, where: str) -> Iterator[tuple[Any, ...]]:
    if isinstance(part, DataPart):
        yield "data", where, part.mime_type, part.data
    else:
        yield type(part).__name__, where, part.url if isinstance(part, LinkPart) else part.id
    if part.name:
        yield "name", where, part.name


def _value(result: Any) -> Any:
    """A result as JSON, whether it came as such or as a text."""
    try:
        return (
            json.loads(result)
            if isinstance(result, str)
            else json.loads(msgspec.json.encode(result))
        )
    except ValueError:
        return result


def missing(
    before: Sequence[Message],
    after: Sequence[Message],
    losses: Sequence[Loss],
    back: Sequence[Loss] = (),
) -> list[str]:
    """What is said before, not after, and no loss. `back`: the losses of the way back, where there
    is one. Of them count joined texts (messages of one side may be one now, and so may their texts
    be), and those of what the first format had in an odd form of its own."""
    was, is_ = facts(before), facts(after)
    kept = Counter(fact.says for fact in is_)
    noted = {(loss.message, loss.part) for loss in losses}
    joined = {loss.message for loss in losses if loss.what is Lost.texts}
    changed = {
        _call(piece)
        for position, message in enumerate(before)
        for part, piece in enumerate(message.content)
        if isinstance(piece, ToolCallPart) and (position, part) in noted
    }
    rejoined = any(loss.what is Lost.texts for loss in back)
    texts = ["".join(fact.says[-1].split()) for fact in is_ if fact.says[0] in ("text", "thinking")]
    out: list[str] = []
    for says, found in _by_fact(was).items():
        lost = [
            fact
            for fact in found
            if {(fact.message, fact.part), (fact.message, None)} & noted
            or (fact.says[0] in ("result", "failed") and fact.says[1] in changed)
            or (back and _is_odd(before[fact.message], fact.part))
            or ((rejoined or fact.message in joined) and _is_within(fact, texts))
        ]
        if len(lost) < len(found) - kept[says]:
            out.append(f"{says!r:.300} at {[fact[:2] for fact in found]} is missing and no loss")
    order = [fact.says for fact in was if not _is_made_up(fact.says)] != [
        fact.says for fact in is_ if not _is_made_up(fact.says)
    ]
    if order and not losses and not back and not out:
        out.append("the order is another and no loss")
    return out


def unexplained(
    before: Sequence[Message], after: Sequence[Message], losses: Sequence[Loss]
) -> list[str]:
    """As `missing`, and what is new and no loss, and what is a loss and not so."""
    out = missing(before, after, losses)
    was, is_ = facts(before), facts(after)
    kept = Counter(fact.says for fact in is_)
    new = {says for says in kept - Counter(fact.says for fact in was) if not _is_made_up(says)}
    if new and not losses:
        out.append(f"{list(new)!r:.300} is new and no loss")
    gone = {
        place
        for says, found in _by_fact(was).items()
        if kept[says] < len(found)
        for fact in found
        for place in ((fact.message, fact.part), (fact.message, None))
    }
    order = [fact.says for fact in was] != [fact.says for fact in is_]
    for loss in losses:
        so = (
            order
            if loss.what in ("order", "beginning", "texts")
            else (loss.message, loss.part) in gone
        )
        if not so and loss.what is not Lost.field and not _is_form(before, loss):
            out.append(f"{loss!r} is a loss, and nothing is missing there")
    return out


def _by_fact(found: Sequence[Fact]) -> dict[tuple[Any, ...], list[Fact]]:
    by_fact: dict[tuple[Any, ...], list[Fact]] = defaultdict(list)
    for fact in found:
        by_fact[fact.says].append(fact)
    return by_fact


def _is_odd(message: Message, part: int | None) -> bool:
    """Whether a format noted a form of its own, in which it took what it takes from nobody else."""
    pieces: list[Any] = [message, *([] if part is None else [message.content[part]])]
    pieces += [
        each
        for piece in pieces
        if isinstance(piece, ToolResultPart) and piece.is_content
        for each in piece.result
    ]
    return any(":" in owner for piece in pieces for owner in piece.native or ())


def _is_made_up(says: tuple[Any, ...]) -> bool:
    return says[0] == "name" and says[2] == PLACEHOLDER


def _is_within(fact: Fact, texts: Sequence[str]) -> bool:
    """Whether it is a text that is a part of another now."""
    return fact.says[0] in ("text", "thinking") and any(
        "".join(fact.says[-1].split()) in text for text in texts
    )


def _is_form(messages: Sequence[Message], loss: Loss) -> bool:
    """Whether it is of something that is no fact: a wire's own fields, a text of a result that
    stood in a list of parts."""
    if loss.message is None:
        return False
    message = messages[loss.message]
    piece = message if loss.part is None else message.content[loss.part]
    return piece.native is not None or (isinstance(piece, ToolResultPart) and piece.is_content)
