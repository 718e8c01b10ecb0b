"""Tools: `tools` and `functionCallingConfig` of a request ↔ ToolSpec, ServerTool and
Settings.tool_choice; `functionCall` of a part ↔ ToolCallPart, with the ids of calls and results.

Gemini often gives no ids: they are minted by position, and results matched by order and name.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec import outgoing_conversation
from dragoman.codec.fit_ids import TOOL_NAMES
from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, read_extra_fields
from dragoman.codec.server_tools import ServerTools
from dragoman.codec.signature_check import name_part_type
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import Content, Native, ProviderPart, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.google.keys import (
    merged,
    not_usual,
    snake_form,
    snakes,
    to_camel_case,
    to_snake_case,
)
from dragoman.wires.google.quirks import OWN, Quirks
from dragoman.wires.google.schema import dump_older, load_older

__all__ = [
    "SERVER_TOOLS",
    "SIGNATURE",
    "OutgoingContents",
    "Pairing",
    "dump_call",
    "dump_tool_choice",
    "dump_tools",
    "dump_id",
    "is_unnamed",
    "load_call",
    "load_id",
    "load_tool_choice",
    "load_tools",
]

SIGNATURE = "thoughtSignature"
"""The field of a part that its provider signed."""
_FUNCTIONS = "functionDeclarations"
_CHOICES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
_NUMBERED = dict(enumerate(_CHOICES, 1))
"""Modes as clients of gRPC's JSON write them."""
_SENT_CHOICES = {neutral: mode for mode, neutral in _CHOICES.items()}

_MCP = "mcpServers"
_TRANSPORT = "streamableHttpTransport"
SERVER_TOOLS = ServerTools(
    names={
        **dict.fromkeys(("googleSearch", "googleSearchRetrieval"), "web_search"),
        "urlContext": "web_fetch",
        "codeExecution": "code_execution",
        "fileSearch": "file_search",
        "computerUse": "computer_use",
        _MCP: "mcp",
    },
    options={
        "file_search": {"stores": "fileSearchStoreNames", "max_results": "topK"},
        "computer_use": {"environment": "environment"},
        "mcp": {"name": "name", "url": f"{_TRANSPORT}.url", "headers": f"{_TRANSPORT}.headers"},
    },
    usual={"mcp": {"approval": "never"}},
)
"""The tools that Google runs, and the computer whose calls it defines."""

_Fields = JsonMap
_Tool = ToolSpec | ServerTool


class OutgoingContents(outgoing_conversation.Outgoing[Quirks], frozen=True, kw_only=True, gc=False):
    """What the dump of a conversation must know on this wire."""

    model: str
    """The target's; empty where it is not known."""
    unnamed: Collection[str] = frozenset()
    """Ids of the calls that came without one: neither they nor their results are sent with it."""
    functions: Mapping[str, str] = {}
    """Id of a call → its function, for results that do not name it."""

    def own(self, piece: Content, position: int, index: int) -> Json:
        """Returns a piece's own Gemini fields, without a signature that the target does not
        read."""
        wire_fields = _own_fields(piece)
        if (why := self.unreadable[position]) is not None and wire_fields.pop(
            SIGNATURE, None
        ) is not None:
            self.lose(position, index, Lost.signature, why)
        return wire_fields

    def signed(
        self, piece: Content, fields: _Fields, position: int, index: int, which: str
    ) -> Json | None:
        """Returns the Gemini part with these fields and the piece's own, which goes back to its own
        origin and to nobody else: else it is lost, and the loss names it by `which`."""
        why = self.unreadable[position] or (
            None if OWN.is_ours(piece.native) else "it is another provider's"
        )
        if why is not None:
            self.lose(position, index, name_part_type(piece), why, which)
            return None
        return merged(_own_fields(piece), fields)

    def id_field(self, piece: ToolCallPart | ToolResultPart, position: int, index: int) -> Json:
        """Returns the field `id` of a Gemini function call or response; none where it is not
        sent."""
        if piece.native:
            recorded_id = dump_id(piece.native, piece.id)
            if recorded_id.get("id") != piece.id:
                return recorded_id
        if piece.id in self.unnamed:
            return {}
        return {"id": self.id(position, index, piece)}


