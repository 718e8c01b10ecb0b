"""OpenRouter: models of many vendors under one key."""

from dragoman.capability import Capability
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="openrouter",
    display_name="OpenRouter",
    wire="openai_chat",
    base_url="https://openrouter.ai/api/v1",
    base_url_names={"OPENROUTER_BASE_URL": ""},
    key_names=("OPENROUTER_API_KEY",),
    chat_model="google/gemini-2.5-flash",
    embeddings_model="openai/text-embedding-3-small",
    models_path="/models?output_modalities=all",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.embeddings,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.typed_output_with_tools,
            Capability.forced_tools,
            Capability.vision,
            Capability.files,
            Capability.thinking,
            Capability.server_tools,
            Capability.models,
        }
    ),
    quirks=Quirks(
        reasoning="reasoning",
        cache="cache_control",
        thinking="reasoning",
        tool_media=True,
        blocks={"video": "video_url", "application": "file"},
    ),
    calls=Calls("given", "in pieces"),
    token_rates=TokenRates(5.8, 0.8, 0.97, 12, 0, 0.68, 10),
    priced_as="openrouter",
    relays=True,
)
