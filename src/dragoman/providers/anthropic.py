"""Anthropic, by its Messages API. Models before Claude Opus 4.1 take no output schema: their typed
output goes through a forced tool."""

from dragoman.capability import Capability
from dragoman.providers.media_way import MediaWay
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.wires.anthropic.quirks import Quirks
from dragoman.wires.anthropic.settings import takes_schema

__all__ = ["PROVIDER", "SIGNERS", "find_missing"]

SIGNERS = ("anthropic", "vertex-anthropic", "bedrock-anthropic", "azure-anthropic")
"""Platforms of Anthropic's models. Each reads the thinking that another one signed."""

_TYPED = frozenset({Capability.typed_output, Capability.typed_output_with_tools})


def find_missing(model: str) -> frozenset[Capability]:
    """Returns the capabilities of the record that a model lacks."""
    return frozenset() if takes_schema(model) else _TYPED


_MEDIA = (
    MediaWay(
        mode="code_execution",
        makes=("*/*",),
        tool="code_execution",
        instructions=(
            "Create the requested files ({types}) with the code execution tool. Only files in the "
            "directory that the environment variable OUTPUT_DIR names are returned to the user: "
            'write or copy each finished file there, list it with ls "$OUTPUT_DIR", and name it '
            "in your answer."
        ),
        max_tokens=4096,
    ),
)


PROVIDER = Provider(
    name="anthropic",
    display_name="Anthropic",
    wire="anthropic",
    base_url="https://api.anthropic.com/v1",
    base_url_names={"ANTHROPIC_BASE_URL": "/v1"},
    aliases=("claude",),
    key_names=("ANTHROPIC_API_TEST_KEY", "ANTHROPIC_API_KEY"),  # D-73
    key_header="x-api-key",
    key_prefix="",
    headers={"anthropic-version": "2023-06-01"},
    chat_model="claude-sonnet-4-6",
    media_model="claude-sonnet-4-6",
    media_ways=_MEDIA,
    models_path="/models?limit=1000",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.tools,
            Capability.parallel_tools,
            Capability.typed_output,
            Capability.typed_output_with_tools,
            Capability.forced_tools,
            Capability.vision,
            Capability.files,
            Capability.thinking,
            Capability.media,
            Capability.server_tools,
            Capability.models,
        }
    ),
    find_missing=find_missing,
    quirks=Quirks(reads=SIGNERS),
    calls=Calls("given", "in pieces"),
    token_rates=TokenRates(4.4, 0.7, 1.21, 500, 0, 1.45, 21, "area", 1600, 1.45),
    priced_as="anthropic",
)
