"""Calls and what the tools returned: parts of a response and of a request ↔ `ToolCallPart`,
`ToolResultPart`."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text
from dragoman.fold import arguments_text, parse_call
from dragoman.formats.pydantic_ai.media import Sent, load_file
from dragoman.formats.pydantic_ai.notes import OWN, apply_notes, with_form
from dragoman.formats.pydantic_ai.signatures import dump_call as dump_signed_call
from dragoman.formats.pydantic_ai.signatures import load_call as load_signed_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import TextPart, ToolCallPart, ToolResultPart

__all__ = [
    "CALLS",
    "RETURNS",
    "apply_result_notes",
    "dump_call",
    "dump_result",
    "load_call",
    "load_result",
]

CALLS = {"tool-call": "agent", "builtin-tool-call": "provider"}
RETURNS = {"tool-return": "agent", "retry-prompt": "agent", "builtin-tool-return": "provider"}
"""Kinds of parts → who ran the tool."""
_UNNAMED = "none"
"""Wire form: the name of the tool was empty."""
_ERRORS = ("failed", "retried", "interrupted", "denied")


def load_call(part: JsonMap, wire: str | None, *, cut: bool) -> ToolCallPart | None:
    """Returns a part that is a call; `None` where it is not of the documented shape. `cut`: the
    Pydantic AI response was."""
    id_, name, arguments = part.get("tool_call_id"), part.get("tool_name"), part.get("args")
    if not isinstance(id_, str) or not isinstance(name, str):
        return None
    who = cast("Any", CALLS[part["part_kind"]])
    if who == "agent":
        native = load_signed_call(part, wire)
    else:
        native = None
    if isinstance(arguments, dict):
        return ToolCallPart(id_, name, cast("Json", arguments), run_by=who, native=native)
    if not isinstance(arguments, str | None):
        return None
    native = with_form(native, args=_arguments_form(part))
    call = ToolCallPart(id_, name, run_by=who, native=native)
    if arguments is None:
        return call
    call = parse_call(call, arguments)
    if call.state == "invalid" and cut:
        return msgspec.structs.replace(call, state="cut")
    return call


def _arguments_form(part: JsonMap) -> str:
    """Returns the form of a Pydantic AI tool call's arguments that are no object: `text`, `null` or
    `absent`."""
    if part.get("args") is not None:
        return "text"
    if "args" in part:
        return "null"
    return "absent"


def dump_call(call: ToolCallPart) -> Json:
    """Returns a tool call as a part of a pydantic-ai response."""
    provider = call.run_by == "provider"
    if provider:
        part_kind = "builtin-tool-call"
    else:
        part_kind = "tool-call"
    written = {
        "tool_name": call.name,
        "tool_call_id": call.id,
        "part_kind": part_kind,
        **({} if provider else dump_signed_call(call)),
    }
    form = OWN.form(call.native).get("args")
    if call.state != "complete":
        written["args"] = call.raw or ""
    elif form == "text" or call.raw is not None:
        written["args"] = arguments_text(call)
    elif call.arguments or form not in ("null", "absent"):
        written["args"] = call.arguments
    elif form == "null":
        written["args"] = None
    return written


def load_result(part: JsonMap) -> ToolResultPart | None:
    """Returns a Pydantic AI part that is what a tool returned; `None` where it is not of the
    documented shape."""
    id_, name, outcome = part.get("tool_call_id"), part.get("tool_name"), part.get("outcome")
    if not isinstance(id_, str) or not isinstance(name, str) or "content" not in part:
        return None
    failed = part["part_kind"] == "retry-prompt" or outcome in _ERRORS
    result = part["content"]
    form = {} if name else {"name": _UNNAMED}
    if (parts := _load_return_parts(result)) is not None:
        form |= {"content": "one"} if isinstance(result, dict) else {}
        result = parts
    who = cast("Any", RETURNS[part["part_kind"]])
    return ToolResultPart(
        id_, name, result, failed, who, OWN.note(form=form), denied=outcome == "denied"
    )


def dump_result(part: ToolResultPart, outgoing: Sent, part_index: int) -> Json:
    """Returns a tool result as a part of a pydantic-ai request or response."""
    if part.run_by == "provider":
        part_kind = "builtin-tool-return"
    else:
        part_kind = "tool-return"
    if part.denied:
        outcome = "denied"
    elif part.is_error:
        outcome = "failed"
    else:
        outcome = None
    named = part.name or OWN.form(part.native).get("name") == _UNNAMED
    if named:
        name = part.name
    else:
        name = outgoing.names.get(part.id, "")
    written = {
        "tool_name": name,
        "tool_call_id": part.id,
        "content": _dump_return_content(part, outgoing, part_index),
        "part_kind": part_kind,
    }
    return {**written, **({"outcome": outcome} if outcome else {})}


def apply_result_notes(part: ToolResultPart, written: JsonMap) -> Json:
    """Returns the Pydantic AI part of a result as it was read, without an outcome that is not its
    own any more."""
    fields = apply_notes(part.native, written)
    outcome = fields.get("outcome")
    is_retry = fields["part_kind"] == "retry-prompt"
    if not is_retry and (
        (outcome in _ERRORS) != part.is_error or (outcome == "denied") != part.denied
    ):
        fields["outcome"] = written.get("outcome", "success")
    return fields


def _load_return_parts(content: object) -> tuple[Any, ...] | None:
    """Returns the tool return of Pydantic AI as text and files, one file at least; `None` where it
    is a JSON value. Beside files any other value is a text of JSON that keeps it."""
    if isinstance(content, list):
        items = cast("list[Any]", content)
    else:
        items = [content]
    files = [_load_return_file(item) for item in items]
    if not any(files):
        return None
    return tuple([file or _text(item) for file, item in zip(files, items, strict=True)])


def _text(item: object) -> TextPart:
    if isinstance(item, str) and item:
        return TextPart(item)
    return TextPart(json_bytes.encode(item).decode(), OWN.with_notes(None, whole=[item]))


def _load_return_file(item: object) -> Any:
    """Returns a Pydantic AI item of a tool's content as a file, or None."""
    fields = if_object(item)
    if if_text(fields.get("kind")).endswith("-url") and not (
        "media_type" in fields and fields["media_type"] != ""
    ):
        return None  # the library takes a link without a type for data of the tool's own
    if fields:
        return load_file(fields)
    return None


def _dump_return_content(part: ToolResultPart, outgoing: Sent, part_index: int) -> Any:
    """Returns a tool result as the content of a tool return: a value, or a list of Pydantic AI
    items."""
    if not part.is_content:
        return part.result
    pieces: tuple[Any, ...] = part.result
    if all(isinstance(piece, TextPart) for piece in pieces):
        outgoing.lose(
            part_index,
            Lost.texts,
            "the format takes a list of texts for data of the tool's; they are one text",
        )
        return "\n".join(piece.text for piece in pieces)
    items = [_dump_return_item(piece, outgoing, part_index) for piece in pieces]
    if len(items) == 1 and OWN.form(part.native).get("content") == "one":
        return items[0]
    return items


def _dump_return_item(piece: Any, outgoing: Sent, part_index: int) -> Any:
    """Returns a Pydantic AI item of a tool result as it was read, otherwise as it is written for
    its piece."""
    values = OWN.notes(piece.native).get("whole")
    if isinstance(piece, TextPart) and isinstance(values, list) and values:
        return cast("list[Any]", values)[0]
    item = outgoing.item(part_index, piece)
    fields = if_object(item)
    if fields and not isinstance(piece, TextPart):
        return {"media_type": None, **fields}
    return item
