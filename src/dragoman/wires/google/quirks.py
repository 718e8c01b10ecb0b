"""How endpoints and models that speak this wire differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from dragoman.codec.efforts import TOKENS
from dragoman.codec.fit_ids import TOOL_NAMES, NameRule
from dragoman.codec.native import WireNative
from dragoman.model_profile import ModelProfile
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
    profile: ModelProfile | None = None
    """What is known of the model that is asked; `None`: nothing. Such a model is written for as the
    newest are."""
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

    def allows(self, fact: Literal["schema_tools", "server_and_tools", "result_media"]) -> bool:
        """Returns whether nothing is known against what a field of the profile says."""
        return self.profile is None or getattr(self.profile, fact) is not False

    @property
    def signs_calls(self) -> bool:
        """Returns whether the model may refuse calls without a signature."""
        return self.profile is None or self.profile.signed_calls is not False
