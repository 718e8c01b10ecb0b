"""Agents that speak AG-UI: `ag-ui:https://host/agent`, the URL that runs are sent to."""

from dragoman.capability import Capability
from dragoman.providers.provider import Provider

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="ag-ui",
    display_name="AG-UI",
    wire="ag_ui",
    by_url=True,
    aliases=("agui",),
    key_names=("AG_UI_API_KEY",),
    key_required=False,
    models_path=None,
    capabilities=frozenset(
        {
            Capability.chat,
            Capability.tools,
            Capability.parallel_tools,
            Capability.vision,
            Capability.audio,
            Capability.files,
            Capability.thinking,
        }
    ),
)
