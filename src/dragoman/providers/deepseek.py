"""DeepSeek. Its models think unless told not to, and while they think no tool can be forced."""

from dragoman.capability import Capability
from dragoman.providers.provider import Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="deepseek",
    display_name="DeepSeek",
    wire="openai_chat",
    base_url="https://api.deepseek.com",
    key_names=("DEEPSEEK_API_KEY",),
    chat_model="deepseek-flash",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.tools,
            Capability.parallel_tools,
            Capability.thinking,
            Capability.models,
        }
    ),
    quirks=Quirks(reasoning="thinking", developer=False, json_schema=False),
)
