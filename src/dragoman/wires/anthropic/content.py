"""Content blocks ↔ pieces of content. What has no neutral shape, or is not of the documented shape,
is kept whole.

Media are read as neutral parts only where writing such a part gives the same block again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from dragoman.codec import outgoing_conversation
from dragoman.codec.fit_ids import CALL_IDS, TOOL_NAMES
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
from dragoman.codec.signature_check import name_part_type
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Native,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.anthropic.citations import dump_citations, load_citations
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


class OutgoingBlocks(outgoing_conversation.Outgoing[Quirks], frozen=True, kw_only=True, gc=False):
    """A conversation on its way out, or the message of a response."""

    model: str = ""
    """Name of the model that gets it."""
    answer: bool = False
    """It is a response, whose client gets even what no request may hold."""


def load_content(
    entry: JsonMap, role: Role, names: dict[str, str], form: Json, where: str
) -> tuple[Content, ...]:
    """Converts the `content` of an Anthropic message to its pieces. `names`: id of each call so far
    → its tool, to which its own calls are added; `form`: to which is added what is not of the usual
    form; `where`: the message, for an error.

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
        _check_blocks(blocks, f"{where}.content")
        # Written again these would become a string, or would be left out as empty.
        if not blocks:
            form["content"] = []
        elif is_plain_text(blocks):
            form["content"] = "list"
        return tuple([_load_piece(block, role, names) for block in blocks])
    # It only changes settings, in fields of its own.
    if role is Role.SYSTEM and "content" not in entry:
        form["content"] = "absent"
        return ()
    raise HistoryError(f'"{where}.content" must be a string or a list of content blocks').at(
        field=f"{where}.content"
    )


def _check_blocks(blocks: list[Any], where: str) -> None:
    """Raises `HistoryError` for the first element of an Anthropic `content` that is no object."""
    for index, block in enumerate(blocks):
        if not isinstance(block, dict):
            place = f"{where}[{index}]"
            raise HistoryError(f'"{place}" must be an object, a content block').at(field=place)


def dump_content(blocks: list[Block], message: Message) -> list[Block] | str:
    """Returns the field `content`: a single text is a string, unless its Anthropic message came in
    another form."""
    if is_plain_text(blocks) and OWN.form(message.native).get("content") != "list":
        return blocks[0]["text"]
    return blocks


def dump_blocks(out: OutgoingBlocks, position: int) -> list[Block]:
    """Returns the Anthropic blocks of a message, in its order."""
    content = out.messages[position].content
    blocks = [
        block
        for index, piece in enumerate(content)
        if (block := dump_block(piece, out, position, index)) is not None
    ]
    if len(blocks) < 2 or out.unreadable[position] is None:
        return blocks
    ordered = sorted(blocks, key=lambda block: block.get("type") == "tool_use")
    if ordered != blocks:
        out.lose(
            position, None, Lost.order, "the API wants a message's calls after everything else"
        )
    return ordered


def load_block(block: JsonMap, names: Mapping[str, str] = {}) -> Content:
    """Returns the piece of an Anthropic block. `names`: the tool of each call so far, by id, since
    results do not name theirs."""
    block_type = str(block.get("type"))
    if block_type == "tool_result":
        return load_result(block, names, _inner_parts(block)) or _whole(block)
    # Such as `web_search_tool_result`: of a tool that the provider ran, its content as it has it.
    if block_type.endswith("_tool_result"):
        return load_result(block, names, ()) or _whole(block)
    load = _LOADERS.get(block_type)
    return (load and load(block)) or _whole(block)


def dump_block(piece: Content, out: OutgoingBlocks, position: int, index: int) -> Block | None:
    """Returns the block of a piece, or None if nothing of it can be sent. Adds what the wire or its
    target cannot hold to the losses."""
    return _DUMPERS[type(piece)](piece, out, position, index)


def load_media(block: JsonMap) -> Media | None:
    """Returns the part of an Anthropic image, document or file block, or None if no part has room
    for all of its fields."""
    part = _load_source(block)
    # A part that would be written in another way stays the provider's own block.
    if part is None or _media_block(part)[0] != block:
        return None
    return part


