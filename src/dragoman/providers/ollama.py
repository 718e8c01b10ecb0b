"""Ollama, by its own API: models on this machine, or with a key on ollama.com."""

from dragoman.capability import Capability
from dragoman.providers.provider import Calls, Provider, TokenRates

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="ollama",
    display_name="Ollama",
    wire="ollama",
    base_url="http://localhost:11434",
    base_url_names={"OLLAMA_HOST": ""},
    key_names=("OLLAMA_API_KEY",),
    key_required=False,
    chat_model="qwen2.5:7b-instruct",
    embeddings_model="nomic-embed-text",
    models_path="/api/tags",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.embeddings,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.vision,
            Capability.thinking,
            Capability.models,
        }
    ),
    calls=Calls("given or minted", "whole"),
    token_rates=TokenRates(0, 9.9, 0.94, 69, 0, 1.08, 17),
    free="on this machine",
)
