"""Tools of a request, where they are loaded otherwise than in the family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.chat import tools
from dragoman.wires.chat.dialect import Chat
from dragoman.wires.mistral.quirks import OWN, Quirks

__all__ = ["load_tool"]

_RULES = Quirks()


def load_tool(chat: Chat, tool: Mapping[str, Any]) -> ToolSpec | ServerTool:
    """One tool of a request; a name that would otherwise not be sent as it is is noted."""
    spec = tools.load_tool(chat, tool)
    if not isinstance(spec, ToolSpec) or _RULES.names.fits(spec.name):
        return spec
    return replace(spec, native=OWN.with_form(spec.native, name_as_is=True))
