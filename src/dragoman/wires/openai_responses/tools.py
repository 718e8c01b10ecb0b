"""Tools of a request ↔ `ToolSpec` (functions) and `ServerTool` (all others); items that are calls ↔
`ToolCallPart`.

A call that the client must answer is ours to run, whatever its type: a function, a custom tool (its
text is the argument `input`), a shell, a patch, a computer. What the provider runs itself is
`run_by="provider"`, and its item holds what came of it too.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.ids import TOOL_NAMES
from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, read_extra_fields
from dragoman.codec.media import decode_base64, dump_data_url, load_url
from dragoman.codec.outgoing import Outgoing
from dragoman.errors import HistoryError
from dragoman.fold import arguments_json, parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import Content, DataPart, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.openai_responses.quirks import OWN, Quirks

__all__ = [
    "FUNCTION",
    "CALL_ITEMS",
    "CallItemType",
    "load_arguments",
    "dump_call",
    "dump_tool_choice",
    "dump_tools",
    "write_result",
    "is_call_item",
    "choose_item_type",
    "load_call",
    "load_tool_choice",
    "load_tools",
    "find_runner",
]

_NO_ARGUMENTS: Json = {"type": "object", "properties": {}}
_NO_STORES = {"type": "file_search"}
_CHOICES = ("auto", "none", "required")
FUNCTION = "function_call"
_TEXTUAL = (FUNCTION, "mcp_call")
"""Types whose arguments are always a text."""


class CallItemType(msgspec.Struct, frozen=True, kw_only=True):
    """A type of item that is a call."""

    name: str | None = None
    """The tool's name; `None`: the item tells it."""
    held: tuple[str, ...] = ()
    """Fields of the item that are the arguments, where it has no text `arguments`."""
    answer: str | None = None
    """Type of the item that answers it; `None`: the provider runs it, and the item holds the result
    too."""
    result: str = "output"
    """Field that holds the result: of the answer, or of the item itself."""


CALL_ITEMS: Mapping[str, CallItemType] = {
    FUNCTION: CallItemType(answer="function_call_output"),
    "custom_tool_call": CallItemType(held=("input",), answer="custom_tool_call_output"),
    "local_shell_call": CallItemType(
        name="local_shell", held=("action",), answer="local_shell_call_output"
    ),
    "shell_call": CallItemType(name="shell", held=("action",), answer="shell_call_output"),
    "apply_patch_call": CallItemType(
        name="apply_patch", held=("operation",), answer="apply_patch_call_output"
    ),
    "computer_call": CallItemType(
        name="computer", held=("action", "actions"), answer="computer_call_output"
    ),
    "tool_search_call": CallItemType(
        name="tool_search", held=("arguments",), answer="tool_search_output", result="tools"
    ),
    "web_search_call": CallItemType(name="web_search", held=("action",)),
    "file_search_call": CallItemType(name="file_search", held=("queries",), result="results"),
    "code_interpreter_call": CallItemType(
        name="code_interpreter", held=("code", "container_id"), result="outputs"
    ),
    "image_generation_call": CallItemType(
        name="image_generation", held=("revised_prompt", "prompt"), result="result"
    ),
    "mcp_call": CallItemType(),
}
_IMAGES = {"iVBOR": "png", "/9j/": "jpeg", "UklGR": "webp", "R0lGO": "gif"}
"""How an image's base64 begins → its format."""


def load_tools(tools: Sequence[Any]) -> tuple[ToolSpec | ServerTool, ...]:
    """`tools` of a request.

    Raises:
        HistoryError: one of them is no tool.
    """
    return tuple([_load_tool(tool) for tool in tools])


