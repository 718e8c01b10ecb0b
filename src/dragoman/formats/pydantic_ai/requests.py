"""A request ↔ the messages of system and user that it holds: parts that follow each other on one side are one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text, rest, text_or_json
from dragoman.codec.replay import kind_of
from dragoman.formats.pydantic_ai.media import Sent, kept, load_item
from dragoman.formats.pydantic_ai.own import (
    OWN,
    applied,
    as_read,
    formed,
    noted_as,
    read_time,
    usual_result,
    whole,
    written_time,
)
from dragoman.formats.pydantic_ai.tools import RETURNS, applied_result, dump_result, load_result
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Native,
    ProviderPart,
    Role,
    TextPart,
    ToolResultPart,
)

__all__ = ["INSTRUCTIONS", "dump_request", "is_begun", "load_request"]

INSTRUCTIONS = "instructions"
_SAME = "same"
"""Wire form of a request: its instructions are those of the one before it."""
_JOINS = "joins"
_FRAMEWORK = (
    "tool-availability-delta",
    "capability-load-delta",
    "model-settings-delta",
    "instruction-baseline",
)
"""Parts by which the library remembers what it did; no model is told."""
_SYSTEM = ("system-prompt", "instruction-delta")
_TEXTS = {
    "retry-feedback": "content",
    "retry-prompt": "content",
    "compaction": "content",
    "speech": "transcript",
}
"""Kind of a part of the user's that is one text → the field that holds it."""


def load_request(
    entry: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], before: str | None
) -> list[Message]:
    """A request → its messages. `before`: the instructions of the request before it."""
    time = entry.get("timestamp")
    times = [part["timestamp"] for part in parts if part.get("timestamp")]
    created = read_time(time) or next(filter(None, map(read_time, times)), None)
    sides: list[tuple[Role, list[Content]]] = []
    for part in parts:
        role = Role.SYSTEM if part["part_kind"] in _SYSTEM else Role.USER
        pieces = _load(part, created)
        if sides and (sides[-1][0] is role or isinstance(pieces[0], MarkPart)):
            sides[-1][1].extend(pieces)
        else:
            sides.append((role, pieces))
    instructions = if_text(entry.get(INSTRUCTIONS))
    is_same = bool(instructions) and instructions == before
    natives: list[Native] = [None] * len(sides)
    if instructions and not is_same:
        place = int(bool(sides) and sides[0][0] is Role.SYSTEM)
        sides.insert(place, (Role.SYSTEM, [TextPart(instructions)]))
        natives.insert(place, OWN.note(form={"place": INSTRUCTIONS}))
    if not parts:
        sides.append((Role.USER, []))
        natives.append(None)
    metadata = {
        key: value for key, value in if_object(entry.get("metadata")).items() if key != "thinking"
    }
    made = _made(created, metadata, instructions or None)
    last = len(sides) - 1
    form = {"request": _JOINS if last else "begins", **({INSTRUCTIONS: _SAME} if is_same else {})}
    natives[last] = noted_as(natives[last], entry, {"parts": parts, **made}, **form)
    return [
        Message(
            role,
            tuple(content),
            created_at=created,
            metadata=metadata if at == last else {},
            native=natives[at]
            if at == last
            else formed(natives[at], request=_JOINS if at else "begins"),
        )
        for at, (role, content) in enumerate(sides)
    ]


def is_begun(message: Message, group: Sequence[Message]) -> bool:
    """Whether a message begins a request, and is none of that which `group` began."""
    if not group:
        return True
    place = OWN.form(message.native).get("request")
    if place is not None:
        return place != _JOINS
    return not all(each.role is Role.SYSTEM and not OWN.is_ours(each.native) for each in group)


def dump_request(group: Sequence[Sent], before: str | None) -> dict[str, Any]:
    """The messages of a request → the request. `before`: the instructions of the one before it."""
    parts: list[dict[str, Any]] = []
    instructions: str | None = None
    for sent in group:
        message = sent.message
        if (
            instructions is None
            and OWN.form(message.native).get("place") == INSTRUCTIONS
            and message.text
        ):
            instructions = message.text
            for place, piece in enumerate(message.content):
                if not isinstance(piece, (TextPart, MarkPart)):
                    sent.misplaced(place, piece, "instructions are a text")
            continue
        if not message.content and len(group) > 1:
            sent.lose(
                None,
                Lost.message,
                "it says nothing, and is of one request with what stands beside it",
            )
        parts += _dump(sent)
    last = group[-1].message
    if instructions is None and OWN.form(last.native).get(INSTRUCTIONS) == _SAME:
        instructions = before
    return {
        "parts": parts,
        **applied(last.native, _made(last.created_at, last.own_metadata, instructions)),
    }


def _made(
    created: datetime | None, metadata: dict[str, Any], instructions: str | None
) -> dict[str, Any]:
    """What is written for a request beside its parts."""
    fields: dict[str, Any] = {INSTRUCTIONS: instructions} if instructions else {}
    if created is not None:
        fields["timestamp"] = written_time(created)
    if metadata:
        fields["metadata"] = metadata
    return {**fields, "kind": "request"}