def _load_source(block: JsonMap) -> Media | None:
    """Returns the part that the source of an Anthropic block makes; None if it is of no documented
    shape."""
    block_type, source = block.get("type"), block.get("source")
    name = None
    if block_type == "document":
        name = if_text(block.get("title")) or None
    fields = read_extra_fields(block, "type", "source", "file_id", "title")
    block_native, file_native = OWN.note(fields), OWN.note(fields, mark=True)
    match source:
        case None if isinstance(file_id := block.get("file_id"), str):
            return FilePart(file_id, _OTHER, None, file_native)
        case {"type": "base64" | "text" as encoding, "media_type": str(mime_type), "data": str()}:
            data = _decode_data(source["data"], encoding)
            if data is None:
                return None
            return DataPart(data, mime_type, name, block_native)
        case {"type": "url", "url": str(url)}:
            return _load_link(url, block_type, name, block_native)
        case {"type": "file", "file_id": str(file_id)}:
            mime_type = "image/*" if block_type == "image" else None
            return FilePart(file_id, mime_type, name, file_native)
        case _:
            return None


def _decode_data(text: str, encoding: str) -> bytes | None:
    """Returns the bytes in an Anthropic source of type `base64` or `text`; None if they cannot be
    read."""
    try:
        if encoding == "base64":
            return b64decode(text)
        return text.encode()
    except ValueError:
        # No base64, or half a pair of surrogates.
        return None


def _load_link(url: str, block_type: Any, name: str | None, native: Native) -> LinkPart:
    """Returns the part of an Anthropic source that the provider fetches by its URL, which tells no
    type."""
    if block_type == "document":
        part = LinkPart(url, _PDF, name, native)
    else:
        part = LinkPart(url, None, name, native)
    # The end of the URL says otherwise (`….pdf` in an image block): the block is right.
    if _media_block(part)[0].get("type") != block_type:
        return LinkPart(url, "image/*", name, native)
    return part


def _load_piece(block: Block, role: Role, names: dict[str, str]) -> Content:
    """Returns an Anthropic block of a conversation. An id or name that no API takes is noted, so
    that it goes back to where it was recorded."""
    piece = load_block(block, names)
    if isinstance(piece, (DataPart, LinkPart, FilePart)):
        # The API takes media from the user alone: a dump would turn the model's into a text.
        if role is Role.MODEL and block["type"] != "container_upload":
            return _whole(block)
        return piece
    if not isinstance(piece, (ToolCallPart, ToolResultPart)):
        return piece
    fits = CALL_IDS.fits(piece.id)
    if isinstance(piece, ToolCallPart):
        # An id that was used before is made unique in a dump, as one that breaks the rules is.
        fits = fits and piece.id not in names and TOOL_NAMES.fits(piece.name)
        names[piece.id] = piece.name
    if fits or piece.run_by != "agent":
        return piece
    return msgspec.structs.replace(piece, native=OWN.with_form(piece.native, id_or_name="as is"))


def _whole(block: JsonMap) -> ProviderPart:
    """Returns a block that only the provider understands."""
    return ProviderPart(str(block.get("type")), {NAME: dict(block)})


def _inner_parts(block: JsonMap) -> tuple[Content, ...]:
    """Returns the texts and media in the content of an Anthropic tool result; nothing if the tool
    returned anything else."""
    parts = tuple([load_block(inner_block) for inner_block in if_objects(block.get("content"))])
    if all(isinstance(part, (TextPart, DataPart, LinkPart, FilePart)) for part in parts):
        return parts
    return ()


def _load_text(block: JsonMap) -> TextPart | None:
    """Returns an Anthropic text block as a part, or None if it is blank."""
    # The API refuses blank text, and no part may be empty.
    text = if_text(block.get("text"))
    if text.strip():
        native = OWN.note(read_extra_fields(block, "type", "text"))
        return TextPart(text, native, load_citations(block.get("citations")))
    return None


def _load_thinking(block: JsonMap) -> ThinkingPart | None:
    """Returns an Anthropic thinking block as a part, or None if it has no text."""
    text = block.get("thinking")
    if not isinstance(text, str):
        return None
    # Told apart from an empty signature, which streams begin with.
    form = {} if "signature" in block else {"signature": "absent"}
    return ThinkingPart(text, OWN.note(read_extra_fields(block, "type", "thinking"), form=form))


def _load_redacted(block: JsonMap) -> ThinkingPart:
    return ThinkingPart(native={NAME: dict(block)})


def _dump_text(part: TextPart, out: OutgoingBlocks, position: int, index: int) -> Block | None:
    """Returns the Anthropic block of a text. A blank one is a loss unless it is in an answer."""
    if not part.text.strip() and not out.answer:
        out.lose(position, index, Lost.text, "it is blank, which the API refuses")
        return None
    block = {"type": "text", **own_fields(part, out, position), "text": part.text}
    if part.citations and "citations" not in block:
        if out.answer:
            block["citations"] = dump_citations(part)
        else:
            out.lose(position, index, Lost.field, "the API takes its own alone", "citations")
    return block


