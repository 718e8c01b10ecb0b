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
    """The names of other providers whose signed content the endpoint reads. AI Studio and Vertex do
    not read each other's."""
    models: str = "models"
    """The path before the name of a model that has no `/`. Vertex: `publishers/google/models`."""
    json_schema: bool = True
    """True if the endpoint accepts JSON Schema (`parametersJsonSchema`, `responseJsonSchema`), as
    the Gemini API and Vertex do. Otherwise schemas are lowered to the older subset of OpenAPI
    (`parameters`, `responseSchema`)."""
    profile: ModelProfile | None = None
    """What is known of the requested model. `None`: nothing, so the request is written as for the
    newest models."""
    budgets: Mapping[Effort, int] = TOKENS
    """Each effort with its tokens of thinking, for older models."""
    placeholder: str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    """The signature to send for a call of another model: `skip_thought_signature_validator` in
    base64, as Google documents it. Gemini 3 refuses a round of calls whose first call has no
    signature."""
    server_tools: Mapping[str, str] = MappingProxyType(
        {"web_search": "googleSearch", "web_fetch": "urlContext", "mcp": "mcpServers"}
    )
    """The name of a tool that the provider runs, with the API's name of it, unless that is the same
    in camelCase."""
    vertex_embeddings: bool = False
    """True if embeddings are requested as Vertex AI expects: settings in an object of their own,
    older models by `:predict`."""
    opening: str = "."
    """The user text to send before a conversation that begins with the model, since the API accepts
    no calls there."""
    ids: NameRule = NameRule(letters=r"\s\S", most=1024)
    """The ids of calls that the endpoint accepts: any, but each only once."""
    names: NameRule = TOOL_NAMES
    """The names of functions that the endpoint accepts."""

    def allows(self, fact: Literal["schema_tools", "server_and_tools", "result_media"]) -> bool:
        """Returns whether nothing is known against what a field of the profile says."""
        return self.profile is None or getattr(self.profile, fact) is not False

    @property
    def signs_calls(self) -> bool:
        """Returns whether the model may refuse calls without a signature."""
        return self.profile is None or self.profile.signed_calls is not False
