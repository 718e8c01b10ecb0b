"""Any other server that speaks Chat Completions: the user gives the base URL and names the
model."""

from types import MappingProxyType

from dragoman.capability import Capability
from dragoman.providers.provider import Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="openai-compatible",
    display_name="OpenAI-compatible",
    wire="openai_chat",
    base_url_names={"OPENAI_COMPATIBLE_BASE_URL": ""},
    key_names=("OPENAI_COMPATIBLE_API_KEY",),
    key_required=False,
    image_options=MappingProxyType({"response_format": "b64_json"}),
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.embeddings,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.vision,
            Capability.thinking,
            Capability.images,
            Capability.speech,
            Capability.transcription,
            Capability.models,
        }
    ),
    quirks=Quirks(developer=False),
)
