"""Reads and writes the tools of a request (`ToolSpec` for functions, `ServerTool` for all others),
and items that are calls.

A call that the client must answer is ours to run, whatever its type: a function, a custom tool (its
text is the argument `input`), a shell, a patch, a computer. A call that the provider runs has
`run_by="provider"`, and its item holds the result too. `CALL_ITEMS` says for each type of item
where its name, its arguments and its result stand.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.fit_ids import TOOL_NAMES
from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, read_extra_fields
from dragoman.codec.marks import attach_interrupt
from dragoman.codec.media import decode_base64, dump_data_url, load_url
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.server_tools import ServerTools
from dragoman.errors import HistoryError
from dragoman.fold import arguments_json, parse_call
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import Content, DataPart, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.openai_responses.quirks import OWN, Quirks

__all__ = [
    "APPROVAL",
    "FUNCTION",
    "SERVER_TOOLS",
    "IMAGE_CALL",
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

_SEARCHES = ("web_search", "web_search_2025_08_26", "web_search_preview")
SERVER_TOOLS = ServerTools(
    names={
        **dict.fromkeys((*_SEARCHES, "web_search_preview_2025_03_11"), "web_search"),
        **dict.fromkeys(("computer", "computer_use_preview"), "computer_use"),
        **{name: name for name in ("file_search", "image_generation", "mcp", "tool_search")},
        "code_interpreter": "code_execution",
    },
    options={
        "web_search": {
            "allowed_domains": "filters.allowed_domains",
            "context_size": "search_context_size",
            "user_location": "user_location",
        },
        "file_search": {"stores": "vector_store_ids", "max_results": "max_num_results"},
        "image_generation": {
            name: name for name in ("size", "quality", "background", "output_format")
        },
        "mcp": {
            **{name: name for name in ("headers", "authorization", "allowed_tools")},
            "name": "server_label",
            "url": "server_url",
            "approval": "require_approval",
            "description": "server_description",
        },
    },
    usual={"mcp": {"approval": "always"}},
)
"""The tools that OpenAI runs, and the computer whose calls it defines."""
_NO_ARGUMENTS: Json = {"type": "object", "properties": {}}
_NO_STORES = {"type": "file_search"}
_CHOICES = ("auto", "none", "required")
FUNCTION = "function_call"
IMAGE_CALL = "image_generation_call"
APPROVAL = "mcp_approval_request"
"""Type of the item by which the provider asks whether it may call an MCP server's tool."""
_TEXTUAL = (FUNCTION, APPROVAL, "mcp_call")
"""Types of calls whose arguments are always a text."""


class CallItemType(msgspec.Struct, frozen=True, kw_only=True):
    """A type of item that is a call."""

    name: str | None = None
    """The tool's name. None: the item has it."""
    arguments: tuple[str, ...] = ()
    """Fields of the item that are the arguments, if it has no text `arguments`."""
    result_item: str | None = None
    """Type of the item that answers the call. None: the provider runs it, and the item holds the
    result too."""
    result: str = "output"
    """Field that holds the result, of the answering item or of the call's own."""


CALL_ITEMS: Mapping[str, CallItemType] = {
    FUNCTION: CallItemType(result_item="function_call_output"),
    "custom_tool_call": CallItemType(arguments=("input",), result_item="custom_tool_call_output"),
    "local_shell_call": CallItemType(
        name="local_shell", arguments=("action",), result_item="local_shell_call_output"
    ),
    "shell_call": CallItemType(
        name="shell", arguments=("action",), result_item="shell_call_output"
    ),
    "apply_patch_call": CallItemType(
        name="apply_patch", arguments=("operation",), result_item="apply_patch_call_output"
    ),
    "computer_call": CallItemType(
        name="computer", arguments=("action", "actions"), result_item="computer_call_output"
    ),
    "tool_search_call": CallItemType(
        name="tool_search",
        arguments=("arguments",),
        result_item="tool_search_output",
        result="tools",
    ),
    "web_search_call": CallItemType(name="web_search", arguments=("action",)),
    "file_search_call": CallItemType(name="file_search", arguments=("queries",), result="results"),
    "code_interpreter_call": CallItemType(
        name="code_interpreter", arguments=("code", "container_id"), result="outputs"
    ),
    IMAGE_CALL: CallItemType(
        name="image_generation", arguments=("revised_prompt", "prompt"), result="result"
    ),
    "mcp_call": CallItemType(),
    APPROVAL: CallItemType(result_item="mcp_approval_response"),
}
"""Type of an item → where its name, its arguments and its result stand."""
_IMAGES = {"iVBOR": "png", "/9j/": "jpeg", "UklGR": "webp", "R0lGO": "gif"}
"""How an image's base64 begins → its format."""


