"""OpenAI, by its Chat Completions API."""

from types import MappingProxyType

from dragoman.capability import Capability
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="openai",
    display_name="OpenAI",
    wire="openai_chat",
    base_url="https://api.openai.com/v1",
    base_url_names={"OPENAI_BASE_URL": ""},
    key_names=("OPENAI_API_KEY",),
    chat_model="gpt-4o",
    embeddings_model="text-embedding-3-small",
    embeddings_batch=512,
    embeddings_characters=300_000,
    embeddings_options=MappingProxyType({"encoding_format": "base64"}),
    image_model="gpt-image-2.5-flare",
    speech_model="gpt-4o-mini-tts",
    voice="alloy",
    transcription_model="gpt-transcribe",
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
            Capability.audio,
            Capability.files,
            Capability.images,
            Capability.speech,
            Capability.transcription,
            Capability.models,
        }
    ),
    quirks=Quirks(
        max_tokens="max_completion_tokens",
        cache="prompt_cache_retention",
        thinking=None,
        max_id_length=40,
        refuses=("top_k",),
    ),
    calls=Calls("given", "in pieces"),
    token_rates=TokenRates(2.6, 3.7, 0.98, 10, 0, 0.62, 6, "tiles", 250, 0.62),
    priced_as="openai",
    family="openai",
)
