"""Thinking as ai 4 and Mastra have it: parts `reasoning` with `details` ↔ pieces, one for each detail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object
from dragoman.message import Native, ThinkingPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.own import OWN, applied, joined
from dragoman.wires.ai_sdk_messages.reading import Reading, load_mark

__all__ = ["dump_details", "load_details", "with_details"]

_KEY = "providerMetadata"
_REDACTED = "redacted_thinking"
_SIGNED = "signed"


def load_details(part: dict[str, Any], it: Reading, where: str) -> None:
    """Thinking: a piece for each detail. What nobody could read as such is a mark."""
    text, listed = part.get("reasoning", ""), if_list(part.get("details"))
    pieces = (
        [_load(detail) for detail in listed]
        if listed
        else [ThinkingPart(text if isinstance(text, str) else "")]
    )
    first = pieces[0]
    words = "".join(piece.text for piece in pieces if piece is not None)
    if (
        first is None
        or None in pieces
        or not isinstance(text, str)
        or not (text or words or first.native or _KEY in part)
    ):
        load_mark(part, it, where)
        return
    known = cast("list[ThinkingPart]", pieces)
    if not words and text and len(known) == 1 and first.native is None:
        known = [ThinkingPart(text)]
    it.opens()
    if any(OWN.form(piece.native).get(_SIGNED) for piece in known) and it.is_model:
        it.provider = it.provider or "anthropic"
    form = {**OWN.form(known[0].native), **({"details": len(known)} if len(known) > 1 else {})}
    others = [
        _with(piece, OWN.note(None, {**OWN.form(piece.native), "detail": True}))
        for piece in known[1:]
    ]
    extra = {key: value for key, value in (known[0].native or {}).items() if key == "anthropic"}
    dialect = it.dialect
    it.add(
        it.read(
            msgspec.structs.replace(known[0], native=None), part,
            lambda made: dump_details([made, *others], dialect), "reasoning", form=form, extra=extra,
        )
    )  # fmt: skip
    for piece in others:
        it.add(piece)


def with_details(pieces: Sequence[Any], at: int) -> Sequence[ThinkingPart]:
    """The thinking at a place of a content, with the pieces behind it that are of the same part."""
    first = pieces[at]
    count = OWN.form(first.native).get("details") if first.native else None
    end = at + 1
    while type(count) is int and end < min(at + count, len(pieces)) and _is_detail(pieces[end]):
        end += 1
    return pieces[at:end]


def dump_details(pieces: Sequence[ThinkingPart], dialect: str) -> dict[str, Any]:
    """The inverse: pieces of one part."""
    first = pieces[0]
    details = [_dump(piece) for piece in pieces]
    made: dict[str, Any] = {
        "type": "reasoning",
        "reasoning": "".join(piece.text for piece in pieces),
        "details": details,
    }
    if first.native is None:
        return made
    native = first.native
    if OWN.form(native).get(_SIGNED):
        native = {key: value for key, value in native.items() if key != "anthropic"}
    if metadata := metadata_of("reasoning", native):
        made[_KEY] = metadata
    return applied(first.native, made, dialect)


def _load(given: Any) -> ThinkingPart | None:
    """A detail → a piece; `None`: it is none that is known."""
    detail = if_object(given)
    if (
        detail.get("type") == "text"
        and isinstance(text := detail.get("text"), str)
        and detail.keys() <= _TEXT
    ):
        signature = detail.get("signature")
        if "signature" not in detail:
            return ThinkingPart(text)
        return (
            ThinkingPart(text, _signed({"signature": signature}))
            if isinstance(signature, str)
            else None
        )
    if (
        detail.get("type") == "redacted"
        and isinstance(data := detail.get("data"), str)
        and len(detail) == 2
    ):
        return ThinkingPart("", _signed({"type": _REDACTED, "data": data}))
    return None


_TEXT = frozenset(["type", "text", "signature"])


def _signed(fields: dict[str, Any]) -> Native:
    """What Anthropic signed, which alone writes such details."""
    return joined({"anthropic": fields}, OWN.note(None, {_SIGNED: True}))


def _dump(piece: ThinkingPart) -> dict[str, Any]:
    if piece.native is None or not OWN.form(piece.native).get(_SIGNED):
        return {"type": "text", "text": piece.text}
    fields = if_object(piece.native.get("anthropic"))
    if fields.get("type") == _REDACTED:
        return {"type": "redacted", "data": fields.get("data")}
    return {"type": "text", "text": piece.text, "signature": fields.get("signature")}


def _is_detail(piece: Any) -> bool:
    return isinstance(piece, ThinkingPart) and OWN.form(piece.native).get("detail") is True


def _with(piece: ThinkingPart, note: Native) -> ThinkingPart:
    fields = {key: value for key, value in (piece.native or {}).items() if key == "anthropic"}
    return msgspec.structs.replace(piece, native={**fields, **(note or {})})
