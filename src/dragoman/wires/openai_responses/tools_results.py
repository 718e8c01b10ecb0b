"""Reads and writes items that are results of tools. The type of a result's item follows from the
type of its call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text, read_extra_fields, text_or_json
from dragoman.codec.marks import read_resume
from dragoman.codec.media import dump_data_url
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    ProviderPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.openai_responses.content import dump_block, load_block
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.tools import APPROVAL, CALL_ITEMS, FUNCTION, choose_item_type

__all__ = [
    "RESULT_ITEMS",
    "is_approved",
    "read_result_type",
    "dump_provider_result",
    "dump_result",
    "load_provider_result",
    "load_result",
]

RESULT_ITEMS: Mapping[str, str] = {
    call_item.result_item: call_type
    for call_type, call_item in CALL_ITEMS.items()
    if call_item.result_item is not None and call_type != APPROVAL
}
"""Type of a result's item → the type of the call that it answers."""
_WITH_BLOCKS = ("function_call_output", "custom_tool_call_output")
"""Types of results that may hold content blocks."""


def read_result_type(part: ToolResultPart) -> str | None:
    """Returns the type of Responses item that a result came in. None: it follows from the call, or
    the result came through another wire."""
    item_type = if_text(OWN.fields(part.native).get("type"))
    if item_type in RESULT_ITEMS:
        return item_type
    return None


def load_result(item: JsonMap, calls: Mapping[str, ToolCallPart]) -> ToolResultPart | None:
    """Reads a Responses item that answers a call. None if it names no call. `calls`: the calls so
    far by id, which have the tools' names."""
    call_id, item_type = item.get("call_id"), item["type"]
    if not isinstance(call_id, str):
        return None
    call = calls.get(call_id)
    call_type = FUNCTION if call is None else choose_item_type(call)
    field = CALL_ITEMS[RESULT_ITEMS[item_type]].result
    result, form = None, {"output": "absent"}
    if field in item:
        result, form = _load_output(item[field], item_type)
    read = ["call_id", field]
    if CALL_ITEMS[call_type].result_item == item_type:
        read.append("type")
    native = OWN.note(read_extra_fields(item, *read), form=form)
    return ToolResultPart(call_id, call.name if call else "", result, native=native)


def dump_result(part: ToolResultPart, id_: str, call_type: str) -> Json:
    """Writes the Responses item that answers a call of that type."""
    if call_type == APPROVAL:
        return _dump_approval(part)
    fields, form = OWN.fields(part.native), OWN.form(part.native).get("output")
    item_type = read_result_type(part) or CALL_ITEMS[call_type].result_item
    item_type = item_type or "function_call_output"
    item: Json = {
        "type": item_type,
        "call_id": id_,
        **read_extra_fields(fields, "type", "call_id"),
    }
    if form == "absent" and part.result is None:
        return item
    field = CALL_ITEMS[RESULT_ITEMS[item_type]].result
    if form == "raw":
        return {**item, field: part.result}
    if item_type == "tool_search_output":
        item = {"execution": "client", "status": "completed", **item}
    if item_type == "apply_patch_call_output":
        item = {"status": "failed" if part.is_error else "completed", **item}
    return {**item, field: _dump_output(part, item_type)}


def is_approved(part: ToolResultPart) -> bool:
    """True if a result approves the Responses call that it answers."""
    return _read_verdict(part).get("approved") is True


def _read_verdict(part: ToolResultPart) -> JsonMap:
    """Returns what a result says of a call that waits for an approval: that of the interrupt's
    answer, or else the JSON that the result holds, as other APIs' clients give it."""
    resume = read_resume(Interrupt(part.id, "approval"), part)
    if resume.status == "resolved":
        return if_object(resume.payload)
    try:
        return if_object(json_bytes.decode(_dump_text(part)))
    except ValueError:
        return {}


