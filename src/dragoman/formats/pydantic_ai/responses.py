"""A response ↔ the model's message.

Reading goes group by group: the parts of one reasoning item form a group, any other part its own.
A loader from `_LOADERS` makes a piece of it. Then `_load_noted` writes that piece as `_dump_response_parts`
would, and notes on it how the original differs, so that writing gives the same parts again. A
part that no loader can read is kept whole.

Writing is the reverse: `_parts` makes the parts of a piece, `_add_noted` applies the notes, and
what a response cannot hold is recorded as a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.codec.native import read_signatures
from dragoman.formats.pydantic_ai.media import Sent, dump_binary, keep_whole, load_binary
from dragoman.formats.pydantic_ai.notes import (
    NAME,
    OWN,
    apply_notes,
    format_time,
    note_as_read,
    note_difference,
    read_time,
    usual_part,
    usual_text,
    whole,
)
from dragoman.formats.pydantic_ai.origins import (
    dump_finish,
    dump_origin,
    dump_usage,
    load_finish,
    load_origin,
    load_usage,
    reader_of,
    wire_of,
)
from dragoman.formats.pydantic_ai.signatures import (
    UNTOLD,
    dump_signed,
    dump_text,
    dump_thinking,
    load_signed,
    load_text,
    load_thinking,
)
from dragoman.formats.pydantic_ai.tools import (
    CALLS,
    apply_result_notes,
    dump_call,
    dump_result,
    load_call,
    load_result,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = ["dump_response", "load_response"]

_Part = JsonMap


class _Read(msgspec.Struct, frozen=True):
    """What the parts of a response are read with."""

    wire: str | None
    cut: bool
    origin: Origin | None


def load_response(entry: _Part, parts: Sequence[_Part], origin: Origin | None) -> Message:
    """Reads a Pydantic AI response as the model's message. `origin`: for a response that names no
    provider."""
    source = load_origin(entry, parts, origin)
    read = _Read(wire_of(source), entry.get("state") in ("interrupted", "incomplete"), source)
    content: list[Content] = []
    item: str | None = None
    for group in _group_response_parts(parts, read.wire):
        content += _load_response_parts(group, read, item)
        if isinstance(content[-1], TextPart):
            item = if_text(group[0].get("id"))
        else:
            item = None
    metadata = if_object(entry.get("metadata"))
    usage = load_usage(entry.get("usage"))
    native, written = None, {"parts": parts}
    if isinstance(entry.get("usage"), dict):
        native = OWN.note(usage=note_difference(None, entry["usage"], dump_usage(usage)))
        if native or usage:
            written["usage"] = entry["usage"]  # as it will be written, with that note
    message = Message(
        Role.MODEL,
        tuple(content),
        created_at=read_time(entry.get("timestamp")),
        origin=source,
        metadata={key: value for key, value in metadata.items() if key != "thinking"}
        if metadata
        else {},
        finish_reason=load_finish(entry),
        usage=usage,
    )
    force_setattr(
        message, "native", note_difference(native, entry, written | _response_fields(message))
    )
    return message


def dump_response(outgoing: Sent) -> Json:
    """Writes the model's message as a Pydantic AI response."""
    message = outgoing.message
    parts = [
        part
        for part_index, piece in enumerate(message.content)
        for part in _dump_response_parts(piece, outgoing, part_index)
    ]
    usage = dump_usage(message.usage)
    used = if_object(OWN.notes(message.native).get("usage"))
    if used or usage:
        written = {"usage": apply_notes(used, usage)}
    else:
        written = {}
    return {"parts": parts, **apply_notes(message.native, written | _response_fields(message))}


def _response_fields(message: Message) -> Json:
    """Returns what is written for a message beside its Pydantic AI parts and what it used."""
    fields: Json = {}
    for piece in message.content:
        if isinstance(piece, ToolCallPart) and piece.state == "cut":
            fields["state"] = "interrupted"
    fields |= dump_origin(message.origin) | dump_finish(message)
    if message.created_at is not None:
        fields["timestamp"] = format_time(message.created_at)
    if message.own_metadata:
        fields["metadata"] = message.own_metadata
    return {**fields, "kind": "response"}


