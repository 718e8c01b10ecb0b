"""Items that are results of tools ↔ `ToolResultPart`. An answer's type follows from that of its
call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_values import if_text, read_extra_fields, text_or_json
from dragoman.codec.media import dump_data_url
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
from dragoman.wires.openai_responses.tools import CALL_ITEMS, FUNCTION, choose_item_type

__all__ = [
    "RESULT_ITEMS",
    "read_result_type",
    "dump_provider_result",
    "dump_result",
    "load_provider_result",
    "load_result",
]

RESULT_ITEMS: Mapping[str, str] = {
    kind.answer: call for call, kind in CALL_ITEMS.items() if kind.answer is not None
}
"""Type of an answer → the type of the call that it answers."""
_WITH_BLOCKS = ("function_call_output", "custom_tool_call_output")


def read_result_type(part: ToolResultPart) -> str | None:
    """Type of the item that a result came in; `None`: it is that of its call's answer, or came
    through another wire."""
    kind = if_text(OWN.fields(part.native).get("type"))
    return kind if kind in RESULT_ITEMS else None


def load_result(item: JsonMap, calls: Mapping[str, ToolCallPart]) -> ToolResultPart | None:
    """An answer → the result; `None` where it names no call. `calls`: the calls so far by id, which
    have the tools' names."""
    id_ = item.get("call_id")
    if not isinstance(id_, str):
        return None
    type_ = item["type"]
    call = calls.get(id_)
    call_type = FUNCTION if call is None else choose_item_type(call)
    field = CALL_ITEMS[RESULT_ITEMS[type_]].result
    result, form = _loaded(item[field], type_) if field in item else (None, {"output": "absent"})
    known = ["call_id", field, *(["type"] if CALL_ITEMS[call_type].answer == type_ else [])]
    return ToolResultPart(
        id_,
        call.name if call else "",
        result,
        native=OWN.note(read_extra_fields(item, *known), form=form),
    )


def dump_result(part: ToolResultPart, id_: str, call_type: str) -> Json:
    """A result → the answer to a call of that type."""
    fields, form = OWN.fields(part.native), OWN.form(part.native).get("output")
    type_ = read_result_type(part) or CALL_ITEMS[call_type].answer or "function_call_output"
    item: Json = {"type": type_, "call_id": id_, **read_extra_fields(fields, "type", "call_id")}
    field = CALL_ITEMS[RESULT_ITEMS[type_]].result
    if form == "absent" and part.result is None:
        return item
    if form == "raw":
        return {**item, field: part.result}
    if type_ in _WITH_BLOCKS:
        output: Any = (
            [dump_block(piece) for piece in _pieces(part)] if part.is_content else _text(part)
        )
    elif type_ == "tool_search_output":
        output = part.result
        item = {"execution": "client", "status": "completed", **item}
    elif type_ == "computer_call_output":
        output = _screenshot(part)
    elif type_ == "shell_call_output":
        outcome = {"type": "exit", "exit_code": 1 if part.is_error else 0}
        output = [{"stdout": _text(part), "stderr": "", "outcome": outcome}]
    else:
        output = _text(part)
    if type_ == "apply_patch_call_output":
        item = {"status": "failed" if part.is_error else "completed", **item}
    return {**item, field: output}


def load_provider_result(
    item: JsonMap, calls: dict[str, ToolCallPart], unsent: JsonMap = {}
) -> ToolResultPart:
    """An item by which the provider answers itself → the result."""
    call_type = RESULT_ITEMS[item["type"]]
    field = CALL_ITEMS[call_type].result
    id_: Any = item.get("call_id")
    form = {} if isinstance(id_, str) else {"call_id": "absent"}
    if not isinstance(id_, str):  # it answers the latest call of its type
        id_ = next(
            (known for known in reversed(calls) if choose_item_type(calls[known]) == call_type), ""
        )
    name = calls[id_].name if id_ in calls else CALL_ITEMS[call_type].name or ""
    native = OWN.note(
        read_extra_fields(item, field, *([] if form else ["call_id"])), form=form, response=unsent
    )
    return ToolResultPart(id_, name, item.get(field), run_by="provider", native=native)


def dump_provider_result(part: ToolResultPart) -> Json:
    """The inverse of `load_provider_result`, of a result that came in an item of its own."""
    fields = OWN.fields(part.native)
    call_id = {} if OWN.form(part.native).get("call_id") == "absent" else {"call_id": part.id}
    return {**fields, **call_id, CALL_ITEMS[RESULT_ITEMS[fields["type"]]].result: part.result}


def _loaded(output: Any, type_: str) -> tuple[Any, dict[str, str]]:
    """What a tool returned, and its form, where it is neither a text nor blocks of a known
    shape."""
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


def _text(part: ToolResultPart) -> str:
    """A text as it is, anything else as JSON."""
    if part.is_content:
        return "".join([str(dump_block(piece).get("text", "")) for piece in _pieces(part)])
    return text_or_json(part.result)


def _screenshot(part: ToolResultPart) -> Any:
    image = _pieces(part)[0] if part.is_content else None
    if isinstance(image, (DataPart, LinkPart)):
        url = image.url if isinstance(image, LinkPart) else dump_data_url(image)
        return {"type": "computer_screenshot", "image_url": url}
    return part.result
