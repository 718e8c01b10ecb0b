"""Writes messages of LangChain.

A message becomes one LangChain message for each result of a tool, which has no other content, and
one for all else (`dump_message`). What LangChain has no field for goes into
`additional_kwargs["dragoman"]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object, if_text, text_or_json
from dragoman.codec.opening import hide_openings
from dragoman.content import Content, MarkPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.formats.langchain.calls import dump_calls, dump_function_call
from dragoman.formats.langchain.content import dump_content, in_content
from dragoman.formats.langchain.envelope import (
    OWN,
    REMOVE,
    THINKING,
    TYPES,
    base_type,
    close_message,
)
from dragoman.formats.langchain.message_metadata import (
    OURS,
    Extra,
    as_was,
    dump_extra,
    dump_response,
    dump_usage,
    foreign,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Role

__all__ = ["dump_message", "dump_result"]

_NO_EXTRA = Extra()
Pieces = list[tuple[int, Content]]
"""Pieces of a message, each with its place in it."""
Results = list[tuple[int, ToolResultPart]]
"""Results of a message, each with its place in it."""


def dump_message(message: Message, losses: list[Loss], version: str | None) -> list[Json]:
    """Returns LangChain's messages for one message: one for each result, and one for all else."""
    [message] = hide_openings([message])
    content, results, marks = _split_content(message)
    extra = Extra(
        message.created_at, message.own_metadata, message.turn, native=foreign(message.native)
    )
    removals = [
        dump_remove(mark, version)
        for mark in marks
        if mark.kind == REMOVE and OWN.is_ours(mark.native)
    ]
    # Without a message of its own for the rest, the first result carries what concerns them all.
    carried = None if content else msgspec.structs.replace(extra, id=message.id, native={})
    tools = _dump_results(results, content, carried, losses, version)
    if not content and (tools or _holds_marks_alone(message, marks, removals)):
        return [*tools, *removals]
    main = _dump_main(message, content, extra, losses, version)
    if message.role is Role.MODEL:
        return [main, *tools, *removals]
    return [*tools, main, *removals]


def _split_content(message: Message) -> tuple[Pieces, Results, list[MarkPart]]:
    """Returns what stands in the content of a LangChain message and the results that do not, each
    with its place in it, and the marks."""
    content: Pieces = []
    results: Results = []
    marks: list[MarkPart] = []
    for index, piece in enumerate(message.content):
        if isinstance(piece, MarkPart):
            marks.append(piece)
        elif isinstance(piece, ToolResultPart) and not in_content(piece):
            results.append((index, piece))
        else:
            content.append((index, piece))
    return content, results, marks


def _dump_results(
    results: Results,
    content: Pieces,
    carried: Extra | None,
    losses: list[Loss],
    version: str | None,
) -> list[Json]:
    """Returns a message for each result. `content`: the other pieces; `carried`: what the first
    result says of the whole message."""
    tools: list[Json] = []
    for index, result in results:
        if content and any(part_index < index for part_index, _ in content):
            why = "LangChain's results are messages of their own, before what follows"
            losses.append(Loss(None, index, Lost.order, why))
        result_losses: list[Loss] = []
        tools.append(dump_result(result, carried or _NO_EXTRA, result_losses, version))
        losses += [msgspec.structs.replace(loss, part=index) for loss in result_losses]
        carried = None
    return tools


def _holds_marks_alone(
    message: Message, marks: Sequence[MarkPart], removals: Sequence[Json]
) -> bool:
    """True if a LangChain message is nothing but marks, so that none is written for it. A removal
    that was read by itself is noted as alone."""
    if not marks or len(marks) != len(message.content):
        return False
    return not removals or "alone" in OWN.form(marks[0].native)


def dump_remove(mark: MarkPart, version: str | None) -> Json:
    """Returns LangChain's message that removes another one."""
    return close_message(REMOVE, OWN.fields(mark.native), OWN.form(mark.native), version)


