"""A request ↔ the messages of system and user that it holds: parts that follow each other on one
side are one message."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields, text_or_json
from dragoman.codec.signature_check import name_part_type
from dragoman.formats.pydantic_ai.media import Sent, keep_whole, load_item
from dragoman.formats.pydantic_ai.notes import (
    OWN,
    apply_notes,
    format_time,
    note_as_read,
    note_difference,
    read_time,
    usual_result,
    whole,
    with_form,
)
from dragoman.formats.pydantic_ai.tools import RETURNS, apply_result_notes, dump_result, load_result
from dragoman.json_bytes import Json, JsonMap
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


def load_request(entry: JsonMap, parts: Sequence[JsonMap], before: str | None) -> list[Message]:
    """Returns the messages of a Pydantic AI request: its system texts, and what the user said.

    Args:
        entry: the request.
        parts: its parts.
        before: the instructions of the request before it.
    """
    times = [entry.get("timestamp"), *(part.get("timestamp") for part in parts)]
    created = next(filter(None, map(read_time, times)), None)
    sides = _load_sides(parts, created)
    instructions = if_text(entry.get(INSTRUCTIONS))
    is_same = bool(instructions) and instructions == before
    natives: list[Native] = [None] * len(sides)
    if instructions and not is_same:
        index = int(bool(sides) and sides[0][0] is Role.SYSTEM)
        sides.insert(index, (Role.SYSTEM, [TextPart(instructions)]))
        natives.insert(index, OWN.note(form={"place": INSTRUCTIONS}))
    if not parts:
        sides.append((Role.USER, []))
        natives.append(None)
    metadata = read_extra_fields(if_object(entry.get("metadata")), "thinking")
    written = _request_fields(created, metadata, instructions or None)
    _note_request(natives, entry, {"parts": parts, **written}, is_same=is_same)
    messages = [
        Message(role, tuple(content), created_at=created, native=native)
        for (role, content), native in zip(sides, natives, strict=True)
    ]
    messages[-1] = messages[-1].replace(metadata=metadata)
    return messages


def _note_request(
    natives: list[Native], entry: JsonMap, written: JsonMap, *, is_same: bool
) -> None:
    """Notes in the `native` of each message of a Pydantic AI request whether it begins the request
    or joins it. `is_same`: the instructions are those of the request before it."""
    last = len(natives) - 1
    form: Json = {"request": _JOINS if last else "begins"}
    if is_same:
        form[INSTRUCTIONS] = _SAME
    # The last message of a request carries what concerns all of it.
    natives[last] = note_difference(natives[last], entry, written, **form)
    for index in range(last):
        natives[index] = with_form(natives[index], request=_JOINS if index else "begins")


def _load_sides(
    parts: Sequence[JsonMap], created: datetime | None
) -> list[tuple[Role, list[Content]]]:
    """Returns the pieces of Pydantic AI parts, those beside each other of one role together. A mark
    stays with what it follows."""
    sides: list[tuple[Role, list[Content]]] = []
    for part in parts:
        if part["part_kind"] in _SYSTEM:
            role = Role.SYSTEM
        else:
            role = Role.USER
        pieces = _load_request_part(part, created)
        if sides and (sides[-1][0] is role or isinstance(pieces[0], MarkPart)):
            sides[-1][1].extend(pieces)
        else:
            sides.append((role, pieces))
    return sides


def is_begun(message: Message, group: Sequence[Message]) -> bool:
    """True if a message begins a Pydantic AI request, and is none of that which `group` began."""
    if not group:
        return True
    request_form = OWN.form(message.native).get("request")
    if request_form is not None:
        return request_form != _JOINS
    return not all(
        member.role is Role.SYSTEM and not OWN.is_ours(member.native) for member in group
    )


def dump_request(group: Sequence[Sent], before: str | None) -> Json:
    """Returns the Pydantic AI request of a group of messages. `before`: the instructions of the
    request before it."""
    parts: list[Json] = []
    instructions: str | None = None
    for outgoing in group:
        message = outgoing.message
        if instructions is None and _is_instructions(message):
            instructions = message.text
            for part_index, piece in enumerate(message.content):
                if not isinstance(piece, (TextPart, MarkPart)):
                    outgoing.misplaced(part_index, piece, "instructions are a text")
            continue
        if not message.content and len(group) > 1:
            outgoing.lose(
                None,
                Lost.message,
                "it says nothing, and is of one request with what stands beside it",
            )
        parts += _dump_request_parts(outgoing)
    last = group[-1].message
    if instructions is None and OWN.form(last.native).get(INSTRUCTIONS) == _SAME:
        instructions = before
    return {
        "parts": parts,
        **apply_notes(
            last.native, _request_fields(last.created_at, last.own_metadata, instructions)
        ),
    }


def _is_instructions(message: Message) -> bool:
    """True if a message was read from the instructions of a request, and still has a text."""
    return OWN.form(message.native).get("place") == INSTRUCTIONS and message.text != ""


def _request_fields(created: datetime | None, metadata: Json, instructions: str | None) -> Json:
    """Returns what is written for a Pydantic AI request beside its parts."""
    fields: Json = {}
    if instructions:
        fields = {INSTRUCTIONS: instructions}
    if created is not None:
        fields["timestamp"] = format_time(created)
    if metadata:
        fields["metadata"] = metadata
    return {**fields, "kind": "request"}


def _load_request_part(part: JsonMap, created: object) -> list[Content]:
    """Returns a part of a Pydantic AI request as pieces, one at least."""
    part_kind = part["part_kind"]
    if part_kind == "user-prompt" and (pieces := _load_prompt(part, created)) is not None:
        return pieces
    if RETURNS.get(part_kind) == "agent" and (result := load_result(part)) is not None:
        written = usual_result(result, part) or dump_result(
            result, Sent(Message(Role.USER), 0, [], {}), 0
        )
        return [note_as_read(result, part, {**written, **_time(created)})]
    if part_kind in _SYSTEM:
        field = "content"
    else:
        field = _TEXTS.get(part_kind)
    if field is not None and (piece := _load_text(part, field, created)) is not None:
        return [piece]
    return [
        keep_whole(
            MarkPart(part_kind) if part_kind in _FRAMEWORK else ProviderPart(part_kind), part
        )
    ]


def _load_text(part: JsonMap, field: str, created: object) -> Content | None:
    """Returns the text in a field of a Pydantic AI part, or a mark if it is empty; `None`: the
    field holds something else."""
    part_kind, value = part["part_kind"], part.get(field)
    if isinstance(value, list) and value:
        text = text_or_json(value)
    else:
        text = if_text(value)
    if text:
        piece = TextPart(text, OWN.note(form={"kind": part_kind}))
        return note_as_read(piece, part, _text_part(text, part_kind, created))
    if value in (None, ""):
        return keep_whole(MarkPart(part_kind), part)
    return None


def _load_prompt(part: JsonMap, created: object) -> list[Content] | None:
    """Returns the user prompt in a Pydantic AI request as pieces, or None if it is not of the
    documented shape."""
    content = part.get("content")
    if not isinstance(content, (str, list)):
        return None
    if not content:
        return [keep_whole(MarkPart("user-prompt"), part)]
    pieces = [
        load_item(item)
        for item in (cast("list[Any]", content) if isinstance(content, list) else [content])
    ]
    part_fields = (
        note_difference(
            None, read_extra_fields(part, "content"), {**_time(created), "part_kind": "user-prompt"}
        )
        or {}
    )
    form: Json = {"part": part_fields}
    if isinstance(content, list) and len(pieces) == 1:
        form["content"] = "list"
    first = msgspec.structs.replace(
        cast("Any", pieces[0]), native=with_form(pieces[0].native, **form)
    )
    return [
        first,
        *[
            msgspec.structs.replace(cast("Any", piece), native=with_form(piece.native, part=_JOINS))
            for piece in pieces[1:]
        ],
    ]


def _time(created: object) -> Json:
    if created is None:
        return {}
    return {"timestamp": format_time(created)}


def _text_part(text: str, part_kind: str, created: object) -> Json:
    """Returns a Pydantic AI part with a text in the field that its kind has for it, and a time."""
    if part_kind in ("instruction-delta", "compaction", "speech"):
        times = {}
    else:
        times = _time(created)
    return {_TEXTS.get(part_kind, "content"): text, **times, "part_kind": part_kind}


def _dump_request_parts(outgoing: Sent) -> list[Json]:
    """Returns a message of system or user as parts of a pydantic-ai request."""
    parts: list[Json] = []
    open_prompt: list[tuple[int, Content]] = []
    for part_index, piece in enumerate(outgoing.message.content):
        if _is_prompt(piece) and outgoing.message.role is Role.USER:
            begins = OWN.form(piece.native).get("part")
            if open_prompt and begins is not None and begins != _JOINS:
                parts.append(_dump_user_prompt(open_prompt, outgoing))
                open_prompt = []
            open_prompt.append((part_index, piece))
            continue
        part = _dump_request_part(piece, outgoing, part_index)
        if part is None:
            continue
        if open_prompt:
            parts.append(_dump_user_prompt(open_prompt, outgoing))
            open_prompt = []
        parts.append(part)
    if open_prompt:
        return [*parts, _dump_user_prompt(open_prompt, outgoing)]
    return parts


def _is_prompt(piece: Content) -> bool:
    """True if a piece is a Pydantic AI item of what the user said, and no part by itself."""
    form = OWN.form(piece.native)
    if isinstance(piece, (MarkPart, ProviderPart)):
        return "part" in form
    return isinstance(piece, (DataPart, LinkPart, FilePart)) or (
        isinstance(piece, TextPart) and form.get("kind") not in (*_SYSTEM, *_TEXTS)
    )


def _dump_user_prompt(pieces: Sequence[tuple[int, Content]], outgoing: Sent) -> Json:
    """Returns the Pydantic AI part for pieces that follow each other."""
    items: list[Any] = []
    for part_index, piece in pieces:
        kept_item = if_list(OWN.notes(piece.native).get("whole"))
        items.append(kept_item[0] if kept_item else outgoing.item(part_index, cast("Any", piece)))
    form = OWN.form(pieces[0][1].native)
    single = len(items) == 1 and isinstance(items[0], str) and form.get("content") != "list"
    written = {**_time(outgoing.message.created_at), "part_kind": "user-prompt"}
    return {
        "content": items[0] if single else items,
        **apply_notes(if_object(form.get("part")), written),
    }


def _dump_request_part(piece: Content, outgoing: Sent, part_index: int) -> Json | None:
    """Returns the part for a single piece, or None if the Pydantic AI format cannot hold it."""
    if (all_of_it := whole(piece.native)) is not None:
        return all_of_it
    created = outgoing.message.created_at
    if isinstance(piece, TextPart):
        return _dump_text(piece, outgoing.message)
    if (
        isinstance(piece, ToolResultPart)
        and piece.run_by != "provider"
        and outgoing.message.role is Role.USER
    ):
        return apply_result_notes(
            piece, {**dump_result(piece, outgoing, part_index), **_time(created)}
        )
    if isinstance(piece, (DataPart, LinkPart, FilePart)):
        text = outgoing.stand_in(part_index, piece, "a system prompt is a text")
        return _text_part(text, "system-prompt", created)
    if not isinstance(piece, MarkPart):
        outgoing.lose(
            part_index,
            name_part_type(piece),
            "a request holds what the system and the user say, and results",
            piece.kind if isinstance(piece, ProviderPart) else "",
        )
    return None


def _dump_text(piece: TextPart, message: Message) -> Json:
    """Returns the Pydantic AI part of a text, of the kind that it was read from."""
    part_kind = OWN.form(piece.native).get("kind")
    if part_kind not in (*_SYSTEM, *_TEXTS):
        if message.role is Role.SYSTEM:
            part_kind = "system-prompt"
        else:
            part_kind = "user-prompt"
    part = apply_notes(piece.native, _text_part(piece.text, part_kind, message.created_at))
    # The notes hold a content that was read as a list: it is out of date if the text was edited.
    listed = part.get("content")
    if isinstance(listed, list) and text_or_json(listed) != piece.text:
        return {**part, "content": piece.text}
    return part
