"""How endpoints and models that speak this wire differ, as data. Models are told by the beginning of their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.ids import Rule

__all__ = ["Quirks", "bare"]


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint of the Gemini API differs. The defaults are AI Studio's (generativelanguage.googleapis.com)."""

    reads: tuple[str, ...] = ()
    """Names of other providers whose signed content it reads. AI Studio and Vertex do not read each other's."""
    models: str = "models"
    """What stands in the path before a model's name that has no `/` (D-127); Vertex: `publishers/google/models`."""
    json_schema: bool = True
    """Takes JSON Schema (`parametersJsonSchema`, `responseJsonSchema`), as the Gemini API and Vertex do; else schemas
    are lowered to the older subset of OpenAPI (`parameters`, `responseSchema`)."""
    schema_with_tools: tuple[str, ...] = ("gemini-3",)
    """Models that take an output schema together with functions; others refuse it, and get no functions then (D-124)."""
    server_with_functions: tuple[str, ...] = ("gemini-3",)
    """Models that take functions together with tools of the provider's, if `includeServerSideToolInvocations` is set."""
    result_media: tuple[str, ...] = ("gemini-3",)
    """Models that take media inside a function's response; others get them after it, in the same content."""
    levels: tuple[str, ...] = ("gemini-3",)
    """Models that take an effort as `thinkingLevel`; others get a budget."""
    least_levels: Mapping[str, str] = MappingProxyType({"gemini-3-pro": "low", "gemini-3.1-pro": "low"})
    """Models of `levels` that cannot stop thinking → the level nearest to it. The others have `minimal`."""
    budgets: Mapping[str, int] = MappingProxyType({"low": 1024, "medium": 8192, "high": 24576})
    """Effort → tokens of thinking."""
    signed_calls: tuple[str, ...] = ("gemini-3",)
    """Models that refuse calls without a signature, also those that another model made."""
    placeholder: str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    """What stands for a signature there: `skip_thought_signature_validator`, in base64, as Google documents it."""
    server_tools: Mapping[str, str] = MappingProxyType({"web_search": "googleSearch", "web_fetch": "urlContext"})
    """Name of a tool that the provider runs → the API's name of it, where it is not the same in camelCase."""
    names: Rule = Rule(letters="a-zA-Z0-9_.:-")
    """What names of functions it takes."""


def bare(model: str) -> str:
    """A model's name without what stands before it in a path: `models/gemini-3-pro` → `gemini-3-pro`."""
    return model.rpartition("/")[2]
