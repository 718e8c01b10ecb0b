"""Tools that a provider runs, such as a web search, under one name with one name for each common
option, whichever API a request came from.

A wire says by a table what its API calls them (`ServerTools`). `read_server_tools` gives a loaded
tool its common name and notes where it came from. `fit_server_tools` does the reverse for the same
wire. For another one it writes the tool in that API's words; what the API lacks is a loss, or our
own function where there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

from msgspec.structs import replace

from dragoman.codec.json_values import if_list, if_object, merge_wire_fields, read_extra_fields
from dragoman.codec.native import WireNative
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import NOTES
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec

__all__ = ["COMMON", "ServerTools", "fit_server_tools", "read_server_tools", "read_tool"]


class ServerTools(NamedTuple):
    """The tools that providers of one API run."""

    names: Mapping[str, str] = {}
    """The API's name of a tool, in each version → the common one. Empty: vendors differ, so that a
    tool that no other wire read is sent as it is."""
    options: Mapping[str, Mapping[str, str]] = {}
    """Common name of a tool → its common options, each with the path of its field in the API's
    object; `0` stands for a list of one."""
    usual: Mapping[str, JsonMap] = {}
    """Common name of a tool → what the API takes for options that are not there."""
    models: str = ""
    """What stands in the names of the models that have them; empty: all have them."""


class _CommonTool(NamedTuple):
    """A tool that several providers run."""

    options: tuple[str, ...] = ()
    """Its common options."""
    binding: tuple[str, ...] = ()
    """Options without which it could do more than it may: where the API lacks one, it has no such
    tool."""
    needs: str = ""
    """The option without which only its own provider knows what it is."""
    stays: str = ""
    """Why it cannot move from one API to another; empty: it can."""
    function: ToolSpec | None = None
    """The function that does the same where the API has no such tool, for those that the caller
    runs anyway."""


_PATH: Json = {"type": "string", "description": "A path that begins with /memories."}
_TEXT: Json = {"type": "string"}
_MEMORY = ToolSpec(
    "memory",
    "Views and edits files in /memories, which last longer than this conversation. Look there "
    "before you begin, and write down what you may need later.",
    {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
            },
            "path": _PATH,
            "view_range": {"type": "array", "items": {"type": "integer"}},
            "file_text": {**_TEXT, "description": "The content for `create`."},
            "old_str": {**_TEXT, "description": "The text that `str_replace` replaces."},
            "new_str": {**_TEXT, "description": "The text in its place."},
            "insert_line": {"type": "integer", "description": "The line after which to insert."},
            "insert_text": {**_TEXT, "description": "The text for `insert`."},
            "old_path": _PATH,
            "new_path": _PATH,
        },
        "required": ["command"],
    },
)
COMMON: Mapping[str, _CommonTool] = {
    "web_search": _CommonTool(
        ("allowed_domains", "blocked_domains", "max_uses", "user_location", "context_size")
    ),
    "web_fetch": _CommonTool(("allowed_domains", "blocked_domains", "max_uses", "max_tokens")),
    "code_execution": _CommonTool(),
    "image_generation": _CommonTool(("size", "quality", "background", "output_format")),
    "file_search": _CommonTool(
        ("stores", "max_results"), stays="what it searches is its provider's"
    ),
    "mcp": _CommonTool(
        ("name", "url", "headers", "authorization", "allowed_tools", "approval", "description"),
        ("allowed_tools", "approval"),
        needs="url",
    ),
    "memory": _CommonTool(function=_MEMORY),
    "computer_use": _CommonTool(
        ("display_width", "display_height", "environment"),
        stays="its actions differ from API to API",
    ),
    "tool_search": _CommonTool(),
}
"""The common names."""
_SILENT: JsonMap = {"container": {"type": "auto"}, "approval": "never"}
"""Field → the value that asks for what APIs without it do."""
_WITHIN: Mapping[str, JsonMap] = {"user_location": {"type": "approximate"}}
"""Option → what each API wants in it besides."""
_ALLOWED = "allowed_tools"
_LONGEST_NAME = 100
"""Characters of a tool's or option's name in a loss."""
_MOST_LOSSES = 100
"""Of a request's tools."""
_SPELLED, _USUAL, _OWN_OPTIONS = "tool", "usual", "own_options"
"""In the notes: the name that the API has for a tool, where that is not the common one; the options
that were not there; and whether the options are as the API has them."""


def read_server_tools(request: ModelRequest, wire: str, api: ServerTools) -> ModelRequest:
    """Returns a request that a wire has just read, with the provider's tools under their common
    names."""
    if not any(isinstance(tool, ServerTool) for tool in request.tools):
        return request
    return request.replace(tools=tuple([read_tool(tool, wire, api) for tool in request.tools]))


