"""Items that are calls of tools ↔ `ToolCallPart`, and what of their results stands in them.

A call that the client must answer is ours to run, whatever its type: a function, a custom tool (its text is the
argument `input`), a shell, a patch, a computer. What the provider runs itself is `run_by="provider"`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, rest
from dragoman.codec.media import data_url, decoded, from_url
from dragoman.fold import arguments_json, parse_call
from dragoman.message import Content, DataPart, ToolCallPart, ToolResultPart
from dragoman.wires.openai_responses.quirks import OWN

__all__ = [
    "FUNCTION",
    "KINDS",
    "Kind",
    "arguments_of",
    "dump_call",
    "hold_result",
    "holds_result",
    "kind_of",
    "load_call",
    "runner",
]

FUNCTION = "function_call"
_TEXTUAL = (FUNCTION, "mcp_call")
"""Types whose arguments are always a text."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A type of item that is a call."""

    name: str | None = None
    """The tool's name; `None`: the item tells it."""
    held: tuple[str, ...] = ()
    """Fields of the item that are the arguments, where it has no text `arguments`."""
    answer: str | None = None
    """Type of the item that answers it; `None`: the provider runs it, and the item holds the result too."""
    result: str = "output"
    """Field that holds the result: of the answer, or of the item itself."""


KINDS: Mapping[str, Kind] = {
    FUNCTION: Kind(answer="function_call_output"),
    "custom_tool_call": Kind(held=("input",), answer="custom_tool_call_output"),
    "local_shell_call": Kind(name="local_shell", held=("action",), answer="local_shell_call_output"),
    "shell_call": Kind(name="shell", held=("action",), answer="shell_call_output"),
    "apply_patch_call": Kind(name="apply_patch", held=("operation",), answer="apply_patch_call_output"),
    "computer_call": Kind(name="computer", held=("action", "actions"), answer="computer_call_output"),
    "tool_search_call": Kind(name="tool_search", held=("arguments",), answer="tool_search_output", result="tools"),
    "web_search_call": Kind(name="web_search", held=("action",)),
    "file_search_call": Kind(name="file_search", held=("queries",), result="results"),
    "code_interpreter_call": Kind(name="code_interpreter", held=("code", "container_id"), result="outputs"),
    "image_generation_call": Kind(name="image_generation", held=("revised_prompt", "prompt"), result="result"),
    "mcp_call": Kind(),
}
_IMAGES = {"iVBOR": "png", "/9j/": "jpeg", "UklGR": "webp", "R0lGO": "gif"}
"""How an image's base64 begins → its format."""


def runner(item: Mapping[str, Any]) -> Literal["agent", "provider"]:
    """Who runs the tool that an item calls."""
    environment = item.get("environment")
    hosted = isinstance(environment, dict) and "container" in str(cast("dict[str, Any]", environment).get("type"))
    kind = KINDS[item["type"]]
    return "provider" if kind.answer is None or hosted or item.get("execution") == "server" else "agent"


def kind_of(call: ToolCallPart) -> str:
    """Type of the item that a call is told as. A provider's call without one came through another wire."""
    kind = if_text(OWN.fields(call.native).get("type"))
    return kind if kind in KINDS else FUNCTION if call.run_by != "provider" else "mcp_call"


def load_call(item: Mapping[str, Any], unsent: Mapping[str, Any] | None = None, *, images: int = 0) -> list[Content]:
    """An item that is a call → the call, then what the item holds of its result. Nothing where it has no id or name.

    `unsent`: fields that a response tells and no request may; `None`: it stands in a request, which is kept to the
    letter. `images`: how many were made before.
    """
    kind = KINDS[item["type"]]
    run_by = runner(item)
    id_field = "call_id" if run_by == "agent" else "id"
    id_ = item.get(id_field)
    name = item.get("name", kind.name)
    if not isinstance(id_, str) or not isinstance(name, str) or (run_by == "agent" and not id_):
        return []
    how: dict[str, Any] = {"named": True} if "name" in item and kind.name is not None else {}
    call, read = arguments_of(ToolCallPart(id_, name, run_by=run_by), item)
    if item["type"] not in _TEXTUAL and isinstance(item.get("arguments"), str):
        how["text"] = True
    elif unsent is None and item["type"] in _TEXTUAL and arguments_json(call) != item.get("arguments", ...):
        how |= {"arguments": item["arguments"]} if "arguments" in item else {"without": ["arguments"]}
    result, held = _result(call, item, kind, images) if run_by == "provider" else ([], [])
    known = [id_field, "name", *read, *held, *(["type"] if item["type"] == FUNCTION else [])]
    native = OWN.note(rest(item, *known), form=how, response=unsent)
    return [msgspec.structs.replace(call, native=native), *result]


