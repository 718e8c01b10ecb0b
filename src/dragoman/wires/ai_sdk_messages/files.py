"""Files: parts of every dialect ↔ pieces. A file is told by its data, a URL, or the id that a
provider has for it.

UI messages have a URL, which may hold data or stand for an id. Parts of ai 4, Mastra's rows and
model messages have a field `data` (in ai 4 also `image`) with a URL, base64, or bytes as JSON has
them; model messages of ai 5 and later also name what the data is. ai 4 and rows have the user's
files as attachments of the message.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection
from typing import Any

import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.media import (
    Media,
    decode_base64,
    decode_plain_url,
    dump_data_url,
    guess_media_type,
    load_url,
)
from dragoman.content import guess_mime_type
from dragoman.message import DataPart, FilePart, LinkPart, Native
from dragoman.wires.ai_sdk_messages.byte_forms import decode_bytes, encode_bytes
from dragoman.wires.ai_sdk_messages.notes import MODEL, OWN, Fields, Part, present, restore, text_in
from dragoman.wires.ai_sdk_messages.provider_metadata import find_carried_fields
from dragoman.wires.ai_sdk_messages.read_parts import (
    ATTACHMENT,
    MessageDialect,
    Reading,
    fault,
    finish,
    load_mark,
    text_field,
)

__all__ = [
    "dump_attachment",
    "dump_file",
    "dump_model_file",
    "dump_old_file",
    "dump_row_attachment",
    "dump_row_file",
    "load_attachment",
    "load_file",
    "load_model_file",
    "load_old_file",
    "load_row_attachment",
    "load_row_file",
]

_OTHER = "application/octet-stream"
_HOLDERS = {
    "openai": "openai_responses",
    "azure": "openai_responses",
    "anthropic": "anthropic",
    "google": "google",
}
"""Provider that holds a file → the wire that knows its ids."""
_IDS = ("file-", "file_")
"""Beginnings of file ids that are written in place of a URL."""
_FORMS = {"numbers": "array", "bytes": "python"}
"""Form of bytes → its name in the notes of model messages, if that differs."""


# UI messages


def load_file(part: Part, reading: Reading, where: str) -> None:
    """Reads a file of an AI SDK UI message."""
    reading.opens()
    dialect = reading.dialect
    reference = if_object(part.get("providerReference"))
    if reference and all(isinstance(id_, str) for id_ in reference.values()):
        provider, id_ = next(iter(reference.items()))
        piece: Media = FilePart(id_, native=_mark_holder(provider))
    else:
        piece = _load_carried_file(part, dialect) or file_at(text_field(part, "url", where))
    piece = _describe(piece, part, dialect)
    reading.take(piece, part, dump_file, "file", extra=piece.native or {})


def dump_file(piece: Media, dialect: MessageDialect) -> Part:
    """Returns the AI SDK UI message part of a file. The inverse of `load_file`."""
    unread, piece_kind = _unread_file_fields(piece), "file"
    part: Part = {
        "type": "file",
        dialect.mime: _type_of(piece),
        **_name_field(piece),
        "url": _url_of(piece),
    }
    if (provider := _holder_family(piece)) is not None:
        part["providerReference"] = {provider: _url_of(piece)}
        unread.pop("id", None)
        piece_kind = "reference"
    return finish(part, piece, piece_kind, dialect, unread)


# UI messages of ai 4


def load_old_file(part: Part, reading: Reading, where: str) -> None:
    """Reads a file of a UI message of AI SDK 4: base64 or a URL."""
    reading.opens()
    dialect, text = reading.dialect, text_field(part, "data", where)
    piece = _load_carried_file(part, dialect)
    if piece is None and (data := decode_base64(text)) is not None:
        mime_type = text_in(part, dialect.mime)
        piece = DataPart(data, _OTHER if mime_type is None else mime_type)
    piece = _describe(piece or file_at(text), part, dialect)
    reading.take(piece, part, _old_part, "file")


def dump_old_file(piece: Media, dialect: MessageDialect, is_model: bool) -> Part:
    """Returns a file in AI SDK 4: an attachment for the user's, unless it was read from a part.

    The inverse of `load_old_file`.
    """
    form = OWN.form(piece.native)
    is_part = is_model or form.get("in") == dialect.name
    if form.get("as") == ATTACHMENT or not is_part:
        return dump_attachment(piece, dialect)
    return _old_part(piece, dialect)


def _old_part(piece: Media, dialect: MessageDialect) -> Part:
    """Returns the part of a file in AI SDK 4."""
    # A relative address that is base64 by chance would be read as data.
    unread = _unread_file_fields(piece)
    if isinstance(piece, LinkPart) and decode_base64(piece.url) is not None:
        unread["url"] = piece.url
    return _data_part(piece, _base64_or_url(piece), dialect, unread)


def load_attachment(attachment: Any, reading: Reading, where: str) -> None:
    """Reads an attachment of a message of AI SDK 4."""
    part, dialect = if_object(attachment), reading.dialect
    piece = _load_carried_file(part, dialect) or file_at(text_field(part, "url", where))
    piece = _with_name_and_type(piece, part.get("name"), part.get("contentType"))
    form = {"as": ATTACHMENT}
    reading.take(piece, {**part, "type": ATTACHMENT}, dump_attachment, "file", form=form)


def dump_attachment(piece: Media, dialect: MessageDialect) -> Part:
    """Returns an attachment of a message of ai 4. The inverse of `load_attachment`."""
    part = {"type": ATTACHMENT, **_attachment(piece)}
    return finish(part, piece, "file", dialect, _unread_file_fields(piece))


# Mastra's rows


def load_row_file(part: Part, reading: Reading, where: str) -> None:
    """Reads a file of a Mastra row. Unreadable data becomes a mark."""
    dialect = reading.dialect
    piece, form = _row_data(part.get("data"), part.get(dialect.mime))
    if piece is None:
        load_mark(part, reading, where)
        return
    piece = _with_name_and_type(piece, part.get("filename"), None)
    carried_id = text_in(find_carried_fields(part, dialect.metadata), "id")
    if isinstance(piece, LinkPart) and carried_id is not None:
        piece = FilePart(piece.url, piece.mime_type, piece.name)
    reading.opens()
    reading.take(piece, part, dump_row_file, "file", form=form)


def _row_data(data: Any, mime_type: Any) -> tuple[Media | None, Part]:
    """Returns the file in a Mastra row's data and the note of its form, or None and no note."""
    type_ = if_text(mime_type)
    if not isinstance(data, str) or not _is_url(data):
        read = decode_bytes(data)
        if read is not None:
            return DataPart(read[0], type_ or guess_mime_type("", read[0])), {"data": read[1]}
    if isinstance(data, str) and data:
        return _with_name_and_type(file_at(data), None, type_ or None), {}
    return None, {}


