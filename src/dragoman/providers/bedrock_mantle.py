"""Amazon Bedrock's endpoint `bedrock-mantle`, by Chat Completions with a Bedrock API key."""

from dragoman.capability import HOSTED, Capability
from dragoman.providers.aws_auth import BEDROCK_KEY, make_region_auth
from dragoman.providers.provider import Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="bedrock-mantle",
    display_name="Bedrock Mantle",
    wire="openai_chat",
    base_url_names={"BEDROCK_MANTLE_BASE_URL": ""},
    key_names=(BEDROCK_KEY,),
    auth=make_region_auth("https://bedrock-mantle.{region}.api.aws/v1"),
    chat_model="openai.gpt-oss-120b",
    capabilities=HOSTED | {Capability.vision, Capability.audio},
    quirks=Quirks(thinking="reasoning", developer=False),
    priced_as="aws",
    otel_name="aws.bedrock",
)
