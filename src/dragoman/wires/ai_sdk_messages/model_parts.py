"""Parts of model messages ↔ pieces: texts, thinking, calls, results. Those of ai 4 (`core`) have other names for some fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

from dragoman.codec.json_values import if_object, if_text
from dragoman.message import ProviderPart, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.failures import denial, denial_reason
from dragoman.wires.ai_sdk_messages.model_media import KEY, load_file
from dragoman.wires.ai_sdk_messages.outputs import CONTENT, dump_content, load_content
from dragoman.wires.ai_sdk_messages.own import OWN, applied
from dragoman.wires.ai_sdk_messages.parts import dump_reasoning as dump_ui_reasoning
from dragoman.wires.ai_sdk_messages.parts import joined_reasoning
from dragoman.wires.ai_sdk_messages.reading import Loader, Reading, fault, load_mark, text_field
from dragoman.wires.ai_sdk_messages.tools import load_input, unread_fields

__all__ = ["CORE", "LOADERS", "MODEL", "dump_call", "dump_reasoning", "dump_result", "dump_text"]

MODEL, CORE = "model", "core"
"""Names of the dialects: ai 5 and later, ai 4."""
_INPUT = {MODEL: "input", CORE: "args"}
_RESULT = {MODEL: "output", CORE: "result"}
_ANTHROPIC = "anthropic"
_GOOGLE_TEXT = "google"


def _load_text(part: dict[str, Any], it: Reading, where: str) -> None:
    if not text_field(part, "text", where):
        load_mark(part, it, where)
        return
    if len(part) == 2:
        it.add(TextPart(part["text"]))
        return
    it.add(
        it.read(TextPart(part["text"]), part, lambda made: dump_text(made, it.dialect), "text", KEY)
    )


def dump_text(piece: TextPart, dialect: str) -> dict[str, Any]:
    """A text → its part."""
    made: dict[str, Any] = {"type": "text", "text": piece.text}
    if piece.native and (metadata := metadata_of("text", piece.native)):
        made[KEY] = metadata
    return applied(piece.native, made, dialect)


def _load_reasoning(part: dict[str, Any], it: Reading, where: str) -> None:
    text = text_field(part, "text", where)
    extra: Mapping[str, Any] = {}
    if it.dialect == CORE and isinstance(part.get("signature"), str):
        extra, it.provider = (
            {_ANTHROPIC: {"signature": part["signature"]}},
            it.provider or _ANTHROPIC,
        )
    piece = it.read(
        ThinkingPart(text),
        part,
        lambda made: _reasoning(made, it.dialect)[0],
        "reasoning",
        KEY,
        {},
        extra,
    )
    before = it.pieces[-1] if it.pieces else None
    both = joined_reasoning(before, piece) if isinstance(before, ThinkingPart) else None
    if both is None:
        it.add(piece)
    else:
        it.pieces[-1] = both


def _load_redacted(part: dict[str, Any], it: Reading, where: str) -> None:
    extra = {_ANTHROPIC: {"type": "redacted_thinking", "data": text_field(part, "data", where)}}
    it.provider = it.provider or _ANTHROPIC
    it.add(
        it.read(
            ThinkingPart(""),
            part,
            lambda made: _reasoning(made, it.dialect)[0],
            "reasoning",
            KEY,
            {},
            extra,
        )
    )


def dump_reasoning(pieces: Sequence[ThinkingPart], dialect: str) -> list[dict[str, Any]]:
    """Thinking → its parts."""
    return [part for piece in pieces for part in _reasoning(piece, dialect)]


def _reasoning(piece: ThinkingPart, dialect: str) -> list[dict[str, Any]]:
    own = if_object((piece.native or {}).get(_ANTHROPIC))
    if dialect == CORE and isinstance(own.get("signature"), str):
        made: dict[str, Any] = {
            "type": "reasoning",
            "text": piece.text,
            "signature": own["signature"],
        }
    elif dialect == CORE and own.get("type") == "redacted_thinking":
        made = {"type": "redacted-reasoning", "data": own.get("data")}
    else:
        return dump_ui_reasoning(piece, dialect)
    metadata = {
        key: value
        for key, value in metadata_of("reasoning", piece.native).items()
        if key != _ANTHROPIC
    }
    return [applied(piece.native, {**made, KEY: metadata} if metadata else made, dialect)]


def _load_call(part: dict[str, Any], it: Reading, where: str) -> None:
    id_, name = text_field(part, "toolCallId", where), text_field(part, "toolName", where)
    given = part.get(_INPUT[it.dialect])
    if len(part) == 4 and type(given) is dict:
        it.add(ToolCallPart(id_, name, cast("dict[str, Any]", given)))
        return
    by_provider = part.get("providerExecuted") is True
    empty = ToolCallPart(id_, name, run_by="provider" if by_provider else "agent")
    call, form = load_input(empty, part, None, _INPUT[it.dialect])
    it.add(it.read(call, part, lambda made: dump_call(made, it.dialect), "tool", KEY, form))


def dump_call(call: ToolCallPart, dialect: str) -> dict[str, Any]:
    """A call → its part."""
    made: dict[str, Any] = {"type": "tool-call", "toolCallId": call.id, "toolName": call.name}
    made[_INPUT[dialect]] = call.arguments if call.state == "complete" else call.raw or ""
    if call.run_by == "provider" and dialect == MODEL:
        made["providerExecuted"] = True
    fields = unread_fields(call, lambda bare: load_input(bare, made, None, _INPUT[dialect]))
    if call.run_by == "provider" and dialect == CORE:
        fields["run_by"] = "provider"
    if metadata := metadata_of("tool", call.native, fields):
        made[KEY] = metadata
    return applied(call.native, made, dialect)


def _load_result(part: dict[str, Any], it: Reading, where: str) -> None:
    id_, name = text_field(part, "toolCallId", where), text_field(part, "toolName", where)
    field = _RESULT[it.dialect]
    output = part.get(field)
    if len(part) == 4 and it.dialect == MODEL and not it.is_model and _is_usual(output):
        it.add(ToolResultPart(id_, name, output["value"]))
        return
    if it.dialect == CORE:
        result, is_error, denied = part.get(field), part.get("isError") is True, False
        parts = load_content(if_object(result).get("value"), CORE) if _is_content(result) else None
        result = result if parts is None else parts
    else:
        result, is_error, denied = _output(part.get(field), f"{where}.{field}", it.dialect)
    who = "provider" if it.is_model else "agent"
    piece = ToolResultPart(id_, name, result, is_error, run_by=who, denied=denied)
    it.add(
        it.read(piece, part, lambda made: dump_result(made, it.dialect, usual=who), "result", KEY)
    )


def dump_result(
    result: ToolResultPart, dialect: str, version: str | None = None, *, usual: str = "agent"
) -> dict[str, Any]:
    """A result → its part. `usual`: who runs the tools whose results stand there."""
    made: dict[str, Any] = {"type": "tool-result", "toolCallId": result.id, "toolName": result.name}
    fields: dict[str, Any] = {} if result.run_by == usual else {"run_by": result.run_by}
    if dialect == MODEL:
        made["output"] = _dump_output(result, version)
        if result.denied and denial(denial_reason(result)) != (result.result, result.is_error):
            fields |= {"result": result.result, "is_error": result.is_error}
        elif result.is_error and result.is_content:
            fields |= {"is_error": True}
    else:
        made["result"] = (
            {"type": CONTENT, "value": dump_content(result.result, CORE)}
            if result.is_content
            else result.result
        )
        if result.is_error:
            made["isError"] = True
        if result.denied:
            fields["denied"] = True
    if metadata := metadata_of("result", result.native, fields):
        made[KEY] = metadata
    return applied(result.native, made, dialect)


def _output(output: Any, where: str, dialect: str) -> tuple[Any, bool, bool]:
    """The output of a tool → what it returned, whether it failed, whether somebody refused it."""
    fields = if_object(output)
    kind, value = fields.get("type"), fields.get("value")
    if kind == "execution-denied":
        return *denial(if_text(fields.get("reason"))), True
    if kind == CONTENT:
        parts = load_content(value, dialect)
        return (value if parts is None else parts), False, False
    if kind not in ("text", "json", "error-text", "error-json"):
        fault(
            f"{where}.type must be text, json, content, error-text, error-json or execution-denied, not {kind!r:.50}"
        )
    return value, kind.startswith("error"), False


def _is_usual(output: Any) -> TypeGuard[dict[str, Any]]:
    """Whether an output is a value of JSON, and named as it would be."""
    if (
        type(output) is not dict
        or len(fields := cast("dict[str, Any]", output)) != 2
        or "value" not in fields
    ):
        return False
    return fields.get("type") == ("text" if type(fields["value"]) is str else "json")


def _dump_output(result: ToolResultPart, version: str | None) -> dict[str, Any]:
    if result.denied:
        reason = denial_reason(result)
        if version == "v5":  # which knows no refused calls
            return {"type": "error-text", "value": f"denied: {reason}" if reason else "denied"}
        return {"type": "execution-denied", **({"reason": reason} if reason else {})}
    if result.is_content:
        return {"type": CONTENT, "value": dump_content(result.result, MODEL, version)}
    kind = "text" if isinstance(result.result, str) else "json"
    return {"type": f"error-{kind}" if result.is_error else kind, "value": result.result}


def _is_content(result: Any) -> bool:
    fields = if_object(result)
    return len(fields) == 2 and fields.get("type") == CONTENT


def _load_whole(part: dict[str, Any], it: Reading, where: str) -> None:  # noqa: ARG001 whatever it holds
    own = {key: value for key, value in part.items() if key != "type"}
    it.add(ProviderPart(part["type"], OWN.note(own, {"in": it.dialect}, mark=True)))


LOADERS: Mapping[str, Loader] = {
    "text": _load_text,
    "reasoning": _load_reasoning,
    "redacted-reasoning": _load_redacted,
    "image": load_file,
    "file": load_file,
    "tool-call": _load_call,
    "tool-result": _load_result,
    "custom": _load_whole,
    "reasoning-file": _load_whole,
}
"""Type of a part → what reads it. Any other is a mark."""