def _dump_main(
    message: Message,
    pieces: Pieces,
    extra: Extra,
    losses: list[Loss],
    version: str | None,
) -> Json:
    """Returns all of a LangChain message but results."""
    form = OWN.form(message.native)
    fields = OWN.fields(message.native)
    type_ = if_text(form.get("type")) or TYPES[message.role]
    if message.id is not None:
        fields["id"] = message.id
    kwargs = {**if_object(fields.get("additional_kwargs"))}
    if message.role is Role.MODEL:
        pieces, calls = _split_model_content(pieces, kwargs)
        fields |= dump_calls(calls)
        if message.usage is not None:
            fields["usage_metadata"] = dump_usage(message.usage, if_object(form.get("usage")))
        if "response_metadata" not in fields and (
            response := dump_response(message.origin, message.finish_reason)
        ):
            fields["response_metadata"] = response
    else:
        pieces = _drop_calls(pieces, losses)
    if own_fields := dump_extra(extra):
        kwargs[OURS] = own_fields
    if kwargs:
        fields["additional_kwargs"] = kwargs
    fields["content"] = dump_content(pieces, message.role, form, losses)
    return close_message(type_, as_was(message, fields, form), form, version)


def _drop_calls(pieces: Pieces, losses: list[Loss]) -> Pieces:
    """Returns the pieces of a message that is not the model's without calls, which are lost."""
    others: Pieces = []
    for index, piece in pieces:
        if isinstance(piece, ToolCallPart):
            why = "LangChain takes calls from the model alone"
            losses.append(Loss(None, index, Lost.tool_call, why))
        else:
            others.append((index, piece))
    return others


def _split_model_content(pieces: Pieces, kwargs: Json) -> tuple[Pieces, list[ToolCallPart]]:
    """Returns what stands in the content of a LangChain model message, and all of its calls. What
    has a field of `kwargs` goes there."""
    calls: list[ToolCallPart] = []
    content: Pieces = []
    last = _find_last_in_content(pieces)
    for index, piece in pieces:
        if _dump_to_kwargs(piece, kwargs):
            continue
        if isinstance(piece, ToolCallPart) and piece.run_by != "provider":
            calls.append(piece)
            # Calls before the last piece stand in the content too, or they are read behind it.
            if in_content(piece) or (index < last and piece.state == "complete"):
                content.append((index, piece))
        else:
            content.append((index, piece))
    return content, calls


def _find_last_in_content(pieces: Pieces) -> int:
    """Returns the place of the last piece of a LangChain message that the list of calls cannot
    hold; -1 if it can hold all."""
    indexes = [
        index for index, piece in pieces if not isinstance(piece, ToolCallPart) or in_content(piece)
    ]
    return max(indexes, default=-1)


def _dump_to_kwargs(piece: Content, kwargs: Json) -> bool:
    """Writes a piece of a LangChain message to the field of `kwargs` that it was read from. Returns
    False if it was read from none, or if another piece is in that field."""
    form_name = OWN.form(piece.native).get("as")
    if isinstance(piece, ThinkingPart) and form_name == THINKING and THINKING not in kwargs:
        kwargs[THINKING] = piece.text
        return True
    if isinstance(piece, ToolCallPart) and form_name == "function_call" and form_name not in kwargs:
        kwargs["function_call"] = dump_function_call(piece)
        return True
    return False


def dump_result(
    part: ToolResultPart, extra: Extra, losses: list[Loss], version: str | None
) -> Json:
    """Returns a tool result as a LangChain message of the tool."""
    fields, form = OWN.fields(part.native), OWN.form(part.native)
    type_ = if_text(form.get("type")) or "tool"
    if base_type(type_) != "function":
        fields["tool_call_id"] = part.id
    if part.name and form.get("name") != "absent":
        fields["name"] = part.name
    if part.is_error:
        fields["status"] = "error"
    if part.denied or part.native:
        extra = msgspec.structs.replace(extra, denied=part.denied, native=foreign(part.native))
    if extra is not _NO_EXTRA and (own_fields := dump_extra(extra)):
        fields["additional_kwargs"] = {
            **if_object(fields.get("additional_kwargs")),
            OURS: own_fields,
        }
    fields["content"] = _dump_result_content(part, form, losses)
    return close_message(type_, as_was(part, fields, form), form, version)


def _dump_result_content(part: ToolResultPart, form: JsonMap, losses: list[Loss]) -> Any:
    """Returns the field `content` of the LangChain message that a tool result is."""
    if part.is_content:
        pieces = list(enumerate(cast("tuple[Content, ...]", part.result)))
        return dump_content(pieces, Role.USER, {**form, "content": "list"}, losses)
    if form.get("content") == "raw" and isinstance(result := cast("object", part.result), list):
        return cast("list[Any]", result)
    return text_or_json(part.result)
