"""A request ↔ the messages of system and user that it holds: parts that follow each other on one side are one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text, rest, text_or_json
from dragoman.codec.replay import kind_of
from dragoman.formats.pydantic_ai.media import kept, load_item
from dragoman.formats.pydantic_ai.outgoing import Sent
from dragoman.formats.pydantic_ai.own import OWN, applied, as_read, noted_as, read_time, whole, written_time
from dragoman.formats.pydantic_ai.tools import RETURNS, applied_result, dump_result, load_result
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
    ToolResultPart,
)

__all__ = ["INSTRUCTIONS", "dump_request", "is_begun", "load_request"]

INSTRUCTIONS = "instructions"
_SAME = "same"
"""Wire form of a request: its instructions are those of the one before it."""
_JOINS = "joins"
_FRAMEWORK = ("tool-availability-delta", "capability-load-delta", "model-settings-delta", "instruction-baseline")
"""Parts by which the library remembers what it did; no model is told."""
_SYSTEM = ("system-prompt", "instruction-delta")
_TEXTS = {"retry-feedback": "content", "retry-prompt": "content", "compaction": "content", "speech": "transcript"}
"""Kind of a part of the user's that is one text → the field that holds it."""


def load_request(entry: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], before: str | None) -> list[Message]:
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
    messages = [Message(role, tuple(content), created_at=created) for role, content in sides]
    instructions = if_text(entry.get(INSTRUCTIONS))
    if instructions and instructions != before:
        place = int(bool(messages) and messages[0].role is Role.SYSTEM)
        native = OWN.note(form={"place": INSTRUCTIONS})
        messages.insert(place, Message(Role.SYSTEM, (TextPart(instructions),), created_at=created, native=native))
    if not messages or (
        messages[-1].role is Role.SYSTEM
        and instructions
        and instructions != before
        and len(messages) == 1
        and not parts
    ):
        messages.append(Message(Role.USER, created_at=created))
    metadata = {key: value for key, value in if_object(entry.get("metadata")).items() if key != "thinking"}
    last = messages[-1].replace(metadata=metadata)
    form = {INSTRUCTIONS: _SAME} if instructions and instructions == before else {}
    made = _made(last, instructions or None)
    messages[-1] = last.replace(native=noted_as(last.native, rest(entry, "parts"), made, **form))
    return [
        message.replace(native=noted_as(message.native, {}, {}, request=_JOINS if at else "begins"))
        for at, message in enumerate(messages)
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
        if instructions is None and OWN.form(message.native).get("place") == INSTRUCTIONS and message.text:
            instructions = message.text
            for place, piece in enumerate(message.content):
                if not isinstance(piece, (TextPart, MarkPart)):
                    sent.misplaced(place, piece, "instructions are a text")
            continue
        parts += _dump(sent)
    last = group[-1].message
    if instructions is None and OWN.form(last.native).get(INSTRUCTIONS) == _SAME:
        instructions = before
    return {"parts": parts, **applied(last.native, _made(last, instructions))}


def _made(message: Message, instructions: str | None) -> dict[str, Any]:
    """What is written for a request beside its parts."""
    fields: dict[str, Any] = {INSTRUCTIONS: instructions} if instructions else {}
    if message.created_at is not None:
        fields["timestamp"] = written_time(message.created_at)
    if message.own_metadata:
        fields["metadata"] = message.own_metadata
    return {**fields, "kind": "request"}


def _load(part: Mapping[str, Any], created: Any) -> list[Content]:
    """A part → its pieces, one at least."""
    kind = part["part_kind"]
    if kind == "user-prompt" and (pieces := _load_prompt(part, created)) is not None:
        return pieces
    if kind in RETURNS and (result := load_result(part)) is not None:
        made = dump_result(result, Sent(Message(Role.USER), 0, [], {}), 0)
        return [as_read(result, part, {**made, **_time(created)})]
    field = "content" if kind in _SYSTEM else _TEXTS.get(kind)
    if field is not None:
        value = part.get(field)
        text = value if isinstance(value, str) else text_or_json(value) if isinstance(value, list) and value else ""
        if text:
            return [as_read(TextPart(text, OWN.note(form={"kind": kind})), part, _text_part(text, kind, created))]
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
    pieces = [load_item(item) for item in (cast("list[Any]", content) if isinstance(content, list) else [content])]
    own = noted_as(None, rest(part, "content"), {**_time(created), "part_kind": "user-prompt"}) or {}
    form: dict[str, Any] = {"part": own}
    if isinstance(content, list) and len(pieces) == 1:
        form["content"] = "list"
    first = msgspec.structs.replace(cast("Any", pieces[0]), native=_formed(pieces[0], **form))
    return [
        first,
        *[msgspec.structs.replace(cast("Any", each), native=_formed(each, part=_JOINS)) for each in pieces[1:]],
    ]


def _formed(piece: Content, **form: Any) -> dict[str, Any]:
    return {**(piece.native or {}), **(OWN.with_form(piece.native, **form) or {})}


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
        if _is_said(piece) and sent.message.role is Role.USER:
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


def _is_said(piece: Content) -> bool:
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
            {**part, "content": piece.text} if isinstance(listed, list) and text_or_json(listed) != piece.text else part
        )
    if isinstance(piece, ToolResultPart) and piece.run_by != "provider" and sent.message.role is Role.USER:
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
