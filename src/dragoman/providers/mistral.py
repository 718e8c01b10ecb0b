"""Mistral. Most of its models take no user message right after a tool's, so the model is made to
say a word between them; an output schema together with tools is not relied on, so typed output
comes in two phases where there are tools."""

from dragoman.capability import Capability
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.mistral.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="mistral",
    display_name="Mistral",
    wire="mistral",
    base_url="https://api.mistral.ai/v1",
    aliases=("mistralai",),
    base_url_names={"MISTRAL_BASE_URL": ""},
    key_names=("MISTRAL_API_KEY",),
    chat_model="mistral-small-latest",
    embeddings_model="mistral-embed",
    embeddings_batch=100,
    embeddings_characters=32_000,
    transcription_model="voxtral-mini-latest",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.embeddings,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.forced_tools,
            Capability.vision,
            Capability.audio,
            Capability.files,
            Capability.thinking,
            Capability.transcription,
            Capability.models,
        }
    ),
    quirks=Quirks(bridge="OK"),
    calls=Calls("given", "whole"),
    token_rates=TokenRates(2.1, 1.1, 1.15, 0, 2.6, 1.55, 0, answer=0),
    priced_as="mistral",
    otel_name="mistral_ai",
)
