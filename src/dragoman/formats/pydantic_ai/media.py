"""Files, and what a user says: the items of a content ↔ pieces; and what the dump of a message must
know beside it."""

from __future__ import annotations

from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.codec.json_values import if_object, if_text, text_or_json
from dragoman.codec.media import (
    ELSEWHERE,
    Media,
    describe_as_text,
    guess_media_type,
    media_label,
    read_media_text,
)
from dragoman.codec.signature_check import name_part_type
from dragoman.formats.pydantic_ai.notes import NAME, OWN, apply_notes, note_as_read
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Native,
    ProviderPart,
    TextPart,
)

__all__ = [
    "Sent",
    "dump_binary",
    "dump_item",
    "holder",
    "keep_whole",
    "load_binary",
    "load_file",
    "load_item",
]

_LINKS = {"image-url": "image/", "audio-url": "audio/", "video-url": "video/", "document-url": ""}
"""Kind of a link → how the type of its file begins."""
_HOLDERS = {
    "openai": "openai_responses",
    "anthropic": "anthropic",
    "google": "google",
    "google-cloud": "google",
}
"""Provider that holds an uploaded file → the wire that knows its ids."""
_STANDARD = "standard"
"""Wire form: base64 of the usual alphabet; the library writes that of URLs."""


def load_item(item: object) -> Content:
    """Reads a Pydantic AI item of a user's content. Unknown items are kept whole. What is not known
    is kept whole."""
    if isinstance(item, str):
        if item:
            return TextPart(item)
        return keep_whole(MarkPart("text"), item)
    fields = if_object(item)
    item_kind = if_text(fields.get("kind"))
    if item_kind in ("text-content", "structured-content"):
        text = if_text(fields.get("content")) or (
            "value" in fields and text_or_json(fields["value"])
        )
        if text:
            return _read(TextPart(text, OWN.note(form={"kind": item_kind})), fields)
        return keep_whole(MarkPart(item_kind), item)
    if item_kind == "cache-point":
        return keep_whole(MarkPart(item_kind), item)
    return load_file(fields) or keep_whole(ProviderPart(item_kind or "content"), item)


def load_file(fields: JsonMap) -> DataPart | LinkPart | FilePart | None:
    """Returns a Pydantic AI item that is a file as a part, or None if it is none, or not of the
    documented shape."""
    item_kind = if_text(fields.get("kind"))
    if item_kind in _LINKS and isinstance(fields.get("url"), str):
        return _read(LinkPart(fields["url"], if_text(fields.get("media_type")) or None), fields)
    if item_kind == "uploaded-file" and isinstance(fields.get("file_id"), str):
        wire = _HOLDERS.get(if_text(fields.get("provider_name")))
        native: Native = {wire: {}} if wire else None
        return _read(
            FilePart(fields["file_id"], if_text(fields.get("media_type")) or None, native=native),
            fields,
        )
    return load_binary(fields)


def load_binary(fields: JsonMap) -> DataPart | None:
    """Returns Pydantic AI's `BinaryContent` as a part, or None if it is none."""
    text, mime_type = fields.get("data"), fields.get("media_type")
    if (
        fields.get("kind") != "binary"
        or not isinstance(text, str)
        or not isinstance(mime_type, str)
    ):
        return None
    data, form = _read_data_url(text)
    if data is None:
        return None
    return _read(DataPart(data, mime_type, native=OWN.note(form=form)), fields)


def dump_item(piece: TextPart | DataPart | LinkPart | FilePart) -> Any:
    """Returns a piece as a Pydantic AI item of a content, or None for a file that none of the
    library's providers holds."""
    if isinstance(piece, TextPart):
        item_kind = OWN.form(piece.native).get("kind")
        if item_kind:
            return apply_notes(piece.native, {"content": piece.text, "kind": item_kind})
        return piece.text
    if isinstance(piece, DataPart):
        return dump_binary(piece)
    if isinstance(piece, LinkPart):
        return _dump_link(piece)
    if (holding := holder(piece)) is None:
        return None
    if piece.mime_type:
        media_type = {"media_type": piece.mime_type}
    else:
        media_type = {}
    written = {"file_id": piece.id, "provider_name": holding, **media_type, "kind": "uploaded-file"}
    return apply_notes(piece.native, written)


