"""Ollama, by its OpenAI-compatible endpoint: models on this machine, or with a key on ollama.com."""

from dragoman.capability import Capability
from dragoman.providers.provider import Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="ollama",
    display_name="Ollama",
    wire="openai_chat",
    base_url="http://localhost:11434/v1",
    base_url_names={"OLLAMA_HOST": "/v1"},
    key_names=("OLLAMA_API_KEY",),
    key_required=False,
    chat_model="qwen2.5:7b-instruct",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.vision,
            Capability.thinking,
            Capability.models,
        }
    ),
    quirks=Quirks(thinking="reasoning", developer=False, tool_media=True),
)
