"""Reads and writes content blocks: text, thinking and images. A block without a neutral shape, such
as a document, becomes a `ProviderPart`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard, cast

from msgspec.structs import replace

from dragoman.codec import message_list
from dragoman.codec.json_values import if_object, if_text, merge_wire_fields, read_extra_fields
from dragoman.codec.media import (
    IMAGES,
    Media,
    describe_as_text,
    dump_data_url,
    guess_media_type,
    load_url,
    media_label,
    read_media_text,
)
from dragoman.codec.message_list import dump_content
from dragoman.codec.signature_check import name_part_type
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
)
from dragoman.wires.cohere.quirks import NAME, OWN

__all__ = [
    "PLAN",
    "dump_block",
    "dump_content",
    "is_plan",
    "load_block",
    "load_content",
    "load_plan",
]

PLAN = "tool_plan"
"""The field for thinking about which tools to call. The part that it becomes notes that it came in
this field."""
Block = Json
Unsent = tuple[Lost, str, str]
"""What of a part is not sent, why, and of which part."""


def load_content(message: JsonMap, empty: object, form: Json) -> list[Content]:
    """Reads the `content` of a message into pieces; see `message_list.load_content`."""
    return message_list.load_content(message, empty, form, load_block)


def load_plan(text: str = "") -> ThinkingPart:
    """Returns the thinking of a tool plan."""
    return ThinkingPart(text, OWN.with_form(None, field=PLAN))


def is_plan(part: Content) -> TypeGuard[ThinkingPart]:
    """True if a part goes into the field for plans."""
    return isinstance(part, ThinkingPart) and OWN.form(part.native).get("field") == PLAN


def load_block(block: JsonMap) -> Content:
    """Reads one content block of a Cohere message."""
    type_name = if_text(block.get("type"))
    load = _LOADERS.get(type_name)
    part = load(block) if load else None
    return part or ProviderPart(type_name or "block", {NAME: dict(block)})


def dump_block(part: Content, *, images: bool = True) -> tuple[Block | None, Unsent | None]:
    """Returns the content block of a part (None if it has none), and what the block leaves out.

    `images`: False where the API takes no images, so that a text stands for one.
    """
    if isinstance(part, (DataPart, LinkPart, FilePart)):
        return _dump_media(part, images=images)
    dump = _DUMPERS.get(type(part))
    block = dump(part) if dump else None
    if block is None:
        return None, (name_part_type(part), "the API has no block for it", "")
    return merge_wire_fields(block, OWN.fields(part.native)), None


def _load_text(block: JsonMap) -> TextPart | None:
    """Returns a text block as a part, or None if it is empty."""
    text = if_text(block.get("text"))
    if not text:
        return None
    return TextPart(text, OWN.note(read_extra_fields(block, "type", "text")))


def _load_thinking(block: JsonMap) -> ThinkingPart | None:
    """Returns a thinking block as a part, or None if it is empty."""
    text = if_text(block.get("thinking"))
    if not text:
        return None
    return ThinkingPart(text, OWN.note(read_extra_fields(block, "type", "thinking")))


def _load_image(block: JsonMap) -> DataPart | LinkPart | None:
    """Returns an image block as a part, or None if it has no URL."""
    image = if_object(block.get("image_url"))
    url = if_text(image.get("url"))
    if not url:
        return None
    fields = read_extra_fields(block, "type", "image_url")
    if inner := read_extra_fields(image, "url"):
        fields["image_url"] = inner
    part = load_url(url) if url.startswith("data:image/") else LinkPart(url)
    # A part that does not look like an image notes that it came in the block for them.
    form = {} if _is_image(part) else {"type": "image_url"}
    return replace(part, native=OWN.note(fields, form=form))


def _dump_media(part: Media, *, images: bool) -> tuple[Block, Unsent | None]:
    """Returns the block of an image, or a text that stands for other media, and what is lost."""
    if not images or not _is_image(part):
        block = {"type": "text", "text": describe_as_text(part)}
        if read_media_text(part) is not None:
            return block, None
        why = f"the API takes images only, not {part.mime_type}; a text tells of it"
        return block, (name_part_type(part), why, media_label(part))
    url = part.url if isinstance(part, LinkPart) else dump_data_url(cast("DataPart", part))
    block = merge_wire_fields(
        {"type": "image_url", "image_url": {"url": url}}, OWN.fields(part.native)
    )
    if not part.name:
        return block, None
    return block, (Lost.file_name, f"the API knows no name of an image, {part.name}", "")


def _dump_provider(part: ProviderPart) -> Block | None:
    if NAME in (part.native or ()):
        return OWN.fields(part.native)
    return None


def _is_image(part: Media) -> bool:
    """True if a file, its data or its URL is an image that the API takes."""
    if isinstance(part, FilePart):
        return False
    if "type" in OWN.form(part.native):
        return True
    if isinstance(part, DataPart):
        return part.mime_type in IMAGES
    return (part.mime_type or guess_media_type(part.url) or "image/*").startswith("image/")


_LOADERS: Mapping[str, Callable[[JsonMap], Content | None]] = {
    "text": _load_text,
    "thinking": _load_thinking,
    "image_url": _load_image,
}
"""Type of a block → its reader. A reader returns None for a block of no neutral shape."""
_DUMPERS: Mapping[type[Content], Callable[[Any], Block | None]] = {
    TextPart: lambda part: {"type": "text", "text": part.text},
    ThinkingPart: lambda part: {"type": "thinking", "thinking": part.text},
    ProviderPart: _dump_provider,
}
"""Type of a part → its writer."""