def dump_row_file(piece: Media, dialect: MessageDialect) -> Part:
    """Returns the part of a file in a Mastra row. The inverse of `load_row_file`."""
    unread: Part = {}
    if piece.mime_type is None:
        unread["mime_type"] = None
    if isinstance(piece, FilePart) and (
        _holder_family(piece) is not None or not piece.id.startswith("file-")
    ):
        unread["id"] = piece.id
    form = OWN.form(piece.native).get("data")
    data = _url_of(piece)
    if isinstance(piece, DataPart) and form is not None:
        data = encode_bytes(piece.data, form)
    return _data_part(piece, data, dialect, unread)


def load_row_attachment(fields: Fields, reading: Reading) -> None:
    """Reads an attachment of a Mastra row, which has a URL."""
    piece = _with_name_and_type(
        file_at(fields["url"]), fields.get("name"), fields.get("contentType")
    )
    reading.opens()
    reading.take(piece, fields, dump_row_attachment, form={"as": ATTACHMENT})


def dump_row_attachment(piece: Media, dialect: MessageDialect) -> Part:
    """Returns an attachment of a row. The inverse of `load_row_attachment`."""
    return restore(piece.native, _attachment(piece), dialect.name)


def _attachment(piece: Media) -> Part:
    """Returns the fields of an attachment."""
    return present(contentType=_type_of(piece), url=_url_of(piece), name=piece.name)


# model messages


def load_model_file(part: Part, reading: Reading, where: str) -> None:
    """Reads a file or image of an AI SDK model message."""
    is_image = part["type"] == "image"
    dialect, field = reading.dialect, "image" if is_image else "data"
    mime_type, data = part.get(dialect.mime), part.get(field)
    form: Part = {"type": part["type"]}
    native: Native = None
    piece = _load_carried_file(part, dialect)
    if piece is None and isinstance(data, str):
        piece = _text_file(data, mime_type, is_image)
        if data.startswith("data:"):
            form["tag"] = "data-url"
    elif piece is None:
        piece, native, tag = _load_tagged_file(data, mime_type, is_image)
        form |= tag
    if piece is None:
        fault(f"{where}.{field} must be base64, bytes, a URL or a reference to a file")
    piece = _describe(piece, part, dialect)
    # The type of the part is noted only where the file's type does not tell it.
    if is_image == _is_image(piece, dialect):
        del form["type"]
    reading.take(piece, part, dump_model_file, "file", form=form, extra=native or {})


