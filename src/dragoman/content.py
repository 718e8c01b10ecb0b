"""The pieces of content that a message is made of: what was *said* (text, data, links, files, tool
calls and results), and what is not (thinking, what only a provider understands, marks for people).
All frozen values.

Every piece may carry `native`: wire name → the fields that this wire has beyond the neutral ones. A
wire writes the neutral fields and adds its own native ones; it never reads another wire's.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

import msgspec

__all__ = [
    "Citation",
    "Content",
    "DataPart",
    "FilePart",
    "KINDS",
    "LinkPart",
    "MarkPart",
    "NOTES",
    "Native",
    "OURS",
    "Part",
    "ProviderPart",
    "TextPart",
    "ThinkingPart",
    "ToolCallPart",
    "ToolResultPart",
    "guess_mime_type",
    "upgrade_stored",
    "read_unknown_piece",
]

Native = Mapping[str, Any] | None
"""Wire name → that wire's own fields (`None`: none); wire name + `NOTES` → its notes about them."""

NOTES = ":notes"
"""Behind a wire's name, which holds no colon: the key under which the wire's notes stand in
`native`."""

OURS = "dragoman"
"""The key in `native` under which stands what dragoman itself must find again, and no wire
writes."""


class Citation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A source of a text: a page of the web, a file, or a document that the model was given."""

    url: str | None = None
    """Address of the source."""
    title: str | None = None
    """Title of the page or document, or name of the file."""
    start: int | None = None
    """First character of the text that the source is for; `None`: it is for the whole text."""
    end: int | None = None
    """Position behind the last such character."""
    quote: str | None = None
    """Words of the source."""
    file_id: str | None = None
    """Id of a file or document at its provider."""


_MOST_SHOWN = 60
"""Characters of a `data:` URL that `repr` shows."""


class TextPart(msgspec.Struct, frozen=True, omit_defaults=True, tag="text"):
    """Text. Never empty: no text is no part."""

    text: str
    """Never empty."""
    native: Native = None
    citations: tuple[Citation, ...] = ()
    """Sources of the text. No digest counts them. Citations in `native` win where their own wire
    writes the part."""

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("a TextPart is never empty; leave the part out instead")


class DataPart(msgspec.Struct, frozen=True, omit_defaults=True, tag="data"):
    """A file by its bytes: an image, audio, a PDF, …"""

    data: bytes
    """The file."""
    mime_type: str
    """Its type, such as `image/png`."""
    name: str | None = None
    """File name, where it has one."""
    native: Native = None

    @classmethod
    def from_file(cls, path: str | Path, mime_type: str | None = None) -> Self:
        """Makes a data part of a file; its MIME type is told by the name, else by the first bytes.

        Raises:
            OSError: the file cannot be read.
        """
        path = Path(path)
        data = path.read_bytes()
        return cls(data, mime_type or guess_mime_type(path.name, data), path.name)

    @property
    def digest(self) -> str:
        """A short digest of the bytes, by which two files are told apart."""
        return blake2b(self.data, digest_size=4).hexdigest()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"DataPart({fields})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # The bytes would fill logs and terminals.
        """Yields what rich shows of a data part."""
        fields: list[tuple[str, Any]] = [
            ("size", len(self.data)),
            ("digest", self.digest),
            ("mime_type", self.mime_type),
        ]
        return [*fields, *_list_fields(self, "name", "native")]


class LinkPart(msgspec.Struct, frozen=True, omit_defaults=True, tag="link"):
    """A file by its URL."""

    url: str
    """Where it is."""
    mime_type: str | None = None
    """Its type; `None`: not known."""
    name: str | None = None
    """File name, where it has one."""
    native: Native = None

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"LinkPart({fields})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Yields what rich shows of a link."""
        url = self.url
        # Such a URL holds a whole file.
        if url.startswith("data:") and len(url) > _MOST_SHOWN:
            url = f"{url[:_MOST_SHOWN]}… {len(url)} characters"
        return [("url", url), *_list_fields(self, "mime_type", "name", "native")]


