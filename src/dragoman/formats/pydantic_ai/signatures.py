"""What a provider signed: fields of the parts of a response ↔ `native` of the wire that its
provider speaks, so that it goes back there as it came."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.native import WireNative
from dragoman.formats.pydantic_ai.notes import OWN
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Native, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.openai_responses.content import BETWEEN, split_joined

__all__ = [
    "UNTOLD",
    "dump_call",
    "dump_signed",
    "dump_text",
    "dump_thinking",
    "load_call",
    "load_signed",
    "load_text",
    "load_thinking",
]

_REDACTED = "redacted_thinking"
_ANTHROPIC, _GOOGLE, _RESPONSES = (
    WireNative("anthropic"),
    WireNative("google"),
    WireNative("openai_responses"),
)
_SIGNATURE = "thoughtSignature"
UNTOLD: JsonMap = _GOOGLE.note(form={"thought": "absent"}) or {}
"""Google's native of a signature that hung on an empty text."""


def load_thinking(parts: Sequence[JsonMap], wire: str | None) -> ThinkingPart:
    """Returns the signed thinking of one or several Pydantic AI parts; only a reasoning item of
    Responses has several. `wire`: the wire whose signatures the parts hold."""
    first = parts[0]
    text = BETWEEN.join([if_text(part.get("content")) for part in parts])
    signature = if_text(first.get("signature"))
    if wire == "anthropic" and signature:
        if first.get("id") == _REDACTED and not text:
            return ThinkingPart("", {wire: {"type": _REDACTED, "data": signature}})
        return ThinkingPart(text, {wire: {"signature": signature}})
    if wire == "openai_responses" and (id_ := if_text(first.get("id"))):
        return _load_reasoning(parts, id_, text)
    if wire == "google":
        return ThinkingPart(text, load_signed(first) or _GOOGLE.note(mark=True))
    return ThinkingPart(text)


def _load_reasoning(parts: Sequence[JsonMap], id_: str, text: str) -> ThinkingPart:
    """Returns for Pydantic AI the thinking of a signed reasoning item: its summaries, then its raw
    texts. Their lengths are noted unless `text`, all of it, is a single summary."""
    first = parts[0]
    details = if_object(first.get("provider_details"))
    raw = [entry for entry in if_list(details.get("raw_content")) if isinstance(entry, str)]
    summaries = [if_text(part.get("content")) for part in parts if part.get("content")]
    fields = {"id": id_}
    if signature := if_text(first.get("signature")):
        fields["encrypted_content"] = signature
    native = _RESPONSES.note(fields, _lengths_form(summaries, raw, text))
    return ThinkingPart(BETWEEN.join([*summaries, *raw]), native)


def _lengths_form(summaries: Sequence[str], raw: Sequence[str], text: str) -> Json:
    """Returns the wire form with the lengths of the texts of a reasoning item in Pydantic AI; empty
    if `text`, all of it, is a single summary."""
    lengths = {"summary": [len(summary) for summary in summaries]}
    if raw:
        lengths["content"] = [len(entry) for entry in raw]
    if lengths == {"summary": [len(text)] if text else []}:
        return {}
    return {"pieces": lengths}


def dump_thinking(piece: ThinkingPart) -> list[Json]:
    """Returns the Pydantic AI parts of a piece of thinking, without the fields that are only noted
    on it."""
    anthropic = _ANTHROPIC.fields(piece.native)
    if anthropic.get("type") == _REDACTED:
        signed = {
            "content": "",
            "id": _REDACTED,
            "signature": anthropic.get("data"),
            "provider_name": "anthropic",
        }
        return [{**signed, "part_kind": "thinking"}]
    if isinstance(anthropic.get("signature"), str):
        signed = {"signature": anthropic["signature"], "provider_name": "anthropic"}
        return [{"content": piece.text, **signed, "part_kind": "thinking"}]
    responses = _RESPONSES.fields(piece.native)
    if isinstance(responses.get("id"), str):
        return _dump_reasoning_parts(piece, responses)
    return [{"content": piece.text, **dump_signed(piece.native), "part_kind": "thinking"}]