def arguments_of(call: ToolCallPart, item: Mapping[str, Any]) -> tuple[ToolCallPart, list[str]]:
    """The call with its arguments, and the fields of the item that told them."""
    told = item.get("arguments")
    if isinstance(told, str):
        return _parsed(call, told), ["arguments"]
    if item["type"] in _TEXTUAL:
        object_ = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
        return msgspec.structs.replace(call, arguments=object_), ["arguments"]
    found = [field for field in KINDS[item["type"]].held if field in item]
    return msgspec.structs.replace(call, arguments={field: item[field] for field in found}), found


def dump_call(call: ToolCallPart, id_: str, name: str) -> dict[str, Any]:
    """A call → its item, with its own fields, under that id and name."""
    own, how = OWN.fields(call.native), OWN.form(call.native)
    type_ = kind_of(call)
    kind = KINDS[type_]
    item = {"type": type_, **rest(own, "type"), "call_id" if call.run_by != "provider" else "id": id_}
    if kind.name is None or "named" in how:
        item["name"] = name
    if type_ not in _TEXTUAL and "text" not in how and set(call.arguments) <= set(kind.held):
        return item | call.arguments
    item["arguments"] = arguments_json(call)
    if "arguments" in how or "arguments" in if_list(how.get("without")):
        older = how.get("arguments") == "absent" and call.state == "complete"  # a stored note of no field at all
        told = {"arguments": how["arguments"]} if "arguments" in how and not older else {}
        again, _ = arguments_of(ToolCallPart(call.id, call.name), {"type": type_, **told})
        if (again.state, again.arguments) == (call.state, call.arguments):  # it still says what the call says
            del item["arguments"]
            item |= told
    return item


def holds_result(item: Mapping[str, Any] | None, id_: Any) -> bool:
    """Whether an item is a call of that id, which may hold what came of it."""
    return item is not None and item.get("id") == id_ and item.get("type") in KINDS


def hold_result(item: dict[str, Any], result: ToolResultPart | DataPart) -> None:
    """Writes into a call's item what came of it."""
    field = KINDS[item["type"]].result
    if isinstance(result, DataPart) and (held := if_object(OWN.form(result.native).get("output"))):
        output = {**if_object(held.get("fields")), "url": data_url(result)}
        place, outputs = held.get("place"), if_list(item.get(field))
        place = place if type(place) is int else len(outputs)
        item[field] = [*outputs[:place], output, *outputs[place:]]
    elif isinstance(result, DataPart):
        item["result"] = b64encode(result.data).decode()
    else:
        told = result.result
        if isinstance(told, list):
            told = list(cast("list[Any]", told))  # images may join it
        item["error" if OWN.form(result.native).get("field") == "error" else field] = told


def _parsed(call: ToolCallPart, text: str) -> ToolCallPart:
    """The call with its arguments from text; a value that is no object is the argument `value`."""
    parsed = parse_call(call, text)
    if parsed.state == "invalid":
        try:
            value = json_bytes.decode(text)
        except ValueError:
            return parsed
        return msgspec.structs.replace(call, arguments={"value": value}, raw=None, state="complete")
    return parsed


def _outputs(call: ToolCallPart, outputs: list[dict[str, Any]], images: int) -> list[Content]:
    """What code put out: what is no image, and then the images that came with their bytes, with the place of each."""
    shown: list[Content] = []
    left: list[Any] = []
    for place, output in enumerate(outputs):
        data = from_url(if_text(output.get("url")))
        if isinstance(data, DataPart) and data.data:
            how = {"place": place, "fields": rest(output, "url")}
            name = f"image_{images + len(shown)}.{data.mime_type.rpartition('/')[2]}"
            shown.append(DataPart(data.data, data.mime_type, name, OWN.note(form={"call": call.id, "output": how})))
        else:
            left.append(output)
    return [ToolResultPart(call.id, call.name, left, run_by="provider"), *shown]


def _result(call: ToolCallPart, item: Mapping[str, Any], kind: Kind, images: int) -> tuple[list[Content], list[str]]:
    """What an item holds of its result, and the fields that hold it."""
    told = item.get(kind.result)
    if item["type"] == "image_generation_call":
        if (data := decoded(told)) is None or not data:
            return [], []
        form = if_text(item.get("output_format")) or next(
            (f for head, f in _IMAGES.items() if str(told).startswith(head)), "png"
        )
        image = DataPart(data, f"image/{form}", f"image_{images}.{form}", OWN.note(form={"call": call.id}))
        return [image], [kind.result]
    if item["type"] == "code_interpreter_call" and (outputs := if_objects(told)):
        return _outputs(call, outputs, images), [kind.result]
    if told is not None:
        return [ToolResultPart(call.id, call.name, told, run_by="provider", native=None)], [kind.result]
    if (error := item.get("error")) is not None:
        native = OWN.note(form={"field": "error"})
        return [ToolResultPart(call.id, call.name, error, True, "provider", native)], ["error"]
    return [], []
