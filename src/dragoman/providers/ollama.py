"""Ollama, by its own API: models on this machine, or with a key on ollama.com."""

from dragoman.capability import Capability
from dragoman.providers.provider import Provider

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
)
