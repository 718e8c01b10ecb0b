"""OpenAI, by its Responses API: it stores what it answers, and goes on from that."""

from types import MappingProxyType

import msgspec

from dragoman.capability import Capability
from dragoman.providers.media_way import MediaWay
from dragoman.providers.openai import PROVIDER as OPENAI

__all__ = ["MEDIA", "PROVIDER"]

MEDIA = (
    MediaWay(
        mode="image_generation",
        makes=("image/png", "image/jpeg", "image/webp"),
        tool="image_generation",
        tool_options=(
            "action",
            "background",
            "input_fidelity",
            "input_image_mask",
            "moderation",
            "output_compression",
            "output_format",
            "partial_images",
            "quality",
            "size",
        ),
        formats=MappingProxyType({"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"}),
        combines=True,
    ),
    MediaWay(
        mode="code_interpreter",
        makes=("*/*",),
        tool="code_interpreter",
        tool_options=("container",),
        # Only a file that the answer links to is named there.
        instructions=(
            "Create the requested files ({types}) with the code interpreter. In your answer link "
            "to each file by its exact path, as in [report.pdf](sandbox:/mnt/data/report.pdf)."
        ),
        combines=True,
    ),
)
"""By the tools of the Responses API."""

PROVIDER = msgspec.structs.replace(
    OPENAI,
    name="openai-responses",
    display_name="OpenAI Responses",
    wire="openai_responses",
    chat_model="gpt-5",
    media_model="gpt-5",
    media_ways=MEDIA,
    capabilities=OPENAI.capabilities - {Capability.audio}
    | {Capability.thinking, Capability.media, Capability.server_tools},
    quirks=None,
    otel_name="openai",
)
