"""OpenAI's models on Amazon Bedrock's endpoint `bedrock-mantle`, by the Responses API with a Bedrock
API key."""

import msgspec

from dragoman.capability import HOSTED, Capability
from dragoman.providers import bedrock_mantle
from dragoman.providers.aws_auth import make_region_auth
from dragoman.providers.provider import Calls

__all__ = ["PROVIDER"]

PROVIDER = msgspec.structs.replace(
    bedrock_mantle.PROVIDER,
    name="bedrock-responses",
    display_name="Bedrock Responses",
    wire="openai_responses",
    base_url_names={"BEDROCK_RESPONSES_BASE_URL": "/openai/v1"},
    auth=make_region_auth("https://bedrock-mantle.{region}.api.aws/openai/v1"),
    chat_model="openai.gpt-5.6-luna",
    models_path="/../../v1/models",
    capabilities=HOSTED | {Capability.vision},
    quirks=None,
    calls=Calls("given", "in pieces"),
    family="openai",
)