class Pairing:
    """The calls of a conversation, or of one answer, as they are read."""

    def __init__(self, new_id: Callable[[], str] | None = None) -> None:
        """Starts without function calls of a Gemini conversation."""
        self._new_id = new_id
        self._taken: set[str] = set()
        self._count = 0
        # Calls of this round, in order.
        self._by_id: dict[str, deque[_Call]] = {}
        self._by_name: dict[str, deque[_Call]] = {}
        self._ran = ""

    def round(self) -> None:
        """Returns a new round of calls begins: results no longer answer the calls before it."""
        self._by_id.clear()
        self._by_name.clear()

    def call(self, sent_id: str | None, name: str) -> str:
        """Returns the id of a Gemini function call, and waits for its response."""
        id_ = self._take_call_id(sent_id)
        call = _Call(id_)
        self._by_id.setdefault(id_, deque()).append(call)
        self._by_name.setdefault(name, deque()).append(call)
        return id_

    def result(self, sent_id: str | None, name: str) -> str:
        """Returns the id of the call that a Gemini function response answers: the first one of that
        name that has none."""
        calls = (self._by_id.get(sent_id) if sent_id else self._by_name.get(name)) or deque[_Call]()
        while calls:
            call = calls.popleft()
            if not call.answered:
                call.answered = True
                return call.id
        return sent_id or self.call(None, "")

    def run(self, sent_id: str | None) -> str:
        """Converts a call that the provider ran to its id."""
        self._ran = self._take_call_id(sent_id)
        return self._ran

    def ran(self, sent_id: str | None) -> str:
        """Converts what the provider's call gave to the id of that call."""
        return sent_id or self._ran or self.run(None)

    def _take_call_id(self, sent_id: str | None) -> str:
        """Returns the id of a Gemini function call, new if it was sent without one."""
        id_ = sent_id or self._mint_call_id()
        self._taken.add(id_)
        self._count += 1
        return id_

    def _mint_call_id(self) -> str:
        """Returns a new id for a Gemini function call, the same for the same conversation unless
        `new_id` is given."""
        if self._new_id is not None:
            return self._new_id()
        while (id_ := f"call-{self._count}") in self._taken:
            self._count += 1
        return id_


class _Call:
    """A call of this round."""

    __slots__ = ("answered", "id")

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.answered = False


def is_unnamed(native: Native) -> bool:
    """Returns True if a call or a result came without an id: it is marked so among its fields,
    where the API has no null."""
    return bool(native) and OWN.fields(native).get("id", "") is None


def dump_id(native: Native, id_: str) -> Json:
    """Returns the field `id` of a Gemini tool call or response as it is sent: an id that was not
    given is not sent back."""
    if not is_unnamed(native):
        return {"id": id_}
    form = OWN.form(native)
    return {"id": form["id"]} if "id" in form else {}


def load_id(inner: _Fields, form: Json) -> tuple[str | None, dict[str, None]]:
    """Returns the id of a Gemini tool call or response that was given, and the mark where none
    was."""
    if id_ := if_text(inner.get("id")):
        return id_, {}
    if "id" in inner:
        form["id"] = inner["id"]
    return None, {"id": None}


def load_call(
    inner: _Fields, block_fields: _Fields, form: Json, pairing: Pairing
) -> ToolCallPart | None:
    """Converts a `functionCall` to the call; `None` where it is of another shape. `own`: the Gemini
    part's other fields."""
    name, arguments = if_text(inner.get("name")), inner.get("args")
    if not name:
        return None
    id_, unnamed = load_id(inner, form)
    further = read_extra_fields(inner, "id", "name", "args")
    if not TOOL_NAMES.fits(name):
        form["name"] = "as is"
    call = ToolCallPart(pairing.call(id_, name), name)
    if arguments is None:
        form["args"] = not_usual(inner, "args")
    elif not isinstance(arguments, dict):
        return None
    native = OWN.note(
        {**block_fields, **unnamed, **({"functionCall": further} if further else {})}, form=form
    )
    return replace(call, arguments=if_object(arguments), native=native)