def _group_response_parts(parts: Sequence[_Part], wire: str | None) -> list[list[_Part]]:
    """Returns the Pydantic AI parts, those of one reasoning item together."""
    groups: list[list[_Part]] = []
    for part in parts:
        if part.get("part_kind") == "thinking" and wire == "openai_responses":
            id_ = if_text(part.get("id"))
        else:
            id_ = ""
        if id_ and groups and _joins_reasoning_item(groups[-1], part, id_):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _joins_reasoning_item(group: Sequence[_Part], part: _Part, id_: str) -> bool:
    """True if a Pydantic AI part is one more piece of the reasoning item that a group holds."""
    first = group[0]
    if first.get("part_kind") != "thinking" or first.get("id") != id_:
        return False
    # Signature and details stand on the first part of an item; a part that has its own begins one.
    if part.get("signature") or part.get("provider_details"):
        return False
    return all(bool(if_text(member.get("content"))) for member in (first, part))


def _load_response_parts(group: Sequence[_Part], read: _Read, item: str | None) -> list[Content]:
    """Returns the content for a group of parts of a pydantic-ai response: one piece of content, or
    one for each part if pydantic-ai parts written for a single piece would differ. `item`: id of
    OpenAI's message item that the content before belongs to.

    What the parts have beyond what would be written for the piece is noted on it, so that writing
    gives the same parts again.
    """
    part = group[0]
    load = _LOADERS.get(part["part_kind"])
    piece = load(group, read, item) if load else None
    if piece is None:
        return [keep_whole(ProviderPart(part["part_kind"]), part)]
    if isinstance(piece, MarkPart):
        return [piece]
    if len(group) == 1 and (usual := usual_part(piece, part)):
        extra_fields = read_extra_fields(part, *usual)
        if not extra_fields:
            return [piece]
        native = {**(piece.native or {}), NAME: extra_fields}
        return [msgspec.structs.replace(piece, native=native)]
    return _load_noted(piece, group, read)


def _load_noted(piece: Any, group: Sequence[_Part], read: _Read) -> list[Content]:
    """Returns a piece with a note of how its Pydantic AI parts differ from what is written for
    it."""
    part = group[0]
    written = _parts(piece, read.origin)
    signed = if_object(written[0].get("provider_details"))
    if signed and (extra := read_extra_fields(if_object(part.get("provider_details")), *signed)):
        piece = _note_on_piece(piece, details=extra)
        written = _parts(piece, read.origin)
    if len(group) != len(written):
        return [loaded for member in group for loaded in _load_response_parts([member], read, None)]
    if isinstance(piece, DataPart):
        return [_note_on_piece(piece, part=note_difference(None, part, written[0]) or {})]
    if len(group) == 1:
        return [note_as_read(piece, part, written[0])]
    differences = [
        note_difference(None, loaded, member) or {}
        for loaded, member in zip(group, written, strict=True)
    ]
    return [_note_on_piece(piece, parts=differences)]


def _note_on_piece(piece: Any, **notes: Any) -> Any:
    """Returns a piece of a Pydantic AI response with further notes in its native fields."""
    native: Json = {
        **(piece.native or {}),
        **(OWN.with_notes(piece.native, **notes) or {}),
    }
    return msgspec.structs.replace(piece, native=native)


