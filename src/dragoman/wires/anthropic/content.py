"""Content blocks ↔ pieces of content. What has no neutral shape, or is not of the documented shape,
is kept whole.

Media are read as neutral parts only where writing such a part gives the same block again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from dragoman.codec import outgoing
from dragoman.codec.ids import CALL_IDS, TOOL_NAMES
from dragoman.codec.json_values import if_objects, if_text, read_extra_fields
from dragoman.codec.media import (
    ELSEWHERE,
    IMAGES,
    Media,
    describe_as_text,
    guess_media_type,
    media_label,
    read_media_text,
)
from dragoman.codec.message_list import is_plain_text
from dragoman.codec.replay import name_part_type
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.anthropic.quirks import NAME, OWN, Quirks
from dragoman.wires.anthropic.tools import (
    CALLS,
    dump_call,
    dump_own,
    dump_result,
    load_call,
    load_result,
    own_fields,
)

__all__ = [
    "OutgoingBlocks",
    "dump_block",
    "dump_blocks",
    "dump_content",
    "load_block",
    "load_content",
    "load_media",
]

Block = Json
_PDF = "application/pdf"
_OTHER = "application/octet-stream"


class OutgoingBlocks(outgoing.Outgoing[Quirks], frozen=True, kw_only=True, gc=False):
    """A conversation on its way out, or the message of a response."""

    model: str = ""
    """Name of the model that gets it."""
    answer: bool = False
    """It is a response, whose client gets even what no request may hold."""


def load_content(
    entry: JsonMap, role: Role, names: dict[str, str], form: Json, where: str
) -> tuple[Content, ...]:
    """Converts the `content` of a message to its pieces. `names`: id of each call so far → its
    tool, to which its own calls are added; `form`: to which is added what is not of the usual form;
    `where`: the message, for an error.

    Raises:
        HistoryError: it is neither a text nor a list of blocks.
    """
    content = entry.get("content")
    if isinstance(content, str):
        if content.strip():
            return (TextPart(content),)
        form["content"] = content
        return ()
    if isinstance(content, list):
        blocks = cast("list[Any]", content)
        for index, block in enumerate(blocks):
            if not isinstance(block, dict):
                raise HistoryError(
                    f'"{where}.content[{index}]" must be an object, a content block'
                ).at(field=f"{where}.content[{index}]")
        if not blocks or is_plain_text(blocks):
            form["content"] = "list" if blocks else []
        return tuple([_load_piece(block, role, names) for block in blocks])
    # It only changes settings, in fields of its own.
    if role is Role.SYSTEM and "content" not in entry:
        form["content"] = "absent"
        return ()
    raise HistoryError(f'"{where}.content" must be a string or a list of content blocks').at(
        field=f"{where}.content"
    )


def dump_content(blocks: list[Block], message: Message) -> list[Block] | str:
    """Returns the field `content`: a single text is a string, unless its message came in another
    form."""
    if is_plain_text(blocks) and OWN.form(message.native).get("content") != "list":
        return blocks[0]["text"]
    return blocks


def dump_blocks(out: OutgoingBlocks, position: int) -> list[Block]:
    """Returns the blocks of a message, in its order."""
    content = out.messages[position].content
    blocks = [
        block
        for index, piece in enumerate(content)
        if (block := dump_block(piece, out, position, index)) is not None
    ]
    if out.unreadable[position] is None:
        return blocks
    ordered = sorted(blocks, key=lambda block: block.get("type") == "tool_use")
    if ordered != blocks:
        out.lose(
            position, None, Lost.order, "the API wants a message's calls after everything else"
        )
    return ordered


def load_block(block: JsonMap, names: Mapping[str, str] = {}) -> Content:
    """Returns the piece of a block. `names`: the tool of each call so far, by id, since results do
    not name theirs."""
    block_type = str(block.get("type"))
    if block_type == "tool_result" or block_type.endswith("_tool_result"):
        return load_result(
            block, names, _inner_parts(block) if block_type == "tool_result" else ()
        ) or _whole(block)
    load = _LOADERS.get(block_type)
    return (load and load(block)) or _whole(block)


def dump_block(piece: Content, out: OutgoingBlocks, position: int, index: int) -> Block | None:
    """Returns the block of a piece, or None if nothing of it can be sent. Adds what the wire or its
    target cannot hold to the losses."""
    return _DUMPERS[type(piece)](piece, out, position, index)


def load_media(block: JsonMap) -> Media | None:
    """Returns the part of an image, a document or a file, or None if no part has room for all of
    its fields."""
    block_type, source = block.get("type"), block.get("source")
    if block_type == "document":
        name = if_text(block.get("title")) or None
    else:
        name = None
    fields = read_extra_fields(block, "type", "source", "file_id", "title")
    block_native, file_native = OWN.note(fields), OWN.note(fields, mark=True)
    match source:
        case None if isinstance(file_id := block.get("file_id"), str):
            part: Media = FilePart(file_id, _OTHER, None, file_native)
        case {"type": "base64" | "text" as how, "media_type": str(mime_type), "data": str(data)}:
            try:
                part = DataPart(
                    b64decode(data) if how == "base64" else data.encode(),
                    mime_type,
                    name,
                    block_native,
                )
            except ValueError:
                # No base64, or half a pair of surrogates.
                return None
        case {"type": "url", "url": str(url)}:
            part = LinkPart(url, _PDF if block_type == "document" else None, name, block_native)
            if _media_block(part)[0].get("type") != block_type:
                part = LinkPart(url, "image/*", name, block_native)
        case {"type": "file", "file_id": str(file_id)}:
            part = FilePart(
                file_id, "image/*" if block_type == "image" else None, name, file_native
            )
        case _:
            return None
    return part if _media_block(part)[0] == block else None


def _load_piece(block: Block, role: Role, names: dict[str, str]) -> Content:
    """Returns a block of a conversation. An id or name that no API takes is noted, so that it goes
    back to where it was recorded."""
    piece = load_block(block, names)
    if isinstance(piece, (DataPart, LinkPart, FilePart)):
        if role is Role.MODEL and block["type"] != "container_upload":
            return _whole(block)
        return piece
    if not isinstance(piece, (ToolCallPart, ToolResultPart)):
        return piece
    fits = CALL_IDS.fits(piece.id)
    if isinstance(piece, ToolCallPart):
        fits = fits and piece.id not in names and TOOL_NAMES.fits(piece.name)
        names[piece.id] = piece.name
    if fits or piece.run_by != "agent":
        return piece
    return msgspec.structs.replace(piece, native=OWN.with_form(piece.native, id_or_name="as is"))


def _whole(block: JsonMap) -> ProviderPart:
    """Returns a block that only the provider understands."""
    return ProviderPart(str(block.get("type")), {NAME: dict(block)})


def _inner_parts(block: JsonMap) -> tuple[Content, ...]:
    """Returns the texts and media that a tool returned; nothing if it returned anything else."""
    parts = tuple([load_block(inner_block) for inner_block in if_objects(block.get("content"))])
    if all(isinstance(part, (TextPart, DataPart, LinkPart, FilePart)) for part in parts):
        return parts
    return ()


def _load_text(block: JsonMap) -> TextPart | None:
    # The API refuses blank text, and no part may be empty.
    text = if_text(block.get("text"))
    if text.strip():
        return TextPart(text, OWN.note(read_extra_fields(block, "type", "text")))
    return None


def _load_thinking(block: JsonMap) -> ThinkingPart | None:
    text = block.get("thinking")
    if not isinstance(text, str):
        return None
    form = {} if "signature" in block else {"signature": "absent"}
    return ThinkingPart(text, OWN.note(read_extra_fields(block, "type", "thinking"), form=form))


def _load_redacted(block: JsonMap) -> ThinkingPart:
    return ThinkingPart(native={NAME: dict(block)})


def _dump_text(part: TextPart, out: OutgoingBlocks, position: int, index: int) -> Block | None:
    if not part.text.strip() and not out.answer:
        out.lose(position, index, Lost.text, "it is blank, which the API refuses")
        return None
    return {"type": "text", **own_fields(part, out, position), "text": part.text}


def _dump_thinking(
    part: ThinkingPart, out: OutgoingBlocks, position: int, index: int
) -> Block | None:
    wire_fields = OWN.fields(part.native)
    signed = (
        "signature" in wire_fields
        or "type" in wire_fields
        or OWN.form(part.native).get("signature") == "absent"
    )
    why = out.unreadable[position]
    if why is None and not (signed or out.answer or out.quirks.unsigned_thinking):
        why = "it has no signature"
    if why is not None:
        out.lose(position, index, Lost.thinking, why)
        return None
    if not signed and out.answer:
        # The official clients demand one.
        wire_fields = {"signature": ""}
    return {
        "type": "thinking",
        **wire_fields,
        **({} if "type" in wire_fields else {"thinking": part.text}),
    }


def _dump_provider(
    part: ProviderPart, out: OutgoingBlocks, position: int, index: int
) -> Block | None:
    return dump_own(part, {}, out, position, index, f"a block of the provider's, {part.kind}")


def _dump_result(
    part: ToolResultPart, out: OutgoingBlocks, position: int, index: int
) -> Block | None:
    block = dump_result(part, out, position, index)
    if block is not None and part.is_content and part.run_by != "provider":
        inner = [dump_block(inner_part, out, position, index) for inner_part in part.result]
        block["content"] = [each for each in inner if each is not None]
    return block


def _dump_media(part: Media, out: OutgoingBlocks, position: int, index: int) -> Block:
    block, lost = _media_block(part)
    if out.messages[position].role is not Role.USER and block["type"] in ("image", "document"):
        block, lost = _media_text(part), None
        if read_media_text(part) is None:
            lost = (
                name_part_type(part),
                "the API takes media from the user alone",
                media_label(part),
            )
    if lost is not None:
        out.lose(position, index, *lost)
    return block


def _media_block(part: Media) -> tuple[Block, tuple[Lost, str, str] | None]:
    """Returns the block of a file, and what is lost by it, why, and which file. A file that the API
    does not take becomes a text that names it."""
    block_type, source, why = _media_source(part)
    if why is None:
        lost = None
    else:
        lost = (name_part_type(part), why, media_label(part))
    if source is None:
        return _media_text(part), lost
    block = {**OWN.fields(part.native), "type": block_type, **source}
    if part.name and block_type == "document":
        block["title"] = part.name
    elif part.name and lost is None:
        lost = Lost.file_name, f"the API knows no name of such a file, {part.name}", ""
    return block, lost


def _media_text(part: Media) -> Block:
    """Returns a text block that stands for something that cannot be sent."""
    return {"type": "text", "text": describe_as_text(part)}


def _media_source(part: Media) -> tuple[str, Block | None, str | None]:
    """Returns the type of a file's block, the fields that hold its content (None if it cannot be
    sent), and what is lost."""
    if isinstance(part, FilePart):
        if OWN.is_foreign(part.native):
            return "text", None, ELSEWHERE
        block_type = _file_kind(part.mime_type)
        source = {"file_id": part.id}
        return (
            block_type,
            source if block_type == "container_upload" else {"source": {"type": "file", **source}},
            None,
        )
    if isinstance(part, LinkPart):
        mime_type = part.mime_type or guess_media_type(part.url)
        if mime_type == _PDF or mime_type is None or mime_type.startswith("image/"):
            return (
                "document" if mime_type == _PDF else "image",
                {"source": {"type": "url", "url": part.url}},
                None,
            )
        return "text", None, f"the API takes no {mime_type} by its URL"
    mime_type = part.mime_type
    if mime_type == _PDF or mime_type in IMAGES:
        data = b64encode(part.data).decode()
        source = {"source": {"type": "base64", "media_type": mime_type, "data": data}}
        return "document" if mime_type == _PDF else "image", source, None
    if (text := read_media_text(part)) is not None:
        return (
            "document",
            {"source": {"type": "text", "media_type": "text/plain", "data": text}},
            None,
        )
    return "text", None, f"the API takes no {mime_type}"


def _file_kind(mime_type: str | None) -> str:
    if mime_type is None or mime_type == _PDF or mime_type.startswith("text/"):
        return "document"
    if mime_type.startswith("image/"):
        return "image"
    return "container_upload"


_LOADERS: Mapping[str, Callable[[JsonMap], Content | None]] = {
    "text": _load_text,
    "thinking": _load_thinking,
    "redacted_thinking": _load_redacted,
    "image": load_media,
    "document": load_media,
    "container_upload": load_media,
    **dict.fromkeys(CALLS, load_call),
}
"""Type of a block → what reads it; `None` from one: it is not of the documented shape."""
_DUMPERS: Mapping[type[Content], Callable[[Any, OutgoingBlocks, int, int], Block | None]] = {
    TextPart: _dump_text,
    DataPart: _dump_media,
    LinkPart: _dump_media,
    FilePart: _dump_media,
    ThinkingPart: _dump_thinking,
    ProviderPart: _dump_provider,
    ToolCallPart: dump_call,
    ToolResultPart: _dump_result,
}
