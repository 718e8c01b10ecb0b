"""Texts and thinking: parts of every dialect ↔ pieces.

Thinking differs most. UI messages and model messages have a part for each piece, and for an item of
OpenAI's a part for each of its summaries, which are one piece. In ai 4 and in Mastra's rows one
part has a list of `details`, each of which is a piece; in ai 4 and its model messages what
Anthropic signed is outside of the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import drop_empty, if_list, if_object, pick, read_extra_fields
from dragoman.codec.native import WireNative
from dragoman.message import Native, TextPart, ThinkingPart
from dragoman.wires.ai_sdk_messages.notes import (
    CORE,
    NAME,
    OWN,
    ROW,
    UI,
    Fields,
    Part,
    Parts,
    flags,
    join_native,
    present,
    restore,
    text_in,
)
from dragoman.wires.ai_sdk_messages.provider_metadata import (
    ANTHROPIC,
    REDACTED,
    RESPONSES,
    metadata_of,
    provider_in,
)
from dragoman.wires.ai_sdk_messages.read_parts import (
    MessageDialect,
    Reading,
    finish,
    load_mark,
    text_field,
)
from dragoman.wires.openai_responses.content import BETWEEN, split_joined

__all__ = [
    "dump_details",
    "dump_reasoning",
    "dump_text",
    "load_details",
    "load_reasoning",
    "load_redacted",
    "load_row_details",
    "load_text",
]

_UNMARKED_THOUGHT = WireNative("google").note(form={"thought": "absent"}) or {}
"""Native field of thinking that Gemini sent as an empty text with a signature."""
_TEXT_KEYS = frozenset(["type", "text", "signature"])


def load_text(part: Part, reading: Reading, where: str) -> None:
    """Reads an AI SDK text part. An empty one is thinking if Gemini signed it, else a mark."""
    text, dialect = part.get("text"), reading.dialect
    if text and type(text) is str and _is_bare(part, reading):
        reading.add(TextPart(text))
    elif text_field(part, "text", where):
        reading.opens()
        write = partial(dump_text, is_model=reading.is_model)
        reading.take(TextPart(part["text"]), part, write, "text")
    elif dialect.signs_empty_texts and _has_signature(part, dialect):
        reading.opens()
        form = {"text": "empty"}
        reading.take(
            ThinkingPart(""), part, _dump_signed_text, "text", form=form, extra=_UNMARKED_THOUGHT
        )
    else:
        load_mark(part, reading, where)


def _is_bare(part: Part, reading: Reading) -> bool:
    """True if an AI SDK text has only the fields that every text has."""
    if reading.is_model and reading.dialect.done:
        return len(part) == 3 and part.get("state") == "done"
    return len(part) == 2


def _has_signature(part: Part, dialect: MessageDialect) -> bool:
    """True if a part has a signature of Gemini's."""
    metadata = if_object(if_object(part.get(dialect.metadata)).get("google"))
    return isinstance(metadata.get("thoughtSignature"), str)


def dump_text(piece: TextPart, dialect: MessageDialect, is_model: bool) -> Part:
    """Returns the AI SDK part of a text. The inverse of `load_text`."""
    part: Part = {"type": "text", "text": piece.text}
    if is_model:
        part |= dialect.done
    if piece.native is None:
        return part
    return finish(part, piece, "text", dialect, shared=dialect.shared_text)


def _dump_signed_text(piece: ThinkingPart, dialect: MessageDialect) -> Part:
    """Returns the empty AI SDK text part that holds a signature of Gemini's."""
    return finish(
        {
            "type": "text",
            "text": "",
            **dialect.done,
        },
        piece,
        "text",
        dialect,
    )


def _is_signed_text(piece: ThinkingPart) -> bool:
    """True for thinking that Gemini sent as an empty text."""
    return OWN.form(piece.native).get("text") == "empty" and not piece.text


def load_reasoning(part: Part, reading: Reading, where: str) -> None:
    """Reads an AI SDK reasoning part as thinking. Adjacent parts of one OpenAI item become one
    piece."""
    text = text_field(part, "text", where)
    dialect = reading.dialect
    reading.opens()
    signature = None
    if reading.is_model and dialect.name == UI:
        signature = _only_signature(part)
    if signature is not None:
        reading.provider = reading.provider or ANTHROPIC
        reading.pieces.append(ThinkingPart(text, {ANTHROPIC: {"signature": signature}}))
        return
    extra: Fields = {}
    if dialect.name == CORE:
        extra = _load_signature(part, reading)
    piece = reading.read(ThinkingPart(text), part, _first_part, "reasoning", extra=extra)
    before = None
    if reading.pieces:
        before = reading.pieces[-1]
    joined = None
    if isinstance(before, ThinkingPart):
        joined = _join_summaries(before, piece)
    if joined is None:
        reading.add(piece)
    else:
        reading.pieces[-1] = joined


