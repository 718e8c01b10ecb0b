"""`providerMetadata` (of model messages `providerOptions`) of a part ↔ `native`.

What a provider signed goes to the `native` of the wire that its provider speaks (`_lift`), so that
it goes back there as it came, and is written from there (`_lower_metadata`). `foreign` is what is left in
`native` of other wires: the family has no field for it, and it is carried under the key `dragoman`,
beside the fields of a piece that its part cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from dragoman.codec.json_values import drop_empty, if_list, if_object, read_extra_fields
from dragoman.codec.native import WireNative
from dragoman.message import (
    NOTES,
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Native,
    Origin,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.notes import NAME, OURS, OWN, Fields, Part, present, text_in
from dragoman.wires.ai_sdk_messages.tool_output import as_result

__all__ = [
    "ANTHROPIC",
    "REDACTED",
    "RESPONSES",
    "Lifted",
    "find_carried_fields",
    "first_provider",
    "foreign",
    "is_native",
    "lift",
    "metadata_of",
    "provider_in",
    "origin_of",
    "with_carried",
]

P = TypeVar("P", bound=Content)
ANTHROPIC, REDACTED = "anthropic", "redacted_thinking"
RESPONSES = WireNative("openai_responses")
_GOOGLE = WireNative("google")
_PROVIDERS = {
    "anthropic": "anthropic",
    "google": "google",
    "vertex": "vertex",
    "openai": "openai",
    "azure": "azure",
    "mistral": "mistral",
    "cohere": "cohere",
    "groq": "groq",
    "xai": "xai",
    "deepseek": "deepseek",
    "openrouter": "openrouter",
    "togetherai": "together",
    "bedrock": "bedrock",
}
"""Key of the metadata → dragoman's name of the provider."""
_ITEMS = {"openai": "openai-responses", "azure": "azure-responses"}
"""Key of the metadata → the provider's name if it names an item, which only the Responses API
has."""
_UNMARKED = ("message", "reference")
"""Kinds for which an empty native mapping means nothing."""
_SIGNED = frozenset(["text", "reasoning", "tool"])
"""Kinds of pieces that Gemini signs."""
_OF_ITEMS = _SIGNED
"""Kinds of pieces that are OpenAI items."""
_ITEM_FIELDS = {"reasoning": ("id", "encrypted_content"), "tool": ("id",)}
"""Kind of a piece → native fields of an OpenAI item that the metadata says."""
_OTHER_KEYS = ("vertex", "azure")
"""Keys of the metadata that mean the same as another key."""
_METADATA = (
    "providerMetadata",
    "callProviderMetadata",
    "resultProviderMetadata",
    "providerOptions",
)
_CARRIED: Mapping[type[Content], frozenset[str]] = {
    DataPart: frozenset(["name"]),
    LinkPart: frozenset(["name", "mime_type", "url"]),
    FilePart: frozenset(["id", "name", "mime_type"]),
    ToolCallPart: frozenset(["run_by", "raw", "state", "arguments"]),
    ToolResultPart: frozenset(["name", "result", "is_error", "is_content", "run_by", "denied"]),
}
"""Type of a piece → the fields that may be carried for it."""


class Lifted(NamedTuple):
    """What the metadata of a part says."""

    native: Part
    """Native fields, by wire."""
    unknown: Part
    """Metadata that no wire has."""
    form: Part
    """Usual key → the key that was used."""
    provider: str | None
    """Dragoman's name of the provider that answered."""
    extras: Any
    """What dragoman carries, or None."""


def lift(piece_kind: str, metadata: Fields) -> Lifted:
    """Returns what the metadata of an AI SDK part says.

    Args:
        piece_kind: `text`, `reasoning`, `tool`, `file` or `result`. Empty if no provider signs the
            piece.
        metadata: the metadata.
    """
    native: Part = {}
    unknown: Part = {}
    form: Part = {}
    provider: str | None = None
    for key, value in metadata.items():
        if key == OURS:
            continue
        fields = if_object(value)
        provider = provider or provider_of(key, fields)
        unread = dict(fields)
        # What a provider's wire has is taken out of the fields; the rest of them is kept as
        # metadata.
        lift_key = _LIFTS.get(key)
        if lift_key is not None:
            wire, usual, load = lift_key
            if wire not in native and (signed := load(piece_kind, unread)):
                native |= signed
                if key != usual:
                    form[usual] = key
        if not fields:
            unknown[key] = value
        elif unread:
            unknown[key] = unread
    return Lifted(native, unknown, form, provider, metadata.get(OURS))


