"""Azure OpenAI, by Chat Completions: the endpoint is the resource's own, and a model is the name of
a deployment."""

from types import MappingProxyType

from dragoman.capability import Capability
from dragoman.providers.entra_auth import NAMES, entra_auth
from dragoman.providers.openai import PROVIDER as OPENAI
from dragoman.providers.provider import Calls, Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="azure",
    display_name="Azure OpenAI",
    wire="openai_chat",
    # https://RESOURCE.openai.azure.com
    base_url_names={"AZURE_OPENAI_ENDPOINT": "/openai/v1"},
    aliases=("azure-openai",),
    key_names=("AZURE_OPENAI_API_KEY",),
    key_header="api-key",
    key_prefix="",
    # a token of Entra ID
    key_kinds=MappingProxyType({"eyJ": ("authorization", "Bearer ")}),
    auth=entra_auth,
    auth_names=NAMES,
    voice="alloy",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.embeddings,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.typed_output_with_tools,
            Capability.forced_tools,
            Capability.vision,
            Capability.images,
            Capability.speech,
            Capability.transcription,
            Capability.models,
        }
    ),
    quirks=OPENAI.quirks,
    calls=Calls("given", "in pieces"),
    priced_as="azure",
    otel_name="azure.ai.openai",
)