def _dump_thinking(
    part: ThinkingPart, out: OutgoingBlocks, position: int, index: int
) -> Block | None:
    """Returns the Anthropic block of thinking, or None with a loss if it may not be sent or has no
    signature."""
    wire_fields = OWN.fields(part.native)
    signed = _is_signed(part, wire_fields)
    why = out.unreadable[position]
    if why is None and not (signed or out.answer or out.quirks.unsigned_thinking):
        why = "it has no signature"
    if why is not None:
        out.lose(position, index, Lost.thinking, why)
        return None
    if not signed and out.answer:
        # The official clients demand one.
        wire_fields = {"signature": ""}
    # Redacted thinking is held whole, with its own type and `data` in place of a text.
    if "type" in wire_fields:
        return {**wire_fields}
    return {"type": "thinking", **wire_fields, "thinking": part.text}


def _is_signed(part: ThinkingPart, wire_fields: JsonMap) -> bool:
    """True if thinking is as Anthropic sent it: signed, redacted, or recorded without a
    signature."""
    if "signature" in wire_fields or "type" in wire_fields:
        return True
    return OWN.form(part.native).get("signature") == "absent"


def _dump_provider(
    part: ProviderPart, out: OutgoingBlocks, position: int, index: int
) -> Block | None:
    return dump_own(part, {}, out, position, index, f"a block of the provider's, {part.kind}")


def _dump_result(
    part: ToolResultPart, out: OutgoingBlocks, position: int, index: int
) -> Block | None:
    """Returns the Anthropic block of a tool result, with its content as blocks."""
    block = dump_result(part, out, position, index)
    if block is not None and part.is_content and part.run_by != "provider":
        inner = [dump_block(inner_part, out, position, index) for inner_part in part.result]
        block["content"] = [inner_block for inner_block in inner if inner_block is not None]
    return block


def _dump_media(part: Media, out: OutgoingBlocks, position: int, index: int) -> Block:
    """Returns the Anthropic block of a file, as text where only users may send media, with the
    losses."""
    block, lost = _media_block(part)
    if out.messages[position].role is not Role.USER and block["type"] in ("image", "document"):
        block, lost = _media_text(part), None
        # A text file loses nothing: its whole content becomes the text.
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
    """Returns the Anthropic block of a file, and what is lost by it, why, and which file. A file
    that the API does not take becomes a text that names it."""
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
    """Returns the type of a file's Anthropic block, the fields that hold its content (None if it
    cannot be sent), and what is lost."""
    if isinstance(part, FilePart):
        return _file_source(part)
    if isinstance(part, LinkPart):
        return _link_source(part)
    mime_type = part.mime_type
    if mime_type == _PDF or mime_type in IMAGES:
        data = b64encode(part.data).decode()
        source = {"source": {"type": "base64", "media_type": mime_type, "data": data}}
        return _file_kind(mime_type), source, None
    if (text := read_media_text(part)) is not None:
        # The API knows plain text only, whatever kind of text it is.
        source = {"source": {"type": "text", "media_type": "text/plain", "data": text}}
        return "document", source, None
    return "text", None, f"the API takes no {mime_type}"


def _file_source(part: FilePart) -> tuple[str, Block | None, str | None]:
    """Returns for a file in Anthropic's file store what `_media_source` does."""
    if OWN.is_foreign(part.native):
        return "text", None, ELSEWHERE
    block_type = _file_kind(part.mime_type)
    # The block of a file for the code tool is the only one without a `source`.
    if block_type == "container_upload":
        return block_type, {"file_id": part.id}, None
    return block_type, {"source": {"type": "file", "file_id": part.id}}, None


def _link_source(part: LinkPart) -> tuple[str, Block | None, str | None]:
    """Returns for a URL what `_media_source` does: Anthropic's `source` of type `url`. One of an
    unknown type is taken for an image."""
    source = {"source": {"type": "url", "url": part.url}}
    mime_type = part.mime_type or guess_media_type(part.url)
    if mime_type == _PDF:
        return "document", source, None
    if mime_type is None or mime_type.startswith("image/"):
        return "image", source, None
    return "text", None, f"the API takes no {mime_type} by its URL"


def _file_kind(mime_type: str | None) -> str:
    """Returns the type of Anthropic block for a file's media type: document, image or container
    upload."""
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