def _lift_anthropic(piece_kind: str, fields: Part) -> Part:
    """Moves Anthropic's native fields out of provider metadata (`fields`) and returns them."""
    wire_fields: Part = {}
    if piece_kind != "reasoning":
        if isinstance(fields.get("cacheControl"), dict):
            wire_fields = {"cache_control": fields.pop("cacheControl")}
    elif text_in(fields, "signature") is not None:
        wire_fields = {"signature": fields.pop("signature")}
    elif text_in(fields, "redactedData") is not None:
        wire_fields = {"type": REDACTED, "data": fields.pop("redactedData")}
    return drop_empty({ANTHROPIC: wire_fields})


def _lift_google(piece_kind: str, fields: Part) -> Fields:
    """Moves Gemini's native fields out of provider metadata (`fields`) and returns them."""
    if piece_kind not in _SIGNED or not isinstance(fields.get("thoughtSignature"), str):
        return {}
    return _GOOGLE.note({"thoughtSignature": fields.pop("thoughtSignature")}) or {}


def _lift_item(piece_kind: str, fields: Part) -> Fields:
    """Moves native fields of the Responses API, about one of its items, out of provider metadata
    (`fields`) and returns them."""
    id_ = text_in(fields, "itemId")
    if id_ is None:
        return {}
    native: Native = None
    if piece_kind == "reasoning":
        # The field is there also where it is null; 0 stands for its absence.
        content = fields.get("reasoningEncryptedContent", 0)
        if not isinstance(content, str | None):
            return {}
        del fields["reasoningEncryptedContent"]
        native = RESPONSES.note(present(id=id_, encrypted_content=content or None))
    elif piece_kind == "tool":
        native = RESPONSES.note({"id": id_})
    elif piece_kind == "text":
        item = {"type": "message", "id": id_, "status": "completed"}
        if (phase := text_in(fields, "phase")) is not None:
            item["phase"] = phase
            del fields["phase"]
        native = RESPONSES.with_notes(None, item=item)
    else:
        return {}
    del fields["itemId"]
    return native or {}


_LIFTS = {
    "anthropic": (ANTHROPIC, "anthropic", _lift_anthropic),
    "google": ("google", "google", _lift_google),
    "vertex": ("google", "google", _lift_google),
    "openai": ("openai_responses", "openai", _lift_item),
    "azure": ("openai_responses", "openai", _lift_item),
}
"""Key of the metadata → its wire, the usual key for it, and the function that reads it."""


def metadata_of(piece_kind: str, native: Native, fields: Fields = {}) -> Part:
    """Returns the provider metadata for an AI SDK part, from its native fields.

    Args:
        piece_kind: as in `lift`.
        native: of the piece.
        fields: those of the piece that the part cannot hold.
    """
    if not native and not fields:
        return {}
    metadata = _lower_metadata(piece_kind, native) if native else {}
    carried = foreign(piece_kind, native) if native else {}
    if carried or fields:
        metadata[OURS] = drop_empty({"native": carried, "fields": dict(fields)})
    return metadata


def _lower_metadata(piece_kind: str, native: Fields) -> Part:
    """Returns the provider metadata for native fields, without dragoman's own key. The inverse of
    `lift`."""
    metadata = _lower_anthropic(piece_kind, if_object(native.get(ANTHROPIC)))
    signature = text_in(_GOOGLE.fields(native), "thoughtSignature")
    if signature is not None and piece_kind in _SIGNED:
        metadata[_key_of("google", native)] = {"thoughtSignature": signature}
    if item := _lower_item(piece_kind, native):
        metadata[_key_of("openai", native)] = item
    for key, value in if_object(OWN.notes(native).get("left")).items():
        if key in metadata:
            value = {**metadata[key], **if_object(value)}
        metadata[key] = value
    return metadata


def _key_of(usual: str, native: Native) -> str:
    """Returns the key under which the metadata was read, or the usual one."""
    key = OWN.form(native).get(usual)
    return key if key in _OTHER_KEYS else usual


def _lower_anthropic(piece_kind: str, fields: Fields) -> Part:
    """Returns the provider metadata for Anthropic's native fields."""
    wire_fields: Part = {}
    if piece_kind != "reasoning":
        mark = fields.get("cache_control")
        if isinstance(mark, dict):
            return {ANTHROPIC: {"cacheControl": mark}}
    elif fields.get("type") == REDACTED and isinstance(fields.get("data"), str):
        wire_fields["redactedData"] = fields["data"]
    else:
        wire_fields = present(signature=text_in(fields, "signature"))
    return drop_empty({ANTHROPIC: wire_fields})


def _lower_item(piece_kind: str, native: Native) -> Part:
    """Returns the provider metadata for native fields of an item of the Responses API."""
    if piece_kind == "text":
        item = if_object(RESPONSES.notes(native).get("item"))
        phase = present(phase=text_in(item, "phase"))
        if text_in(item, "id") is None:
            return {}
        return {"itemId": item["id"], **phase}
    fields = RESPONSES.fields(native)
    id_ = text_in(fields, "id")
    if id_ is None or piece_kind not in _OF_ITEMS:
        return {}
    if piece_kind == "tool":
        return {"itemId": id_}
    # The library tells by this field, also where it is null, that an item of thinking is meant.
    return {"itemId": id_, "reasoningEncryptedContent": text_in(fields, "encrypted_content")}


