"""OpenAI, by its Responses API: it stores what it answers, and goes on from that."""

import msgspec

from dragoman.capability import Capability
from dragoman.providers.openai import PROVIDER as OPENAI

__all__ = ["PROVIDER"]

PROVIDER = msgspec.structs.replace(
    OPENAI,
    name="openai-responses",
    display_name="OpenAI Responses",
    wire="openai_responses",
    chat_model="gpt-5",
    capabilities=OPENAI.capabilities - {Capability.audio}
    | {Capability.thinking, Capability.server_tools},
    quirks=None,
    otel_name="openai",
)