def _dump_link(piece: LinkPart) -> Json:
    """Returns the Pydantic AI item of a link, of the kind that fits the type of its file."""
    mime_type = piece.mime_type or guess_media_type(piece.url) or ""
    item_kind = next(
        link_kind for link_kind, begins in _LINKS.items() if mime_type.startswith(begins)
    )
    written = {"url": piece.url, "media_type": piece.mime_type, "kind": item_kind}
    return apply_notes(piece.native, written)


def dump_binary(piece: DataPart) -> Json:
    """Returns a file given by its bytes as Pydantic AI's `BinaryContent` object."""
    if OWN.form(piece.native).get("base64") == _STANDARD:
        encode = b64encode
    else:
        encode = urlsafe_b64encode
    written = {"data": encode(piece.data).decode(), "media_type": piece.mime_type, "kind": "binary"}
    return apply_notes(piece.native, written)


def holder(piece: FilePart) -> str | None:
    """Returns the provider that holds a file; `None`: it is not one that pydantic-ai knows."""
    named = OWN.fields(piece.native).get("provider_name")
    holders = (name for name, wire in _HOLDERS.items() if wire in (piece.native or {}))
    return next(holders, named if isinstance(named, str) else None)


def keep_whole(piece: Any, item: Any) -> Any:
    """Returns a piece that keeps all that it was read from."""
    return type(piece)(piece.kind, {f"{NAME}:notes": {"whole": [item]}})


def _read(piece: Any, fields: JsonMap) -> Any:
    return note_as_read(piece, fields, if_object(dump_item(piece)))


def _read_data_url(text: str) -> tuple[bytes | None, dict[str, str]]:
    """Returns the bytes of a Pydantic AI file's base64 text, None if they could not be written
    back, and the form of the text."""
    for decode, encode, form in (
        (urlsafe_b64decode, urlsafe_b64encode, {}),
        (b64decode, b64encode, {"base64": _STANDARD}),
    ):
        try:
            data = decode(text)
        except ValueError:
            continue
        if encode(data).decode() == text:
            return data, form
    return None, {}


class Sent(msgspec.Struct, frozen=True):
    """A message on its way out."""

    message: Message
    """The message."""
    position: int
    """Where it stands in the conversation."""
    losses: list[Loss]
    """Grows with what is left out or changed."""
    names: Mapping[str, str]
    """Id of a call → its tool, for results that do not name it."""

    def lose(self, part_index: int | None, what: Lost, why: str, which: str = "") -> None:
        """Notes something that is left out or changed; see `Loss`."""
        self.losses.append(Loss(self.position, part_index, what, why, which))

    def misplaced(self, part_index: int, piece: Content, why: str) -> None:
        """Notes a piece that has no place in its message."""
        self.lose(part_index, name_part_type(piece), why)

    def item(self, part_index: int, piece: TextPart | Media) -> Any:
        """Returns a text or file as a Pydantic AI item of a content, or a text that stands for it
        if the format cannot hold it."""
        item = dump_item(piece)
        if item is None:
            return self.stand_in(part_index, piece, ELSEWHERE)
        if not isinstance(piece, TextPart) and piece.name and not isinstance(item, str):
            self.lose(
                part_index, Lost.file_name, f"the format knows no name of a file, {piece.name}"
            )
        return item

    def stand_in(self, part_index: int, piece: Any, why: str) -> str:
        """Returns the text that stands for a file that Pydantic AI's media cannot hold."""
        if isinstance(piece, FilePart) or read_media_text(piece) is None:
            self.lose(part_index, name_part_type(piece), why, media_label(piece))
        return describe_as_text(piece)