def _load_signature(part: Part, reading: Reading) -> Fields:
    """Returns the native field of a part's own signature. In AI SDK 4 only Anthropic signs."""
    signature = text_in(part, "signature")
    if signature is None:
        return {}
    reading.provider = reading.provider or ANTHROPIC
    return {ANTHROPIC: {"signature": signature}}


def load_redacted(part: Part, reading: Reading, where: str) -> None:
    """Reads thinking that Anthropic hid, from a model message of AI SDK 4."""
    extra = {ANTHROPIC: {"type": REDACTED, "data": text_field(part, "data", where)}}
    reading.provider = reading.provider or ANTHROPIC
    reading.take(ThinkingPart(""), part, _first_part, "reasoning", extra=extra)


def dump_reasoning(pieces: Sequence[ThinkingPart], dialect: MessageDialect) -> Parts:
    """Returns the parts of thinking. The inverse of `load_reasoning`."""
    return [part for piece in pieces for part in _reasoning_parts(piece, dialect)]


def _reasoning_parts(piece: ThinkingPart, dialect: MessageDialect) -> Parts:
    """Returns the AI SDK part of one thinking, or one for each summary of an OpenAI item."""
    if _is_signed_text(piece):
        return [_dump_signed_text(piece, dialect)]
    if dialect.name == CORE and (signed := _signature_fields(piece)):
        part = {"type": "reasoning", "text": piece.text, **signed}
        if "data" in signed:
            part = {"type": "redacted-reasoning", **signed}
        return [_finish_unsigned(part, piece, dialect)]
    first, *other_parts = _summary_parts(piece, dialect)
    return [restore(piece.native, first, dialect.name), *other_parts]


def _summary_parts(piece: ThinkingPart, dialect: MessageDialect) -> Parts:
    """Returns an AI SDK part for each summary of one thinking, with its metadata."""
    metadata = metadata_of("reasoning", piece.native)
    texts, encrypted = _split_summaries(piece)
    item = "azure" if "azure" in metadata else "openai"
    parts: Parts = []
    for number, text in enumerate(texts):
        part: Part = {"type": "reasoning", "text": text, **dialect.done}
        # Every part names its item; what is said once stands with the first.
        part_metadata = metadata
        if number:
            part_metadata = pick(metadata, [item])
        if encrypted:
            content = {**metadata[item], "reasoningEncryptedContent": encrypted[number]}
            part_metadata = {**part_metadata, item: content}
        if metadata:
            part[dialect.metadata] = part_metadata
        parts.append(part)
    return parts


def _first_part(piece: ThinkingPart, dialect: MessageDialect) -> Part:
    """Returns the first part of one thinking."""
    return _reasoning_parts(piece, dialect)[0]


def _only_signature(part: Part) -> str | None:
    """Returns for an AI SDK reasoning part the signature of thinking with Anthropic's signature and
    nothing else, or None."""
    if len(part) != 4 or part.get("state") != "done":
        return None
    metadata = if_object(part.get("providerMetadata"))
    fields = if_object(metadata.get(ANTHROPIC))
    is_alone = len(metadata) == len(fields) == 1
    if is_alone:
        return text_in(fields, "signature")
    return None


def _split_summaries(piece: ThinkingPart) -> tuple[list[str], list[Any]]:
    """Returns the texts of the AI SDK reasoning parts of one thinking, and their encrypted contents
    if these differ."""
    whole: tuple[list[str], list[Any]] = [piece.text], []
    if not piece.native:
        return whole
    lengths = if_list(if_object(RESPONSES.form(piece.native).get("pieces")).get("summary"))
    if len(lengths) < 2 or not isinstance(RESPONSES.fields(piece.native).get("id"), str):
        return whole
    texts = split_joined(piece.text, [length for length in lengths if type(length) is int])
    if texts is None or len(texts) != len(lengths):
        return whole
    encrypted = if_list(OWN.notes(piece.native).get("encrypted"))
    return texts, encrypted if len(encrypted) == len(texts) else []


