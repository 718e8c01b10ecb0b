"""Google, by the Interactions API of AI Studio: an answer is a list of steps, and Google stores it
unless the option `store` is false."""

import msgspec

from dragoman.capability import Capability
from dragoman.providers.google import PROVIDER as GOOGLE
from dragoman.providers.provider import Calls

__all__ = ["PROVIDER"]

PROVIDER = msgspec.structs.replace(
    GOOGLE,
    name="google-interactions",
    display_name="Google Interactions",
    wire="google_interactions",
    aliases=("gemini-interactions",),
    embeddings_model=None,
    media_model=None,
    media_ways=(),
    speech_model=None,
    voice=None,
    transcription_model=None,
    capabilities=GOOGLE.capabilities
    - {
        Capability.embeddings,
        Capability.media,
        Capability.images,
        Capability.speech,
        Capability.transcription,
    },
    calls=Calls("given", "whole"),
    family="google",
)
