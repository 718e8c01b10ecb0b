"""SambaNova Cloud: open models."""

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="sambanova",
    display_name="SambaNova",
    wire="openai_chat",
    base_url="https://api.sambanova.ai/v1",
    base_url_names={"SAMBA_NOVA_BASE_URL": ""},
    key_names=("SAMBANOVA_API_KEY",),
    chat_model="gpt-oss-120b",
    embeddings_model="E5-Mistral-7B-Instruct",
    capabilities=HOSTED | {Capability.vision, Capability.embeddings},
    quirks=Quirks(
        reasoning="chat_template_kwargs reasoning_effort",
        thinking="reasoning",
        developer=False,
        blocks={"video": "video_url"},
    ),
)
