"""Amazon Bedrock, by the Converse API: with an API key of Bedrock, or with AWS credentials that sign
each request. A model is the id of a model, or of an inference profile, or an ARN."""

from dragoman.capability import Capability
from dragoman.providers.aws_auth import BEDROCK_KEY, bedrock_auth, bedrock_url
from dragoman.providers.provider import Calls, Provider

__all__ = ["PROVIDER"]


def find_family(model: str) -> str | None:
    """Returns the vendor of a model by its name, such as `us.anthropic.claude-opus-5`."""
    vendors = ("anthropic", "cohere", "deepseek", "mistral", "openai")
    return next((vendor for vendor in vendors if f"{vendor}." in model), None)


PROVIDER = Provider(
    name="bedrock",
    display_name="Amazon Bedrock",
    wire="bedrock_converse",
    base_url=bedrock_url("us-east-1"),
    base_url_names={"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": ""},
    aliases=("aws-bedrock", "amazon-bedrock"),
    key_names=(BEDROCK_KEY,),
    auth=bedrock_auth,
    auth_names=("AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
    chat_model="global.anthropic.claude-sonnet-4-6-v1:0",
    # They stand at another host, bedrock.REGION.amazonaws.com.
    models_path=None,
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.forced_tools,
            Capability.vision,
            Capability.files,
            Capability.thinking,
        }
    ),
    calls=Calls("given", "in pieces"),
    family=find_family,
    priced_as="aws",
    otel_name="aws.bedrock",
)
