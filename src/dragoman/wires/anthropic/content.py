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
    """The `content` of a message → its pieces. `names`: id of each call so far → its tool, to which
    its own calls are added; `form`: to which is added what is not of the usual form; `where`: the
    message, for an error.

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
        for place, block in enumerate(blocks):
            if not isinstance(block, dict):
                raise HistoryError(
                    f'"{where}.content[{place}]" must be an object, a content block'
                ).at(field=f"{where}.content[{place}]")
        if not blocks or is_plain_text(blocks):
            form["content"] = "list" if blocks else []
        return tuple([_load_piece(block, role, names) for block in blocks])
    if (
        role is Role.SYSTEM and "content" not in entry
    ):  # it only changes settings, in fields of its own
        form["content"] = "absent"
        return ()
    raise HistoryError(f'"{where}.content" must be a string or a list of content blocks').at(
        field=f"{where}.content"
    )


def dump_content(blocks: list[Block], message: Message) -> list[Block] | str:
    """Blocks → the field `content`: a single text is a string, unless its message came in another
    form."""
    return (
        blocks[0]["text"]
        if is_plain_text(blocks) and OWN.form(message.native).get("content") != "list"
        else blocks
    )


def dump_blocks(out: OutgoingBlocks, position: int) -> list[Block]:
    """The blocks of a message, in its order."""
    content = out.messages[position].content
    blocks = [
        block
        for at, piece in enumerate(content)
        if (block := dump_block(piece, out, position, at)) is not None
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
    """A block → a piece of content. `names`: id of each call so far → its tool, which results do
    not name."""
    kind = str(block.get("type"))
    if kind == "tool_result" or kind.endswith("_tool_result"):
        return load_result(
            block, names, _inner_parts(block) if kind == "tool_result" else ()
        ) or _whole(block)
    load = _LOADERS.get(kind)
    return (load and load(block)) or _whole(block)


def dump_block(piece: Content, out: OutgoingBlocks, position: int, place: int) -> Block | None:
    """A piece of content → a block. What the wire or its target cannot hold is a loss; `None`: that
    is all of it."""
    return _DUMPERS[type(piece)](piece, out, position, place)


def load_media(block: JsonMap) -> Media | None:
    """An image, a document or a file → its part; `None` where no part has room for all of it."""
    kind, source = block.get("type"), block.get("source")
    name = (if_text(block.get("title")) or None) if kind == "document" else None
    fields = read_extra_fields(block, "type", "source", "file_id", "title")
    own, held = OWN.note(fields), OWN.note(fields, mark=True)
    match source:
        case None if isinstance(file_id := block.get("file_id"), str):
            part: Media = FilePart(file_id, _OTHER, None, held)
        case {"type": "base64" | "text" as how, "media_type": str(mime_type), "data": str(data)}:
            try:
                part = DataPart(
                    b64decode(data) if how == "base64" else data.encode(), mime_type, name, own
                )
            except ValueError:  # no base64, or half a pair of surrogates
                return None
        case {"type": "url", "url": str(url)}:
            part = LinkPart(url, _PDF if kind == "document" else None, name, own)
            if _media_block(part)[0].get("type") != kind:
                part = LinkPart(url, "image/*", name, own)
        case {"type": "file", "file_id": str(file_id)}:
            part = FilePart(file_id, "image/*" if kind == "image" else None, name, held)
        case _:
            return None
    return part if _media_block(part)[0] == block else None


def _load_piece(block: Block, role: Role, names: dict[str, str]) -> Content:
    """A block of a conversation. An id or name that no API takes is noted, so that it goes back to
    where it was recorded."""
    piece = load_block(block, names)
    if isinstance(piece, (DataPart, LinkPart, FilePart)):
        return (
            _whole(block) if role is Role.MODEL and block["type"] != "container_upload" else piece
        )
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
    """A block that only the provider understands."""
    return ProviderPart(str(block.get("type")), {NAME: dict(block)})


def _inner_parts(block: JsonMap) -> tuple[Content, ...]:
    """What a tool returned as text and media; nothing where it is anything else."""
    parts = tuple([load_block(each) for each in if_objects(block.get("content"))])
    return (
        parts
        if all(isinstance(part, (TextPart, DataPart, LinkPart, FilePart)) for part in parts)
        else ()
    )


def _load_text(block: JsonMap) -> TextPart | None:
    text = if_text(block.get("text"))  # the API refuses blank text, and no part may be empty
    return (
        TextPart(text, OWN.note(read_extra_fields(block, "type", "text"))) if text.strip() else None
    )


def _load_thinking(block: JsonMap) -> ThinkingPart | None:
    text = block.get("thinking")
    if not isinstance(text, str):
        return None
    form = {} if "signature" in block else {"signature": "absent"}
    return ThinkingPart(text, OWN.note(read_extra_fields(block, "type", "thinking"), form=form))


def _load_redacted(block: JsonMap) -> ThinkingPart:
    return ThinkingPart(native={NAME: dict(block)})


def _dump_text(part: TextPart, out: OutgoingBlocks, position: int, place: int) -> Block | None:
    if not part.text.strip() and not out.answer:
        out.lose(position, place, Lost.text, "it is blank, which the API refuses")
        return None
    return {"type": "text", **own_fields(part, out, position), "text": part.text}


def _dump_thinking(
    part: ThinkingPart, out: OutgoingBlocks, position: int, place: int
) -> Block | None:
    own = OWN.fields(part.native)
    signed = (
        "signature" in own or "type" in own or OWN.form(part.native).get("signature") == "absent"
    )
    why = out.unreadable[position]
    if why is None and not (signed or out.answer or out.quirks.unsigned_thinking):
        why = "it has no signature"
    if why is not None:
        out.lose(position, place, Lost.thinking, why)
        return None
    if not signed and out.answer:
        own = {"signature": ""}  # the official clients demand one
    return {"type": "thinking", **own, **({} if "type" in own else {"thinking": part.text})}


def _dump_provider(
    part: ProviderPart, out: OutgoingBlocks, position: int, place: int
) -> Block | None:
    return dump_own(part, {}, out, position, place, f"a block of the provider's, {part.kind}")


def _dump_result(
    part: ToolResultPart, out: OutgoingBlocks, position: int, place: int
) -> Block | None:
    block = dump_result(part, out, position, place)
    if block is not None and part.is_content and part.run_by != "provider":
        inner = [dump_block(each, out, position, place) for each in part.result]
        block["content"] = [each for each in inner if each is not None]
    return block


def _dump_media(part: Media, out: OutgoingBlocks, position: int, place: int) -> Block:
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
        out.lose(position, place, *lost)
    return block


def _media_block(part: Media) -> tuple[Block, tuple[Lost, str, str] | None]:
    """A part → its block, and what is lost by it, why, and which one: a part that the API does not
    take becomes a text that names it."""
    kind, source, why = _media_source(part)
    lost = None if why is None else (name_part_type(part), why, media_label(part))
    if source is None:
        return _media_text(part), lost
    block = {**OWN.fields(part.native), "type": kind, **source}
    if part.name and kind == "document":
        block["title"] = part.name
    elif part.name and lost is None:
        lost = Lost.file_name, f"the API knows no name of such a file, {part.name}", ""
    return block, lost


def _media_text(part: Media) -> Block:
    """A text block that stands for something that cannot be sent."""
    return {"type": "text", "text": describe_as_text(part)}


def _media_source(part: Media) -> tuple[str, Block | None, str | None]:
    """Type of the block, its fields that hold the content (`None`: it cannot be sent), and what is
    lost."""
    if isinstance(part, FilePart):
        if OWN.is_foreign(part.native):
            return "text", None, ELSEWHERE
        kind = _file_kind(part.mime_type)
        held = {"file_id": part.id}
        return (
            kind,
            held if kind == "container_upload" else {"source": {"type": "file", **held}},
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
        held = {"source": {"type": "base64", "media_type": mime_type, "data": data}}
        return "document" if mime_type == _PDF else "image", held, None
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
    return "image" if mime_type.startswith("image/") else "container_upload"


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
