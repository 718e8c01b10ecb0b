"""OpenAI, by its Responses API: it stores what it answers, and goes on from that."""

from types import MappingProxyType

from dragoman.capability import Capability
from dragoman.providers.provider import Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="openai-responses",
    display_name="OpenAI Responses",
    wire="openai_responses",
    base_url="https://api.openai.com/v1",
    base_url_names={"OPENAI_BASE_URL": ""},
    key_names=("OPENAI_API_KEY",),
    chat_model="gpt-5",
    embeddings_model="text-embedding-3-small",
    embeddings_batch=512,
    embeddings_characters=300_000,
    embeddings_options=MappingProxyType({"encoding_format": "base64"}),
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
)
