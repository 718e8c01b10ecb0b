"""What a dialect is, and how the parts of one message are read by it.

A `Dialect` is a table: what it calls the fields that several dialects have, and the functions that
read and write each kind of part. A dialect starts from its parent's table and overrides what it has
otherwise (`dialects`).

A `Reading` collects what the parts of one message become: pieces of the model's (or of whoever
speaks), the results behind them, and where a step ends. `Reading.read` is the one way in which a
part becomes a piece: metadata goes to `native`, and what the part says beyond what would be written
for the piece is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

import msgspec

from dragoman.codec.json_values import read_extra_fields
from dragoman.codec.media import Media
from dragoman.errors import HistoryError
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Native,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.notes import (
    OLD,
    OWN,
    UI,
    Fields,
    Part,
    Parts,
    join_native,
    note,
    restore,
)
from dragoman.wires.ai_sdk_messages.provider_metadata import lift, metadata_of, with_carried

__all__ = [
    "ATTACHMENT",
    "IMPLIED",
    "STEP",
    "MessageDialect",
    "Envelope",
    "Loader",
    "Reading",
    "Step",
    "UIDialect",
    "fault",
    "finish",
    "load_mark",
    "load_parts",
    "object_in",
    "role_in",
    "says_behind_answers",
    "text_field",
]

ATTACHMENT = "attachment"
"""Type of a part that becomes an attachment of the message."""
STEP = "step-start"
"""Type of the part that begins a step, and kind of its mark."""
IMPLIED = "implied"
"""Key in the note of a step that has no part of its own."""
_BARE_STEP = MarkPart(STEP)
_SAID = (TextPart, ThinkingPart, DataPart, LinkPart, FilePart)
_NO_PART: Part = {}
Step = tuple[list[Content], list[ToolResultPart], str | None]
"""A model message's pieces, the results behind it, and its provider."""


class Envelope(msgspec.Struct, frozen=True):
    """What a message is written with, beside its parts."""

    id: str | None
    """Its id, or None."""
    role: str
    """`system`, `user` or `assistant`."""
    parts: Parts
    """All its parts."""
    first: Message
    """The first message that it holds."""
    extras: Part
    """What is carried under dragoman's key."""


class MessageDialect(msgspec.Struct, frozen=True):
    """One kind of message of the family, as a table."""

    name: str
    """Name of the dialect, as notes have it."""
    loaders: Mapping[str, Loader]
    """Type of a part → the function that reads it. Any other part is a mark."""
    prefixed: Mapping[str, Loader] = {}
    """Beginning of a part's type → the function that reads it."""
    metadata: str = "providerMetadata"
    """Field of a part's metadata."""
    mime: str = "mediaType"
    """Field of a file's type."""
    arguments: str = "input"
    """Field of a call's arguments."""
    output: str = "output"
    """Field of what a call returned."""
    done: Fields = {}
    """Fields of complete texts and thinking of the model."""
    shared_text: tuple[str, ...] = ()
    """Fields of a text that other dialects have too."""
    signs_empty_texts: bool = True
    """An empty text with a signature of Gemini's is thinking; otherwise it is a mark."""


class UIDialect(MessageDialect, frozen=True, kw_only=True):
    """One kind of UI message, or a row, as a table."""

    dump_text: Callable[[TextPart, MessageDialect, bool], Part]
    """(text, dialect, is it the model's) → its part."""
    dump_thinking: Callable[[Sequence[ThinkingPart], MessageDialect], Parts]
    """(adjacent thinking, dialect) → its parts."""
    dump_file: Callable[[Media, MessageDialect, bool], Part]
    """(file, dialect, is it the model's) → its part."""
    dump_call: Callable[[ToolCallPart, MessageDialect, bool, int], Part]
    """(call, dialect, has it a result, number of its step) → its part."""
    add_result: Callable[[Part, ToolResultPart, ToolCallPart, MessageDialect], Part]
    """(part of a call, its result, the call, dialect) → the part with both."""
    dump_mark: Callable[[MarkPart | ProviderPart, MessageDialect], Part]
    """(mark or block, dialect) → its part, empty if it has none."""
    envelope: Callable[[Envelope], Part]
    """Writes the message around its parts."""
    keep: Callable[[Part, Any], Part]
    """(a message's fields, foreign extras under dragoman's key) → the fields with these."""
    metadata_first: bool = False
    """True if the application's metadata has no field, so that it is carried."""
    silent: bool = True
    """True if thinking may have no text. Otherwise a reader would take it for a mark."""
    times: bool = False
    """True if the time of the first message has a field."""


