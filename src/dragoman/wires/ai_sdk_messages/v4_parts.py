"""Parts of UI messages of ai 4 ↔ pieces: thinking with its details, files, sources. Texts have no state there."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, rest
from dragoman.codec.media import Media, data_url, decoded
from dragoman.message import DataPart, LinkPart, MarkPart, ProviderPart, ThinkingPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.dialect import ATTACHMENT
from dragoman.wires.ai_sdk_messages.media import (
    OTHER,
    carried_file,
    file_at,
    type_of,
    unread,
    url_of,
    with_name,
    with_type,
)
from dragoman.wires.ai_sdk_messages.named import named_in
from dragoman.wires.ai_sdk_messages.old_text import dump_empty_text
from dragoman.wires.ai_sdk_messages.own import OWN, applied
from dragoman.wires.ai_sdk_messages.reading import IMPLIED, Reading, load_mark, text_field

__all__ = [
    "V4",
    "dump_file",
    "dump_mark",
    "dump_reasoning",
    "load_attachment",
    "load_file",
    "load_reasoning",
    "load_source",
]

V4 = "v4"
"""Name of the dialect."""
_KEY = "providerMetadata"
_SOURCE = frozenset(["id", "url", "title", _KEY])
_ANTHROPIC = "anthropic"


def load_reasoning(part: dict[str, Any], it: Reading, where: str) -> None:
    """Thinking: a piece for each detail, of which all but the first go on with its part."""
    text = text_field(part, "reasoning", where)
    it.opens()
    details = [
        piece
        for each in if_list(part.get("details"))
        if (piece := _detail(if_object(each))) is not None
    ]
    if len(details) != len(if_list(part.get("details"))) or not details:
        details = [ThinkingPart(text)]
    later = [_going_on(piece) for piece in details[1:]]
    first = details[0]
    it.add(
        it.read(
            ThinkingPart(first.text),
            part,
            lambda made: _whole([made, *later]),
            "reasoning",
            extra=first.native or {},
        )
    )
    for piece in later:
        it.add(piece)
    if it.is_model:
        it.provider = it.provider or named_in(part)


def dump_reasoning(pieces: Sequence[ThinkingPart], dialect: str) -> list[dict[str, Any]]:
    """The inverse, of thinking that follows each other."""
    groups: list[list[ThinkingPart]] = []
    for piece in pieces:
        if groups and OWN.form(piece.native).get("goes_on") is True:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [
        dump_empty_text(group[0], dialect)
        if OWN.form(group[0].native).get("text") == "empty" and not group[0].text
        else applied(group[0].native, _whole(group), dialect)
        for group in groups
    ]


def dump_detail(piece: ThinkingPart) -> dict[str, Any]:
    """A piece → its detail."""
    own = if_object((piece.native or {}).get(_ANTHROPIC))
    if own.get("type") == "redacted_thinking" and isinstance(own.get("data"), str):
        return {"type": "redacted", "data": own["data"]}
    signature = {"signature": own["signature"]} if isinstance(own.get("signature"), str) else {}
    return {"type": "text", "text": piece.text, **signature}


def load_file(part: dict[str, Any], it: Reading, where: str) -> None:
    """A file of the model's, by its base64; elsewhere also by its URL."""
    it.opens()
    text = text_field(part, "data", where)
    mime_type, name = part.get("mimeType"), part.get("filename")
    piece: Media
    known = carried_file(part)
    if known is None and (data := decoded(text)) is not None:
        piece = DataPart(data, mime_type if isinstance(mime_type, str) else OTHER)
    else:
        piece = known or file_at(text)
    piece = with_type(with_name(piece, name), mime_type)
    it.add(it.read(piece, part, lambda made: dump_file(made, V4), "file"))


