"""xAI: the Grok models."""

from types import MappingProxyType

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="xai",
    display_name="xAI",
    wire="openai_chat",
    base_url="https://api.x.ai/v1",
    aliases=("grok",),
    base_url_names={"XAI_BASE_URL": ""},
    key_names=("XAI_API_KEY",),
    chat_model="grok-4.3",
    image_model="grok-imagine-image",
    image_options=MappingProxyType({"response_format": "b64_json"}),
    capabilities=HOSTED | {Capability.vision, Capability.images},
    quirks=Quirks(developer=False, image_edits="json"),
    calls=Calls("given", "whole"),
    token_rates=TokenRates(196, 0, 0.45, 32, 3, 1.25, 50),
    priced_as="x-ai",
    otel_name="x_ai",
)