def _dump_approval(part: ToolResultPart) -> Json:
    """Writes the answer to an approval that the provider asks for. Whatever does not approve
    denies."""
    verdict = _read_verdict(part)
    approved = verdict.get("approved") is True
    item: Json = {
        "type": CALL_ITEMS[APPROVAL].result_item,
        "approval_request_id": part.id,
        "approve": approved,
    }
    if not approved and (reason := if_text(verdict.get("reason"))):
        item["reason"] = reason
    return item


def _dump_output(part: ToolResultPart, item_type: str) -> Any:
    """Writes what a tool returned, in the shape of that type of Responses item."""
    if item_type in _WITH_BLOCKS and part.is_content:
        return [dump_block(piece) for piece in _pieces(part)]
    if item_type == "tool_search_output":
        return part.result
    if item_type == "computer_call_output":
        return _dump_screenshot(part)
    if item_type == "shell_call_output":
        outcome = {"type": "exit", "exit_code": 1 if part.is_error else 0}
        return [{"stdout": _dump_text(part), "stderr": "", "outcome": outcome}]
    return _dump_text(part)


def load_provider_result(
    item: JsonMap, calls: dict[str, ToolCallPart], unsent: JsonMap = {}
) -> ToolResultPart:
    """Reads a Responses item by which the provider answers itself."""
    call_type = RESULT_ITEMS[item["type"]]
    call_item = CALL_ITEMS[call_type]
    read = [call_item.result]
    form: Json = {}
    call_id = item.get("call_id")
    if isinstance(call_id, str):
        read.append("call_id")
    else:
        # It answers the latest call of its type.
        form["call_id"] = "absent"
        call_id = ""
        for earlier_id, call in calls.items():
            if choose_item_type(call) == call_type:
                call_id = earlier_id
    name = calls[call_id].name if call_id in calls else call_item.name or ""
    native = OWN.note(read_extra_fields(item, *read), form=form, response=unsent)
    result = item.get(call_item.result)
    return ToolResultPart(call_id, name, result, run_by="provider", native=native)


def dump_provider_result(part: ToolResultPart) -> Json:
    """Writes the Responses item by which the provider answers itself, for a result that came in
    one."""
    fields = OWN.fields(part.native)
    call_id = {} if OWN.form(part.native).get("call_id") == "absent" else {"call_id": part.id}
    return {**fields, **call_id, CALL_ITEMS[RESULT_ITEMS[fields["type"]]].result: part.result}


def _load_output(output: Any, type_: str) -> tuple[Any, dict[str, str]]:
    """Returns the tool result in the `output` of a Responses item, and its form if that is neither
    a text nor blocks of a known shape."""
    if isinstance(output, str):
        return output, {}
    if type_ in _WITH_BLOCKS and isinstance(output, list) and output:
        blocks = cast("list[Any]", output)
        parts = [load_block(cast("Json", block)) for block in blocks if isinstance(block, dict)]
        if len(parts) == len(blocks) and not any(isinstance(part, ProviderPart) for part in parts):
            return tuple(parts), {}
    return cast("Any", output), {"output": "raw"}


def _pieces(part: ToolResultPart) -> tuple[TextPart | DataPart | LinkPart | FilePart, ...]:
    return cast("tuple[TextPart | DataPart | LinkPart | FilePart, ...]", part.result)


def _dump_text(part: ToolResultPart) -> str:
    """Returns a tool result's value as text for a Responses item: a text as it is, anything else as
    JSON."""
    if part.is_content:
        return "".join([str(dump_block(piece).get("text", "")) for piece in _pieces(part)])
    return text_or_json(part.result)


def _dump_screenshot(part: ToolResultPart) -> Any:
    """Returns the Responses output of a computer's tool call: its screenshot."""
    image = _pieces(part)[0] if part.is_content else None
    if isinstance(image, (DataPart, LinkPart)):
        url = image.url if isinstance(image, LinkPart) else dump_data_url(image)
        return {"type": "computer_screenshot", "image_url": url}
    return part.result
