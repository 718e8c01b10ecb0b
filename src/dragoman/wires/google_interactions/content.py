"""Reads and writes the content of a step: text, images, audio, video and documents. A block without
a neutral shape becomes a `ProviderPart` that notes that it is one of content."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence

from dragoman.codec.audio import is_pcm, read_sample_rate
from dragoman.codec.json_values import if_text, merge_wire_fields, read_extra_fields
from dragoman.codec.media import (
    ELSEWHERE,
    Media,
    decode_base64,
    describe_as_text,
    guess_media_type,
    media_label,
    read_media_text,
)
from dragoman.codec.signature_check import name_part_type
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import Content, DataPart, FilePart, LinkPart, Native, ProviderPart, TextPart
from dragoman.wires.google_interactions.citations import dump_annotations, load_annotations
from dragoman.wires.google_interactions.quirks import OWN

__all__ = ["BLOCK_TYPES", "dump_block", "dump_content", "is_block", "load_block", "load_content"]

_MEDIA = ("image", "audio", "video", "document")
BLOCK_TYPES = ("text", *_MEDIA)
"""Types of the blocks that stand in the content of a step."""
_UPLOADS = "https://generativelanguage.googleapis.com/"
_TAKEN = re.compile(
    r"(image|audio|video)/|text/csv\b|application/(pdf|msword|vnd\.(ms-|oasis|openxml))",
    re.IGNORECASE,
)
"""Types of the bytes that the API takes."""
_RAW = "audio/l16"
"""The API's media type of raw samples of 16 bits."""
_IN_CONTENT = "content"
Unsent = tuple[Lost, str, str]
"""What of a part is not sent, why, and of which part."""


def load_content(blocks: Sequence[JsonMap]) -> list[Content]:
    """Reads the content blocks of a step of the Interactions API."""
    return [load_block(block) for block in blocks]


def dump_content(parts: Sequence[Content]) -> list[Json]:
    """Writes parts as content blocks of the Interactions API."""
    return [dump_block(part)[0] for part in parts]


def load_block(block: JsonMap) -> Content:
    """Reads one content block of the Interactions API."""
    block_type = if_text(block.get("type"))
    part = None
    if block_type == "text":
        part = _load_text(block)
    elif block_type in _MEDIA:
        part = _load_media(block, block_type)
    if part is None:
        native = OWN.note(block, form={"place": _IN_CONTENT}, mark=True)
        return ProviderPart(block_type or "block", native)
    return part


def is_block(part: Content) -> bool:
    """True if a part stands in the content of a step, and is no step of its own."""
    if isinstance(part, ProviderPart):
        return OWN.form(part.native).get("place") == _IN_CONTENT
    return isinstance(part, (TextPart, DataPart, LinkPart, FilePart))


def dump_block(part: Content, *, cites: bool = False) -> tuple[Json, Unsent | None]:
    """Returns the content block of a part, and what the block leaves out. `cites`: neutral
    citations are written too, as answers have them."""
    fields = OWN.fields(part.native)
    if isinstance(part, TextPart):
        block: Json = {"type": "text", "text": part.text}
        # Own annotations hold more than neutral citations do.
        if cites and "annotations" not in fields and part.citations:
            block["annotations"] = dump_annotations(part)
        return merge_wire_fields(block, fields), None
    if isinstance(part, (DataPart, LinkPart, FilePart)):
        source = _dump_source(part)
        if source is None:
            return _describe(part)
        block = {"type": _choose_type(part), **source}
        block |= _dump_media_type(part)
        lost = None
        if part.name:
            lost = (Lost.file_name, "the API knows no names of files", media_label(part))
        return merge_wire_fields(block, fields), lost
    return fields, None


def _load_text(block: JsonMap) -> TextPart | None:
    """Returns a text block of the Interactions API as a part, or None if it is empty."""
    text = if_text(block.get("text"))
    if not text:
        return None
    citations = load_annotations(block.get("annotations"), text)
    return TextPart(text, OWN.note(read_extra_fields(block, "type", "text")), citations)


def _load_media(block: JsonMap, block_type: str) -> Media | None:
    """Returns a media block of the Interactions API as a part, or None if it has neither bytes nor
    a URI."""
    mime_type, uri = block.get("mime_type"), if_text(block.get("uri"))
    if not isinstance(mime_type, str | None) or ("data" in block and uri):
        return None
    fields = read_extra_fields(block, "type", "data", "uri", "mime_type")
    if "mime_type" in block and mime_type is None:
        fields["mime_type"] = None
    form: dict[str, object] = {}
    rate = block.get("sample_rate")
    if mime_type == _RAW and type(rate) is int and 1_000 <= rate < 1_000_000:
        # Other APIs say the rate in the media type.
        mime_type, form["rate"] = f"{_RAW};rate={rate}", True
        del fields["sample_rate"]
    part: Media | None = None
    # A file of Google's own is no link that others could open.
    if uri:
        part_type = FilePart if uri.startswith(_UPLOADS) else LinkPart
        part = part_type(uri, mime_type)
    elif mime_type is not None and (data := decode_base64(block.get("data"))) is not None:
        part = DataPart(data, mime_type)
    if part is None:
        return None
    # Its type follows from the media type, unless the client said another.
    if _choose_type(part) != block_type:
        form["type"] = block_type
    return _with_native(part, OWN.note(fields, form=form))


def _with_native(part: Media, native: Native) -> Media:
    if isinstance(part, DataPart):
        return DataPart(part.data, part.mime_type, native=native)
    if isinstance(part, FilePart):
        return FilePart(part.id, part.mime_type, native=native)
    return LinkPart(part.url, part.mime_type, native=native)


def _choose_type(part: Media) -> str:
    """Returns the type of the Interactions API's block for a file: as it came, else by its media
    type. A link of an unknown type is an image."""
    if noted := if_text(OWN.form(part.native).get("type")):
        return noted
    mime_type = part.mime_type
    if isinstance(part, LinkPart):
        mime_type = mime_type or guess_media_type(part.url) or "image/*"
    family = (mime_type or "").partition("/")[0].lower()
    return family if family in _MEDIA else "document"


def _dump_media_type(part: Media) -> JsonMap:
    """Returns the fields of an Interactions block that say a file's media type: the API has the rate
    of raw samples in a field of its own."""
    if part.mime_type is None:
        return {}
    splits = OWN.form(part.native).get("rate") or not OWN.is_ours(part.native)
    if splits and is_pcm(part.mime_type):
        return {"mime_type": _RAW, "sample_rate": read_sample_rate(part.mime_type)}
    return {"mime_type": part.mime_type}


def _dump_source(part: Media) -> dict[str, str] | None:
    """Returns the field of an Interactions block that holds a file's bytes or its URI; None if the
    API can know nothing of it."""
    if isinstance(part, LinkPart):
        return {"uri": part.url}
    if isinstance(part, FilePart):
        is_ours = "://" in part.id or part.id.startswith("files/")
        return {"uri": part.id} if is_ours else None
    if not _TAKEN.match(part.mime_type) and not OWN.is_ours(part.native):
        return None
    return {"data": b64encode(part.data).decode()}


def _describe(part: Media) -> tuple[Json, Unsent | None]:
    """Returns a text block that stands for a file which the Interactions API does not take, and
    what is lost."""
    block = {"type": "text", "text": describe_as_text(part)}
    if read_media_text(part) is not None:
        return block, None
    why = ELSEWHERE if isinstance(part, FilePart) else f"the API takes no {part.mime_type}"
    return block, (name_part_type(part), why, media_label(part))
