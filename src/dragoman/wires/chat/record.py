"""The record of one format of the family, and a conversation that is being written in it.

Every room of the family imports this module and is given the record. `dialect.ChatDialect`, above
the rooms, is a record together with the family's operations; a vendor's class overrides some of
these. The rooms call the operations on the record, so that they need not know who overrides what.

- `DialectRecord` holds names, tables and flags, and declares the operations that may be overridden.
- `OutgoingChat` is a conversation that is being written: the record, the target, and what the
  vendor's quirks say.
- `SettingWriter` is one way to write a setting into a body. `Reader`, `Loader` and `ErrorLine` are
  the entries of the other tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.codec import outgoing_conversation
from dragoman.codec.error_rules import ErrorInfo, ErrorRules
from dragoman.codec.format_layout import Layout
from dragoman.codec.marks import collect_part_types
from dragoman.codec.native import WireNative
from dragoman.codec.serving import Route
from dragoman.codec.tool_fields import ToolFields
from dragoman.errors import DragomanError, SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    FinishReason,
    Message,
    Origin,
    Role,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.chat.quirks import Quirks

__all__ = [
    "Block",
    "DialectRecord",
    "ErrorLine",
    "Loader",
    "OutgoingChat",
    "Reader",
    "SettingWriter",
    "find_named_pieces",
]

Block = Json
"""A content block."""
Reader = Callable[["DialectRecord", str, JsonMap], Content | None]
"""Reads blocks of one type: (the wire, the type, the block) → the part, or None if the block is not
as it should be."""
Loader = Callable[["DialectRecord", Any, Iterator[str]], Sequence[Content]]
"""Reads a field of the model's message: (the wire, the value, ids for calls that came without one)
→ the pieces in it."""
ErrorLine = tuple[type[DragomanError], int, str, str | None]
"""A class of errors, its status, type and code. The first line of a table that fits counts."""

_NAMED = (ToolCallPart, ToolResultPart)
_NOTHING: dict[str, str] = {}
_TUPLE_FIELDS = ("thinking", "result_roles", "no_ids", "single", "alone", "further")


class SettingWriter(msgspec.Struct, frozen=True):
    """A way to write one setting into a body."""

    field: str
    """The body's field. Empty: the vendor has no such setting."""
    load: Callable[[Any], Any]
    """The field's value → the setting, or None if it says something else."""
    dump: Callable[[Any, Callable[[str], str]], Any]
    """The setting, and a function from a tool's name to the name that is sent → the field's value.
    None: the field cannot say it."""
    form: str = ""
    """Name of this way, for fields that are written in several."""

    @property
    def key(self) -> str:
        """Returns the key of this way to write a setting: its form, otherwise its field."""
        return self.form or self.field


