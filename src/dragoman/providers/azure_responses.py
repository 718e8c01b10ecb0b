"""Azure OpenAI, by the Responses API."""

import msgspec

from dragoman.providers import azure, openai_responses

__all__ = ["PROVIDER"]

PROVIDER = msgspec.structs.replace(
    azure.PROVIDER,
    name="azure-responses",
    display_name="Azure OpenAI Responses",
    wire="openai_responses",
    quirks=None,
    aliases=(),
    media_ways=openai_responses.MEDIA,
    capabilities=openai_responses.PROVIDER.capabilities,
)
