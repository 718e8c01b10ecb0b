"""One message → LangChain's, of which results are messages of their own."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object, if_text, text_or_json
from dragoman.content import Content, MarkPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.formats.langchain.calls import dump_calls, dump_function_call
from dragoman.formats.langchain.carriage import (
    OURS,
    Extra,
    dump_extra,
    dump_response,
    dump_usage,
    foreign,
)
from dragoman.formats.langchain.content import dump_content, in_content
from dragoman.formats.langchain.envelope import OWN, REMOVE, THINKING, TYPES, base_type, closed
from dragoman.formats.langchain.exact import as_was
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Role

__all__ = ["dump_message", "dump_result"]


def dump_message(message: Message, losses: list[Loss], version: str | None) -> list[dict[str, Any]]:
    """A message → LangChain's: one for each result, and one for all else."""
    content: list[tuple[int, Content]] = []
    extra = Extra(
        message.created_at, message.own_metadata, message.turn, native=foreign(message.native)
    )
    results = [
        at
        for at, piece in enumerate(message.content)
        if isinstance(piece, ToolResultPart) and not in_content(piece)
    ]
    for at, piece in enumerate(message.content):
        if not isinstance(piece, MarkPart) and at not in results:
            content.append((at, piece))
    marks = [piece for piece in message.content if isinstance(piece, MarkPart)]
    out = [
        dump_remove(mark, version)
        for mark in marks
        if mark.kind == REMOVE and OWN.is_ours(mark.native)
    ]
    alone = (
        bool(marks)
        and len(marks) == len(message.content)
        and (not out or "alone" in OWN.form(marks[0].native))
    )
    tools: list[dict[str, Any]] = []
    for at in results:
        if any(place < at for place, _ in content):
            losses.append(
                Loss(
                    None,
                    at,
                    Lost.order,
                    "LangChain's results are messages of their own, before what follows",
                )
            )
        about = (
            msgspec.structs.replace(extra, id=message.id, native={})
            if not content and at == results[0]
            else Extra()
        )
        lost: list[Loss] = []
        tools.append(dump_result(cast("ToolResultPart", message.content[at]), about, lost, version))
        losses += [msgspec.structs.replace(loss, part=at) for loss in lost]
    if not content and (tools or alone):
        return [*tools, *out]
    main = _dump_main(message, content, extra, losses, version)
    return [main, *tools, *out] if message.role is Role.MODEL else [*tools, main, *out]


def dump_remove(mark: MarkPart, version: str | None) -> dict[str, Any]:
    return closed(REMOVE, OWN.fields(mark.native), OWN.form(mark.native), version)


def _dump_main(
    message: Message,
    pieces: list[tuple[int, Content]],
    extra: Extra,
    losses: list[Loss],
    version: str | None,
) -> dict[str, Any]:
    """All of a message but results."""
    form = OWN.form(message.native)
    fields = OWN.fields(message.native)
    type_ = if_text(form.get("type")) or TYPES[message.role]
    if message.id is not None:
        fields["id"] = message.id
    kwargs = {**if_object(fields.get("additional_kwargs"))}
    if message.role is Role.MODEL:
        pieces, calls = _apart(pieces, kwargs)
        fields |= dump_calls(calls)
        if message.usage is not None:
            fields["usage_metadata"] = dump_usage(message.usage, if_object(form.get("usage")))
        if "response_metadata" not in fields and (
            response := dump_response(message.origin, message.finish_reason)
        ):
            fields["response_metadata"] = response
    else:
        for at, piece in pieces:
            if isinstance(piece, ToolCallPart):
                losses.append(
                    Loss(None, at, Lost.tool_call, "LangChain takes calls from the model alone")
                )
        pieces = [each for each in pieces if not isinstance(each[1], ToolCallPart)]
    if ours := dump_extra(extra):
        kwargs[OURS] = ours
    if kwargs:
        fields["additional_kwargs"] = kwargs
    fields["content"] = dump_content(pieces, message.role, form, losses)
    return closed(type_, as_was(message, fields, form), form, version)


def _apart(
    pieces: list[tuple[int, Content]], kwargs: dict[str, Any]
) -> tuple[list[tuple[int, Content]], list[ToolCallPart]]:
    """What stands in the content of a model's message, and all of its calls. What has a field of `kwargs` goes there."""
    calls: list[ToolCallPart] = []
    content: list[tuple[int, Content]] = []
    placed = [
        at for at, piece in pieces if not isinstance(piece, ToolCallPart) or in_content(piece)
    ]
    last = max(
        placed, default=-1
    )  # calls before it stand in the content too, or they would be read behind it
    for at, piece in pieces:
        how = OWN.form(piece.native).get("as")
        if isinstance(piece, ThinkingPart) and how == THINKING and THINKING not in kwargs:
            kwargs[THINKING] = piece.text
        elif isinstance(piece, ToolCallPart) and how == "function_call" and how not in kwargs:
            kwargs["function_call"] = dump_function_call(piece)
        elif isinstance(piece, ToolCallPart) and piece.run_by != "provider":
            calls.append(piece)
            if in_content(piece) or (at < last and piece.state == "complete"):
                content.append((at, piece))
        else:
            content.append((at, piece))
    return content, calls


def dump_result(
    part: ToolResultPart, extra: Extra, losses: list[Loss], version: str | None
) -> dict[str, Any]:
    """A result → a message of the tool's."""
    fields, form = OWN.fields(part.native), OWN.form(part.native)
    type_ = if_text(form.get("type")) or "tool"
    if base_type(type_) != "function":
        fields["tool_call_id"] = part.id
    if part.name and form.get("name") != "absent":
        fields["name"] = part.name
    if part.is_error:
        fields["status"] = "error"
    if ours := dump_extra(
        msgspec.structs.replace(extra, denied=part.denied, native=foreign(part.native))
    ):
        fields["additional_kwargs"] = {**if_object(fields.get("additional_kwargs")), OURS: ours}
    if part.is_content:
        pieces = list(enumerate(cast("tuple[Content, ...]", part.result)))
        fields["content"] = dump_content(pieces, Role.USER, {**form, "content": "list"}, losses)
    elif form.get("content") == "raw" and isinstance(result := cast("object", part.result), list):
        fields["content"] = cast("list[Any]", result)
    else:
        fields["content"] = text_or_json(part.result)
    return closed(type_, as_was(part, fields, form), form, version)
