"""Content blocks ⇄ parts: text, thinking, images. A block without a neutral shape, such as a
document, is a `ProviderPart`."""

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
from dragoman.codec.replay import name_part_type
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
"""The field for thinking about which tools to call; its form is noted in the part that came in
it."""
Block = Json
Unsent = tuple[Lost, str, str]
"""What is not sent of a part, why, and which one."""


def load_content(message: JsonMap, empty: object, form: Json) -> list[Content]:
    """The `content` of a message → its pieces; see `message_list.load_content`."""
    return message_list.load_content(message, empty, form, load_block)


def load_plan(text: str = "") -> ThinkingPart:
    """A tool plan → the thinking that it is."""
    return ThinkingPart(text, OWN.with_form(None, field=PLAN))


def is_plan(part: Content) -> TypeGuard[ThinkingPart]:
    """Whether a part goes into the field for plans."""
    return isinstance(part, ThinkingPart) and OWN.form(part.native).get("field") == PLAN


def load_block(block: JsonMap) -> Content:
    """A content block → the part that it is."""
    type_name = if_text(block.get("type"))
    load = _LOADERS.get(type_name)
    return (load and load(block)) or ProviderPart(type_name or "block", {NAME: dict(block)})


def dump_block(part: Content, *, images: bool = True) -> tuple[Block | None, Unsent | None]:
    """A part → its content block, and what is lost of it. `images`: whether there may be any; else
    a text stands for one."""
    if isinstance(part, (DataPart, LinkPart, FilePart)):
        return _dump_media(part, images=images)
    dump = _DUMPERS.get(type(part))
    block = dump(part) if dump else None
    if block is None:
        return None, (name_part_type(part), "the API has no block for it", "")
    return merge_wire_fields(block, OWN.fields(part.native)), None


def _load_text(block: JsonMap) -> TextPart | None:
    text = if_text(block.get("text"))
    return TextPart(text, OWN.note(read_extra_fields(block, "type", "text"))) if text else None


def _load_thinking(block: JsonMap) -> ThinkingPart | None:
    text = if_text(block.get("thinking"))
    return (
        ThinkingPart(text, OWN.note(read_extra_fields(block, "type", "thinking"))) if text else None
    )


def _load_image(block: JsonMap) -> DataPart | LinkPart | None:
    image = if_object(block.get("image_url"))
    if not (url := if_text(image.get("url"))):
        return None
    inner = read_extra_fields(image, "url")
    fields = {
        **read_extra_fields(block, "type", "image_url"),
        **({"image_url": inner} if inner else {}),
    }
    part = load_url(url) if url.startswith("data:image/") else LinkPart(url)
    return replace(
        part, native=OWN.note(fields, form={} if _is_image(part) else {"type": "image_url"})
    )


def _dump_media(part: Media, *, images: bool) -> tuple[Block, Unsent | None]:
    if not (images and _is_image(part)):
        lost = (
            name_part_type(part),
            f"the API takes images only, not {part.mime_type}; a text tells of it",
            media_label(part),
        )
        return {"type": "text", "text": describe_as_text(part)}, None if read_media_text(
            part
        ) is not None else lost
    url = part.url if isinstance(part, LinkPart) else dump_data_url(cast("DataPart", part))
    block = merge_wire_fields(
        {"type": "image_url", "image_url": {"url": url}}, OWN.fields(part.native)
    )
    return block, (
        Lost.file_name,
        f"the API knows no name of an image, {part.name}",
        "",
    ) if part.name else None


def _dump_provider(part: ProviderPart) -> Block | None:
    return OWN.fields(part.native) if NAME in (part.native or ()) else None


def _is_image(part: Media) -> bool:
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
"""Type of a block → what reads it; `None` from one: it is of no neutral shape."""
_DUMPERS: Mapping[type[Content], Callable[[Any], Block | None]] = {
    TextPart: lambda part: {"type": "text", "text": part.text},
    ThinkingPart: lambda part: {"type": "thinking", "thinking": part.text},
    ProviderPart: _dump_provider,
}
