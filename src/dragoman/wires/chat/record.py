"""What one format of the family is, as data, and a conversation of it on its way out. The rooms of
the family import this module; `dialect.Chat`, above them, is a record with the family's operations,
and a format's own class overrides some of these.

- `Dialect` holds names, tables and flags, and declares the operations that a format may have for
  itself. The rooms call those
  on the record, so that they need not know who overrides what.
- `Outgoing` is a conversation that is being dumped: the record, the target, and what the vendor's
  quirks say.
- `Way` is one way to write a setting into a body; `Reader`, `Loader` and `ErrorLine` are what the
  other tables hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec import outgoing
from dragoman.codec.error_rules import ErrorInfo, ErrorRules
from dragoman.codec.layout import Layout
from dragoman.codec.marks import collect_part_types
from dragoman.codec.native import WireNative
from dragoman.codec.serving import Route
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
"""Of one type of block: (the wire, the type, the block) → the part, or `None` where the block is
not as it should be."""
Loader = Callable[["DialectRecord", Any, Iterator[str]], Sequence[Content]]
"""(the wire, the value of a field, ids for calls that came without one) → the pieces that stand in
it."""
ErrorLine = tuple[type[DragomanError], int, str, str | None]
"""A class of errors, its status, type and code. Of a table the first line that fits counts."""

_NAMED = (ToolCallPart, ToolResultPart)
_NOTHING: dict[str, str] = {}
_TUPLES = ("thinking", "result_roles", "no_ids", "single", "alone", "further")


class SettingWriter(msgspec.Struct, frozen=True):
    """A way to write one setting into a body."""

    field: str
    """Of the body; empty: the vendor cannot be given the setting."""
    load: Callable[[Any], Any]
    """The field's value → the setting; `None`: it says something else."""
    dump: Callable[[Any, Callable[[str], str]], Any]
    """The setting, and what gives the name under which a tool is sent → the field's value; `None`:
    it cannot be said so."""
    form: str = ""

    @property
    def key(self) -> str:
        """Its name: the wire form, else the field."""
        return self.form or self.field


