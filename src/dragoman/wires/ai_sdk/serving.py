"""What a server of UI message streams answers beside runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.body_schema import TEXT, a_list, an_object
from dragoman.request import ToolSpec

__all__ = ["bodies", "dump_capabilities", "nothing_runs"]

nothing_runs = 204
"""Status with which a client that wants to go on reading is answered where nothing runs."""
_MESSAGE = an_object({"id": TEXT, "role": TEXT, "parts": a_list(an_object({"type": TEXT}))})
_INPUT = an_object({"id": TEXT, "messages": a_list(_MESSAGE), "trigger": TEXT})
bodies: Mapping[str, Any] = {"/ai-sdk": _INPUT, "/ai-sdk/{model}": _INPUT}
"""Path → JSON Schema of what clients send there."""


def dump_capabilities(name: str, *, tools: Sequence[ToolSpec] = (), **more: Any) -> dict[str, Any]:
    """What an agent can do. The protocol has no such thing; this is ours."""
    return {"name": name, "tools": [{"name": tool.name, "description": tool.description} for tool in tools], **more}
