"""Together AI: open models."""

from types import MappingProxyType

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="together",
    display_name="Together AI",
    wire="openai_chat",
    base_url="https://api.together.xyz/v1",
    aliases=("togetherai", "together-ai"),
    base_url_names={"TOGETHER_BASE_URL": ""},
    key_names=("TOGETHER_API_KEY",),
    chat_model="meta-llama/Llama-3.3-70B-Instruct-Turbo",
    image_options=MappingProxyType({"response_format": "base64"}),
    capabilities=HOSTED - {Capability.typed_output, Capability.thinking}
    | {Capability.embeddings, Capability.images},
    quirks=Quirks(developer=False),
    calls=Calls("given", "in pieces"),
    relays=True,
    token_rates=TokenRates(0, 11, 0.85, 78, 0, 1.36, 0),
    priced_as="together",
)
