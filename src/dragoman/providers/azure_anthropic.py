"""Anthropic's models on Azure (Microsoft Foundry). A model is the name of a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.errors import SettingsError
from dragoman.providers import vertex_anthropic
from dragoman.providers.anthropic import PROVIDER as ANTHROPIC
from dragoman.providers.auth import Auth
from dragoman.providers.entra_auth import NAMES, entra_auth

__all__ = ["PROVIDER"]

_RESOURCE = "ANTHROPIC_FOUNDRY_RESOURCE"


def _foundry_auth(environment: Mapping[str, str], key: str | None) -> Auth | None:
    """Returns how requests to Microsoft Foundry are authorized and where they go."""
    auth = entra_auth(environment, key, "https://ai.azure.com/.default")
    if auth is None and not key:
        return None
    url = SettingsError(f"Microsoft Foundry needs a resource: set {_RESOURCE}, or pass base_url=")
    if resource := environment.get(_RESOURCE, "").strip():
        url = f"https://{resource}.services.ai.azure.com/anthropic/v1"
    return msgspec.structs.replace(auth or Auth(), base_url=url)


PROVIDER = msgspec.structs.replace(
    vertex_anthropic.PROVIDER,
    name="azure-anthropic",
    display_name="Anthropic on Microsoft Foundry",
    base_url_names={"ANTHROPIC_FOUNDRY_BASE_URL": "/v1"},
    aliases=("anthropic-foundry",),
    key_names=("ANTHROPIC_FOUNDRY_API_KEY",),
    key_header="x-api-key",
    key_prefix="",
    # a token of Entra ID
    key_kinds=MappingProxyType({"eyJ": ("authorization", "Bearer ")}),
    auth=_foundry_auth,
    auth_names=NAMES,
    headers=ANTHROPIC.headers,
    quirks=ANTHROPIC.quirks,
    priced_as="anthropic",
    otel_name="azure.ai.inference",
)