def dump_call(call: ToolCallPart, out: OutgoingContents, position: int, index: int) -> Json:
    """Returns the Gemini part of a call. Reverses `load_call`."""
    inner = {
        "name": out.name(call.name),
        "args": call.arguments,
        **out.id_field(call, position, index),
    }
    if call.state == "complete" and not call.native:
        return {"functionCall": inner}
    form = OWN.form(call.native)
    if "args" in form and not call.arguments:
        inner["args"] = None
        if form["args"] == "absent":
            del inner["args"]
    out.lose_unfinished(position, index, call, inner.get("args"))
    return merged(out.own(call, position, index), {"functionCall": inner})


def load_tools(entries: Sequence[Any]) -> list[_Tool]:
    """Returns one list of Gemini's `tools`, each of which holds functions, server tools, or both.

    Raises:
        HistoryError: there is something else in it.
    """
    tools: list[_Tool] = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise HistoryError(f"an entry of tools must be an object, not {entry!r:.200}").at(
                field="tools"
            )
        snake: set[str] = set()
        block = to_camel_case(if_object(entry), snake)
        functions = if_list(block.get(_FUNCTIONS))
        objects = {
            key: if_object(value)
            for key, value in block.items()
            if isinstance(value, dict) and key != _MCP
        }
        if len(servers := if_objects(block.get(_MCP))) == 1:
            objects[_MCP] = servers[0]
        block_fields = read_extra_fields(block, *objects, *([_FUNCTIONS] if functions else []))
        loaded: list[_Tool] = [
            *(_load_function(function) for function in functions),
            *(ServerTool(key, value) for key, value in objects.items()),
        ]
        if not loaded:
            loaded.append(ServerTool("", {}, OWN.note(block_fields)))
            block_fields = {}
        again = any(isinstance(tool, ToolSpec) for tool in tools)
        forms = _entry_forms(loaded, again, block_fields, snake)
        tools += [
            replace(tool, native=OWN.with_form(tool.native, **form)) if form else tool
            for tool, form in zip(loaded, forms, strict=True)
        ]
    return tools


def dump_tools(tools: Sequence[_Tool], out: OutgoingContents) -> list[Json]:
    """Reverses `load_tools`: all functions in one Gemini entry, each tool of the provider's in its
    own."""
    entries: list[Json] = []
    snake: list[Sequence[str]] = []
    functions: list[Json] | None = None
    for tool in tools:
        form = OWN.form(tool.native)
        declarations_index = form.get("place")
        if not entries or (
            declarations_index != "together"
            if isinstance(tool, ServerTool)
            else declarations_index == "apart" or functions is None
        ):
            entries.append(dict(if_object(form.get("entry"))))
            snake.append(snakes(form, "snake_entry"))
            if isinstance(tool, ToolSpec):
                functions = entries[-1][_FUNCTIONS] = []
        entry = entries[-1]
        if isinstance(tool, ToolSpec):
            cast("list[Any]", functions).append(_dump_function(tool, out))
        elif not tool.name:
            entry |= OWN.fields(tool.native)
        else:
            key, options = _server_name(tool.name, out.quirks), dict(tool.options)
            entry[key] = options
            if key == _MCP:
                entry[key] = [options]
    return [to_snake_case(entry, keys) for entry, keys in zip(entries, snake, strict=True)]


