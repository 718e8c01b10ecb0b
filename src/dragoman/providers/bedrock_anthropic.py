"""Anthropic's models on Amazon Bedrock, by the Messages API with a Bedrock API key."""

import msgspec

from dragoman.capability import Capability
from dragoman.providers import vertex_anthropic
from dragoman.providers.anthropic import PROVIDER as ANTHROPIC
from dragoman.providers.aws_auth import BEDROCK_KEY, make_region_auth

__all__ = ["PROVIDER"]

PROVIDER = msgspec.structs.replace(
    vertex_anthropic.PROVIDER,
    name="bedrock-anthropic",
    display_name="Anthropic on Bedrock",
    base_url_names={"ANTHROPIC_BEDROCK_MANTLE_BASE_URL": "/v1"},
    aliases=("anthropic-bedrock",),
    key_names=(BEDROCK_KEY,),
    auth=make_region_auth("https://bedrock-mantle.{region}.api.aws/anthropic/v1"),
    auth_names=(),
    headers=ANTHROPIC.headers,
    chat_model="anthropic.claude-sonnet-4-6",
    capabilities=vertex_anthropic.PROVIDER.capabilities - {Capability.server_tools},
    quirks=ANTHROPIC.quirks,
    priced_as="aws",
    otel_name="aws.bedrock",
)