def load_text(part: JsonMap, wire: str | None, before: str | None) -> Native:
    """Returns the wire's native, with id or signature, of a Pydantic AI text part. `before`: id of
    the message item that the piece before it is of."""
    if wire != "openai_responses":
        if wire == "google":
            return load_signed(part)
        return None
    id_ = if_text(part.get("id"))
    if not id_ or id_ == before:
        return None
    phase = if_object(part.get("provider_details")).get("phase")
    item = {
        "type": "message",
        "id": id_,
        "status": "completed",
        **({"phase": phase} if isinstance(phase, str) else {}),
    }
    return _RESPONSES.with_notes(None, item=item)


def dump_text(piece: TextPart) -> Json:
    """Returns the fields of a Pydantic AI text part that its provider signed or named."""
    item = if_object(_RESPONSES.notes(piece.native).get("item"))
    if not isinstance(item.get("id"), str):
        return dump_signed(piece.native)
    details = _dump_provider_details(
        piece.native, {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
    )
    return {"id": item["id"], "provider_name": "openai", **details}


def load_call(part: JsonMap, wire: str | None) -> Native:
    """Returns the wire's native, with id or signature, of a Pydantic AI tool call part."""
    if wire == "google":
        minted = if_text(part.get("tool_call_id")).startswith("pyd_ai_")
        native = load_signed(part)
        if minted:
            return _GOOGLE.note({**_GOOGLE.fields(native), "id": None})
        return native
    id_ = if_text(part.get("id"))
    if wire == "openai_responses" and id_:
        return _RESPONSES.note({"id": id_})
    return None


def dump_call(call: ToolCallPart) -> Json:
    """Returns the fields of a Pydantic AI tool call part that its provider signed or named."""
    id_ = _RESPONSES.fields(call.native).get("id")
    if isinstance(id_, str):
        return {"id": id_, "provider_name": "openai"}
    return dump_signed(call.native)


def load_signed(part: JsonMap) -> Native:
    """Returns Google's native fields of a Pydantic AI part that it signed."""
    signature = if_object(part.get("provider_details")).get("thought_signature")
    if isinstance(signature, str) and signature:
        return _GOOGLE.note({_SIGNATURE: signature})
    return None


def dump_signed(native: Native) -> Json:
    """Returns a signature as fields of a Pydantic AI part."""
    signature = _GOOGLE.fields(native).get(_SIGNATURE)
    if not isinstance(signature, str):
        return {}
    return {
        "provider_name": "google",
        **_dump_provider_details(native, {"thought_signature": signature}),
    }


def _dump_provider_details(native: Native, fields: JsonMap) -> Json:
    """Returns the field `provider_details` of a Pydantic AI part, if there are any."""
    details = {**fields, **if_object(OWN.notes(native).get("details"))}
    if details:
        return {"provider_details": details}
    return {}


def _dump_reasoning_parts(piece: ThinkingPart, fields: JsonMap) -> list[Json]:
    """Returns a Pydantic AI part for each summary of a reasoning item."""
    summaries, raw = _split_reasoning(piece)
    parts: list[Json] = [
        {"content": text, "id": fields["id"], "provider_name": "openai", "part_kind": "thinking"}
        for text in summaries or [""]
    ]
    signature = fields.get("encrypted_content")
    parts[0] |= {"signature": signature} if isinstance(signature, str) else {}
    parts[0] |= _dump_provider_details(piece.native, {"raw_content": raw} if raw else {})
    return parts


def _split_reasoning(piece: ThinkingPart) -> tuple[list[str], list[str]]:
    """Returns for Pydantic AI parts the summaries and the raw texts of a reasoning item, which its
    piece holds as one text."""
    lengths = if_object(_RESPONSES.form(piece.native).get("pieces")) or {
        "summary": [len(piece.text)] if piece.text else []
    }
    summary, content = (
        [size for size in if_list(lengths.get(key)) if type(size) is int]
        for key in ("summary", "content")
    )
    texts = split_joined(piece.text, [*summary, *content])
    # The noted lengths do not fit a text that was edited since: then it is one summary.
    if texts is None:
        return [piece.text], []
    return texts[: len(summary)], texts[len(summary) :]