def load_tool_choice(config: Any) -> tuple[str, Json] | None:
    """Returns the tool choice of Gemini's `functionCallingConfig`, and its wire form; None if no
    setting expresses it, so that it stays an option."""
    if not isinstance(config, dict):
        return None
    snake: set[str] = set()
    config = to_camel_case(if_object(config), snake)
    stated, allowed = config.get("mode"), config.get("allowedFunctionNames")
    mode = _load_mode(stated)
    choice = _CHOICES.get(mode or "")
    if choice is None or set(config) - {"mode", "allowedFunctionNames"}:
        return None
    form: Json = {**({"mode": stated} if mode != stated else {}), **snake_form(snake)}
    if "allowedFunctionNames" not in config:
        return choice, form
    match allowed:
        case [str(name)] if choice == "required" and name not in _SENT_CHOICES:
            return name, form
        case _:
            return None


def dump_tool_choice(choice: str, out: OutgoingContents, form: _Fields) -> Json:
    """Returns the tool choice as Gemini's `functionCallingConfig`."""
    mode = _SENT_CHOICES.get(choice, "ANY")
    if _load_mode(form.get("mode")) == mode:
        mode = form["mode"]
    if choice in _SENT_CHOICES:
        return {"mode": mode}
    return to_snake_case({"mode": mode, "allowedFunctionNames": [out.name(choice)]}, snakes(form))


def _own_fields(piece: Content) -> Json:
    """Returns a piece's own fields, without the mark of an id that was not given; a Gemini part of
    the provider's has none."""
    wire_fields = OWN.fields(piece.native)
    unnamed = not isinstance(piece, ProviderPart) and wire_fields.get("id", "") is None
    if unnamed:
        return read_extra_fields(wire_fields, "id")
    return wire_fields


def _load_mode(mode: Any) -> str | None:
    """Converts a mode of Gemini's `functionCallingConfig` by its name or its number to its name."""
    if isinstance(mode, str):
        return mode.upper()
    if type(mode) is int:
        return _NUMBERED.get(mode)
    return None


def _load_function(block: Any) -> ToolSpec:
    """Reads a Gemini function declaration as a tool."""
    if not isinstance(block, dict):
        raise HistoryError(f"a function must be an object, not {block!r:.200}").at(field="tools")
    snake: set[str] = set()
    block = to_camel_case(if_object(block), snake)
    name, description = block.get("name"), if_text(block.get("description"))
    if not isinstance(name, str):
        raise HistoryError("a function must have a name").at(field="tools")
    read = {"name", *(["description"] if description else [])}
    form: Json = {**({} if TOOL_NAMES.fits(name) else {"name": "as is"}), **snake_form(snake)}
    if schema := if_object(block.get("parametersJsonSchema")):
        read.add("parametersJsonSchema")
    elif older := if_object(block.get("parameters")):
        schema, form["parameters"] = load_older(older)
        read.add("parameters")
    else:
        form["parameters"] = "absent"
    return ToolSpec(name, description, schema, OWN.note(read_extra_fields(block, *read), form=form))


def _dump_function(tool: ToolSpec, out: OutgoingContents) -> Json:
    """Returns a tool as a Gemini function declaration."""
    block = {**OWN.fields(tool.native), "name": out.name(tool.name)}
    if tool.description:
        block["description"] = tool.description
    form = OWN.form(tool.native)
    types = form.get("parameters", "" if out.quirks.json_schema else "upper")
    if tool.input_schema and types in ("", "absent"):
        block["parametersJsonSchema"] = tool.input_schema
    elif tool.input_schema:
        block["parameters"] = dump_older(tool.input_schema, types)
    return to_snake_case(block, snakes(form))


def _entry_forms(
    tools: Sequence[_Tool], again: bool, block_fields: JsonMap, snake: set[str]
) -> list[Json]:
    """Returns for each tool of a Gemini entry what is unusual about its position."""
    together: list[Json] = [
        {"place": "together"} if isinstance(tool, ServerTool) else {} for tool in tools[1:]
    ]
    first = {
        **({"entry": dict(block_fields)} if block_fields else {}),
        **snake_form(snake, "snake_entry"),
    }
    if again and isinstance(tools[0], ToolSpec):
        first["place"] = "apart"
    return [first, *together]


def _server_name(name: str, quirks: Quirks) -> str:
    neutral_name = quirks.server_tools.get(name, name)
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), neutral_name)