def dump_tools(tools: Sequence[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """The inverse, under the names that tools are sent by. One that cannot be sent is noted as a
    loss."""
    dumped = [_dump_tool(tool, out) for tool in tools]
    kept = [tool for tool in dumped if tool != _NO_STORES]
    if len(kept) < len(dumped):
        out.lose(
            None,
            None,
            Lost.tool,
            "it needs vector_store_ids, the stores to search in",
            "file_search",
        )
    return kept


def load_tool_choice(value: Any) -> str | None:
    """The choice of a tool, where it is a plain one."""
    match value:
        case str() if value in _CHOICES:
            return value
        case {"type": "function", "name": str(name), **others} if (
            name not in _CHOICES and not others
        ):
            return name
        case _:
            return None


def dump_tool_choice(choice: str, out: Outgoing[Quirks]) -> str | Json:
    """The inverse."""
    return choice if choice in _CHOICES else {"type": "function", "name": out.name(choice)}


def find_runner(item: JsonMap) -> Literal["agent", "provider"]:
    """Who runs the tool that an item calls."""
    environment = item.get("environment")
    hosted = isinstance(environment, dict) and "container" in str(
        cast("Json", environment).get("type")
    )
    kind = CALL_ITEMS[item["type"]]
    return (
        "provider"
        if kind.answer is None or hosted or item.get("execution") == "server"
        else "agent"
    )


def choose_item_type(call: ToolCallPart) -> str:
    """Type of the item that a call is. A provider's call without one came through another wire."""
    kind = if_text(OWN.fields(call.native).get("type"))
    return kind if kind in CALL_ITEMS else FUNCTION if call.run_by != "provider" else "mcp_call"


def load_call(item: JsonMap, unsent: JsonMap | None = None, *, images: int = 0) -> list[Content]:
    """An item that is a call → the call, then what the item holds of its result. Nothing where it
    has no id or name.

    `unsent`: fields that a response has and no request may; `None`: it stands in a request, which
    is kept to the letter. `images`: how many were made before.
    """
    kind = CALL_ITEMS[item["type"]]
    run_by = find_runner(item)
    id_field = "call_id" if run_by == "agent" else "id"
    id_ = item.get(id_field)
    name = item.get("name", kind.name)
    if not isinstance(id_, str) or not isinstance(name, str) or (run_by == "agent" and not id_):
        return []
    form: Json = {"named": True} if "name" in item and kind.name is not None else {}
    call, read = load_arguments(ToolCallPart(id_, name, run_by=run_by), item)
    if item["type"] not in _TEXTUAL and isinstance(item.get("arguments"), str):
        form["text"] = True
    elif (
        unsent is None
        and item["type"] in _TEXTUAL
        and arguments_json(call) != item.get("arguments", ...)
    ):
        form |= (
            {"arguments": item["arguments"]} if "arguments" in item else {"without": ["arguments"]}
        )
    result, held = _result(call, item, kind, images) if run_by == "provider" else ([], [])
    known = [id_field, "name", *read, *held, *(["type"] if item["type"] == FUNCTION else [])]
    native = OWN.note(read_extra_fields(item, *known), form=form, response=unsent)
    return [msgspec.structs.replace(call, native=native), *result]


def load_arguments(call: ToolCallPart, item: JsonMap) -> tuple[ToolCallPart, list[str]]:
    """The call with its arguments, and the fields of the item that hold them."""
    value = item.get("arguments")
    if isinstance(value, str):
        return _parsed(call, value), ["arguments"]
    if item["type"] in _TEXTUAL:
        return msgspec.structs.replace(call, arguments=if_object(value)), ["arguments"]
    found = [field for field in CALL_ITEMS[item["type"]].held if field in item]
    return msgspec.structs.replace(call, arguments={field: item[field] for field in found}), found


def dump_call(call: ToolCallPart, id_: str, name: str) -> Json:
    """A call → its item, with its own fields, under that id and name."""
    fields, form = OWN.fields(call.native), OWN.form(call.native)
    type_ = choose_item_type(call)
    kind = CALL_ITEMS[type_]
    item = {
        "type": type_,
        **read_extra_fields(fields, "type"),
        "call_id" if call.run_by != "provider" else "id": id_,
    }
    if kind.name is None or form.get("named"):
        item["name"] = name
    if type_ not in _TEXTUAL and "text" not in form and set(call.arguments) <= set(kind.held):
        return item | call.arguments
    item["arguments"] = arguments_json(call)
    if "arguments" in form or "arguments" in if_list(form.get("without")):
        older = (
            form.get("arguments") == "absent" and call.state == "complete"
        )  # a stored note of no field at all
        value = {"arguments": form["arguments"]} if "arguments" in form and not older else {}
        again, _ = load_arguments(ToolCallPart(call.id, call.name), {"type": type_, **value})
        if (again.state, again.arguments) == (
            call.state,
            call.arguments,
        ):  # it still says what the call says
            del item["arguments"]
            item |= value
    return item


def is_call_item(item: JsonMap | None, id_: Any) -> bool:
    """Whether an item is a call of that id, which may hold what came of it."""
    return item is not None and item.get("id") == id_ and item.get("type") in CALL_ITEMS


def write_result(item: Json, result: ToolResultPart | DataPart) -> None:
    """Writes into a call's item what came of it."""
    field = CALL_ITEMS[item["type"]].result
    if isinstance(result, DataPart) and (held := if_object(OWN.form(result.native).get("output"))):
        output = {**if_object(held.get("fields")), "url": dump_data_url(result)}
        index, outputs = held.get("place"), if_list(item.get(field))
        index = index if type(index) is int else len(outputs)
        item[field] = [*outputs[:index], output, *outputs[index:]]
    elif isinstance(result, DataPart):
        item["result"] = b64encode(result.data).decode()
    else:
        value = result.result
        if isinstance(value, list):
            value = list(cast("list[Any]", value))  # images may join it
        item["error" if OWN.form(result.native).get("field") == "error" else field] = value


def _load_tool(tool: Any) -> ToolSpec | ServerTool:
    if not isinstance(tool, dict):
        raise HistoryError(f"a tool must be an object, not {tool!r:.200}").at(field="tools")
    tool = cast("Json", tool)
    name, description, parameters = (
        tool.get("name"),
        tool.get("description"),
        tool.get("parameters"),
    )
    if tool.get("type") != "function" or not isinstance(name, str):
        return ServerTool(str(tool.get("type")), read_extra_fields(tool, "type"))
    known = ["type", "name"]
    if isinstance(description, str) and description:
        known.append("description")
    if isinstance(parameters, dict) and parameters:
        known.append("parameters")
    form = {} if TOOL_NAMES.fits(name) else {"name": "as is"}
    form |= {key: "absent" for key in ("strict", "parameters") if key not in tool}
    return ToolSpec(
        name,
        cast("str", description) if "description" in known else "",
        cast("Json", parameters) if "parameters" in known else {},
        OWN.note(
            read_extra_fields(tool, *known, *(["strict"] if tool.get("strict") is False else [])),
            form=form,
        ),
    )


def _dump_tool(tool: ToolSpec | ServerTool, out: Outgoing[Quirks]) -> Json:
    """A function is not strict unless it says so: the API takes silence for strict, and
    then refuses or changes schemas that are not."""
    if isinstance(tool, ServerTool):
        options = dict(tool.options)
        type_ = out.quirks.server_tools.get(tool.name, tool.name)
        if type_ == "code_interpreter":
            options.setdefault("container", {"type": "auto"})
        return {"type": type_, **options}
    fields, form = OWN.fields(tool.native), OWN.form(tool.native)
    entry = {"type": "function", **fields, "name": out.name(tool.name)}
    if tool.description:
        entry["description"] = tool.description
    if tool.input_schema:
        entry["parameters"] = tool.input_schema
    elif "parameters" not in form:
        entry.setdefault("parameters", _NO_ARGUMENTS)
    if "strict" not in form:
        entry.setdefault("strict", False)
    return entry


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


def _outputs(call: ToolCallPart, outputs: list[Json], images: int) -> list[Content]:
    """What code put out: what is no image, and then the images that came with their bytes, with the
    place of each."""
    shown: list[Content] = []
    unread: list[Any] = []
    for index, output in enumerate(outputs):
        data = load_url(if_text(output.get("url")))
        if isinstance(data, DataPart) and data.data:
            held = {"place": index, "fields": read_extra_fields(output, "url")}
            name = f"image_{images + len(shown)}.{data.mime_type.rpartition('/')[2]}"
            shown.append(
                DataPart(
                    data.data,
                    data.mime_type,
                    name,
                    OWN.note(form={"call": call.id, "output": held}),
                )
            )
        else:
            unread.append(output)
    return [ToolResultPart(call.id, call.name, unread, run_by="provider"), *shown]


def _result(
    call: ToolCallPart, item: JsonMap, kind: CallItemType, images: int
) -> tuple[list[Content], list[str]]:
    """What an item holds of its result, and the fields that hold it."""
    value = item.get(kind.result)
    if item["type"] == "image_generation_call":
        if (data := decode_base64(value)) is None or not data:
            return [], []
        form = if_text(item.get("output_format")) or next(
            (name for head, name in _IMAGES.items() if str(value).startswith(head)), "png"
        )
        image = DataPart(
            data, f"image/{form}", f"image_{images}.{form}", OWN.note(form={"call": call.id})
        )
        return [image], [kind.result]
    if item["type"] == "code_interpreter_call" and (outputs := if_objects(value)):
        return _outputs(call, outputs, images), [kind.result]
    if value is not None:
        return [ToolResultPart(call.id, call.name, value, run_by="provider", native=None)], [
            kind.result
        ]
    if (error := item.get("error")) is not None:
        native = OWN.note(form={"field": "error"})
        return [ToolResultPart(call.id, call.name, error, True, "provider", native)], ["error"]
    return [], []
