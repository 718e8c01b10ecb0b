"""Reads and writes content blocks, but for calls and results. A block is an object with one key, its
block_type. One without a neutral shape, or that would be written otherwise, is kept whole as a
`ProviderPart`."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence

from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.media import (
    ELSEWHERE,
    Media,
    decode_base64,
    describe_as_text,
    media_label,
    read_media_text,
)
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
from dragoman.wires.bedrock_converse.citations import dump_citations, load_citations
from dragoman.wires.bedrock_converse.quirks import OWN

__all__ = [
    "CITED",
    "REASONING",
    "Unsent",
    "dump_block",
    "dump_content",
    "has_document",
    "keep_whole",
    "load_block",
    "load_content",
]

Unsent = tuple[Lost, str, str]
"""What of a part is not sent, why, and of which part."""
CITED, REASONING = "citationsContent", "reasoningContent"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_FORMATS: Mapping[str, tuple[str, str]] = {
    **{f"image/{name}": ("image", name) for name in ("png", "jpeg", "gif", "webp")},
    **{f"video/{name}": ("video", name) for name in ("mp4", "webm", "mpeg")},
    "video/x-matroska": ("video", "mkv"),
    "video/quicktime": ("video", "mov"),
    "video/x-flv": ("video", "flv"),
    "video/x-ms-wmv": ("video", "wmv"),
    "video/3gpp": ("video", "three_gp"),
    **{f"audio/{name}": ("audio", name) for name in ("aac", "flac", "ogg", "opus", "wav", "webm")},
    "audio/mpeg": ("audio", "mp3"),
    "audio/mp4": ("audio", "m4a"),
    "application/pdf": ("document", "pdf"),
    "application/msword": ("document", "doc"),
    "application/vnd.ms-excel": ("document", "xls"),
    f"{_OFFICE}.wordprocessingml.document": ("document", "docx"),
    f"{_OFFICE}.spreadsheetml.sheet": ("document", "xlsx"),
    "text/csv": ("document", "csv"),
    "text/html": ("document", "html"),
    "text/plain": ("document", "txt"),
    "text/markdown": ("document", "md"),
}
"""Media type → the block_type of its block and its format there."""
_MEDIA_TYPES: Mapping[tuple[str, str], str] = {
    entry: media_type for media_type, entry in _FORMATS.items()
}
_MEDIA = ("image", "video", "audio", "document")
_UNNAMED = "document"
_NAME = re.compile(r"[A-Za-z0-9()\[\]-]+(?: [A-Za-z0-9()\[\]-]+)*")
_MADE_UP = re.compile(rf"{_UNNAMED}(?: \d+-\d+)?")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9()\[\]-]+")
_LONGEST_NAME = 200


def load_content(blocks: Sequence[JsonMap]) -> list[Content]:
    """Reads Converse content blocks that are neither calls nor results."""
    return [load_block(block) for block in blocks]


def dump_content(parts: Sequence[Content]) -> list[Json]:
    """Writes parts as Converse content blocks."""
    return [dump_block(part)[0] for part in parts]


def load_block(block: JsonMap) -> Content:
    """Reads one Converse content block that is neither a call nor a result."""
    block_type, part = next(iter(block), ""), None
    inner = if_object(block.get(block_type))
    if block_type == "text" and if_text(block["text"]):
        part = TextPart(block["text"])
    elif block_type == CITED:
        part = _load_cited(inner)
    elif block_type == REASONING:
        part = _load_thinking(inner)
    elif block_type in _MEDIA:
        part = _load_media(block_type, inner)
    if part is None or dump_block(part)[0] != block:
        return keep_whole(block)
    return part


def keep_whole(block: JsonMap) -> ProviderPart:
    """Returns a Converse block that only the provider understands."""
    block_type = next(iter(block), "")
    # Other formats have blocks of these types, so they get the names of the SDK's types.
    if block_type in (*_MEDIA, "text", ""):
        block_type = f"{block_type}Block"
    return ProviderPart(block_type, OWN.note(block, mark=True))


def dump_block(
    part: Content, *, cites: bool = False, suffix: str = ""
) -> tuple[Json, Unsent | None]:
    """Returns the Converse content block of a part, and what the block leaves out.

    Args:
        part: neither a call nor a result.
        cites: neutral citations are written too, as answers have them.
        suffix: what a document's name ends in if the API would refuse the name as it is; empty: it
            stays as it is.
    """
    fields = OWN.fields(part.native)
    if isinstance(part, TextPart):
        return _dump_text(part, fields, cites=cites), None
    if isinstance(part, ThinkingPart):
        if "redactedContent" in fields:
            return {REASONING: fields}, None
        return {REASONING: {"reasoningText": {"text": part.text, **fields}}}, None
    if isinstance(part, (DataPart, LinkPart, FilePart)):
        return _dump_media(part, fields, suffix)
    return fields, None


def has_document(blocks: Sequence[JsonMap]) -> bool:
    """True if a Converse message has a document and no text, which the API refuses."""
    kinds = {block_type for block in blocks for block_type in block}
    return "document" in kinds and "text" not in kinds


def _load_cited(inner: Json) -> TextPart | None:
    """Returns a Converse text with its sources as a part, or None if it has no text."""
    blocks = if_objects(inner.get("content"))
    text = "".join([if_text(block.get("text")) for block in blocks])
    if not text:
        return None
    form: Json = {}
    if len(blocks) != 1:
        form["content"] = blocks
    native = OWN.note(read_extra_fields(inner, "content"), form=form, mark=True)
    return TextPart(text, native, load_citations(inner.get("citations")))


def _dump_text(part: TextPart, fields: Json, *, cites: bool) -> Json:
    """Returns the Converse block of a text: one with its sources if it came with them."""
    if cites and part.citations and not fields:
        fields = {"citations": dump_citations(part)}
    if not OWN.is_ours(part.native) and not fields:
        return {"text": part.text}
    blocks = if_list(OWN.form(part.native).get("content"))
    if "".join([if_text(block.get("text")) for block in if_objects(blocks)]) != part.text:
        blocks = [{"text": part.text}]
    return {CITED: {"content": blocks, **fields}}


def _load_thinking(inner: Json) -> ThinkingPart | None:
    """Returns Converse reasoning as a part, or None if it is of an unknown shape. Encrypted
    reasoning has no text."""
    if isinstance(inner.get("redactedContent"), str):
        return ThinkingPart("", OWN.note(inner))
    fields = if_object(inner.get("reasoningText"))
    if not isinstance(fields.get("text"), str):
        return None
    return ThinkingPart(fields["text"], OWN.note(read_extra_fields(fields, "text"), mark=True))


def _load_media(block_type: str, inner: Json) -> DataPart | None:
    """Returns a Converse block of a file as a part; None if it is of an unknown format, or in the
    account's own storage."""
    source, name = if_object(inner.get("source")), if_text(inner.get("name"))
    media_type = _MEDIA_TYPES.get((block_type, if_text(inner.get("format"))))
    if media_type is None:
        return None
    # A name that we made up is none. Some clients send names that the documentation forbids.
    named = None if _MADE_UP.fullmatch(name) else name or None
    form = {"name": name} if name not in ("", _UNNAMED) and not _fits(named or "") else {}
    native = OWN.note(read_extra_fields(inner, "format", "source", "name"), form=form)
    data = decode_base64(source.get("bytes"))
    if data is None:
        return None
    return DataPart(data, media_type, named, native)