class DialectRecord(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The record of one format. Tables without a default here have the family's in `Chat`."""

    # names

    name: str
    """Of the wire."""
    own: WireNative
    """Its part of `native`."""
    title: str = "Chat Completions"
    """What people call it."""
    id_prefix: str = "chatcmpl-"
    """Of ids of responses."""
    path: str = "/chat/completions"
    """Of requests, relative to the base URL."""
    tools: str = "tools"
    """The body's field for tools."""
    calls: str = "tool_calls"
    """A message's field for calls."""
    thinking: tuple[str, ...] = ("reasoning_content",)
    """A message's fields for thinking as text; the first is the usual one. Without any it stands in
    the content."""
    details: str = ""
    """A message's field for thinking in pieces that are signed or encrypted; empty: there is
    none."""
    empty: str | None = None
    """How the content of a model's message without text is usually written."""
    files_of: str = ""
    """Name of another wire whose ids of files mean the same."""

    # tables

    roles: Mapping[str, Role] = msgspec.field(
        default_factory=lambda: {"system": Role.SYSTEM, "user": Role.USER}
    )
    """Roles of messages, beside the model's and those of results."""
    result_roles: tuple[str, ...] = ("tool",)
    """Roles of messages that hold a result; the first is the usual one."""
    inputs: Mapping[str, str] = msgspec.field(default_factory=lambda: {"function": "arguments"})
    """Type of a call → the field of its input. What is no function has a text as its input."""
    no_ids: tuple[str, ...] = ()
    """What stands for no id in a streamed call."""
    fields: Mapping[str, Loader] = {}
    """A model's message: its fields beside content, thinking and calls → how they are loaded, in
    their order."""
    single: tuple[str, ...] = ()
    """Of these fields those that hold one thing, and no list."""
    alone: tuple[str, ...] = ()
    """Of these fields those beside which a message needs no content."""
    further: tuple[str, ...] = ()
    """The body's further fields that have a neutral name."""
    streaming: JsonMap = {}
    """What the body of a streamed request has beside `stream`."""
    no_text: JsonMap = {}
    """What a delta holds that adds no text."""
    readers: Mapping[str, Reader]
    """Type of a content block → how it is loaded."""
    settings: Mapping[str, Sequence[SettingWriter]]
    """Setting → the ways to write it."""
    counts: Mapping[str, Sequence[tuple[str, ...]]]
    """Neutral count → where it may stand in `usage`."""
    finish: Mapping[str, FinishReason]
    """Word for the end of an answer → neutral reason."""
    words: Mapping[FinishReason, Sequence[str]]
    """Neutral reason → the words that may stand for it."""
    errors: Sequence[ErrorLine]
    """Class of errors → status, type and code."""
    error_rules: ErrorRules = ErrorRules()
    """What errors mean with this vendor alone."""
    evidence: Mapping[str, int] = {}
    """Of a message: roles, types of blocks, and fields of the model's → how surely they tell this
    format (`votes`); any other: 1."""
    layout: Layout = Layout(fields=("messages",), of_tools=frozenset(["function"]))
    """Where its messages stand in the body of a request."""
    routes: tuple[Route, ...]
    """Places of the official API."""
    quirks: Callable[[], Any] = Quirks
    """Makes the usual quirks."""
    embeddings: Any = None
    """The wire's embeddings (`wires.EmbeddingsWire`), where it has some."""

    # flags

    takes_empty: bool = True
    """Takes messages that hold nothing."""
    signed: bool = True
    """What a model's message has of its own goes back to its origin only."""
    bare_results: bool = False
    """A result goes to a target without fields of its own."""
    keeps_form: bool = False
    """A request goes in the form in which it was loaded, whatever the vendor's quirks are."""
    calls_have_names: bool = False
    """The first piece of a streamed call has a name; else an id is enough."""
    straight: bool = True
    """Texts, calls and results that have nothing of their own are written in the family's form
    without asking `dump_noted_block`, `dump_input_message`, `dump_piece` and `explain_unsendable`."""
    usage_apart: bool = True
    """A stream holds the usage in a chunk of its own, without choices."""

    def __post_init__(self) -> None:
        for name in _TUPLES:
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
        """The fields of an `Outgoing` by which a conversation fits the vendor. `tools`: those of
        the request."""
        raise NotImplementedError

    @staticmethod
    def note_loaded(messages: list[Message], /) -> list[Message]:
        """A whole conversation that was loaded → with what only the whole tells."""
        return messages

    def choose_block_type(self, part: Content, blocks: Mapping[str, str], /) -> str:
        """The type of the block for a part that does not tell in which type it came; empty where
        none holds it."""
        raise NotImplementedError

    @staticmethod
    def write_block(type_name: str, part: Content, form: JsonMap) -> Block:
        """What the block of that type holds of a part."""
        raise NotImplementedError

    @staticmethod
    def dump_noted_block(
        out: OutgoingChat, position: int, index: int, piece: Content
    ) -> Block | None:
        """A piece → the block under which it is sent; `None` where there is none."""
        raise NotImplementedError

    @staticmethod
    def dump_input_message(
        out: OutgoingChat, position: int, sent_ids: Mapping[str, str | None]
    ) -> list[Json]:
        """The messages for one that is none of the model's. `sent_ids`: the ids of calls → those
        under which they were sent."""
        raise NotImplementedError

    @staticmethod
    def dump_piece(out: OutgoingChat, position: int, index: int, piece: Content) -> tuple[str, Any]:
        """A piece of the model's message → the field of the message that holds it, and what it adds
        to that."""
        raise NotImplementedError

    @staticmethod
    def explain_unsendable(out: OutgoingChat, position: int, piece: Content) -> str | None:
        """Why a piece of a model's message cannot be sent; `None`: it can."""
        raise NotImplementedError

    def load_tools(self, body: Json, form: Json, /) -> tuple[ToolSpec | ServerTool, ...]:
        """The tools, taken out of `body`; what cannot be read as tools stays."""
        raise NotImplementedError

    def load_tool(self, tool: JsonMap, /) -> ToolSpec | ServerTool:
        """One tool of a request."""
        raise NotImplementedError

    @staticmethod
    def dump_tools(
        out: OutgoingChat, tools: Sequence[ToolSpec | ServerTool], form: JsonMap
    ) -> Json:
        """Tools → the fields of the body that hold them."""
        raise NotImplementedError

    def load_usage(self, fields: JsonMap, /) -> tuple[Usage | None, Json]:
        """What a vendor says of tokens → the neutral counts, and the rest."""
        raise NotImplementedError

    @staticmethod
    def error_info(payload: Any) -> ErrorInfo:
        """An error's JSON → what it says."""
        raise NotImplementedError

    def error_of(self, chunk: JsonMap, /) -> DragomanError | None:
        """The error that a chunk holds in the place of an answer; `None`: it holds none."""
        raise NotImplementedError

    @staticmethod
    def error_body(message: str, error_type: str, code: str | None, status: int) -> Json:
        """The body of an error."""
        raise NotImplementedError

    @staticmethod
    def call_votes(call_id: str) -> int:  # noqa: ARG004 for those whose ids are known
        """How surely an id of a call is of this format (`votes`): any may be the family's."""
        return 2


class OutgoingChat(outgoing.Outgoing[Any], frozen=True, kw_only=True, gc=False):
    """One conversation on its way out. The fields beyond the general ones are what a vendor's
    quirks say."""

    chat: DialectRecord
    """The format in which it goes."""
    roles: Mapping[str, Role]
    """The roles that the target knows."""
    blocks: Mapping[str, str] = _NOTHING
    """Media type, or its first half → the block that carries it, beyond the usual ones."""
    string_only: bool = False
    """Text is one string only, never a list of blocks."""
    tool_media: bool = False
    """Tool messages may hold media; else they follow in a user message."""
    thinking: str | None = None
    """The field for thinking that came in no field of this format; `None`: it is left out."""
    json_schema: bool = True
    """The vendor takes a schema of the output; else JSON mode stands in for it."""
    refuses: Collection[str] = ()
    """Fields of the body that the vendor refuses."""
    ways: Mapping[str, str] = _NOTHING
    """Setting → the way in which the vendor takes it, where that is not the usual one."""
    head: int = 0
    """How many system messages stand before all others, where the place of one matters."""
    bridge: str | None = None
    """What the model is made to say between results of tools and a user's message; `None`:
    nothing."""


def find_named_pieces(
    messages: Sequence[Message], tools: Sequence[ToolSpec]
) -> list[ToolSpec | ToolCallPart | ToolResultPart]:
    """Returns all that has the name of a tool: the tools, and the calls and results of a
    conversation."""
    if collect_part_types(messages).isdisjoint(_NAMED):
        return [*tools]
    pieces = [
        piece
        for message in messages
        for piece in message.content
        if isinstance(piece, _NAMED) and piece.name
    ]
    return [*tools, *pieces]