def _parts(piece: Any, origin: Origin | None) -> list[Json]:
    """Returns the Pydantic AI parts of a piece, without the fields that are only noted on it."""
    if isinstance(piece, ThinkingPart):
        parts = _readable_thinking_parts(dump_thinking(piece), piece, origin)
    elif isinstance(piece, TextPart):
        parts = [_text_part(piece)]
    elif isinstance(piece, DataPart):
        parts = [{"content": dump_binary(piece), **dump_signed(piece.native), "part_kind": "file"}]
    elif isinstance(piece, ToolCallPart):
        parts = [dump_call(piece)]
    elif isinstance(piece, ToolResultPart):
        parts = [dump_result(piece, Sent(Message(Role.MODEL), 0, [], {}), 0)]
    else:
        content = if_object(if_object(piece.native).get("anthropic")).get("content")
        parts = [{"content": content, "provider_name": "anthropic", "part_kind": "compaction"}]
    for part in parts:
        if "provider_name" in part and (name := dump_origin(origin).get("provider_name")):
            part["provider_name"] = name
    return parts


def _readable_thinking_parts(
    parts: list[Json], piece: ThinkingPart, origin: Origin | None
) -> list[Json]:
    """Returns the parts of thinking; one with all of its text where nobody who reads the Pydantic
    AI response takes raw reasoning from its details."""
    details = if_object(parts[0].get("provider_details"))
    if "raw_content" not in details or reader_of(origin) in (None, "openai_responses"):
        return parts
    details_left = read_extra_fields(details, "raw_content")
    part = {**read_extra_fields(parts[0], "provider_details"), "content": piece.text}
    return [{**part, "provider_details": details_left} if details_left else part]


def _text_part(piece: TextPart) -> Json:
    if OWN.form(piece.native).get("kind") == "speech":
        return {"transcript": piece.text, "speaker": "assistant", "part_kind": "speech"}
    return {"content": piece.text, **dump_text(piece), "part_kind": "text"}


def _load_thinking(group: Sequence[_Part], read: _Read, _: str | None) -> Content | None:
    if isinstance(group[0].get("content"), str):
        return load_thinking(group, read.wire)
    return None


def _load_text(group: Sequence[_Part], read: _Read, item: str | None) -> Content | None:
    """Returns a text part of a Pydantic AI response, or thinking if Google signed it, or a mark."""
    part = group[0]
    text = part.get("content")
    if not isinstance(text, str):
        return None
    if text:
        return TextPart(text, load_text(part, read.wire, item))
    if read.wire == "google" and (signed := load_signed(part)):
        return ThinkingPart("", {**signed, **UNTOLD})
    return keep_whole(MarkPart("text"), part)


def _load_file(group: Sequence[_Part], read: _Read, _: str | None) -> Content | None:
    """Returns a file part of a Pydantic AI response, with Google's signature."""
    content = load_binary(if_object(group[0].get("content")))
    if content is None or read.wire != "google":
        return content
    return msgspec.structs.replace(
        content, native={**(content.native or {}), **(load_signed(group[0]) or {})}
    )


def _load_compaction(group: Sequence[_Part], read: _Read, _: str | None) -> Content | None:
    """Returns a compaction part in a Pydantic AI response of Anthropic as a provider's part, or
    None for another provider."""
    content = group[0].get("content")
    if read.wire != "anthropic" or not isinstance(content, str):
        return None
    return ProviderPart("compaction", {"anthropic": {"type": "compaction", "content": content}})


def _load_speech(group: Sequence[_Part], _: _Read, __: str | None) -> Content | None:
    """Returns a speech part of a Pydantic AI response by its transcript, or None without one."""
    text = if_text(group[0].get("transcript"))
    if text:
        return TextPart(text, OWN.note(form={"kind": "speech"}))
    return None


_LOADERS: Mapping[str, Callable[[Sequence[_Part], _Read, str | None], Content | None]] = {
    "text": _load_text,
    "thinking": _load_thinking,
    "file": _load_file,
    "compaction": _load_compaction,
    "speech": _load_speech,
    **dict.fromkeys(CALLS, lambda group, read, _: load_call(group[0], read.wire, cut=read.cut)),
    "builtin-tool-return": lambda group, _, __: load_result(group[0]),
}
"""Kind of a part → what reads it; `None` from one: it is not of the documented shape."""