def _dump_media(part: Media, fields: Json, suffix: str) -> tuple[Json, Unsent | None]:
    """Returns the Converse block of a file, or of a text that names it, and what is lost."""
    block_type, file_format = _FORMATS.get(part.mime_type or "", ("", ""))
    lost: Unsent | None = None
    if isinstance(part, DataPart) and block_type:
        source: Json = {"bytes": b64encode(part.data).decode()}
    elif isinstance(part, FilePart) and block_type and part.id.startswith("s3://"):
        source = {"s3Location": {"uri": part.id}}
    else:
        return {"text": describe_as_text(part)}, _explain_description(part)
    block: Json = {"format": file_format, "source": source}
    if block_type == "document":
        block["name"], why = _choose_name(part, suffix)
    else:
        why = "the API knows no name of such a file" if part.name else ""
    if why:
        lost = (Lost.file_name, f"{why}, {part.name}", media_label(part))
    return {block_type: merge_wire_fields(block, fields)}, lost


def _choose_name(part: Media, suffix: str) -> tuple[str, str]:
    """Returns the name of a document for the Converse API, and why it is not its own, or an empty
    text. `suffix`: ends a name that is made up; empty: a name stays as it is."""
    noted = if_text(OWN.form(part.native).get("name"))
    if noted and part.name in (noted, None):
        return noted, ""
    if part.name is None:
        return f"{_UNNAMED} {suffix}".strip(), ""
    if not suffix or _fits(part.name):
        return part.name, ""
    room = _LONGEST_NAME - len(suffix) - 1
    readable = _NOT_IN_NAMES.sub("-", part.name)[:room].strip("-")
    return f"{readable or _UNNAMED} {suffix}".strip(), "the API takes no such name"


def _fits(name: str) -> bool:
    """True if the Converse API takes a name of a document."""
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def _explain_description(part: Media) -> Unsent | None:
    """Returns what is lost of a file that is sent to the Converse API as a text, or None if the
    text is all of it."""
    if read_media_text(part) is not None:
        return None
    why = f"the API takes no {part.mime_type}"
    if isinstance(part, FilePart):
        why = ELSEWHERE
    elif isinstance(part, LinkPart):
        why = "the API fetches no URL"
    return name_part_type(part), why, media_label(part)