class Reading:
    """Collects what the parts of one message become."""

    def __init__(self, dialect: MessageDialect, role: Role) -> None:
        """Creates the reader of an AI SDK message's parts."""
        self.number = 0
        """Number of the current step, from 0."""
        self.dialect, self.role = dialect, role
        self.is_model = role is Role.MODEL
        self.pieces: list[Content] = []
        """Pieces of the open message."""
        self.answers: list[ToolResultPart] = []
        """Results behind it."""
        self.provider: str | None = None
        """The provider of this step, if a part names it."""
        self.steps: list[Step | Message] = []
        """The closed steps, with what the user said between them."""
        self.item: str | None = None
        """Id of the OpenAI item that the last text belongs to."""
        self.arguments: dict[tuple[str, str], Part] = {}
        """Id and tool of each call so far → its arguments. Some formats omit them beside the
        result."""
        self.implies_steps = self.is_model and dialect.name in OLD
        """True if words behind an answered call begin another step without a mark."""
        self._mark: MarkPart | None = None

    def add(self, piece: Content) -> None:
        """Adds a piece to the open AI SDK message."""
        if self.implies_steps or self._mark is not None:
            self.opens(says=is_said(piece))
        self.pieces.append(piece)

    def step(self, mark: MarkPart) -> None:
        """Begins a step of the turn, which the part `step-start` marks. After answered calls the
        step is an AI SDK model message of its own, otherwise the mark goes into the open
        message."""
        self.number += bool(self.pieces or self.steps or self.answers)
        # Two marks behind each other: the first closes the message, the second begins the next one.
        if self._mark is not None:
            first = self._mark
            self._split_at_step()
            # The new message keeps both marks. `_split_at_step` has put one with notes into it already, but
            # never a bare one: usually the beginning of a message stands for that.
            self.pieces += (first, mark) if first.native is None else (mark,)
        # Whether a message follows is not known yet: a mark at the very end belongs to the message
        # before it.
        elif self.answers and self.is_model:
            self._mark = mark
        else:
            self.pieces.append(mark)

    def end(self) -> list[Step | Message]:
        """Ends the reading of an AI SDK message's parts. Returns all its steps."""
        if self._mark is not None:
            self.pieces.append(self._mark)
        if self.pieces or self.answers or not self.steps:
            self.steps.append((self.pieces, self.answers, self.provider))
        return self.steps

    def opens(self, *, says: bool = True) -> None:
        """Begins the waiting step of an AI SDK message's parts, if there is one. `says` is False
        before a call or a mark."""
        if says and self._mark is None and self.answers and self.implies_steps:  # M-83
            self.step(MarkPart(STEP, OWN.note(None, {"in": self.dialect.name, IMPLIED: True})))
        if self._mark is not None:
            self._split_at_step()

    def _split_at_step(self) -> None:
        """Closes the open AI SDK message, and begins the next one with the waiting mark."""
        mark, self._mark = self._mark, None
        self.steps.append((self.pieces, self.answers, self.provider))
        self.pieces = [mark] if mark and mark.native else []
        self.answers, self.provider, self.item = [], None, None

    def read(
        self,
        piece: Content,
        part: Fields,
        write: Callable[[Any, MessageDialect], Fields],
        piece_kind: str = "",
        key: str | None = None,
        form: Fields = {},
        extra: Fields = {},
    ) -> Any:
        """Returns a piece with everything that its AI SDK part says.

        Args:
            piece: what the part says in neutral fields.
            part: the part, or those of its fields that belong to the piece.
            write: (piece, dialect) → the fields that would be written for it.
            piece_kind: kind of the part's metadata; see `lift`.
            key: field of the metadata; None for the dialect's.
            form: further notes about the part's form.
            extra: native fields that the part has outside of its metadata.
        """
        native: Native = None
        unknown: Fields = {}
        value = part.get(key or self.dialect.metadata)
        if isinstance(value, dict):
            metadata = lift(piece_kind, cast("Part", value))
            # A second text of one item of OpenAI's must not name the item again, or it would be
            # sent twice.
            if piece_kind == "text" and metadata.native and self._goes_on(metadata.native):
                metadata = lift("", cast("Part", value))
            self.provider = self.provider or (metadata.provider if self.is_model else None)
            native, unknown, form = (
                metadata.native or None,
                metadata.unknown,
                {**form, **metadata.form},
            )
            if metadata.extras is not None:
                piece = with_carried(piece, metadata.extras)
        native = join_native(join_native(piece.native, native), extra)
        # The comparison needs the piece as the writer will see it, with its metadata and notes.
        as_made = _with_native(piece, join_native(native, OWN.note(None, form, left=unknown)))
        written = write(as_made, self.dialect)
        return _with_native(piece, note(part, written, self.dialect.name, native, form, unknown))

    def take(
        self,
        piece: Content,
        part: Fields,
        *arguments: Any,
        **more: Any,
    ) -> Any:
        """Adds a piece of an AI SDK message as `read` returns it, and returns it."""
        read = self.read(piece, part, *arguments, **more)
        self.add(read)
        return read

    def answer(self, result: ToolResultPart, run_by: str) -> None:
        """Adds a result: behind the message, or in it if a provider ran the call."""
        (self.pieces if run_by == "provider" else self.answers).append(result)

    def _goes_on(self, native: Fields) -> bool:
        """True if an AI SDK text part belongs to the same OpenAI item as the one before it."""
        item = native.get("openai_responses:notes", {}).get("item", {}).get("id")
        same, self.item = item is not None and item == self.item, item
        return same


Loader = Callable[[Part, Reading, str], None]
"""(part, reading, where) reads a part."""


