"""LM Studio: models on this machine, loaded when they are first asked. Its `tool_choice` names no
tool."""

import msgspec

from dragoman.capability import HOSTED, Capability
from dragoman.providers import vllm
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = msgspec.structs.replace(
    vllm.PROVIDER,
    name="lmstudio",
    display_name="LM Studio",
    base_url="http://localhost:1234/v1",
    aliases=("lm-studio",),
    base_url_names={"LMSTUDIO_BASE_URL": "/v1"},
    key_names=("LM_API_TOKEN",),
    embeddings_model="text-embedding-nomic-embed-text-v1.5",
    capabilities=HOSTED - {Capability.forced_tools} | {Capability.embeddings, Capability.vision},
    quirks=Quirks(developer=False),
)