def dump_file(piece: Media, dialect: str, *, attached: bool = False) -> dict[str, Any]:
    """The inverse. `attached`: it is one of the message's attachments, where it was not read as a part."""
    form = OWN.form(piece.native) if piece.native else {}
    if form.get("as") == ATTACHMENT or (attached and form.get("in") != dialect):
        return dump_attachment(piece, dialect)
    fields, mime_type = unread(piece), type_of(piece)
    if isinstance(piece, LinkPart) and decoded(piece.url) is not None:
        fields["url"] = piece.url
    held = b64encode(piece.data).decode() if isinstance(piece, DataPart) else url_of(piece)
    made: dict[str, Any] = {"type": "file", "mimeType": mime_type, "data": held}
    if piece.name is not None:
        made["filename"] = piece.name
    if metadata := metadata_of("file", piece.native, fields):
        made[_KEY] = metadata
    return applied(piece.native, made, dialect)


def load_attachment(given: Any, it: Reading, where: str) -> None:
    """One of the message's attachments."""
    part = if_object(given)
    piece = carried_file(part) or file_at(text_field(part, "url", where))
    piece = with_type(with_name(piece, part.get("name")), part.get("contentType"))
    read = {**part, "type": ATTACHMENT}
    it.add(
        it.read(
            piece, read, lambda made: dump_attachment(made, V4), "file", form={"as": ATTACHMENT}
        )
    )


def dump_attachment(piece: Media, dialect: str) -> dict[str, Any]:
    """The inverse."""
    fields, mime_type = unread(piece), type_of(piece)
    made: dict[str, Any] = {
        "type": ATTACHMENT,
        "contentType": mime_type,
        "url": data_url(piece) if isinstance(piece, DataPart) else url_of(piece),
    }
    if piece.name is not None:
        made["name"] = piece.name
    if metadata := metadata_of("file", piece.native, fields):
        made[_KEY] = metadata
    return applied(piece.native, made, dialect)


def load_source(part: dict[str, Any], it: Reading, where: str) -> None:
    """A source: the mark that ai 5 has of it."""
    source = if_object(part.get("source"))
    usual = len(part) == 2 and source.get("sourceType") == "url" and {"id", "url"} <= source.keys()
    if not usual or not rest(source, "sourceType").keys() <= _SOURCE:
        load_mark(part, it, where)
        return
    own = {
        "sourceId" if key == "id" else key: value
        for key, value in source.items()
        if key != "sourceType"
    }
    it.add(MarkPart("source-url", OWN.note(own)))


def dump_mark(mark: MarkPart | ProviderPart, dialect: str) -> dict[str, Any]:
    """A mark → its part."""
    own = OWN.fields(mark.native)
    if OWN.form(mark.native).get(IMPLIED):
        return {}
    if mark.kind == "source-url" and OWN.form(mark.native).get("in") != dialect:
        renamed = {"id" if key == "sourceId" else key: value for key, value in own.items()}
        return {"type": "source", "source": {"sourceType": "url", **renamed}}
    return {"type": mark.kind, **own}


def _detail(detail: dict[str, Any]) -> ThinkingPart | None:
    """A detail → its piece; `None`: it is of another shape."""
    match detail:
        case {"type": "text", "text": str(text), "signature": str(signature), **more} if not more:
            return ThinkingPart(text, {_ANTHROPIC: {"signature": signature}})
        case {"type": "text", "text": str(text), **more} if not more:
            return ThinkingPart(text)
        case {"type": "redacted", "data": str(data), **more} if not more:
            return ThinkingPart("", {_ANTHROPIC: {"type": "redacted_thinking", "data": data}})
        case _:
            return None


def _part(piece: ThinkingPart) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "reasoning",
        "reasoning": piece.text,
        "details": [dump_detail(piece)],
    }
    elsewhere = {_ANTHROPIC} if made["details"][0].keys() & {"signature", "data"} else set[str]()
    metadata = {
        key: value
        for key, value in metadata_of("reasoning", piece.native).items()
        if key not in elsewhere
    }
    if metadata:
        made[_KEY] = metadata
    return made


def _whole(pieces: list[ThinkingPart]) -> dict[str, Any]:
    made = _part(pieces[0])
    details = [*made["details"], *[dump_detail(piece) for piece in pieces[1:]]]
    return {**made, "reasoning": "".join([piece.text for piece in pieces]), "details": details}


def _going_on(piece: ThinkingPart) -> ThinkingPart:
    return ThinkingPart(
        piece.text, {**(piece.native or {}), **(OWN.note(form={"goes_on": True}) or {})}
    )