def load_tools(tools: Sequence[Any]) -> tuple[ToolSpec | ServerTool, ...]:
    """Reads the `tools` of a Responses request.

    Raises:
        HistoryError: one of them is no tool.
    """
    return tuple([_load_tool(tool) for tool in tools])


def dump_tools(tools: Sequence[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """Writes the `tools` of a Responses request, under the names that are sent. Notes a tool that
    cannot be sent as lost."""
    dumped: list[Json] = []
    needs_stores = False
    for tool in tools:
        entry = _dump_tool(tool, out)
        if entry == _NO_STORES:
            needs_stores = True
        else:
            dumped.append(entry)
    if needs_stores:
        why = "it needs vector_store_ids, the stores to search in"
        out.lose(None, None, Lost.tool, why, "file_search")
    return dumped


def load_tool_choice(value: Any) -> str | None:
    """Reads the choice of a tool in a Responses request, or returns None if it is no plain one."""
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
    """Writes the tool choice of a Responses request."""
    if choice in _CHOICES:
        return choice
    return {"type": "function", "name": out.name(choice)}


def find_runner(item: JsonMap) -> Literal["agent", "provider"]:
    """Returns who runs the tool that a Responses item calls."""
    if CALL_ITEMS[item["type"]].result_item is None or item.get("execution") == "server":
        return "provider"
    # A shell runs with the client, unless its environment is a container of the provider's.
    environment = if_object(item.get("environment"))
    if "container" in str(environment.get("type")):
        return "provider"
    return "agent"


def choose_item_type(call: ToolCallPart) -> str:
    """Returns the type of Responses item for a call. A provider's call without one came through
    another wire."""
    item_type = if_text(OWN.fields(call.native).get("type"))
    if item_type in CALL_ITEMS:
        return item_type
    if call.run_by == "provider":
        return "mcp_call"
    return FUNCTION


def load_call(item: JsonMap, unsent: JsonMap | None = None, *, images: int = 0) -> list[Content]:
    """Reads a Responses item that is a call: the call, then what the item holds of its result.
    Returns an empty list if it has no id or name. A call that the provider runs once somebody
    approves it has an interrupt.

    `unsent`: fields that a response has and no request may have. None: the item stands in a
    request, which is kept to the letter. `images`: number of images made before.
    """
    item_type, run_by = item["type"], find_runner(item)
    call_item = CALL_ITEMS[item_type]
    id_field = "call_id" if run_by == "agent" and item_type != APPROVAL else "id"
    call_id, name = item.get(id_field), item.get("name", call_item.name)
    if not isinstance(call_id, str) or not isinstance(name, str):
        return []
    if run_by == "agent" and not call_id:
        return []
    call, read = load_arguments(ToolCallPart(call_id, name, run_by=run_by), item)
    form: Json = {}
    if "name" in item and call_item.name is not None:
        form["named"] = True
    form |= _read_arguments_form(call, item, exact=unsent is None)
    result: list[Content] = []
    if run_by == "provider":
        result, result_fields = _load_own_result(call, item, call_item, images)
        read = [*read, *result_fields]
    if item_type == FUNCTION:
        read = [*read, "type"]
    fields = read_extra_fields(item, id_field, "name", *read)
    native = OWN.note(fields, form=form, response=unsent)
    call = msgspec.structs.replace(call, native=native)
    if item_type == APPROVAL:
        server = {"server_label": if_text(item.get("server_label"))}
        call = attach_interrupt(call, Interrupt(call_id, "approval", metadata=server))
    return [call, *result]


def load_arguments(call: ToolCallPart, item: JsonMap) -> tuple[ToolCallPart, list[str]]:
    """Returns the call with its arguments, and the fields of the Responses item that hold them."""
    value = item.get("arguments")
    if isinstance(value, str):
        return _parse_arguments(call, value), ["arguments"]
    if item["type"] in _TEXTUAL:
        return msgspec.structs.replace(call, arguments=if_object(value)), ["arguments"]
    found = [field for field in CALL_ITEMS[item["type"]].arguments if field in item]
    return msgspec.structs.replace(call, arguments={field: item[field] for field in found}), found


def _read_arguments_form(call: ToolCallPart, item: JsonMap, *, exact: bool) -> Json:
    """Returns how the arguments of a Responses item were spelled. `exact`: it is kept to the
    letter."""
    if item["type"] not in _TEXTUAL:
        return {"text": True} if isinstance(item.get("arguments"), str) else {}
    if not exact or arguments_json(call) == item.get("arguments", ...):
        return {}
    # Arguments that would be written in another spelling are kept as they came.
    if "arguments" in item:
        return {"arguments": item["arguments"]}
    return {"without": ["arguments"]}


def dump_call(call: ToolCallPart, id_: str, name: str) -> Json:
    """Writes the Responses item of a call, with its own fields, under that id and name."""
    fields, form = OWN.fields(call.native), OWN.form(call.native)
    item_type = choose_item_type(call)
    call_item = CALL_ITEMS[item_type]
    id_field = "id" if call.run_by == "provider" or item_type == APPROVAL else "call_id"
    item = {"type": item_type, **read_extra_fields(fields, "type"), id_field: id_}
    if call_item.name is None or form.get("named"):
        item["name"] = name
    has_own_fields = set(call.arguments) <= set(call_item.arguments)
    if item_type not in _TEXTUAL and "text" not in form and has_own_fields:
        return item | call.arguments
    item["arguments"] = arguments_json(call)
    if "arguments" in form or "arguments" in if_list(form.get("without")):
        _restore_arguments(item, call, form)
    return item


def _restore_arguments(item: Json, call: ToolCallPart, form: JsonMap) -> None:
    """Puts the arguments of a Responses call back in the spelling in which they were loaded, or
    takes them out if they came without the field."""
    # An earlier release noted a missing field as the arguments "absent".
    absent = form.get("arguments") == "absent" and call.state == "complete"
    noted = {} if absent or "arguments" not in form else {"arguments": form["arguments"]}
    loaded, _ = load_arguments(ToolCallPart(call.id, call.name), {"type": item["type"], **noted})
    # The loaded spelling counts only while it says the same.
    if (loaded.state, loaded.arguments) == (call.state, call.arguments):
        del item["arguments"]
        item |= noted


def is_call_item(item: JsonMap | None, id_: Any) -> bool:
    """True if an item is the call of that id, which may hold the result."""
    return item is not None and item.get("id") == id_ and item.get("type") in CALL_ITEMS


def write_result(item: Json, result: ToolResultPart | DataPart) -> None:
    """Writes the result of a tool that the provider ran into the Responses item of its call.
    Results that are items of their own are written by `tool_results`."""
    field, form = CALL_ITEMS[item["type"]].result, OWN.form(result.native)
    if not isinstance(result, DataPart):
        value = result.result
        # Copied, because images may join the list.
        if isinstance(value, list):
            value = list(cast("list[Any]", value))
        item["error" if form.get("field") == "error" else field] = value
        return
    note = if_object(form.get("output"))
    if not note:
        item["result"] = b64encode(result.data).decode()
        return
    # An image of a code interpreter goes back to its place among the outputs.
    output = {**if_object(note.get("fields")), "url": dump_data_url(result)}
    index, outputs = note.get("place"), if_list(item.get(field))
    if type(index) is not int:
        index = len(outputs)
    item[field] = [*outputs[:index], output, *outputs[index:]]


def _load_tool(tool: Any) -> ToolSpec | ServerTool:
    """Reads one tool of a Responses request."""
    if not isinstance(tool, dict):
        raise HistoryError(f"a tool must be an object, not {tool!r:.200}").at(field="tools")
    tool = cast("Json", tool)
    name = tool.get("name")
    if tool.get("type") != "function" or not isinstance(name, str):
        return ServerTool(str(tool.get("type")), read_extra_fields(tool, "type"))
    read = ["type", "name"]
    if description := if_text(tool.get("description")):
        read.append("description")
    if parameters := if_object(tool.get("parameters")):
        read.append("parameters")
    if tool.get("strict") is False:
        read.append("strict")
    form = {} if TOOL_NAMES.fits(name) else {"name": "as is"}
    form |= {key: "absent" for key in ("strict", "parameters") if key not in tool}
    native = OWN.note(read_extra_fields(tool, *read), form=form)
    return ToolSpec(name, description, parameters, native)


def _dump_tool(tool: ToolSpec | ServerTool, out: Outgoing[Quirks]) -> Json:
    """Writes one tool. A function is not strict unless it says so: the Responses API takes silence
    for strict, and then refuses or changes schemas that are not."""
    if isinstance(tool, ServerTool):
        options = dict(tool.options)
        type_ = out.quirks.server_tools.get(tool.name, tool.name)
        if type_ == "code_interpreter":
            # The API demands a container, also where any will do.
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


def _parse_arguments(call: ToolCallPart, text: str) -> ToolCallPart:
    """Returns a Responses call with its arguments from a text. A value that is not an object
    becomes the argument `value`."""
    parsed_call = parse_call(call, text)
    if parsed_call.state != "invalid":
        return parsed_call
    try:
        value = json_bytes.decode(text)
    except ValueError:
        return parsed_call
    return msgspec.structs.replace(call, arguments={"value": value}, raw=None, state="complete")


def _load_outputs(call: ToolCallPart, outputs: list[Json], images: int) -> list[Content]:
    """Reads the outputs in a `code_interpreter_call` of the Responses API: the result, then its
    images, each with a note of its place. `images`: number of images made before."""
    parts: list[Content] = []
    other_outputs: list[Any] = []
    for index, output in enumerate(outputs):
        image = load_url(if_text(output.get("url")))
        if not isinstance(image, DataPart) or not image.data:
            other_outputs.append(output)
            continue
        note = {"place": index, "fields": read_extra_fields(output, "url")}
        name = f"image_{images + len(parts)}.{image.mime_type.rpartition('/')[2]}"
        native = OWN.note(form={"call": call.id, "output": note})
        parts.append(DataPart(image.data, image.mime_type, name, native))
    return [ToolResultPart(call.id, call.name, other_outputs, run_by="provider"), *parts]


def _load_own_result(
    call: ToolCallPart, item: JsonMap, call_item: CallItemType, images: int
) -> tuple[list[Content], list[str]]:
    """Returns the result of a tool that the provider ran: it stands in the item of its call, beside
    the arguments. Returns the names of the fields that held it, too. `call_item`: how this type of Responses item is laid out;
    `images`: how many images the answer has so far."""
    value = item.get(call_item.result)
    if item["type"] == IMAGE_CALL:
        image = _load_image(call, item, value, images)
        if image:
            return ([image], [call_item.result])
        return ([], [])
    if item["type"] == "code_interpreter_call" and (outputs := if_objects(value)):
        return _load_outputs(call, outputs, images), [call_item.result]
    if value is not None:
        result = ToolResultPart(call.id, call.name, value, run_by="provider", native=None)
        return [result], [call_item.result]
    if (error := item.get("error")) is not None:
        native = OWN.note(form={"field": "error"})
        return [ToolResultPart(call.id, call.name, error, True, "provider", native)], ["error"]
    return [], []


def _load_image(call: ToolCallPart, item: JsonMap, value: Any, images: int) -> DataPart | None:
    """Reads the image that a Responses call made, or returns None if there is none."""
    data = decode_base64(value)
    if not data:
        return None
    image_format = if_text(item.get("output_format"))
    if not image_format:
        # Without the field, the first bytes show the format.
        formats = [name for head, name in _IMAGES.items() if str(value).startswith(head)]
        image_format = formats[0] if formats else "png"
    name = f"image_{images}.{image_format}"
    return DataPart(data, f"image/{image_format}", name, OWN.note(form={"call": call.id}))