def dump_model_file(piece: Media, dialect: MessageDialect, version: str | None = None) -> Part:
    """Returns the part of a file in an AI SDK model message. The inverse of `load_model_file`.

    Args:
        piece: the file.
        dialect: table of the dialect.
        version: release of the library that reads it; None for any.
    """
    form = OWN.form(piece.native)
    if form.get("in", dialect.name) != dialect.name:
        form = {}
    unread, piece_kind = _unread_file_fields(piece), "file"
    data = _model_data(piece, form)
    if isinstance(piece, LinkPart) and decode_base64(piece.url) is not None:
        unread["url"] = piece.url
    # Only ai 7 has references; earlier releases find a provider's file by its bare id.
    if (reference := _reference_to(piece, form, dialect, version)) is not None:
        data, piece_kind = reference, "reference"
        unread.pop("id", None)
    elif isinstance(data, dict):
        piece_kind = "reference"
    is_image = _is_image(piece, dialect)
    if "type" in form:
        is_image = form["type"] == "image"
    part: Part = {"type": "file", "data": data}
    if is_image:
        part = {"type": "image", "image": data}
    part |= {**_name_field(piece), dialect.mime: _type_of(piece)}
    return finish(part, piece, piece_kind, dialect, unread)


def _model_data(piece: Media, form: Fields) -> Any:
    """Returns the data field of an AI SDK model message for a file that is no reference."""
    tag, data = form.get("tag"), _base64_or_url(piece)
    if isinstance(piece, DataPart) and "bytes" in form:
        data = encode_bytes(piece.data, form["bytes"])
    elif isinstance(piece, DataPart) and tag in ("data-url", "url"):
        data = dump_data_url(piece)
    if tag in ("data", "url"):
        return {"type": tag, tag: data}
    return data


def _reference_to(
    piece: Media, form: Fields, dialect: MessageDialect, version: str | None
) -> Part | None:
    """Returns the AI SDK's reference to a provider's file, or None if its bare id is written."""
    tag = form.get("tag")
    provider = _holder_family(piece)
    if provider is None or dialect.name != MODEL or not (version in (None, "v7") or tag):
        return None
    reference = {provider: _url_of(piece)}
    if tag == "plain":
        return reference
    return {"type": "reference", "reference": reference}


def _text_file(text: str, mime_type: Any, is_image: bool) -> Media:
    """Returns the file for a text in an AI SDK file part: base64, a URL or a provider's id."""
    data = decode_base64(text)
    if data is None:
        return file_at(text)
    if isinstance(mime_type, str):
        return DataPart(data, mime_type)
    return DataPart(data, "image/png" if is_image else guess_mime_type("", data))


def _load_tagged_file(
    data: Any, mime_type: Any, is_image: bool
) -> tuple[Media | None, Native, Part]:
    """Returns an AI SDK file that is no string: tagged data or URL, a reference, or bytes.

    The other values are its native fields, and the note of its form.
    """
    fields = if_object(data)
    tag = None
    if len(fields) == 2:
        tag = fields.get("type")
    if (piece := _load_reference(fields, tag)) is not None:
        form = "plain"
        if tag == "reference":
            form = "reference"
        return piece, piece.native, {"tag": form}
    text = text_in(fields, str(tag))
    if tag == "data" and text is not None:
        return _text_file(text, mime_type, is_image), None, {"tag": tag}
    if tag == "url" and text is not None:
        return load_url(text), None, {"tag": tag}
    read = decode_bytes(data)
    if read is None:
        return None, None, {}
    content, form = read
    if not isinstance(mime_type, str):
        mime_type = guess_mime_type("", content)
    return DataPart(content, mime_type), None, {"bytes": _FORMS.get(form, form)}


def _load_reference(fields: Part, tag: Any) -> FilePart | None:
    """Returns the file that an AI SDK reference names by a provider's id, or None if it is no
    reference."""
    reference = fields
    if tag == "reference":
        reference = if_object(fields.get("reference"))
    if len(reference) != 1 or not all(isinstance(id_, str) for id_ in reference.values()):
        return None
    provider, id_ = next(iter(reference.items()))
    return FilePart(id_, native=_mark_holder(provider))