def _join_summaries(before: ThinkingPart, piece: ThinkingPart) -> ThinkingPart | None:
    """Returns two AI SDK reasoning parts of one OpenAI item as one piece, or None if they are not
    of one item."""
    if not (_is_item(before.native) and _is_item(piece.native)):
        return None
    # An empty summary would vanish between two others, and with it the number of the parts.
    if not before.text or not piece.text:
        return None
    first, second = RESPONSES.fields(before.native), RESPONSES.fields(piece.native)
    if first.get("id") != second.get("id"):
        return None
    texts, contents = _split_summaries(before)
    if not contents:
        contents = [first.get("encrypted_content")] * len(texts)
    contents = [*contents, second.get("encrypted_content")]
    last = next(filter(None, reversed(contents)), None)
    fields = present(id=first["id"], encrypted_content=last)
    lengths = [*map(len, texts), len(piece.text)]
    native = RESPONSES.note(fields, {"pieces": {"summary": lengths}})
    if any(content != last for content in contents):
        native = join_native(native, OWN.note(encrypted=contents))
    return ThinkingPart(BETWEEN.join([before.text, piece.text]), native)


def _is_item(native: Native) -> bool:
    """True if AI SDK thinking is of an OpenAI item, without a note of its form."""
    if not native or "openai_responses" not in native or NAME in native:
        return False
    return not OWN.form(native) and not OWN.notes(native).get("left")


# details: ai 4 and Mastra's rows


def load_details(part: Part, reading: Reading, where: str) -> None:
    """Reads thinking of a UI message of AI SDK 4: a piece for each detail."""
    text = text_field(part, "reasoning", where)
    reading.opens()
    pieces = _details_of(part) or [ThinkingPart(text)]
    other_pieces = [_with_form(piece, {"goes_on": True}) for piece in pieces[1:]]
    _add_details(part, reading, [pieces[0], *other_pieces], {})
    if reading.is_model:
        reading.provider = reading.provider or provider_in(part)


def load_row_details(part: Part, reading: Reading, where: str) -> None:
    """Reads thinking of a Mastra row. An unknown shape becomes a mark."""
    pieces = _row_details_of(part, reading.dialect)
    if pieces is None:
        load_mark(part, reading, where)
        return
    reading.opens()
    if reading.is_model and any(piece.native for piece in pieces):
        reading.provider = reading.provider or ANTHROPIC
    # The first piece has the part's note: how many pieces are of it. The others are marked as
    # details.
    first, *other_pieces = pieces
    form = flags(signed=first.native is not None)
    if other_pieces:
        form["details"] = len(pieces)
    other_pieces = [
        _with_form(piece, flags(signed=piece.native is not None, detail=True))
        for piece in other_pieces
    ]
    _add_details(part, reading, [first, *other_pieces], form)


def _row_details_of(part: Part, dialect: MessageDialect) -> list[ThinkingPart] | None:
    """Returns a piece for each detail, or None if the AI SDK part says nothing or has an unknown
    shape."""
    text = part.get("reasoning", "")
    pieces = _details_of(part)
    if pieces is None or not isinstance(text, str):
        return None
    is_signed = bool(pieces) and pieces[0].native is not None
    if is_signed or any(piece.text for piece in pieces):
        return pieces
    if not text and dialect.metadata not in part:
        return None
    if len(pieces) > 1:
        return pieces
    return [ThinkingPart(text)]


def _add_details(
    part: Part, reading: Reading, pieces: Sequence[ThinkingPart], form: Fields
) -> None:
    """Adds the pieces of an AI SDK part. The first has the notes of the part."""
    first, *other_pieces = pieces
    write = partial(_details_part, other_pieces=other_pieces)
    piece, extra = ThinkingPart(first.text), first.native or {}
    reading.take(piece, part, write, "reasoning", form=form, extra=extra)
    for piece in other_pieces:
        reading.add(piece)


def _details_of(part: Part) -> list[ThinkingPart] | None:
    """Returns a piece of thinking for each of the AI SDK's reasoning details, or None if one has an
    unknown shape."""
    pieces = [_load_detail(if_object(detail)) for detail in if_list(part.get("details"))]
    if None in pieces:
        return None
    return cast("list[ThinkingPart]", pieces)


