"""A response ↔ the model's message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from dragoman.codec.json_values import if_list, if_object, if_text, rest
from dragoman.codec.native import signatures
from dragoman.formats.pydantic_ai.media import Sent, dump_binary, kept, load_binary
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
from dragoman.formats.pydantic_ai.own import (
    NAME,
    OWN,
    applied,
    as_read,
    noted_as,
    read_time,
    usual_part,
    usual_text,
    whole,
    written_time,
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
    applied_result,
    dump_call,
    dump_result,
    load_call,
    load_result,
)
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

_Part = Mapping[str, Any]


class _Read(msgspec.Struct, frozen=True):
    """What the parts of a response are read with."""

    wire: str | None
    cut: bool
    origin: Origin | None


def load_response(entry: _Part, parts: Sequence[_Part], origin: Origin | None) -> Message:
    """A response → the message. `origin`: for one that does not say whose it is."""
    source = load_origin(entry, parts, origin)
    read = _Read(wire_of(source), entry.get("state") in ("interrupted", "incomplete"), source)
    content: list[Content] = []
    item: str | None = None
    for group in _groups(parts, read.wire):
        content += _load(group, read, item)
        item = if_text(group[0].get("id")) if isinstance(content[-1], TextPart) else None
    metadata = if_object(entry.get("metadata"))
    usage = load_usage(entry.get("usage"))
    native, made = None, {"parts": parts}
    if isinstance(entry.get("usage"), dict):
        native = OWN.note(usage=noted_as(None, entry["usage"], dump_usage(usage)))
        if native or usage:
            made["usage"] = entry["usage"]  # as it will be written, with that note
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
    force_setattr(message, "native", noted_as(native, entry, made | _made(message)))
    return message


def dump_response(sent: Sent) -> dict[str, Any]:
    """The message → a response."""
    message = sent.message
    parts = [
        part for place, piece in enumerate(message.content) for part in _dump(piece, sent, place)
    ]
    usage = dump_usage(message.usage)
    used = if_object(OWN.notes(message.native).get("usage"))
    made = {"usage": applied(used, usage)} if used or usage else {}
    return {"parts": parts, **applied(message.native, made | _made(message))}


def _made(message: Message) -> dict[str, Any]:
    """What is written for a message beside its parts and what it used."""
    fields: dict[str, Any] = {}
    for piece in message.content:
        if isinstance(piece, ToolCallPart) and piece.state == "cut":
            fields["state"] = "interrupted"
    fields |= dump_origin(message.origin) | dump_finish(message)
    if message.created_at is not None:
        fields["timestamp"] = written_time(message.created_at)
    if message.own_metadata:
        fields["metadata"] = message.own_metadata
    return {**fields, "kind": "response"}


def _groups(parts: Sequence[_Part], wire: str | None) -> list[list[_Part]]:
    """The parts, those of one reasoning item together."""
    groups: list[list[_Part]] = []
    for part in parts:
        id_ = (
            if_text(part.get("id"))
            if part.get("part_kind") == "thinking" and wire == "openai_responses"
            else ""
        )
        if id_ and groups and _joins(groups[-1], part, id_):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _joins(group: Sequence[_Part], part: _Part, id_: str) -> bool:
    first = group[0]
    same = first.get("part_kind") == "thinking" and first.get("id") == id_
    plain = not part.get("signature") and not part.get("provider_details")
    return (
        same
        and plain
        and all(isinstance(each.get("content"), str) and each["content"] for each in (first, part))
    )


def _load(group: Sequence[_Part], read: _Read, item: str | None) -> list[Content]:
    """The parts of one piece → the piece, or of several where they were not written so. `item`: id of the message item that the
    piece before it is of."""
    part = group[0]
    load = _LOADERS.get(part["part_kind"])
    piece = load(group, read, item) if load else None
    if piece is None:
        return [kept(ProviderPart(part["part_kind"]), part)]
    if isinstance(piece, MarkPart):
        return [piece]
    if len(group) == 1 and (usual := usual_part(piece, part)):
        own = rest(part, *usual)
        return (
            [msgspec.structs.replace(piece, native={**(piece.native or {}), NAME: own})]
            if own
            else [piece]
        )
    made = _parts(piece, read.origin)
    signed = if_object(made[0].get("provider_details"))
    if signed and (extra := rest(if_object(part.get("provider_details")), *signed)):
        piece = _noted(piece, details=extra)
        made = _parts(piece, read.origin)
    if len(group) != len(made):
        return [each for one in group for each in _load([one], read, None)]
    if isinstance(piece, DataPart):
        return [_noted(piece, part=noted_as(None, part, made[0]) or {})]
    if len(group) == 1:
        return [as_read(piece, part, made[0])]
    return [
        _noted(
            piece,
            parts=[noted_as(None, each, one) or {} for each, one in zip(group, made, strict=True)],
        )
    ]


def _noted(piece: Any, **notes: Any) -> Any:
    native: dict[str, Any] = {
        **(piece.native or {}),
        **(OWN.with_notes(piece.native, **notes) or {}),
    }
    return msgspec.structs.replace(piece, native=native)


def _parts(piece: Any, origin: Origin | None) -> list[dict[str, Any]]:
    """A piece → its parts, without what they have beside it."""
    if isinstance(piece, ThinkingPart):
        made = _readable(dump_thinking(piece), piece, origin)
    elif isinstance(piece, TextPart):
        made = [_text_part(piece)]
    elif isinstance(piece, DataPart):
        made = [{"content": dump_binary(piece), **dump_signed(piece.native), "part_kind": "file"}]
    elif isinstance(piece, ToolCallPart):
        made = [dump_call(piece)]
    elif isinstance(piece, ToolResultPart):
        made = [dump_result(piece, Sent(Message(Role.MODEL), 0, [], {}), 0)]
    else:
        content = if_object(if_object(piece.native).get("anthropic")).get("content")
        made = [{"content": content, "provider_name": "anthropic", "part_kind": "compaction"}]
    for part in made:
        if "provider_name" in part and (name := dump_origin(origin).get("provider_name")):
            part["provider_name"] = name
    return made


def _readable(
    made: list[dict[str, Any]], piece: ThinkingPart, origin: Origin | None
) -> list[dict[str, Any]]:
    """The parts of thinking; one with all of its text where nobody who reads the response takes raw reasoning from its details."""
    details = if_object(made[0].get("provider_details"))
    if "raw_content" not in details or reader_of(origin) in (None, "openai_responses"):
        return made
    left = rest(details, "raw_content")
    part = {**rest(made[0], "provider_details"), "content": piece.text}
    return [{**part, "provider_details": left} if left else part]


def _text_part(piece: TextPart) -> dict[str, Any]:
    if OWN.form(piece.native).get("kind") == "speech":
        return {"transcript": piece.text, "speaker": "assistant", "part_kind": "speech"}
    return {"content": piece.text, **dump_text(piece), "part_kind": "text"}


def _load_thinking(group: Sequence[_Part], read: _Read, _: str | None) -> Content | None:
    return load_thinking(group, read.wire) if isinstance(group[0].get("content"), str) else None


def _load_text(group: Sequence[_Part], read: _Read, item: str | None) -> Content | None:
    part = group[0]
    text = part.get("content")
    if not isinstance(text, str):
        return None
    if text:
        return TextPart(text, load_text(part, read.wire, item))
    if read.wire == "google" and (signed := load_signed(part)):
        return ThinkingPart("", {**signed, **UNTOLD})
    return kept(MarkPart("text"), part)


def _load_file(group: Sequence[_Part], read: _Read, _: str | None) -> Content | None:
    content = load_binary(if_object(group[0].get("content")))
    if content is None or read.wire != "google":
        return content
    return msgspec.structs.replace(
        content, native={**(content.native or {}), **(load_signed(group[0]) or {})}
    )


def _load_compaction(group: Sequence[_Part], read: _Read, _: str | None) -> Content | None:
    content = group[0].get("content")
    if read.wire != "anthropic" or not isinstance(content, str):
        return None
    return ProviderPart("compaction", {"anthropic": {"type": "compaction", "content": content}})


def _load_speech(group: Sequence[_Part], _: _Read, __: str | None) -> Content | None:
    text = if_text(group[0].get("transcript"))
    return TextPart(text, OWN.note(form={"kind": "speech"})) if text else None


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


def _dump(piece: Content, sent: Sent, place: int) -> list[dict[str, Any]]:
    """A piece → its parts. What cannot be held is a loss."""
    if (text := usual_text(piece)) is not None:
        return [text]
    if (all_of_it := whole(piece.native)) is not None:
        return [all_of_it]
    if isinstance(piece, MarkPart):
        return []
    if isinstance(piece, ProviderPart) and piece.kind != "compaction":
        sent.lose(
            place,
            Lost.provider,
            "it is another format's",
            f"a block of the provider's, {piece.kind}",
        )
        return []
    if isinstance(piece, ProviderPart) and "anthropic" not in (piece.native or {}):
        sent.lose(place, Lost.provider, "it is another format's", "a compaction")
        return []
    if isinstance(piece, ToolResultPart) and piece.run_by != "provider":
        sent.misplaced(place, piece, "results stand in requests")
        return []
    if isinstance(piece, (LinkPart, FilePart)):
        return [
            {
                "content": sent.stand_in(
                    place, piece, "a response holds files by their bytes alone"
                ),
                "part_kind": "text",
            }
        ]
    if isinstance(piece, DataPart) and piece.name:
        sent.lose(place, Lost.file_name, f"the format knows no name of a file, {piece.name}")
    made = _parts(piece, sent.message.origin)
    if isinstance(piece, ToolResultPart):
        made = [{**made[0], **dump_result(piece, sent, place)}]
    if (
        piece.native
        and not isinstance(piece, ProviderPart)
        and _loses_signature(piece, made[0], sent.message.origin)
    ):
        sent.lose(place, Lost.signature, "the format has no place for what this provider signed")
    several = if_list(OWN.notes(piece.native).get("parts"))
    if len(several) == len(made) > 1:
        return [applied(if_object(each), one) for each, one in zip(several, made, strict=True)]
    if isinstance(piece, ThinkingPart) and not (
        piece.text or _is_signed(made[0]) or OWN.is_ours(piece.native)
    ):
        sent.lose(
            place, Lost.thinking, "nothing of it can be held: it is signed for another format"
        )
        return []
    if isinstance(piece, ToolResultPart):
        return [applied_result(piece, made[0])]
    own = (
        if_object(OWN.notes(piece.native).get("part"))
        if isinstance(piece, DataPart)
        else piece.native
    )
    return [applied(own, made[0])] if len(made) == 1 else made


def _is_signed(part: _Part) -> bool:
    return "signature" in part or "provider_details" in part


def _loses_signature(piece: Content, part: _Part, origin: Origin | None) -> bool:
    """Whether somebody signed a piece and its part does not hold that, or would be read as if another had signed it."""
    signed = [
        (wire, signature) for wire, signature in signatures(piece.native).items() if wire != NAME
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