def _is_image(piece: Media, dialect: MessageDialect) -> bool:
    """True if a file becomes a part of type `image`, which only ai 4 has."""
    return dialect.name != MODEL and _type_of(piece).startswith("image/")


# what they share


def file_at(url: str) -> Media:
    """Returns the file at a URL of an AI SDK file part, which may also be data or a provider's
    id."""
    # OpenAI's ids stand where a URL would; a relative address may begin like one, but has a path.
    if url.startswith(_IDS) and "/" not in url and ":" not in url:
        return FilePart(url)
    return decode_plain_url(url) or load_url(url)


def _load_carried_file(part: Fields, dialect: MessageDialect) -> Media | None:
    """Returns the file whose id or URL is carried, because its AI SDK part alone would be read
    otherwise."""
    fields = find_carried_fields(part, dialect.metadata)
    id_, url = text_in(fields, "id"), text_in(fields, "url")
    if id_ is not None:
        return FilePart(id_)
    return None if url is None else LinkPart(url)


def _unread_file_fields(piece: Media) -> Part:
    """Returns the fields of an AI SDK file that a reader would miss from its URL and type."""
    if isinstance(piece, DataPart):
        return {}
    fields: Part = {}
    if not piece.mime_type:
        fields["mime_type"] = piece.mime_type
    if isinstance(piece, FilePart) and not isinstance(file_at(piece.id), FilePart):
        fields["id"] = piece.id
    elif isinstance(piece, LinkPart) and not isinstance(file_at(piece.url), LinkPart):
        fields["url"] = piece.url
    return fields


def _data_part(
    piece: Media,
    data: Any,
    dialect: MessageDialect,
    unread: Fields,
) -> Part:
    """Returns a part of ai 4 or of a Mastra row with a file's data."""
    part: Part = {
        "type": "file",
        dialect.mime: _type_of(piece),
        "data": data,
        **_name_field(piece),
    }
    return finish(part, piece, "file", dialect, unread)


def _type_of(piece: Media) -> str:
    """Returns a file's media type for the AI SDK, or the general one if it is unknown."""
    mime_type = piece.mime_type
    if not mime_type and isinstance(piece, LinkPart):
        mime_type = guess_media_type(piece.url)
    return mime_type or _OTHER


def _url_of(piece: Media) -> str:
    """Returns a file as a URL for the AI SDK: its data, address or id. The inverse of `file_at`."""
    if isinstance(piece, DataPart):
        return dump_data_url(piece)
    if isinstance(piece, LinkPart):
        return piece.url
    return piece.id


def _base64_or_url(piece: Media) -> str:
    """Returns a file's bytes as base64, or its URL, for the AI SDK."""
    if isinstance(piece, DataPart):
        return b64encode(piece.data).decode()
    return _url_of(piece)


def _holder_family(piece: Media) -> str | None:
    """Returns the family's name of the provider that holds a file, as the AI SDK has it, or
    None."""
    wires: Collection[str] = ()
    if isinstance(piece, FilePart):
        wires = piece.native or ()
    return next((name for name, wire in _HOLDERS.items() if wire in wires), None)


def _mark_holder(provider: str) -> Part | None:
    """Returns native fields that mark the id of an AI SDK file as one of this provider."""
    if provider not in _HOLDERS:
        return None
    return {_HOLDERS[provider]: {}}


def _name_field(piece: Media) -> Part:
    """Returns the field with a file's name, if it has one."""
    return present(filename=piece.name)


def _describe(piece: Media, part: Fields, dialect: MessageDialect) -> Media:
    """Returns a file with the name and type of its part."""
    return _with_name_and_type(piece, part.get("filename"), part.get(dialect.mime))


def _with_name_and_type(piece: Media, name: Any, mime_type: Any) -> Media:
    """Returns an AI SDK file with a name and a type, if these are texts. The bytes of data tell
    their own type."""
    if isinstance(name, str):
        piece = msgspec.structs.replace(piece, name=name)
    if isinstance(piece, DataPart) or not isinstance(mime_type, str):
        return piece
    return msgspec.structs.replace(piece, mime_type=mime_type)


def _is_url(data: str) -> bool:
    """True if a text is a URL, a data URL or a provider's id instead of base64."""
    return ":" in data[:12] or data.startswith(("//", "file-", "file_", "./", "../"))
