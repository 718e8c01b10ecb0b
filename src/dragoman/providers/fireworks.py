"""Fireworks AI: open models. It says how much to think by a level, or in tokens by `thinking`."""

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="fireworks",
    display_name="Fireworks AI",
    wire="openai_chat",
    base_url="https://api.fireworks.ai/inference/v1",
    aliases=("fireworks-ai",),
    base_url_names={"FIREWORKS_BASE_URL": "/v1"},
    key_names=("FIREWORKS_API_KEY",),
    chat_model="accounts/fireworks/models/gpt-oss-120b",
    embeddings_model="fireworks/qwen3-embedding-8b",
    capabilities=HOSTED | {Capability.vision, Capability.embeddings},
    quirks=Quirks(
        reasoning="reasoning_effort thinking", developer=False, blocks={"video": "video_url"}
    ),
    priced_as="fireworks",
)