class DialectRecord(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The record of one format. `ChatDialect` has the family's defaults for tables without one
    here."""

    # names

    name: str
    """The wire's name."""
    own: WireNative
    """Reads and writes the wire's fields in `native`."""
    title: str = "Chat Completions"
    """What people call the format."""
    id_prefix: str = "chatcmpl-"
    """Prefix of the ids of responses."""
    path: str = "/chat/completions"
    """Path of requests, relative to the base URL."""
    tools: str = "tools"
    """The body's field for tools."""
    calls: str = "tool_calls"
    """A message's field for calls."""
    thinking: tuple[str, ...] = ("reasoning_content",)
    """A message's fields for thinking as text, the usual one first. Without any, thinking stands in
    the content."""
    details: str = ""
    """A message's field for thinking in pieces that are signed or encrypted. Empty: there is
    none."""
    empty: str | None = None
    """The usual content of a model's message without text."""
    files_of: str = ""
    """Name of another wire whose file ids mean the same."""

    # tables

    roles: Mapping[str, Role] = msgspec.field(
        default_factory=lambda: {"system": Role.SYSTEM, "user": Role.USER}
    )
    """Roles of messages, beside the model's and those of results."""
    result_roles: tuple[str, ...] = ("tool",)
    """Roles of messages that hold a result, the usual one first."""
    inputs: Mapping[str, str] = msgspec.field(default_factory=lambda: {"function": "arguments"})
    """Type of a call → the field of its input. The input of a call that is not a function is a
    text."""
    no_ids: tuple[str, ...] = ()
    """Texts that stand for a missing id in a streamed call."""
    fields: Mapping[str, Loader] = {}
    """Fields of a model's message, beside content, thinking and calls → how to read them, in this
    order."""
    single: tuple[str, ...] = ()
    """Those of `fields` that hold one thing instead of a list."""
    alone: tuple[str, ...] = ()
    """Those of `fields` beside which a message needs no content."""
    further: tuple[str, ...] = ()
    """Further fields of the body that have a neutral name."""
    tool_fields: ToolFields = MappingProxyType({"strict": "function"})
    """Fields of tools that other APIs have too."""
    streaming: JsonMap = {}
    """Fields of the body of a streamed request, beside `stream`."""
    no_text: JsonMap = {}
    """Fields of a delta that adds no text."""
    readers: Mapping[str, Reader]
    """Type of a content block → its reader."""
    settings: Mapping[str, Sequence[SettingWriter]]
    """Setting → the ways to write it."""
    counts: Mapping[str, Sequence[tuple[str, ...]]]
    """Neutral count → the paths where it may stand in `usage`."""
    finish: Mapping[str, FinishReason]
    """A vendor's finish reason → the neutral one."""
    words: Mapping[FinishReason, Sequence[str]]
    """Neutral finish reason → the vendor's words for it."""
    errors: Sequence[ErrorLine]
    """Class of errors → status, type and code."""
    error_rules: ErrorRules = ErrorRules()
    """Meanings that errors have with this vendor alone."""
    evidence: Mapping[str, int] = {}
    """Roles, types of blocks and fields of the model's messages → how surely they belong to this
    format (`votes`). Any other counts 1."""
    layout: Layout = Layout(fields=("messages",), of_tools=frozenset(["function"]))
    """Where the messages stand in the body of a request."""
    routes: tuple[Route, ...]
    """Paths of the official API."""
    quirks: Callable[[], Any] = Quirks
    """Makes the usual quirks."""
    embeddings: Any = None
    """The wire's embeddings (`wires.EmbeddingsWire`), if it has any."""

    # flags

    takes_empty: bool = True
    """True if the API takes messages without content."""
    signed: bool = True
    """True if own fields of a model's message go back to their origin only."""
    bare_results: bool = False
    """True if a result goes to a target without fields of its own."""
    keeps_form: bool = False
    """True if a request is written in the form in which it was loaded, whatever the vendor's quirks
    are."""
    calls_have_names: bool = False
    """True if the first piece of a streamed call always has a name. Otherwise an id is enough."""
    straight: bool = True
    """True if messages without anything of their own are written in the family's form, without
    asking `dump_noted_block`, `dump_input_message`, `dump_piece` and `explain_unsendable`."""
    usage_apart: bool = True
    """True if a stream holds the usage in a chunk of its own, without choices."""

    def __post_init__(self) -> None:
        """Checks the record of a Chat dialect."""
        # A text is a sequence too: without this check its letters would count as names.
        for name in _TUPLE_FIELDS:
            if isinstance(value := getattr(self, name), str):
                raise SettingsError(f"{name} is a tuple of names, also for one: ({value!r},)")

    # what a format may do in a way of its own

    def fit(
        self,
        messages: Sequence[Message],
        target: Origin | None,
        quirks: Any,
        tools: Sequence[ToolSpec],
        /,
    ) -> Json:
        """Returns, by the dialect's record, the fields of an `OutgoingChat` by which a conversation
        fits the vendor. `tools`: the request's."""
        raise NotImplementedError

    @staticmethod
    def note_loaded(messages: list[Message], /) -> list[Message]:
        """Returns a loaded conversation with the notes that need all of it."""
        return messages

    def choose_block_type(self, part: Content, blocks: Mapping[str, str], /) -> str:
        """Returns the type of block for a part that does not remember its own, or `""` if none
        holds it."""
        raise NotImplementedError

    @staticmethod
    def write_block(type_name: str, part: Content, form: JsonMap) -> Block:
        """Returns the fields of a block of that type, beside `type`, for a part."""
        raise NotImplementedError

    @staticmethod
    def dump_noted_block(
        out: OutgoingChat, position: int, index: int, piece: Content
    ) -> Block | None:
        """Returns, by the dialect's record, the content block that is sent for a piece, or None.
        Notes what the block leaves out."""
        raise NotImplementedError

    @staticmethod
    def dump_input_message(
        out: OutgoingChat, position: int, sent_ids: Mapping[str, str | None]
    ) -> list[Json]:
        """Writes a system or user message by the dialect's record. `sent_ids`: the ids of calls →
        the ids under which they were sent."""
        raise NotImplementedError

    @staticmethod
    def dump_piece(out: OutgoingChat, position: int, index: int, piece: Content) -> tuple[str, Any]:
        """Returns the field of the message that holds a piece of the model's, and the value that it
        adds there."""
        raise NotImplementedError

    @staticmethod
    def explain_unsendable(out: OutgoingChat, position: int, piece: Content) -> str | None:
        """Returns why a piece of a model's message cannot be sent, or None if it can."""
        raise NotImplementedError

    def load_tools(self, body: Json, form: Json, /) -> tuple[ToolSpec | ServerTool, ...]:
        """Takes the tools out of `body`. If they cannot be read, they stay there."""
        raise NotImplementedError

    def load_tool(self, tool: JsonMap, /) -> ToolSpec | ServerTool:
        """Reads one tool of a request."""
        raise NotImplementedError

    @staticmethod
    def dump_tools(
        out: OutgoingChat, tools: Sequence[ToolSpec | ServerTool], form: JsonMap
    ) -> Json:
        """Returns the fields of the body that hold the tools by the dialect's record."""
        raise NotImplementedError

    def load_usage(self, fields: JsonMap, /) -> tuple[Usage | None, Json]:
        """Reads token counts. Returns the neutral counts, and what else the vendor says."""
        raise NotImplementedError

    @staticmethod
    def error_info(payload: Any) -> ErrorInfo:
        """Reads the JSON of an error."""
        raise NotImplementedError

    def error_of(self, chunk: JsonMap, /) -> DragomanError | None:
        """Returns the error that a chunk holds instead of an answer, or None."""
        raise NotImplementedError

    @staticmethod
    def error_body(message: str, error_type: str, code: str | None, status: int) -> Json:
        """Returns the body of an error."""
        raise NotImplementedError

    @staticmethod
    def call_votes(call_id: str) -> int:  # noqa: ARG004 for those whose ids are known
        """Returns how surely an id of a call belongs to this format (`votes`). Any id may be the
        family's."""
        return 2


class OutgoingChat(outgoing_conversation.Outgoing[Any], frozen=True, kw_only=True, gc=False):
    """A conversation that is being written. Its own fields are what the vendor's quirks say."""

    chat: DialectRecord
    """The format to write."""
    roles: Mapping[str, Role]
    """Roles that the target knows."""
    blocks: Mapping[str, str] = _NOTHING
    """Media type, or its first half → the block for it, beyond the usual ones."""
    alternates: bool = False
    """True if messages of the user and the model must alternate."""
    string_only: bool = False
    """True if text must be one string, never a list of blocks."""
    tool_media: bool = False
    """True if tool messages may hold media. Otherwise these follow in a user message."""
    thinking: str | None = None
    """The field for thinking that came in no field of this format. None leaves it out."""
    json_schema: bool = True
    """True if the vendor takes a schema of the output. Otherwise it gets JSON mode."""
    refuses: Collection[str] = ()
    """Fields of the body that the vendor refuses."""
    ways: Mapping[str, str] = _NOTHING
    """Setting → the way in which the vendor takes it, if that is not the usual one."""
    head: int = 0
    """Number of system messages before all others, for APIs that take system messages there
    only."""
    bridge: str | None = None
    """Text of a model's message between the results of tools and a user's message, for APIs that
    demand one. None: no such message."""


def find_named_pieces(
    messages: Sequence[Message], tools: Sequence[ToolSpec]
) -> list[ToolSpec | ToolCallPart | ToolResultPart]:
    """Returns everything in a Chat Completions request that has the name of a tool: the tools, and
    the calls and results of a conversation."""
    if collect_part_types(messages).isdisjoint(_NAMED):
        return [*tools]
    pieces = [
        piece
        for message in messages
        for piece in message.content
        if isinstance(piece, _NAMED) and piece.name
    ]
    return [*tools, *pieces]