def _load(part: Mapping[str, Any], created: Any) -> list[Content]:
    """A part → its pieces, one at least."""
    kind = part["part_kind"]
    if kind == "user-prompt" and (pieces := _load_prompt(part, created)) is not None:
        return pieces
    if RETURNS.get(kind) == "agent" and (result := load_result(part)) is not None:
        made = usual_result(result, part) or dump_result(
            result, Sent(Message(Role.USER), 0, [], {}), 0
        )
        return [as_read(result, part, {**made, **_time(created)})]
    field = "content" if kind in _SYSTEM else _TEXTS.get(kind)
    if field is not None:
        value = part.get(field)
        text = (
            value
            if isinstance(value, str)
            else text_or_json(value)
            if isinstance(value, list) and value
            else ""
        )
        if text:
            return [
                as_read(
                    TextPart(text, OWN.note(form={"kind": kind})),
                    part,
                    _text_part(text, kind, created),
                )
            ]
        if value in (None, ""):
            return [kept(MarkPart(kind), part)]
    return [kept(MarkPart(kind) if kind in _FRAMEWORK else ProviderPart(kind), part)]


def _load_prompt(part: Mapping[str, Any], created: Any) -> list[Content] | None:
    """What the user said → its pieces; `None`: it is not of the documented shape."""
    content = part.get("content")
    if not isinstance(content, (str, list)):
        return None
    if not content:
        return [kept(MarkPart("user-prompt"), part)]
    pieces = [
        load_item(item)
        for item in (cast("list[Any]", content) if isinstance(content, list) else [content])
    ]
    own = (
        noted_as(None, rest(part, "content"), {**_time(created), "part_kind": "user-prompt"}) or {}
    )
    form: dict[str, Any] = {"part": own}
    if isinstance(content, list) and len(pieces) == 1:
        form["content"] = "list"
    first = msgspec.structs.replace(cast("Any", pieces[0]), native=formed(pieces[0].native, **form))
    return [
        first,
        *[
            msgspec.structs.replace(cast("Any", each), native=formed(each.native, part=_JOINS))
            for each in pieces[1:]
        ],
    ]


def _time(created: Any) -> dict[str, Any]:
    return {} if created is None else {"timestamp": written_time(created)}


def _text_part(text: str, kind: str, created: Any) -> dict[str, Any]:
    times = {} if kind in ("instruction-delta", "compaction", "speech") else _time(created)
    return {_TEXTS.get(kind, "content"): text, **times, "part_kind": kind}


def _dump(sent: Sent) -> list[dict[str, Any]]:
    """The parts of a message."""
    parts: list[dict[str, Any]] = []
    open_prompt: list[tuple[int, Content]] = []
    for place, piece in enumerate(sent.message.content):
        if _is_prompt(piece) and sent.message.role is Role.USER:
            begins = OWN.form(piece.native).get("part")
            if open_prompt and begins is not None and begins != _JOINS:
                parts.append(_prompt(open_prompt, sent))
                open_prompt = []
            open_prompt.append((place, piece))
            continue
        part = _part(piece, sent, place)
        if part is None:
            continue
        if open_prompt:
            parts.append(_prompt(open_prompt, sent))
            open_prompt = []
        parts.append(part)
    return [*parts, _prompt(open_prompt, sent)] if open_prompt else parts


def _is_prompt(piece: Content) -> bool:
    """Whether a piece is an item of what the user said, and no part by itself."""
    form = OWN.form(piece.native)
    if isinstance(piece, (MarkPart, ProviderPart)):
        return "part" in form
    return isinstance(piece, (DataPart, LinkPart, FilePart)) or (
        isinstance(piece, TextPart) and form.get("kind") not in (*_SYSTEM, *_TEXTS)
    )


def _prompt(pieces: Sequence[tuple[int, Content]], sent: Sent) -> dict[str, Any]:
    """Pieces that follow each other → the part that says them."""
    items: list[Any] = []
    for place, piece in pieces:
        kept_item = if_list(OWN.notes(piece.native).get("whole"))
        items.append(kept_item[0] if kept_item else sent.item(place, cast("Any", piece)))
    form = OWN.form(pieces[0][1].native)
    single = len(items) == 1 and isinstance(items[0], str) and form.get("content") != "list"
    made = {**_time(sent.message.created_at), "part_kind": "user-prompt"}
    return {"content": items[0] if single else items, **applied(if_object(form.get("part")), made)}


def _part(piece: Content, sent: Sent, place: int) -> dict[str, Any] | None:
    """A piece that is a part by itself → the part; `None`: it cannot be held."""
    if (all_of_it := whole(piece.native)) is not None:
        return all_of_it
    created = sent.message.created_at
    if isinstance(piece, TextPart):
        kind = OWN.form(piece.native).get("kind")
        usual = "system-prompt" if sent.message.role is Role.SYSTEM else "user-prompt"
        kind = kind if kind in (*_SYSTEM, *_TEXTS) else usual
        part = applied(piece.native, _text_part(piece.text, kind, created))
        listed = part.get("content")
        return (
            {**part, "content": piece.text}
            if isinstance(listed, list) and text_or_json(listed) != piece.text
            else part
        )
    if (
        isinstance(piece, ToolResultPart)
        and piece.run_by != "provider"
        and sent.message.role is Role.USER
    ):
        return applied_result(piece, {**dump_result(piece, sent, place), **_time(created)})
    if isinstance(piece, (DataPart, LinkPart, FilePart)):
        text = sent.stand_in(place, piece, "a system prompt is a text")
        return _text_part(text, "system-prompt", created)
    if not isinstance(piece, MarkPart):
        sent.lose(
            place,
            kind_of(piece),
            "a request holds what the system and the user say, and results",
            piece.kind if isinstance(piece, ProviderPart) else "",
        )
    return None
