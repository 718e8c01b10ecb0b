"""Azure OpenAI, by the Responses API."""

import msgspec

from dragoman.providers import azure, openai_responses
from dragoman.providers.provider import Provider

__all__ = ["PROVIDER"]

PROVIDER: Provider = msgspec.structs.replace(
    azure.PROVIDER,
    name="azure-responses",
    display_name="Azure OpenAI Responses",
    wire="openai_responses",
    aliases=(),
    capabilities=openai_responses.PROVIDER.capabilities,
)