def finish(
    part: Part,
    piece: Content,
    piece_kind: str,
    dialect: MessageDialect,
    unread: Fields = {},
    shared: Sequence[str] = (),
    key: str | None = None,
) -> Part:
    """Returns the AI SDK part of a piece with its metadata, as it was read. The inverse of
    `Reading.read`.

    Args:
        part: what is written for the neutral fields of the piece.
        piece: the piece.
        piece_kind: kind of its metadata; see `lift`.
        dialect: table of the dialect.
        unread: fields of the piece that a reader would miss.
        shared: fields of other dialects that this one has too.
        key: field of the metadata; None for the dialect's.
    """
    if metadata := metadata_of(piece_kind, piece.native, unread):
        part[key or dialect.metadata] = metadata
    return restore(piece.native, part, dialect.name, shared)


def says_behind_answers(messages: Sequence[Message]) -> bool:
    """True if a message says something behind one of its answered calls, with no mark of an AI SDK
    step between."""
    answered = {result.id for message in messages for result in message.tool_results}
    models = [message for message in messages if message.role is Role.MODEL]
    return any(_has_words_behind(message, answered) for message in models)


def _has_words_behind(message: Message, answered: set[str]) -> bool:
    """True if an AI SDK message says something behind a call with one of these ids, in the same
    step."""
    is_behind = False
    for piece in message.content:
        if isinstance(piece, MarkPart) and piece.kind == STEP:
            is_behind = False
        elif isinstance(piece, ToolCallPart):
            is_behind |= piece.id in answered
        elif is_behind and is_said(piece):
            return True
    return False


def is_said(piece: Content) -> bool:
    """True for text, thinking and files, which the model says beside its calls."""
    return isinstance(piece, _SAID)


def load_mark(part: Part, reading: Reading, where: str) -> None:  # noqa: ARG001 a mark is what it is
    """Reads an AI SDK part for people, or an unknown one, as a mark."""
    fields = read_extra_fields(part, "type")
    if fields and reading.dialect.name != UI:
        form = {"in": reading.dialect.name}
    else:
        form = {}
    mark = MarkPart(part["type"], OWN.note(fields, form, mark=part["type"] != STEP))
    metadata = part.get("providerMetadata")
    # Metadata of a source names who answered, but no wire has a room for it.
    if reading.is_model and reading.provider is None and isinstance(metadata, dict):
        reading.opens(says=False)
        reading.provider = lift("", cast("Part", metadata)).provider
    if mark.kind == STEP:
        reading.step(mark)
    else:
        reading.add(mark)


def load_parts(
    parts: Sequence[Any],
    reading: Reading,
    where: str,
    start: int = 0,
) -> Reading:
    """Reads the AI SDK parts of a message, each by the loader for its type.

    Args:
        parts: the parts.
        reading: takes what they become.
        where: path for error messages.
        start: number of the first part.

    Raises:
        HistoryError: a part cannot be read.
    """
    loaders = reading.dialect.loaders
    for number, value in enumerate(parts, start):
        part = _NO_PART
        if type(value) is dict:
            part = cast("Part", value)
        type_ = part.get("type")
        if type(type_) is not str:
            fault(f"{where}[{number}] must be an object with a type, a part of a message")
        load = loaders.get(type_)
        if load is None:
            if type_ == STEP and len(part) == 1:
                reading.step(_BARE_STEP)
                continue
            load = _find_loader(type_, reading.dialect)
        load(part, reading, f"{where}[{number}]")
    return reading


def _find_loader(type_: str, dialect: MessageDialect) -> Loader:
    """Returns the loader for a type of AI SDK part by its beginning."""
    for beginning, load in dialect.prefixed.items():
        if type_.startswith(beginning):
            return load
    return load_mark


def role_in(entry: Part, roles: Mapping[str, Role], where: str) -> Role:
    """Returns the role of an AI SDK message, by the names of its dialect.

    Raises:
        HistoryError: the role is unknown.
    """
    name = entry.get("role")
    if type(name) is not str or name not in roles:
        fault(f"{where}.role must be one of {', '.join(roles)}, not {name!r:.50}")
    return roles[name]


def object_in(entry: Any, where: str, what: str) -> Part:
    """Returns an AI SDK entry of a conversation as an object. `what` says in an error what it
    should be.

    Raises:
        HistoryError: it is no object.
    """
    if type(entry) is not dict:
        fault(f"{where} must be an object, {what}")
    return cast("Part", entry)


def text_field(part: Fields, key: str, where: str) -> str:
    """Returns a field of an AI SDK part that must be a string.

    Raises:
        HistoryError: it is none.
    """
    value = part.get(key)
    if not isinstance(value, str):
        fault(f"{where}.{key} must be a string, not {type(value).__name__}")
    return value


def fault(text: str) -> NoReturn:
    """Raises the error for an AI SDK message that cannot be read.

    Raises:
        HistoryError: always.
    """
    raise HistoryError(text)


def _with_native(piece: Content, native: Native) -> Content:
    """Returns a piece read from an AI SDK part with these native fields."""
    if piece.native is None and native is None:
        return piece
    return msgspec.structs.replace(piece, native=native)