def foreign(piece_kind: str, native: Native) -> Part:
    """Returns the native fields of other wires that the provider metadata does not say."""
    carried: Part = {}
    for wire, fields in (native or {}).items():
        if wire == NAME or NOTES[0] in wire:
            continue
        wire_fields = if_object(fields)
        lowered = _fields_in_metadata(piece_kind, wire, wire_fields)
        # An empty mapping says that the piece came through that wire, which decides whether its id
        # is known there.
        is_mark = not wire_fields and piece_kind not in _UNMARKED
        if (unsaid := read_extra_fields(wire_fields, *lowered)) or is_mark:
            carried[wire] = unsaid
    return carried


def _fields_in_metadata(piece_kind: str, wire: str, fields: Fields) -> tuple[str, ...]:
    """Returns the names of a wire's fields that the provider metadata says."""
    if wire == ANTHROPIC and piece_kind == "reasoning":
        if fields.get("type") == REDACTED:
            return ("signature", "type", "data")
        return ("signature",)
    if wire == ANTHROPIC:
        is_said = isinstance(fields.get("cache_control"), dict)
        return ("cache_control",) if is_said else ()
    if wire == "google" and piece_kind in _SIGNED:
        is_said = isinstance(fields.get("thoughtSignature"), str)
        return ("thoughtSignature",) if is_said else ()
    if wire == "openai_responses" and isinstance(fields.get("id"), str):
        return _ITEM_FIELDS.get(piece_kind, ())
    return ()


def provider_of(key: str, fields: Fields) -> str | None:
    """Returns the provider that wrote metadata under a key, or None for an unknown key or a
    caller's options."""
    # A mark for the cache is a caller's option for any model, and tells nothing about who answered.
    if not fields or (len(fields) == 1 and "cacheControl" in fields):
        return None
    if key in _ITEMS and "itemId" in fields:
        return _ITEMS[key]
    return _PROVIDERS.get(key)


def origin_of(provider: str | None, usual: Origin | None) -> Origin | None:
    """Returns the origin of an AI SDK model message. `usual` is that of messages whose parts name
    no provider."""
    if provider is None or (usual is not None and usual.provider == provider):
        return usual
    return Origin(provider)


def provider_in(part: Fields) -> str | None:
    """Returns the provider that a written part names to its reader, or None. In AI SDK 4 only
    Anthropic signs."""
    for key in _METADATA:
        for name, value in if_object(part.get(key)).items() if key in part else ():
            if name != OURS and (provider := provider_of(name, if_object(value))):
                return provider
    if part.get("type") not in ("reasoning", "redacted-reasoning"):
        return None
    signed = [part, *[if_object(detail) for detail in if_list(part.get("details"))]]
    if any(fields.keys() & {"signature", "data"} for fields in signed):
        return ANTHROPIC
    return None


def first_provider(parts: Iterable[Fields]) -> str | None:
    """Returns the first provider that one of the parts names, or None."""
    named = (provider for part in parts if (provider := provider_in(part)))
    return next(named, None)


def find_carried_fields(part: Fields, key: str) -> Part:
    """Returns the carried fields of a part. `key` is the field of its metadata."""
    return if_object(if_object(if_object(part.get(key)).get(OURS)).get("fields"))


def with_carried(piece: P, extras: Any) -> P:
    """Returns a piece with what the provider metadata of its AI SDK part carries, or unchanged if
    dragoman cannot have written that."""
    carried = if_object(extras)
    native, fields = carried.get("native", {}), carried.get("fields", {})
    if not carried or not carried.keys() <= {"native", "fields"} or not is_native(native):
        return piece
    allowed = _CARRIED.get(type(piece), frozenset())
    if not isinstance(fields, dict) or not fields.keys() <= allowed:
        return piece
    changes: Part = {**fields, "native": {**native, **(piece.native or {})} or None}
    if isinstance(piece, ToolResultPart) and "result" in changes:
        result = as_result(changes.pop("result"))
        piece = msgspec.structs.replace(piece, result=result)
    values = {**msgspec.structs.asdict(piece), **changes}
    # A client may have changed what it keeps for us: the types decide whether it still is such a
    # piece.
    try:
        return msgspec.convert(values, type(piece), from_attributes=True)
    except (msgspec.ValidationError, ValueError, TypeError):
        return piece


def is_native(value: Any) -> bool:
    """True for native fields in provider metadata of other formats without notes, which no client
    may write."""
    return isinstance(value, dict) and all(
        isinstance(fields, dict) and NOTES[0] not in wire and wire != NAME
        for wire, fields in if_object(value).items()
    )
