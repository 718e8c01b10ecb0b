"""A vLLM server (`vllm serve`). A model is called as the server was told (`--served-model-name`)."""

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="vllm",
    display_name="vLLM",
    wire="openai_chat",
    base_url="http://localhost:8000/v1",
    base_url_names={"VLLM_BASE_URL": "/v1"},
    key_names=("VLLM_API_KEY",),
    key_required=False,
    capabilities=HOSTED | {Capability.embeddings, Capability.vision, Capability.audio},
    quirks=Quirks(
        reasoning="reasoning_effort thinking_token_budget",
        thinking="reasoning",
        developer=False,
        blocks={"video": "video_url"},
    ),
    free="on this machine",
)
