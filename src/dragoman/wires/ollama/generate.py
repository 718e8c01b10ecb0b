"""Requests of `/api/generate`, the older endpoint: a prompt, its images and a system text in the
place of messages."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.codec.json_values import if_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Message, Role, TextPart
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
"""The endpoint's path."""
ENDPOINT = {"endpoint": "generate"}
"""The wire form of a request of it."""
PROMPT = ("system", "prompt", "images")
"""The fields that stand for a conversation."""


def is_prompt(body: JsonMap, path: str) -> bool:
    """Whether it is a body of this endpoint."""
    return "messages" not in body and (
        if_text(path).endswith(GENERATE) or isinstance(body.get("prompt"), str)
    )


def is_generate(request: ModelRequest) -> bool:
    """Whether it was read from a body of this endpoint."""
    return OWN.form(request.native).get("endpoint") == ENDPOINT["endpoint"]


def load_prompt(fields_left: Json) -> list[Message]:
    """Takes the system text, the prompt and its images out of a body → the conversation that they
    are. An empty prompt, by which a model is loaded, is none."""
    messages: list[Message] = []
    if if_text(fields_left.get("system")):
        messages.append(Message.system(fields_left.pop("system")))
    images = load_images(fields_left)
    if (prompt := if_text(fields_left.get("prompt"))) or images:
        messages.append(Message.user(*images, *([prompt] if prompt else [])))
        for field in (*(["prompt"] if prompt else []), *(["images"] if images else [])):
            del fields_left[field]
    return messages


def dump_prompt(messages: Sequence[Message]) -> Json | None:
    """The inverse; `None` where the conversation is more than a prompt."""
    system = [message for message in messages[:1] if message.role is Role.SYSTEM]
    prompts = messages[len(system) :]
    if len(prompts) > 1 or any(
        message.native or message.role is Role.MODEL for message in messages
    ):
        return None
    text = system[0].text if system else ""
    if system and system[0].content != (TextPart(text),):
        return None
    fields: Json = {"system": text} if system else {}
    content = prompts[0].content if prompts else ()
    images = [dump_image(piece) for piece in content if not isinstance(piece, TextPart)]
    texts = [piece.text for piece in content if isinstance(piece, TextPart)]
    if None in images or len(texts) > 1 or (prompts and prompts[0].role is not Role.USER):
        return None
    return fields | ({"prompt": texts[0]} if texts else {}) | ({"images": images} if images else {})
