"""Anthropic, by its Messages API. Older models know no output schema, so typed output goes through a forced tool."""

from dragoman.capability import Capability
from dragoman.providers.provider import Provider

__all__ = ["PROVIDER"]

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
    models_path="/models?limit=1000",
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.tools,
            Capability.parallel_tools,
            Capability.forced_tools,
            Capability.vision,
            Capability.files,
            Capability.thinking,
            Capability.server_tools,
            Capability.models,
        }
    ),
)