def read_tool(tool: ToolSpec | ServerTool, wire: str, api: ServerTools) -> ToolSpec | ServerTool:
    """Returns a tool that a wire has just read, under its common name if its provider runs it."""
    if isinstance(tool, ToolSpec):
        return tool
    wire_native = WireNative(wire)
    name = api.names.get(tool.name)
    native = tool.native or wire_native.note(mark=True)
    if name is None:
        return replace(tool, native=native)
    if name != tool.name:
        native = wire_native.with_form(native, **{_SPELLED: tool.name})
    paths = api.options.get(name, {})
    options = _rename_options(tool.options, paths)
    if _place_options(options, paths) != tool.options:
        # It would not go back as it came.
        native = wire_native.with_form(native, **{_OWN_OPTIONS: True})
        options = dict(tool.options)
    usual = {key: entry for key, entry in api.usual.get(name, {}).items() if key not in options}
    if usual:
        native = wire_native.with_form(native, **{_USUAL: usual})
    return ServerTool(name, {**options, **usual}, native)


def _rename_options(options: JsonMap, paths: Mapping[str, str]) -> Json:
    """Returns the options of a loaded tool under their common names."""
    renamed: Json = dict(options)
    for option, path in paths.items():
        if path != option and (setting := _read_path(renamed, path)) is not None:
            renamed = {**_remove_path(renamed, path), option: setting}
    return renamed


def fit_server_tools(
    request: ModelRequest, wire: str, api: ServerTools, losses: list[Loss]
) -> ModelRequest:
    """Returns an outgoing request with the provider's tools in the words of this wire's API. Notes
    what the API lacks as losses, and the choice of a tool that is another's.

    Args:
        request: what is asked.
        wire: name of the wire that writes it.
        api: the tools that its providers run.
        losses: grows with what is left out.
    """
    if not any(isinstance(tool, ServerTool) for tool in request.tools):
        return request
    api = _select_tools(api, request.model)
    wire_native = WireNative(wire)
    found: list[Loss] = []
    functions = {tool.name for tool in request.tools if isinstance(tool, ToolSpec)}
    tools: list[ToolSpec | ServerTool] = []
    moved: set[str] = set()
    for tool in request.tools:
        if isinstance(tool, ToolSpec):
            tools.append(tool)
            continue
        fitted, lost = _fit_tool(tool, wire_native, wire, api)
        found += lost
        if isinstance(fitted, ToolSpec):
            # The caller's own function of that name is the tool.
            if fitted.name not in functions:
                tools.append(fitted)
                functions.add(fitted.name)
            continue
        if fitted is not None:
            tools.append(fitted)
        if not wire_native.is_ours(tool.native) and (fitted is None or tool.native):
            moved |= {tool.name, _find_spelled(tool)}
    losses += found[:_MOST_LOSSES]
    if not moved and all(map(is_, tools, request.tools)):
        return request
    settings = _fit_choice(request.settings, moved, tools, losses)
    return request.replace(tools=tuple(tools), settings=settings)


def _select_tools(api: ServerTools, model: str) -> ServerTools:
    """Returns the tools of an API that a model has: one without them has none of a common name."""
    if api.models in model:
        return api
    return api._replace(names={name: name for name in api.names})


def _fit_choice(
    settings: Settings,
    moved: Collection[str],
    tools: Sequence[ToolSpec | ServerTool],
    losses: list[Loss],
) -> Settings:
    """Returns the settings without the choice of a tool that is another's, which is a loss.
    `moved`: names of such tools; `tools`: those that are sent."""
    choice = settings.tool_choice
    if choice is None or (tools and choice not in moved):
        return settings
    if choice not in ("auto", "none"):
        losses.append(Loss(None, None, Lost.setting, "there is no such tool", "tool_choice"))
    return replace(settings, tool_choice=None)


def _fit_tool(
    tool: ServerTool, wire_native: WireNative, wire: str, api: ServerTools
) -> tuple[ServerTool | ToolSpec | None, list[Loss]]:
    """Returns a provider's tool as the API has it, or None if it has none, and what is lost."""
    if wire_native.is_ours(tool.native):
        return _restore_tool(tool, wire_native, api), []
    paths = api.options.get(tool.name, {})
    owner = next(iter(tool.native or ()), "").removesuffix(NOTES)
    common = COMMON.get(tool.name, _CommonTool())
    if not owner and not api.names and common.function is None:
        return tool, []
    options, writable = _select_options(tool, owner, common, paths)
    lost = {
        option: setting
        for option, setting in options.items()
        if option not in writable and not _is_silent(option, setting, common)
    }
    why = _explain_absence(tool, owner, api, lost)
    if why is not None and common.function is not None:
        return _make_function(common.function, tool), []
    if why is not None:
        return None, [Loss(None, None, Lost.tool, why, _find_spelled(tool))]
    which = f"tools.{_find_spelled(tool)}"
    why = f"{wire} has no such field"
    losses = [
        Loss(None, None, Lost.option, why, f"{which}.{option[:_LONGEST_NAME]}") for option in lost
    ]
    sent = {option: options[option] for option in options if option in writable}
    for option in _WITHIN.keys() & sent.keys():
        if isinstance(sent[option], dict):
            sent[option] = {**_WITHIN[option], **sent[option]}
    return replace(tool, options=_place_options(sent, paths)), losses