def _load_detail(detail: Part) -> ThinkingPart | None:
    """Returns the thinking in one of the AI SDK's reasoning details, or None if its shape is
    unknown."""
    type_, text, data = detail.get("type"), detail.get("text"), detail.get("data")
    signature = detail.get("signature", "")
    if type_ == "redacted" and isinstance(data, str) and len(detail) == 2:
        return ThinkingPart("", {ANTHROPIC: {"type": REDACTED, "data": data}})
    if type_ != "text" or not isinstance(text, str) or not detail.keys() <= _TEXT_KEYS:
        return None
    if not isinstance(signature, str):
        return None
    if "signature" not in detail:
        return ThinkingPart(text)
    return ThinkingPart(text, {ANTHROPIC: {"signature": signature}})


def dump_details(pieces: Sequence[ThinkingPart], dialect: MessageDialect) -> Parts:
    """Returns the parts of thinking as ai 4 and Mastra's rows write it. The inverse of
    `load_details`."""
    return [
        _dump_signed_text(group[0], dialect)
        if _is_signed_text(group[0])
        else _details_part(group[0], dialect, group[1:])
        for group in group_details(pieces, dialect)
    ]


def group_details(
    pieces: Sequence[ThinkingPart], dialect: MessageDialect
) -> list[list[ThinkingPart]]:
    """Returns adjacent thinking, grouped by the AI SDK part that it becomes."""
    groups: list[list[ThinkingPart]] = []
    for piece in pieces:
        if groups and _is_from_same_part(piece, groups[-1], dialect):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups


def _is_from_same_part(
    piece: ThinkingPart, group: Sequence[ThinkingPart], dialect: MessageDialect
) -> bool:
    """True if a piece goes into the same part as the group before it, since both were read from one
    part. Its loader notes that: as `detail` in a Mastra row, as `goes_on` in the other dialects."""
    form = OWN.form(piece.native)
    if dialect.name != ROW:
        return form.get("goes_on") is True
    # The first piece notes how many details the part had. A piece beyond that number belongs to
    # another part.
    count = OWN.form(group[0].native).get("details")
    return form.get("detail") is True and type(count) is int and len(group) < count


def _details_part(
    first: ThinkingPart, dialect: MessageDialect, other_pieces: Sequence[ThinkingPart] = ()
) -> Part:
    """Returns the AI SDK part of thinking with a detail for each piece."""
    details = [_dump_detail(piece, dialect) for piece in (first, *other_pieces)]
    text = "".join([first.text, *[piece.text for piece in other_pieces]])
    part: Part = {"type": "reasoning", "reasoning": text, "details": details}
    if details[0].keys() & {"signature", "data"}:
        return _finish_unsigned(part, first, dialect)
    return finish(part, first, "reasoning", dialect)


def _dump_detail(piece: ThinkingPart, dialect: MessageDialect) -> Part:
    """Returns a piece of thinking as an element of the AI SDK's reasoning `details`."""
    # A row signs in its details only what it was read with: what other formats signed is metadata
    # there.
    is_signed = dialect.name != ROW or OWN.form(piece.native).get("signed")
    signed = _signature_fields(piece) if is_signed else {}
    if "data" in signed:
        return {"type": "redacted", **signed}
    return {"type": "text", "text": piece.text, **signed}


def _signature_fields(piece: ThinkingPart) -> Part:
    """Returns what Anthropic signed or hid, as AI SDK 4 writes it outside of the metadata."""
    fields = if_object((piece.native or {}).get(ANTHROPIC))
    if fields.get("type") == REDACTED and isinstance(fields.get("data"), str):
        return {"data": fields["data"]}
    return present(signature=text_in(fields, "signature"))


def _finish_unsigned(part: Part, piece: ThinkingPart, dialect: MessageDialect) -> Part:
    """Returns an AI SDK part as `finish` does, but without Anthropic's signature in the
    metadata."""
    metadata = metadata_of("reasoning", piece.native)
    if ANTHROPIC in metadata:
        other_fields = read_extra_fields(
            if_object(metadata.pop(ANTHROPIC)), "signature", "redactedData"
        )
        metadata |= drop_empty({ANTHROPIC: other_fields})
    if metadata:
        part[dialect.metadata] = metadata
    return restore(piece.native, part, dialect.name)


def _with_form(piece: ThinkingPart, form: Fields) -> ThinkingPart:
    """Returns a piece with a note of its form."""
    return msgspec.structs.replace(piece, native=join_native(piece.native, OWN.note(form=form)))
