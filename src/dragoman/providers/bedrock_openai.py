"""Amazon Bedrock's endpoint `bedrock-runtime`, by Chat Completions with a Bedrock API key. It lists
no models."""

import msgspec

from dragoman.capability import Capability
from dragoman.providers import bedrock_mantle
from dragoman.providers.aws_auth import make_region_auth

__all__ = ["PROVIDER"]

PROVIDER = msgspec.structs.replace(
    bedrock_mantle.PROVIDER,
    name="bedrock-openai",
    display_name="Bedrock Chat Completions",
    base_url_names={"BEDROCK_OPENAI_BASE_URL": "/openai/v1"},
    auth=make_region_auth("https://bedrock-runtime.{region}.amazonaws.com/openai/v1"),
    chat_model="openai.gpt-oss-120b-1:0",
    models_path=None,
    capabilities=bedrock_mantle.PROVIDER.capabilities - {Capability.models},
)
