"""How endpoints and models that speak this wire differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.codec.efforts import TOKENS
from dragoman.codec.ids import TOOL_NAMES, NameRule
from dragoman.codec.native import WireNative
from dragoman.request import Effort

__all__ = ["NAME", "OWN", "Quirks"]

NAME = "google"

OWN = WireNative(NAME)
"""Its part of `native`."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint of the Gemini API differs. The defaults are AI Studio's
    (generativelanguage.googleapis.com)."""

    reads: tuple[str, ...] = ()
    """Names of other providers whose signed content it reads. AI Studio and Vertex do not read each
    other's."""
    models: str = "models"
    """What stands in the path before a model's name that has no `/`; Vertex:
    `publishers/google/models`."""
    json_schema: bool = True
    """Takes JSON Schema (`parametersJsonSchema`, `responseJsonSchema`), as the Gemini API and
    Vertex do; else schemas are lowered to the older subset of OpenAPI (`parameters`,
    `responseSchema`)."""
    older: tuple[str, ...] = ("gemini-1", "gemini-2", "gemma-2", "gemma-3", "learnlm")
    """Beginnings of the names of models before Gemini 3. These take a budget and no level of
    thinking, no functions together with an output schema or with tools of the provider's, and no
    media inside a function's response; and they do not refuse calls that have no signature."""
    always_thinking: str = "-pro"
    """What the names of newer models have in them that cannot think less than `low`; the others
    have `minimal`."""
    budgets: Mapping[Effort, int] = TOKENS
    """Effort → tokens of thinking, for older models."""
    placeholder: str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    """What stands for the signature of a call that another model made:
    `skip_thought_signature_validator` in base64, as Google documents it. Gemini 3 refuses a round
    of calls whose first one has no signature."""
    server_tools: Mapping[str, str] = MappingProxyType(
        {"web_search": "googleSearch", "web_fetch": "urlContext"}
    )
    """Name of a tool that the provider runs → the API's name of it, where it is not the same in
    camelCase."""
    vertex_embeddings: bool = False
    """Vectors are asked for as Vertex AI has it: settings in an object of their own, older models
    by `:predict`."""
    opening: str = "."
    """What the user is made to say before a conversation that the model began: the API takes no
    calls there."""
    ids: NameRule = NameRule(letters=r"\s\S", most=1024)
    """Ids of calls: any, but each once."""
    names: NameRule = TOOL_NAMES
    """What names of functions it takes."""

    def is_older(self, model: str) -> bool:
        """Whether the model is one of `older`."""
        return _bare(model).startswith(self.older)


def _bare(model: str) -> str:
    """A model's name without what stands before it in a path: `models/gemini-3-pro` →
    `gemini-3-pro`."""
    return model.rpartition("/")[2]