def _list_fields(part: DataPart | LinkPart, *names: str) -> list[tuple[str, Any]]:
    """Returns those of these fields that have a value."""
    fields = [(name, getattr(part, name)) for name in names]
    return [(name, value) for name, value in fields if value is not None]


class FilePart(msgspec.Struct, frozen=True, omit_defaults=True, tag="file"):
    """A file that a provider holds, by that provider's id."""

    id: str
    """The provider's id of it."""
    mime_type: str | None = None
    """Its type; `None`: not known."""
    name: str | None = None
    """File name, where it has one."""
    native: Native = None


class ToolCallPart(msgspec.Struct, frozen=True, omit_defaults=True, tag="tool_call"):
    """The model asks for a tool to be run."""

    id: str
    """The provider's id, else one minted when the call was first seen."""
    name: str
    """Name of the tool."""
    arguments: dict[str, Any] = {}
    """Parsed arguments; `{}` when the call is cut or invalid."""
    raw: str | None = None
    """The arguments' text as it came, kept where `arguments` does not say it all (cut, invalid, or
    not the usual spelling)."""
    state: Literal["complete", "cut", "invalid"] = "complete"
    """`cut`: the stream ended inside the arguments. `invalid`: they are no JSON object. Neither is
    ever executed."""
    run_by: Literal["agent", "client", "provider"] = "agent"
    """Who runs the tool. What the provider ran is never executed or answered by us."""
    native: Native = None


class ToolResultPart(msgspec.Struct, frozen=True, omit_defaults=True, tag="tool_result"):
    """What a tool returned."""

    id: str
    """Id of the call that it answers."""
    name: str
    """Name of the tool; `""` where a format does not tell it."""
    result: Any = None
    """Any JSON value, or a tuple of TextPart, DataPart, LinkPart and FilePart (any sequence of them
    is taken)."""
    is_error: bool = False
    """The tool failed, or could not be run; `result` says how."""
    run_by: Literal["agent", "client", "provider"] = "agent"
    """Who ran it, as in the call."""
    native: Native = None
    is_content: bool = False
    """Derived: `result` is a tuple of parts and not a JSON value. Stored, so that JSON is read back
    as what it was."""
    denied: bool = False
    """Somebody refused to have the call run; `result` says so to the model, with the reason."""

    def __post_init__(self) -> None:
        """Notes whether a tool's result is content, a list of parts, or a JSON value."""
        result = self.result
        if isinstance(result, (list, tuple)):
            items = cast("Sequence[Any]", result)
            content = _result_content(items, stored=self.is_content)
            msgspec.structs.force_setattr(
                self, "result", list(items) if content is None else content
            )
            msgspec.structs.force_setattr(self, "is_content", content is not None)
        elif self.is_content:
            msgspec.structs.force_setattr(self, "is_content", False)


class ThinkingPart(msgspec.Struct, frozen=True, omit_defaults=True, tag="thinking"):
    """The model's thinking. Not said: it is shown as `message.thinking` and goes back only to an
    origin that reads it."""

    text: str = ""
    """`""` where only a signature came, or where it is encrypted."""
    native: Native = None


class ProviderPart(msgspec.Struct, frozen=True, omit_defaults=True, tag="provider"):
    """A block that only its provider understands. All of it is in `native`."""

    kind: str
    """The provider's name of the block, such as `compaction`."""
    native: Native = None


class MarkPart(msgspec.Struct, frozen=True, omit_defaults=True, tag="mark"):
    """What a format of a user interface shows to people and no model is told: a step, a source, a
    part of data. Its fields are in `native` of that format. Wires skip it, no loss is noted, and no
    digest counts it."""

    kind: str
    """What it marks, such as `step`."""
    native: Native = None


ResultPart = TextPart | DataPart | LinkPart | FilePart
Part = TextPart | DataPart | LinkPart | FilePart | ToolCallPart | ToolResultPart
Content = Part | ThinkingPart | ProviderPart | MarkPart
_RESULT_PARTS = (TextPart, DataPart, LinkPart, FilePart)


