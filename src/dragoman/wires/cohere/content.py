"""Content blocks ⇄ parts: text, thinking, images. A block without a neutral shape, such as a document, is a `ProviderPart`."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.errors import HistoryError
from dragoman.message import Content, DataPart, LinkPart, ProviderPart, TextPart, ThinkingPart
from dragoman.shapes import if_list, if_object, if_text, merged, rest
from dragoman.wires.cohere.native import NAME, extra, marked

__all__ = ["dump_block", "dump_content", "load_block", "load_content"]


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
        return TextPart(text, marked(rest(block, "type", "text")))
    if kind == "thinking" and (text := if_text(block.get("thinking"))):
        return ThinkingPart(text, marked(rest(block, "type", "thinking")))
    if kind == "image_url" and (url := if_text(if_object(block.get(kind)).get("url"))):
        inner = rest(if_object(block[kind]), "url")
        native = marked({**rest(block, "type", kind), **({kind: inner} if inner else {})})
        found = _data(url)
        return DataPart(found[0], found[1], native=native) if found else LinkPart(url, native=native)
    return ProviderPart(kind or "block", {NAME: dict(block)})


def dump_block(part: Content) -> dict[str, Any] | str:
    """A part → the content block that says it, or a text: why there is none."""
    if isinstance(part, TextPart):
        block: dict[str, Any] = {"type": "text", "text": part.text}
    elif isinstance(part, ThinkingPart):
        block = {"type": "thinking", "thinking": part.text}
    elif isinstance(part, LinkPart):
        block = {"type": "image_url", "image_url": {"url": part.url}}
    elif isinstance(part, DataPart):
        if not part.mime_type.startswith("image/"):
            return f"the API takes images only, not {part.mime_type}"
        url = f"data:{part.mime_type};base64,{b64encode(part.data).decode()}"
        block = {"type": "image_url", "image_url": {"url": url}}
    elif isinstance(part, ProviderPart) and NAME in (part.native or ()):
        return extra(part.native)
    else:
        return "the API has no block for it"
    return merged(block, extra(part.native))


def _data(url: str) -> tuple[bytes, str] | None:
    """The data in a `data:` URL and its type; `None` where writing them again would not give the same URL."""
    head, comma, text = url.partition(";base64,")
    if not comma or not head.startswith("data:image/"):
        return None
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return None
    return (data, head[5:]) if data and b64encode(data).decode() == text else None
