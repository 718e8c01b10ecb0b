"""Cerebras: open models on wafers."""

from dragoman.capability import HOSTED
from dragoman.providers.provider import Calls, Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="cerebras",
    display_name="Cerebras",
    wire="openai_chat",
    base_url="https://api.cerebras.ai/v1",
    base_url_names={"CEREBRAS_BASE_URL": "/v1"},
    key_names=("CEREBRAS_API_KEY",),
    chat_model="gpt-oss-120b",
    capabilities=HOSTED,
    quirks=Quirks(
        max_tokens="max_completion_tokens",
        thinking="reasoning",
        refuses=("top_k",),
        same_strict=True,
    ),
    calls=Calls("given", "in pieces"),
    priced_as="cerebras",
)
