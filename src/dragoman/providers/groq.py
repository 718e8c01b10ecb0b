"""Groq. It streams no output by schema, so typed output goes through a forced tool."""

from dragoman.capability import HOSTED, Capability
from dragoman.providers.provider import Calls, Provider
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name="groq",
    display_name="Groq",
    wire="openai_chat",
    base_url="https://api.groq.com/openai/v1",
    base_url_names={"GROQ_BASE_URL": "/openai/v1"},
    key_names=("GROQ_API_KEY",),
    chat_model="openai/gpt-oss-120b",
    transcription_model="whisper-large-v3-turbo",
    capabilities=HOSTED - {Capability.typed_output} | {Capability.vision, Capability.transcription},
    quirks=Quirks(thinking="reasoning", developer=False),
    calls=Calls("given", "whole"),
    priced_as="groq",
)
