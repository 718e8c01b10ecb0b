"""A llama.cpp server (`llama-server`). It answers with the model it was started with, whatever the
name."""

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="llamacpp",
    display_name="llama.cpp",
    wire="openai_chat",
    base_url="http://localhost:8080/v1",
    aliases=("llama.cpp", "llama-cpp"),
    key_names=("LLAMA_API_KEY",),
    key_required=False,
    chat_model="default",
    embeddings_model="default",
    capabilities=HOSTED
    | {Capability.embeddings, Capability.typed_output_with_tools, Capability.vision},
    quirks=Quirks(developer=False, tool_media=True),
    calls=Calls("given", "in pieces"),
    token_rates=TokenRates(2.2, 5.8, 0.87, 82, 9, 1.37, 10),
    free="on this machine",
)
