"""Reads and writes requests of `/api/generate`, the older endpoint: it takes a prompt, images and a
system text instead of messages."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codec.json_values import if_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Message, Role, TextPart
from dragoman.request import ModelRequest
from dragoman.wires.ollama.content import dump_image, load_images
from dragoman.wires.ollama.quirks import OWN

__all__ = [
    "ENDPOINT",
    "GENERATE",
    "PROMPT",
    "dump_prompt",
    "is_generate",
    "is_prompt",
    "load_prompt",
]

GENERATE = "/api/generate"
"""Path of the endpoint."""
ENDPOINT = {"endpoint": "generate"}
"""Wire form of a request of this endpoint."""
PROMPT = ("system", "prompt", "images")
"""Fields that stand for a conversation."""


def is_prompt(body: JsonMap, path: str) -> bool:
    """True if an Ollama body is one of this endpoint."""
    if "messages" in body:
        return False
    return if_text(path).endswith(GENERATE) or isinstance(body.get("prompt"), str)


def is_generate(request: ModelRequest) -> bool:
    """True if a request was read from a body of this endpoint."""
    return OWN.form(request.native).get("endpoint") == ENDPOINT["endpoint"]


def load_prompt(fields_left: Json) -> list[Message]:
    """Takes the system text, the prompt and its images out of an Ollama body, and returns the
    conversation that they are. An empty prompt, which a client sends to load a model, is no
    message."""
    messages: list[Message] = []
    if if_text(fields_left.get("system")):
        messages.append(Message.system(fields_left.pop("system")))
    content: list[Content | str] = [*load_images(fields_left)]
    if content:
        del fields_left["images"]
    if prompt := if_text(fields_left.get("prompt")):
        content.append(prompt)
        del fields_left["prompt"]
    if content:
        messages.append(Message.user(*content))
    return messages


def dump_prompt(messages: Sequence[Message]) -> Json | None:
    """Writes a conversation as the prompt of Ollama's `/api/generate`. None if it is more than one:
    a system text at most, then a user message with a text and images."""
    fields: Json = {}
    if messages and messages[0].role is Role.SYSTEM:
        system, *messages = messages
        if system.native or system.content != (TextPart(system.text),):
            return None
        fields["system"] = system.text
    if not messages:
        return fields
    prompt, *others = messages
    if others or prompt.native or prompt.role is not Role.USER:
        return None
    prompt_fields = _dump_user_message(prompt)
    if prompt_fields is None:
        return None
    return fields | prompt_fields


def _dump_user_message(prompt: Message) -> Json | None:
    """Writes a user message as prompt and images of Ollama's `/api/generate`. None if it holds more
    than one text, or a piece that is no image."""
    fields: Json = {}
    texts = [piece.text for piece in prompt.content if isinstance(piece, TextPart)]
    images = [dump_image(piece) for piece in prompt.content if not isinstance(piece, TextPart)]
    if None in images or len(texts) > 1:
        return None
    if texts:
        fields["prompt"] = texts[0]
    if images:
        fields["images"] = images
    return fields
