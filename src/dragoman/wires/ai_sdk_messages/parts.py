"""Texts and thinking: parts of UI messages ↔ pieces."""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_list, if_object
from dragoman.codec.native import Own
from dragoman.message import TextPart, ThinkingPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.own import OWN, UI, applied
from dragoman.wires.ai_sdk_messages.reading import Reading, load_mark, text_field
from dragoman.wires.ai_sdk_messages.signatures import RESPONSES
from dragoman.wires.openai_responses.content import BETWEEN, split_joined

__all__ = ["dump_reasoning", "dump_text", "joined_reasoning", "load_reasoning", "load_text"]

_GOOGLE = Own("google")
_KEY = "providerMetadata"
_SHARED = ("citations",)
_DONE = {"state": "done"}


def load_text(part: dict[str, Any], it: Reading, where: str) -> None:
    """A text."""
    text = part.get("text")
    if (
        text
        and type(text) is str
        and (len(part) == 2 if not it.is_model else len(part) == 3 and part.get("state") == "done")
    ):
        it.add(TextPart(text))
        return
    if text_field(part, "text", where):
        piece = TextPart(part["text"])
        it.opens()
        it.add(it.read(piece, part, lambda made: dump_text(made, is_model=it.is_model), "text"))
        return
    signature = if_object(if_object(part.get(_KEY)).get("google")).get("thoughtSignature")
    if not isinstance(signature, str):
        load_mark(part, it, where)
        return
    it.opens()
    form, extra = {"text": "empty"}, _GOOGLE.note(form={"thought": "absent"}) or {}
    it.add(
        it.read(
            ThinkingPart(""),
            part,
            lambda made: dump_reasoning(made)[0],
            "text",
            form=form,
            extra=extra,
        )
    )


def dump_text(piece: TextPart, *, is_model: bool) -> dict[str, Any]:
    """The inverse."""
    made: dict[str, Any] = {"type": "text", "text": piece.text, **(_DONE if is_model else {})}
    if piece.native is None:
        return made
    if metadata := metadata_of("text", piece.native):
        made[_KEY] = metadata
    return applied(piece.native, made, UI, _SHARED)


def load_reasoning(part: dict[str, Any], it: Reading, where: str) -> None:
    """Thinking. Parts of one item of OpenAI's that follow each other are one piece."""
    text = text_field(part, "text", where)
    it.opens()
    if (signature := signed_alone(part)) is not None and it.is_model:
        it.provider = it.provider or "anthropic"
        it.pieces.append(ThinkingPart(text, {"anthropic": {"signature": signature}}))
        return
    piece = it.read(ThinkingPart(text), part, lambda made: dump_reasoning(made)[0], "reasoning")
    before = it.pieces[-1] if it.pieces else None
    if isinstance(before, ThinkingPart) and (both := joined_reasoning(before, piece)) is not None:
        it.pieces[-1] = both
    else:
        it.add(piece)


def dump_reasoning(piece: ThinkingPart, dialect: str = UI) -> list[dict[str, Any]]:
    """The inverse: a part, or one for each summary of an item of OpenAI's."""
    key, done = (_KEY, _DONE) if dialect == UI else ("providerOptions", dict[str, Any]())
    is_text = OWN.form(piece.native).get("text") == "empty" and not piece.text
    metadata = metadata_of("text" if is_text else "reasoning", piece.native)
    texts, encrypted = _summaries(piece)
    item = "azure" if "azure" in metadata else "openai"
    made: list[dict[str, Any]] = []
    for at, text in enumerate(texts):
        part: dict[str, Any] = {"type": "text" if is_text else "reasoning", "text": text, **done}
        if metadata:
            part[key] = metadata if at == 0 else {item: metadata[item]}
        if encrypted:
            part[key] = {
                **part[key],
                item: {**metadata[item], "reasoningEncryptedContent": encrypted[at]},
            }
        made.append(part)
    return [applied(piece.native, made[0], dialect), *made[1:]] if piece.native else made


def signed_alone(part: dict[str, Any]) -> str | None:
    """The signature of a thinking that has nothing beside Anthropic's; `None`: it has something else."""
    if len(part) != 4 or part.get("state") != "done":
        return None
    metadata = if_object(part.get(_KEY))
    fields = if_object(metadata.get("anthropic"))
    signature = fields.get("signature")
    return signature if len(metadata) == len(fields) == 1 and isinstance(signature, str) else None


def _summaries(piece: ThinkingPart) -> tuple[list[str], list[Any]]:
    """The texts of the parts of one thinking, and their encrypted contents where they are not all the same."""
    lengths = (
        if_list(if_object(RESPONSES.form(piece.native).get("pieces")).get("summary"))
        if piece.native
        else []
    )
    if len(lengths) < 2 or not isinstance(RESPONSES.fields(piece.native).get("id"), str):
        return [piece.text], []
    texts = split_joined(piece.text, [length for length in lengths if type(length) is int])
    if texts is None or len(texts) != len(lengths):
        return [piece.text], []
    encrypted = if_list(OWN.notes(piece.native).get("encrypted"))
    return texts, encrypted if len(encrypted) == len(texts) else []


def joined_reasoning(before: ThinkingPart, piece: ThinkingPart) -> ThinkingPart | None:
    """Two parts of one item as one piece; `None`: they are not, or one of them has something of its own."""
    one, other = before.native or {}, piece.native or {}
    if (
        "openai_responses" not in one
        or "openai_responses" not in other
        or "ai_sdk" in one
        or "ai_sdk" in other
    ):
        return None
    first, second = RESPONSES.fields(one), RESPONSES.fields(other)
    if first.get("id") != second.get("id") or OWN.form(other) or OWN.notes(other).get("left"):
        return None
    if OWN.form(one) or OWN.notes(one).get("left") or not (before.text and piece.text):
        return None
    texts, known = _summaries(before)
    encrypted = [
        *(known or [first.get("encrypted_content")] * len(texts)),
        second.get("encrypted_content"),
    ]
    lengths = [*[len(text) for text in texts], len(piece.text)]
    last = next((each for each in reversed(encrypted) if each), None)
    fields = {"id": first["id"], **({"encrypted_content": last} if last else {})}
    native = RESPONSES.note(fields, {"pieces": {"summary": lengths}}) or {}
    differ = (
        {} if all(each == last for each in encrypted) else (OWN.note(encrypted=encrypted) or {})
    )
    return ThinkingPart(BETWEEN.join([before.text, piece.text]), {**native, **differ})