def _dump_response_parts(piece: Content, outgoing: Sent, part_index: int) -> list[Json]:
    """Returns the parts of a piece; none if the Pydantic AI format cannot hold it, which is noted
    as a loss."""
    if (text := usual_text(piece)) is not None:
        return [text]
    if (all_of_it := whole(piece.native)) is not None:
        return [all_of_it]
    if isinstance(piece, MarkPart) or _is_lost(piece, outgoing, part_index):
        return []
    if isinstance(piece, (LinkPart, FilePart)):
        why = "a response holds files by their bytes alone"
        text = outgoing.stand_in(part_index, piece, why)
        return [{"content": text, "part_kind": "text"}]
    parts = _parts(piece, outgoing.message.origin)
    if isinstance(piece, ToolResultPart):
        parts = [{**parts[0], **dump_result(piece, outgoing, part_index)}]
    _note_losses(piece, parts[0], outgoing, part_index)
    return _add_noted(piece, parts, outgoing, part_index)


def _is_lost(piece: Content, outgoing: Sent, part_index: int) -> bool:
    """True if a Pydantic AI response has no place for a piece; notes the loss."""
    if isinstance(piece, ToolResultPart) and piece.run_by != "provider":
        outgoing.misplaced(part_index, piece, "results stand in requests")
        return True
    if not isinstance(piece, ProviderPart):
        return False
    if piece.kind != "compaction":
        label = f"a block of the provider's, {piece.kind}"
    elif "anthropic" not in (piece.native or {}):
        label = "a compaction"
    else:
        return False
    outgoing.lose(part_index, Lost.provider, "it is another format's", label)
    return True


def _note_losses(piece: Content, part: _Part, outgoing: Sent, part_index: int) -> None:
    """Notes what the Pydantic AI part of a piece cannot hold: a file's name, a signature."""
    if isinstance(piece, DataPart) and piece.name:
        why = f"the format knows no name of a file, {piece.name}"
        outgoing.lose(part_index, Lost.file_name, why)
    if not piece.native or isinstance(piece, ProviderPart):
        return
    if _loses_signature(piece, part, outgoing.message.origin):
        why = "the format has no place for what this provider signed"
        outgoing.lose(part_index, Lost.signature, why)


def _add_noted(piece: Content, parts: list[Json], outgoing: Sent, part_index: int) -> list[Json]:
    """Returns the Pydantic AI parts of a piece with the fields that were noted when it was read."""
    noted_parts = if_list(OWN.notes(piece.native).get("parts"))
    if len(noted_parts) == len(parts) > 1:
        pairs = zip(noted_parts, parts, strict=True)
        return [apply_notes(if_object(note), part) for note, part in pairs]
    if isinstance(piece, ThinkingPart):
        says_something = piece.text or _is_signed(parts[0]) or OWN.is_ours(piece.native)
        if not says_something:
            why = "nothing of it can be held: it is signed for another format"
            outgoing.lose(part_index, Lost.thinking, why)
            return []
    if isinstance(piece, ToolResultPart):
        return [apply_result_notes(piece, parts[0])]
    if len(parts) != 1:
        return parts
    native = piece.native
    if isinstance(piece, DataPart):
        native = if_object(OWN.notes(piece.native).get("part"))
    return [apply_notes(native, parts[0])]


def _is_signed(part: _Part) -> bool:
    return "signature" in part or "provider_details" in part


def _loses_signature(piece: Content, part: _Part, origin: Origin | None) -> bool:
    """True if somebody signed a piece and its Pydantic AI part does not hold that, or would be read
    as if another had signed it."""
    signed = [
        (wire, signature)
        for wire, signature in read_signatures(piece.native).items()
        if wire != NAME
    ]
    if not signed:
        return False
    written = (
        part.get("signature"),
        if_object(part.get("provider_details")).get("thought_signature"),
    )
    read_by = reader_of(origin)
    return any(
        signature not in written or read_by not in (None, wire) for wire, signature in signed
    )
