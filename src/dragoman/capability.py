"""What a provider can do. A provider's record lists them; code asks for one and never for a
provider's name."""

from enum import StrEnum

__all__ = ["HOSTED", "Capability"]


class Capability(StrEnum):
    """One ability of a provider."""

    chat = "chat"
    """Answers prompts."""
    embeddings = "embeddings"
    """Turns texts into vectors."""
    tools = "tools"
    """Calls tools by itself; without it, tools go through constrained decoding."""
    parallel_tools = "parallel_tools"
    """Calls several tools in one answer."""
    typed_output = "typed_output"
    """Answers by a JSON Schema natively (`response_format` or like it)."""
    typed_output_with_tools = "typed_output_with_tools"
    """Answers by a JSON Schema and calls tools in the same request."""
    forced_tools = "forced_tools"
    """`tool_choice` can force a call, so that typed output can go through a tool."""
    vision = "vision"
    """Reads images."""
    audio = "audio"
    """Understands audio."""
    files = "files"
    """Reads documents, such as PDF."""
    thinking = "thinking"
    """Thinks before it answers, and shows or signs its thinking."""
    media = "media"
    """Makes images, audio or video as its answer."""
    images = "images"
    """Has an endpoint that makes and edits images."""
    speech = "speech"
    """Turns text into speech."""
    transcription = "transcription"
    """Turns speech into text."""
    server_tools = "server_tools"
    """Runs tools of its own, such as a web search."""
    models = "models"
    """Lists its models."""


_CALLING = ("tools", "parallel_tools", "typed_output", "forced_tools")
HOSTED = frozenset(map(Capability, ("chat", *_CALLING, "thinking", "models")))
"""What most servers of Chat Completions can do."""
