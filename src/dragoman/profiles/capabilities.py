"""What a provider can do by one of its models, where the model's profile knows it better than the
provider's record."""

from __future__ import annotations

import msgspec

from dragoman.capability import Capability
from dragoman.model_profile import ModelProfile
from dragoman.profiles.lower import may_think
from dragoman.providers.provider import Provider
from dragoman.request import Settings

__all__ = ["with_profile"]


def with_profile(provider: Provider, profile: ModelProfile, settings: Settings) -> Provider:
    """Returns the provider's record with the capabilities that a model has for typed output.

    Args:
        provider: its record.
        profile: of the model. What it does not know is as in the record.
        settings: how the model is asked, since some cannot be forced to call a tool while they
            think.
    """
    with_tools = profile.schema_tools
    if profile.schema is False:
        with_tools = False
    known = {
        Capability.tools: profile.tools,
        Capability.typed_output: profile.schema,
        Capability.typed_output_with_tools: with_tools,
        Capability.forced_tools: _can_force(profile, settings),
    }
    added = {capability for capability, value in known.items() if value}
    missing = {capability for capability, value in known.items() if value is False}
    capabilities = (provider.capabilities | added) - missing
    if capabilities == provider.capabilities:
        return provider
    return msgspec.structs.replace(provider, capabilities=capabilities)


def _can_force(profile: ModelProfile, settings: Settings) -> bool | None:
    """Returns whether a profile lets a tool be forced under these settings, or None if unknown."""
    match profile.forced:
        case None:
            return None
        case "yes":
            return True
        case "no":
            return False
        case "unless-thinking":
            return not may_think(settings, profile)
        case "unless-budget":
            # a budget is the one way of thinking that a number asks for
            return not isinstance(settings.reasoning, int)
