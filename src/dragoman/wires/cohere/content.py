"""Content blocks ⇄ parts: text, thinking, images. A block without a neutral shape, such as a document, is a `ProviderPart`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.json_values import if_list, if_object, if_text, merged, rest
from dragoman.codec.media import IMAGES, as_text, data_url, from_url, guessed, label, text_of
from dragoman.errors import HistoryError
from dragoman.message import Content, DataPart, FilePart, LinkPart, ProviderPart, TextPart, ThinkingPart
from dragoman.wires.cohere.quirks import NAME, OWN

__all__ = ["dump_block", "dump_content", "load_block", "load_content", "unsaid"]


def load_content(message: Mapping[str, Any], empty: object, spelled: dict[str, Any]) -> list[Content]:
    """The `content` of a message → its pieces. `empty`: how no content is usually spelled; another way goes to `spelled`.

    Raises:
        HistoryError: it is neither a text nor a list of blocks.
    """
    content = message.get("content")
    if not content:
        how = content if "content" in message else "absent"
        if how != empty:
            spelled["content"] = how
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    blocks = if_list(content)
    if not blocks or not all(isinstance(block, dict) for block in blocks):
        raise HistoryError(f"the content of a {message.get('role')} message is neither a text nor a list of blocks")
    if is_plain(blocks):
        spelled["content"] = "list"
    return [load_block(block) for block in blocks]


def dump_content(blocks: Sequence[dict[str, Any]], empty: object, spelled: Mapping[str, Any]) -> dict[str, Any]:
    """Blocks → the field `content`: a string for one plain text, else a list."""
    how = spelled.get("content", empty)
    if not blocks:
        how = empty if how == "list" else how
        return {} if how == "absent" else {"content": how}
    return {"content": blocks[0]["text"] if is_plain(blocks) and how != "list" else list(blocks)}


def is_plain(blocks: Sequence[Any]) -> bool:
    """Whether it is one text and nothing else."""
    return len(blocks) == 1 and blocks[0] == {"type": "text", "text": if_text(blocks[0].get("text")) or None}


def load_block(block: Mapping[str, Any]) -> Content:
    """A content block → the part that it is."""
    kind = if_text(block.get("type"))
    if kind == "text" and (text := if_text(block.get("text"))):
        return TextPart(text, OWN.note(rest(block, "type", "text")))
    if kind == "thinking" and (text := if_text(block.get("thinking"))):
        return ThinkingPart(text, OWN.note(rest(block, "type", "thinking")))
    if kind == "image_url" and (url := if_text(if_object(block.get(kind)).get("url"))):
        inner = rest(if_object(block[kind]), "url")
        fields = {**rest(block, "type", kind), **({kind: inner} if inner else {})}
        found = from_url(url) if url.startswith("data:image/") else LinkPart(url)
        how = {} if _is_image(found) else {"type": kind}
        return replace(found, native=OWN.note(fields, form=how))
    return ProviderPart(kind or "block", {NAME: dict(block)})


def dump_block(part: Content) -> dict[str, Any] | str:
    """A part → the content block that says it, or a text: why there is none."""
    if isinstance(part, TextPart):
        block: dict[str, Any] = {"type": "text", "text": part.text}
    elif isinstance(part, ThinkingPart):
        block = {"type": "thinking", "thinking": part.text}
    elif isinstance(part, (DataPart, LinkPart, FilePart)):
        if not _is_image(part):
            return {"type": "text", "text": as_text(part)}
        url = part.url if isinstance(part, LinkPart) else data_url(cast("DataPart", part))
        block = {"type": "image_url", "image_url": {"url": url}}
    elif isinstance(part, ProviderPart) and NAME in (part.native or ()):
        return OWN.fields(part.native)
    else:
        return "the API has no block for it"
    return merged(block, OWN.fields(part.native))


def unsaid(part: Content, block: Mapping[str, Any]) -> tuple[str, str] | None:
    """What of a file its block does not hold, and why."""
    if not isinstance(part, (DataPart, LinkPart, FilePart)):
        return None
    if block["type"] == "text" and text_of(part) is not None:
        return None
    if block["type"] == "text":
        return label(part), f"the API takes images only, not {part.mime_type}; a text tells of it"
    return ("name", f"the API knows no name of an image, {part.name}") if part.name else None


def _is_image(part: DataPart | LinkPart | FilePart) -> bool:
    if isinstance(part, FilePart):
        return False
    if "type" in OWN.form(part.native):
        return True
    if isinstance(part, DataPart):
        return part.mime_type in IMAGES
    return (part.mime_type or guessed(part.url) or "image/*").startswith("image/")