def _result_content(items: Sequence[Any], *, stored: bool) -> tuple[ResultPart, ...] | None:
    """Returns the items of a tool's result as parts, or None if they are a JSON value. `stored`:
    they may be parts in JSON."""
    if not items:
        return None
    if all(isinstance(item, _RESULT_PARTS) for item in items):
        return tuple(items)
    if not stored:
        return None
    try:
        return msgspec.convert(items, type=tuple[ResultPart, ...])
    except ValueError:
        # Half a character of UTF-16 is no ValidationError.
        return None


KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Content))
"""What the stored form calls the kinds of pieces."""


_MAGIC = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"PK\x03\x04", "application/zip"),
)


def guess_mime_type(name: str, data: bytes) -> str:
    """Returns the MIME type of content in a file by its name, else by its first bytes, else
    `application/octet-stream`."""
    if named := mimetypes.guess_type(name)[0]:
        return named
    # RIFF is a container; the name of its format stands behind the length.
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(
            data[8:12], "application/octet-stream"
        )
    return next(
        (mime for magic, mime in _MAGIC if data.startswith(magic)), "application/octet-stream"
    )


# The stored form of a message through its versions, brought up to the newest by `upgrade_stored`:
#   2  a wire's notes have a key of their own in `native`, the wire's name and `NOTES`
#   1  they were among the wire's fields, under reserved names
_RESERVED = frozenset(["spelling", "response", "item", "digest"])
"""Names that were reserved for notes in version 1. One wire alone noted the last two; no other had
fields of these names."""


def read_unknown_piece(kind: str, native: Native) -> dict[str, Any] | None:
    """Returns the stored piece of content for which a provider part stands in: one of a kind that
    this release does not know.

    `None` for every other provider part.
    """
    if native is not None and set(native) == {OURS}:
        stored = native[OURS]
    else:
        stored = None
    piece = _fields(stored) or {}
    if kind not in KINDS and piece.get("type") == kind:
        return piece
    return None


def upgrade_stored(stored: object) -> Any:
    """Returns the content and fields (JSON) of a stored message as this release writes it: an older
    version is converted, and a piece of an unknown kind becomes a provider part that holds it."""
    fields = _fields(stored)
    if fields is None:
        return stored
    content = fields.get("content")
    if isinstance(content, list):
        pieces = cast("list[Any]", content)
    else:
        pieces = []
    if fields.get("v") == 1:
        fields = {**_separate_notes(fields), "v": 2}
        pieces = [_separate_notes(piece) for piece in pieces]
    if pieces:
        return {**fields, "content": list(map(_hold_unknown, pieces))}
    return fields


def _hold_unknown(piece: object) -> Any:
    """Returns an unknown piece of a stored message's content as a provider's part, so that it is
    not lost."""
    fields = _fields(piece) or {}
    kind = fields.get("type")
    if not isinstance(kind, str) or kind in KINDS:
        return piece
    return {"type": "provider", "kind": kind, "native": {OURS: fields}}


def _separate_notes(value: object) -> Any:
    """Converts a message of version 1, or a piece of its content or of a result's."""
    fields = _fields(value)
    if fields is None:
        return value
    if (native := _fields(fields.get("native"))) is not None:
        fields = {**fields, "native": _split_native(native)}
    if fields.get("is_content") is True and isinstance(result := fields.get("result"), list):
        pieces = cast("list[Any]", result)
        fields = {**fields, "result": [_separate_notes(piece) for piece in pieces]}
    return fields


def _split_native(native: Mapping[str, Any]) -> dict[str, Any]:
    """Splits the native fields of an older stored message or its content into fields and notes."""
    split: dict[str, Any] = {}
    for wire, value in native.items():
        fields = _fields(value) or {}
        notes = {name: field for name, field in fields.items() if name in _RESERVED}
        if not notes:
            split[wire] = value
            continue
        if remaining := {name: field for name, field in fields.items() if name not in notes}:
            split[wire] = remaining
        split[wire + NOTES] = notes
    return split


def _fields(value: object) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    return None
