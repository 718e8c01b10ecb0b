"""Tools that the Responses API alone has, as the functions that every API has: those that a
`namespace` groups, and custom tools, whose one argument is a text.

`ungroup` puts functions in their place, in the tools and in the conversation. `regroup` returns what
makes a call of such a function the call of the client's own tool again. Both follow from the tools
alone, so each request of a conversation has the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import NamedTuple, cast

import msgspec

from dragoman.codec.fit_ids import DistinctIds
from dragoman.codec.json_values import if_object, if_objects, if_text, read_extra_fields
from dragoman.codec.server_tools import read_tool
from dragoman.codec.serving import ToolGroups
from dragoman.event import Event, PartFinished, PartStarted
from dragoman.fold import arguments_json
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Message, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, ServerTool, ToolSpec
from dragoman.wires.openai_responses.quirks import NAME, OWN
from dragoman.wires.openai_responses.tools import SERVER_TOOLS, load_tools

__all__ = ["tool_groups"]

_GROUP, _CUSTOM, _CUSTOM_CALL = "namespace", "custom", "custom_tool_call"
_TEXT = "input"
_ONE_TEXT: JsonMap = {
    "type": "object",
    "properties": {_TEXT: {"type": "string"}},
    "required": [_TEXT],
    "additionalProperties": False,
}
"""Arguments of the function that stands for a custom tool."""


class _GroupedTool(NamedTuple):
    """A tool of the client's, and the function in its place."""

    group: str
    """The name of its group; empty: it is in none."""
    name: str
    """The client's name of it."""
    function: ToolSpec
    is_custom: bool

    @property
    def call_fields(self) -> Json:
        """Returns the fields by which an item is a call of this tool."""
        fields: Json = {_GROUP: self.group} if self.group else {}
        return {**fields, "type": _CUSTOM_CALL} if self.is_custom else fields


def _list_tools(
    tools: Sequence[ToolSpec | ServerTool],
) -> Iterator[_GroupedTool | ToolSpec | ServerTool]:
    """Yields the tools of a request one by one, also those in groups. Their functions have names of
    their own."""
    names = DistinctIds()
    for tool in tools:
        if isinstance(tool, ToolSpec) or tool.name == _CUSTOM:
            names.take(_name_of(tool))
    for tool in tools:
        group = if_text(tool.options.get("name")) if isinstance(tool, ServerTool) else ""
        if isinstance(tool, ToolSpec) or not group or tool.name not in (_GROUP, _CUSTOM):
            yield tool
        elif tool.name == _CUSTOM:
            yield _GroupedTool("", group, _make_function(tool), is_custom=True)
        elif entries := if_objects(tool.options.get("tools")):
            about = if_text(tool.options.get("description"))
            yield from _list_group(group, about, entries, names)
        else:
            yield tool


def _list_group(
    group: str, about: str, entries: Sequence[Json], names: DistinctIds
) -> Iterator[_GroupedTool | ToolSpec | ServerTool]:
    """Yields the tools of a group. The first one says what the group is for."""
    joint = "" if group.endswith("_") else "__"
    for tool in load_tools(entries):
        if isinstance(tool, ServerTool) and (tool.name != _CUSTOM or not _name_of(tool)):
            yield read_tool(tool, NAME, SERVER_TOOLS)
            continue
        name = _name_of(tool)
        function = tool if isinstance(tool, ToolSpec) else _make_function(tool)
        if about:
            said = f"{group}: {about}\n\n{function.description}".rstrip()
            function, about = msgspec.structs.replace(function, description=said), ""
        function = msgspec.structs.replace(function, name=names.take(f"{group}{joint}{name}"))
        yield _GroupedTool(group, name, function, isinstance(tool, ServerTool))


def _name_of(tool: ToolSpec | ServerTool) -> str:
    """Returns the client's name of a function or a custom tool."""
    return tool.name if isinstance(tool, ToolSpec) else if_text(tool.options.get("name"))


def _make_function(tool: ServerTool) -> ToolSpec:
    """Returns the function in the place of a custom tool. Its description tells the grammar of the
    text."""
    form = if_object(tool.options.get("format"))
    said = [if_text(tool.options.get("description"))]
    if grammar := if_text(form.get("definition")):
        said.append(f"The text follows this {if_text(form.get('syntax'))} grammar:\n{grammar}")
    fields = read_extra_fields(tool.options, "name", "description")
    return ToolSpec(
        _name_of(tool), "\n\n".join(filter(None, said)), _ONE_TEXT, native=OWN.note(fields)
    )


def _ungroup(request: ModelRequest) -> ModelRequest:
    """Returns the request with functions in the place of the tools that this API alone has."""
    tools = list(_list_tools(request.tools))
    grouped = {
        (tool.group, tool.name): tool.function.name
        for tool in tools
        if isinstance(tool, _GroupedTool)
    }
    if all(map(is_, tools, request.tools)) and len(tools) == len(request.tools):
        return request
    return request.replace(
        tools=tuple([tool.function if isinstance(tool, _GroupedTool) else tool for tool in tools]),
        messages=tuple(_rename_calls(request.messages, grouped)),
    )


def _rename_calls(
    messages: Sequence[Message], grouped: Mapping[tuple[str, str], str]
) -> Iterator[Message]:
    """Yields the messages with the functions' names in the calls of grouped tools, and in their
    results. `grouped`: group and name → the function's name."""
    names: dict[str, str] = {}
    for message in messages:
        content: list[Content] = []
        for piece in message.content:
            if isinstance(piece, ToolCallPart):
                group = if_text(OWN.fields(piece.native).get(_GROUP))
                names[piece.id] = grouped.get((group, piece.name), piece.name)
            if isinstance(piece, ToolCallPart | ToolResultPart):
                name = names.get(piece.id, piece.name)
                piece = piece if name == piece.name else msgspec.structs.replace(piece, name=name)
            content.append(piece)
        is_same = all(map(is_, content, message.content))
        yield message if is_same else message.replace(content=tuple(content))


def _regroup(tools: Sequence[ToolSpec | ServerTool]) -> Callable[[Event], Event] | None:
    """Returns what makes a call of a function that `_ungroup` put there the call of the client's
    tool; None if it put none there."""
    by_name = {
        tool.function.name: tool for tool in _list_tools(tools) if isinstance(tool, _GroupedTool)
    }
    if not by_name:
        return None

    def restore(event: Event) -> Event:
        if not isinstance(event, PartStarted | PartFinished):
            return event
        call = event.part
        if not isinstance(call, ToolCallPart) or (tool := by_name.get(call.name)) is None:
            return event
        native = {**(call.native or {}), **(OWN.note(tool.call_fields) or {})}
        part = msgspec.structs.replace(call, name=tool.name, native=native)
        if tool.is_custom and isinstance(event, PartFinished):
            part = _read_text(part)
        return cast("Event", msgspec.structs.replace(event, part=part))

    return restore


def _read_text(call: ToolCallPart) -> ToolCallPart:
    """Returns the finished call of a custom tool with its text as the API has it. A model that gave
    other arguments meant those as the text."""
    text = call.arguments.get(_TEXT)
    if len(call.arguments) != 1 or not isinstance(text, str):
        text = call.raw if call.raw is not None else arguments_json(call)
    state = "cut" if call.state == "cut" else "complete"
    return msgspec.structs.replace(call, arguments={_TEXT: text}, raw=None, state=state)


tool_groups = ToolGroups(_ungroup, _regroup)
"""How tools that this API alone has go to other APIs, and their calls come back."""
