"""Fields of a tool that some APIs have and others do not, such as `strict`: taken from the wire that
read the tool to the one that writes it, or told as a loss.

A tool keeps such fields in its `native`, under the wire that read it. A wire says in a table which
fields its own tools have (`ToolFields`). `fit_tools` compares the two before the request is written.
A tool that has fields of the writing wire is left as it is: whoever gave them knew the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import is_
from typing import Any

from msgspec.structs import replace

from dragoman.codec.json_values import if_list, if_object
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import NOTES, OURS, Native
from dragoman.model_profile import EMPTY, ModelProfile
from dragoman.request import ModelRequest, ServerTool, ToolSpec

__all__ = ["CACHE_MARK", "ToolFields", "fit_tools"]

ToolFields = Mapping[str, str]
"""Field → the object of a tool in which the API has it; empty: the tool itself."""

CACHE_MARK = "cache_control"
_SILENT: JsonMap = {"allowed_callers": ["direct"]}
"""Field → the value that says what every API does without the field."""
_VERSION = "type"
"""Field of a provider's tool that names its version, which each wire chooses for itself."""
_HOLDS_OTHERS = "function"
_SEARCH = "tool_search"
_MOST_NAMED = 3
"""Tools that a reason names at most."""
_LONGEST_NAME = 64
"""Characters of a tool's name in a reason."""


def fit_tools(
    request: ModelRequest, wire: str, fields: ToolFields, quirks: Any, losses: list[Loss]
) -> ModelRequest:
    """Returns the request with the fields that its tools had on another wire, as far as this one has
    them. Notes each of the other fields as a loss.

    Args:
        request: what is asked.
        wire: name of the wire that writes the request.
        fields: the fields that tools of this wire have.
        quirks: of who reads it; its profile may say that the model takes no schemas.
        losses: grows with what is left out.
    """
    if not any(tool.native for tool in request.tools):
        return request
    profile: ModelProfile = getattr(quirks, "profile", None) or EMPTY
    searches = profile.tool_search is not False and any(
        isinstance(tool, ServerTool) and tool.name.startswith(_SEARCH) for tool in request.tools
    )
    tools: list[ToolSpec | ServerTool] = []
    lost: dict[tuple[str, str], list[str]] = {}
    for original in request.tools:
        tool = original
        carried: Json = {}
        for name, value in _foreign_fields(tool, wire):
            # What the API lacks, and what it would refuse, is told with its reason.
            why = f"{wire} has no such field"
            if name in fields:
                why = _explain_refusal(name, tool, profile, searches=searches)
            if why is not None:
                lost.setdefault((name, why), []).append(tool.name)
            elif fields[name]:
                carried[fields[name]] = {**if_object(carried.get(fields[name])), name: value}
            else:
                carried[name] = value
        if carried:
            tool = replace(tool, native={**(tool.native or {}), wire: carried})
        tools.append(tool)
    losses += [
        Loss(None, None, Lost.field, f"{why} ({_list_names(names)})", f"tools.{name}")
        for (name, why), names in lost.items()
    ]
    if all(map(is_, tools, request.tools)):
        return request
    return request.replace(tools=tuple(tools))


def _foreign_fields(tool: ToolSpec | ServerTool, wire: str) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a tool that another wire read and that say something."""
    native: Native = tool.native
    if not native or wire in native or wire + NOTES in native:
        return
    for owner, own_fields in native.items():
        if owner == OURS or owner.endswith(NOTES):
            continue
        block = dict(if_object(own_fields))
        inner = if_object(block.pop(_HOLDS_OTHERS, None))
        for name, value in {**block, **inner}.items():
            is_version = name == _VERSION and isinstance(tool, ServerTool)
            if value and value != _SILENT.get(name) and not is_version:
                yield name, value


def _explain_refusal(
    name: str, tool: ToolSpec | ServerTool, profile: ModelProfile, *, searches: bool
) -> str | None:
    """Returns why a tool's field that the API has cannot be sent all the same, or None if it
    can."""
    if name == "allowed_callers":
        return "its values differ from API to API"
    if name == "defer_loading" and not searches:
        return "nothing in the request, or in the model, searches for tools"
    if name == "strict" and profile.schema is False:
        return "the model takes no strict tools"
    if name == "strict" and isinstance(tool, ToolSpec) and not _is_closed(tool.input_schema):
        return "its schema has optional or free keys, which not all APIs take of a strict tool"
    return None


def _is_closed(schema: JsonMap) -> bool:
    """True if each object in a tool's schema requires all of its keys and allows no others."""
    waiting: list[Any] = [schema]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Mapping):
            inner = if_object(inner)
            keys = if_object(inner.get("properties")).keys()
            is_object = "properties" in inner or inner.get("type") == "object"
            if is_object and (
                inner.get("additionalProperties") is not False
                or keys != set(map(str, if_list(inner.get("required"))))
            ):
                return False
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += if_list(inner)
    return True


def _list_names(names: list[str]) -> str:
    """Returns the names of tools for people, the first of many."""
    more = len(names) - _MOST_NAMED
    return ", ".join([name[:_LONGEST_NAME] for name in names[:_MOST_NAMED]]) + (
        f" and {more} more" if more > 0 else ""
    )