def _select_options(
    tool: ServerTool, owner: str, common: _CommonTool, paths: Mapping[str, str]
) -> tuple[JsonMap, Collection[str]]:
    """Returns the options of a tool that say anything, and which of them the API has. The options
    of a caller's tool (no `owner`) without a common name are the API's own."""
    if not owner:
        return tool.options, paths.keys() | (tool.options.keys() - {*common.options})
    options = {option: setting for option, setting in tool.options.items() if setting is not None}
    allowed = options.get(_ALLOWED, [])
    if not isinstance(allowed, list) or not all(isinstance(name, str) for name in if_list(allowed)):
        # No other API can be told it, unless it is a list of names.
        return options, paths.keys() - {_ALLOWED}
    return options, paths.keys()


def _make_function(function: ToolSpec, tool: ServerTool) -> ToolSpec:
    """Returns the function in the place of a tool, with the tool's own fields but for its type."""
    native = {
        key: read_extra_fields(if_object(entry), "type")
        for key, entry in (tool.native or {}).items()
    }
    return replace(function, native=native or None)


def _is_silent(option: str, setting: object, common: _CommonTool) -> bool:
    """True if an option asks for nothing but what APIs without it do. An empty list of what is
    allowed does ask."""
    if setting in ([], {}):
        return option not in common.binding
    return setting is None or setting == _SILENT.get(option)


def _restore_tool(tool: ServerTool, wire_native: WireNative, api: ServerTools) -> ServerTool:
    """Returns a tool of the wire's own as it was read."""
    form = wire_native.form(tool.native)
    paths: Mapping[str, str] = {}
    if _OWN_OPTIONS not in form:
        paths = api.options.get(tool.name, paths)
    usual = if_object(form.get(_USUAL))
    if _SPELLED not in form and not usual and not paths.keys() & tool.options.keys():
        return tool
    added = {option for option, entry in usual.items() if tool.options.get(option) == entry}
    options = read_extra_fields(tool.options, *added)
    name = str(form.get(_SPELLED, tool.name))
    return replace(tool, name=name, options=_place_options(options, paths))


def _explain_absence(tool: ServerTool, owner: str, api: ServerTools, lost: JsonMap) -> str | None:
    """Returns why a tool cannot be sent to an API, or None.

    Args:
        tool: a tool of another wire, or of the caller.
        owner: the wire that read it; empty: the caller gave it.
        api: the tools that the API has.
        lost: what it says that the API has no field for.
    """
    common = COMMON.get(tool.name)
    if common is None and owner:
        return f"it is a tool of {owner}"
    if common is None:
        return None
    if tool.name not in api.names.values():
        return "the API has no such tool"
    unbound = [f"the API has no field for {option}" for option in common.binding if option in lost]
    foreign: list[str] = []
    if owner:
        foreign = [common.stays, _explain_need(tool, common, owner)]
    return next(filter(None, [*foreign, *unbound]), None)


def _explain_need(tool: ServerTool, common: _CommonTool, owner: str) -> str:
    """Returns why a tool of another wire, its owner, is nothing to others; empty if it is."""
    if not common.needs or common.needs in tool.options:
        return ""
    return f"without its {common.needs} it is known to {owner} alone"


def _find_spelled(tool: ServerTool) -> str:
    """Returns the name that a tool had where it was read."""
    for owner in tool.native or ():
        if owner.endswith(NOTES):
            form = WireNative(owner.removesuffix(NOTES)).form(tool.native)
            return str(form.get(_SPELLED, tool.name))[:_LONGEST_NAME]
    return tool.name[:_LONGEST_NAME]


def _place_options(options: JsonMap, paths: Mapping[str, str]) -> Json:
    """Returns the options of a tool as the API has them."""
    placed: Json = {}
    for option, setting in options.items():
        *outer, name = paths.get(option, option).split(".")
        field: Any = {name: setting}
        for step in reversed(outer):
            field = {step: field}
            if step == "0":
                field = [field[step]]
        placed = merge_wire_fields(placed, field)
    return placed


def _read_path(fields: JsonMap, path: str) -> Any:
    """Returns what stands at a path in a tool, or None."""
    reached: Any = fields
    for step in path.split("."):
        if step == "0":
            listed = if_list(reached)
            reached = listed[0] if len(listed) == 1 and len(if_object(listed[0])) == 1 else None
        else:
            reached = if_object(reached).get(step)
    return reached


def _remove_path(fields: JsonMap, path: str) -> Json:
    """Returns the fields of a tool without the one at a path, and without objects that are then
    empty."""
    step, _, further = path.partition(".")
    remaining = read_extra_fields(fields, step)
    if further[:1] not in ("", "0") and (inner := _remove_path(if_object(fields[step]), further)):
        remaining[step] = inner
    return remaining
