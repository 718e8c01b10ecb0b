"""Reads and writes the tool calls and tool results of model messages, which have a part for each."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeGuard, cast

from dragoman.codec.json_values import if_object, if_text
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.notes import CORE, MODEL, Part, flags, present
from dragoman.wires.ai_sdk_messages.read_parts import (
    MessageDialect,
    Reading,
    fault,
    finish,
    text_field,
)
from dragoman.wires.ai_sdk_messages.tool_output import (
    CONTENT,
    as_result,
    denial,
    denial_reason,
    dump_content,
    load_content,
    plain_output,
)
from dragoman.wires.ai_sdk_messages.ui_tool_parts import load_input, runner_of, unread_fields

__all__ = ["dump_model_call", "dump_model_result", "load_model_call", "load_model_result"]


def load_model_call(part: Part, reading: Reading, where: str) -> None:
    """Reads a call of an AI SDK model message."""
    id_, name = text_field(part, "toolCallId", where), text_field(part, "toolName", where)
    dialect = reading.dialect
    arguments = part.get(dialect.arguments)
    if len(part) == 4 and type(arguments) is dict:
        reading.add(ToolCallPart(id_, name, cast("Part", arguments)))
        return
    bare = ToolCallPart(id_, name, run_by=runner_of(part))
    call, form = load_input(bare, part, None, dialect.arguments)
    reading.take(call, part, dump_model_call, "tool", form=form)


def dump_model_call(call: ToolCallPart, dialect: MessageDialect) -> Part:
    """Returns the part of a call in an AI SDK model message."""
    part: Part = {"type": "tool-call", "toolCallId": call.id, "toolName": call.name}
    part[dialect.arguments] = call.arguments if call.state == "complete" else call.raw or ""
    unread = unread_fields(call, lambda bare: load_input(bare, part, None, dialect.arguments))
    if call.run_by == "provider" and dialect.name == MODEL:
        part["providerExecuted"] = True
    elif call.run_by == "provider":
        unread["run_by"] = "provider"
    return finish(part, call, "tool", dialect, unread)


def load_model_result(part: Part, reading: Reading, where: str) -> None:
    """Reads a result of an AI SDK model message."""
    id_, name = text_field(part, "toolCallId", where), text_field(part, "toolName", where)
    dialect, run_by = reading.dialect, "provider" if reading.is_model else "agent"
    output = part.get(dialect.output)
    if dialect.name == CORE:
        result, is_error, denied = as_result(output, CORE), part.get("isError") is True, False
    elif len(part) == 4 and not reading.is_model and _is_usual(output):
        reading.add(ToolResultPart(id_, name, output["value"]))
        return
    else:
        result, is_error, denied = _load_output(output, f"{where}.output")
    piece = ToolResultPart(id_, name, result, is_error, run_by=run_by, denied=denied)
    write = partial(dump_model_result, usual=run_by)
    reading.take(piece, part, write, "result")


def dump_model_result(
    result: ToolResultPart,
    dialect: MessageDialect,
    version: str | None = None,
    *,
    usual: str = "agent",
) -> Part:
    """Returns the part of a result in an AI SDK model message.

    Args:
        result: the result.
        dialect: table of the dialect.
        version: release of the library that reads it; None for any.
        usual: who runs the tools whose results stand in such a message.
    """
    part: Part = {
        "type": "tool-result",
        "toolCallId": result.id,
        "toolName": result.name,
    }
    unread: Part
    if result.run_by == usual:
        unread = {}
    else:
        unread = {"run_by": result.run_by}
    if dialect.name == CORE:
        part |= {"result": plain_output(result, CORE), **flags(isError=result.is_error)}
        unread |= flags(denied=result.denied)
        return finish(part, result, "result", dialect, unread)
    part["output"] = _dump_output(result, version)
    # The reader makes the result of a denied call from the reason alone, and takes no output of
    # parts for an error. What it would get wrong goes into the metadata.
    if result.denied and denial(denial_reason(result)) != (result.result, result.is_error):
        unread |= {"result": result.result, "is_error": result.is_error}
    elif result.is_error and result.is_content:
        unread["is_error"] = True
    return finish(part, result, "result", dialect, unread)


def _load_output(output: Any, where: str) -> tuple[Any, bool, bool]:
    """Returns what a tool of an AI SDK model message returned, if it failed, and if it was denied.

    Raises:
        HistoryError: the output has an unknown type.
    """
    fields = if_object(output)
    type_, value = fields.get("type"), fields.get("value")
    if type_ == "execution-denied":
        return *denial(if_text(fields.get("reason"))), True
    if type_ == CONTENT:
        return load_content(value, MODEL) or value, False, False
    if type_ not in ("text", "json", "error-text", "error-json"):
        fault(
            f"{where}.type must be text, json, content, error-text, error-json or execution-denied, not {type_!r:.50}"
        )
    return value, type_.startswith("error"), False


def _is_usual(output: Any) -> TypeGuard[Part]:
    """True if the tool output of an AI SDK model message is a JSON value under its usual type."""
    if type(output) is not dict:
        return False
    fields = cast("Part", output)
    if len(fields) != 2 or "value" not in fields:
        return False
    return fields.get("type") == ("text" if type(fields["value"]) is str else "json")


def _dump_output(result: ToolResultPart, version: str | None) -> Part:
    """Returns the output of a result in an AI SDK model message."""
    if result.denied:
        reason = denial_reason(result) or None
        if version != "v5":
            return {"type": "execution-denied", **present(reason=reason)}
        # ai 5 knows no refused calls.
        return {"type": "error-text", "value": ": ".join(filter(None, ["denied", reason]))}
    if result.is_content:
        return {"type": CONTENT, "value": dump_content(result.result, MODEL, version)}
    type_ = "json"
    if isinstance(result.result, str):
        type_ = "text"
    if result.is_error:
        type_ = f"error-{type_}"
    return {"type": type_, "value": result.result}
